#!/usr/bin/env bash
# Compiles for AArch64 and runs the result on an emulated processor, by qemu-user. Needs root and
# Debian.
#   lint          clippy
#   tests         of the core, on the portable and the NEON back end, with all tapes of small plans
#   ct            secrets, under valgrind; the instructions of the package's library
#   aes           the library has the AES instructions, and its target does not assume them
#   instructions  of every piece of a release, against the record
#   package       tests of the Python package; noise from known keys, against this machine's
# Arguments select steps by name. NEW=--record renews the record of instructions.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}

bash scripts/install.sh program aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
bash scripts/install.sh program qemu-aarch64 qemu-user
bash scripts/install.sh program mmdebstrap

export CARGO_BUILD_TARGET=aarch64-unknown-linux-gnu
library=$(rustc --print sysroot)/lib/rustlib/$CARGO_BUILD_TARGET
[ -d "$library" ] || rustup target add "$CARGO_BUILD_TARGET"

# A tree with the C library, valgrind and Python of arm64. They are unpacked, not installed: nothing
# in it runs until then.
root=$PWD/target/arm64/root
if [ ! -d "$root" ]; then
    mkdir -p "$root.new"
    mmdebstrap --quiet --mode=root --variant=extract --architectures=arm64 \
        --aptopt='APT::Install-Recommends "false"' \
        --include=libc6,libc6-dbg,libstdc++6,valgrind,python3 \
        "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root.new"
    mv "$root.new" "$root"
fi
export ARM64_ROOT=$root EMULATOR="qemu-aarch64 -cpu max -L $root"
export VALGRIND=$PWD/scripts/arm64_valgrind.sh
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc

lint() {
    cargo clippy --locked --quiet -p geomdp-core -p geomdp-baseline --all-targets \
        --features geomdp-core/checkmem -- -D warnings
}

tests() {
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$EMULATOR \
        cargo test --locked --quiet -p geomdp-core --lib --tests
}

# Builds the library of the package and prints its path.
library() {
    PYO3_BUILD_EXTENSION_MODULE=1 cargo build --locked --quiet --release -p geomdp-python
    echo "${CARGO_TARGET_DIR:-target}/$CARGO_BUILD_TARGET/release/lib_core.so"
}

ct() {
    bash scripts/constant_time.sh valgrind
    "$python" tests/constant_time/check_instructions.py "$(library)"
}

aes() {
    if rustc --print cfg --target "$CARGO_BUILD_TARGET" | grep -q 'target_feature="aes"'; then
        echo "the target assumes the instructions, so nothing shows that they are detected" >&2
        return 1
    fi
    count=$(aarch64-linux-gnu-objdump -d "$(library)" | grep -cw aese)
    echo "$count AES instructions in the library, whose target assumes none"
}

instructions() {
    "$python" tests/constant_time/count_instructions.py ${NEW-}
}

package() {
    site=$PWD/target/arm64/site
    python3=$root/usr/bin/python3
    version=$($EMULATOR "$python3" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    "$python" -m pip install --quiet --upgrade --target "$site" --python-version "$version" \
        --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --only-binary :all: \
        narwhals numpy pandas pytest hypothesis python-flint
    installed=$("$python" -c 'import importlib.metadata as m; print(m.distribution("geomdp")._path)')
    rm -rf "$site"/geomdp*
    cp -r python/geomdp "$installed" "$site/"
    cp "$(library)" "$site/geomdp/_core.abi3.so"
    emulated=($EMULATOR -E "PYTHONPATH=$site:$PWD:$PWD/tests" "$python3")
    noise=$("$python" tests/draw/known_noise.py)
    [ "$("${emulated[@]}" tests/draw/known_noise.py)" = "$noise" ]
    echo "the same noise from known keys as on this machine: $noise"
    # Without those that start processes, which would not be emulated.
    "${emulated[@]}" -m pytest -q -p no:cacheprovider \
        tests/fronts/test_api_properties.py tests/fronts/test_found_by_fuzzing.py \
        tests/fronts/test_measurement.py tests/draw/test_certificate.py tests/privacy/test_map.py
}

for step in ${@:-lint tests ct aes instructions package}; do
    start=$SECONDS
    $step
    echo "== $step on emulated AArch64: passed in $((SECONDS - start)) s"
done

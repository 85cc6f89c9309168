#!/usr/bin/env bash
# Fuzzes the named targets, or all, for SECONDS_EACH: rust/fuzz by libFuzzer, the Python layer by
# atheris. The corpus and failing inputs stay in target/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
out=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
cargo=(--locked --release --quiet --manifest-path rust/fuzz/Cargo.toml --target-dir "$out")

if [ "$*" != python ]; then
    # First check that the targets reach the intended cases.
    cargo test "${cargo[@]}" --test reach

    # The compiler flags of cargo-fuzz, without cargo-fuzz. RUSTC_BOOTSTRAP allows a sanitizer on a
    # stable compiler; --target keeps the flags away from build scripts.
    flags=(-Cpasses=sancov-module -Ccodegen-units=1 -Zsanitizer=address --cfg fuzzing)
    for option in level=4 inline-8bit-counters pc-table trace-compares; do
        flags+=("-Cllvm-args=-sanitizer-coverage-$option")
    done
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="${flags[*]}" cargo build "${cargo[@]}" --features libfuzzer-sys \
        --target "$host"
fi

for target in ${*:-plan kernel fold coins groups python}; do
    run=("$out/$host/release/$target")
    if [ "$target" = python ]; then
        "$python" -c "import atheris" 2>/dev/null || "$python" -m pip install --quiet atheris
        run=("$python" tests/fronts/fuzz_python.py)
    fi
    mkdir -p "$out/corpus/$target"
    echo "=== $target, ${SECONDS_EACH:-60} s"
    if ! "${run[@]}" ${SEED:+-seed=$SEED} -max_total_time="${SECONDS_EACH:-60}" -timeout=30 -rss_limit_mb=2048 -max_len=512 \
        -len_control=0 -print_final_stats=1 -artifact_prefix="$out/$target-" "$out/corpus/$target" \
        >"$out/$target.log" 2>&1; then
        tail -60 "$out/$target.log"
        exit 1
    fi
    grep -E "DONE|number_of_executed_units" "$out/$target.log"
done

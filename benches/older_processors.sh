#!/usr/bin/env bash
# Prints what benches/compare.py prints, as it would be on processors without AVX-512, on those
# without VAES as well, and on those without AVX2 as well: from a copy of the tree whose kernel and
# aes crate do not look for these features.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
case $python in
    /*) ;;
    *) python=$PWD/$python ;;
esac
copy=$PWD/target/older
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z | grep -zvE '^(docs|tests|scripts)/' | xargs -0 cp --parents -t "$copy"
aes=$(cargo metadata --locked --format-version=1 | "$python" -c '
import json, sys
found = [p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "aes"]
print(found[0].removesuffix("/Cargo.toml"))')
cp -r "$aes" "$copy/aes"
cd "$copy"

# Replaces what must be there.
without() {
    grep -q "$2" "$1"
    sed -i "s/$2/${3:-false}/" "$1"
}
# Leaves the look for a token out, and names these features in geomdp.kernel().
without_token() {
    for file in kernel/mod simd; do
        without "rust/core/src/draw/$file.rs" "$1::detect()" "None::<$1>"
    done
    features "$2"
}
features() {
    without rust/core/src/draw/simd.rs '^        "aes" "[va].*' "        $1"
}
without aes/src/lib.rs 'self\.token\.vaes512\.get()'
without_token Avx512 '"aes" "vaes" "avx2"'
without rust/core/src/draw/counter_mode.rs 'Vaes512::detect()' 'None::<Vaes512>'
printf '\n[patch.crates-io]\naes = { path = "aes" }\n' >>Cargo.toml
bench() {
    CARGO_TARGET_DIR=$PWD/target "$python" -m pip install --quiet --no-deps --upgrade --target site .
    (cd benches && PYTHONPATH=../site "$python" compare.py "$@")
}
bench "$@"
without aes/src/lib.rs 'self\.token\.vaes256\.get()'
without rust/core/src/draw/counter_mode.rs 'Vaes::detect()' 'None::<Vaes>'
features '"aes" "avx2"'
bench "$@"
without rust/core/src/draw/counter_mode.rs 'Aes::detect()' 'None::<Aes>'
without_token Avx2 '"aes"'
bench "$@"

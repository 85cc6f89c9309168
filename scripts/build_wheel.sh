#!/usr/bin/env bash
# Builds the source distribution, and from it alone the wheel, in dist/wheel: one build for `make
# develop`, which installs it, and `make wheel`, which checks it. The sources lie at one place and
# keep their times until they change, so that Cargo compiles only what did.
set -euo pipefail
cd "$(dirname "$0")/.."
# Not in CARGO_TARGET_DIR: from a place below the tree Cargo finds .cargo/config.toml.
root=$PWD target=$PWD/target/wheel
host=$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
run() {
    "$root/.venv/bin/maturin" "$@" --out "$root/dist/wheel" >"$target/log" 2>&1 || {
        cat "$target/log" >&2
        exit 1
    }
}
rm -rf dist/wheel "$target/new"
mkdir -p "$target/new" "$target/source"
run sdist
tar -xzf dist/wheel/*.tar.gz -C "$target/new" --strip-components=1
rm -r "$target/new/.cargo" # Cargo would read it beside that of this tree, and give its flags twice.
cd "$target/new"
find . -type f | while read -r file; do
    cmp -s "$file" "../source/$file" || cp --parents "$file" ../source
done
cd ../source
find . -type f | while read -r file; do
    [ -e "../new/$file" ] || rm "$file"
done
# Cargo adds this variable's flags to those of .cargo/config.toml; RUSTFLAGS would replace them. The
# name of the wheel is that of a build by pip.
export CARGO_TARGET_DIR="$target/build"
export "CARGO_TARGET_${host}_RUSTFLAGS=--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
run build --release --locked --compatibility off

#!/usr/bin/env bash
# Builds the source distribution, and from it alone the wheel that `make develop` installs and `make
# wheel` checks: one build for both. The sources lie at one place and keep their times unless they
# change, so that Cargo compiles again only what did. Nothing is built if nothing changed.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-$PWD/.venv/bin}
out=dist/wheel target=${CARGO_TARGET_DIR:-$PWD/target}/wheel
host=$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
cargo_home=${CARGO_HOME:-$HOME/.cargo}
rm -rf "$out" "$target/new"
mkdir -p "$out" "$target/new" "$target/source"
"$bin/maturin" sdist --out "$out" >&2
tar -xzf "$out"/*.tar.gz -C "$target/new" --strip-components=1
# Only what differs gets a new time.
"$bin/python" - "$target/new" "$target/source" <<'PY'
import filecmp, shutil, sys
from pathlib import Path

new, old = map(Path, sys.argv[1:])
names = {path.relative_to(new) for path in new.rglob("*") if path.is_file()}
for path in [path for path in old.rglob("*") if path.is_file()]:
    if path.relative_to(old) not in names:
        path.unlink()
for name in names:
    if not (old / name).exists() or not filecmp.cmp(new / name, old / name, shallow=False):
        (old / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(new / name, old / name)
PY
cd "$target/source"
env CARGO_TARGET_DIR="$target/build" \
    "CARGO_TARGET_${host}_RUSTFLAGS=--remap-path-prefix=$cargo_home=cargo" \
    "$bin/maturin" build --quiet --release --locked --out "$OLDPWD/$out"

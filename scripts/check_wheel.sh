#!/usr/bin/env bash
# Takes what scripts/build_wheel.sh builds. Installs the wheel into an empty environment and uses it
# there, with the newest numpy and with the oldest that is promised.
# With --twice: builds both again in another directory, with another cargo home, and compares bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
"$python" -m venv "$empty/build"
"$empty/build/bin/python" -m pip install --quiet abi3audit auditwheel twine
bash scripts/build_wheel.sh
cargo_home=${CARGO_HOME:-$HOME/.cargo}
if [ "${1:-}" = --twice ]; then
    mkdir "$empty/tree" "$empty/cargo"
    git ls-files -z | xargs -0 cp --parents --no-dereference -t "$empty/tree"
    ln -s "$PWD/.venv" "$empty/tree/.venv"
    find "$cargo_home" -mindepth 1 -maxdepth 1 -exec ln -s -t "$empty/cargo" {} +
    CARGO_HOME=$empty/cargo bash "$empty/tree/scripts/build_wheel.sh"
    for file in dist/wheel/*; do
        cmp "$file" "$empty/tree/$file"
        echo "built twice, with the same bytes: $(cd dist/wheel && sha256sum "$(basename "$file")")"
    done
fi
"$empty/build/bin/twine" --no-color check --strict dist/wheel/*
wheel=$(ls dist/wheel/*.whl)
case "$wheel" in
    *-cp311-abi3-*) ;;
    *) echo "not an abi3 wheel: $wheel" >&2; exit 1 ;;
esac
if [ "$(stat -c %s "$wheel")" -gt 4000000 ]; then
    echo "the wheel is larger than 4 MB: $(stat -c %s "$wheel") bytes" >&2
    exit 1
fi
# The name must be true: one ABI for all versions of Python, and only common system libraries.
"$empty/build/bin/abi3audit" --strict "$wheel"
"$empty/build/bin/auditwheel" show "$wheel" >"$empty/log" 2>&1
grep -E '^platform tag|manylinux_2_[0-9]+_' "$empty/log" | head -1 || {
    cat "$empty/log" >&2
    exit 1
}
"$python" -m zipfile -l "$wheel" >"$empty/log"
for part in licenses/LICENSE-MIT licenses/LICENSE-APACHE licenses/LICENSE-THIRD-PARTY sboms/; do
    grep -q "dist-info/$part" "$empty/log" || {
        echo "the wheel has no $part" >&2
        exit 1
    }
done
"$python" -m zipfile -e "$wheel" "$empty/wheel"
if grep -rlF -e "$HOME" -e "$cargo_home" -e "$PWD" -e "${TMPDIR:-/tmp}/" "$empty/wheel" >&2; then
    echo "these files of the wheel name a directory of this machine" >&2
    exit 1
fi

"$python" -m venv "$empty"
"$empty/bin/python" -m pip install --quiet "$wheel"
cd "$empty"
bin/python "$OLDPWD/scripts/try_wheel.py"
[ "$(bin/geomdp accuracy --epsilon 1 --alpha 0.05 | head -1)" = 3 ]
oldest=$(sed -n 's/^dependencies = \["numpy>=\(.*\)"\]/\1/p' "$OLDPWD/pyproject.toml")
bin/python -m pip install --quiet "numpy==$oldest.*"
bin/python -W error "$OLDPWD/scripts/try_wheel.py"
echo "$(basename "$wheel"): $(stat -c %s "$OLDPWD/$wheel") bytes"

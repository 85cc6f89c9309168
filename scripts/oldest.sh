#!/usr/bin/env bash
# Installs the wheel with the oldest libraries that docs/install.md states (scripts/oldest.txt), and
# runs the whole test suite there. Warnings are errors. TESTS selects tests.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
root=$PWD/target/oldest

rm -rf "$root/wheel"
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$root/wheel" .
[ -d "$root/venv" ] || "$python" -m venv "$root/venv"
bin=$root/venv/bin/python
wheel=$(ls "$root"/wheel/*.whl)
"$bin" -m pip install --quiet --constraint scripts/oldest.txt "${wheel}[test]"
"$bin" -m pip install --quiet --no-deps --force-reinstall "$wheel"
"$bin" -c 'import sys, geomdp; print(sys.version, geomdp.kernel())'
"$bin" -m pytest -q -p no:cacheprovider --numprocesses auto ${TESTS-}

#!/usr/bin/env bash
# Runs the tests of the OpenDP backend with the given versions of OpenDP; `make test` uses the newest.
set -euo pipefail
cd "$(dirname "$0")/../.."

for version in "$@"; do
    site=.venv/opendp-$version
    if [ ! -d "$site" ]; then
        .venv/bin/python -m pip install --quiet --no-deps --target "$site" "opendp==$version"
    fi
    echo "== opendp $version"
    PYTHONPATH=$site .venv/bin/python - "$version" <<'PY'
import sys
from importlib.metadata import version
assert version("opendp") == sys.argv[1], version("opendp")
PY
    PYTHONPATH=$site .venv/bin/python -m pytest --quiet tests/compat/test_opendp.py \
        tests/compat/test_contract.py -k opendp
done

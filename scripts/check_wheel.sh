#!/usr/bin/env bash
# Builds the wheel, installs it into an empty environment and uses it there.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

rm -rf dist/wheel && mkdir -p dist/wheel
"$python" -m pip wheel --quiet --no-deps --wheel-dir dist/wheel .
wheel=$(ls dist/wheel/*.whl)
case "$wheel" in
    *-cp311-abi3-*) ;;
    *) echo "not an abi3 wheel: $wheel" >&2; exit 1 ;;
esac
if [ "$(stat -c %s "$wheel")" -gt 4000000 ]; then
    echo "the wheel is larger than 4 MB: $(stat -c %s "$wheel") bytes" >&2
    exit 1
fi

empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
"$python" -m venv "$empty"
"$empty/bin/python" -m pip install --quiet "$wheel"
cd "$empty"
bin/python - <<'EOF'
import importlib.metadata as metadata
import numpy as np
import geomdp

installed = {d.name.lower() for d in metadata.distributions()} - {"pip", "setuptools"}
assert installed == {"geomdp", "numpy"}, installed
mechanism = geomdp.GeometricMechanism(epsilon=1, bounds=(0, 100))
noisy = mechanism.release(np.full(1000, 50))
assert noisy.min() >= 0 and noisy.max() <= 100 and len(np.unique(noisy)) > 3
print("the wheel works in an empty environment:", mechanism, noisy[:5])
EOF
echo "$(basename "$wheel"): $(stat -c %s "$OLDPWD/$wheel") bytes"

#!/usr/bin/env bash
# Builds the source distribution, and the wheel from it alone. Installs the wheel into an empty
# environment and uses it there, with the newest numpy and with the oldest that is promised.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
"$python" -m venv "$empty/build"
"$empty/build/bin/python" -m pip install --quiet build abi3audit auditwheel
rm -rf dist/wheel
"$empty/build/bin/python" -m build --outdir dist/wheel . >"$empty/log" 2>&1 || {
    tail -50 "$empty/log" >&2
    exit 1
}
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

"$python" -m venv "$empty"
"$empty/bin/python" -m pip install --quiet "$wheel"
cd "$empty"
cat >use.py <<'EOF'
import importlib
import importlib.metadata as metadata
import pkgutil
import numpy as np
import geomdp
import geomdp.measurement as m
from geomdp.compat import diffprivlib, smartnoise

installed = {d.name.lower() for d in metadata.distributions()} - {"pip", "setuptools"}
assert installed == {"geomdp", "numpy"}, installed
mechanism = geomdp.GeometricMechanism(epsilon=1, bounds=(0, 100))
noisy = mechanism.release(np.full(1000, 50))
assert noisy.min() >= 0 and noisy.max() <= 100 and len(np.unique(noisy)) > 3
count = (m.vector_domain(m.atom_domain(str)), m.symmetric_distance()) >> m.then_count()
assert (count >> m.then_geometric(2.0)).map(1) == 0.5
assert 0 <= diffprivlib.GeometricFolded(epsilon=1, lower=0, upper=9).randomise(5) <= 9
assert 0 <= smartnoise.simple_geometric_mechanism(5, 1, 1, 0, 9) <= 9
for module in pkgutil.walk_packages(geomdp.__path__, prefix="geomdp."):
    # Skip modules for libraries that are not installed.
    if module.name.split(".")[-1] not in ("__main__", "opendp", "polars", "duckdb", "dask", "ray", "spark"):
        importlib.import_module(module.name)
assert mechanism.accuracy(0.05) == 3
assert geomdp.distribution.TwoSidedGeometric(1).ppf(0.5) == 0
from geomdp.distributed import ReleaseKey
key = ReleaseKey()
release = lambda: key.release(mechanism, noisy, np.arange(1000), name="n", part=True)
assert (release() == release()).all()
print("the wheel works in an empty environment:", mechanism, noisy[:5], "numpy", np.__version__)
EOF
bin/python use.py
[ "$(bin/geomdp accuracy --epsilon 1 --alpha 0.05 | head -1)" = 3 ]
oldest=$(sed -n 's/^dependencies = \["numpy>=\(.*\)"\]/\1/p' "$OLDPWD/pyproject.toml")
bin/python -m pip install --quiet "numpy==$oldest.*"
bin/python -W error use.py
echo "$(basename "$wheel"): $(stat -c %s "$OLDPWD/$wheel") bytes"

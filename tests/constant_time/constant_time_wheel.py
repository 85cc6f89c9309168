"""Check constant time of the installed package under CPython and valgrind: `make ct`.

The script marks every random byte from the operating system and every count as secret ("undefined"
in valgrind's terms), in whole releases of arrays of all eight dtypes, single counts, folded counts
and bits. valgrind reports every jump and every address that depends on them. No report may concern
code of the package. Reports about the interpreter, which makes Python ints of single noisy counts,
are ignored.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: Libraries that copy or compare memory for a caller; reports are attributed to the caller.
RUNTIME = ("libc.so", "libc-2", "vgpreload", "ld-linux", "libpthread")


def releases() -> None:
    """Release secret counts with secret noise; runs under valgrind."""
    import numpy as np  # noqa: PLC0415 (the parent process does not need it)

    import geomdp  # noqa: PLC0415
    from geomdp import _core  # noqa: PLC0415
    from geomdp._inputs.arrays import DTYPES  # noqa: PLC0415
    from geomdp.compat.diffprivlib import GeometricFolded  # noqa: PLC0415
    from geomdp.keyed import ReleaseKey  # noqa: PLC0415

    marks = ctypes.CDLL(None)
    for mark in (marks.secret, marks.public):
        mark.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    marks.secret_bits.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)

    def reveal(values: np.ndarray) -> None:
        """Mark values public, after checking that all of them were secret."""
        bits = np.zeros(values.nbytes, dtype=np.uint8)
        assert marks.secret_bits(values.ctypes.data, bits.ctypes.data, bits.size) == 1
        assert bits.reshape(values.size, -1).any(axis=1).all(), "the result is not secret"
        marks.public(values.ctypes.data, values.nbytes)

    mechanisms = [
        geomdp.GeometricMechanism(0.5),
        geomdp.GeometricMechanism(0.5, bounds=(3, 90)),
        geomdp.GeometricMechanism.from_scale(1e6, bounds=(0, 100)),
        geomdp.GeometricMechanism.from_scale(0, bounds=(3, 90)),
    ]
    folded = GeometricFolded(epsilon=0.1, lower=-10, upper=100.5)
    # One-time preparation is public: do it first.
    folded.randomise(np.zeros(1, dtype=np.int64))

    marks.secret_random(1)
    key = ReleaseKey()
    for dtype in DTYPES:
        if dtype.startswith("u"):
            # Unsigned counts need bounds.
            mechanisms[0] = geomdp.GeometricMechanism(0.5, bounds=(0, np.iinfo(dtype).max))
        for size in (1, 5, 1000):
            for mechanism in mechanisms:
                counts = np.arange(size).astype(dtype)
                marks.secret(counts.ctypes.data, counts.nbytes)
                reveal(mechanism.release(counts))
                reveal(mechanism.release(counts[::-2]))
                reveal(mechanism.release(counts, out=counts))
                marks.secret(counts.ctypes.data, counts.nbytes)
                reveal(key.release(mechanism, counts, np.arange(size), name="n", part=True))
    counts = np.arange(1000)
    marks.secret(counts.ctypes.data, counts.nbytes)
    reveal(folded.randomise(counts))
    many = np.arange(10_000)
    marks.secret(many.ctypes.data, many.nbytes)
    reveal(mechanisms[1].release(many, threads=3))
    for dtype in DTYPES:
        mechanisms[2].release(np.dtype(dtype).type(7))
    mechanisms[1].release(7)
    folded.randomise(7)
    geomdp.sample_bernoulli(0.1, 100)
    marks.secret_random(0)
    print(f"released by {_core.kernel()[0]} from {geomdp.__file__}", flush=True)


def offenders(report: Path) -> list[str]:
    """Return the functions of the package in valgrind's report."""
    found = []
    for error in ET.parse(report).getroot().iter("error"):
        if error.findtext("kind", "").startswith("Leak"):
            continue
        stack = error.find("stack")
        assert stack is not None
        for frame in stack.iter("frame"):
            module = Path(frame.findtext("obj", "")).name
            if module.startswith("_core") or not module.startswith(RUNTIME):
                if module.startswith("_core"):
                    found.append(f"{error.findtext('kind')}: {frame.findtext('fn', '?')}")
                break
    return found


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        preload, report = Path(directory) / "secret_random.so", Path(directory) / "report.xml"
        source = HERE / "secret_random.c"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", preload, source], check=True)
        # valgrind must see every allocation.
        environment = os.environ | {"LD_PRELOAD": str(preload), "PYTHONMALLOC": "malloc"}
        valgrind = ["valgrind", "--quiet", "--error-limit=no", "--xml=yes", f"--xml-file={report}"]
        run = [*valgrind, sys.executable, __file__, "releases"]
        subprocess.run(run, env=environment, check=True)
        found = offenders(report)
    for line in sorted(set(found)):
        print(f"    {line}")
    print(f"{len(found)} reports in the package")
    return 1 if found else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["releases"]:
        releases()
    else:
        sys.exit(main())

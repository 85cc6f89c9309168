"""A process that is forked during the first call of another thread can make calls too.

The core filled a cell of its own on the first call, without the interpreter's lock for a moment. A
process that was forked then waited for the cell for ever.
"""

import os
import subprocess
import sys

import pytest

#: The call of each entry point of the core, after what it needs is made.
ENTRIES = {
    "memory": """
m = GeometricMechanism(1)._core
x, y = np.arange(3), np.arange(3)
call = lambda: m.release_into(x, y, None, 1)
""",
    "release": "m = GeometricMechanism(1); x = np.arange(3); call = lambda: m.release(x)",
    "a number": "m = GeometricMechanism(1); call = lambda: m.release(5)",
    "a mechanism": "call = lambda: GeometricMechanism('1/3', bounds=(0, 9)).release(5)",
    "certificate": "m = GeometricMechanism(1); call = lambda: m.certificate(np.int64)",
    "tiers": "m = GeometricMechanism(1); x = np.arange(3); call = lambda: m.tiers(x, ['0.1'])",
    "top": "m = GeometricMechanism(1); x = np.arange(3); call = lambda: m.top(x, 1)",
    "bits": "call = lambda: geomdp.sample_bernoulli(0.5, size=3)",
    "trials": "call = lambda: geomdp.sample_geometric(0.5, size=3)",
    "keyed": """
from geomdp.keyed import ReleaseKey
m, x = GeometricMechanism(1), np.arange(3)
call = lambda: ReleaseKey().release(m, x, ids=[x], name="n")
""",
    "rows": "from geomdp._kernel import core; call = lambda: core.columns(b'a,n\\r\\nx,1\\r\\n')",
}
SCRIPT = """
import _thread, os, signal
import numpy as np
import geomdp
from geomdp import GeometricMechanism
import geomdp.keyed, geomdp.tiers, geomdp.samplers  # Python waits for its imports, too.
ENTRY
begun, ended = _thread.allocate_lock(), _thread.allocate_lock()
begun.acquire(), ended.acquire()
failed = []
def first():
    begun.release()
    try:
        call()
    except Exception as error:
        failed.append(error)
    finally:
        ended.release()
_thread.start_new_thread(first, ())
begun.acquire()
child = os.fork()
if not child:
    signal.alarm(30)
    try:
        call()
    finally:
        os._exit(0)
ended.acquire()
assert not failed, failed
print(os.WIFSIGNALED(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks of POSIX")
@pytest.mark.parametrize("name", ENTRIES)
def test_a_fork_during_the_first_call_does_not_hang(name: str) -> None:
    script = SCRIPT.replace("ENTRY", ENTRIES[name])
    # A hang was seen in a half of these runs; the threads of OpenBLAS make forks take longer.
    own = {name: text for name, text in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    for _ in range(12 if name == "memory" else 2):
        command = [sys.executable, "-W", "ignore", "-c", script]
        found = subprocess.run(command, check=True, capture_output=True, text=True, env=own)
        assert found.stdout == "False\n", found.stderr

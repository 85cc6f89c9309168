"""The random source: its failures, one key for each call, and no remains of keys in memory.

Tests marked ``preloaded`` run in their own process, where ``preload.c`` replaces the random source
of the system. It fails on demand or gives a known key, and it searches the whole memory for
anything derived from that key.
"""

import ctypes
import errno
import mmap
import os
import pickle
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

import geomdp.measurement as m
from geomdp import (
    GeometricMechanism,
    _core,
    sample_bernoulli,
    sample_geometric,
    sample_two_sided_geometric,
)
from geomdp._inputs.arrays import DTYPES
from geomdp.cli import main
from geomdp.compat.diffprivlib import GeometricFolded
from geomdp.compat.smartnoise import simple_geometric_mechanism
from geomdp.keyed import ReleaseKey
from geomdp.testing import release_not_private
from unsigned import accepting
from vectors.check import Aes

ON_LINUX = sys.platform == "linux" and platform.machine() == "x86_64"
pytestmark = pytest.mark.skipif(not ON_LINUX, reason="needs Linux on x86-64")

MECHANISM = GeometricMechanism(0.5)
FOLDED = GeometricFolded(epsilon=0.1, lower=-10, upper=100.5)
# Two independent draws have the same magnitude with probability about 2**-58, and one draw is zero
# with probability 2**-58: tanh(rate / 2).
WIDE = GeometricMechanism.from_scale(2.0**57)
# Few words per count.
NARROW = GeometricMechanism(2, bounds=(0, 10))
MILLION = 10**6

Words = NDArray[np.uint64]


# Processes with the preload

SCENARIOS: dict[str, Callable[[], None]] = {}


class Preload(NamedTuple):
    library: Path
    secrets: Path

    def run(self, scenario: str) -> None:
        """Run a scenario in its own process, with warnings as errors."""
        # With its fault handler Python would handle signals on a separate stack.
        handlers = ("PYTHONFAULTHANDLER", "PYTHONDEVMODE")
        environment = {k: v for k, v in os.environ.items() if k not in handlers}
        # Threads of numpy would only add memory to search.
        environment |= {"LD_PRELOAD": str(self.library), "OPENBLAS_NUM_THREADS": "1"}
        folders = map(str, Path(__file__).parents[1:3])
        paths = [*folders, os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        done = subprocess.run(
            [sys.executable, "-W", "error", __file__, scenario, self.secrets],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def preload(tmp_path_factory: pytest.TempPathFactory) -> Preload:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler, as cc")
    directory = tmp_path_factory.mktemp("preload")
    built = Preload(directory / "preload.so", directory / "secrets")
    source = Path(__file__).with_name("preload.c")
    compiler = ["cc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-o", built.library, source]
    subprocess.run(compiler, check=True)
    built.secrets.write_bytes(masked_secrets(os.urandom(32)).tobytes())
    return built


def preloaded(scenario: Callable[[], None]) -> Callable[[Preload], None]:
    """Turn a scenario into a test that runs it in a process with the preload."""
    name = scenario.__name__
    SCENARIOS[name] = scenario

    def test(preload: Preload) -> None:
        preload.run(name)

    test.__name__ = name
    return test


class Source:
    """The variables of the preloaded random source, by name."""

    def __init__(self) -> None:
        self.__dict__["library"] = ctypes.CDLL(None)

    def __getattr__(self, name: str) -> int:
        return ctypes.c_long.in_dll(self.library, name).value

    def __setattr__(self, name: str, value: int) -> None:
        ctypes.c_long.in_dll(self.library, name).value = value

    def reset(self, **settings: int) -> None:
        """Reset the counters and set the behaviour."""
        normal = {"spared": 0, "failures": 0, "returned": -1, "failure": 0, "spoiled": -1}
        counters = dict.fromkeys(("calls", "asked", "given", "flags_seen"), 0)
        settings = normal | counters | {"most": 0, "keyed": 0} | settings
        for name, value in settings.items():
            setattr(self, name, value)


# Releases


class Case(NamedTuple):
    name: str
    call: Callable[[], Any]
    #: Memory that the call might write to.
    memory: NDArray[Any]


def layouts(dtype: str, size: int) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Yield names, arrays of sevens and their memory."""
    for name, view in {
        "plain": lambda a: a[:size],
        "every second": lambda a: a[: 2 * size : 2],
        "backwards": lambda a: a[:size][::-1],
        "a matrix": lambda a: a[: 2 * size].reshape(2, size),
        "a transposed matrix": lambda a: a[: 2 * size].reshape(2, size).T,
        "the other byte order": lambda a: a[:size].view(a.dtype.newbyteorder()),
    }.items():
        memory = np.full(2 * size, 7, dtype)
        yield name, view(memory), memory


def cases() -> Iterator[Case]:
    """Yield releases of every kind."""
    nothing = np.zeros(0)
    yield Case("an int", lambda: MECHANISM.release(7), nothing)
    yield Case("a wide int", lambda: WIDE.release(7), nothing)
    yield Case("a numpy integer", lambda: MECHANISM.release(np.int8(7)), nothing)
    yield Case("an array of no dimension", lambda: MECHANISM.release(np.array(7)), nothing)
    yield Case("a list", lambda: MECHANISM.release([7, 8, 9]), nothing)
    for dtype in DTYPES:
        release = accepting(MECHANISM, dtype).release
        for size in (1, 17, 5000):
            for name, counts, memory in layouts(dtype, size):
                title = f"{size} {dtype}, {name}"
                yield Case(title, partial(release, counts), memory)
                yield Case(f"{title}, in place", partial(release, counts, out=counts), memory)
        for name, out, memory in layouts(dtype, 300):
            counts = np.zeros(out.shape, dtype)
            yield Case(f"{dtype}, to {name}", partial(release, counts, out=out), memory)
    many = np.arange(MILLION)
    yield Case("a million", lambda: MECHANISM.release(many, out=many), many)
    yield Case("a folded int", lambda: FOLDED.randomise(7), nothing)
    some = np.arange(1000)
    yield Case("folded", lambda: FOLDED.randomise(some), some)
    yield Case("trials", lambda: sample_geometric(0.1), nothing)
    yield Case("many trials", lambda: sample_geometric(0.1, (7, 100)), nothing)
    yield Case("a bit", lambda: sample_bernoulli(0.1), nothing)
    yield Case("many bits", lambda: sample_bernoulli(0.1, 5000), nothing)
    yield Case("two-sided", lambda: sample_two_sided_geometric(some, 3), some)
    measurement = (m.vector_domain(m.atom_domain(int)), m.l1_distance(int)) >> m.then_geometric(2)
    yield Case("a measurement", lambda: measurement([1, 2, 3]), nothing)
    yield Case("smartnoise", lambda: simple_geometric_mechanism(7, 1, 1, 0, 9), nothing)


# Failures of the source


class Failure(NamedTuple):
    settings: dict[str, int]
    #: Part of the message.
    reason: str
    calls: int = 1


def failures() -> Iterator[Failure]:
    for code in (errno.EIO, errno.EPERM, errno.ENOSYS, errno.EAGAIN, errno.EFAULT, errno.EINVAL):
        yield Failure({"failure": code}, str(code))
    for returned in (0, -2, 33):
        yield Failure({"returned": returned}, "unexpected situation")
    # After half of the key, and before its last byte.
    yield Failure({"most": 16, "spared": 1, "failure": errno.EIO}, str(errno.EIO), 2)
    yield Failure({"most": 1, "spared": 31, "failure": errno.EIO}, str(errno.EIO), 32)


def check_refused(call: Callable[[], Any], reason: str) -> None:
    try:
        result = call()
    except OSError as error:
        message = str(error)
        assert message.startswith("no random bytes available: "), message
        assert reason in message, message
    else:
        raise AssertionError(f"it returned {result}")


@preloaded
def test_failing_source_raises() -> None:
    source = Source()
    source.reset()
    MECHANISM.release(7)
    assert (source.calls, source.asked, source.given) == (1, 32, 32)
    for case in cases():
        case.call()
        before = case.memory.tobytes()
        for failure in failures():
            source.reset(spoiled=0x5A, failures=-1, **failure.settings)
            check_refused(case.call, failure.reason)
            assert source.calls == failure.calls, case.name
            assert case.memory.tobytes() == before, case.name
        # The failure has no lasting effect.
        source.reset()
        case.call()
        assert (source.calls, source.given) == (1, 32), case.name


@preloaded
def test_command_with_failing_source_leaves_no_file() -> None:
    source = Source()
    MECHANISM.release(7)
    with tempfile.TemporaryDirectory() as directory:
        counts, noisy = Path(directory, "counts.csv"), Path(directory, "noisy.csv")
        counts.write_text("n\n7\n8\n")
        command = ["release", "--column", "n", "--epsilon", "1", str(counts), str(noisy)]
        source.reset(failures=-1, failure=errno.EIO)
        assert main(command) == 1
        assert source.calls == 1
        assert os.listdir(directory) == ["counts.csv"]
        source.reset()
        assert main(command) == 0
        assert noisy.exists()


@preloaded
def test_each_call_reads_one_key_without_flags() -> None:
    source = Source()
    MECHANISM.release(7)
    for case in cases():
        source.reset()
        case.call()
        assert (source.calls, source.asked, source.given) == (1, 32, 32), case.name
        # GRND_NONBLOCK and GRND_INSECURE would allow bytes before there is entropy; GRND_RANDOM
        # would wait needlessly.
        assert source.flags_seen == 0, case.name


@preloaded
def test_interrupted_and_short_reads_are_completed() -> None:
    source = Source()
    secrets = load_secrets()
    MECHANISM.release(7)
    for case in cases():
        source.reset(failure=errno.EINTR, failures=1000, spoiled=0x5A)
        case.call()
        assert (source.calls, source.given) == (1001, 32), case.name
    counts = np.arange(100)
    # Some combinations are enough.
    for most, spared, interrupted in [(1, 0, 0), (1, 5, 3), (31, 1, 9), (7, 2, 1), (33, 0, 2)]:
        source.reset(keyed=1, most=most, spared=spared, failure=errno.EINTR, failures=interrupted)
        secrets.give()
        noisy = WIDE.release(counts)
        assert source.calls == -(-32 // most) + interrupted
        assert (noisy == release_not_private(WIDE, counts, secrets.key)).all()


@preloaded
def test_missing_system_call_raises() -> None:
    # A fallback to /dev/urandom would succeed. It would check for the call once and remember the
    # answer, hence a process for each errno.
    check_no_fallback(errno.ENOSYS)


@preloaded
def test_forbidden_system_call_raises() -> None:
    check_no_fallback(errno.EPERM)


def check_no_fallback(code: int) -> None:
    source = Source()
    out = np.full(100, 7)
    source.reset(failures=-1, failure=code)
    for _ in range(2):
        check_refused(lambda: WIDE.release(out, out=out), str(code))
        assert (out == 7).all()
    assert source.calls >= 2
    source.reset()
    WIDE.release(out, out=out)
    assert (source.calls, source.given) == (1, 32)
    assert (out != 7).all()


# Derived secrets: round keys (FIPS 197) and the tape


def round_keys(key: bytes) -> NDArray[np.uint8]:
    """Return the 15 round keys of AES-256 (FIPS 197, section 5.2)."""
    return np.array(Aes(key).rounds, ">u4").view(np.uint8)


def tape(key: bytes, blocks: int) -> NDArray[np.uint8]:
    """Return the tape: AES-256 of the little-endian counters 0, 1, ..."""
    counters = np.zeros((blocks, 2), "<u8")
    counters[:, 0] = np.arange(blocks)
    encrypted = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(counters.tobytes())
    return np.frombuffer(encrypted, np.uint8).reshape(-1, 16)


def test_key_schedule_reference() -> None:
    # FIPS 197, appendix A.3.
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    assert round_keys(key)[14].tobytes().hex() == "fe4890d1e6188d0b046df344706c631e"


MASK = np.uint64(0xA5A5A5A5A5A5A5A5)
#: The number of round keys. The core never expands keys for decryption.
KEYS = 15
#: Two buffers of the tape, searched for single words.
FIRST_BLOCKS = 2048


def masked_secrets(key: bytes) -> Words:
    words = NARROW.certificate().words_per_draw
    blocks = np.concatenate([round_keys(key), tape(key, MILLION * words // 2)])
    return blocks.reshape(-1).view(np.uint64).reshape(-1, 2) ^ MASK


class Secrets(NamedTuple):
    """Everything derived from one key, masked, in blocks of two words; the key comes first."""

    blocks: Words

    def give(self) -> None:
        """Make the source give this key when `keyed`."""
        masked_key = (ctypes.c_uint64 * 4).in_dll(ctypes.CDLL(None), "masked_key")
        masked_key[:] = self.blocks[:2].reshape(-1).tolist()

    @property
    def words(self) -> Words:
        return self.blocks[: KEYS + FIRST_BLOCKS].reshape(-1, 1)

    @property
    def key(self) -> bytes:
        """The key itself, unmasked in memory from then on."""
        return (self.blocks[:2] ^ MASK).tobytes()


def load_secrets() -> Secrets:
    return Secrets(np.fromfile(sys.argv[2], np.uint64).reshape(-1, 2))


PAGE = 4096
#: Bytes that may be unreadable: guard pages of stacks. Even the smallest stack is larger.
GUARDS = 16 * PAGE


def look(things: Words) -> list[tuple[int, int]]:
    """Search all memory for the masked things; return addresses and rows."""
    found, unread = look_and_count(things)
    assert unread <= GUARDS
    return found


def look_and_count(things: Words) -> tuple[list[tuple[int, int]], int]:
    """Return the finds, and the number of mapped but unreadable bytes."""
    library = ctypes.CDLL(None)
    library.look.restype = ctypes.c_long
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.look_for.argtypes = (pointer, size, size)
    library.look.argtypes = (pointer, size, pointer, pointer)
    assert library.look_for(things.ctypes.data, *things.shape) == 0
    places = np.zeros((100_000, 2), np.uint64)
    mapped, read = ctypes.c_uint64(), ctypes.c_uint64()
    counted = ctypes.byref(mapped), ctypes.byref(read)
    n = library.look(places.ctypes.data, len(places), *counted)
    assert 0 <= n <= len(places)
    assert 10**7 < read.value <= mapped.value
    return [(address, row) for address, row in places[:n].tolist()], mapped.value - read.value


def where(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(limit, 16) for limit in line.split()[0].split("-"))
        if start <= address < end:
            return f"in {' '.join(line.split()[5:]) or 'no file'}, {end - address} from its end"
    return "nowhere"


def deep(call: Callable[[], Any]) -> Any:
    """Call it deep down on the stack, where no later call overwrites its remains."""
    return on_another_stack("deep", call)


def on_another_stack(name: str, call: Callable[[], Any]) -> Any:
    function = getattr(ctypes.PyDLL(None), name)
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.py_object), ctypes.py_object
    caller = ctypes.cast(ctypes.pythonapi.PyObject_CallNoArgs, ctypes.c_void_p)
    return function(caller, call)


@preloaded
def test_search_finds_planted_words() -> None:
    secrets = load_secrets()
    assert look(secrets.words) == []
    memory = np.zeros(10**6, np.uint8)
    planted = [(0, 0), (99_993, 17), (500_001, 2 * KEYS), (10**6 - 8, 2 * KEYS + 4095)]
    for place, row in planted:
        # Unmask in place.
        memory[place : place + 8] = secrets.words[row].view(np.uint8)
        memory[place : place + 8] ^= 0xA5
    assert sorted(row for _, row in look(secrets.words)) == [row for _, row in planted]
    memory[planted[1][0]] ^= 1
    assert len(look(secrets.words)) == 3
    # Half blocks do not count; the key is two blocks.
    blocks = secrets.blocks[:100_000]
    assert look(blocks) == []
    key = secrets.key
    assert {row for _, row in look(blocks)} == {0, 1}
    assert len(key) == 32


@preloaded
def test_search_continues_behind_guards() -> None:
    secrets = load_secrets()
    library = ctypes.CDLL(None)
    found, unread = look_and_count(secrets.words)
    assert found == []
    # Several megabytes: more than one read.
    memory = mmap.mmap(-1, 1000 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    data = np.frombuffer(memory, np.uint8)
    # Around page 302, and across page ends, some of them ends of reads.
    places = {300 * PAGE: 5, 302 * PAGE - 8: 6, 303 * PAGE: 7, 1000 * PAGE - 8: 8}
    places |= {page * PAGE - 4: 9 for page in range(400, 1000)}
    for place, row in places.items():
        data[place : place + 8] = secrets.words[row].view(np.uint8)
        data[place : place + 8] ^= 0xA5

    def guard(page: int) -> bool:
        return library.guard(ctypes.c_void_p(data[page * PAGE :].ctypes.data)) == 0

    if not guard(302):
        return  # Before Linux 6.13 a guard is a separate mapping.
    found, more = look_and_count(secrets.words)
    assert sorted(row for _, row in found) == sorted(places.values())
    assert more == unread + PAGE
    # With 101 guards the search fails.
    assert all(map(guard, range(100, 200)))
    assert look_and_count(secrets.words)[1] == unread + 101 * PAGE
    with pytest.raises(AssertionError):
        look(secrets.words)


@preloaded
def test_search_finds_key_and_tape_during_a_release() -> None:
    source = Source()
    secrets = load_secrets()
    secrets.give()
    # PyDLL keeps the GIL, so the held thread does not have it.
    hold = ctypes.PyDLL(None).hold
    # AES in software keeps its round keys in another order.
    keys = set(range(KEYS)) if " aes " in Path("/proc/cpuinfo").read_text() else set()
    counts = np.zeros(MILLION, np.int64)
    NARROW.release(counts)
    source.reset(keyed=1)
    # On a busy machine a release may end before it is held.
    for _ in range(30):
        out = np.full(MILLION, 10**9)
        thread = threading.Thread(target=NARROW.release, args=(counts,), kwargs={"out": out})
        thread.start()
        while out[10_000] == 10**9:
            time.sleep(0)
        rows = set()
        if hold(ctypes.c_long(thread.native_id or 0)):
            rows = {row for _, row in look(secrets.blocks)}
            source.holding = 0
        thread.join()
        # Beside draws, the memory holds the tape of 16 to 32 counts, of three words or more each.
        if keys <= rows and len(rows - set(range(KEYS))) >= 16 * 3 // 2:
            return
    raise AssertionError("it was never found")


def alarmed(call: Callable[[], Any], seconds: float, again: float = 0) -> bool:
    """Call it with an alarm after some seconds; return whether it was interrupted."""
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, again)
            call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    return False


def caught(call: Callable[[], Any]) -> OSError:
    """Return the error with its traceback."""
    try:
        call()
    except OSError as error:
        return error
    raise AssertionError("it did not fail")


class Leftovers:
    """Remains in memory of a known key given to releases."""

    def __init__(self) -> None:
        self.source = Source()
        self.secrets = load_secrets()
        self.secrets.give()
        self.found: list[str] = []
        self.kept: list[Any] = []

    def check(self, name: str, call: Callable[[], Any], given: int = 32) -> Any:
        """Call it twice: the first call makes plans."""
        call()
        self.source.reset(keyed=1)
        result = deep(call)
        assert self.source.given == given, name
        self.source.reset()
        self.note(name, look(self.secrets.words))
        self.kept.append(result)
        return result

    def note(self, name: str, places: list[tuple[int, int]]) -> None:
        found = sorted({f"{self.name(row)} {where(at)}" for at, row in places})
        self.found += [f"{name}: {len(places)} words, such as {place}" for place in found[:5]]

    def name(self, row: int) -> str:
        return f"round key {row // 2}" if row < 2 * KEYS else f"tape word {row - 2 * KEYS}"

    def done(self) -> None:
        assert not self.found, "\n".join(self.found)


# Probability of a false alarm in all tests below: some 20 searches for 4126 random words at less
# than 2e8 addresses, 20 * 4126 * 2e8 / 2**64 < 1e-6. Searches for a few million blocks of 128 bits
# add less than 1e-21.


@preloaded
def test_release_leaves_no_key_in_memory() -> None:
    leftovers = Leftovers()
    check = leftovers.check
    single = check("an int", lambda: WIDE.release(7))
    check("a small int", lambda: MECHANISM.release(7))
    check("a numpy integer", lambda: MECHANISM.release(np.int8(7)))
    ten = check("ten", lambda: WIDE.release(np.arange(10)))
    check("narrow", lambda: MECHANISM.release(np.arange(100, dtype=np.int8)))
    check("backwards", lambda: MECHANISM.release(np.arange(10)[::-1]))
    check("folded int", lambda: FOLDED.randomise(7))
    check("folded", lambda: FOLDED.randomise(np.arange(1000)))
    check("trials", lambda: sample_geometric(0.1, 1000))
    check("bits", lambda: sample_bernoulli(1e-30, 1000))
    counts = np.arange(MILLION)
    many = check("a million", lambda: NARROW.release(counts))
    leftovers.note("a million", look(leftovers.secrets.blocks))
    check("in a thread", in_a_thread(lambda: MECHANISM.release(counts)))
    told = check("told", lambda: (WIDE.release(7), repr(WIDE), pickle.dumps(WIDE)))
    leftovers.done()
    # The noise came from that key.
    key = leftovers.secrets.key
    assert single == told[0] == release_not_private(WIDE, 7, key)
    assert (ten == release_not_private(WIDE, np.arange(10), key)).all()
    assert (many == release_not_private(NARROW, counts, key)).all()


def in_a_thread(call: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    return run


@preloaded
def test_wiped_release_key_leaves_memory() -> None:
    leftovers = Leftovers()
    counts = np.arange(5000)
    before: list[set[int]] = []

    def release() -> Any:
        key = ReleaseKey()
        noisy = key.release(WIDE, counts, counts, name="n", part=True)
        before.append({row for _, row in look(leftovers.secrets.words)})
        key.wipe()
        return noisy

    leftovers.check("a release key", release)
    # Only the key: round keys are never left.
    assert before == [set(), {0, 1, 2, 3}]
    leftovers.done()


@preloaded
def test_failures_and_signals_leave_no_key_in_memory() -> None:
    leftovers = Leftovers()
    check = leftovers.check
    counts = np.arange(100)
    out = np.arange(200)[::2]
    half = {"most": 16, "spared": 1, "failures": 1, "failure": errno.EIO}
    for name, call in {
        "an int": lambda: WIDE.release(7),
        "an array": lambda: WIDE.release(counts),
        "to an array": lambda: WIDE.release(counts, out=out),
        "folded": lambda: FOLDED.randomise(7),
        "bits": lambda: sample_bernoulli(0.1, 100),
    }.items():
        call()
        leftovers.source.reset(keyed=1, **half)
        error = deep(lambda call=call: caught(call))
        assert leftovers.source.given == 16
        leftovers.source.reset()
        leftovers.note(f"{name}, half a key", look(leftovers.secrets.words))
        # The search covered the traceback and its frames.
        assert error.__traceback__ is not None
    many = np.arange(MILLION)
    alarms = 0

    def count(*_: object) -> None:
        nonlocal alarms
        alarms += 1

    signal.signal(signal.SIGALRM, count)
    check("signals", lambda: alarmed(lambda: MECHANISM.release(many, out=many), 1e-4, 1e-4))
    ints = partial(map, WIDE.release, [7] * 3000)
    check("signals at ints", lambda: alarmed(lambda: list(ints()), 1e-4, 1e-4), given=32 * 3000)
    assert alarms > 4

    def interrupt(*_: object) -> None:
        # Only once there is a key.
        if leftovers.source.given:
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    more = np.arange(2**22)
    assert check("interrupted", lambda: alarmed(lambda: MECHANISM.release(more), 2e-3, 2e-3))
    leftovers.done()


@preloaded
def test_wiped_stack_exceeds_used_stack() -> None:
    source = Source()
    core, folded = MECHANISM._core, FOLDED._drawer("i8")
    counts, out = np.arange(1000), np.zeros(1000, np.int64)
    bits = np.zeros(1000, np.uint8)
    # The same draw without wiping.
    deep(lambda: _core.release_not_private(core, bytes(32), counts, out, 1))
    used = source.used
    assert used > 1000
    for call in (
        lambda: core.release_scalar(7, "i8"),
        lambda: core.release_into(counts, out, None, 1),
        lambda: folded.release_scalar(7, "i8"),
        lambda: folded.release_into(counts, out, None, 1),
        lambda: _core.sample_geometric(0.1, 1000, out),
        lambda: _core.sample_bernoulli(0.1, bits),
    ):
        call()
        deep(call)
        # Twice as far: registers stored by a signal are wiped too.
        assert source.used > 2 * used
        assert source.zeros > used


# Processes and interpreters


def check_fresh(noises: list[int], expected: int) -> None:
    """Check that no two draws have the same magnitude, as draws of one key would.

    Two of n independent draws do with probability below n**2 / 2 * 2**-58: for 80,000, 1.2e-8.
    """
    assert len(noises) == expected
    assert len({abs(noise) for noise in noises}) == expected


def draw() -> list[int]:
    return [WIDE.release(0), *WIDE.release(np.zeros(20, np.int64)).tolist()]


CLONE_VFORK = 0x4000


@preloaded
def test_raw_clones_draw_fresh_noise() -> None:
    system = ctypes.PyDLL(None).syscall
    noises = draw()
    for flags in (signal.SIGCHLD, CLONE_VFORK | signal.SIGCHLD) * 4:
        reading, writing = os.pipe()
        # The number of clone: neither Python nor the C library notices.
        child = system(56, int(flags), 0, 0, 0, 0)
        if child == 0:
            try:
                os.write(writing, pickle.dumps(draw()))
            finally:
                os._exit(0)
        noises += draw()
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            noises += pickle.loads(pipe.read())
        assert os.waitpid(child, 0)[1] == 0
    check_fresh(noises, 21 * (1 + 2 * 8))


@preloaded
def test_processes_sharing_memory_draw_fresh_noise() -> None:
    noises = draw()
    for _ in range(10):
        noises += on_another_stack("beside", draw) + draw()
    check_fresh(noises, 21 * (1 + 2 * 10))


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_forks_during_a_long_release_draw_fresh_noise() -> None:
    counts = np.zeros(10**7, np.int64)
    noises = draw()
    in_the_midst = 0
    with ThreadPoolExecutor(1) as pool:
        # On a busy machine a fork may come too late.
        for _ in range(20):
            out = np.zeros(10**7, np.int64)
            started = pool.submit(WIDE.release, counts, out=out)
            while not out[100_000] and not started.done():
                time.sleep(0)
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.write(writing, pickle.dumps((not out[-100_000], draw())))
                finally:
                    os._exit(0)
            os.close(writing)
            with os.fdopen(reading, "rb") as pipe:
                midst, drawn = pickle.loads(pipe.read())
            assert os.waitpid(child, 0)[1] == 0
            assert started.result() is out
            in_the_midst += midst
            noises += [*drawn, *draw(), *out[:: 10**5].tolist()]
            # One of them is 0 with probability 1e7 * 2**-58.
            assert out.all()
            if in_the_midst == 3:
                break
    assert in_the_midst
    check_fresh(noises, len(noises))


# Without numpy forks are much faster.
FORKS = """
import array, gc, importlib.machinery, importlib.util, os, signal, sys
loader = importlib.machinery.ExtensionFileLoader("geomdp._core", sys.argv[1])
core = importlib.util.module_from_spec(importlib.util.spec_from_loader("geomdp._core", loader))
loader.exec_module(core)
mechanism = core.Mechanism((1, 2**57), None)
zeros, noisy = array.array("q", bytes(64)), array.array("q", bytes(64))
mechanism.release_into(zeros, noisy, None, 1)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
gc.disable()

def draw():
    mechanism.release_into(zeros, noisy, None, 1)
    os.write(1, noisy)
    os._exit(0)

for _ in range(4):
    if os.fork() == 0:
        for _ in range(2499):
            if os.fork() == 0:
                draw()
        draw()
"""


def test_first_draws_of_10_000_processes_are_distinct() -> None:
    forking = subprocess.run(
        [sys.executable, "-c", FORKS, _core.__file__], check=True, capture_output=True, timeout=120
    )
    assert forking.stderr == b""
    check_fresh(np.frombuffer(forking.stdout, np.int64).tolist(), 80_000)


INTERPRETERS = """
import os, sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
from geomdp import GeometricMechanism
WIDE = GeometricMechanism.from_scale(2.0**57)
first = WIDE.release(0)
reading, writing = os.pipe()
for _ in range(3):
    interpreters.run_string(interpreters.create(), f'''
import os, warnings
warnings.simplefilter("ignore")
try:
    from geomdp import GeometricMechanism
    told = str(GeometricMechanism.from_scale(2.0**57).release(0))
except ImportError as error:
    told = "ImportError"
os.write({writing}, (told + chr(10)).encode())
''')
os.close(writing)
print(first, WIDE.release(0), *os.fdopen(reading).read().split())
"""


def test_subinterpreters_raise_or_draw_fresh_noise() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETERS], check=True, capture_output=True, text=True, timeout=60
    )
    told = done.stdout.split()
    assert len(told) == 5
    noises = [int(noise) for noise in told if noise != "ImportError"]
    check_fresh(noises, len(noises))
    # numpy supports one interpreter per process so far.
    assert told[2:] == ["ImportError"] * 3


# Interrupts


@pytest.mark.parametrize("layout", ["contiguous", "in place", "strided", "the other byte order"])
def test_interrupted_release_leaves_no_noise(layout: str) -> None:
    size = 4_000_000
    # Outside the bounds, so every noisy count differs, and none is 0.
    counts, mechanism = np.full(size, -1), GeometricMechanism(2, bounds=(1, 10))
    out = {
        "contiguous": lambda: np.zeros(size, np.int64),
        "in place": lambda: counts,
        "strided": lambda: np.zeros(2 * size, np.int64)[::2],
        "the other byte order": lambda: np.zeros(size, np.dtype(np.int64).newbyteorder()),
    }[layout]()
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    interrupted = 0
    seconds = 1.0
    try:
        for _ in range(300):
            out[:] = -1
            start = time.perf_counter()
            # With more threads signals would be checked only at the end.
            release = partial(mechanism.release, counts, out=out, threads=1)
            if alarmed(release, random.uniform(1e-6, seconds)):
                interrupted += 1
            else:
                seconds = min(seconds, 1.2 * (time.perf_counter() - start))
            assert (out > 0).all() or set(np.unique(out)) <= {-1, 0}
            if interrupted == 20:
                break
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert interrupted == 20


if __name__ == "__main__":
    SCENARIOS[sys.argv[1]]()

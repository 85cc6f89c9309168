"""The random source under fire: it fails, it is asked for one key, of which nothing stays.

Tests marked ``preloaded`` run in a process of their own, in which ``preload.c`` stands for the
random source of the system. It fails as it is told, or gives a known key; and it looks through the
whole memory for what was made of that key.
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
from numpy.typing import NDArray

import geomdp.measurement as m
from geomdp import (
    GeometricMechanism,
    _core,
    sample_bernoulli,
    sample_geometric,
    sample_two_sided_geometric,
)
from geomdp.cli import main
from geomdp.compat.diffprivlib import GeometricFolded
from geomdp.compat.smartnoise import simple_geometric_mechanism
from geomdp.distributed import ReleaseKey
from geomdp.testing import release_not_private
from unsigned import accepting

ON_LINUX = sys.platform == "linux" and platform.machine() == "x86_64"
pytestmark = pytest.mark.skipif(not ON_LINUX, reason="needs Linux on x86-64")

MECHANISM = GeometricMechanism(0.5)
FOLDED = GeometricFolded(epsilon=0.1, lower=-10, upper=100.5)
# Two independent noises of this scale have the same magnitude with a chance of about 2**-58, and
# one is zero with a chance of 2**-58: tanh(rate / 2).
WIDE = GeometricMechanism.from_scale(2.0**57)
# Of few words for each count.
NARROW = GeometricMechanism(2, bounds=(0, 10))
MILLION = 10**6
DTYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")

Words = NDArray[np.uint64]


# Processes with the preload

SCENARIOS: dict[str, Callable[[], None]] = {}


class Preload(NamedTuple):
    library: Path
    secrets: Path

    def run(self, scenario: str) -> None:
        """Run a scenario in a process of its own, with every warning an error."""
        # With a handler of faults, Python would have signals on a stack of their own.
        handlers = ("PYTHONFAULTHANDLER", "PYTHONDEVMODE")
        environment = {k: v for k, v in os.environ.items() if k not in handlers}
        # Threads of numpy's own would only have more memory to be looked through.
        environment |= {"LD_PRELOAD": str(self.library), "OPENBLAS_NUM_THREADS": "1"}
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
    """The random source of a process with the preload: its variables, by name."""

    def __init__(self) -> None:
        self.__dict__["library"] = ctypes.CDLL(None)

    def __getattr__(self, name: str) -> int:
        return ctypes.c_long.in_dll(self.library, name).value

    def __setattr__(self, name: str, value: int) -> None:
        ctypes.c_long.in_dll(self.library, name).value = value

    def reset(self, **settings: int) -> None:
        """Forget what was asked, and behave like this from now on."""
        normal = {"spared": 0, "failures": 0, "returned": -1, "failure": 0, "spoiled": -1}
        counters = dict.fromkeys(("calls", "asked", "given", "flags_seen"), 0)
        settings = normal | counters | {"most": 0, "keyed": 0} | settings
        for name, value in settings.items():
            setattr(self, name, value)


# What is released


class Case(NamedTuple):
    name: str
    call: Callable[[], Any]
    #: All that the call might write to.
    memory: NDArray[Any]


def layouts(dtype: str, size: int) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Yield arrays of sevens, with a name and the memory that they are in."""
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
    #: The end of the message.
    reason: str
    calls: int = 1


def failures() -> Iterator[Failure]:
    for code in (errno.EIO, errno.EPERM, errno.ENOSYS, errno.EAGAIN, errno.EFAULT, errno.EINVAL):
        yield Failure({"failure": code}, str(code))
    for returned in (0, -2, 33):
        yield Failure({"returned": returned}, "unexpected situation")
    # In the midst of the key, and short of its last byte.
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
def test_no_noise_from_a_source_that_fails() -> None:
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
        # Nothing of it is remembered.
        source.reset()
        case.call()
        assert (source.calls, source.given) == (1, 32), case.name


@preloaded
def test_the_command_leaves_no_file_when_the_source_fails() -> None:
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
def test_each_call_asks_once_for_a_key_and_may_wait_for_it() -> None:
    source = Source()
    MECHANISM.release(7)
    for case in cases():
        source.reset()
        case.call()
        assert (source.calls, source.asked, source.given) == (1, 32, 32), case.name
        # Neither GRND_NONBLOCK nor GRND_INSECURE, which would give bytes before there is entropy;
        # nor GRND_RANDOM, which would wait for no reason.
        assert source.flags_seen == 0, case.name


@preloaded
def test_interrupted_and_short_reads_are_made_up_for() -> None:
    source = Source()
    secrets = load_secrets()
    MECHANISM.release(7)
    for case in cases():
        source.reset(failure=errno.EINTR, failures=1000, spoiled=0x5A)
        case.call()
        assert (source.calls, source.given) == (1001, 32), case.name
    counts = np.arange(100)
    # A failure before each of the 32 reads would not be told from one: some are enough.
    for most, spared, interrupted in [(1, 0, 0), (1, 5, 3), (31, 1, 9), (7, 2, 1), (33, 0, 2)]:
        source.reset(keyed=1, most=most, spared=spared, failure=errno.EINTR, failures=interrupted)
        secrets.give()
        noisy = WIDE.release(counts)
        assert source.calls == -(-32 // most) + interrupted
        assert (noisy == release_not_private(WIDE, counts, secrets.key)).all()


@preloaded
def test_without_the_system_call() -> None:
    # A generator that reads /dev/urandom instead would succeed, from whatever is there. It asks
    # once, and keeps the answer: hence a process for each.
    check_no_fallback(errno.ENOSYS)


@preloaded
def test_where_the_system_call_is_forbidden() -> None:
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


# What stays in memory: FIPS 197 and the tape, in plain numpy


def boxes() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return AES's substitution and doubling of bytes (FIPS 197, sections 5.1.1 and 4.2)."""
    doubled = np.array([x << 1 ^ (0x11B if x & 0x80 else 0) for x in range(256)], np.uint8)
    # Powers of 3, which runs through all bytes but 0; the inverse of 3**i is 3**(255 - i).
    powers = [1]
    for _ in range(254):
        powers.append(powers[-1] ^ int(doubled[powers[-1]]))
    substituted = np.empty(256, np.uint8)
    for x in range(256):
        inverse = powers[-powers.index(x) % 255] if x else 0
        bits = inverse * 0x101  # twice, so that a shift is a rotation
        rotations = bits ^ bits >> 4 ^ bits >> 5 ^ bits >> 6 ^ bits >> 7
        substituted[x] = rotations & 0xFF ^ 0x63
    return substituted, doubled


SUBSTITUTED, DOUBLED = boxes()
SHIFTED_ROWS = np.array([(i + 4 * (i % 4)) % 16 for i in range(16)])


def round_keys(key: bytes) -> NDArray[np.uint8]:
    """Return the 15 round keys of AES-256 (FIPS 197, section 5.2)."""
    words = [np.frombuffer(key, np.uint8)[i : i + 4] for i in range(0, 32, 4)]
    constant = 1
    for i in range(8, 60):
        word = words[-1]
        if i % 8 == 0:
            word = SUBSTITUTED[np.roll(word, -1)] ^ np.array([constant, 0, 0, 0], np.uint8)
            constant = int(DOUBLED[constant])
        elif i % 8 == 4:
            word = SUBSTITUTED[word]
        words.append(words[-8] ^ word)
    return np.concatenate(words).reshape(15, 16)


def mixed_columns(blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    columns = blocks.reshape(-1, 4, 4)
    one, two, three = (np.roll(columns, -i, axis=2) for i in (1, 2, 3))
    return (DOUBLED[columns ^ one] ^ one ^ two ^ three).reshape(blocks.shape)


def encrypted(keys: NDArray[np.uint8], blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    state = blocks ^ keys[0]
    for key in keys[1:-1]:
        state = mixed_columns(SUBSTITUTED[state[:, SHIFTED_ROWS]]) ^ key
    return SUBSTITUTED[state[:, SHIFTED_ROWS]] ^ keys[-1]


def decryption_keys(keys: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the inner round keys of the equivalent inverse cipher (FIPS 197, section 5.3.5)."""
    inner = keys[1:-1]
    # The matrix that mixes columns is its own inverse's cube.
    return mixed_columns(mixed_columns(mixed_columns(inner)))


def tape(key: bytes, blocks: int) -> NDArray[np.uint8]:
    """Return the tape: the encrypted counters 0, 1, ... (little-endian, after no nonce)."""
    counters = np.zeros((blocks, 2), "<u8")
    counters[:, 0] = np.arange(blocks)
    return encrypted(round_keys(key), counters.view(np.uint8))


def test_the_reference_is_aes_256() -> None:
    # FIPS 197, appendices A.3 and C.3.
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    assert round_keys(key)[14].tobytes().hex() == "fe4890d1e6188d0b046df344706c631e"
    block = np.frombuffer(bytes.fromhex("00112233445566778899aabbccddeeff"), np.uint8)
    keys = round_keys(bytes(range(32)))
    assert encrypted(keys, block[None]).tobytes().hex() == "8ea2b7ca516745bfeafc49904b496089"
    assert decryption_keys(keys)[12].tobytes().hex() == "34f1d1ffbfceaa2ffce9e25f2558016e"


MASK = np.uint64(0xA5A5A5A5A5A5A5A5)
#: Round keys, and those for decryption that are not round keys themselves.
KEYS = 15 + 13
#: Two buffers of the tape, of which single words are looked for.
FIRST_BLOCKS = 2048


def masked_secrets(key: bytes) -> Words:
    keys = round_keys(key)
    words = NARROW.certificate().words_per_draw
    blocks = np.concatenate([keys, decryption_keys(keys), tape(key, MILLION * words // 2)])
    return blocks.reshape(-1).view(np.uint64).reshape(-1, 2) ^ MASK


class Secrets(NamedTuple):
    """What is made of one key, masked, in blocks of two words; the key is the first two blocks."""

    blocks: Words

    def give(self) -> None:
        """Have the source give this key when it is `keyed`."""
        masked_key = (ctypes.c_uint64 * 4).in_dll(ctypes.CDLL(None), "masked_key")
        masked_key[:] = self.blocks[:2].reshape(-1).tolist()

    @property
    def words(self) -> Words:
        return self.blocks[: KEYS + FIRST_BLOCKS].reshape(-1, 1)

    @property
    def key(self) -> bytes:
        """The key itself, which is in the memory from then on."""
        return (self.blocks[:2] ^ MASK).tobytes()


def load_secrets() -> Secrets:
    return Secrets(np.fromfile(sys.argv[2], np.uint64).reshape(-1, 2))


PAGE = 4096
#: The most memory, in bytes, that the kernel may refuse to read: guards of stacks, a page each. The
#: least stack is larger.
GUARDS = 16 * PAGE


def look(things: Words) -> list[tuple[int, int]]:
    """Return where in all the memory there is one of the masked things, and which, by its row."""
    found, unread = look_and_count(things)
    assert unread <= GUARDS
    return found


def look_and_count(things: Words) -> tuple[list[tuple[int, int]], int]:
    """Return what is found, and how many bytes are mapped to be read but could not be."""
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
    """Call it far down on the stack: nothing that comes later writes over what is left there."""
    return on_another_stack("deep", call)


def on_another_stack(name: str, call: Callable[[], Any]) -> Any:
    function = getattr(ctypes.PyDLL(None), name)
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.py_object), ctypes.py_object
    caller = ctypes.cast(ctypes.pythonapi.PyObject_CallNoArgs, ctypes.c_void_p)
    return function(caller, call)


@preloaded
def test_the_look_finds_what_is_there() -> None:
    secrets = load_secrets()
    assert look(secrets.words) == []
    memory = np.zeros(10**6, np.uint8)
    planted = [(0, 0), (99_993, 17), (500_001, 2 * KEYS), (10**6 - 8, 2 * KEYS + 4095)]
    for place, row in planted:
        # Unmasked where they are, not on the way.
        memory[place : place + 8] = secrets.words[row].view(np.uint8)
        memory[place : place + 8] ^= 0xA5
    assert sorted(row for _, row in look(secrets.words)) == [row for _, row in planted]
    memory[planted[1][0]] ^= 1
    assert len(look(secrets.words)) == 3
    # Halves of blocks are no blocks; the key is two.
    blocks = secrets.blocks[:100_000]
    assert look(blocks) == []
    key = secrets.key
    assert {row for _, row in look(blocks)} == {0, 1}
    assert len(key) == 32


@preloaded
def test_the_look_goes_on_behind_a_guard() -> None:
    secrets = load_secrets()
    library = ctypes.CDLL(None)
    found, unread = look_and_count(secrets.words)
    assert found == []
    # Some megabytes: more than is read at a time.
    memory = mmap.mmap(-1, 1000 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    data = np.frombuffer(memory, np.uint8)
    # Around page 302, and across the ends of many, some of which end what is read at a time.
    places = {300 * PAGE: 5, 302 * PAGE - 8: 6, 303 * PAGE: 7, 1000 * PAGE - 8: 8}
    places |= {page * PAGE - 4: 9 for page in range(400, 1000)}
    for place, row in places.items():
        data[place : place + 8] = secrets.words[row].view(np.uint8)
        data[place : place + 8] ^= 0xA5

    def guard(page: int) -> bool:
        return library.guard(ctypes.c_void_p(data[page * PAGE :].ctypes.data)) == 0

    if not guard(302):
        return  # Before Linux 6.13 a guard is a mapping of its own.
    found, more = look_and_count(secrets.words)
    assert sorted(row for _, row in found) == sorted(places.values())
    assert more == unread + PAGE
    # Were all of it guards, there would be too many.
    assert all(map(guard, range(100, 200)))
    assert look_and_count(secrets.words)[1] == unread + 101 * PAGE
    with pytest.raises(AssertionError):
        look(secrets.words)


@preloaded
def test_a_key_and_its_tape_are_found_during_a_release() -> None:
    source = Source()
    secrets = load_secrets()
    secrets.give()
    # Keeps the interpreter's lock, so that the other thread is not held with it.
    hold = ctypes.PyDLL(None).hold
    # Software has the round keys in another order.
    keys = set(range(15)) if " aes " in Path("/proc/cpuinfo").read_text() else set()
    counts = np.zeros(MILLION, np.int64)
    NARROW.release(counts)
    source.reset(keyed=1)
    # On a busy machine a release may be over before it is held.
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
        if keys <= rows and len(rows - set(range(KEYS))) > 100:
            return
    raise AssertionError("it was never found")


def alarmed(call: Callable[[], Any], seconds: float, again: float = 0) -> bool:
    """Call it, with alarms after some seconds; return whether it was interrupted."""
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
    """Return the error with all that belongs to it."""
    try:
        call()
    except OSError as error:
        return error
    raise AssertionError("it did not fail")


class Leftovers:
    """Whether releases leave anything behind of a key that is given to each of them."""

    def __init__(self) -> None:
        self.source = Source()
        self.secrets = load_secrets()
        self.secrets.give()
        self.found: list[str] = []
        self.kept: list[Any] = []

    def check(self, name: str, call: Callable[[], Any], given: int = 32) -> Any:
        """Call it twice, the first time for what is made once, such as plans."""
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
        block = row // 2
        if block < 15:
            return f"round key {block}"
        return "a decryption key" if block < KEYS else f"tape word {row - 2 * KEYS}"

    def done(self) -> None:
        assert not self.found, "\n".join(self.found)


# The chance of a false alarm, in all tests below: some 20 looks for 4152 random words at less than
# 2e8 addresses, 20 * 4152 * 2e8 / 2**64 < 1e-6. Looks for a few million blocks, of 128 bits each,
# add less than 1e-21 to it.


@preloaded
def test_nothing_of_a_key_stays_after_a_release() -> None:
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
    # The noise was of that key.
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
def test_nothing_of_a_release_key_stays_once_it_is_wiped() -> None:
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
    # Without its round keys, of which nothing stays even then.
    assert before == [set(), {0, 1, 2, 3}]
    leftovers.done()


@preloaded
def test_nothing_of_a_key_stays_after_failures_and_signals() -> None:
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
        # Looked through as well, with all that its traceback refers to.
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
        # Not before there is a key.
        if leftovers.source.given:
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    more = np.arange(2**22)
    assert check("interrupted", lambda: alarmed(lambda: MECHANISM.release(more), 2e-3, 2e-3))
    leftovers.done()


@preloaded
def test_more_stack_is_wiped_than_is_used() -> None:
    source = Source()
    core, folded = MECHANISM._core, FOLDED._drawer("i8")
    counts, out = np.arange(1000), np.zeros(1000, np.int64)
    bits = np.zeros(1000, np.uint8)
    # The same draw, which wipes nothing.
    deep(lambda: _core.release_not_private(core, bytes(32), counts, out, "i8", 1))
    used = source.used
    assert used > 1000
    for call in (
        lambda: core.release_scalar(7, "i8"),
        lambda: core.release_into(counts, out, "i8", True, 1),
        lambda: folded.release_scalar(7, "i8"),
        lambda: folded.release_into(counts, out, "i8", True, 1),
        lambda: _core.sample_geometric(0.1, 1000, out),
        lambda: _core.sample_bernoulli(0.1, bits),
    ):
        call()
        deep(call)
        # Twice as far: the registers that a signal stores would still be wiped.
        assert source.used > 2 * used
        assert source.zeros > used


# Processes and interpreters, however they are made


def check_fresh(noises: list[int], expected: int) -> None:
    """Check that no two noises have the same magnitude, which those of one key would.

    By chance two are alike with probability below n**2 / 2 * 2**-58: for n = 80 000, 1.2e-8.
    """
    assert len(noises) == expected
    assert len({abs(noise) for noise in noises}) == expected


def draw() -> list[int]:
    return [WIDE.release(0), *WIDE.release(np.zeros(20, np.int64)).tolist()]


CLONE_VFORK = 0x4000


@preloaded
def test_raw_clones_draw_noise_of_their_own() -> None:
    system = ctypes.PyDLL(None).syscall
    noises = draw()
    for flags in (signal.SIGCHLD, CLONE_VFORK | signal.SIGCHLD) * 4:
        reading, writing = os.pipe()
        # By the number of clone, behind the back of Python and of the C library.
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
def test_processes_that_share_memory_draw_noise_of_their_own() -> None:
    noises = draw()
    for _ in range(10):
        noises += on_another_stack("beside", draw) + draw()
    check_fresh(noises, 21 * (1 + 2 * 10))


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_forks_in_the_midst_of_a_long_release() -> None:
    counts = np.zeros(10**7, np.int64)
    noises = draw()
    in_the_midst = 0
    with ThreadPoolExecutor(1) as pool:
        # The more the better, but a busy machine may get there too late.
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
            # With a chance of 1e7 * 2**-58 one of them is 0.
            assert out.all()
            if in_the_midst == 3:
                break
    assert in_the_midst
    check_fresh(noises, len(noises))


# Without numpy, which takes much longer to fork.
FORKS = """
import array, gc, importlib.machinery, importlib.util, os, signal, sys
loader = importlib.machinery.ExtensionFileLoader("geomdp._core", sys.argv[1])
core = importlib.util.module_from_spec(importlib.util.spec_from_loader("geomdp._core", loader))
loader.exec_module(core)
mechanism = core.Mechanism((1, 2**57), None)
zeros, noisy = array.array("q", bytes(64)), array.array("q", bytes(64))
mechanism.release_into(zeros, noisy, "i8", False, 1)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
gc.disable()

def draw():
    mechanism.release_into(zeros, noisy, "i8", False, 1)
    os.write(1, noisy)
    os._exit(0)

for _ in range(4):
    if os.fork() == 0:
        for _ in range(2499):
            if os.fork() == 0:
                draw()
        draw()
"""


def test_the_first_draws_of_ten_thousand_processes_are_distinct() -> None:
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


def test_other_interpreters_refuse_or_draw_noise_of_their_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETERS], check=True, capture_output=True, text=True, timeout=60
    )
    told = done.stdout.split()
    assert len(told) == 5
    noises = [int(noise) for noise in told if noise != "ImportError"]
    check_fresh(noises, len(noises))
    # numpy is for one interpreter of a process, so far.
    assert told[2:] == ["ImportError"] * 3


# Threads and interrupts


def test_threads_stay_within_bounds_while_the_counts_change() -> None:
    bounded = GeometricMechanism(0.01, bounds=(-5, 1000))
    counts = np.zeros(20_000, np.int64)
    shared = np.zeros(20_000, np.int64)
    limits = np.iinfo(np.int64)
    stop = threading.Event()
    changes = 0

    def change() -> None:
        nonlocal changes
        while not stop.is_set():
            for extreme in (limits.min, limits.max, -1, 500):
                counts[::3] = extreme
                changes += 1

    def release(thread: int) -> int:
        released = 0
        end = time.monotonic() + 2
        while time.monotonic() < end:
            for noisy in (
                bounded.release(counts),
                bounded.release(counts[::-1]),
                bounded.release(counts, out=shared),
            ):
                assert -5 <= noisy.min() <= noisy.max() <= 1000
                released += 1
            folded = FOLDED.randomise(counts)
            assert -10 <= folded.min() <= folded.max() <= 100
        return released

    changing = threading.Thread(target=change)
    changing.start()
    try:
        with ThreadPoolExecutor(15) as pool:
            released = list(pool.map(release, range(15)))
    finally:
        stop.set()
        changing.join()
    assert min(released) >= 3
    assert changes > 4


@pytest.mark.parametrize("layout", ["contiguous", "in place", "strided", "the other byte order"])
def test_interrupts_at_random_moments_leave_all_or_nothing(layout: str) -> None:
    size = 4_000_000
    # Below the bounds, so that no noisy count is as they were.
    counts = np.full(size, -1)
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
            # With more threads, there would be one look for signals only, at the end.
            release = partial(NARROW.release, counts, out=out, threads=1)
            if alarmed(release, random.uniform(1e-6, seconds)):
                interrupted += 1
            else:
                seconds = min(seconds, 1.2 * (time.perf_counter() - start))
            assert np.count_nonzero(out == -1) in (0, size)
            if interrupted == 20:
                break
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert interrupted == 20


if __name__ == "__main__":
    SCENARIOS[sys.argv[1]]()

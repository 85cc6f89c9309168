"""Input, results and side effects of `release`; test_api_properties.py has all layouts."""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections import deque
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from geomdp import GeometricMechanism, _core
from geomdp._inputs.arrays import DTYPES
from geomdp.testing import release_not_private
from unsigned import accepting, limits

Counts: TypeAlias = NDArray[Any]

KEY = bytes(range(32))
SMALL = GeometricMechanism.from_scale(3.0)
# At this scale a count stays unchanged with probability 2**-80.
HUGE = GeometricMechanism.from_scale(2.0**80)

each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def example(dtype: str, shape: tuple[int, ...]) -> Counts:
    """Counts that noise of scale 3 keeps away from the limits of the dtype."""
    return np.random.default_rng(1).integers(60, 70, shape, dtype)


@each_dtype
def test_chunks_and_slices_have_different_noise(dtype: str) -> None:
    # Crosses chunks of 2048 and slices of 2**21, the last ones partial.
    counts = np.full(2**21 + 2048 + 5, 64, dtype)
    noise = release_not_private(GeometricMechanism.from_scale(2.0, limits(dtype)), counts, KEY)
    for start in (2048, 4096, 2**21):
        assert (noise[start : start + 300] != noise[:300]).any()
    for part in (noise[:2048], noise[2**21 :], noise[-5:]):
        assert (part != 64).any()
    assert noise.mean() == pytest.approx(64, abs=0.05)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_each_count_has_its_own_noise_for_all_lengths(threads: int) -> None:
    """All lengths near several chunks of 2048; tests/draw/test_vectors.py knows the noise."""
    wide, counts = GeometricMechanism(2**-20), np.arange(5 * 2048)
    noise = release_not_private(wide, np.zeros_like(counts), KEY, threads=1)
    for size in (2048 * k + d for k in range(5) for d in range(-17, 18) if 2048 * k + d >= 0):
        noisy = release_not_private(wide, counts[:size], KEY, threads=threads)
        np.testing.assert_array_equal(noisy - counts[:size], noise[:size])


@pytest.mark.parametrize("size", [0, 1, 17, 2048, 2049, 5000, 10**5 + 3, 2**17, 3 * 2**21 + 5])
def test_noise_is_independent_of_thread_count(size: int) -> None:
    # A thread takes up to 2**21 counts at once; from 2**17 on several threads are the default.
    counts = (np.arange(size) % 97).astype(np.int8)
    expected = release_not_private(SMALL, counts, KEY, threads=1)
    for threads in (None, 2, np.int8(3), 16, 10**30):
        noisy = release_not_private(SMALL, counts, KEY, threads=threads)
        np.testing.assert_array_equal(noisy, expected)


@pytest.mark.parametrize("threads", [0, -1, 2.0, True, "2"])
def test_invalid_thread_count_raises(threads: Any) -> None:
    error = ValueError if threads in (0, -1) else TypeError
    for counts in (5, np.int8(5), np.arange(3)):
        with pytest.raises(error, match="threads"):
            SMALL.release(counts, threads=threads)
    with pytest.raises(error, match="threads"):
        release_not_private(SMALL, [5], KEY, threads=threads)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes are Linux's")
def test_release_when_no_thread_can_start() -> None:
    # Runs as another user, as root has no such limit. The calling thread does the work.
    code = """
import os, resource, threading
import numpy as np
from geomdp import GeometricMechanism, _core
from geomdp.testing import release_not_private
mechanism, counts = GeometricMechanism(1.0), np.arange(100_000)
expected = release_not_private(mechanism, counts, bytes(32), threads=1)
if os.geteuid() == 0:
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
try:
    threading.Thread(target=int).start()
except RuntimeError:
    noisy = release_not_private(mechanism, counts, bytes(32), threads=4)
    assert (noisy == expected).all()
    print("no thread")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "no thread\n", done.stderr


def test_memory_maps(tmp_path: Path) -> None:
    counts = np.memmap(tmp_path / "counts", np.int32, "w+", shape=(50, 60))
    noisy = HUGE.release(counts)
    assert type(noisy) is np.ndarray
    assert (noisy != 0).all()
    assert not counts.any()
    assert HUGE.release(counts, out=counts) is counts
    assert counts.all()


@pytest.mark.parametrize("code", "bBhHiIlLqQpP")
def test_c_integer_types(code: str) -> None:
    counts = np.array([[64, 64, 64]], code)
    noisy = accepting(HUGE, code).release(counts)
    assert noisy.dtype == counts.dtype
    assert (noisy != counts).all()
    scalar = accepting(HUGE, code).release(counts[0, 0])
    assert type(scalar) is counts.dtype.type
    assert scalar != 64
    np.testing.assert_array_equal(
        release_not_private(accepting(SMALL, code), counts, KEY),
        release_not_private(
            accepting(SMALL, code), counts.astype(f"{counts.dtype.kind}{counts.itemsize}"), KEY
        ),
    )


def test_int_returns_int() -> None:
    for count in (0, -5, 2**63 - 1, -(2**63)):
        noisy = SMALL.release(count)
        assert type(noisy) is int
        assert -(2**63) <= noisy < 2**63
        assert abs(noisy - count) < 1000
    assert HUGE.release(0) != 0


def test_int_subclass_returns_int() -> None:
    class Size(IntEnum):
        SOME = 5

    assert type(HUGE.release(Size.SOME)) is int


@pytest.mark.parametrize(
    "counts",
    [
        *((5, 6, 7), range(5, 8), deque([5, 6, 7]), array("b", [5, 6, 7]), [2**63 - 2, 1 - 2**63]),
        *([np.int8(5), np.uint64(6)], ([5, 6], (7, 8)), [np.array([5, 6], np.uint8), [7, 8]]),
        *([[[5]], [[6]]], [], (), [[], []], range(0)),
    ],
    ids=repr,
)
def test_sequences_return_int64(counts: Any) -> None:
    expected = np.array([list(row) for row in counts] if counts and np.ndim(counts) > 1 else counts)
    noisy = HUGE.release(counts)
    assert type(noisy) is np.ndarray
    assert noisy.dtype == np.int64
    assert noisy.shape == expected.shape
    assert (noisy != expected).all()
    exact = GeometricMechanism.from_scale(0).release(counts)
    assert exact.dtype == np.int64
    np.testing.assert_array_equal(exact, expected)


# out


def test_out_for_sequences_and_scalars() -> None:
    out = np.zeros(3, np.int64)
    assert HUGE.release([5, 6, 7], out=out) is out
    assert (out != [5, 6, 7]).all()
    single = np.zeros((), np.int64)
    assert HUGE.release(5, out=single) is single
    assert single != 5
    small = np.zeros((), np.uint8)
    assert accepting(HUGE, np.uint8).release(np.uint8(5), out=small) is small
    assert small != 5


def test_fortran_order_is_kept() -> None:
    noisy = SMALL.release(np.asfortranarray(example("int64", (4, 5))))
    assert noisy.flags.f_contiguous


# The key


def test_noise_depends_on_every_key_bit() -> None:
    counts = np.zeros(100, np.int64)
    noisy = release_not_private(SMALL, counts, KEY)
    np.testing.assert_array_equal(release_not_private(SMALL, counts, bytes(KEY)), noisy)
    for i, bit in itertools.product(range(32), (1, 128)):
        other = bytearray(KEY)
        other[i] ^= bit
        assert (release_not_private(SMALL, counts, bytes(other)) != noisy).any()


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), bytearray(32), "0" * 32, 0, None])
def test_invalid_key_raises(key: Any) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        release_not_private(SMALL, [1], key)


def test_global_seeds_have_no_effect() -> None:
    mechanism = GeometricMechanism.from_scale(2.0**40)
    seen = set()
    for _ in range(3):
        random.seed(1)
        np.random.seed(1)
        for counts in (0, np.int64(0), [0]):
            seen.add(int(np.squeeze(mechanism.release(counts))))
    assert len(seen) == 9


def test_release_leaves_global_generators_unchanged() -> None:
    random.seed(1)
    np.random.seed(1)
    states = random.getstate(), repr(np.random.get_state())
    SMALL.release([1, 2, 3])
    assert states == (random.getstate(), repr(np.random.get_state()))


# Interrupts and threads

LONG = 16_000_000
# Some noise is zero with probability 2**-37.
WIDE = GeometricMechanism.from_scale(2.0**60)

with_alarms = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")


@contextlib.contextmanager
def interrupted(at: int) -> Iterator[None]:
    """Raise KeyboardInterrupt at the given alarm; alarms come every 10 ms."""
    handled = 0

    def handle(*_: object) -> None:
        nonlocal handled
        handled += 1
        if handled == at:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@with_alarms
def test_ctrl_c_interrupts_a_long_release() -> None:
    counts = np.zeros(LONG, np.int64)
    # Without signal checks during the call the alarms would be handled as one.
    with pytest.raises(KeyboardInterrupt), interrupted(at=3):
        WIDE.release(counts)
    assert not counts.any()


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("calls", [1, 2])
def test_a_release_that_ends_early_leaves_no_noise(in_place: bool, calls: int) -> None:
    left = calls

    def end(_: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt

    counts = np.full(LONG, 7)
    out = counts if in_place else np.full(LONG, 7)
    with pytest.raises(KeyboardInterrupt):
        # Noisy counts are neither 0 nor 7.
        GeometricMechanism(1, bounds=(8, 9)).release(counts, out=out, threads=1, progress=end)
    done = np.count_nonzero(out == 0)
    assert 0 < done < LONG
    assert not out[:done].any()
    assert (out[done:] == 7).all()


def test_progress_is_that_of_all_counts() -> None:
    done: list[int] = []
    # Long enough for several reports, and no multiple of them.
    counts = np.zeros(LONG - 3, np.int64)
    WIDE.release(counts, progress=done.append, threads=1)
    assert len(done) > 1
    assert sum(done) == counts.size
    done.clear()
    GeometricMechanism(1).top(counts, 2, progress=done.append, threads=1)
    assert sum(done) == 2 * counts.size


@pytest.mark.parametrize("wrong", [None, 1, "yes", []])
def test_progress_is_a_function_or_a_bool(wrong: Any) -> None:
    for call in (SMALL.release, SMALL.top):
        with pytest.raises(TypeError, match=r"progress .*: give True, False, or a function"):
            call([1], progress=wrong)


def test_progress_may_be_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []

    @contextlib.contextmanager
    def bar(**given: Any) -> Iterator[Any]:
        done.append(given["total"])
        yield SimpleNamespace(update=done.append)

    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=bar))
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace())
    GeometricMechanism(1).release(np.zeros(1000, np.int64), progress=True)
    assert done == [1000, 1000]
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ModuleNotFoundError) as caught:
        GeometricMechanism(1).release([1], progress=True)
    assert caught.value.__notes__ == ["Needed here: pip install 'tqdm'"]


def test_release_frees_the_gil() -> None:
    ticks = 0
    ready, stop = threading.Event(), threading.Event()

    def tick() -> None:
        nonlocal ticks
        ready.set()
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)

    counts = np.zeros(LONG, np.int64)
    thread = threading.Thread(target=tick)
    interval = sys.getswitchinterval()
    # Now a thread runs only when another one releases the GIL itself.
    sys.setswitchinterval(1000)
    try:
        thread.start()
        ready.wait()
        before = ticks
        WIDE.release(counts, out=counts)
        after = ticks
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert after - before >= 3


@pytest.mark.parametrize("part", [slice(None), slice(5, None)])
def test_counts_are_not_resized_while_they_are_read(part: slice) -> None:
    """numpy's `resize(refcheck=False)` disregards exported buffers; the process would crash."""
    counts = np.arange(30)
    ids = _core.Ids(counts[part].size)
    # The column holds the memory until it is gone, as a release does.
    ids.add_integers(counts[part], None, True)
    with pytest.raises(ValueError, match="cannot resize"):
        counts.resize(10**7, refcheck=False)
    del ids
    counts.resize(10, refcheck=False)
    assert counts.tolist() == list(range(10))


def test_counts_are_not_resized_while_they_are_released() -> None:
    counts, out, refused = np.zeros(10**7, np.int64), np.zeros(10**7 - 5, np.int64), 0
    given = {"out": out, "threads": 1}
    work = threading.Thread(target=HUGE.release, args=(counts[5:],), kwargs=given)
    work.start()
    while work.is_alive() and out[0] == 0:
        time.sleep(1e-3)
    while work.is_alive() and out[-1] == 0:
        with contextlib.suppress(ValueError):
            counts.resize(10**8, refcheck=False)
            assert out[-1] != 0
            break
        refused += 1
    work.join()
    assert refused > 0
    assert np.count_nonzero(out) == out.size

"""Many threads on shared arrays and mechanisms, and exceptions from other threads."""

import _thread
import ctypes
import itertools
import random
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from geomdp import GeometricMechanism, _core, sample_bernoulli, sample_geometric
from geomdp._inputs.arrays import DTYPES
from geomdp.testing import release_not_private

THREADS = 16
# Noise of 58 bits.
WIDE = GeometricMechanism.from_scale(2.0**57)
BOUNDED = GeometricMechanism(0.5, bounds=(10, 100))
KEYS = [bytes([n]) * 32 for n in range(THREADS)]

Array = NDArray[Any]
T = TypeVar("T")


def rotated(thread: int) -> list[str]:
    """Return the dtypes, starting at a different one for each thread."""
    names = [*DTYPES]
    return names[thread % 8 :] + names[: thread % 8]


def together(work: Callable[[int], T]) -> list[T]:
    """Call it from all threads at once, with the number of each thread."""
    start = threading.Barrier(THREADS)

    def run(thread: int) -> T:
        start.wait()
        return work(thread)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


@pytest.fixture(autouse=True)
def _frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


# Changing inputs


@contextmanager
def changing(arrays: list[Array], most: int) -> Iterator[None]:
    """Let a thread keep changing arrays, and check that nobody else does."""
    stop = threading.Event()
    changes = 0
    wrong: list[Array] = []

    def change() -> None:
        nonlocal changes
        for value in itertools.cycle(range(most + 1)):
            for array in arrays:
                array[...] = value
                array[::3] = most - value
            changes += 1
            # Let the others run.
            time.sleep(1e-4)
            for array in arrays:
                expected = np.full_like(array, value)
                expected[::3] = most - value
                if not np.array_equal(array, expected):
                    wrong.append(array.copy())
            if stop.is_set():
                return

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert changes > 1
    assert not wrong


MOST = 7


def test_noise_is_fresh_while_the_counts_change() -> None:
    counts = np.zeros(2 * 3000, np.int64)
    views = [counts[:3000], counts[::2], counts[::-2], counts.reshape(2, -1)[:, :1500]]

    def work(_: int) -> list[Array]:
        return [WIDE.release(view) for _ in range(2) for view in views]

    with changing([counts], MOST):
        parts = together(work)
    # Draws of one key would differ by at most the counts. Two of n fresh draws do with probability
    # below n**2 / 2 * (4 * 7 + 1) * 2**-58: for n = 64,000, 3e-7.
    noises = np.abs([part.ravel()[:500] for parts_of_one in parts for part in parts_of_one])
    assert noises.size == THREADS * 8 * 500
    assert np.diff(np.sort(noises, axis=None)).min() > 2 * MOST


def test_bounds_hold_while_the_counts_change() -> None:
    arrays = [np.zeros(1000, dtype) for dtype in DTYPES]

    def work(thread: int) -> int:
        released = 0
        for array in arrays[thread % 8 :] + arrays[: thread % 8]:
            for counts in (array, array[::-3], array.astype(array.dtype.newbyteorder())):
                noisy = BOUNDED.release(counts)
                assert noisy.dtype == counts.dtype
                assert 10 <= noisy.min() <= noisy.max() <= 100
                released += 1
        return released

    with changing(arrays, 127):
        assert together(work) == [24] * THREADS


# Plans made at once


def test_concurrent_plans_match_single_plans() -> None:
    # Without bounds, counts are signed.
    dtypes = [dtype for dtype in DTYPES if np.iinfo(dtype).min]
    key, counts = KEYS[7], {dtype: np.full(50, 3, dtype) for dtype in dtypes}

    def plan(mechanism: GeometricMechanism, dtype: str) -> Any:
        noisy = release_not_private(mechanism, counts[dtype], key)
        return noisy.tolist(), mechanism.certificate(dtype)

    def plans(mechanism: GeometricMechanism, thread: int) -> Any:
        return {dtype: plan(mechanism, dtype) for dtype in rotated(thread) if dtype in dtypes}

    def plans_of_own(epsilon: float, sensitivity: int, thread: int) -> Any:
        return plans(GeometricMechanism(epsilon, sensitivity), thread)

    for rate in (0.001, 0.1, 0.5, 1.0, 3.0, 700.0):
        alone = {dtype: plan(GeometricMechanism(rate), dtype) for dtype in dtypes}
        # The same rate but unequal, so that plans are made anew.
        shared = GeometricMechanism(rate * 2**20, 2**20)
        assert together(partial(plans, shared)) == [alone] * THREADS
        assert together(partial(plans_of_own, rate * 2**21, 2**21)) == [alone] * THREADS


def test_concurrent_errors_are_equal() -> None:
    for power in range(100, 110):
        shared = GeometricMechanism.from_scale(2.0**power)

        def work(thread: int, shared: GeometricMechanism = shared) -> str:
            with pytest.raises(ValueError, match="at most") as refusal:
                shared.release(thread)
            assert -128 <= shared.release(np.int8(5)) <= 127
            return str(refusal.value)

        assert len(set(together(work))) == 1


# The tape of a key from the operating system


def bits() -> Array:
    """Return each 64 bits in a row of an array as a number."""
    found = sample_bernoulli(0.5, MANY + 63)
    rows = np.lib.stride_tricks.sliding_window_view(found, 64)
    return np.packbits(rows, axis=1).view(np.uint64).ravel()


def folded() -> Array:
    out = np.zeros(MANY, np.int64)
    core = _core.Folded((1, 2**56), (-(2**62), 2**62))
    core.release_into(out, out, None, 2)
    return out


#: Enough for several threads.
MANY = 2**17 + 5


@pytest.mark.parametrize(
    "draw",
    [
        lambda: WIDE.release(np.zeros(MANY, np.int64)),
        folded,
        lambda: sample_geometric(2.0**-57, MANY),
        bits,
    ],
    ids=["a release", "a folded release", "numbers of trials", "bits"],
)
def test_no_two_chunks_read_the_same_words(draw: Callable[[], Array]) -> None:
    # Two of n draws are equal with probability below n**2 / 2 * 2**-56: 2e-7.
    noisy = draw()
    assert len(np.unique(noisy)) == len(noisy)


# One output for all


SIZE = 5000


def known(thread: int) -> Array:
    """Return the noisy zeros of a thread's key."""
    return release_not_private(WIDE, np.zeros(SIZE, np.int64), KEYS[thread])


@pytest.mark.parametrize(
    "slices",
    [
        lambda out: out.reshape(THREADS, SIZE),
        lambda out: out.reshape(SIZE, THREADS).T,
        lambda out: out.reshape(THREADS, SIZE)[:, ::-1],
        lambda out: out.reshape(THREADS, SIZE).view(np.dtype(np.int64).newbyteorder()),
    ],
    ids=["rows", "columns", "backwards", "the other byte order"],
)
def test_slices_of_one_output_are_independent(slices: Callable[[Array], Array]) -> None:
    # The second row must not be written.
    memory = np.full((2, THREADS * SIZE), 77)
    out = slices(memory[0])
    counts = np.zeros_like(out)
    expected = [known(thread) for thread in range(THREADS)]
    for _ in range(5):
        memory[0] = 77
        together(lambda n: release_not_private(WIDE, counts[n], KEYS[n], out=out[n]))
        assert np.array_equal(out, expected)
        assert (memory[1] == 77).all()
        assert not counts.any()


def test_shared_output_has_each_count_from_one_thread() -> None:
    counts, out = np.zeros(SIZE, np.int64), np.zeros(SIZE, np.int64)
    expected = np.array([known(thread) for thread in range(THREADS)])

    def work(target: Array, thread: int) -> None:
        release_not_private(WIDE, counts, KEYS[thread], out=target)

    for target in (out, out[::-1]):
        for _ in range(5):
            together(partial(work, target))
            assert (target == expected).any(axis=0).all()
    assert not counts.any()


def test_concurrent_in_place_releases() -> None:
    counts = np.full(SIZE, -1)
    together(lambda _: [BOUNDED.release(counts, out=counts) for _ in range(5)])
    assert 10 <= counts.min() <= counts.max() <= 100


# Asynchronous exceptions; tests/randomness/test_entropy.py has alarms


class Stopped(BaseException):
    pass


def stop(thread: threading.Thread) -> bool:
    """Raise an exception in another thread; return whether the thread existed."""
    identity, exception = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Stopped)
    return bool(ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, exception))


@pytest.mark.parametrize("layout", ["contiguous", "strided", "the other byte order"])
def test_stopped_thread_writes_all_or_nothing(layout: str) -> None:
    size = 300_000
    memory: Array = np.zeros((THREADS, 2 * size), np.int64)
    memory = memory[:, ::2] if layout == "strided" else memory[:, :size]
    if layout == "the other byte order":
        memory = memory.view(memory.dtype.newbyteorder())
    counts = np.zeros(size, memory.dtype)
    done = [0] * THREADS

    def work(thread: int) -> None:
        out = memory[thread]
        try:
            while True:
                out[:] = -1
                BOUNDED.release(counts, out=out)
                done[thread] += 1
        except Stopped:
            pass

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    while not all(done) and all(thread.is_alive() for thread in threads):
        time.sleep(0.01)
    stopped = 0
    for thread in threads:
        time.sleep(random.uniform(0, 0.02))
        stopped += stop(thread)
    for thread in threads:
        thread.join()
    assert stopped == THREADS
    assert {np.count_nonzero(out == -1) for out in memory} <= {0, counts.size}
    assert not counts.any()


def test_interrupt_does_not_affect_other_threads() -> None:
    # More than one thread draws between checks for signals.
    size = 3 * 2**20
    counts, out = np.zeros(size, np.int64), np.zeros(size, np.int64)
    expected = [known(thread) for thread in range(THREADS)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupted = 0
    over = threading.Event()

    def interrupt() -> None:
        while not out[1000] and not over.is_set():
            time.sleep(0)
        if not over.is_set():
            _thread.interrupt_main()

    def work(thread: int) -> list[Array]:
        zeros = np.zeros(SIZE, np.int64)
        found: list[Array] = []
        while not (found and over.is_set()):
            found.append(release_not_private(WIDE, zeros, KEYS[thread]))
        return found

    with ThreadPoolExecutor(THREADS) as pool:
        others = [pool.submit(work, thread) for thread in range(THREADS)]
        try:
            for _ in range(3):
                out[:] = 0
                interrupting = threading.Thread(target=interrupt)
                try:
                    interrupting.start()
                    BOUNDED.release(counts, out=out, threads=1)
                    interrupting.join()
                except KeyboardInterrupt:
                    interrupted += 1
                assert np.count_nonzero(out) in (0, size)
        finally:
            over.set()
            signal.signal(signal.SIGINT, before)
    for found, other in zip(expected, others, strict=True):
        assert all(np.array_equal(noisy, found) for noisy in other.result())
    assert interrupted == 3
    # Releases still work afterwards.
    assert len({abs(WIDE.release(0)) for _ in range(100)}) == 100
    assert len(sample_geometric(0.5, 100)) == len(sample_bernoulli(0.5, 100)) == 100


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a lock"
)
def test_import_keeps_the_gil_disabled() -> None:
    code = "import numpy, sys, geomdp.compat.diffprivlib; sys.exit(sys._is_gil_enabled())"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)

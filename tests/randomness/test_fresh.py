"""Calls, threads and processes never reuse randomness."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import numpy as np
import pytest

from geomdp import GeometricMechanism, sample_geometric

# Noise of 58 bits: a repeat means reused randomness. Of half a million fresh draws, the most
# compared here, two are equal with probability below 1e-6.
MECHANISM = GeometricMechanism.from_scale(2.0**57)
SIZE = 64
SECONDS = 60

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
# These tests combine threads and forks on purpose.
forks_with_threads = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


def draw(mechanism: GeometricMechanism = MECHANISM) -> list[int]:
    """Return noise of several kinds of calls."""
    zeros = np.zeros(SIZE, np.int64)
    whole = mechanism.release(zeros).tolist()
    strided = mechanism.release(np.zeros(2 * SIZE, np.int64)[::2]).tolist()
    in_place = mechanism.release(zeros, out=zeros).tolist()
    scalars = [mechanism.release(0) for _ in range(4)]
    return [*whole, *strided, *in_place, *scalars, int(mechanism.release(np.int64(0)))]


NOISES = 3 * SIZE + 5


def check_all_distinct(draws: list[list[int]]) -> None:
    noises = [noise for part in draws for noise in part]
    assert len(noises) == len(draws) * NOISES
    # Reused randomness may give the opposite sign.
    assert len({abs(noise) for noise in noises}) == len(noises)


def test_calls_are_fresh() -> None:
    check_all_distinct([draw() for _ in range(100)])


def test_long_calls_are_fresh() -> None:
    # Longer than the slices between checks for signals.
    long = [MECHANISM.release(np.zeros(2**21 + 2**17, np.int64), threads=8) for _ in range(2)]
    noises = np.abs([part for noise in long for part in (noise[: 2**17], noise[2**21 :])])
    assert len(np.unique(noises)) == noises.size == 2**19


def test_samples_are_fresh() -> None:
    draws = np.concatenate([sample_geometric(2.0**-57, 1000) for _ in range(10)])
    assert len(np.unique(draws)) == len(draws)


def test_threads_are_fresh() -> None:
    threads = 16
    start = threading.Barrier(threads)

    def work(_: int) -> list[list[int]]:
        start.wait()
        return [draw() for _ in range(20)]

    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(work, range(threads)))
    check_all_distinct([part for parts_of_one in parts for part in parts_of_one])


def test_threads_with_long_calls_are_fresh() -> None:
    threads = 16
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(MECHANISM.release, [np.zeros(20_000, np.int64)] * threads))
    noises = np.abs(np.concatenate(parts))
    assert len(np.unique(noises)) == len(noises)


def forked(work: Callable[[], list[int]]) -> list[int]:
    """Return the result of work in a forked process, within a minute."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(SECONDS)
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(work(), pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        result = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0
    noises: list[int] = pickle.loads(result)
    return noises


@needs_fork
@forks_with_threads
def test_forks_of_forks_are_fresh() -> None:
    def work() -> list[int]:
        return [*draw(), *forked(draw), *forked(draw), *draw()]

    noises = [*draw(), *work(), *forked(work), *forked(work), *draw()]
    check_all_distinct([noises[i : i + NOISES] for i in range(0, len(noises), NOISES)])


@contextlib.contextmanager
def releases_in_another_thread(mechanism: GeometricMechanism) -> Iterator[list[int]]:
    noises: list[int] = []
    inside, stop = threading.Event(), threading.Event()

    def work() -> None:
        while not stop.is_set():
            inside.set()
            noises.extend(mechanism.release(np.zeros(200_000, np.int64))[:NOISES].tolist())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        inside.wait()
        yield noises
    finally:
        stop.set()
        thread.join()


@needs_fork
@forks_with_threads
def test_forks_while_another_thread_releases_are_fresh() -> None:
    # The first fork may come while its plan is made.
    mechanism = GeometricMechanism.from_scale(2.0**57 + 2.0**10)
    with releases_in_another_thread(mechanism) as noises:
        draws = [forked(lambda: draw(mechanism)) for _ in range(20)]
        draws.append(draw(mechanism))
    assert len(noises) >= NOISES
    draws += [noises[i : i + NOISES] for i in range(0, len(noises), NOISES)]
    check_all_distinct(draws)


def send(pipe: Connection, mechanism: GeometricMechanism) -> None:
    pipe.send([draw(), draw(mechanism), draw()])
    pipe.close()


# Joblib, if another test imports it, adds start methods of its own.
@pytest.mark.parametrize(
    "method", sorted({"fork", "forkserver", "spawn"} & {*multiprocessing.get_all_start_methods()})
)
@forks_with_threads
def test_processes_are_fresh(method: str) -> None:
    context = multiprocessing.get_context(method)
    draws = [draw()]
    started = []
    for _ in range(4):
        reading, writing = context.Pipe(duplex=False)
        process = context.Process(target=send, args=(writing, MECHANISM))
        process.start()
        writing.close()
        started.append((process, reading))
        draws.append(draw())
    for process, reading in started:
        assert reading.poll(SECONDS)
        draws += reading.recv()
        reading.close()
        process.join(SECONDS)
        assert process.exitcode == 0
        process.close()
    check_all_distinct(draws)

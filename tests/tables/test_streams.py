"""Streams: the nodes that make up spans, coverage, crashes, and what files and objects hold."""

import itertools
import math
import os
import pickle
import threading
import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from draw_pictures import stream_table
from numpy.typing import NDArray

import geomdp
from exact import stated
from geomdp import GeometricMechanism, accuracy
from geomdp._numerics import count_moments
from geomdp.accounting import Budget, _journal
from geomdp.tables import Design
from geomdp.tables._math import span_trees
from geomdp.tables.streams import Stream

Counts = NDArray[np.int64]
#: No sum of these is a sum of others.
EXACT = 10 ** np.arange(9)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.jsonl"


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GeometricMechanism, "release", lambda self, counts: counts.copy())


def filled(path: Path, counts: Any, **parameters: Any) -> Stream:
    stream = Stream.open(path, horizon=len(counts), **parameters)
    for step in range(len(counts)):
        stream.release(step, counts[: step + 1])
    return stream


def spans(steps: int) -> Iterator[tuple[int, int]]:
    return itertools.combinations(range(steps + 1), 2)


def distances(start: int, now: int, arity: int, levels: int) -> dict[int, int]:
    """Return the fewest nodes from a step to each other, by breadth-first search."""
    edges = defaultdict(list)
    for size in (arity**level for level in range(levels)):
        for first in range(0, now - size + 1, size):
            edges[first].append(first + size)
            edges[first + size].append(first)
    found, waiting = {start: 0}, deque([start])
    while waiting:
        here = waiting.popleft()
        for there in edges[here]:
            if there not in found:
                found[there] = found[here] + 1
                waiting.append(there)
    return found


@pytest.mark.parametrize("arity", [2, 3, 4, 5, 7, 30])
@pytest.mark.parametrize("horizon", [1, 2, 9, 27])
def test_spans_take_the_fewest_nodes(horizon: int, arity: int) -> None:
    totals = list(span_trees.total_nodes(horizon, arity))
    assert len(totals) == span_trees.height(horizon, arity)
    for levels, total in enumerate(totals, 1):
        on_the_day = 0
        for now in range(1, horizon + 1):
            for start in range(now):
                least = distances(start, now, arity, levels)
                on_the_day += least[now]
                for stop in range(start + 1, now + 1):
                    runs = span_trees.path(start, stop, now, arity, levels)
                    assert span_trees.nodes(runs, arity) == least[stop]
                    assert [start, *(to for *_, to in runs)] == [*(of for _, of, _ in runs), stop]
                    for level, of, to in runs:
                        assert of % arity**level == to % arity**level == 0
                        assert max(of, to) <= now
        assert on_the_day == total


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(10)])
@pytest.mark.parametrize("horizon", [1, 7, 20, 100, 365, 1000])
def test_arity_has_the_least_mean_variance(horizon: int, epsilon: Fraction) -> None:
    """Of all arities, which by the test above is that of the fewest nodes of each span."""
    found = {
        (arity, levels): total * count_moments.unbounded(epsilon / levels).variance
        for arity in range(2, horizon + 2)
        for levels, total in enumerate(span_trees.total_nodes(horizon, arity), 1)
    }
    assert found[span_trees.best(horizon, epsilon)] == min(found.values())


@pytest.mark.parametrize("arity", [None, 2, 3, 9])
@pytest.mark.parametrize("shape", [(), (3,), (2, 1)])
@pytest.mark.usefixtures("no_noise")
def test_spans_are_sums_of_their_steps(path: Path, shape: tuple[int, ...], arity: Any) -> None:
    counts = np.multiply.outer(EXACT, np.arange(1, math.prod(shape) + 1).reshape(shape))
    stream = Stream.open(path, horizon=9, arity=arity)
    for step in range(9):
        published = stream.release(step, counts[: step + 1])
        assert stream.released == step + 1
        assert (step, step + 1) in published
        for (start, stop), noisy in published.items():
            assert np.array_equal(noisy, counts[start:stop].sum(axis=0))
        for start, stop in spans(step + 1):
            assert np.array_equal(stream.total(start, stop), counts[start:stop].sum(axis=0))


@pytest.mark.usefixtures("no_noise")
def test_counts_come_in_many_forms(path: Path, tmp_path: Path) -> None:
    asked = []

    def function(start: int, stop: int) -> int:
        asked.append((start, stop))
        return int(EXACT[start:stop].sum())

    days = pd.DataFrame({"day": np.repeat(range(4), EXACT[:4])})
    forms: dict[str, Callable[[int], Any]] = {
        "list": lambda step: EXACT[: step + 1].tolist(),
        "uint8": lambda step: np.array([1, 10, 100, 200], np.uint8)[: step + 1],
        "big-endian": lambda step: EXACT[: step + 1].astype(">u8"),
        "function": lambda step: function,
        "Table": lambda step: Design({"day": range(step + 1)}).count(days),
    }
    for name, form in forms.items():
        stream = Stream.open(tmp_path / name, horizon=4, arity=2)
        for step in range(4):
            stream.release(step, form(step))
        assert stream.total(0, 4) == (311 if name == "uint8" else 1111)
    assert asked == [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4), (0, 4)]
    cells = Stream.open(path, horizon=1)
    table = Design({"day": [0], "town": ["a", "b"]}).count(
        pd.DataFrame({"day": [0, 0], "town": ["b", "b"]})
    )
    assert cells.release(0, table)[0, 1].tolist() == [0, 2]


@pytest.mark.parametrize(
    "design",
    [
        {"individual": "who", "l0": 1},
        {"margins": -1},
        {"neighbours": "change"},
        {"l0": 3},
        {"linf": 2},
    ],
)
def test_tables_of_more_than_a_record_are_refused(path: Path, design: dict[str, Any]) -> None:
    """Also those of one step, which has a single cell: the sensitivity of such a table is 1."""
    table = Design({"day": [0]}, **design).count(pd.DataFrame({"day": [0], "who": [0]}))
    with pytest.raises(ValueError, match="counts_so_far of this design are not accepted"):
        Stream.open(path).release(0, table)


#: The rate of a node, the greatest noise that is enumerated, and the rest of the probability.
RATE, MOST = 2, 5
REST = 2 * math.exp(-RATE * (MOST + 1)) / (1 + math.exp(-RATE))


@pytest.mark.parametrize(
    ("horizon", "arity", "nodes"), [(3, 2, 4), (2, 2, 3), (3, 5, 3), (4, 4, 5)]
)
def test_coverage_of_all_spans_by_enumeration(
    path: Path, monkeypatch: pytest.MonkeyPatch, horizon: int, arity: int, nodes: int
) -> None:
    """Each cell of a stream has one outcome of the noises of all nodes."""
    drawn = np.indices((2 * MOST + 1,) * nodes).reshape(nodes, -1) - MOST
    a = math.exp(-RATE)
    weights = np.prod((1 - a) / (1 + a) * a ** np.abs(drawn), axis=0)
    rest = 1 - (1 - REST) ** nodes
    assert weights.sum() == pytest.approx(1 - rest, abs=1e-12)
    left = iter(drawn)
    monkeypatch.setattr(
        GeometricMechanism, "release", lambda self, counts: counts + [next(left) for _ in counts]
    )
    levels = span_trees.height(horizon, arity)
    stream = Stream.open(path, horizon=horizon, arity=arity, epsilon=RATE * levels)
    assert stream.mechanism.rate == RATE
    counts = np.multiply.outer(EXACT[:horizon], np.ones(drawn.shape[1], np.int64))
    checked = 0
    for step in range(horizon):
        stream.release(step, counts[: step + 1])
        for start, stop in spans(step + 1):
            exact = counts[start:stop].sum(axis=0)
            errors = np.abs(stream.total(start, stop) - exact)
            for alpha in (0.3, 0.05, 0.01):
                lower, upper = stream.interval(start, stop, alpha)
                covers = (lower <= exact) & (exact <= upper)
                reach = int((upper - lower)[0]) // 2
                assert np.array_equal(covers, errors <= reach)
                assert weights[covers].sum() + rest > 1 - alpha > weights[errors < reach].sum()
                assert weights[covers].sum() >= 1 - alpha - rest
                checked += 1
    assert next(left, None) is None
    assert checked >= 9


def test_simultaneous_intervals_divide_alpha(path: Path) -> None:
    stream = filled(path, [[5, 6]] * 3, arity=2)
    # 4 starts and stops of three steps, once, and those of fewer steps twice and three times.
    asked = [(span, now) for now in (1, 2, 3) for span in spans(now)]
    lower, upper = stream.interval(0, 3, 0.05, simultaneous=True)
    reach = accuracy.sum_accuracy(stream.mechanism, 2, stated(0.05) / (len(asked) * 2))
    assert ((upper - lower) == 2 * reach).all()


def test_a_published_step_is_final(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = filled(path, EXACT[:4], arity=2)
    file = path.read_bytes()
    published = {step: stream.release(step, None) for step in range(4)}
    assert published[3].keys() == {(3, 4), (2, 4), (0, 4)}

    def never(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(GeometricMechanism, "release", never)
    for counts in (EXACT[:4], EXACT[4:8], [], "no counts", never):
        for step in range(4):
            for each in (stream, Stream.open(path, horizon=4, arity=2), geomdp.read(path)):
                assert each.release(step, counts) == published[step]
    assert path.read_bytes() == file


@pytest.mark.parametrize(
    ("step", "counts", "message"),
    [
        (-1, [0] * 3, "step = -1 is not accepted"),
        (3, [0] * 4, "step = 3 is not accepted: give at most 2, the next step"),
        (9, [0] * 10, "step = 9 is not accepted: give less than the horizon, 4"),
        (2.0, [0] * 3, "step = 2.0 has type float"),
        (2, [0] * 2, r"counts_so_far of shape \(2,\) is .* each step, 3 in all"),
        (2, [[0]] * 3, r"counts_so_far with steps of shape \(1,\) is .* shape \(\)"),
        (2, 7, r"counts_so_far of shape \(\) is not accepted"),
        (2, [0.5] * 3, "counts_so_far with a float are not accepted"),
        (2, lambda *_: [7], r"counts_so_far with steps of shape \(1,\)"),
        (2, None, "counts_so_far of type NoneType"),
    ],
)
def test_bad_steps_and_counts_are_refused_before_a_draw(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: Any, counts: Any, message: str
) -> None:
    stream = Stream.open(path, horizon=4, arity=2)
    for each in range(2):
        stream.release(each, [0] * (each + 1))
    file = path.read_bytes()
    monkeypatch.setattr(GeometricMechanism, "release", None)
    with pytest.raises((TypeError, ValueError), match=message):
        stream.release(step, counts)
    assert path.read_bytes() == file


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"horizon": 0}, "horizon = 0"),
        ({"horizon": 10**6}, "horizon = 1000000 is .* at most 100000"),
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": math.inf}, "epsilon = inf"),
        ({"epsilon": Fraction(1, 2**200)}, "scale"),
        ({"arity": 1}, "arity = 1"),
        ({"l0": 0}, "l0 = 0"),
        ({"linf": 0.5}, "linf = 0.5"),
    ],
)
def test_bad_parameters_make_no_file(path: Path, parameters: dict[str, Any], message: str) -> None:
    budget = Budget(10**3)
    with pytest.raises((TypeError, ValueError), match=message):
        Stream.open(path, budget=budget, **parameters)
    with pytest.raises(TypeError, match=r"^path = 7 has type int: give a str or a path"):
        Stream.open(7, budget=budget)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"missing'$"):
        Stream.open(path / "missing" / "b.jsonl", budget=budget)
    assert not budget.history
    assert not list(path.parent.iterdir())


def test_bad_spans_raise(path: Path) -> None:
    stream = Stream.open(path, horizon=4)
    with pytest.raises(ValueError, match="stop = 1 is not accepted: give at most 0, the number of"):
        stream.total(0, 1)
    stream = filled(path, [1, 2, 3, 4])
    for start, stop, name in ((-1, 2, "start"), (2, 2, "start"), (3, 2, "start"), (0, 5, "stop")):
        for method in (stream.total, lambda *span: stream.interval(*span, 0.05), stream.table):
            with pytest.raises(ValueError, match=f"^{name} = "):
                method(start, stop)
    with pytest.raises(ValueError, match="alpha = 0"):
        stream.interval(0, 1, 0)
    with pytest.raises(ValueError, match="cells are the levels of 2 counts, and a step has 1: "):
        stream.table(cells={"town": ["a", "b"]})
    with pytest.raises(ValueError, match="cells with a column 'step' are not accepted"):
        stream.table(cells={"step": [1]})
    with pytest.raises(TypeError, match=r"call Stream\.open"):
        Stream(path)


def test_other_parameters_for_a_file_raise(path: Path) -> None:
    Stream.open(path, horizon=30, epsilon="0.1", arity=3)
    assert Stream.open(path, 30, "0.1").height == geomdp.read(path).height == 4
    for parameters, message in (
        ({"horizon": 31}, "horizon = 31 is not accepted: give that of the stream a.jsonl, 30"),
        ({"epsilon": 0.2}, r"epsilon = 0\.2 is not accepted: .* 0\.1"),
        ({"arity": 4}, "arity = 4 is not accepted: give that of the stream a.jsonl, 3"),
    ):
        with pytest.raises(ValueError, match=message):
            Stream.open(path, **{"horizon": 30, "epsilon": "0.1", **parameters})
    with pytest.raises(ValueError, match=r"a\.jsonl is no ledger of geomdp"):
        Budget.open(path, epsilon=1)
    with pytest.raises(FileNotFoundError):
        geomdp.read(path.with_name("b.jsonl"))


def test_a_budget_books_a_stream_once(path: Path) -> None:
    budget = Budget(epsilon=30)
    for _ in range(2):
        stream = Stream.open(path, epsilon="0.5", budget=budget, l0=20, linf=2)
        stream.release(0, [3])
    assert budget.spent == [("a.jsonl", 20)]
    with pytest.raises(ValueError, match="this release costs 20, but only 10 of 30 is left"):
        Stream.open(path.with_name("b.jsonl"), epsilon="0.5", budget=budget, l0=20, linf=2)
    assert os.listdir(path.parent) == ["a.jsonl"]


def test_a_stream_whose_file_is_lost_is_not_paid_for_again_unasked(path: Path) -> None:
    budget = Budget(epsilon=3)
    Stream.open(path, budget=budget)
    path.unlink()
    with pytest.raises(ValueError, match=r"^label = 'a\.jsonl' is not accepted: a release with it"):
        Stream.open(path, budget=budget)
    assert not list(path.parent.iterdir())
    Stream.open(path, budget=budget, label="a.jsonl, again")
    assert budget.spent == [("a.jsonl", 1), ("a.jsonl, again", 1)]


@pytest.mark.parametrize("epsilon", [1, 100])
def test_of_two_jobs_that_open_a_new_stream_one_pays(path: Path, epsilon: int) -> None:
    """Neither is refused, whether the label is taken or the budget has no rest."""
    together = threading.Barrier(2)

    class Together(Budget):
        __slots__ = ()

        def book(self, *arguments: Any, **more: Any) -> None:
            together.wait()
            super().book(*arguments, **more)

    budget, opened = Together(epsilon=epsilon), list[Stream]()
    jobs = [
        threading.Thread(target=lambda: opened.append(Stream.open(path, budget=budget)))
        for _ in range(2)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert len(opened) == 2
    assert budget.spent == [("a.jsonl", 1)]
    assert opened[0].release(0, [3]) == opened[1].release(0, [4])
    assert os.listdir(path.parent) == ["a.jsonl"]


@pytest.mark.parametrize(("horizon", "arity"), [(8, 2), (9, 3), (7, 2), (5, 4), (4, None)])
def test_no_individual_changes_nodes_by_more(path: Path, horizon: int, arity: Any) -> None:
    """The condition of lemma 14a in each level, for all steps that an individual may be in."""
    stream = Stream.open(path, horizon=horizon, arity=arity, epsilon="0.3")
    rate = Fraction(3, 10) / stream.height
    for l0, linf in itertools.product(range(1, horizon + 1), (1, 3)):
        stated = stream.loss_distribution(l0, linf)._cells
        assert {cell for cell, _ in stated} == {rate}
        changes = sorted(itertools.chain(*([d] * n for (_, d), n in stated.items())), reverse=True)
        reached = np.zeros(len(changes), np.int64)
        for steps in itertools.combinations(range(horizon), l0):
            found = []
            for size in (stream.arity**level for level in range(stream.height)):
                nodes = np.zeros(horizon // size, np.int64)
                for step in steps:
                    if step // size < len(nodes):
                        nodes[step // size] += linf
                found += nodes[nodes > 0].tolist()
            greatest = np.cumsum([*sorted(found, reverse=True), *[0] * len(changes)])
            assert (greatest[: len(changes)] <= np.cumsum(changes)).all()
            reached = np.maximum(reached, greatest[: len(changes)])
        spent = Fraction(3, 10) / stream.height * sum(changes)
        assert Fraction(repr(stream.privacy_loss(l0, linf))) >= spent
        if stream.height == 1 or horizon % stream.arity ** (stream.height - 1) == 0:
            assert stream.privacy_loss(l0, linf) == pytest.approx(0.3 * l0 * linf)
        # Neighbouring steps from 0 on reach the bound.
        assert reached[0] == changes[0]
        assert reached[-1] == sum(changes)


def test_of_several_threads_one_publishes(path: Path) -> None:
    stream = Stream.open(path, horizon=16, arity=2)
    found: dict[int, list[Any]] = {step: [] for step in range(16)}

    def release() -> None:
        for step in range(16):
            found[step].append(stream.release(step, EXACT.repeat(2)[: step + 1]))

    threads = [threading.Thread(target=release) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for step, published in found.items():
        assert published == [stream.release(step, None)] * 4


def held(counts: Counts) -> list[bytes]:
    """Return what would show rows of counts, as bytes or text."""
    return [
        *(counts.astype(kind).tobytes() for kind in ("<i8", ">i8", "<i4", "<f8")),
        *(b"%d" % count for count in counts.reshape(-1)),
    ]


def test_nothing_exact_is_left(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the file, the object, or the tracebacks of errors, with local variables."""
    # So long that no address of an object has their digits by chance.
    counts = np.array([[48611, 76543, 90001, 35729], [86969, 21577, 60013, 94993]]) * 100_000_007
    secrets = held(counts[0]) + held(counts[1]) + held(counts.sum(axis=0))
    assert any(secret in counts.tobytes() for secret in secrets)
    # So much noise that no released number is exact, but with probability 1e-7.
    stream = Stream.open(path, horizon=2, arity=2, epsilon="1e-8")
    stream.release(0, counts[:1])
    texts = []
    given: list[Any] = [
        (1, counts[:1]),
        (1, counts[:, :3]),
        (1, counts.astype(float)),
        (1, lambda start, stop: counts[start:stop, :2].sum(axis=0)),
        (1, lambda start, stop: counts[start:stop].sum(axis=0) / 2),
        (2, counts),
    ]
    for step, each in given:
        with pytest.raises((TypeError, ValueError)) as error:
            stream.release(step, each)
        texts.append(error.value)
    # After the draw, which is not published then.
    drawn: list[Any] = []
    release = GeometricMechanism.release

    def draw(self: GeometricMechanism, counts: Any) -> Any:
        drawn.append(release(self, counts))
        return drawn[-1]

    def full(*_: Any) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(GeometricMechanism, "release", draw)
        patch.setattr(_journal, "_write", full)
        with pytest.raises(OSError, match="disk full") as late:
            stream.release(1, counts)
    texts.append(late.value)
    secrets += held(drawn[0])
    stream.release(1, counts)
    frames = []
    for error_ in texts:
        assert error_.__context__ is None
        captured = traceback.TracebackException.from_exception(error_, capture_locals=True)
        # This test and its lambdas hold the counts themselves.
        frames += [frame for frame in captured.stack if "geomdp" in frame.filename]
    assert len(frames) > 10
    pickled = pickle.dumps(stream)
    assert np.array_equal(pickle.loads(pickled).total(0, 2), stream.total(0, 2))
    left = [path.read_bytes(), pickled, repr(stream).encode()]
    left += [str((frame.name, frame.locals)).encode() for frame in frames]
    left += [str(error_).encode() for error_ in texts]
    for state in left:
        assert not [secret for secret in secrets if secret in state]
    assert set(os.listdir(path.parent)) == {"a.jsonl"}


def test_an_error_of_a_function_keeps_its_traceback(path: Path) -> None:
    def function(start: int, stop: int) -> int:
        return 1 // 0

    with pytest.raises(ZeroDivisionError) as error:
        Stream.open(path).release(0, function)
    assert error.traceback[-1].name == "function"


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_sums_saturate(path: Path, dtype: Any) -> None:
    least, greatest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    low = 0 if dtype == np.uint64 else least
    counts = np.array([[np.iinfo(dtype).max, low, 2**62], [7, low, 2**62 - 1]], dtype)
    stream = filled(path, counts, arity=2)
    wanted = [greatest, low, greatest]
    assert stream.release(1, None)[0, 2].tolist() == wanted
    assert stream.total(0, 2).tolist() == wanted
    lower, upper = stream.interval(0, 2, 0.05)
    assert (lower.tolist(), upper[:1].tolist()) == ([least, min(low, lower[1]), least], [greatest])
    # A difference of nodes at both limits.
    assert stream.total(1, 2).tolist() == [7, low, 2**62 - 1]
    assert stream.interval(1, 2, 0.05)[1][0] < 99


def test_the_guide_shows_the_figures_of_the_picture() -> None:
    guide = Path(__file__).parents[2] / "docs/guides/streams.md"
    assert stream_table() in guide.read_text()


def test_a_table_is_saved_with_its_intervals(path: Path, tmp_path: Path) -> None:
    stream = filled(path, [[5, 6], [7, 8], [9, 10]], epsilon=1, arity=2)
    table = stream.table(1, cells={"town": ["a", "b"]})
    assert table.epsilon == Fraction(1, 2)
    assert table.frame["step"].tolist() == [1, 1, 2, 2]
    assert table.frame["count"].tolist() == [*stream.total(1, 2), *stream.total(2, 3)]
    table.save(tmp_path / "towns.csv")
    read = geomdp.read(tmp_path / "towns.csv").intervals(alpha=0.05)
    # A table counts records, so its intervals have no end below 0; a stream adds any integers.
    for name, ends in zip(("lower", "upper"), stream.interval(1, 2, alpha=0.05), strict=True):
        assert read[name].tolist()[:2] == np.maximum(ends, 0).tolist()
    assert stream.table().design.levels == {"step": [0, 1, 2], "cell": [0, 1]}


def test_a_table_states_the_loss_of_its_step_and_of_the_stream(path: Path, tmp_path: Path) -> None:
    stream = filled(path, [5, 6, 7], epsilon="0.1", arity=2)
    stream.table(1, 3).save(tmp_path / "steps.csv")
    read = geomdp.read(tmp_path / "steps.csv")
    assert read.epsilon == Fraction(1, 20)
    for each in (read, pickle.loads(pickle.dumps(read))):
        assert (each.label, each._part_of) == ("steps 1 to 2 of a stream", Fraction(1, 10))
    stream.table(1, 3).save(tmp_path / "steps.html")
    said = "steps of a stream, whose privacy loss for one record is 0.1 in all"
    assert said in (tmp_path / "steps.html").read_text()

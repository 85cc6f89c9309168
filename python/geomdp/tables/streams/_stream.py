"""The public class of streams, above the file of their nodes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from geomdp import accounting, accuracy
from geomdp._ground import parameters
from geomdp._ground.notebook import many, showable
from geomdp._ground.parameters import Integer, Real
from geomdp._numerics import composition
from geomdp.accounting._bookings import Protects
from geomdp.accounting._budget import as_budget, book_table
from geomdp.accounting._journal import absolute
from geomdp.mechanism import GeometricMechanism
from geomdp.tables._columns.native import Library
from geomdp.tables._design import Design
from geomdp.tables._facts.layout import word_of
from geomdp.tables._math import span_trees
from geomdp.tables._results.noisy_table import NoisyTable
from geomdp.tables.streams._nodes import GREATEST, LEAST, LONGEST, PUBLIC, Counts, Nodes, Span
from geomdp.tables.streams._spans import spans_sums, summed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How often a stream that another process may be making is looked for.
_TRIES = 50


@showable
class Stream:
    """Noisy counts of each step and of longer spans, in a file; :meth:`open` makes one.

    Steps are days, hours or anything else that comes in order. The nodes of a tree are spans of 1,
    `arity`, ``arity**2`` ... steps. Each node is published, with noise, as soon as its last step is
    over, and the count of any other span is a sum and difference of nodes. Since a record is in one
    node of each level, each node gets ``epsilon / levels``.

    The file contains public parameters and published nodes, as does this object, but no exact
    counts and no key. Any number of threads and processes may open it, and it may be published.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from geomdp.tables.streams import Stream
    >>> folder = tempfile.TemporaryDirectory()
    >>> visits = Stream.open(pathlib.Path(folder.name) / "visits.jsonl", horizon=365, epsilon=1)
    >>> for day in range(visits.released, 20):
    ...     published = visits.release(day, range(500, 501 + day))
    >>> lower, upper = visits.interval(2, 20, alpha=0.05)
    >>> upper - visits.total(2, 20)
    18
    >>> folder.cleanup()

    """

    __slots__ = ("_arity", "_epsilon", "_file", "_horizon", "_levels", "_mechanism")

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("a Stream has no constructor: call Stream.open")

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        horizon: Integer = 365,
        epsilon: Real = 1.0,
        arity: Integer | None = None,
        *,
        budget: accounting.Budget | None = None,
        l0: Integer = 1,
        linf: Integer = 1,
        unit: str | None = None,
        label: str | None = None,
    ) -> Self:
        """Open the stream that a file keeps, or a new one if there is no such file.

        Parameters
        ----------
        path : str or path
            The file, on a local file system (see :meth:`geomdp.accounting.Budget.open`).
        horizon : int
            The number of steps, at most 100,000.
        epsilon : number or str
            The privacy loss of one record over the whole stream; see :meth:`privacy_loss` for that
            of an individual.
        arity : int, optional
            At least 2; the tree then has all levels whose nodes close within the horizon. By
            default, arity (up to 64) and number of levels are those with the least mean variance
            over all spans, each asked for on the day it ends. A few steps need no tree: for a
            month, a single level is best.
        budget : Budget, optional
            The budget that books the loss of the whole stream before a new file gets its name.
            Opening an existing file books nothing.
        l0, linf
            The limits for the individual whose loss the budget books, as in :meth:`privacy_loss`.
        unit : str, optional
            The word for this individual, as in :class:`geomdp.tables.Design`.
        label : str, optional
            The label of the booking; by default the name of the file. Since a budget books a label
            only once, a stream whose file is lost is not paid for and drawn a second time by
            accident. If the process was killed between the booking and the file, give another
            label.

        Raises
        ------
        ValueError
            If the file is a stream with other parameters, is no stream or is damaged, or if the
            budget refuses the stream.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from geomdp.tables.streams import Stream
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "visits.jsonl"
        >>> Stream.open(path, horizon=365, epsilon=1)
        <Stream: 0 of 365 steps released, epsilon 1, arity 13, levels 2>
        >>> Stream.open(path, horizon=366, epsilon=1)
        Traceback (most recent call last):
            ...
        ValueError: horizon = 366 is not accepted: give that of the stream visits.jsonl, 365
        >>> folder.cleanup()

        """
        steps = parameters.at_least("horizon", horizon, 1)
        if steps > LONGEST:
            raise ValueError(parameters.refusal("horizon", steps, f"at most {LONGEST}"))
        loss = parameters.positive_fraction("epsilon", epsilon)
        given = None if arity is None else parameters.at_least("arity", arity, 2)
        for name, most in (("l0", l0), ("linf", linf)):
            parameters.at_least(name, most, 1)
        one = "record" if (l0, linf) == (1, 1) else "individual"
        one = one if unit is None else word_of(unit)
        levels = None
        self = cls.__new__(cls)
        if not absolute(path).exists():
            if given is None:
                given, levels = span_trees.best(steps, loss)
            else:
                levels = span_trees.height(steps, given)
            self._set(steps, loss, given, levels)
            self._mechanism.certificate()  # An epsilon that has no plan is refused.
            parameters.ask_about_percent(loss)
        if budget is not None:
            as_budget(budget)
        public = dict(zip(PUBLIC, (steps, loss, given, levels), strict=True))

        def placing(own: str) -> None:
            if budget is None:
                return
            losses = self.loss_distribution(l0, linf).losses
            whole, name = composition.total(losses), label or absolute(path).name
            who = Protects(one, "add-remove")
            try:
                book_table(budget, whole, losses, name, (own,), protects=who)
            except ValueError:
                # Another process may have booked it, and be about to give the file its name.
                for _ in range(_TRIES):
                    if absolute(path).exists():
                        return
                    time.sleep(0.01)
                raise

        return self._opened(path, public, placing)

    def _opened(
        self, path: Any, public: Mapping[str, Any], *placing: Callable[[str], None]
    ) -> Self:
        limits = {name: None if value is None else str(value) for name, value in public.items()}
        self._file = Nodes(path, limits, *placing)
        self._file.checked(self._set, *self._file.parameters())
        return self

    def _set(self, horizon: int, epsilon: Fraction, arity: int, levels: int) -> None:
        self._horizon, self._epsilon, self._arity, self._levels = horizon, epsilon, arity, levels
        # The file keeps what was stated, and no more.
        self._mechanism = GeometricMechanism(parameters.by_value(epsilon).part(Fraction(1, levels)))

    @property
    def horizon(self) -> int:
        """The number of steps of the whole stream."""
        return self._horizon

    @property
    def epsilon(self) -> Fraction:
        """The exact privacy loss of one record over the whole stream."""
        return self._epsilon

    @property
    def arity(self) -> int:
        """How many nodes of a level make up one of the next."""
        return self._arity

    @property
    def height(self) -> int:
        """The number of levels of its trees: nodes are spans of ``arity**level`` steps."""
        return self._levels

    @property
    def mechanism(self) -> GeometricMechanism:
        """The mechanism of each node."""
        return self._mechanism

    @property
    def released(self) -> int:
        """The number of steps that are released, and the next step."""
        return self._file.released()[0]

    def release(self, step: Integer, counts_so_far: Any) -> dict[Span, Any]:
        """Publish the nodes that close at a step, and return them.

        A step is final. Once it is published, any further call returns the published nodes; it
        draws nothing and does not look at the counts, since noticing that they have changed would
        mean keeping something of the exact counts. Nodes are in the file before they are returned.
        If the process is killed before that, nothing is published, and the next call draws anew.

        Parameters
        ----------
        step : int
            The number of the step, from 0 and in order, so at most :attr:`released`.
        counts_so_far : array, Table or function
            The exact counts of steps 0 to `step`, in one of three forms. An integer array has a row
            for each step, with one count or an array of counts, of which each cell is a stream. A
            :class:`geomdp.tables.Table` comes from a design whose first column has the steps as
            levels, without an individual, margins or ``neighbours="change"`` and with `l0` and
            `linf` of 1. A function takes the first step of a span and the one after its last, and
            returns the exact count, array or Table of the span. Shapes are the same for all steps,
            and sums saturate at the limits of int64.

        Returns
        -------
        dict of (int, int) to int or int64 array
            The noisy count or counts of each span, which is given by its first step and the one
            after its last.

        Raises
        ------
        ValueError
            If the step is at the horizon or beyond, an earlier one has not been released, or the
            counts have the wrong number of steps, or another number of cells than before.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from geomdp.tables.streams import Stream
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "visits.jsonl"
        >>> stream = Stream.open(path, horizon=4, epsilon=1, arity=2)
        >>> list(stream.release(0, [512])), list(stream.release(1, [512, 498]))
        ([(0, 1)], [(1, 2), (0, 2)])
        >>> stream.release(1, [0, 0]) == stream.release(1, [512, 498])
        True
        >>> stream.release(3, [512, 498, 530, 475])
        Traceback (most recent call last):
            ...
        ValueError: step = 3 is not accepted: give at most 2, the next step
        >>> folder.cleanup()

        """
        at, released, cells = self._next(step)
        sizes = [self._arity**level for level in range(self._levels)]
        spans = [(at + 1 - size, at + 1) for size in sizes if (at + 1) % size == 0]
        noisy: Counts | None = None
        if at == released:
            of_spans = callable(counts_so_far)
            if of_spans:
                counts_so_far = [counts_so_far(*span) for span in spans]
            noisy = self._published(at, counts_so_far, spans, of_spans, cells)
        if noisy is None:
            noisy = np.concatenate(
                [
                    self._file.read(level, size, start // size, stop // size)
                    for level, (size, (start, stop)) in enumerate(zip(sizes, spans, strict=False))
                ]
            )
        return {span: _array_or_int(counts) for span, counts in zip(spans, noisy, strict=True)}

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Check the file, and write a copy to a new one: all published steps, and nothing else.

        The copy is for readers. A release into it would draw the next steps a second time, with
        other noise.

        Parameters
        ----------
        path : str or path
            The copy; it must not exist.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import geomdp
        >>> from geomdp.tables.streams import Stream
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "visits.jsonl"
        >>> Stream.open(path, epsilon=1).backup(path.with_name("copy.jsonl"))
        >>> geomdp.read(path.with_name("copy.jsonl")).released
        0
        >>> folder.cleanup()

        """
        self._file.backup(path)

    def total(self, start: Integer, stop: Integer) -> Any:
        """Return the noisy count of the steps from `start` to before `stop`.

        The total adds and subtracts the fewest published nodes that make up the span. When more
        nodes are published, it may change and then has less noise. It costs no privacy.

        Parameters
        ----------
        start, stop : int
            ``0 <= start < stop <= released``.

        Returns
        -------
        int or int64 array
            An unbiased count, which may be negative and saturates at the limits of int64.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from geomdp.tables.streams import Stream
        >>> folder = tempfile.TemporaryDirectory()
        >>> stream = Stream.open(pathlib.Path(folder.name) / "visits.jsonl", epsilon=1)
        >>> published = stream.release(0, [[512, 70, 8]])
        >>> stream.total(0, 1).shape
        (3,)
        >>> folder.cleanup()

        """
        return _array_or_int(self._added(self._path(start, stop))[0])

    def interval(
        self, start: Integer, stop: Integer, alpha: Real = 0.05, *, simultaneous: bool = False
    ) -> tuple[Any, Any]:
        """Return an interval for the exact count of a span, around :meth:`total`.

        Half its width is the :func:`geomdp.accuracy.sum_accuracy` of the nodes, which is exact for
        the sum of their noises. The width is the same for all cells.

        Parameters
        ----------
        start, stop
            As in :meth:`total`.
        alpha : int, float or Fraction
            The probability that the interval misses: 0.05 for 95% confidence.
        simultaneous : bool
            Whether `alpha` is the probability that any interval of the stream misses, of any cell
            and span, at any time. Each then gets an equal part of alpha.

        Returns
        -------
        lower, upper : ints or int64 arrays
            The interval includes both ends. It assumes that the sums of exact counts are within
            int64, and is all of int64 if a node is at its limits.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from geomdp.tables.streams import Stream
        >>> folder = tempfile.TemporaryDirectory()
        >>> stream = Stream.open(pathlib.Path(folder.name) / "visits.jsonl", epsilon=1)
        >>> published = stream.release(0, [512])
        >>> for simultaneous in (False, True):
        ...     lower, upper = stream.interval(0, 1, alpha=0.05, simultaneous=simultaneous)
        ...     print(upper - stream.total(0, 1))
        6
        38
        >>> folder.cleanup()

        """
        runs = self._path(start, stop)
        parameters.check_bool("simultaneous", simultaneous)
        level = parameters.significance("alpha", alpha)
        total, at_limit = self._added(runs)
        if simultaneous:
            # Of each start, stop and number of steps that are released then.
            level /= math.comb(self._horizon + 2, 3) * max(total.size, 1)
        reach = accuracy.sum_accuracy(self._mechanism, span_trees.nodes(runs, self._arity), level)
        ends = [
            np.where(at_limit, limit, summed(np.stack([total, np.full_like(total, sign)])))
            for limit, sign in ((LEAST, -reach), (GREATEST, reach))
        ]
        return _array_or_int(ends[0]), _array_or_int(ends[1])

    def table(
        self,
        start: Integer = 0,
        stop: Integer | None = None,
        *,
        cells: Mapping[str, Sequence[Any]] | None = None,
        library: Library | None = None,
    ) -> NoisyTable:
        """Return the noisy counts of single steps as a table, with intervals, to save or draw.

        The privacy loss of the table is the share of epsilon that these counts have, that of the
        lowest level. The table and its files also state the loss of a record in the whole stream.
        All tables of a stream have the id of the stream, since they may share noise, so compare
        steps within a single table, with :meth:`NoisyTable.difference`.

        Parameters
        ----------
        start, stop : int
            As in :meth:`total`; all released steps by default.
        cells : mapping of column names to sequences, optional
            The levels of the cells of a step, as for :class:`geomdp.tables.Design`; by default,
            numbers from 0 in a column "cell".
        library : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame; by default the first of these that is installed.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from geomdp.tables.streams import Stream
        >>> folder = tempfile.TemporaryDirectory()
        >>> stream = Stream.open(pathlib.Path(folder.name) / "visits.jsonl", epsilon=1)
        >>> published = stream.release(0, [[512, 70]])
        >>> table = stream.table(cells={"town": ["Oslo", "Rome"]})
        >>> list(table.intervals(alpha=0.05)), table.privacy_loss()
        (['step', 'town', 'estimate', 'lower', 'upper'], 0.5)
        >>> folder.cleanup()

        """
        first, last = self._span(start, self.released if stop is None else stop)
        counts = self._file.read(0, 1, first, last)
        if cells is None:
            cells = {"cell": range(counts[0].size)} if counts.ndim > 1 else {}
        if "step" in cells:
            raise ValueError(
                "cells with a column 'step' are not accepted, since that is the column of steps: "
                "rename it"
            )
        design = Design({"step": range(first, last), **cells})
        if design.cells != counts.size:
            raise ValueError(
                f"cells are the levels of {many(design.cells // (last - first), 'count')}, and a "
                f"step has {counts[0].size}: give the levels of these"
            )
        label = f"steps {first} to {last - 1} of a stream"
        mechanisms = dict.fromkeys(design.blocks, self._mechanism)
        known = design, mechanisms, label, library, counts.reshape(design.shape)
        return NoisyTable(*known, identity=self._file.identity(), part_of=self._epsilon)

    def plot(self, *, alpha: Real = 0.05, ax: Axes | None = None) -> Axes:
        """Draw the noisy count of each released step, summed over the cells, with its interval.

        The picture states the privacy loss of a record in the whole stream.

        To draw only some steps, or each cell by itself, use ``stream.table(...).plot()``.

        Parameters
        ----------
        alpha : int, float or Fraction
            The probability that an interval misses: 0.05 for 95% confidence.
        ax
            As in :func:`geomdp.tables.plot.pmf`.

        Returns
        -------
        Axes
            Counts against steps.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from geomdp.tables.streams import Stream
        >>> folder = tempfile.TemporaryDirectory()
        >>> stream = Stream.open(pathlib.Path(folder.name) / "visits.jsonl", epsilon=1)
        >>> for day in range(2):
        ...     published = stream.release(day, [512, 70][: day + 1])
        >>> stream.plot().get_xlabel()
        'step'
        >>> folder.cleanup()

        """
        return self.table().plot("step", alpha=alpha, ax=ax)

    def privacy_loss(self, l0: Integer = 1, linf: Integer = 1) -> float:
        """Return the privacy loss of an individual over the whole stream, rounded up.

        Parameters
        ----------
        l0 : int
            In how many steps the individual has records. By default the loss is that of one record.
        linf : int
            The most records of the individual in one step, in all cells together.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from geomdp.tables.streams import Stream
        >>> folder = tempfile.TemporaryDirectory()
        >>> stream = Stream.open(pathlib.Path(folder.name) / "visits.jsonl", epsilon=1)
        >>> stream.privacy_loss(), stream.privacy_loss(l0=30)
        (1.0, 30.0)
        >>> folder.cleanup()

        """
        return self.loss_distribution(l0, linf).epsilon_at()

    def loss_distribution(self, l0: Integer = 1, linf: Integer = 1) -> accounting.LossDistribution:
        """Return the distribution of the privacy loss of an individual over the whole stream.

        The loss of a level is greatest if the individual's steps are next to each other, because
        the fewest nodes then change by the most (``docs/proofs.md``, lemma 14a).

        Parameters
        ----------
        l0, linf
            As in :meth:`privacy_loss`.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from geomdp.tables.streams import Stream
        >>> folder = tempfile.TemporaryDirectory()
        >>> stream = Stream.open(pathlib.Path(folder.name) / "visits.jsonl", epsilon="0.1")
        >>> round(stream.loss_distribution(l0=30).epsilon_at(delta=1e-6), 2)
        2.49
        >>> folder.cleanup()

        """
        days = min(parameters.at_least("l0", l0, 1), self._horizon)
        most = parameters.at_least("linf", linf, 1)
        parts = []
        for level in range(self._levels):
            size = self._arity**level
            whole, rest = divmod(min(days, self._horizon // size * size), size)
            for nodes, steps in ((whole, size), (1, rest)):
                if nodes * steps:
                    parts.append(
                        accounting.loss_distribution(self._mechanism, l0=nodes, linf=steps * most)
                    )
        return sum(parts[1:], start=parts[0])

    def _published(
        self,
        step: int,
        counts: Any,
        spans: list[Span],
        of_spans: bool,
        cells: tuple[int, ...] | None,
    ) -> Counts | None:
        """Publish the nodes that close at a step, and return them; None if another process did."""
        exact = spans_sums(counts, spans, of_spans=of_spans, cells=cells)
        noisy = self._mechanism.release(exact)
        return noisy if self._file.publish(step, noisy) else None

    def _next(self, step: Any) -> tuple[int, int, tuple[int, ...] | None]:
        """Return a step, the number of those released, and the shape of their counts."""
        at = parameters.at_least("step", step, 0)
        if at >= self._horizon:
            wanted = f"less than the horizon, {self._horizon}"
            raise ValueError(parameters.refusal("step", at, wanted))
        released, cells = self._file.released()
        if at > released:
            raise ValueError(parameters.refusal("step", at, f"at most {released}, the next step"))
        return at, released, cells

    def _span(self, start: Any, stop: Any) -> Span:
        first, last = parameters.at_least("start", start, 0), parameters.at_least("stop", stop, 0)
        if last > (released := self.released):
            wanted = f"at most {released}, the number of steps that are released"
            raise ValueError(parameters.refusal("stop", last, wanted))
        if first >= last:
            raise ValueError(parameters.refusal("start", first, f"less than stop, {last}"))
        return first, last

    def _path(self, start: Any, stop: Any) -> list[span_trees.Run]:
        """Return the nodes that make up a span."""
        return span_trees.path(*self._span(start, stop), self.released, self._arity, self._levels)

    def _added(self, runs: list[span_trees.Run]) -> tuple[Counts, NDArray[np.bool_]]:
        """Return the sum of these nodes, and whether a node is at a limit of int64."""
        parts, negative = [], 0
        at_limit: NDArray[np.bool_] = np.zeros((), np.bool_)
        for level, of, to in runs:
            size = self._arity**level
            nodes = self._file.read(level, size, min(of, to) // size, max(of, to) // size)
            at_limit = at_limit | ((nodes == LEAST) | (nodes == GREATEST)).any(axis=0)
            # The negative of a node is its complement plus 1, which does not overflow.
            parts.append(nodes if of < to else ~nodes)
            negative += 0 if of < to else len(nodes)
        parts.append(np.full_like(parts[0][:1], negative))
        return summed(np.concatenate(parts)), at_limit

    def __repr__(self) -> str:
        return (
            f"<Stream: {self.released} of {many(self._horizon, 'step')} released, "
            f"epsilon {parameters.text(self._epsilon)}, arity {self._arity}, levels {self._levels}>"
        )


def _array_or_int(counts: Counts) -> Any:
    return counts.astype(np.int64) if counts.ndim else int(counts)


def read(path: str | os.PathLike[str]) -> Stream:
    """Return the stream that a file keeps; :func:`geomdp.read` has the details."""
    os.stat(absolute(path))
    return Stream.__new__(Stream)._opened(path, dict.fromkeys(PUBLIC))

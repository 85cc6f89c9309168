"""Noisy counts of a table, with the public facts about their meaning and their cost."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import decimals, parameters
from geomdp._ground.notebook import many
from geomdp._ground.parameters import Integer
from geomdp.tables._answers import consistency, estimates, public_totals
from geomdp.tables._answers.answers import Answers
from geomdp.tables._facts import counted, layout, rounding
from geomdp.tables._facts import parts as _parts
from geomdp.tables._facts.parts import Part
from geomdp.tables._math import trees
from geomdp.tables._publish.page import shown
from geomdp.tables._results import empty
from geomdp.tables._results.released import Released

if TYPE_CHECKING:
    from collections.abc import Mapping

    from geomdp.tables._facts import axes as _axes
    from geomdp.tables._math.products import Block


class NoisyTable(Released, Answers):
    """A released table: noisy counts, and the public facts that a reader needs.

    :meth:`Table.release` makes one, and :func:`geomdp.read` reads one from a file. It contains no
    exact counts, so it may be shown, pickled and published. It answers questions about the true
    counts of the table, as they are after contributions are bounded (:class:`Answers`).

    * Counts: `frame`, `counts`, `to_dict`; least-squares `estimates` and their `intervals`;
      integers that add up, `consistent`.
    * Answers: `total`, `percent`, `ratio`, `difference`; of a column of numbers, `sum`, `mean`,
      `quantile`; of the cells, `number_of_cells`, `diversity`, `variance`.
    * With another release, or public numbers: `rate`, `per`, `plus`, `change_since`; `combine`,
      `with_totals` and `with_complete` make releases that know more.
    * To publish: `save`, `plot`.
    * What it states: `design`, `mechanisms`, `epsilon`, `privacy_loss`, `label`, `about`, `id`,
      `corrects`, `count_id`, `parts`.

    Examples
    --------
    >>> import pandas as pd
    >>> from geomdp import tables
    >>> people = pd.DataFrame({"city": ["Rome", "Oslo", "Rome"], "sick": ["no", "yes", "no"]})
    >>> design = tables.Design({"city": ["Oslo", "Rome"], "sick": ["yes", "no"]})
    >>> noisy = design.count(people).release(epsilon=0.5)
    >>> noisy.privacy_loss(), list(noisy.intervals(alpha=0.05))
    (0.5, ['city', 'sick', 'estimate', 'lower', 'upper'])
    >>> len(noisy.total("city", alpha=0.05))
    2

    """

    def __init__(
        self,
        *facts: Any,
        known: Mapping[Block, NDArray[np.int64]] | None = None,
        parts: tuple[Part, ...] = (),
        moved: int = 0,
        **more: Any,
    ) -> None:
        super().__init__(*facts, **more)
        if known:
            self._known = known
        self.parts, self._moved = parts, moved

    def __noisy_cells__(self) -> tuple[dict[str, list[Any]], NDArray[np.int64]]:
        """Return the levels of each column and the noisy cells, without margins, to calls below."""
        self._refuse_chosen("an array of cells")
        axes = self.design._axes
        cells: NDArray[np.int64] = self.counts[axes.leaves]
        if any(len(axis.faces) > 1 for axis in axes):
            raise ValueError(
                "the cells of a list of combinations are no array with an axis for each column"
            )
        return {axis.label: axis.levels for axis in axes}, cells

    def __reduce__(self) -> tuple[Any, ...]:
        known = self.design, self.mechanisms, self.label, self._library, self._values
        made = partial(
            type(self),
            known=dict(self._known),
            identity=(self.id, self.corrects, self.count_id),
            part_of=self._part_of,
            rounded=self._rounded,
            about=self._about,
            tier=None if self._tier is None else tuple(self._tier),
            parts=self.parts,
            moved=self._moved,
        )
        return made, known

    @property
    def epsilon(self) -> Fraction | float:
        """The exact privacy loss of the whole table for one individual; infinite without noise.

        Of a sum, it is that of an individual in all its parts.
        """
        return _parts.loss(self.parts) if self.parts else super().epsilon

    @property
    def _revision(self) -> int:
        return sum(len(each.corrects) for each in self.parts or (self,))

    def plus(self, other: NoisyTable, *more: NoisyTable) -> NoisyTable:
        """Return the sum of this table and tables about other people, such as those of ten sites.

        The result is a release: it answers every question, can be saved, drawn and added again, and
        names the releases that it was made of (:attr:`parts`). Each of its counts is the sum of
        their noisy counts, whose noises add up and partly cancel, and all intervals allow for that.
        An individual with records in several tables is counted in each.

        Like every answer, the sum costs no privacy. Those who can have records only in one of the
        tables, whatever the data are, incur the privacy loss of that table, so if nobody can be in
        two, all together cost the greatest of the losses. Those who can be in all, or whose records
        can move from one to another, incur their sum, which is the :attr:`epsilon` of the result.
        No file tells who can.

        Parameters
        ----------
        other, *more : noisy tables
            Releases of the same kind of counts, with the same columns and levels, and the same
            limits of what one individual adds. Privacy losses may differ, and so may margins,
            chosen tables and shares: the sum has the tables that all of them have. The same release
            in another file is not accepted, and neither is a correction of one of them, which is
            about the same people.

        Returns
        -------
        NoisyTable
            The sum. Its id follows from those of its parts, so that the same sum has the same id,
            in whatever order it was made. Public totals that all state add up, too.

        Raises
        ------
        ValueError
            If a release counts something else, shares noise with another one, or has bounds.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> design = tables.Design({"ward": ["A", "B"]})
        >>> north, south = (
        ...     design.count(pd.DataFrame({"ward": ["A"] * a + ["B"] * b})).release(epsilon=0.5)
        ...     for a, b in ((312, 90), (128, 45))
        ... )
        >>> found = north.plus(south).intervals(alpha=0.05)
        >>> (found["upper"] - found["estimate"]).tolist()
        [8, 8]

        """
        releases, parts = (self, other, *more), list[Part]()
        for each in releases[1:]:
            estimates.check_table("other", each)
            if not isinstance(each, NoisyTable):
                raise ValueError(
                    "other has the answers of two releases, whose counts do not add up: give a "
                    "release"
                )
        counted.check_same_sum("other", *releases)
        estimates.refuse_bounds("sum of tables", True, *releases)
        design = reduce(layout.common, (each.design for each in releases))
        for each in releases:
            blocks = layout.alike(design, each.design)
            for part in _parts.of(each):
                own = {block: part.mechanisms[theirs] for block, theirs in blocks.items()}
                parts.append(replace(part, mechanisms=own))
        if len(parts) * len(design.blocks) > _parts.MOST:
            tables = many(len(design.blocks), "table")
            raise ValueError(
                f"{many(len(parts), 'release')} with {tables} each are not accepted: give at most "
                f"{many(_parts.MOST, 'table')} in all"
            )
        moved = [list(estimates.moved(each, design._axes)) for each in releases]
        noisy, totals = (
            [
                {x: counts for x, noises, _, counts in of_one if bool(noises) is with_noise}
                for of_one in moved
            ]
            for with_noise in (True, False)
        )
        values = np.empty(design.shape if design.tables is None else design.cells, np.int64)
        for block, at in design._parts.items():
            rooted = estimates.rooted(design._axes, block)
            found = reduce(rounding.added, (each[rooted] for each in noisy))
            values[at] = found.reshape(values[at].shape)
        known = {
            block: public_totals.as_counts(
                np.sum([x[block].reshape(-1).tolist() for x in totals], 0, object).tolist()
            ).reshape(counts.shape)
            for block, counts in totals[0].items()
            if all(block in each for each in totals)
        }
        return NoisyTable(
            design,
            {},
            None,
            self._library,
            values,
            identity=_parts.identity(parts),
            known=known,
            parts=tuple(parts),
            moved=sum(each._moved + rounding.half(each._rounded) for each in releases),
        )

    def consistent(self, total: Integer | None = None) -> Any:
        """Return a frame of non-negative integers that add up, near the noisy counts.

        With a single hierarchy, this is the nearest such frame, unless public totals cross the
        hierarchy (``docs/consistency.md``). Otherwise it is the least-squares fit, rounded, and
        some other frame of integers may be nearer. Released margins are weighted by the variance of
        their noise. Use the result where a table must make sense to the eye. It is biased
        (``docs/consistency.md``), so do not compute intervals from it, but from this object. Needs
        scipy.

        Parameters
        ----------
        total : int, optional
            A public total. The counts add up to it exactly, and to all totals that
            :meth:`with_totals` declares.

        Raises
        ------
        ValueError
            If `total` contradicts those of :meth:`with_totals`, or these are of three sets of
            columns that cross.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"], name="sick"), ["yes", "no"])
        >>> sum(table.release(epsilon=0.5).consistent(total=3)["count"])
        3

        """
        estimates.refuse_signed("consistent table", self)
        self._refuse_chosen("consistent()")
        known = self._public(total)
        if any(axis.tree.depth and axis.hierarchy is not None for axis in self.design._axes):
            whole = self._closest(known)
        else:
            whole = consistency.fitted(self, known)
        return self._made({**self._levels(), self.design.name: self._rows(whole)})

    def _public(self, total: Integer | None) -> dict[Block, NDArray[np.int64]]:
        """Return all public totals by block, whose depths are those of rooted trees."""
        axes, known = self.design._axes, dict(self._known)
        if total is not None:
            public = parameters.at_least("total", total, 0)
            if public > consistency.GREATEST:
                raise OverflowError("total reaches beyond 2**40: give a smaller one")
            whole = np.array(public)
            if (known.setdefault((0,) * len(axes), whole) != whole).any():
                raise ValueError(
                    f"total = {public} is not accepted: it contradicts with_totals, so leave it out"
                )
            public_totals.check(axes, known)
        if crossing := public_totals.crossing(axes, known):
            raise ValueError(
                f"consistent counts cannot keep with_totals of {crossing} together: give totals of "
                "two of these, and of parts of their columns and depths"
            )
        if any(counts.max() > consistency.GREATEST for counts in known.values()):
            raise OverflowError("totals reach beyond 2**40: give smaller ones")
        return known

    def _closest(self, known: Mapping[Block, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the consistent counts of all nodes of a table with one hierarchy."""
        design = self.design
        [place, *others] = [p for p, axis in enumerate(design._axes) if axis.depths > 1]
        if others:
            return consistency.fitted(self, known)
        noisy = np.moveaxis(self.counts, place, 0)
        shape, tree = noisy.shape, design._axes[place].tree
        noisy = noisy.reshape(tree.size, -1)
        if np.abs(noisy.astype(np.float64)).max() > consistency.GREATEST:
            raise OverflowError("noisy counts reach beyond 2**40: give smaller counts")
        variances = np.array(self._workload.noise_by_release)[tree.depths]
        parents, weights = tree.parents, variances.max() / variances
        if tree.loose:
            # What a node has besides its children is a leaf without a value.
            more = np.flatnonzero(tree.children)
            parents, weights = np.append(parents, more), np.append(weights, 0 * more)
            noisy = np.concatenate([noisy, np.zeros((more.size, noisy.shape[1]), np.int64)])
        # A tree for each column, and nodes above them for public totals of several.
        columns = noisy.shape[1]
        offsets = np.arange(columns) * parents.size
        above = np.where(parents[:, None] < 0, -1, parents[:, None] + offsets).T.reshape(-1)
        values, weights = noisy.T.flatten(), np.tile(weights, columns)
        sides = {p for p, axis in enumerate(design._axes) if p != place and len(axis.cells) > 1}
        last, tops = sides, offsets
        for block in sorted(known, key=lambda block: -sum(block[p] for p in sides)):
            kept = {p for p in sides if block[p]}
            sizes = iter(known[block].shape)
            shaped = known[block].reshape([next(sizes) if depth else 1 for depth in block])
            counts = np.moveaxis(shaped, place, 0)
            if kept == sides:
                level = tree.level(block[place])
                nodes = np.arange(level.start, level.stop)[:, None] + offsets
                values[nodes], weights[nodes] = counts.reshape(-1, columns), np.inf
                continue
            if block[place] or not kept <= last:
                return consistency.fitted(self, known)
            groups = np.arange(counts.size).reshape(counts.shape[1:]) + values.size
            over = np.broadcast_to(groups, shape[1:]).reshape(-1)
            above[tops] = over
            above = np.append(above, np.full(counts.size, -1))
            values = np.append(values, counts)
            weights = np.append(weights, np.full(counts.size, np.inf))
            last, tops = kept, over
        found = trees.closest(above, values, weights)[: noisy.size]
        found = found.reshape(noisy.T.shape).T[: tree.size]
        return np.moveaxis(found.reshape(shape), 0, place)

    def _columns_without_records(self) -> tuple[list[_axes.Axis], bool]:
        """Return columns of which no record may have a level, and whether none may be counted."""
        axes = self.design._axes
        if self.design.signed:
            return [], False
        if self._may_have_none(None):
            return list(axes), True
        return [axis for axis in axes if axis.other and self._may_have_none(axis)], False

    def _may_have_none(self, of: _axes.Axis | None) -> bool:
        """Return whether no record may have a level, or one of this column that is not `other`."""
        axes = self.design._axes
        place = 0 if of is None else axes.index(of)
        # The sums above a list or a tree have the other records, too.
        sums = of is not None and (of.margin or of.hierarchy is not None)
        blocks = [block for block in self.mechanisms if not (sums and block[place] == 0)]
        if not blocks:
            return False

        def variance(block: Block) -> Any:
            # Exactly: a rate may be beyond floats.
            return math.prod(axes.counts(block)) / self.mechanisms[block].rate ** 2

        block = min(blocks, key=variance)
        counts, sizes = self._values[self.design._parts[block]], axes.counts(block)
        if of is not None:
            nodes = np.arange(of.tree.size)[of.tree.level(block[place])]
            # There may be more columns than an array has axes.
            counts = counts.reshape(math.prod(sizes[:place]), sizes[place], -1)
            counts = counts.compress(nodes != of.nodes.index(of.other[0]), axis=1)
        return empty.reaches_zero(counts, self.mechanisms[block])

    def _answers(self) -> shown.Shown:
        """Return what a page shows: estimates, which rows are sums, and which may be added up."""
        found, axes, asked = super()._answers(), self.design._axes, self._asked_rows()
        least, most = self._limits
        if self.design.tables is not None or self._known or not all(each.flat for each in asked):
            whole = self._of_rows(None, simultaneous=False, asked=asked)["estimate"]
            whole = np.rint(np.minimum(whole, most))
            # Estimates may be beyond int64.
            kind = np.int64 if (np.abs(whole) < 2.0**62).all() else object
            numbers = np.array([int(each) for each in whole.tolist()], kind)
            found = found._replace(estimates=numbers)
        found = found._replace(least=0 if least == 0 else None, **self._arranged())

        def ends(alpha: Fraction, together: bool) -> tuple[NDArray[Any], NDArray[Any]]:
            whole = self._of_rows(alpha, together, asked)
            return whole["lower"], whole["upper"]

        found = found._replace(intervals=shown.intervals(found.numbers, found.least, ends))
        if len(axes) == 1 and axes[0].depths == 1:
            found = found._replace(ordered=_ordered(axes[0].levels))
        if self.design.tables is not None or self._known or self._bounded or self.parts:
            return found._replace(sums=shown.LIBRARY)
        inside = np.zeros(axes.shape, np.bool_)
        inside[axes.block(axes.blocks[-1])] = True
        if inside.sum() != math.prod(axes.sizes):  # Cells of several depths have different noise.
            return found._replace(sums=shown.LIBRARY)
        rate = decimals.down(Fraction(self.mechanisms[axes.blocks[-1]].rate))
        return found._replace(sums=None, cells=self._rows(inside).reshape(-1), rate=rate)

    def _arranged(self) -> dict[str, Any]:
        """Return which rows are sums, and the rows of each chosen table or those of a tree."""
        axes, rows = self.design._axes, np.arange(self.design.cells)
        if self.design.tables is not None:
            sheets = [
                shown.Sheet([axes[x].label for x in self._kept(block)], rows[part])
                for block, part in self.design._parts.items()
            ]
            return {"sheets": sheets}
        nodes = axes.nodes_of(rows)
        below = [axis.tree.children[at] > 0 for axis, at in zip(axes, nodes, strict=True)]
        found: dict[str, Any] = {"totals": np.any(below, axis=0) if below else rows < 0}
        place = next((x for x, axis in enumerate(axes) if axis.hierarchy is not None), None)
        if place is None:
            return found
        # Each node stands above its parts, and all rows of a node stand together.
        tree, at = axes[place].tree, nodes[place]
        rank = np.argsort(tree.from_above)
        before = rows // math.prod(axes.shape[place:])
        order = np.lexsort((rows, rank[at], before))
        sheets = [shown.Sheet(list(self._labels), rows[order])]
        return found | {"sheets": sheets, "tree": place, "depths": tree.depths[at]}


def _ordered(levels: list[Any]) -> list[float] | None:
    """Return the places of increasing numbers or dates, or None for other levels."""
    if all(isinstance(level, date) for level in levels):
        start = levels[0]
        places = [(level - start).total_seconds() for level in levels]
    elif all(type(level) in (int, float) for level in levels):
        places = [float(level) for level in levels]
    else:
        return None
    return places if all(np.diff(places) > 0) else None

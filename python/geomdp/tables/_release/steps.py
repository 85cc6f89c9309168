"""The steps of every release, in order: prepare, spend, draw, save.

:func:`prepare` makes every refusal but those of files and of the budget, from public facts alone.
:mod:`geomdp.tables._release.publishing` makes these, and books the loss before any noise is drawn.
Only the draws see exact counts.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import identity as _identity
from geomdp._ground import notebook, parameters
from geomdp._ground.identity import Identity
from geomdp._noise import Noise, exact_loss
from geomdp.mechanism import GeometricMechanism, as_mechanism
from geomdp.mechanism import rehearse as rehearse_noise
from geomdp.tables._answers.estimates import check_bounded, workload_of
from geomdp.tables._columns.native import Library
from geomdp.tables._facts import about as _about
from geomdp.tables._facts import layout
from geomdp.tables._facts.classes import Classes, Thresholds
from geomdp.tables._facts.exact_sums import all_nodes, check_size, of_cells, received, sent
from geomdp.tables._math.workload import may_answer_nothing
from geomdp.tables._results import rest as _rest
from geomdp.tables._results.groups import NoisyGroups, threshold
from geomdp.tables._results.noisy_table import NoisyTable
from geomdp.tables._results.released import Released
from geomdp.tables._results.rest import Rest
from geomdp.tiers import TierPlan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from geomdp._ground.parameters import Integer
    from geomdp.accounting import Budget
    from geomdp.tables._facts.layout import Layout
    from geomdp.tables._facts.tier_names import Tier
    from geomdp.tables._math.products import Block

_Ints: TypeAlias = NDArray[np.int64]
#: The most empty cells that are drawn.
_MOST_EMPTY = 2**23
#: The most cells that noise is drawn for whichever are occupied.
_MOST_PADDED = 2**27
_NO_CELLS = np.empty(0, np.int64)


class Publishing(TypedDict, total=False):  # numpydoc ignore=PR02
    """The arguments of every release that are given by name; each is explained once.

    Parameters
    ----------
    budget, label, threads, corrects, save, rounded, about
        As in :meth:`geomdp.tables.Table.release`.

    """

    budget: Budget | None
    label: str | None
    threads: int | None
    corrects: Any
    save: str | PathLike[str] | Mapping[str, str | PathLike[str]] | None
    rounded: Integer | str | None
    about: Mapping[str, str] | None


def only(publishing: Publishing) -> dict[str, Any]:
    """Return the arguments of publishing, or refuse any other, which nothing else would name."""
    known = list(Publishing.__annotations__)
    for name in publishing:
        if name not in known:
            raise TypeError(f"{name} is not accepted by this release: give any of {known}")
    return dict(publishing)


class Release(NamedTuple):
    """The public facts of a release that is about to be made."""

    design: Layout
    mechanisms: Mapping[Block, Noise]
    label: str | None
    #: The least noisy counts that are published; None for whole tables.
    at_least: Thresholds | None
    threads: int | None
    identity: Identity
    #: The row for the groups left out, if there is one.
    rest: Rest | None = None
    #: What the publisher says about the table.
    about: Mapping[str, str] | None = None
    #: Its tier, if it is one of several precisions of one table.
    tier: Tier | None = None
    #: How many of the largest cells it names, without counts; 0 for counts.
    named: int = 0
    #: Of groups, how many cells get noise, unless more are occupied.
    padded: int = 0
    #: Whether the counts of another release choose its groups.
    chosen: bool = False

    def losses(self) -> tuple[Fraction | float, Counter[Fraction | float]]:
        """Return the loss of the whole release, and those of its noisy counts."""
        if self.named:
            [mechanism] = self.mechanisms.values()
            each = exact_loss(mechanism, mechanism.sensitivity // self.named)
            return exact_loss(mechanism, mechanism.sensitivity), Counter({each: self.named})
        whole = layout.loss(self.design, self.mechanisms)
        parts = layout.losses(self.design, self.mechanisms)
        if self.rest is not None:
            own = self.rest.loss(self.design)
            whole, parts[own] = whole + own, parts[own] + 1
        return whole, parts


def prepare(
    design: Layout,
    mechanism: GeometricMechanism | None,
    *,
    epsilon: Any = None,
    bounds: Any = None,
    at_least: Any = None,
    rest: Any = None,
    people: Any = None,
    tiers: Any = None,
    chosen: bool = False,
    **how: Any,
) -> Release:
    """Return a release, after all checks that public facts allow, those of its plans too."""
    padded = 0
    if people is not None:
        if at_least is None:
            raise TypeError("people is for at_least: without it, every cell gets noise")
        padded = min(parameters.at_least("people", people, 1) * design.l0, design.cells)
        if padded > _MOST_PADDED:
            raise ValueError(
                f"people = {people} is not accepted, who change {notebook.many(padded, 'cell')}: "
                f"give a number for at most {_MOST_PADDED} of them"
            )
    if rest is not None:
        if at_least is None:
            raise TypeError("rest is for at_least: without it, no group is left out")
        if mechanism is not None or epsilon is None:
            raise TypeError("rest takes a share of epsilon: give epsilon instead of a mechanism")
    row, epsilon = _rest.asked(design, rest, epsilon)
    mechanisms = layout.mechanisms_by(design, mechanism, epsilon, bounds, tiers)
    if at_least is not None:
        noise = mechanisms[design.blocks[-1]]
        at_least = threshold(design, at_least, noise, of_others=chosen)
        if not chosen:
            _check_shown(design, at_least, noise)
    else:
        check_size(design)
    _check_bounds(design, [each.bounds for each in mechanisms.values() if each.bounds is not None])
    for each in {id(each): each for each in mechanisms.values()}.values():
        each.certificate(np.int64)  # A mechanism without a plan for these counts is refused here,
        if tiers is None:
            rehearse_noise(as_mechanism(each), _NO_CELLS)  # and one that cannot draw.
    if at_least is None and may_answer_nothing([axis.rooted[0] for axis in design._axes]):
        workload_of(design._axes, mechanisms)  # Tables that answer no question are refused here.
    facts = {"at_least": at_least, "chosen": chosen, "rest": row, "padded": padded}
    return planned(design, mechanisms, **facts, **how)


def zeros(release: Release) -> list[_Ints]:
    """Return a draw of zeros: of a whole table, or of no groups."""
    if release.at_least is not None:
        return [np.zeros(int(release.rest is not None), np.int64), _NO_CELLS]
    design = release.design
    return [np.zeros(design.shape if design.tables is None else design.cells, np.int64)]


def _check_shown(design: Layout, at_least: Thresholds, mechanism: Noise) -> None:
    """Refuse a threshold that more empty cells are expected to reach than memory holds."""
    if mechanism.rate == math.inf:
        return
    plan = Classes(design._axes, at_least).plan(Fraction(mechanism.rate))
    if (many := math.ceil(sum(each.mean for each in plan.classes))) > _MOST_EMPTY:
        raise ValueError(
            f"at_least = {at_least} is not accepted, which {notebook.many(many, 'empty cell')} may "
            f"reach, of at most {_MOST_EMPTY}: give a greater one, as Design.threshold returns it"
        )


def _check_bounds(design: Layout, bounds: Sequence[tuple[int, int]]) -> None:
    """Refuse bounds of noisy counts for tables whose intervals do not hold with them."""
    if not bounds:
        return
    if design.tables is not None:
        raise ValueError("bounds are not accepted for a design with tables: release without bounds")
    if design.signed and max(bounds)[0] >= 0:
        # Intervals by bounds from 0 on take it that no true count is below 0.
        raise ValueError(
            f"bounds = {max(bounds)} are not accepted for sums of values that may be negative "
            f"({design.values}): give a lower bound below 0"
        )
    check_bounded(design._axes)


def planned(
    design: Layout,
    mechanisms: Mapping[Block, Noise],
    *,
    label: Any = None,
    threads: Any = None,
    corrects: Any = None,
    about: Any = None,
    count_id: str | None = None,
    budget: Any = None,  # noqa: ARG001 (it and files are asked when all is planned)
    save: Any = None,  # noqa: ARG001
    rounded: Any = None,  # noqa: ARG001
    at_least: Thresholds | None = None,
    **facts: Any,
) -> Release:
    """Return a release by these mechanisms, after a check of all that publishing states."""
    if label is not None:
        parameters.check_text("label", label)
    count = parameters.threads(threads) or None
    replaced: tuple[str, ...] = ()
    if corrects is not None:
        if not isinstance(corrects, Released):
            wanted = "the release to replace, such as geomdp.read returns"
            raise TypeError(parameters.foreign("corrects", corrects, wanted))
        if corrects.parts:
            raise ValueError(
                "corrects is a sum of releases, whose parts nobody would know to be replaced: "
                "correct each of them, and add them up again"
            )
        replaced = corrects.id, *corrects.corrects
    identity = Identity(_identity.fresh(), replaced, count_id)
    said = None if about is None else _about.checked(about)
    return Release(design, mechanisms, label, at_least, count, identity, about=said, **facts)


def draw(
    release: Release, occupied: tuple[_Ints, _Ints], chosen: NDArray[Any] | None = None
) -> list[_Ints]:
    """Return noisy counts, given the distinct cells with records, in order, and theirs.

    Those of groups are followed by their cells, which another draw may have chosen.
    """
    if release.at_least is not None:
        if chosen is None:
            cells, noisy = _reaching(release, release.at_least, occupied)
        else:
            [mechanism], cells = release.mechanisms.values(), received(chosen)
            exact = of_cells(occupied, cells)
            noisy = as_mechanism(mechanism).release(exact, threads=release.threads)
        if release.rest is not None:
            # The choice is made: what it left out is one sum, whichever groups these are.
            left = release.rest.mechanism.release(_rest.summed(occupied, cells))
            noisy = np.append(noisy, left)
        return [noisy, sent(cells)]
    exact = all_nodes(release.design, occupied)
    parts = release.design._parts
    noisy = np.empty_like(exact)
    for block, each in release.mechanisms.items():
        part = parts[block]
        noisy[part] = as_mechanism(each).release(exact[part], threads=release.threads)
    return [noisy]


def draw_tiers(tiers: Sequence[Release], occupied: tuple[_Ints, _Ints]) -> list[_Ints]:
    """Return the noisy counts of all tiers of one table, which are given from the coarsest on."""
    finest = tiers[-1]
    exact, parts = all_nodes(finest.design, occupied), finest.design._parts
    noisy = [np.empty_like(exact) for _ in tiers]
    for block, each in finest.mechanisms.items():
        assert isinstance(each, TierPlan)
        own = GeometricMechanism(each._epsilon, each.sensitivity, each.bounds)
        drawn = own.tiers(exact[parts[block]], each._epsilons[:-1], threads=finest.threads)
        for whole, counts in zip(noisy, drawn.values(), strict=True):
            whole[parts[block]] = counts
    return noisy


def made(
    release: Release,
    library: Library | None,
    drawn: Sequence[_Ints],
    identity: Identity,
    chosen_by: str | None = None,
) -> NoisyTable | NoisyGroups:
    """Return a release of what was drawn, of groups if it has a threshold."""
    noisy, *cells = drawn
    known = release.design, release.mechanisms, release.label, library, noisy
    at_least, about = release.at_least, release.about
    if at_least is None:
        return NoisyTable(*known, identity=identity, about=about, tier=release.tier)
    own = received(cells[0])
    groups = partial(NoisyGroups, *known, cells=own, at_least=at_least, identity=identity)
    return groups(rest=release.rest, about=about, chosen_by=chosen_by if release.chosen else None)


def _reaching(
    release: Release, at_least: Thresholds, occupied: tuple[_Ints, _Ints]
) -> tuple[_Ints, _Ints]:
    """Return the cells whose noisy counts reach their threshold, in order, and these counts.

    Cells without records are empty, whether or not a count of 0 stands beside them.
    """
    cells, records = (each[occupied[1] > 0] for each in occupied)
    [mechanism], classes = release.mechanisms.values(), Classes(release.design._axes, at_least)
    least = classes.least(cells)
    if mechanism.rate == math.inf:
        shown = records >= least
        return cells[shown], records[shown]
    plan = classes.plan(Fraction(mechanism.rate))
    threads = release.threads or 0
    noisy = plan.reach(records, least, release.padded, threads=threads)
    found = dict(zip(cells.tolist(), noisy.tolist(), strict=True))
    known, fallen = found.keys(), dict[int, int]()
    for number, (each, (values, words)) in enumerate(zip(plan.classes, plan.points(), strict=True)):
        places = [each.place(drawn) for drawn in words.tolist()]
        for cell, value in zip(classes.cells(number, places), values.tolist(), strict=True):
            if cell >= 0 and cell not in known:
                # The first of several points on a cell counts, and may be below the threshold.
                fallen.setdefault(cell, value * (value >= classes.thresholds[number]))
    found |= fallen
    chosen = sorted(cell for cell, value in found.items() if value)
    return (
        np.array(chosen, cells.dtype),
        np.array([found[cell] for cell in chosen], np.int64),
    )

"""What a page says about its numbers, for readers new to differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from geomdp._ground import parameters
from geomdp._ground.notebook import many
from geomdp.tables._facts import rounding
from geomdp.tables._publish.page.shown import Shown

#: How many rows are tried as an example, and how long the name of one may be.
_TRIED, _LONG = 100, 40
#: How many of the releases of a sum a page names.
_NAMED = 20


def number(value: float) -> str:
    """Return a number as readers see it: whole, with thousands separators and a minus sign."""
    return f"{round(value):,}".replace("-", "\N{MINUS SIGN}")


def between(lower: float, upper: float) -> str:
    """Return an interval as readers see it."""
    if math.isinf(lower):
        return "any number" if math.isinf(upper) else f"{number(upper)} or less"
    return (
        f"{number(lower)} or more" if math.isinf(upper) else f"{number(lower)} to {number(upper)}"
    )


def joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def how_to_read(facts: Mapping[str, Any], shown: Shown) -> list[str]:
    """Return how to read the page: a few sentences, with a row as the example."""
    if facts["top"] is not None:
        what = f"{facts['top']:,} largest groups" if facts["top"] > 1 else "largest group"
        return [
            f"The {what} in order, as chosen from counts with random noise, which protects "
            "privacy. A group of nearly the same size may be missing or stand in another place. "
            "The counts are not published."
        ]
    what = _counted(facts)
    noise = f"Random noise was added to every {what}, to protect privacy."
    # Of the first rows, one that is neither empty nor long.
    rows = [
        (row, ", ".join(shown.levels[label][row] for label in sheet.columns))
        for sheet in shown.sheets
        for row in sheet.rows[:_TRIED].tolist()
    ][:_TRIED]
    if not rows:
        return [noise, "No group reached the least count that is shown."]
    lower, upper = shown.ends()

    def worse(example: tuple[int, str]) -> tuple[bool, bool, bool]:
        row, name = example
        closed = np.isfinite([lower[row], upper[row]]).all()
        return not closed, bool(shown.numbers[row] <= 0), len(name) > _LONG

    row, name = min(rows, key=worse)
    ends = between(lower[row], upper[row])
    if " to " in ends:
        ends = f"between {ends.replace(' to ', ' and ')}"
    return [
        noise,
        f"For example, the number for {name or 'all'} is {number(shown.numbers[row])}; "
        f"with 95% confidence, the true {what} is {ends}.",
    ]


def meaning(facts: Mapping[str, Any], shown: Shown) -> list[str]:
    """Return what the numbers mean, whom epsilon protects and what was left out."""
    epsilon, ranked = Fraction(facts["epsilon"]), facts["top"] is not None
    found = []
    if facts["corrects"]:
        found.append(f"This table corrects an earlier one (id {facts['corrects'][0]}).")
    if not ranked:
        found += _numbers(facts, shown)
    if facts["tier"] is not None:
        found.append(_tiers(facts["tier"], epsilon))
    if facts["parts"]:
        found.append(_parts(facts["parts"]))
    found += [_loss_of(facts, epsilon), _limits(facts)]
    if facts["totals"]:
        known = (
            "The numbers add up to public totals, which the publisher states and which are"
            if facts["at_least"] is None
            else f"The total, {number(facts['totals'][0]['counts'][0])} with the rows that are not "
            "shown, is public: the publisher states it, and it is"
        )
        found.append(f"{known} not covered by the privacy loss.")
    if ranked:
        found.append(
            "You may use these names freely: nothing that you do with them reveals more about "
            "anyone."
        )
        return found
    alone = _alone(facts) and not facts["values"]
    which = "" if alone else f" are for the {_counted(facts)}s after these limits. They"
    return [
        *found,
        f"The intervals{which} allow for the noise, but not for errors in the data or for "
        "sampling.",
        *([] if shown.sums is None else [shown.sums]),
        "You may use these numbers freely: adding, comparing or downloading them reveals nothing "
        "more about anyone.",
    ]


def _counted(facts: Mapping[str, Any]) -> str:
    return "count" if facts["values"] is None else "value"


def _alone(facts: Mapping[str, Any]) -> bool:
    """Whether each record is an individual of its own."""
    return (
        facts["individual"] is None
        and facts["l0"] == 1
        and (facts["values"] is not None or facts["linf"] == 1)
    )


def _numbers(facts: Mapping[str, Any], shown: Shown) -> list[str]:
    """Return sentences about the noise, and about what was done to noisy counts."""
    what = _counted(facts)
    found = [
        "The noise is random, but of known size (discrete Laplace), so the numbers are not exact, "
        "but we can say how far off they may be: on average, at least 95 of 100 such 95% intervals "
        f"contain the true {what}. If you sort the rows by the numbers, the intervals become "
        "wider, so that all of them hold at once: rows that come first tend to be those that the "
        "noise has raised."
    ]
    values = shown.counts if shown.estimates is None else shown.estimates
    if shown.least is not None and (below := int((values < shown.least).sum())):
        found.append(
            f"Noise can carry a small {what} below zero, as it did in {many(below, 'row')} here. "
            f"No true {what} is negative, so the table shows 0, with the interval of a noisy "
            f"{what} of 0. The CSV file keeps the negative number, since sums would otherwise come "
            "out too high. Sums on this page use the numbers of the file."
        )
    if shown.estimates is not None:
        found.append(
            "The numbers shown are estimates, in whole numbers, from everything that was released "
            f"together. They are at least as accurate as the noisy {what}s in the CSV file, from "
            "which they can differ a little."
        )
    if facts["at_least"] is not None:
        by, least = facts["chosen_by"], _thresholds(facts["at_least"])
        whose = what if by is None else f"count in another table (id {by})"
        found.append(
            f"Only rows whose noisy {whose} is at least {least} are shown; "
            f"in some of them, the true {what} may be 0."
            + " Where no list says what occurs, such a row may be any text or number at random."
            * any(isinstance(axis.get("levels"), dict) for axis in facts["axes"].values())
            + " The last row is the sum of all rows left out, with noise of its own."
            * bool(facts["rest"])
        )
    if facts["rounded"] is not None:
        found.append(
            f"The noisy {what}s were rounded to {rounding.said(facts['rounded'])}, which the "
            "intervals allow for."
        )
    return found


def _thresholds(at_least: Any) -> str:
    """Return a threshold, or two, in words."""
    if not isinstance(at_least, list | tuple):
        return number(at_least)
    common, others = map(number, at_least)
    return f"{common} (words of a public list) or {others} (others)"


def _tiers(tier: Mapping[str, Any], epsilon: Fraction) -> str:
    finer = [_loss(x) for x in map(Fraction, tier["epsilons"]) if x > epsilon]
    told = (
        "This table was published at several levels of precision; this is the one called "
        f"“{tier['name']}”."
    )
    if not finer:
        return told
    one, which = ("A more precise one exists", "it, use it alone")
    if finer[1:]:
        one, which = "More precise ones exist", "any of them, use only the most precise"
    return f"{told} {one} (epsilon {joined(finer)}): if you have {which}."


def _parts(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return from which releases a sum was made, and whose loss is that of all."""
    told = [
        f"“{part['about'].get('title') or part['label'] or part['id']}” "
        f"(epsilon {_loss(Fraction(part['part_of'] or part['epsilon']))})"
        for part in parts
    ]
    if more := told[_NAMED:]:
        told = [*told[:_NAMED], f"{len(more):,} more"]
    return (
        f"Each number is the sum of the numbers of {many(len(parts), 'release')}: {joined(told)}. "
        "The privacy loss below is that of somebody who is in all of them; for somebody who can be "
        "in one of them alone, it is the epsilon of that one."
    )


def _loss_of(facts: Mapping[str, Any], epsilon: Fraction) -> str:
    odds = Fraction(math.exp(min(float(epsilon), 700.0)) * (1 + 2**-40))  # more than exp is off
    one = "record" if _alone(facts) else "individual"
    changes = f"the odds that a given {one} is in the data"
    if facts["neighbours"] == "change":
        changes = f"the odds between any two guesses about a given {one}"
    told = (
        f"The privacy loss, epsilon, is {_loss(epsilon)}: even for somebody who knows all other "
        f"records, this table changes {changes} by a factor of at most {_up(odds, 3)}."
    )
    if facts["part_of"] is not None:
        told += (
            " The rows are steps of a stream, whose privacy loss for one record is "
            f"{_loss(Fraction(facts['part_of']))} in all."
        )
    if facts["unit"] not in ("record", "individual"):
        told += f" Privacy is that of each “{facts['unit']}”."
    return told


def _limits(facts: Mapping[str, Any]) -> str:
    """Return sentences about what was kept of each individual, and which records are there."""
    values, l0, linf, l1 = (facts[key] for key in ("values", "l0", "linf", "l1"))
    sums = "" if values is None else "These are sums of values. "
    ends = None if values is None else f"from {number(values[0])} to {number(values[1])}"
    if _alone(facts):
        each = "Each record counts as one individual"
        if ends is not None:
            each += f", with a value {ends}; values beyond that were moved to the nearer end"
        return f"{sums}{each}.{_left_out(facts['axes'])}"
    if ends is not None and l1 is None:
        kept = f"contributes to at most {many(l0, 'cell')}, {ends} in each"
    elif ends is not None:
        kept = f"contributes at most {number(l1)} in all, in values {ends}"
    elif l1 is not None:
        kept = f"contributes at most {many(l1, 'record')}"
    elif (l0, linf) == (1, 1):
        kept = "is counted at most once"
    else:
        times = "at most once" if linf == 1 else f"at most {linf} times"
        kept = f"is counted in at most {many(l0, 'cell')}, {times} in each"
    if facts["individual"] is None:
        told = f"The publisher states that each individual {kept}."
    else:
        told = f"Each individual {kept}; anything beyond that was left out."
    return f"{sums}{told}{_left_out(facts['axes'])}"


def _left_out(axes: Mapping[str, Any]) -> str:
    """Return sentences about which records are in the table, by its columns without `other`."""
    alone = {label: axis["complete"] for label, axis in axes.items() if not axis["other"]}
    kinds = (
        (False, "Only records with one of the values that this table may show are in it, of"),
        (True, "As the publisher states, all records have one of the listed values of"),
    )
    found = [(text, [x for x, all_in in alone.items() if all_in is kind]) for kind, text in kinds]
    return "".join(f" {text} {joined(labels)}." for text, labels in found if labels)


def _loss(number: Fraction) -> str:
    """Return a privacy loss as a decimal that equals it, or rounded up if there is no short one."""
    return parameters.text(number) if parameters.is_typed(number) else _up(number, 4)


def _up(number: Fraction, digits: int) -> str:
    """Return a positive number with so many digits, rounded up."""
    digits -= 1 + math.floor(math.log10(number))
    return f"{math.ceil(number * Fraction(10) ** digits) / 10.0**digits:.4g}"

"""Releases of every kind, as readers that share no code with the library meet them."""

import datetime
from typing import Any

import numpy as np
import pandas as pd

from geomdp.tables import Design, Hierarchy, NoisyGroups, Words

#: What a publisher may say, as nobody should.
ABOUT = {
    "title": "</script><b>x</b>",
    "description": "{{script}}\n<!--<script>",
    "source": "&amp; \u2028",
    "period": 60 * "long",
    "publisher": "</dl><a href='//x'>",
    "contact": "\"'><b>é</b>",
    "licence": "\\u003c]]>",
}
PARENTS = {"A": "North", "B": "North", "C": "South", "South": "all", "North": "all"}
TREE = Hierarchy(PARENTS, leaves_only=True)
NAMED = Hierarchy.from_paths(
    ["all/North/A", "all/South/South", "all/South/C"],
    leaves_only=True,
    labels={"C": "Harbour", "North": "Northern part"},
)
#: The first characters of all texts that spreadsheets run, in full width too.
RUN = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20\ufeff"
TEXTS = ["</script><b>x", "=1+1", "<!--", "a,\"b'", "\na\nb", "'=2", "&amp;", "\uff1dé", "-1", " "]
DAYS = [datetime.date(2026, 1, 1 + n) for n in range(28)]
PEOPLE = pd.DataFrame(
    {
        "area": ["A", "B", "C"] * 400,
        "sex": ["f", "m", "f", "f"] * 300,
        "age": [*range(100)] * 12,
        "text": TEXTS * 120,
        "day": [DAYS[n % 28] for n in range(1200)],
        "well": [True, False, True] * 400,
        "size": [0.5, 1e-7, 3.0] * 400,
    }
)
DESIGNS = {
    "flat": Design({"area": ["A", "B", "C"], "sex": ["f", "m"]}),
    "margins": Design({"area": ["A", "B", "C"], "sex": ["f", "m"]}, margins="all"),
    "other": Design({"area": ["A"], "sex": ["f"]}, other="else", margins={"area": "any"}),
    "tree": Design({"area": TREE, "sex": ["f", "m"]}),
    "labels": Design({"area": NAMED}),
    "open tree": Design({"area": Hierarchy(PARENTS)}, other="else"),
    "ages": Design({"age": [*range(100), 2**60]}, l1=3),
    "days": Design({"day": DAYS}),
    "texts": Design({"text": [*TEXTS, None], "sex": ["f", "m"]}, neighbours="change"),
    "no columns": Design({}),
    "combinations": Design(
        {
            ("area", "size", "day"): [
                ("A", 0.5, DAYS[0]),
                ("B", 1e-7, DAYS[1]),
                ("A", 3.0, DAYS[0]),
            ],
            "sex": ["f", "m"],
        },
        other={("area", "size", "day"): ("else", 9.5, DAYS[27])},
        margins={"sex": "all"},
    ),
    "bools": Design({"well": [True, False], "size": [0.5, 1e-7, 3.0]}),
}
RELEASED: dict[str, Any] = {
    name: design.count(PEOPLE).release(
        epsilon="0.5", label=name, about=ABOUT if name == "texts" else None
    )
    for name, design in DESIGNS.items()
}
#: Sums below 0, around it and above it.
RELEASED["signed sums"] = (
    Design({"area": ["A", "B", "C"], "sex": ["f", "m"]}, margins={"area": "any"})
    .sum(PEOPLE.assign(n=PEOPLE["age"] % 3 - PEOPLE["area"].ne("A") - 1), "n", bounds=(-2, 1))
    .release(epsilon="0.5", label="signed sums")
)
#: Noisy counts below 0, which are shown as 0 with the interval of 0.
RELEASED["below 0"] = DESIGNS["margins"].count(PEOPLE).release(epsilon=0.5, label="below 0")
RELEASED["below 0"].counts[:] = [[-90, -20, -70], [-80, -60, -30], [0, 1, -1], [-7, 40, -47]]
RELEASED["below 0"].__dict__.pop("_fitted", None)
RELEASED["groups"] = DESIGNS["texts"].count(PEOPLE).release(epsilon=0.5, at_least=20, about=ABOUT)
RELEASED["groups and rest"] = (
    DESIGNS["texts"].count(PEOPLE).release(epsilon=1, at_least=60, rest=("rest", "1/4"))
)
#: Levels by rules, with two thresholds and with one.
AREAS = Words("CBA-=", 40, common=["B", "ABBA"])
RELEASED["groups of words"] = (
    Design({"area": AREAS, "sex": ["f", "m"]}, other={"area": "other"})
    .count(PEOPLE.assign(area=PEOPLE["area"].where(PEOPLE["age"] > 9, "?")))
    .release(epsilon=1, at_least=(4, 80), rest=({"area": "rest", "sex": "all"}, "1/4"))
)
RELEASED["groups of integers"] = (
    Design({"age": range(-(2**63), 2**63)}, complete=True)
    .count(PEOPLE[["age"]] // 50)
    .release(epsilon="0.5", at_least=100)
)
RELEASED["groups of combinations"] = (
    Design({("area", "sex"): [("A", "f"), ("C", "f"), ("B", "m")]})
    .count(PEOPLE)
    .release(epsilon=1, at_least=20, rest=({"area": "-", "sex": "all"}, "1/4"))
)
#: Sums of the groups that a count has chosen: of values from 0 on, and of either sign.
for sign, bounds in {"": (0, 9), "signed ": (-9, 5)}.items():
    design = Design({"area": AREAS, "sex": ["f", "m"]}, other={"area": "other"})
    pair = design.sum_and_count(PEOPLE.assign(n=PEOPLE["age"] % 3 - 2), "n", bounds=bounds)
    chosen = pair.release(epsilon=2, at_least=(4, 80), rest=({"area": "rest", "sex": "all"}, "1/4"))
    RELEASED[f"{sign}sums of groups"] = chosen.sums
RELEASED["rounded sums of groups"] = RELEASED["signed sums of groups"]._to_multiples(5)
RELEASED["top"] = DESIGNS["texts"].count(PEOPLE).top(3, epsilon=1, about=ABOUT)
RELEASED["bounds"] = DESIGNS["flat"].count(PEOPLE).release(epsilon=0.5, bounds=(0, 300))
TIERS = {"public": "0.1", "researchers": 1}
RELEASED |= {
    f"tier {name}": each
    for name, each in DESIGNS["margins"].count(PEOPLE).release(tiers=TIERS).items()
}
RELEASED["tier with bounds"] = (
    DESIGNS["flat"].count(PEOPLE).release(tiers=TIERS, bounds=(0, 300))["public"]
)
RELEASED["rounded"] = DESIGNS["flat"].count(PEOPLE).release(epsilon=0.5)._to_multiples(10)
RELEASED["rounded margins"] = RELEASED["margins"]._to_multiples(5)
RELEASED["rounded groups"] = RELEASED["groups"]._to_multiples(10)
RELEASED["rounded groups and rest"] = RELEASED["groups and rest"]._to_multiples(5)
RELEASED["rounded middles"] = RELEASED["margins"]._to_multiples("middle of 6")
RELEASED["rounded bounds"] = RELEASED["bounds"]._to_multiples(7)
#: The sum of three releases, one of them rounded and one with more tables.
RELEASED["sum"] = RELEASED["rounded"].plus(
    RELEASED["margins"], DESIGNS["flat"].count(PEOPLE).release(epsilon="1.5", about=ABOUT)
)
RELEASED["rounded sum"] = RELEASED["sum"]._to_multiples(5)


def least(rates: list[float], alpha: float) -> int:
    """Return the least t with P(|Z1 + ... + Zn| > t) <= alpha, by convolution."""
    noise, law = np.arange(-400, 401), np.ones(1)
    for rate in rates:
        law = np.convolve(law, np.tanh(rate / 2) * np.exp(-rate * np.abs(noise)))
    middle = law.size // 2
    inside = law[middle] + np.concatenate([[0], 2 * np.cumsum(law[middle + 1 :])])
    return int(np.flatnonzero(1 - inside <= alpha)[0])


def half(rounded: Any) -> int:
    """Return the most that rounding moved a count."""
    return int(str(rounded or 0).removeprefix("middle of ")) // 2


def ends_of_each(release: Any, alpha: Any) -> Any:
    """Return the ends of intervals of the noisy counts by themselves, by row.

    Unless values may be negative, they are not below 0, and a noisy count below 0 has those of 0.
    """
    if isinstance(release, NoisyGroups):
        return release.intervals(alpha)[["lower", "upper"]].to_numpy()
    axes, ends = release.design._axes, np.zeros((*release.design._axes.shape, 2), np.int64)
    if release.parts:
        rates = [float(rate) for each in release.parts for rate in [each.mechanisms[0, 0].rate]]
        off = release._moved + half(release._rounded) + least(rates, float(alpha))
        counts = release.frame.iloc[:, -1].to_numpy()
        return np.stack([counts - off, counts.clip(0) + off], 1).clip(0)
    for block, mechanism in release.mechanisms.items():
        at = axes.block(block)
        off, bounds = half(release._rounded), mechanism.bounds or (-np.inf, np.inf)
        for side, moved in enumerate((-off, off)):
            counts = release.counts[at].clip(None if release.design.signed else 0)
            before = np.clip(counts + moved, *bounds).astype(np.int64)
            ends[at][..., side] = mechanism.confidence_interval(before, alpha)[side]
    return ends[axes.shown].clip(None if release.design.signed else 0).reshape(-1, 2)

"""The command budget: a ledger made, shown, and reported to auditors."""

from __future__ import annotations

import argparse
import errno
import os
from collections import Counter
from fractions import Fraction
from typing import Any

from geomdp.accounting import Budget
from geomdp.accounting._statement import statement
from geomdp.cli._arguments import Command, Option, UsageError, loss, positive, refusing, shared
from geomdp.cli._delimited import DataError


def ledger(path: str, make: str, **limits: Any) -> Budget:
    """Return the budget of a ledger that exists, or of a new one with these limits.

    Without them, the options that make one are named.
    """
    if not limits and not os.path.lexists(path):
        raise FileNotFoundError(errno.ENOENT, f"no such ledger: make it with {make}", path)
    try:
        return Budget.open(path, **limits)
    except ValueError as error:
        # A limit, or a file that is none.
        raise (ValueError if limits else DataError)(str(error)) from None


def _budget(given: argparse.Namespace) -> str:
    losses: Counter[Fraction] = Counter()
    for each, n in given.losses or ():
        losses[Fraction(each)] += n
    asked = {
        "epsilon": given.epsilon,
        "rho": given.rho,
        "delta": given.delta,
        "losses": losses or None,
        "groups": given.groups,
    }
    limits = {name: value for name, value in asked.items() if value is not None}
    if limits.keys() == {"groups"}:
        raise UsageError("--groups are for a new ledger: give its --epsilon or --rho too")
    if given.report is None:
        with refusing(given):
            return _shown(ledger(given.ledger, "--epsilon or --rho", **limits))
    from geomdp.tables._reading import report  # noqa: PLC0415 (other commands read no release)

    with refusing(given):
        out, *files = given.report
        report.free("--report", out)
        budget = ledger(given.ledger, "--epsilon or --rho", **limits)
    try:
        report.report(budget, out, files)
    except ValueError as error:
        raise DataError(str(error)) from None
    return ""


def _shown(budget: Budget) -> str:
    """Return what is left, then the state of a budget and its releases, one a line."""
    state = statement(budget)
    lines = [str(budget.remaining), f"Limit: {state.limit}", f"Spent: {state.spent}"]
    lines += [f"Left: {state.left}"]
    lines += [f"Left for {name}: {left}" for name, _, left in state.groups]
    for each, (lost, _) in zip(state.bookings, state.losses, strict=True):
        label = "" if each.label is None else f", {each.label}"
        groups = "" if each.groups is None else f" ({', '.join(each.groups)})"
        lines += [f"{each.time:%Y-%m-%d %H:%M:%S} UTC: epsilon {lost}{label}{groups}"]
    return "".join("".join(c if c.isprintable() else " " for c in x) + "\n" for x in lines)


BUDGET = Command(
    _budget,
    "make, show or report a budget that is kept in a file",
    """\
Show a budget that is kept in a file, its ledger: what is left, on the first line,
then the limit, what is spent, and the time, privacy loss and label of each
release. With --epsilon or --rho, a ledger that does not exist is made; one that
exists must have the same limits.

With --report, write a page for auditors instead. It has the same facts, and the
names and SHA-256 digests of published files, each beside the release that has its
id. A FILE ends with .csv or .parquet, and its description is beside it. One that
this budget did not pay for is listed apart. The page has no count, but it has the
labels. OUT ends with .html and must not exist.

A ledger that exists is read and not changed, and none of its limits is needed.
Releases are booked in it by geomdp count --budget, and in Python.""",
    "2026.jsonl --report report.html 2026-10.csv",
    {
        "ledger": Option("LEDGER", "the file of a budget"),
        "--epsilon": Option("E", "the limit of the sum of all losses", {"type": positive}),
        "--rho": Option(
            "R",
            "instead, the limit under zero-concentrated differential privacy",
            {"type": positive},
        ),
    }
    | shared("--delta")
    | {
        "--losses": Option(
            "E[xN]",
            "for a delta above 0, the planned loss of a release, or of each of N releases; may be "
            "repeated",
            {"type": loss, "action": "append"},
        ),
        "--groups": Option(
            "NAME",
            "a group with nobody in common with the others; may be repeated",
            {"action": "append"},
        ),
        "--report": Option(
            ("OUT", "FILE"), "the page to write, and published files", {"nargs": "+"}
        ),
    },
)

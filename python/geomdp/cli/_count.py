"""The command count: from the records or the counts of a CSV file to a published table."""

from __future__ import annotations

import argparse
import os
import re
from fractions import Fraction
from functools import partial
from typing import Any

from geomdp.cli._arguments import (
    DELIMITERS,
    STATED,
    Command,
    Option,
    UsageError,
    by_name,
    flag,
    positive,
    refusing,
    shared,
    whole,
)
from geomdp.cli._budget import ledger
from geomdp.cli._delimited import DataError
from geomdp.cli._files import reading
from geomdp.tables._facts import about, tier_names
from geomdp.tables._facts.fields import KEYWORDS
from geomdp.tables._publish import published


class _TreeFile(str):
    """The name of a file of a tree, among those of levels."""

    __slots__ = ()


class _ListFile(str):
    """The name of a file of combinations, among those of levels."""

    __slots__ = ()


class _Alphabet(str):
    """An alphabet and a length of words, among files of levels."""

    __slots__ = ()


def _count(given: argparse.Namespace) -> str:
    """Count, and write the release with its description."""
    try:
        from geomdp.cli import _records  # noqa: PLC0415 (other commands need no narwhals)
    except ModuleNotFoundError as error:
        raise DataError(f"{error}: pip install narwhals pandas") from None

    how, levels = _publishing(given), _levels(given)
    stated = {name: getattr(given, name) for name in KEYWORDS if hasattr(given, name)}
    stated |= {name: by_name(given, f"--{name}") or None for name in ("margins", "other")}
    stated |= {"complete": tuple(given.complete or ()), "name": given.name or given.counts}
    stated["individual"] = given.individual and tuple(given.individual)
    made: Any = _records.Design
    design = partial(made, **{name: each for name, each in stated.items() if each is not None})
    if levels:
        with refusing(given):
            epsilon = given.epsilon or [*how["tiers"].values()][-1]
            known = design(levels)
            known.mechanisms_for(epsilon, given.bounds, tiers=how.get("tiers"))
            if given.spurious is not None:
                how["at_least"] = known.threshold(epsilon, Fraction(given.spurious))
    with reading(given.source) as source:
        try:
            with refusing(given):
                table = _records.table(
                    source,
                    design,
                    levels,
                    delimiter=DELIMITERS[given.delimiter],
                    counts=given.counts,
                    not_totals=given.not_totals,
                )
                table.release(**how)
        except ModuleNotFoundError as error:
            raise DataError(f"{error}: pip install narwhals pandas") from None
    return ""


def _publishing(given: argparse.Namespace) -> dict[str, Any]:
    """Return how to release and publish a table, after the checks that need no data."""
    said, tiers = by_name(given, "--about"), by_name(given, "--tiers")
    if given.budget is None and given.limit is not None:
        raise UsageError("--limit is for the ledger of --budget: give both")
    if given.budget is not None and given.label is None:
        raise UsageError(
            "--budget needs --label: a ledger books each label once, so that a second run of this "
            "release is refused, whatever OUT is, instead of paid for again"
        )
    if given.spurious is not None and (given.at_least is not None or tiers or not given.by):
        raise UsageError("--spurious is for --by and --epsilon, and instead of --at-least")
    files = {name: _of_tier(given.target, name) for name in tiers}
    with refusing(given):
        about.checked(said)
        if tiers:
            tier_names.checked(tiers)
        for path in files.values() or [given.target]:
            try:
                published.free("OUT", path)
            except FileExistsError:
                if given.budget is None:  # With one, it may be of a release that was interrupted.
                    raise
    how = {"label": given.label, "rounded": given.rounded, "about": said or None}
    how |= {"bounds": given.bounds, "save": files or given.target, "at_least": given.at_least}
    how |= {} if given.people is None else {"people": given.people}
    how |= {"tiers": tiers} if tiers else {"epsilon": given.epsilon}
    return {**how, "budget": None if given.budget is None else _ledger(given)}


def _ledger(given: argparse.Namespace) -> Any:
    """Return the budget of --budget, a new one if --limit says so."""
    limits = {} if given.limit is None else {"epsilon": given.limit}
    try:
        return ledger(given.budget, "--limit, or geomdp budget", **limits)
    except ValueError as error:
        raise UsageError(re.sub("^epsilon ", "--limit ", str(error))) from None


def _of_tier(path: str, tier: str) -> str:
    """Return the file of a tier: its name stands before the ending of OUT."""
    if os.path.basename(tier) != tier:
        raise UsageError(
            f"--tiers {tier!r} is not accepted: give a name without a slash, since it is part of "
            "the name of a file"
        )
    start, end = os.path.splitext(path)
    return f"{start}-{tier}{end}"


def _levels(given: argparse.Namespace) -> dict[Any, Any]:
    """Return the levels or the tree of each column; none for counts whose rows are public."""
    by, files = given.by or [], given.levels or []
    if len(by) != len(files) or len(set(by)) < len(by):
        raise UsageError(
            "--by and --levels, --tree, --combinations or --words: give each column once, with the "
            "file of its levels, of its tree or of combinations, or with an alphabet"
        )
    if not by and given.counts is None:
        raise UsageError("give --by for each column, or --counts for a file of counts")
    if (given.root is not None or given.leaves_only) and not any(
        isinstance(path, _TreeFile) for path in files
    ):
        raise UsageError("--root and --leaves-only are for a --tree: give one")
    if given.common is not None and sum(isinstance(path, _Alphabet) for path in files) != 1:
        raise UsageError("--common is for the words of one --words: give one")
    levels: dict[Any, Any] = {}
    for name, path in zip(by, files, strict=True):
        if isinstance(path, _TreeFile):
            columns, tree = _tree(path, given)
            levels[columns if len(columns) > 1 and name == "/".join(columns) else name] = tree
        elif isinstance(path, _ListFile):
            columns, rows = _combinations(path, given)
            if name != "/".join(columns):
                raise UsageError(
                    f"--by {name!r} is not accepted for --combinations {path!r}: give the names in "
                    "its header, two or more and each once, with / between them"
                )
            levels[columns] = rows
        elif isinstance(path, _Alphabet):
            levels[name] = _words(path, given)
        else:
            levels[name] = _lines(path)
    return levels


def _lines(path: str) -> list[str]:
    """Return the lines of a file of levels."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read().splitlines()
    except UnicodeDecodeError:
        raise DataError(f"{path}: it is not in UTF-8") from None


def _words(text: str, given: argparse.Namespace) -> Any:
    """Return the words of an alphabet and a length, with the common ones of a file."""
    from geomdp.cli import _records  # noqa: PLC0415 (other commands need no narwhals)

    alphabet, _, longest = text.rpartition(":")
    if not re.fullmatch("[0-9]{1,4}", longest):
        raise UsageError(f"--words: {text!r} is not ALPHABET:N, such as abcdefghij:20")
    common = [] if given.common is None else _lines(given.common)
    with refusing(given):
        return _records.Words(alphabet, int(longest), common=common)


def _tree(path: str, given: argparse.Namespace) -> tuple[tuple[str, ...], Any]:
    """Return the tree of a CSV file, and the names of its columns."""
    from geomdp.cli import _records  # noqa: PLC0415 (other commands need no narwhals)

    with reading(path) as source, refusing(given):
        return _records.hierarchy(
            source,
            delimiter=DELIMITERS[given.delimiter],
            root=given.root,
            leaves_only=given.leaves_only,
        )


def _combinations(path: str, given: argparse.Namespace) -> tuple[tuple[str, ...], Any]:
    """Return the combinations of a CSV file, and the names of its columns."""
    from geomdp.cli import _records  # noqa: PLC0415 (other commands need no narwhals)

    with reading(path) as source, refusing(given):
        return _records.combinations(source, delimiter=DELIMITERS[given.delimiter])


def _labels(text: str) -> Option:
    return Option(("NAME", "LABEL"), text, {"nargs": 2, "action": "append"})


COUNT = Command(
    _count,
    "count the records of a CSV file, and publish the noisy counts",
    """\
Count the records of a CSV file by columns, add noise, and write the noisy counts
with a description, which geomdp.read, R and the page understand. OUT ends with
.csv (its description is OUT.json), .parquet or .html, and must not exist.

Follow each --by with its --levels, a file with one level a line, its --tree, its
--combinations, or its --words. All are public, so do not take them from the
records. A level without records counts 0, and records with other levels are not
counted, unless --other names a row for them.

If not all combinations of some columns can occur, --combinations is a CSV file
with these columns and a row for each combination that can. The NAME of --by is
then the names of these columns with / between them, such as city/kind.

A tree is a CSV file with a column of names for each of its depths, from the root
down, and a row for each leaf; empty cells, wherever they are, make a shorter
path. A column "label" may give the text that readers see for a node, for inner
nodes in rows of their own. If the first column has several names, --root names
the sum of all of them. The NAME of --by is then a column of IN with the names or
paths of nodes or, if IN has a column for each depth too, the names of these
columns with / between them, such as country/region/tract. With --leaves-only,
records of inner nodes are not counted, and estimates add up.

With --at-least N or --spurious N, only groups with large noisy counts are
published. A column may then have --words instead of a list: an alphabet, a colon
and the most characters, such as abcdefghijklmnopqrstuvwxyz:20. Any word of these
characters may appear; bring text to lower case first. --common is a public list
of words, one a line, which --spurious gives a lower threshold than others.

If the records have been counted already, as by GROUP BY, --counts names the
column that says how many records each row stands for. Without --by, the other
columns of IN are then the columns of the table, and what they contain must be
public.

Without --individual, each record is one individual. With it, an individual counts
in at most --l0 cells, chosen at random, with at most --linf records in each, or
has at most --l1 records in all cells together. A budget adds up the losses of one
--unit, the word for whom epsilon protects. Name with --complete the columns in
which, as you state, every record has a level; then readers may combine the table
with one without these columns.

Epsilon is the privacy loss of the whole table for one individual. With --tiers,
readers get files of several precisions, such as OUT-public.csv, for the loss of
the most precise one. Every run draws fresh noise and costs epsilon again.
--budget books it in a ledger, under its --label, before any noise is drawn, or
refuses it; a second run with the same label is refused. --limit makes the ledger
if there is none yet. All cells are read as text, and all of IN is held in memory.
This needs geomdp[tables] and pandas, Polars or PyArrow.""",
    "visits.csv noisy.csv --by sex --levels sexes.txt --epsilon 0.5",
    shared("source", "target")
    | {
        "--by": Option(
            "NAME",
            "a column to count by; may be repeated, each with its --levels, --tree, --combinations "
            "or --words",
            {"action": "append"},
        ),
        "--levels": Option(
            "FILE", "a file with the levels of a column, one a line", {"action": "append"}
        ),
        "--tree": Option(
            "FILE",
            "a CSV file with the tree of a column",
            {"action": "append", "dest": "levels", "type": _TreeFile},
        ),
        "--combinations": Option(
            "FILE",
            "a CSV file with the combinations of some columns that can occur",
            {"action": "append", "dest": "levels", "type": _ListFile},
        ),
        "--words": Option(
            "ALPHABET:N",
            "the characters of the words of a column, and the most of them in a word",
            {"action": "append", "dest": "levels", "type": _Alphabet},
        ),
        "--common": Option("FILE", "a file with a public list of words, one a line"),
        "--spurious": Option(
            "N",
            "publish groups alone: those that at most N empty ones are expected to be among",
            {"type": positive},
        ),
        "--people": Option(
            "N",
            "with --at-least or --spurious, a public number of individuals, whose cells the time "
            "does not tell apart",
            {"type": whole},
        ),
        "--root": Option(
            "NAME", "a name for the sum of all, for a tree with several nodes at its top"
        ),
        "--leaves-only": flag("every record belongs to a leaf of its tree"),
        "--other": _labels("the label of a row for all other values of a column; may be repeated"),
        "--complete": Option(
            "NAME",
            "a column in which every record has one of the levels; may be repeated",
            {"action": "append"},
        ),
        "--margins": _labels(
            "the label of sums over a column, which get noise of their own; may be repeated"
        ),
        "--counts": Option("NAME", "the column of records that have been counted already"),
        "--not-totals": Option(
            "LEVEL",
            "a level that is named like a total and is none; may be repeated",
            {"action": "append"},
        ),
        "--tiers": Option(
            ("NAME", "E"),
            "a name and an epsilon, for a table at several precisions: repeat it, with the least "
            "epsilon first",
            {"nargs": 2, "action": "append"},
            either=True,
        ),
    }
    | shared("--epsilon", "--bounds")
    | STATED
    | {
        "--budget": Option("FILE", "the ledger of a budget, which books the release or refuses it"),
        "--limit": Option("E", "the epsilon of a new ledger", {"type": positive}),
    }
    | shared("--delimiter"),
)

"""A report of a budget for auditors: what was released, in which files, and what is left."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from geomdp._ground import new_file, parameters
from geomdp.accounting._bookings import now
from geomdp.accounting._statement import Statement, statement
from geomdp.tables._facts import about as _about
from geomdp.tables._publish import formats, page, published
from geomdp.tables._reading import table_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike
    from pathlib import Path

    from geomdp.accounting import Budget

_EXPLAINED = (
    "Epsilon bounds the privacy loss: with or without the records of one individual, the "
    "probability of any published table differs by a factor of at most exp(epsilon). The losses of "
    "releases add up, and the budget refuses a release that would exceed its limit.",
    "A file is listed beside the release whose id it states, and a sum of releases beside each of "
    "them. Each was read and checked when this report was made; if the digest of your copy, as "
    "sha256sum prints it, is the same, it is the same file.",
    "A budget knows only the releases that it was told of, and this report only the files that it "
    "was given. It contains no counts, neither exact nor noisy ones.",
)


class _File(NamedTuple):
    """A published file."""

    #: The id of its release; of a sum, those of all that were added up.
    ids: frozenset[str]
    name: str
    label: str
    loss: str
    digest: str


def report(
    budget: Budget,
    path: str | PathLike[str],
    files: Iterable[str | PathLike[str]] = (),
    *,
    overwrite: bool = False,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write a page for auditors about a budget: its releases, their files, and what is left.

    The page works in any browser without a network, and has no scripts. It states the limit, what
    is spent and what is left, for each group too; the time, the label and the privacy loss of each
    release; and the names and SHA-256 digests of the files that have the id of a release. Files
    that this budget did not pay for are listed apart. The page has no counts, but it has the
    labels, the groups and the names of files, so keep secrets out of these.

    Parameters
    ----------
    budget : Budget
        Such as ``accounting.Budget.open("2026.jsonl")``, which needs neither the limits of a ledger
        that exists nor permission to write it. From :meth:`geomdp.accounting.Budget.group`, the
        report is about the individuals of these groups alone.
    path : path
        Ends in ``.html``.
    files : iterable of paths
        Published files, which end in ``.csv`` or ``.parquet``, with their descriptions beside them.
    overwrite : bool
        Whether a file of this name may be replaced.
    about : mapping of names to texts, optional
        What to say about the report, as of :meth:`NoisyTable.save`: its `title`, `period`,
        `contact` and so on.

    Raises
    ------
    FileExistsError
        If the file exists and `overwrite` is False.
    ValueError
        If the path has another ending, or a file is damaged, edited, or not a release.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from geomdp import accounting, tables
    >>> table = tables.count(pd.Series(["no", "yes"], name="sick"), ["yes", "no"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger, file, page = (f"{folder}/{x}" for x in ("a.jsonl", "may.csv", "a.html"))
    ...     budget = accounting.Budget.open(ledger, epsilon=6)
    ...     noisy = table.release(epsilon=0.5, budget=budget, label="May", save=file)
    ...     tables.report(accounting.Budget.open(ledger), page, [file])
    ...     text = pathlib.Path(page).read_text()
    >>> [each in text for each in ("epsilon 5.5", "May", "may.csv")]
    [True, True, True]

    """
    said = {} if about is None else _about.checked(about)
    parameters.check_bool("overwrite", overwrite)
    if not parameters.has_items(files):
        raise TypeError(parameters.foreign("files", files, "several paths"))
    target = free("path", path, overwrite=overwrite)
    found = [_read_file(each) for each in files]
    state = statement(budget)
    whole = page.plain(said.get("title") or "Privacy budget", said, _sections(state, found))
    with new_file.new_file(str(target), overwrite=overwrite) as file:
        file.write(whole)


def free(name: str, path: Any, *, overwrite: bool = False) -> Path:
    """Return the path of a page to write, given as the parameter of this name, or refuse it."""
    target, kind = published.free(name, path, overwrite=overwrite)
    if kind.holds is None:
        raise ValueError(parameters.refusal(name, str(path), "a name that ends in .html"))
    return target


def _read_file(path: Any) -> _File:
    source, _ = formats.of("files", path, to_read=True)
    release, _, digest = table_file.opened(source)
    # A file's name may be no text.
    name = os.fsencode(source.name).decode(errors="replace")
    loss, shown = str(release.privacy_loss()), digest.removeprefix("sha256:")
    if (tier := release._tier) is not None:
        name += f" (the tier {tier.name}, epsilon {loss})"
    ids = frozenset(each.id for each in release.parts or (release,))
    return _File(ids, name, release.label or "", loss, shown)


def _sections(state: Statement, files: list[_File]) -> dict[str, str]:
    """Return the sections of a report, as HTML by their headings."""
    facts = {
        "Limit": state.limit,
        "Spent": state.spent,
        "Left": state.left,
        "Releases": str(len(state.bookings)),
        "As of": f"{now():%Y-%m-%d %H:%M:%S} UTC",
    }
    if (who := next((x.protects for x in state.bookings if x.protects), None)) is not None:
        facts["Protects"] = str(who)
    if state.digest is not None:
        facts["Last digest of the ledger"] = state.digest
    sections = {"The budget": page.listed(facts)}
    if state.groups:
        sections["Groups"] = page.table(["Group", "Spent", "Left"], state.groups)
    sections["Releases"] = page.table(*_releases(state, files))
    paid = {own for each in state.bookings for own in each.ids}
    others = [each[1:] for each in files if not each.ids <= paid]
    if others:
        names = ["File", "Label", "Privacy loss", "SHA-256"]
        sections["Files that this budget did not pay for"] = page.table(names, others)
    return sections | {"What does this mean?": page.paragraphs(_EXPLAINED)}


def _releases(state: Statement, files: list[_File]) -> tuple[list[str], list[list[str]]]:
    """Return the names of columns, and a row for each release and file."""
    names = ["Booked (UTC)", "Label", "Groups", "Privacy loss", "Cost", "File", "SHA-256"]
    rows = []
    for booking, losses in zip(state.bookings, state.losses, strict=True):
        groups = "all" if booking.groups is None else ", ".join(booking.groups)
        time = f"{booking.time:%Y-%m-%d %H:%M:%S}"
        own = [(each.name, each.digest) for each in files if not each.ids.isdisjoint(booking.ids)]
        rows += [[time, booking.label or "", groups, *losses, *each] for each in own or [("", "")]]
    shown = [
        place
        for place, name in enumerate(names)
        if (name != "Groups" or state.groups)
        and (name != "Cost" or any(loss != cost for loss, cost in state.losses))
    ]
    return [names[place] for place in shown], [[row[place] for place in shown] for row in rows]

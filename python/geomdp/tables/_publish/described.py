"""A release as a file: noisy counts, and all that a reader needs (``docs/format.md``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geomdp.tables._columns.native import Coded
from geomdp.tables._publish import page as _page
from geomdp.tables._publish import published
from geomdp.tables._publish.formats import Column
from geomdp.tables._publish.page.shown import Shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Said(NamedTuple):
    """What a file says about a release beside its rows."""

    #: The object "geomdp" of the description.
    facts: Mapping[str, Any]
    #: Returns what a page shows.
    answers: Callable[[], Shown]
    #: How many rows the release has.
    rows: int


def save(
    path: Any,
    columns: Mapping[str, Coded | NDArray[np.int64]],
    said: Said,
    *,
    overwrite: bool,
) -> None:
    """Write the columns of a release, and on a page its answers.

    :meth:`Released.save` has the details.
    """
    page = partial(_paged, said)
    published.write(path, _kept(columns), said.facts, page=page, overwrite=overwrite)


def rehearse(
    name: str, path: Any, columns: Mapping[str, Any], said: Said, *, overwrite: bool = False
) -> None:
    """Refuse what :func:`save` would refuse, whatever the counts."""
    page = partial(_paged, said)
    published.rehearse(name, path, _kept(columns), said.facts, page, overwrite=overwrite)


def _kept(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {
        label: Column(each.items, each.places) if isinstance(each, Coded) else each
        for label, each in columns.items()
    }


def _paged(said: Said, rows: bytes, description: bytes) -> bytes:
    """Return a page of the bytes of a CSV file and of its description."""
    if said.rows > _page.MOST_ROWS:
        raise ValueError(
            f"a page of {said.rows} rows is not accepted: give at most {_page.MOST_ROWS}, or "
            "save the table as CSV or Parquet"
        )
    return _page.page(rows, description, said.answers())

"""What every release of a table knows: its design, its noise, its cost, and how to save itself."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from geomdp import _notebook
from geomdp._analysis import decimals
from geomdp.frames import _format, _native

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from geomdp.frames._design import Design
    from geomdp.frames._native import Library
    from geomdp.mechanism import GeometricMechanism

#: The places of the columns that a margin adds up; () for the cells.
Margin: TypeAlias = tuple[int, ...]


class Released:
    """Noisy counts, and the public facts that a reader needs; no exact count."""

    __slots__ = ("_counts", "_design", "_label", "_library", "_mechanisms")

    def __init__(
        self,
        design: Design,
        mechanisms: Mapping[Margin, GeometricMechanism],
        label: str | None,
        counts: NDArray[np.int64],
        library: Library | None,
    ) -> None:
        self._design, self._label, self._library = design, label, library
        self._mechanisms, self._counts = dict(mechanisms), counts

    @property
    def frame(self) -> Any:
        """The noisy counts, as a frame of the library of the data, made anew each time.

        Types, categories, order and index follow from the design alone.
        """
        return self._framed()

    def _framed(self, **more: Any) -> Any:
        """Return the frame with more columns, or with others of these names."""
        counts = {self._design.name: self._counts.reshape(-1)}
        return _native.made(self._columns() | counts | more, self._library)

    @property
    def design(self) -> Design:
        """The design of the table."""
        return self._design

    @property
    def label(self) -> str | None:
        """The label under which the release was booked."""
        return self._label

    @property
    def epsilon(self) -> Fraction | float:
        """The exact privacy loss of the whole table for one individual; infinite without noise."""
        return self._design._loss(self._mechanisms)

    @property
    def privacy_loss(self) -> float:
        """The privacy loss of the whole table for one individual, rounded up."""
        return decimals.up(self.epsilon)

    def to_dict(self) -> dict[Any, int]:
        """Return the noisy counts by level, or by tuple of levels.

        >>> import pandas as pd
        >>> from geomdp import frames
        >>> table = frames.count(pd.Series(["no", "yes", "no"]), ["yes", "no"])
        >>> list(table.release(epsilon=1).to_dict())
        ['yes', 'no']
        """
        columns = [each.listed() for each in self._columns().values()]
        keys = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
        return dict(zip(keys, self._counts.reshape(-1).tolist(), strict=True))

    def save(
        self, path: str | PathLike[str], *, overwrite: bool = False, certificate: bool = False
    ) -> None:
        """Write the noisy counts to a file, with all that a reader needs (``docs/format.md``).

        Parameters
        ----------
        path : path
            Ends in ``.csv``, for a CSV file with a JSON file beside it (``.csv.json``), or in
            ``.parquet``.
        overwrite : bool
            Whether files of these names may be replaced.
        certificate : bool
            Whether to include the certificates of the mechanisms.

        Raises
        ------
        FileExistsError
            If a file exists and `overwrite` is False.
        ValueError
            If the path has another end, or a level is of a type that files do not keep.

        Examples
        --------
        >>> import os, tempfile
        >>> import pandas as pd
        >>> import geomdp
        >>> table = geomdp.frames.count(pd.Series(["no", "yes"], name="sick"), ["yes", "no"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table.release(epsilon=0.5).save(f"{folder}/sick.csv")
        ...     files = sorted(os.listdir(folder))
        ...     read = geomdp.read(f"{folder}/sick.csv")
        >>> files, read.epsilon
        (['sick.csv', 'sick.csv.json'], Fraction(1, 2))

        """
        _format.save(self, path, overwrite=overwrite, certificate=certificate)

    @property
    def _form(self) -> dict[str, Any]:
        """The format of the files of this kind of release, and the facts that only they state."""
        return {"format": _format.FORMAT}

    def _columns(self) -> dict[str, Any]:
        """Return the columns of levels."""
        return self._design._columns_of(np.arange(self._design.cells))

    def _text(self) -> str:
        loss = f"privacy loss {_notebook.short(self.epsilon)} for one individual"
        return f"{self._title()}, {loss}"

    def _title(self) -> str:
        return f"{type(self).__name__} of {_notebook.many(self._design.cells, 'count')}"

    def __repr__(self) -> str:
        return f"<{self._text()}>\n{self.frame!r}"

    def _repr_html_(self) -> str:
        frame = self.frame
        html = getattr(frame, "_repr_html_", None)
        shown = html() if html else _notebook.preformatted(repr(frame))
        return _notebook.preformatted(self._text()) + shown

"""The base of all releases of a table: their design, their noise, their cost, and their files."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geomdp import _notebook
from geomdp._analysis import decimals
from geomdp.frames import _file, _native
from geomdp.frames._native import Coded, Library

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from geomdp._analysis.products import Block
    from geomdp.frames._layout import Layout
    from geomdp.frames._noise import Noise


class Released:
    """Noisy counts, and the public facts that a reader needs; no exact count."""

    __slots__ = ("_label", "_library", "_part_of", "counts", "design", "mechanisms")

    def __init__(
        self,
        design: Layout,
        mechanisms: Mapping[Block, Noise],
        label: str | None,
        library: Library | None,
        counts: NDArray[np.int64],
        *,
        part_of: Fraction | None = None,
    ) -> None:
        #: Everything public about the table.
        self.design = design
        #: The mechanism of each block, as in :meth:`Design.mechanisms_for`.
        self.mechanisms = dict(mechanisms)
        #: The noisy counts: an axis for each column, with its nodes in the order of its tree.
        self.counts = counts
        self._label, self._library, self._part_of = label, library, part_of

    @property
    def frame(self) -> Any:
        """The noisy counts, as a frame of the library of the data, made anew each time.

        Types, categories, order and index follow from the design alone.
        """
        return self.made(self._columns())

    def made(self, columns: Mapping[str, Any]) -> Any:
        """Return a frame of these columns, in the library of the release.

        Parameters
        ----------
        columns : mapping of names to sequences or arrays
            They follow from public facts and noisy counts alone, so they cost no privacy.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import frames
        >>> table = frames.count(pd.Series(["no", "yes", "no"]), ["yes", "no"])
        >>> type(table.release(epsilon=1).made({"n": [1, 2]})).__name__
        'DataFrame'

        """
        return _native.made(columns, self._library)

    def _levels(self) -> dict[str, Coded]:
        """Return the columns of levels."""
        return self.design.axes.columns()

    def _rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a value of each node in the order of the frame."""
        shown: NDArray[Any] = values[self.design.axes.shown].reshape(-1)
        return shown

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the frame."""
        return {**self._levels(), self._name: self._rows(self.counts)}

    @property
    def _name(self) -> str:
        """The name of the last column."""
        return self.design.name

    @property
    def _named(self) -> int | None:
        """How many of the largest cells are published by name alone; None if counts are."""
        return None

    @property
    def at_least(self) -> int | None:
        """The least noisy count that is published; None if all are."""
        return None

    @property
    def label(self) -> str | None:
        """The label under which the release was booked."""
        return self._label

    @property
    def part_of(self) -> Fraction | None:
        """The privacy loss of one record in the whole stream of these steps; None for no stream."""
        return self._part_of

    @property
    def epsilon(self) -> Fraction | float:
        """The exact privacy loss of the whole table for one individual; infinite without noise."""
        return self.design.loss(self.mechanisms)

    def privacy_loss(self) -> float:
        """Return the privacy loss of the whole table for one individual, rounded up.

        >>> import pandas as pd
        >>> from geomdp import frames
        >>> table = frames.count(pd.Series(["no", "yes", "no"]), ["yes", "no"])
        >>> table.release(epsilon="0.1").privacy_loss()
        0.1
        """
        return decimals.up(self.epsilon)

    def to_dict(self) -> dict[Any, int]:
        """Return the noisy counts by level, or by tuple of levels.

        >>> import pandas as pd
        >>> from geomdp import frames
        >>> table = frames.count(pd.Series(["no", "yes", "no"]), ["yes", "no"])
        >>> list(table.release(epsilon=1).to_dict())
        ['yes', 'no']
        """
        columns = [each.listed() for each in self._levels().values()]
        keys = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
        return dict(zip(keys, self._columns()[self._name].tolist(), strict=True))

    def save(
        self, path: str | PathLike[str], *, overwrite: bool = False, certificate: bool = False
    ) -> None:
        """Write the noisy counts to a file, with all that a reader needs (``docs/format.md``).

        Parameters
        ----------
        path : path
            Ends in ``.csv``, for a CSV file with a JSON file beside it (``.csv.json``); in
            ``.parquet``; or in ``.html``, for one page that shows the table and adds up its cells
            in any browser, without a network. It holds the CSV file and its description.
        overwrite : bool
            Whether files of these names may be replaced.
        certificate : bool
            Whether to include the certificates of the mechanisms.

        Raises
        ------
        FileExistsError
            If a file exists and `overwrite` is False.
        ValueError
            If the path has another ending, a level is of a type that files do not keep, or a page
            would have more than 20,000 rows.

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
        _file.save(
            path,
            self._columns(),
            self.design,
            self.mechanisms,
            epsilon=self.epsilon,
            label=self.label,
            part_of=self.part_of,
            at_least=self.at_least,
            top=self._named,
            answers=self._answers,
            overwrite=overwrite,
            certificate=certificate,
        )

    def _answers(self) -> dict[str, Any]:
        """Return the answers of a page that do not follow from its rows alone."""
        why = "These counts cannot be added: they were chosen by their noise."
        return {
            **{"rate": None, "estimates": None, "ends": None, "cells": None},
            "ordered": None,
            "sums": why,
        }

    def _text(self) -> str:
        loss = f"privacy loss {_notebook.short(self.epsilon)} for one individual"
        return f"{self._title()}, {loss}"

    def _title(self) -> str:
        return f"{type(self).__name__} of {_notebook.many(self.design.cells, 'count')}"

    def __repr__(self) -> str:
        return f"<{self._text()}>\n{self.frame!r}"

    def _repr_html_(self) -> str:
        frame = self.frame
        html = getattr(frame, "_repr_html_", None)
        shown = html() if html else _notebook.preformatted(repr(frame))
        return _notebook.preformatted(self._text()) + shown

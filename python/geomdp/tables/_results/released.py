"""The base of all releases of a table: their design, their noise, their cost, and their files."""

from __future__ import annotations

import copy
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import decimals, notebook, parameters
from geomdp.tables._columns import native
from geomdp.tables._columns.native import Coded, Library
from geomdp.tables._facts import about as _about
from geomdp.tables._facts import fields, layout, rounding
from geomdp.tables._facts.tier_names import Tier
from geomdp.tables._publish import described, formats
from geomdp.tables._publish.page import shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from geomdp._ground.identity import Identity
    from geomdp._ground.parameters import Integer
    from geomdp._noise import Noise
    from geomdp.tables._facts.axes import Axis
    from geomdp.tables._facts.classes import Thresholds
    from geomdp.tables._facts.layout import Layout
    from geomdp.tables._facts.parts import Part
    from geomdp.tables._math.products import Block


@notebook.showable
class Released:
    """Noisy counts, and the public facts that a reader needs; no exact count."""

    __slots__ = (
        "_about",
        "_label",
        "_library",
        "_part_of",
        "_rounded",
        "_tier",
        "_values",
        "corrects",
        "count_id",
        "design",
        "id",
        "mechanisms",
    )
    #: The least noisy count that has a row; None if all have.
    _at_least: Thresholds | None = None
    #: The id of the release whose counts chose the rows, if another one's did.
    _chosen_by: str | None = None
    #: The releases that this one is the sum of; empty for any other.
    parts: tuple[Part, ...] = ()
    #: The most that rounding moved each count before it was added to others.
    _moved: int = 0

    def __init__(
        self,
        design: Layout,
        mechanisms: Mapping[Block, Noise],
        label: str | None,
        library: Library | None,
        values: NDArray[np.int64],
        *,
        identity: Identity,
        part_of: Fraction | None = None,
        rounded: int | str | None = None,
        about: Mapping[str, str] | None = None,
        tier: tuple[str, tuple[Fraction, ...]] | None = None,
    ) -> None:
        #: Everything public about the table.
        self.design = design
        #: The mechanism of each block, as in :meth:`Design.mechanisms_for`.
        self.mechanisms = dict(mechanisms)
        # The last column of the frame: noisy counts, or ranks.
        self._values = values
        #: The id of the release, drawn at random; that of its files, pickles and answers, too.
        self.id: str
        #: The ids of the releases that this one replaces, the last one first.
        self.corrects: tuple[str, ...]
        #: The random id of the count of records, if limits cut them at random; otherwise None.
        self.count_id: str | None
        self.id, self.corrects, self.count_id = identity
        # Beside a label: the privacy loss of one record in the whole stream of these steps.
        self._label, self._library, self._part_of = label, library, part_of
        # The number of whose multiples the noisy counts are.
        self._rounded = rounded
        self._about = dict(about or {})
        # Which of several precisions of one table it is.
        self._tier = None if tier is None else Tier(*tier)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or hasattr(type(self), name):
                return self.__getattribute__(name)  # Which raises the error of the attribute.
            kind = type(self).__name__
            raise AttributeError(
                f"{kind!r} object has no attribute {name!r}: its rows are a data frame in .frame, "
                "and .save(path) writes them with their description"
            )

        def __getitem__(self, key: Any) -> NoReturn:
            kind = type(self).__name__
            raise TypeError(
                f"{kind!r} object is not subscriptable: its columns are those of .frame, and "
                ".to_dict() has each count by its levels"
            )

        __iter__ = None  # An object with items would have one.

    @property
    def frame(self) -> Any:
        """The noisy counts, as a frame of the library of the data, made anew each time.

        Its types, categories, order and index follow from the design alone.
        """
        return self._made(self._columns())

    def _made(self, columns: Mapping[str, Any]) -> Any:
        """Return a frame of these columns, in the library of the release.

        Parameters
        ----------
        columns : mapping of names to sequences or arrays
            They follow from public facts and noisy counts alone, so they cost no privacy.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"]), ["yes", "no"])
        >>> type(table.release(epsilon=1)._made({"n": [1, 2]})).__name__
        'DataFrame'

        """
        return native.made(columns, self._library)

    def _levels(self) -> dict[str, Coded]:
        """Return the columns of levels."""
        return self.design._columns()

    def _rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a value of each node in the order of the frame."""
        return self.design._shown(values)

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the frame."""
        return {**self._levels(), self._name: self._rows(self._values)}

    def _rehearsed(self) -> dict[str, Any]:
        """Return the columns of a release of zeros, with all that a file may hold."""
        return self._columns()

    @property
    def _name(self) -> str:
        """The name of the last column."""
        return self.design.name

    @property
    def _named(self) -> int | None:
        """How many of the largest cells are published by name alone; None if counts are."""
        return None

    @property
    def _revision(self) -> int:
        """How many releases it replaces, one after the other."""
        return len(self.corrects)

    @property
    def label(self) -> str | None:
        """The label under which the release was booked."""
        return self._label

    @property
    def about(self) -> dict[str, str]:
        """What the publisher says about the table, such as its title, as a copy."""
        return dict(self._about)

    @property
    def epsilon(self) -> Fraction | float:
        """The exact privacy loss of the whole table for one individual; infinite without noise."""
        return layout.loss(self.design, self.mechanisms)

    def privacy_loss(self) -> float:
        """Return the privacy loss of the whole table for one individual, rounded up.

        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"]), ["yes", "no"])
        >>> table.release(epsilon="0.1").privacy_loss()
        0.1
        """
        return decimals.least(self.epsilon)

    def to_dict(self) -> dict[Any, int]:
        """Return the noisy counts by level, or by tuple of levels.

        >>> import pandas as pd
        >>> from geomdp import tables
        >>> table = tables.count(pd.Series(["no", "yes", "no"]), ["yes", "no"])
        >>> list(table.release(epsilon=1).to_dict())
        ['yes', 'no']
        """
        columns = [each.listed() for each in self._levels().values()]
        keys = columns[0] if len(columns) == 1 else zip(*columns, strict=True) if columns else [()]
        return dict(zip(keys, self._columns()[self._name].tolist(), strict=True))

    def save(
        self,
        path: str | PathLike[str],
        *,
        overwrite: bool = False,
        certificate: bool = False,
        rounded: Integer | str | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write the noisy counts to a file, with all that a reader needs (``docs/format.md``).

        It is best to publish a release in the call that makes it, ``release(..., save=path)``,
        which checks the path before anything is paid. Use this method for one more file of the same
        release, for a file that replaces another or has certificates, and for the steps of a
        stream.

        Parameters
        ----------
        path : path
            Ends in ``.csv`` or ``.parquet`` for a file of rows with a description beside it
            (``.csv.json``, ``.parquet.json``), or in ``.html`` for a single page that shows the
            table and adds up its cells in any browser, offline. The page contains the CSV file and
            its description.
        overwrite : bool
            Whether files of these names may be replaced.
        certificate : bool
            Whether to include the certificates of the mechanisms.
        rounded : int or str, optional
            For offices that must round, such as to 5 or 10: publish the multiples of this number
            that are nearest to the noisy counts, and the even one of two that are equally near.
            This costs no privacy. The file states the number, and intervals from it are wider by
            half a step on each side for each count that they use. With the text "middle of 6", or
            another number, the published count is 3 for noisy counts from 1 to 6, 9 from 7 to 12,
            and so on, -3 from -5 to -1, and 0 for 0.
        about : mapping of names to texts, optional
            What to say about the table in this file, instead of what the release says
            (:attr:`about`): any of `title`, `description`, `source`, `period`, `publisher`,
            `contact` and `licence`. The description states it, and a page shows it to readers and
            to data portals.

        Raises
        ------
        FileExistsError
            If a file exists and `overwrite` is False.
        ValueError
            If the path has another ending, a level has a type that files do not keep, a page would
            have more than 20,000 rows, `about` has other names, or the release has no counts to
            round or was rounded to another number already.

        Examples
        --------
        >>> import os, tempfile
        >>> import pandas as pd
        >>> import geomdp
        >>> table = geomdp.tables.count(pd.Series(["no", "yes"], name="sick"), ["yes", "no"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table.release(epsilon=0.5).save(f"{folder}/sick.csv")
        ...     files = sorted(os.listdir(folder))
        ...     read = geomdp.read(f"{folder}/sick.csv")
        >>> files, read.epsilon
        (['sick.csv', 'sick.csv.json'], Fraction(1, 2))

        """
        made = self._to_multiples(rounded)
        if about is not None:
            made = copy.copy(made)
            made._about = _about.checked(about)
        described.save(path, made._columns(), made._said(certificate), overwrite=overwrite)

    def with_complete(self, columns: Any = True) -> Self:
        """Return this release with your statement that some columns leave out no records.

        A column without a row for other records leaves out those that have none of its levels, so
        a table that has this column is about other records than a table without it, unless the
        publisher stated `complete` (:class:`Design`). If you know from another source that all
        records have one of the levels, state it here: :meth:`NoisyTable.combine` and other
        questions of two releases then accept the pair. Nothing checks it, and privacy does not
        depend on it.

        Parameters
        ----------
        columns : column name, tuple of names, or True
            As `complete` of :class:`Design`; added to what the release states already.

        Returns
        -------
        NoisyTable, NoisyGroups or Top
            The same release, with its id. Its files state the columns.

        Examples
        --------
        >>> import pandas as pd
        >>> from geomdp.tables import Design
        >>> people = pd.DataFrame({"area": ["N", "S"] * 50, "sex": ["f", "m"] * 50})
        >>> one = Design({"area": ["N", "S"], "sex": ["f", "m"]}).count(people).release(epsilon=1)
        >>> other = Design({"area": ["N", "S"]}).count(people).release(epsilon=1)
        >>> found = one.with_complete("sex").combine(other).total("area", alpha=0.05)
        >>> len(found)
        2

        """
        made = copy.copy(self)
        made.design = layout.completed(self.design, columns)
        return made

    def _to_multiples(self, rounded: Any) -> Self:
        """Return this release with its noisy counts rounded to multiples; to none for None."""
        if rounded is None:
            return self
        step = rounding.step(rounded)
        if self._named is not None:
            raise ValueError("rounded is not accepted for names alone, which have no counts")
        if self._rounded not in (None, step):
            raise ValueError(
                f"rounded = {parameters.shown(step)} is not accepted for counts that are "
                f"{rounding.said(self._rounded)} already: give that, or the release before it was "
                "rounded"
            )
        made = copy.copy(self)
        made._values, made._rounded = rounding.nearest(self._values, step), step
        return made

    def _columns_without_records(self) -> tuple[list[Axis], bool]:
        """Return columns of which no record may have a level, and whether none may be counted."""
        return [], False

    def _said(self, certificate: bool) -> described.Said:
        """Return what a file says about this release beside its rows."""
        facts = fields.facts_of(self, certificate)
        return described.Said(facts, self._answers, self._values.size)

    def _answers(self) -> shown.Shown:
        """Return what a page shows: of ranks, no number."""
        levels = {}
        for axis, (label, each) in zip(
            self.design._axes.faces, self._levels().items(), strict=True
        ):
            names = {} if axis.hierarchy is None else axis.hierarchy.labels
            texts = [
                f"{names[item]} ({text})" if item in names else text or "not stated"
                for item, text in zip(each.items, formats.texts(each.items), strict=True)
            ]
            levels[label] = [texts[place] for place in each.places.tolist()]
        rows = np.arange(self._values.size)
        one = shown.Sheet(list(levels), rows)
        return shown.Shown(levels, [one], self._rows(self._values).reshape(-1), shown.BY_NOISE)

    def _text(self) -> str:
        loss = f"privacy loss {parameters.text(self.epsilon)} for one individual"
        if self.parts:
            loss = f"sum of {notebook.many(len(self.parts), 'release')}, {loss} in all of them"
        tier = "" if self._tier is None else f", the tier {self._tier.name}"
        rounded = "" if self._rounded is None else f", rounded to {rounding.said(self._rounded)}"
        return f"{self._title()}{tier}{rounded}, {loss}"

    def _title(self) -> str:
        return f"{type(self).__name__} of {notebook.many(self.design.cells, 'count')}"

    def _shown(self) -> Any:
        """Return the frame, or its first rows if no library is installed that makes frames."""
        try:
            return self.frame
        except ModuleNotFoundError:
            return dict(islice(self.to_dict().items(), 10))

    def __repr__(self) -> str:
        return f"<{self._text()}>\n{self._shown()!r}"

    def _repr_html_(self) -> str:
        frame = self._shown()
        html = getattr(frame, "_repr_html_", None)
        shown = html() if html else notebook.preformatted(repr(frame))
        return notebook.preformatted(self._text()) + shown


def rehearse(
    release: Released,
    path: Any,
    rounded: Any = None,
    *,
    name: str = "save",
    overwrite: bool = False,
) -> None:
    """Refuse a file to which a release cannot be saved, whatever its counts."""
    made = release._to_multiples(rounded)
    said = made._said(certificate=False)
    described.rehearse(name, path, made._rehearsed(), said, overwrite=overwrite)

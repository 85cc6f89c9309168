"""Published rows in a file, and a description with their digest beside it (docs/format.md).

This module knows no design and no noise. Files appear whole or not at all. A file to read may come
from anybody. Its size and how it begins are compared with its description before the rest is read,
its digest before it is parsed, and sizes and types before columns are made. Any fault of a file is
a ValueError that names it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import foreign, new_file, parameters
from geomdp.tables._facts import about
from geomdp.tables._facts.fields import MOST_VALUES
from geomdp.tables._publish import formats
from geomdp.tables._publish.formats import Column, Columns, Format

#: The most bytes of a description and of rows.
_MOST_TEXT, _MOST_ROWS = 2**26, 2**31
#: Rows of more bytes are hashed in pieces before they are held.
_HELD, _PIECE = 2**24, 2**22
#: A longer description is written without indents, which take Python long.
_SHORT = 2**16
_NO_DESCRIPTION = "it has no description of a release by geomdp"


class Contents(NamedTuple):
    """The contents of a file."""

    #: The object "geomdp" of the description: JSON of any form.
    facts: dict[str, Any]
    #: The names of the columns.
    names: list[str]
    #: The columns of levels, then the noisy counts.
    columns: list[Any]
    #: The digest of its bytes, as a description states it.
    digest: str

    @property
    def counts(self) -> NDArray[np.int64]:
        """The noisy counts: the last column."""
        counts: NDArray[np.int64] = self.columns[-1]
        return counts


# Writing


def write(
    path: Any,
    columns: Mapping[str, Sequence[Any]],
    facts: Mapping[str, Any],
    *,
    overwrite: bool,
    page: Callable[[bytes, bytes], bytes] | None = None,
) -> None:
    """Write columns, the last one with noisy counts, and their description.

    `page` makes a page of the bytes of a CSV file and of its description. If the process is killed,
    a reader finds either the files from before or all of the new ones.
    """
    parameters.check_bool("overwrite", overwrite)
    target, kind = free("path", path, overwrite=overwrite)
    whole, text = _encoded(target, kind, columns, facts, page)
    _placed(str(target), whole, text, overwrite=overwrite)


def rehearse(
    name: str,
    path: Any,
    columns: Mapping[str, Sequence[Any]],
    facts: Mapping[str, Any],
    page: Callable[[bytes, bytes], bytes],
    *,
    overwrite: bool = False,
) -> None:
    """Refuse all that :func:`write` would refuse: write these columns beside the file, and not it.

    The path is a parameter of this name. Columns have all levels, and any counts.
    """
    try:
        target, kind = free(name, path, overwrite=overwrite)
    except FileExistsError:
        settle(os.fspath(path))
        raise
    settle(str(target))
    whole, text = _encoded(target, kind, columns, facts, page)
    with new_file.rehearsal(str(target)) as hidden:
        _placed(hidden, whole, text, overwrite=False)


def free(name: str, path: Any, *, overwrite: bool = False) -> tuple[Path, Format]:
    """Return the path of a file to write and its format; refuse a name that is taken."""
    target, kind = formats.of(name, path)
    for each in (str(target), _beside(str(target)))[: 1 + (kind.holds is None)]:
        try:
            os.lstat(each)
        except FileNotFoundError:
            continue
        except ValueError:
            wanted = "a path that this system can hold"
            raise ValueError(parameters.refusal(name, str(path), wanted)) from None
        if not overwrite:
            raise new_file.taken(each)
    return target, kind


def _last(facts: Mapping[str, Any]) -> str:
    """Return what the last column has."""
    if facts.get("top") is not None:
        return "rank by noisy count, from 1"
    bounds = [each["bounds"] for each in facts.get("mechanisms", [{"bounds": None}])]
    groups = facts.get("at_least") is not None
    reached = groups and facts.get("rest") is None and facts.get("chosen_by") is None
    if reached or all(each is not None and each[0] >= 0 for each in bounds):
        return "noisy count"
    return "noisy count; it may be negative"


def _encoded(
    target: Path,
    kind: Format,
    columns: Mapping[str, Sequence[Any]],
    facts: Mapping[str, Any],
    page: Callable[[bytes, bytes], bytes] | None,
) -> tuple[bytes, bytes | None]:
    """Return the bytes of a file, and of the description beside it if there is one."""
    *levels, (name, given) = columns.items()
    counts = np.asarray(given).astype(np.int64, casting="safe")
    made = {
        label: values if isinstance(values, Column) else Column.of(values)
        for label, values in levels
    }
    known = Columns.of(made, name)
    fields = [{"name": label, "type": each} for label, each in zip(*known, strict=True)]
    fields[-1]["description"] = _last(facts)
    description: dict[str, Any] = {
        "name": "".join(x if x.isalnum() and x.isascii() else "-" for x in target.stem).lower(),
        "path": target.stem + (kind.holds or target.suffix),
        **about.resource(facts.get("about", {})),
        "profile": "tabular-data-resource",
        "encoding": "utf-8",
        "schema": {
            "fields": fields,
            "primaryKey": list(made),
            "missingValues": [""],
        },
    }
    rows = kind.write(made, counts, known)
    if len(rows) > _MOST_ROWS:
        raise ValueError(f"a file of {len(rows)} bytes is not accepted: give at most {_MOST_ROWS}")
    text = _json(description | {"bytes": len(rows), "hash": _digest(rows), "geomdp": facts})
    if page is None or kind.holds is None:
        return rows, text
    return page(rows, text), None


def _placed(path: str, rows: bytes, text: bytes | None, *, overwrite: bool) -> None:
    """Write a file and, beside it, the description of its rows, if it does not hold that itself.

    The rows take their name in one step. The description waits under a name that a reader finds,
    until it can take its own. Once the rows have their name, the only way is forward.
    """

    @contextmanager
    def described() -> Iterator[None]:
        if text is None:
            yield
            return
        waiting = _waiting(path, Path(file.name).stem.rpartition("-")[2])
        with new_file.new_file(waiting) as other:
            other.write(text)
        try:
            yield
        except OSError:
            os.unlink(waiting)
            raise
        with suppress(FileNotFoundError):  # Another call has done it.
            os.replace(waiting, _beside(path))

    with new_file.new_file(path, overwrite=overwrite, placing=described) as file:
        file.write(rows)
    new_file.sync_folder(path)


def settle(path: str) -> None:
    """Complete what killed processes have left in the folder of a file, or remove it."""
    new_file.tidy(path)
    if os.name != "posix":
        return
    for each in Path(path).parent.glob(".geomdp-*-*.json"):
        if each.with_name(f".geomdp-{each.stem.rpartition('-')[2]}.part").exists():
            continue  # Its rows are being written.
        with suppress(OSError):
            if not _complete(each):
                os.unlink(each)


def _complete(waiting: Path) -> bool:
    """Give a description its name if its rows have theirs; return whether it is of any use."""
    with suppress(Exception):
        [description] = _stated_in(waiting)
        target, kind = formats.of("path", waiting.with_name(description["path"]), to_read=True)
        own = waiting.stem.rpartition("-")[2]
        if _waiting(str(target), own) != str(waiting):
            return False
        with _opened(target) as file:
            if not _fits(description, file, kind):
                return False
            if _streamed(file, kind) != description["hash"]:
                return False
        # Of two that fit, a reader takes none, and neither does this.
        with suppress(ValueError):
            if _found(target, kind)[0] != description:
                return False
            os.replace(waiting, _beside(str(target)))
        return True
    return False


def _beside(path: str) -> str:
    return path + ".json"


def _waiting(path: str, own: str) -> str:
    """Return the name of a description that waits for its own, by what tells it from others."""
    start = hashlib.sha256(os.path.basename(path).encode()).hexdigest()[:16]
    return os.path.join(os.path.dirname(path), f".geomdp-{start}-{own}.json")


def _json(description: Mapping[str, Any]) -> bytes:
    text = json.dumps(description, ensure_ascii=False, allow_nan=False)
    if len(text) < _SHORT:
        text = json.dumps(description, indent=2, ensure_ascii=False, allow_nan=False)
    _check_size(whole := f"{text}\n".encode())
    return whole


def _digest(rows: bytes) -> str:
    return f"sha256:{hashlib.sha256(rows).hexdigest()}"


# Reading


def read(path: Any) -> Contents:
    """Return the contents of a file that :func:`write` wrote.

    An error of the operating system stays one. Any other fault is a ValueError.
    """
    source, kind = formats.of("path", path, to_read=True)
    with damage(source):
        description, rows = _found(source, kind)
        columns = Columns.stated(description)
        levels = kind.read(rows, columns)
        return Contents(description["geomdp"], columns.names, levels, description["hash"])


@contextmanager
def damage(path: Any) -> Iterator[None]:
    """Raise a ValueError that names the file for any fault of it."""
    try:
        yield
    except Exception as error:
        # Arrow's errors of this kind have no number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{Path(path).name} cannot be read: {foreign.said(error)}") from None


def _found(path: Path, kind: Format) -> tuple[dict[str, Any], bytes]:
    """Return the description of a file and its bytes, which have the digest that it states."""
    for _ in range(3):  # A save may come between the reads of the two files.
        with _opened(path) as file:
            described = False
            for descriptions in (_stated, _left):
                known = descriptions(path)
                described |= bool(known)
                fit = [each for each in known if _fits(each, file, kind)]
                if fit and fit[0]["bytes"] > _HELD:
                    found = _streamed(file, kind)
                    fit = [each for each in fit if each.get("hash") == found]
                if fit:
                    digest = _digest(rows := _whole(file, "a file", _MOST_ROWS))
                    fit = [each for each in fit if each.get("hash") == digest]
                # Two: of one save that was killed early, and of another.
                if len(fit) == 1:
                    return fit[0], rows
            file.seek(0)
            start = file.read(formats.LONGEST_ROW)
    if not described:
        raise ValueError(
            f"its description {_beside(path.name)} is not beside it: get it too. save and "
            "geomdp count write one, and geomdp release does not"
        )
    why = kind.edited(start) or "they were edited, or are of another release"
    raise ValueError(
        f"its rows are not those of its description: {why}. Get both files as they were published, "
        "and save changes to them under another name"
    )


def _streamed(file: BinaryIO, kind: Format) -> str:
    """Return the digest of rows that are not held, or refuse them by what their pieces show."""
    found, check = hashlib.sha256(), kind.pieces()
    file.seek(0)
    while piece := file.read(_PIECE):
        check(piece)
        found.update(piece)
    return f"sha256:{found.hexdigest()}"


def _stated(path: Path) -> list[dict[str, Any]]:
    """Return the description beside a file, if there is one."""
    return _stated_in(Path(_beside(str(path))))


def _stated_in(path: Path) -> list[dict[str, Any]]:
    """Return the description in a file, if there is one."""
    try:
        with _opened(path) as file:
            return [_parsed(_whole(file, "a description", _MOST_TEXT))]
    except FileNotFoundError:
        return []


def _left(path: Path) -> list[dict[str, Any]]:
    """Return the descriptions that killed saves of a file have left, each once."""
    left = {}
    for each in path.parent.glob(os.path.basename(_waiting(str(path), "*"))):
        with suppress(Exception), _opened(each) as file:
            text = _whole(file, "a description", _MOST_TEXT)
            left[text] = _parsed(text)
    return list(left.values())


def states(path: Any, ids: Collection[str]) -> bool:
    """Return whether a file is of a release with one of these ids."""
    target, kind = formats.of("path", path)
    with suppress(OSError, ValueError):
        if kind.holds is None:
            return _found(target, kind)[0]["geomdp"].get("id") in ids
        with _opened(target) as file:
            page = _whole(file, "a page", _MOST_ROWS)
        return any(each.encode() in page for each in ids)
    return False


def _opened(path: Path) -> io.BufferedReader:
    return io.BufferedReader(foreign.opened(path, "rb", ValueError("it is no file")))


def _whole(file: BinaryIO, what: str, most: int) -> bytes:
    """Return the bytes of a file, if there are no more than this."""
    if (size := file.seek(0, io.SEEK_END)) > most:
        raise ValueError(f"{what} of {size} bytes is not accepted: give at most {most}")
    file.seek(0)
    return file.read(size)


def _fits(description: Mapping[str, Any], file: BinaryIO, kind: Format) -> bool:
    """Return whether a description can be of a file, by its size and by how it begins or ends."""
    names = Columns.stated(description).names
    if file.seek(0, io.SEEK_END) != description.get("bytes"):
        return False
    return kind.fits(file, names)


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        _check_size(text)
        description = json.loads(
            text.decode(),
            object_pairs_hook=_object,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its description is damaged: {error}") from None
    if not isinstance(description, dict) or not isinstance(description.get("geomdp"), dict):
        raise ValueError(_NO_DESCRIPTION)
    return description


def _check_size(text: bytes) -> None:
    values = sum(map(text.count, (b",", b"[", b"{")))
    if len(text) > _MOST_TEXT or values > MOST_VALUES:
        raise ValueError(
            f"a description of {len(text)} bytes and {values} values is not accepted: "
            f"give at most {_MOST_TEXT} and {MOST_VALUES}"
        )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key repeats")
    return found


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError("a number is beyond float64")
    return number

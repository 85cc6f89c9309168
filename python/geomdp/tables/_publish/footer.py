"""The footer of a Parquet file: its groups of rows, read with limits on all that it may hold.

Arrow ends the process on some damaged footers when it is asked for the facts of a column. Here any
fault is a ValueError. A footer is in the compact protocol of Thrift.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

_MAGIC = b"PAR1"
#: The most values within one another: Parquet has seven.
_DEEPEST = 10
#: The codecs of Parquet, as PyArrow's writer calls them.
_CODECS = dict(enumerate(["NONE", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4"]))
#: Thrift's types.
_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _LIST, _STRUCT = 1, 2, 3, 6, 7, 8, 9, 12


class Chunk(NamedTuple):
    """The values of a column in a group of rows."""

    path: str
    codec: str
    #: How many there are.
    values: int
    #: The place of their pages in the file, and the bytes of these.
    start: int
    size: int


class Group(NamedTuple):
    """A group of rows."""

    rows: int
    chunks: list[Chunk]


def found(file: BinaryIO, most: int) -> bytes:
    """Return the footer of a file, or raise a ValueError if it has none, or one of more bytes."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    start = file.read(4)
    file.seek(max(size - 8, 0))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if start != _MAGIC or end[4:] != _MAGIC or length > min(most, size - 12):
        raise ValueError("it is no Parquet file")
    file.seek(size - 8 - length)
    return file.read(length)


def groups(footer: bytes, *, alone: bool = False) -> Iterator[Group]:
    """Yield the groups of rows that a footer states; with `alone`, there are no metadata of others.

    It is read no further than the caller iterates.
    """
    try:
        read = _Compact(footer)
        for field, kind in read.fields():
            if field == 4:
                size, inner = read.items(kind)
                for _ in range(size):
                    yield _group(read.value(inner, 1))
            elif field == 5 and alone:
                raise ValueError("it has metadata that its description does not state")
            else:
                read.value(kind, 1)
    except (LookupError, TypeError) as error:
        raise ValueError(f"its footer is damaged: {type(error).__name__}") from None


def _group(fields: dict[int, Any]) -> Group:
    chunks = []
    for each in fields[1]:
        facts = each[3]
        path = b".".join(facts[3]).decode()
        start = min(facts[9], facts.get(11) or facts[9])
        chunks.append(Chunk(path, _CODECS[facts[4]], facts[5], start, facts[7]))
    return Group(fields[3], chunks)


class _Compact:
    """Values from bytes. No value takes much more memory than its bytes."""

    def __init__(self, text: bytes) -> None:
        self.text, self.at = text, 0

    def take(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.text):
            raise ValueError("its footer is cut off")
        return self.text[self.at - size : self.at]

    def number(self) -> int:
        """Return a number of seven bits a byte, the lowest first."""
        found = shift = 0
        while shift < 70:
            [byte] = self.take(1)
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7
        raise ValueError("its footer has a number of more than 64 bits")

    def signed(self) -> int:
        found = self.number()
        return found >> 1 ^ -(found & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the numbers and types of a structure's fields; the caller takes each value."""
        last = 0
        while (head := self.take(1)[0]) != 0:
            step = head >> 4
            field = last + step if step else self.signed()
            if not last < field < 2**15:
                raise ValueError("its footer has fields out of order")
            last = field
            yield field, head & 15

    def items(self, kind: int) -> tuple[int, int]:
        """Return the number and the type of a list's items."""
        if kind != _LIST:
            raise ValueError("its footer has a value of another type")
        [head] = self.take(1)
        size = head >> 4 if head < 240 else self.number()
        if size > len(self.text) - self.at:
            raise ValueError("its footer is cut off")
        return size, head & 15

    def value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("its footer is too deep")
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in (_BYTE, _DOUBLE):
            return self.take(1 if kind == _BYTE else 8)
        if _BYTE < kind <= _I64:
            return self.signed()
        if kind == _BINARY:
            return self.take(self.number())
        if kind == _STRUCT:
            return {field: self.value(inner, depth + 1) for field, inner in self.fields()}
        size, inner = self.items(kind)
        if inner in (_TRUE, _FALSE):  # A byte each.
            return list(self.take(size))
        return [self.value(inner, depth + 1) for _ in range(size)]

"""What tells releases apart: random ids of each, of those that it replaces, and of its count."""

import os
import re
from typing import Any, NamedTuple

_FORM = re.compile("[0-9a-f]{32}")


class Identity(NamedTuple):
    """The ids of a release."""

    #: Its own.
    id: str
    #: Those of the releases that it replaces, the last one first.
    corrects: tuple[str, ...] = ()
    #: That of the count of records, if limits of individuals chose at random what to count.
    count_id: str | None = None


def fresh() -> str:
    """Return an id: 128 random bits of the operating system, which no data and no seed decide."""
    return os.urandom(16).hex()


def stated(given: Any, corrects: Any, count_id: Any = None) -> Identity:
    """Return the identity that a file states, or raise a ValueError."""
    if not isinstance(corrects, list):
        raise ValueError("corrects is no list")
    ids = [given, *corrects]
    known = ids if count_id is None else [*ids, count_id]
    if not all(isinstance(each, str) and _FORM.fullmatch(each) for each in known):
        raise ValueError("an id is not 32 hexadecimal digits")
    if len(set(ids)) < len(ids):
        raise ValueError("a release replaces itself, or another one twice")
    return Identity(given, tuple(corrects), count_id)

"""What tells releases apart: the random id of each, and the ids of those that it replaces."""

import os
import re
from typing import Any, TypeAlias

#: The id of a release, and those of the releases that it replaces, the last one first.
Identity: TypeAlias = tuple[str, tuple[str, ...]]

_FORM = re.compile("[0-9a-f]{32}")


def fresh() -> str:
    """Return an id: 128 random bits of the operating system, which no data and no seed decide."""
    return os.urandom(16).hex()


def stated(given: Any, corrects: Any) -> Identity:
    """Return the identity that a file states, or raise a ValueError."""
    if not isinstance(corrects, list):
        raise ValueError("corrects is no list")
    ids = [given, *corrects]
    if not all(isinstance(each, str) and _FORM.fullmatch(each) for each in ids):
        raise ValueError("an id is not 32 hexadecimal digits")
    if len(set(ids)) < len(ids):
        raise ValueError("a release replaces itself, or another one twice")
    return given, tuple(corrects)

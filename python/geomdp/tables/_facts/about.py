"""What a publisher says about a table: the few facts that data portals ask for, each a text.

From the table of keys follow their check, the field of the description, and what the properties of
Frictionless and of schema.org say of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from geomdp._ground import parameters

#: Characters that no page shows and a terminal may run, but for the ends of lines.
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")
_TEXT = "text in UTF-8, not blank, without control characters other than line ends"


class Key(NamedTuple):
    """One of the facts."""

    #: What it means, for publishers and readers.
    meaning: str
    #: Returns what schema.org's properties of a Dataset say of it.
    dataset: Callable[[str], dict[str, Any]]
    #: Returns what Frictionless' properties of a resource say of it.
    resource: Callable[[str], dict[str, Any]] = lambda _: {}


def _work(text: str) -> dict[str, str]:
    # A bare text would be a URL.
    return {"@type": "CreativeWork", "name": text}


def _contact(text: str) -> dict[str, str]:
    return {"@type": "ContactPoint", "email" if _EMAIL.fullmatch(text) else "name": text}


KEYS = {
    "title": Key(
        "what the table is called",
        lambda text: {"name": text},
        lambda text: {"title": text},
    ),
    "description": Key(
        "what it shows, in a few sentences",
        lambda text: {"description": text},
        lambda text: {"description": text},
    ),
    "source": Key(
        "the data that were counted",
        lambda text: {"isBasedOn": _work(text)},
        lambda text: {"sources": [{"title": text}]},
    ),
    "period": Key(
        "the time that the data cover, which portals read as ISO 8601: `2026-10` or "
        "`2026-01-01/2026-06-30`",
        lambda text: {"temporalCoverage": text},
    ),
    "publisher": Key(
        "who publishes it",
        lambda text: {"publisher": {"@type": "Organization", "name": text}},
    ),
    "contact": Key(
        "whom to ask about it, best by an e-mail address alone",
        lambda text: {"publisher": {"@type": "Organization", "contactPoint": _contact(text)}},
    ),
    "licence": Key(
        "what others may do with it, by name or address",
        lambda text: {"license": _work(text)},
    ),
}


def checked(about: Any) -> dict[str, str]:
    """Return what a publisher says, in the order of the keys, or refuse it."""
    *others, last = KEYS
    wanted = f"a mapping of {', '.join(others)} or {last}, with a text each"
    if not isinstance(about, Mapping):
        raise TypeError(parameters.foreign("about", about, wanted))
    for key, text in about.items():
        if not isinstance(key, str) or key not in KEYS:
            raise ValueError(parameters.refusal("a key of about", key, wanted))
        name = f"about[{key!r}]"
        parameters.check_text(name, text)
        if not text.strip() or _CONTROLS.search(text):
            raise ValueError(parameters.refusal(name, text, _TEXT))
    return {key: str(about[key]) for key in KEYS if key in about}


def resource(about: Mapping[str, str]) -> dict[str, Any]:
    """Return what Frictionless' properties of a resource say of it."""
    return {name: x for key, text in about.items() for name, x in KEYS[key].resource(text).items()}


def dataset(about: Mapping[str, str]) -> dict[str, Any]:
    """Return what schema.org's properties of a Dataset say of it.

    Both facts about the publisher are in one property.
    """
    found: dict[str, Any] = {}
    for key, text in about.items():
        for name, x in KEYS[key].dataset(text).items():
            found[name] = {**found.get(name, {}), **x} if isinstance(x, dict) else x
    return found

"""A validator of JSON Schema, for the keywords that the schemas of docs/ have."""

import re
from collections.abc import Callable, Iterator
from typing import Any

TYPES = {
    **{"object": dict, "array": list, "string": str},
    **{"integer": int, "boolean": bool, "null": type(None)},
}
#: For each keyword the type of the values that it is about, and whether one holds.
KEYWORDS: dict[str, tuple[type, Callable[[Any, Any, Any], bool]]] = {
    "type": (object, lambda value, wanted, _: any(is_(value, each) for each in listed(wanted))),
    "const": (object, lambda value, wanted, _: bool(value == wanted)),
    "enum": (object, lambda value, wanted, _: value in wanted),
    "pattern": (str, lambda value, wanted, _: re.search(wanted, value) is not None),
    "minimum": (int, lambda value, wanted, _: bool(value >= wanted)),
    "required": (dict, lambda value, wanted, _: set(wanted) <= value.keys()),
    "additionalProperties": (
        dict,
        lambda value, wanted, schema: wanted or value.keys() <= schema["properties"].keys(),
    ),
}
#: Those of parts of the value, and those that say nothing about it.
OTHERS = {"$ref", "anyOf", "properties", "items", "$schema", "$defs", "title"}


def errors(value: Any, schema: Any, whole: Any, at: str = "") -> list[str]:
    """Return where a value is against a schema, and by which keyword."""
    assert schema.keys() <= KEYWORDS.keys() | OTHERS
    found = [
        f"{at}: {keyword}"
        for keyword, (kind, holds) in KEYWORDS.items()
        if keyword in schema and isinstance(value, kind)
        if not holds(value, schema[keyword], schema)
    ]
    ways = schema.get("anyOf", [])
    if ways and all(errors(value, each, whole) for each in ways):
        found.append(f"{at}: anyOf")
    for name, part, wanted in parts(value, schema, whole):
        found += errors(part, wanted, whole, at + name)
    return found


def parts(value: Any, schema: Any, whole: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the parts of a value that have schemas of their own."""
    if "$ref" in schema:
        yield "", value, whole["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, part in value.items():
            if wanted := known.get(key, isinstance(others, dict) and others):
                yield f".{key}", part, wanted
    if isinstance(value, list) and "items" in schema:
        for place, item in enumerate(value):
            yield f"[{place}]", item, schema["items"]


def is_(value: Any, kind: str) -> bool:
    """Return whether a value has a type of JSON."""
    return isinstance(value, TYPES[kind]) and (kind == "boolean") == isinstance(value, bool)


def listed(wanted: Any) -> list[Any]:
    """Return a list, or a list of one."""
    return wanted if isinstance(wanted, list) else [wanted]

"""Files that were damaged, and releases whose description agrees with changed rows."""

import hashlib
import json
import random
from pathlib import Path
from typing import Any


def restate(path: Path, **facts: Any) -> None:
    """Make the description of a file state its size and digest, and these facts."""
    beside = path.with_name(f"{path.name}.json")
    description = json.loads(beside.read_text(encoding="utf-8"))
    whole = path.read_bytes()
    description["bytes"] = len(whole)
    description["hash"] = f"sha256:{hashlib.sha256(whole).hexdigest()}"
    description["geomdp"].update(facts)
    beside.write_text(json.dumps(description), encoding="utf-8")


def damaged(text: bytes, chance: random.Random) -> bytes:
    """Return text with damages at random places."""
    at, to = sorted(chance.randrange(len(text) + 1) for _ in range(2))
    match chance.randrange(6):
        case 0:
            return text[:at]
        case 1:
            return text[:at] + text[to:]
        case 2:
            return text[:to] + text[at:]
        case 3:
            return text[:at] + chance.randbytes(chance.randrange(9)) + text[at:]
        case 4:
            return text * 2
    found = bytearray(text)
    for _ in range(chance.randrange(1, 4)):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


#: Values in place of others.
HOSTILE: list[Any] = [
    None, True, -1, 0, 50.9, 2**70, 10**400, 1e308, "", "1e999999999", "9" * 10**5, "1/0", "-1",
    "NaN", "\uff15\uff10", " 1", "1_0", [], {}, [None], [[]], {"date": "x"}, {"date": 5}, {"x": 1},
    [0, 2**200], "\0", "x" * 10**6, ["a"] * 3, [*range(10**5)], {"a": {"share": "2"}},
]  # fmt: skip


def spoiled(value: Any, chance: random.Random) -> Any:
    """Return a JSON value with a part replaced, dropped or repeated."""
    if isinstance(value, dict | list) and value and chance.random() < 0.85:
        keys = [*value] if isinstance(value, dict) else [*range(len(value))]
        key = chance.choice(keys)
        found: Any = dict(value) if isinstance(value, dict) else [*value]
        if chance.random() < 0.1:
            del found[key]
        else:
            found[key] = spoiled(value[key], chance)
        return found
    return chance.choice(HOSTILE)

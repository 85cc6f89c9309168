"""Search for a key in the encodings in which it might leak."""

import base64
from typing import Any


def shows(secret: bytes, *places: Any) -> bool:
    """Return whether any place contains a part of a key of 32 bytes, in one of eight forms."""
    halves = secret[:16], secret[16:]
    forms = [*halves, base64.b64encode(secret[:15]), base64.b64encode(secret[15:30])]
    for half in halves:
        shown = repr(half)[2:-1]
        texts = [half.hex(), half.hex().upper(), shown, shown.replace("\\", "\\\\")]
        texts += [", ".join(map(str, half)), ",".join(map(str, half))]
        forms += [text.encode() for text in texts]
    raw = [place if isinstance(place, bytes) else str(place).encode() for place in places]
    return any(form in place for form in forms for place in raw)

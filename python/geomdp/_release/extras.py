"""What to install, where a module does not find its library."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def installed_by(*packages: str) -> Iterator[None]:
    """Add to a failed import which packages pip is to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        error.add_note(f"Needed here: pip install {' '.join(map(repr, packages))}")
        raise

"""Installation hints for missing optional libraries."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def installed_by(*packages: str) -> Iterator[None]:
    """Add a note to a failed import that names the packages to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        error.add_note(f"Needed here: pip install {' '.join(map(repr, packages))}")
        raise

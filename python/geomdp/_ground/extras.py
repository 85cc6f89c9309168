"""Optional libraries: what to install, and versions that nobody has tried."""

import re
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def installed_by(*packages: str) -> Iterator[None]:
    """Add a note to a failed import that names the packages to install.

    An extra such as ``geomdp[tables]`` stands for its libraries. The note names these, since no
    index need have this package itself.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        needed = [library for each in packages for library in _libraries(each)]
        error.add_note(f"Needed here: pip install {' '.join(map(repr, needed))}")
        raise


def _libraries(package: str) -> list[str]:
    from importlib.metadata import requires  # noqa: PLC0415 (slow, and seldom needed)

    extra = re.fullmatch(r"geomdp\[(\w+)\]", package)
    if extra is None:
        return [package]
    wanted = f"extra == '{extra[1]}'"
    pairs = [each.replace('"', "'").split(";") for each in requires("geomdp") or []]
    return [library.strip() for library, *marker in pairs if wanted in "".join(marker)]


def tried(package: str, below: str) -> None:
    """Refuse versions of a package whose internals nobody has tried.

    The requirements in ``pyproject.toml`` have the same limit.
    """
    from importlib.metadata import version  # noqa: PLC0415 (slow, and seldom needed)

    found = version(package)
    if _numbers(found) >= _numbers(below):
        raise ImportError(
            f"{package} {found} is not accepted, since geomdp uses its internals and was not tried "
            f"with it: pip install '{package}<{below}'"
        )


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)[:2]]

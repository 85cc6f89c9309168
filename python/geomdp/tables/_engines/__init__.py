"""Internal support for the engines' adapters."""

import re

#: The engines on clusters: the module of `geomdp.tables` for each, and the library of its data.
CLUSTERS = {"dask": "dask", "ray": "ray", "spark": "pyspark"}
#: All engines, alike.
ENGINES = CLUSTERS | {"duckdb": "duckdb", "polars": "polars"}


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

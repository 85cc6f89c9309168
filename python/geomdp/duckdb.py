"""Noise in SQL: a function of DuckDB.

>>> import duckdb
>>> import geomdp.duckdb
>>> from geomdp import GeometricMechanism
>>> connection = duckdb.connect()
>>> _ = geomdp.duckdb.register(connection, "noisy", GeometricMechanism(1.0))
>>> query = "SELECT g, noisy(count(*)) AS n FROM (SELECT unnest([1, 1, 2]) AS g) GROUP BY g"
>>> connection.sql(query).columns
['g', 'n']

It needs the extra ``duckdb``. The function has side effects, as DuckDB calls it: calls are neither
folded into constants nor shared between rows or places of a query. So equal counts get different
noise, and each time that a query runs is a release of its own, which costs its epsilon. A view that
calls the function releases whenever it is read: keep noisy counts in a table instead.
"""

from typing import Any

from geomdp import frames
from geomdp._release import columns, parameters
from geomdp._release.columns import Nulls
from geomdp._release.extras import installed_by
from geomdp._release.mechanism import GeometricMechanism

with installed_by("geomdp[duckdb]"):
    from duckdb import DuckDBPyConnection

__all__ = ["register"]

_TYPES = tuple(
    f"{sign}{name}" for sign in ("", "U") for name in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
)


def register(
    connection: DuckDBPyConnection,
    name: str,
    mechanism: GeometricMechanism,
    *,
    type: str = "BIGINT",  # noqa: A002
    nulls: Nulls = "refuse",
) -> DuckDBPyConnection:
    """Create a function that returns noisy counts, and return the connection.

    Parameters
    ----------
    connection
        In which queries may call the function.
    name : str
        Of the function.
    mechanism
        What makes the noise, without bounds or with bounds of the type; unsigned types need bounds
        (``docs/bounds.md``).
    type : str
        Of counts and noisy counts: TINYINT, SMALLINT, INTEGER, BIGINT, or one of these after a U.
        DuckDB casts arguments of other types, and reports those that do not fit.
    nulls : {"refuse", "keep"}
        As in :func:`geomdp.frames.release`; a query that meets one that is to be refused fails.

    Raises
    ------
    ValueError
        If the type or `nulls` is something else.

    """
    if type.upper() not in _TYPES:
        raise ValueError(parameters.refusal("type", type, f"one of {', '.join(_TYPES)}"))
    columns.check_nulls(nulls)

    # DuckDB looks at the signature.
    def noise(counts: Any) -> Any:
        return frames.release(mechanism, counts, nulls=nulls)

    create: Any = connection.create_function
    create(name, noise, [type], type, type="arrow", null_handling="special", side_effects=True)
    return connection

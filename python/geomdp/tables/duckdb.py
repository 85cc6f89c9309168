"""A DuckDB function that adds noise in SQL.

This module needs the extra ``duckdb``. The function is registered as having side effects, so DuckDB
neither folds calls into constants nor shares them between rows or places of a query, and equal
counts get independent noise. Each run of a query is a new release and costs its epsilon.

``connection.sql`` returns a lazy relation, which runs the query again whenever it is shown or
fetched, so ``repr``, ``df`` and ``fetchall`` are a release each. A view releases whenever it is
read. Run the query once, with ``connection.execute(query).df()`` or ``CREATE TABLE ... AS``.
"""

from __future__ import annotations

from typing import Any

from geomdp._extras import installed_by
from geomdp._inputs import arrays, columns, parameters
from geomdp._inputs.columns import Nulls
from geomdp.mechanism import GeometricMechanism, as_mechanism

with installed_by("geomdp[duckdb]"):
    from duckdb import DuckDBPyConnection

__all__ = ["register"]

#: By the bytes of a count.
_SIGNED = {1: "TINYINT", 2: "SMALLINT", 4: "INTEGER", 8: "BIGINT"}
_TYPES = [
    _SIGNED[dtype.itemsize] if dtype.kind == "i" else f"U{_SIGNED[dtype.itemsize]}"
    for dtype in arrays.DTYPES.values()
]


def register(
    connection: DuckDBPyConnection,
    name: str,
    mechanism: GeometricMechanism,
    *,
    type: str = "BIGINT",  # noqa: A002
    nulls: Nulls = "refuse",
) -> DuckDBPyConnection:
    """Register a function that returns noisy counts, and return the connection.

    Parameters
    ----------
    connection : DuckDBPyConnection
        The connection whose queries can call the function.
    name : str
        Name of the function.
    mechanism
        The mechanism that adds the noise. Its bounds must fit the type; unsigned types need bounds
        (``docs/bounds.md``).
    type : str
        The SQL type of the counts and the noisy counts: TINYINT, SMALLINT, INTEGER, BIGINT, or one
        of these with a U in front. DuckDB casts other arguments, and raises an error for values
        that do not fit.
    nulls : {"refuse", "keep"}
        Whether a query that reads a null fails, or keeps it. Since the sum of no rows is null in
        SQL, write ``noisy(coalesce(sum(n), 0)::BIGINT)``.

    Examples
    --------
    >>> import duckdb
    >>> import geomdp.tables.duckdb
    >>> from geomdp import GeometricMechanism
    >>> connection = duckdb.connect()
    >>> _ = geomdp.tables.duckdb.register(connection, "noisy", GeometricMechanism(1.0))
    >>> query = "SELECT g, noisy(count(*)) AS n FROM (SELECT unnest([1, 1, 2]) AS g) GROUP BY g"
    >>> noisy = connection.execute(query).df()
    >>> sorted(noisy["g"])
    [1, 2]

    """
    if type.upper() not in _TYPES:
        raise ValueError(parameters.refusal("type", type, f"one of {', '.join(_TYPES)}"))
    columns.check_nulls(nulls)
    checked = as_mechanism(mechanism)

    # DuckDB checks the number of parameters.
    def noise(counts: Any) -> Any:
        if nulls == "refuse" and counts.null_count:
            raise ValueError(
                "the counts contain nulls: sum(n) of no rows is null in SQL, so write "
                "coalesce(sum(n), 0)::BIGINT, or register with nulls='keep', which shows them"
            )
        return checked.release(counts, nulls=nulls)

    create: Any = connection.create_function
    create(name, noise, [type], type, type="arrow", null_handling="special", side_effects=True)
    return connection

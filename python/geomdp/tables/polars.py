"""The namespace ``geomdp`` of Polars' expressions and Series, registered by importing this module.

Each evaluation of the expression is a new release and costs its epsilon. That is the case for each
``collect`` of a lazy query, and for each place in a query that contains the expression twice,
unless Polars shares them (with ``comm_subplan_elim=False`` it does not). So collect the release
once, on its own, and work with that frame.
"""

from __future__ import annotations

from functools import partial

from geomdp._extras import installed_by
from geomdp._inputs.columns import Nulls
from geomdp._uncopied import Withheld, unseen
from geomdp.mechanism import GeometricMechanism, as_mechanism

with installed_by("geomdp[tables]", "polars"):
    import polars as pl

__all__ = ["ExprNamespace", "SeriesNamespace"]


@pl.api.register_series_namespace("geomdp")
class SeriesNamespace(Withheld):
    """The methods of ``series.geomdp``.

    >>> import polars as pl
    >>> import geomdp.tables.polars
    >>> from geomdp import GeometricMechanism
    >>> pl.Series([12, 7, 9]).geomdp.release(GeometricMechanism(1.0)).dtype
    Int64
    """

    __slots__ = ("_series",)

    def __init__(self, series: pl.Series) -> None:
        self._series = series

    @unseen
    def release(
        self,
        mechanism: GeometricMechanism,
        *,
        nulls: Nulls = "refuse",
        threads: int | None = None,
    ) -> pl.Series:
        """Return the noisy Series: ``mechanism.release(series)``.

        Parameters
        ----------
        mechanism : GeometricMechanism
            The mechanism that adds the noise.
        nulls, threads
            As in :meth:`geomdp.GeometricMechanism.release`, whose errors are raised.

        Examples
        --------
        >>> import polars as pl
        >>> import geomdp.tables.polars
        >>> from geomdp import GeometricMechanism
        >>> noisy = pl.Series("n", [12, None]).geomdp.release(GeometricMechanism(1.0), nulls="keep")
        >>> noisy.name, noisy.null_count()
        ('n', 1)

        """
        noise = as_mechanism(mechanism)
        return noise.release(self._series, nulls=nulls, threads=threads)


@pl.api.register_expr_namespace("geomdp")
class ExprNamespace(Withheld):
    """The methods of ``expr.geomdp``.

    >>> import polars as pl
    >>> import geomdp.tables.polars
    >>> from geomdp import GeometricMechanism
    >>> frame = pl.LazyFrame({"n": [12, 7, 9]})
    >>> noisy = frame.with_columns(pl.col("n").geomdp.release(GeometricMechanism(1.0)))
    >>> dict(noisy.collect_schema())
    {'n': Int64}
    """

    __slots__ = ("_expr",)

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    @unseen
    def release(
        self,
        mechanism: GeometricMechanism,
        *,
        nulls: Nulls = "refuse",
        threads: int | None = None,
    ) -> pl.Expr:
        """Return an expression for the noisy column, which draws fresh noise at each evaluation.

        Errors are raised when the query is collected. Polars' own counts, such as ``pl.len()``, are
        unsigned, so cast them to ``pl.Int64`` or give the mechanism bounds. Polars passes whole
        columns or whole groups, and each row once.

        Parameters
        ----------
        mechanism : GeometricMechanism
            The mechanism that adds the noise.
        nulls, threads
            As in :meth:`geomdp.GeometricMechanism.release`.

        Examples
        --------
        >>> import polars as pl
        >>> import geomdp.tables.polars
        >>> from geomdp import GeometricMechanism
        >>> frame = pl.LazyFrame({"town": ["x", "y", "x"]})
        >>> counts = frame.group_by("town").agg(pl.len().cast(pl.Int64).alias("n"))
        >>> noisy = counts.with_columns(pl.col("n").geomdp.release(GeometricMechanism(1.0)))
        >>> sorted(noisy.collect()["town"])
        ['x', 'y']

        """
        noise = partial(as_mechanism(mechanism).release, nulls=nulls, threads=threads)
        return self._expr.map_batches(noise, return_dtype=pl.self_dtype())

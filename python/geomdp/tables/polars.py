"""The namespace ``geomdp`` of a Polars Series, registered by importing this module.

Expressions have none: an engine may evaluate an expression more than once, and a release is made
once. :func:`geomdp.tables.release_columns` takes a lazy frame, and collects it.
"""

from __future__ import annotations

from geomdp._ground.extras import installed_by
from geomdp._ground.uncopied import Withheld, public
from geomdp._inputs.columns import Nulls
from geomdp.mechanism import GeometricMechanism, as_mechanism

with installed_by("geomdp[tables]", "polars"):
    import polars as pl

__all__ = ["SeriesNamespace"]


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


public(__name__)

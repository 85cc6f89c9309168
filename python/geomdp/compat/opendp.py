"""Genuine OpenDP measurements with the noise of this package.

They are made by OpenDP's own constructor, so they have OpenDP's domains and metrics, chain after
its transformations, combine under its compositors, and answer ``map`` and ``check`` through it.
OpenDP passes single counts and lists to Python and takes the noisy ones back; in between, the noise
is added to an array in constant time, even at the limits of every type.

This module needs the extra ``opendp``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from geomdp._ground import decimals, parameters
from geomdp._ground.extras import installed_by
from geomdp._ground.notebook import showable
from geomdp._ground.uncopied import public, unseen
from geomdp._noise import exact_loss
from geomdp.mechanism import GeometricMechanism, saturating

with installed_by("geomdp[opendp]"):
    import opendp.prelude as dp

    from geomdp.compat._opendp_internals import constructors, partial, promised

__all__ = ["make_geometric", "then_geometric", "make_laplace", "then_laplace", "register"]

#: The types for which OpenDP has geometric noise.
_DTYPES = {f"{sign}{bits}": np.dtype(f"{sign}{bits // 8}") for sign in "iu" for bits in (32, 64)}
_DTYPES["usize"] = np.dtype(np.uintp)


def make_geometric(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    scale: float,
    bounds: tuple[int, int] | None = None,
    MO: Any = "MaxDivergence",
) -> dp.Measurement:
    """Return OpenDP's ``make_geometric`` with our noise, and with its domains, map and errors.

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        An atom domain of i32, i64, u32, u64 or usize, or a vector domain of one.
    input_metric : opendp.mod.Metric
        The absolute distance for an atom domain, L1 for a vector domain.
    scale : float
        The noise scale, at least 0.
    bounds : (int, int) or None
        Least and greatest output. With None, outputs saturate at the limits of the type, as in
        OpenDP; for an unsigned type, this biases small counts upward (``docs/bounds.md``). Counts
        outside the bounds are clamped, also with scale 0.
    MO : type
        The measure; only MaxDivergence.

    Raises
    ------
    TypeError, ValueError, opendp.mod.OpenDPException
        If OpenDP's own constructor raises this error for these parameters.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> from geomdp.compat.opendp import make_geometric
    >>> dp.enable_features("contrib")
    >>> space = dp.vector_domain(dp.atom_domain(T="u32")), dp.l1_distance(T="u32")
    >>> measurement = make_geometric(*space, scale=2.0, bounds=(0, 1000))
    >>> len(measurement([12, 7])), measurement.map(1)
    (2, 0.5)

    """
    theirs = dp.m.make_geometric(input_domain, input_metric, scale, bounds, MO=MO)
    return _with_our_noise(theirs, scale, bounds)


def make_laplace(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    scale: float,
    k: int | None = None,
    MO: Any = "MaxDivergence",
) -> dp.Measurement:
    """Return OpenDP's ``make_laplace`` on integers with our noise, of the same distribution.

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        An atom domain of i32, i64, u32, u64 or usize, or a vector domain of one.
    input_metric : opendp.mod.Metric
        The absolute distance for an atom domain, L1 for a vector domain.
    scale : float
        The noise scale, at least 0.
    k : int or None
        OpenDP's parameter for floats; None or 0 for integers.
    MO : type
        The measure; only MaxDivergence.

    Raises
    ------
    TypeError, ValueError, opendp.mod.OpenDPException
        If OpenDP's own constructor raises this error for these parameters.
    ValueError
        Also for a domain of floats.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> from geomdp.compat.opendp import make_laplace
    >>> dp.enable_features("contrib")
    >>> space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    >>> make_laplace(*space, scale=2.0).map(3)
    1.5

    """
    theirs = dp.m.make_laplace(input_domain, input_metric, scale, k=k, MO=MO)
    return _with_our_noise(theirs, scale, None)


def then_geometric(
    scale: float, bounds: tuple[int, int] | None = None, MO: Any = "MaxDivergence"
) -> Any:
    """Return OpenDP's ``then_geometric`` with our noise, to be joined by ``>>``.

    The parameters and the errors are those of :func:`make_geometric`.

    >>> import opendp.prelude as dp
    >>> from geomdp.compat.opendp import then_geometric
    >>> dp.enable_features("contrib")
    >>> space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    >>> (space >> then_geometric(scale=2.0)).map(1)
    0.5
    """
    return partial(lambda domain, metric: make_geometric(domain, metric, scale, bounds, MO))


def then_laplace(scale: float, k: int | None = None, MO: Any = "MaxDivergence") -> Any:
    """Return OpenDP's ``then_laplace`` with our noise, to be joined by ``>>``.

    The parameters and the errors are those of :func:`make_laplace`.

    >>> import opendp.prelude as dp
    >>> from geomdp.compat.opendp import then_laplace
    >>> dp.enable_features("contrib")
    >>> space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    >>> (space >> then_laplace(scale=2.0)).map(1)
    0.5
    """
    return partial(lambda domain, metric: make_laplace(domain, metric, scale, k, MO))


def register(*, replace_laplace: bool = False) -> None:
    """Register both constructors with OpenDP's Context API.

    Their names there are ``geomdp_geometric`` and ``geomdp_laplace``, as in
    ``context.query().count().geomdp_laplace()``. Registering more than once does no harm.

    Parameters
    ----------
    replace_laplace : bool
        Whether ``laplace`` uses our noise too, in every Context of this process. Floats still get
        OpenDP's own noise, and Polars queries are not affected.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> from geomdp.compat.opendp import register
    >>> register()
    >>> dp.enable_features("contrib")
    >>> context = dp.Context.compositor(
    ...     data=["a", "b"], privacy_unit=dp.unit_of(contributions=1),
    ...     privacy_loss=dp.loss_of(epsilon=1.0), split_evenly_over=1,
    ...     domain=dp.vector_domain(dp.atom_domain(T=str)),
    ... )
    >>> type(context.query().count().geomdp_laplace().release())
    <class 'int'>

    """
    constructors["geomdp_geometric"] = then_geometric, True
    constructors["geomdp_laplace"] = then_laplace, True
    if replace_laplace:
        constructors["laplace"] = _then_any_laplace, True


def _then_any_laplace(scale: float, k: int | None = None, MO: Any = "MaxDivergence") -> Any:
    """Return :func:`then_laplace`, but OpenDP's own for floats."""

    def make(domain: dp.Domain, metric: dp.Metric) -> dp.Measurement:
        theirs = dp.m.make_laplace(domain, metric, scale, k=k, MO=MO)
        return _with_our_noise(theirs, scale, None) if _atom(theirs) in _DTYPES else theirs

    return partial(make)


@showable
@dataclass(frozen=True, slots=True)
class _Noise:
    """The function that OpenDP calls with a count or a list of counts."""

    mechanism: GeometricMechanism
    atom: str
    vector: bool

    @unseen
    def __call__(self, arg: Any) -> Any:
        dtype = _DTYPES[self.atom]
        if not self.vector:
            return int(self.mechanism.release(dtype.type(arg)))
        counts = np.array(arg, dtype=dtype)
        noisy = self.mechanism.release(counts, out=counts)
        # OpenDP 0.14 reads usize arrays as u64.
        return noisy.tolist() if self.atom == "usize" else noisy


@showable
@dataclass(frozen=True, slots=True)
class _Loss:
    """The privacy map that OpenDP calls with an int, or for `make_laplace` also with a float."""

    mechanism: GeometricMechanism

    def __call__(self, d_in: int | float) -> float:
        exact = parameters.nonnegative_fraction("d_in", _stored(d_in))
        return decimals.up(exact_loss(self.mechanism, exact))


def _stored(number: int | float) -> Any:
    """Return the number that a float stores, which is what OpenDP takes it for."""
    return Fraction(number) if isinstance(number, float) and math.isfinite(number) else number


def _with_our_noise(
    theirs: dp.Measurement, scale: float, bounds: tuple[int, int] | None
) -> dp.Measurement:
    """Return a measurement with OpenDP's domain and metric and with our noise and map."""
    carrier, atom = str(theirs.input_carrier_type), _atom(theirs)
    if atom not in _DTYPES:
        raise ValueError(
            f"input_domain = {theirs.input_domain} is not accepted: give a domain of integers "
            "(for floats, use OpenDP's own make_laplace)"
        )
    mechanism = saturating(_stored(float(scale)), bounds, _DTYPES[atom])
    # OpenDP does not make a measurement without a promise that function and map are correct. Here
    # they are, so users need not give it.
    with promised():
        return dp.m.make_user_measurement(
            theirs.input_domain,
            theirs.input_metric,
            theirs.output_measure,
            function=_Noise(mechanism, atom, atom != carrier),
            privacy_map=_Loss(mechanism),
            TO=carrier,
        )


def _atom(measurement: dp.Measurement) -> str:
    """Return OpenDP's name for the type of a count."""
    return str(measurement.input_carrier_type).removeprefix("Vec<").removesuffix(">")


public(__name__)

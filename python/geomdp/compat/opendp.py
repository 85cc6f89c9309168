"""OpenDP measurements with the noise of this package: real ones, made by OpenDP's own constructor.

They carry OpenDP's domains and metrics, chain after its transformations, and answer ``map`` and
``check`` through it. OpenDP hands single counts and lists to Python and takes the noisy ones back;
in between they are noised as an array, in constant time, at the edges of every type.

>>> import opendp.prelude as dp
>>> from geomdp.compat.opendp import make_geometric
>>> dp.enable_features("contrib")
>>> space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
>>> make_geometric(*space, scale=1.0).map(1)
1.0

Needs ``opendp``: ``pip install geomdp[opendp]``.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from geomdp._release import arrays, parameters
from geomdp._release.extras import installed_by
from geomdp._release.mechanism import GeometricMechanism

with installed_by("geomdp[opendp]"):
    import opendp.prelude as dp
    from opendp.context import constructors
    from opendp.mod import GLOBAL_FEATURES, _PartialConstructor

__all__ = ["make_geometric", "make_laplace", "register", "then_geometric", "then_laplace"]

#: The dtypes of the types that OpenDP has geometric noise for.
_DTYPES: dict[str, np.dtype[Any]] = {
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "usize": np.dtype(np.uintp),
}
_FEATURE = "honest-but-curious"
_FEATURE_LOCK = threading.Lock()


def make_geometric(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    scale: float,
    bounds: tuple[int, int] | None = None,
    MO: Any = "MaxDivergence",
) -> dp.Measurement:
    """Return OpenDP's ``make_geometric`` with our noise: its domains, its map, its errors.

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        An atom domain of i32, i64, u32, u64 or usize, or a vector domain of one.
    input_metric : opendp.mod.Metric
        The absolute distance for an atom domain, L1 for a vector domain.
    scale : float
        Not negative.
    bounds : (int, int) or None
        Least and greatest output. If there are none, outputs saturate at the limits of the type, as
        OpenDP's do: of an unsigned type, small counts are biased upward (``docs/bounds.md``).
        Counts outside are clamped, with scale 0 too.
    MO : type
        The measure; only MaxDivergence.

    Raises
    ------
    TypeError, ValueError, opendp.mod.OpenDPException
        What OpenDP's own constructor raises for these parameters.
    ValueError
        Also if the scale is too large to be certified for the range.

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
    """Return OpenDP's ``make_laplace`` on integers with our noise, which has the same law.

    Parameters
    ----------
    input_domain, input_metric, scale, MO
        As in :func:`make_geometric`.
    k : int or None
        As there: for floats only, so that integers have None or 0.

    Raises
    ------
    TypeError, ValueError, opendp.mod.OpenDPException
        What OpenDP's own constructor raises for these parameters.
    ValueError
        Also for a domain of floats, and if the scale is too large to be certified.

    """
    theirs = dp.m.make_laplace(input_domain, input_metric, scale, k=k, MO=MO)
    return _with_our_noise(theirs, scale, None)


def then_geometric(
    scale: float, bounds: tuple[int, int] | None = None, MO: Any = "MaxDivergence"
) -> Any:
    """Return :func:`make_geometric` without its first two parameters, to be given by ``>>``."""
    return _partial(lambda domain, metric: make_geometric(domain, metric, scale, bounds, MO))


def then_laplace(scale: float, k: int | None = None, MO: Any = "MaxDivergence") -> Any:
    """Return :func:`make_laplace` without its first two parameters, to be given by ``>>``."""
    return _partial(lambda domain, metric: make_laplace(domain, metric, scale, k, MO))


def register(*, replace_laplace: bool = False) -> None:
    """Make both constructors known to OpenDP's Context API.

    Their names there are ``geomdp_geometric`` and ``geomdp_laplace``:
    ``context.query().count().geomdp_laplace()``. Calling this more than once does no harm.

    Parameters
    ----------
    replace_laplace : bool
        Whether ``laplace`` has our noise too, for every Context of this process. OpenDP's own is
        still used for floats. Queries of Polars do not come this way.

    """
    constructors["geomdp_geometric"] = then_geometric, True
    constructors["geomdp_laplace"] = then_laplace, True
    if replace_laplace:
        constructors["laplace"] = _then_any_laplace, True


def _then_any_laplace(scale: float, k: int | None = None, MO: Any = "MaxDivergence") -> Any:
    return _partial(lambda domain, metric: _any_laplace(domain, metric, scale, k, MO))


def _any_laplace(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    scale: float,
    k: int | None = None,
    MO: Any = "MaxDivergence",
) -> dp.Measurement:
    """Return :func:`make_laplace`, but OpenDP's own for floats."""
    theirs = dp.m.make_laplace(input_domain, input_metric, scale, k=k, MO=MO)
    return _with_our_noise(theirs, scale, None) if _atom(theirs) in _DTYPES else theirs


def _partial(constructor: Callable[[dp.Domain, dp.Metric], dp.Measurement]) -> Any:
    # The only thing that OpenDP's ``>>`` takes for a constructor.
    partial = _PartialConstructor(constructor)  # type: ignore[no-untyped-call]
    # This empty dictionary would be the serialized form; without it, `serialize` raises.
    vars(partial).pop("__opendp_dict__", None)
    return partial


@dataclass(frozen=True, slots=True)
class _Noise:
    """What OpenDP calls with a count or a list of counts."""

    mechanism: GeometricMechanism
    atom: str
    vector: bool

    def __call__(self, arg: Any) -> Any:
        dtype = _DTYPES[self.atom]
        if not self.vector:
            return int(self.mechanism.release(dtype.type(arg)))
        counts = np.array(arg, dtype=dtype)
        noisy = self.mechanism.release(counts, out=counts)
        # In arrays, OpenDP 0.14 takes usize for u64.
        return noisy.tolist() if self.atom == "usize" else noisy


@dataclass(frozen=True, slots=True)
class _Loss:
    """What OpenDP calls with a distance: an int, or a float, which `make_laplace` has as well."""

    mechanism: GeometricMechanism

    def __call__(self, d_in: int | float) -> float:
        if isinstance(d_in, int):
            return self.mechanism.map(d_in)
        # The loss at distance n / m is that at distance n with m times the scale.
        exact = Fraction(parameters.number("d_in", d_in))
        numerator, denominator = exact.as_integer_ratio()
        wider = GeometricMechanism.from_scale(Fraction(self.mechanism.scale) * denominator)
        return wider.map(numerator)


def _with_our_noise(
    theirs: dp.Measurement, scale: float, bounds: tuple[int, int] | None
) -> dp.Measurement:
    """Return a measurement in the spaces that OpenDP has accepted, with our noise and map."""
    carrier, atom = str(theirs.input_carrier_type), _atom(theirs)
    if atom not in _DTYPES:
        raise ValueError(
            f"input_domain = {theirs.input_domain} is not accepted: give one of integers "
            "(for floats, OpenDP's own make_laplace)"
        )
    # The domain names the type, at whose limits outputs saturate.
    bounds = arrays.limits(_DTYPES[atom]) if bounds is None else bounds
    mechanism = GeometricMechanism.from_scale(float(scale), bounds)
    # Refuses here what could not be released later.
    mechanism.certificate(_DTYPES[atom])
    return _user_measurement(
        theirs.input_domain,
        theirs.input_metric,
        theirs.output_measure,
        function=_Noise(mechanism, atom, atom != carrier),
        privacy_map=_Loss(mechanism),
        TO=carrier,
    )


def _atom(measurement: dp.Measurement) -> str:
    """Return the name of the type of a count."""
    return str(measurement.input_carrier_type).removeprefix("Vec<").removesuffix(">")


def _user_measurement(*arguments: Any, **options: Any) -> dp.Measurement:
    """Return a user-defined measurement, for which OpenDP wants a promise.

    The promise is that map and function are what they are said to be. Those of this module are, so
    it is given here, for this one call, and not asked of everyone who uses it. (OpenDP has one such
    setting for the whole process: do not change it in another thread meanwhile.)
    """
    with _FEATURE_LOCK:
        given = _FEATURE in GLOBAL_FEATURES
        dp.enable_features(_FEATURE)
        try:
            return dp.m.make_user_measurement(*arguments, **options)
        finally:
            if not given:
                dp.disable_features(_FEATURE)

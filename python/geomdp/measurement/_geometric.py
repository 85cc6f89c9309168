"""The geometric mechanism as a measurement."""

import re
from dataclasses import dataclass
from typing import Any

from geomdp._release import arrays, parameters
from geomdp._release.mechanism import GeometricMechanism
from geomdp._release.parameters import Bounds, Real
from geomdp.measurement import _metrics, _types
from geomdp.measurement._domains import AllDomain, Domain, VectorDomain
from geomdp.measurement._metrics import MaxDivergence, Metric
from geomdp.measurement._steps import Measurement, Partial

_SPELLING = re.compile(
    r"\s*(?P<vector>VectorDomain\s*<\s*)?AllDomain\s*<\s*(?P<T>\w+)\s*>\s*(?(vector)>\s*)"
)


@dataclass(frozen=True, slots=True)
class _Noise:
    """Noise for the counts of a domain."""

    domain: Domain
    mechanism: GeometricMechanism

    def __call__(self, arg: Any) -> Any:
        noisy = self.mechanism.release(self.domain._cast(arg))
        return int(noisy) if type(arg) is int else noisy


@dataclass(frozen=True, slots=True)
class _Loss:
    """The privacy map: ``d_in / scale``, rounded up."""

    measure: MaxDivergence
    mechanism: GeometricMechanism

    def __call__(self, d_in: int) -> float:
        return self.measure._round_up(self.mechanism.map(d_in))


def make_geometric(
    input_domain: Domain,
    input_metric: Metric,
    scale: Real,
    bounds: Bounds | None = None,
) -> Measurement:
    """Return a measurement that adds two-sided geometric noise to integers.

    ``function(x)`` is ``clamp(clamp(x) + Z)``, with Z as in :class:`geomdp.GeometricMechanism`,
    and ``map(d_in)`` is ``d_in / scale`` rounded up (*Privacy Proofs for OpenDP: Geometric
    Measurement*, theorem 1.1).

    Parameters
    ----------
    input_domain : AllDomain or VectorDomain
        Of integers of 8 to 64 bits: one count, or an array of counts.
    input_metric : AbsoluteDistance or L1Distance
        Absolute for one count and L1 for an array, of the type of the counts.
    scale : int, float or Fraction
        Not negative; taken exactly. With scale 0, no noise is added, and ``map`` is infinite but at
        distance 0.
    bounds : (int, int) or None
        Least and greatest output. If there are none, outputs saturate at the limits of the type, as
        in OpenDP: of an unsigned type, small counts are biased upward (``docs/bounds.md``).

    Raises
    ------
    TypeError
        If a parameter is of another type, or the domain is not one of integers.
    ValueError
        If domain and metric do not go together, the scale is negative, not finite, or too large to
        be certified for the range, or lower is greater than upper.
    OverflowError
        If the bounds are beyond the type.

    Examples
    --------
    >>> from geomdp.measurement import atom_domain, l1_distance, vector_domain
    >>> counts = vector_domain(atom_domain("u32")), l1_distance("u32")
    >>> measurement = make_geometric(*counts, scale=2.0, bounds=(0, 1000))
    >>> measurement.map(1)
    0.5

    """
    return _make(input_domain, input_metric, scale, bounds, MaxDivergence())


def then_geometric(scale: Real, bounds: Bounds | None = None) -> Partial:
    """Return :func:`make_geometric` without its first two parameters, to be given by ``>>``."""
    return Partial(make_geometric, (scale, bounds))


def make_base_geometric(
    scale: Real,
    bounds: Bounds | None = None,
    D: Any = "AllDomain<i64>",
    QO: Any = float,
) -> Measurement:
    """Return :func:`make_geometric` by the name and parameters that it had at first.

    This is the constructor of *Privacy Proofs for OpenDP: Geometric Measurement*, section 1.2: the
    domain chooses the metric. Unlike there, ``map`` overflows to infinity, not to an error.

    Parameters
    ----------
    scale, bounds
        As in :func:`make_geometric`.
    D : AllDomain, VectorDomain or str
        The input domain; also as OpenDP wrote it: ``"AllDomain<i32>"`` or
        ``"VectorDomain<AllDomain<u64>>"``. The default is one ``int``, which has 64 bits here and
        had 32 there.
    QO : type of floats
        Of the loss: float (float64), or float32, to which ``map`` is rounded up then.

    Raises
    ------
    TypeError, ValueError, OverflowError
        As :func:`make_geometric` does; TypeError also for a string that is not such a type.

    Examples
    --------
    >>> from geomdp.measurement import atom_domain, make_count, symmetric_distance, vector_domain
    >>> count = make_count(vector_domain(atom_domain(str)), symmetric_distance())
    >>> noisy_count = count >> make_base_geometric(scale=1.0)
    >>> noisy_count.map(1)
    1.0

    """
    domain = _parse(D) if isinstance(D, str) else D
    if not isinstance(domain, AllDomain | VectorDomain) or domain.T.kind not in "iu":
        wanted = (
            "AllDomain(T) or VectorDomain(AllDomain(T)), "
            'or "AllDomain<i32>" and the like, of integers i8 to i64 or u8 to u64'
        )
        raise TypeError(parameters.refusal("D", D, wanted))
    return _make(domain, _metrics.partner(domain), scale, bounds, MaxDivergence(QO))


def _make(domain: Any, metric: Any, scale: Any, bounds: Any, measure: MaxDivergence) -> Measurement:
    _metrics.check_counts(domain, metric)
    # The domain names the type, at whose limits outputs saturate.
    bounds = arrays.limits(domain.T) if bounds is None else bounds
    mechanism = GeometricMechanism.from_scale(scale, bounds)
    # Refuses here what could not be released later.
    mechanism.certificate(domain.T)
    return Measurement(
        domain,
        metric,
        measure,
        domain,
        _Noise(domain, mechanism),
        _Loss(measure, mechanism),
    )


def _parse(text: str) -> Any:
    """Return the domain that OpenDP once wrote in this way, or None."""
    found = _SPELLING.fullmatch(text)
    # By width only: "int" was 32 bits there, and is 64 here.
    if found is None or found["T"] not in _types.RUST_INTEGERS:
        return None
    element = AllDomain(found["T"])
    return VectorDomain(element) if found["vector"] else element

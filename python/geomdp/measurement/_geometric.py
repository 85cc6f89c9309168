"""The geometric mechanism as a measurement."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from geomdp._ground import notebook, parameters
from geomdp._ground.parameters import Bounds, Real
from geomdp._inputs import labels
from geomdp._inputs.arrays import RUST_DTYPES
from geomdp._noise import exact_loss
from geomdp.measurement import _metrics
from geomdp.measurement._domains import AllDomain, Domain, VectorDomain, as_member
from geomdp.measurement._metrics import MaxDivergence, Metric
from geomdp.measurement._pipeline import Measurement, Partial
from geomdp.mechanism import GeometricMechanism, saturating

_SPELLING = re.compile(
    r"\s*(?P<vector>VectorDomain\s*<\s*)?AllDomain\s*<\s*(?P<T>\w+)\s*>\s*(?(vector)>\s*)"
)


@notebook.showable
@dataclass(frozen=True, slots=True)
class _Noise:
    """Adds noise to the counts of a domain."""

    domain: Domain
    mechanism: GeometricMechanism

    def __call__(self, arg: Any) -> Any:
        [values], labelled = labels.detach(arg=arg)
        noisy = self.mechanism.release(as_member(self.domain, values))
        return int(noisy) if type(arg) is int else labelled(noisy)

    def __str__(self) -> str:
        scale, bounds = notebook.short(self.mechanism.scale), self.mechanism.bounds
        return f"add discrete Laplace noise of scale {scale}, clamp to {bounds}"


@notebook.showable
@dataclass(frozen=True, slots=True)
class _Loss:
    """The privacy loss: ``d_in / scale``, exactly."""

    mechanism: GeometricMechanism

    def __call__(self, d_in: int) -> list[Fraction | float]:
        return [exact_loss(self.mechanism, d_in)]


def make_geometric(
    input_domain: Domain,
    input_metric: Metric,
    scale: Real,
    bounds: Bounds | None = None,
) -> Measurement:
    """Return a measurement that adds two-sided geometric noise to integers.

    ``function(x)`` is ``clamp(clamp(x) + Z)``, with the Z of :class:`geomdp.GeometricMechanism`,
    and ``map(d_in)`` is ``d_in / scale`` rounded up (*Privacy Proofs for OpenDP: Geometric
    Measurement*, theorem 1.1).

    Parameters
    ----------
    input_domain : AllDomain or VectorDomain
        One count, or an array of counts; integers of 8 to 64 bits.
    input_metric : AbsoluteDistance or L1Distance
        Absolute distance for one count, L1 for an array, both with the type of the counts.
    scale : number
        The noise scale: at least 0, taken exactly. Scale 0 adds no noise, and ``map`` is then
        infinite for every distance except 0.
    bounds : (int, int) or None
        Least and greatest output. With None, outputs saturate at the limits of the type, as in
        OpenDP; for an unsigned type, this biases small counts upward (``docs/bounds.md``).

    Examples
    --------
    >>> from geomdp.measurement import atom_domain, l1_distance, vector_domain
    >>> from geomdp.measurement import make_geometric
    >>> counts = vector_domain(atom_domain("u32")), l1_distance("u32")
    >>> measurement = make_geometric(*counts, scale=2.0, bounds=(0, 1000))
    >>> measurement.map(1)
    0.5

    """
    return _make(input_domain, input_metric, scale, bounds, MaxDivergence())


def then_geometric(scale: Real, bounds: Bounds | None = None) -> Partial:
    """Return a step that adds two-sided geometric noise, to be joined by ``>>``.

    Parameters and errors are those of :func:`make_geometric`; ``>>`` gives the first two.

    >>> import geomdp.measurement as m
    >>> counts = m.vector_domain(m.atom_domain(int)), m.l1_distance(int)
    >>> (counts >> m.then_geometric(scale=2, bounds=(0, 100))).map(1)
    0.5
    """
    return Partial(make_geometric, (scale, bounds))


def make_base_geometric(
    scale: Real,
    bounds: Bounds | None = None,
    D: Any = "AllDomain<i64>",
    QO: Any = float,
) -> Measurement:
    """Return :func:`make_geometric` with the name and parameters of early OpenDP versions.

    This is the constructor of *Privacy Proofs for OpenDP: Geometric Measurement*, section 1.2. The
    domain determines the metric. On overflow, ``map`` returns infinity instead of raising an error.

    Parameters
    ----------
    scale : number
        The noise scale: at least 0, taken exactly.
    bounds : (int, int) or None
        Least and greatest output. With None, outputs saturate at the limits of the type.
    D : AllDomain, VectorDomain or str
        The input domain, or OpenDP's early name of it, such as ``"AllDomain<i32>"`` or
        ``"VectorDomain<AllDomain<u64>>"``. The default is one integer of 64 bits (32 in OpenDP).
    QO : float type
        The type of the privacy loss: float (float64) or float32. ``map`` rounds up to this type.

    Examples
    --------
    >>> from geomdp.measurement import atom_domain, make_count, symmetric_distance, vector_domain
    >>> from geomdp.measurement import make_base_geometric
    >>> count = make_count(vector_domain(atom_domain(str)), symmetric_distance())
    >>> noisy_count = count >> make_base_geometric(scale=1.0)
    >>> noisy_count.map(1)
    1.0

    """
    domain = _parse(D) if isinstance(D, str) else D
    if not isinstance(domain, AllDomain | VectorDomain) or domain.T.kind not in "iu":
        wanted = (
            'AllDomain(T), VectorDomain(AllDomain(T)) or a name such as "AllDomain<i32>", '
            "with T an integer type"
        )
        raise TypeError(parameters.refusal("D", D, wanted))
    return _make(domain, _metrics.partner(domain), scale, bounds, MaxDivergence(QO))


def _make(domain: Any, metric: Any, scale: Any, bounds: Any, measure: MaxDivergence) -> Measurement:
    _metrics.check_counts(domain, metric)
    mechanism = saturating(scale, bounds, domain.T)
    noise = _Noise(domain, mechanism)
    return Measurement(domain, metric, measure, domain, noise, _Loss(mechanism))


def _parse(text: str) -> Any:
    """Return the domain with this name in early OpenDP versions, or None."""
    found = _SPELLING.fullmatch(text)
    # Only names with a width: "int" had 32 bits in OpenDP and has 64 here.
    if found is None or found["T"] not in RUST_DTYPES:
        return None
    element = AllDomain(found["T"])
    return VectorDomain(element) if found["vector"] else element

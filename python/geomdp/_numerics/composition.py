"""Privacy losses of many releases together, as sums of independent losses.

A release of privacy loss l is at worst randomised response: the log of the ratio of its
probabilities is l with probability ``1 / (1 + exp(-l))``, else -l. A cell that changes by more than
1 has a distribution of losses of its own. The sum over all releases has a distribution P, and the
least delta at epsilon is the mean of ``max(0, 1 - exp(epsilon - sum))`` under P
(``docs/proofs.md``, section 14).
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from geomdp._ground import decimals
from geomdp.certificate import FLOOR, SLACK

#: Each positive loss, and how many releases have it.
Groups = dict[Fraction, int]
#: The rate of the noise in a cell and the greatest change of the cell, and how many such cells.
Cells = dict[tuple[Fraction, int], int]
#: The sum of losses, as a multiple of a unit, and its probability.
Outcome = tuple[int, Decimal]

#: The most sums of mixed losses that are enumerated.
MOST_SUMS = 2**16
#: About the most steps of the grid for more sums, and the most multiplications that it takes.
MOST_STEPS = 2**21
MOST_WORK = 2**30
_SPARE = decimals.SPARE
_GRID_DIGITS = 100
#: More than the grid leaves out or lets underflow.
_GRID_REST = 1e-90
_TINY = Decimal((0, (1,), -(10**6)))
#: More than the relative error of a bound by Renyi divergences.
_MARGIN = Decimal("1e-30")


def _rounded_up(
    ends: Callable[[int], tuple[Decimal, Decimal]], limit: float, digits: int = 4 * _SPARE
) -> float:
    """Return the least float that states no less than a number, given bounds on it for any digits.

    It is at most ``limit``, and so are the bounds that are compared: without that, no number of
    digits would tell a number just below the limit from the limit.
    """
    while True:
        low, high = (min(decimals.least(end), limit) for end in ends(digits))
        if low == high:
            return high
        digits *= 2


def is_exact(groups: Groups) -> bool:
    """Return whether the sums are enumerated: the losses are equal, or their sums are few."""
    if len(groups) <= 1:
        return True
    unit = Fraction(
        math.gcd(*(loss.numerator for loss in groups)),
        math.lcm(*(loss.denominator for loss in groups)),
    )
    multiples = math.floor(total(groups) / unit) + 1
    return min(multiples, math.prod(n + 1 for n in groups.values())) <= MOST_SUMS


def total(groups: Groups) -> Fraction:
    """Return the sum of the losses."""
    return sum((n * loss for loss, n in groups.items()), Fraction(0))


def cells(groups: Groups) -> Cells:
    """Return releases as changes of one cell by each."""
    return {(loss, 1): n for loss, n in groups.items()}


def epsilon(groups: Groups, delta: Fraction) -> float:
    """Return the least epsilon of releases together at this delta, rounded up."""
    whole = total(groups)
    if not whole or delta == 1:
        return 0.0
    if not delta:
        return decimals.least(whole)
    if is_exact(groups):
        return exact_epsilon(groups, delta)
    grid = Grid(cells(groups)).epsilon(delta)
    return min(decimals.least(whole), grid, renyi_epsilon(groups, delta))


def delta(groups: Groups, epsilon: Fraction) -> float:
    """Return the least delta of releases together at this epsilon, rounded up."""
    if epsilon >= total(groups):
        return 0.0
    if is_exact(groups):
        return exact_delta(groups, epsilon)
    return min(Grid(cells(groups)).delta(decimals.down(epsilon)), renyi_delta(groups, epsilon))


def exact_epsilon(groups: Groups, delta: Fraction) -> float:
    """Return the least epsilon at a delta between 0 and 1, rounded up."""
    unit = Fraction(1, math.lcm(*(loss.denominator for loss in groups)))

    def ends(digits: int) -> tuple[Decimal, Decimal]:
        wrong = Decimal(10) ** -digits
        with localcontext(_context(groups, digits)):
            goals = [decimals.of(delta) + wrong, decimals.of(delta) - wrong]
            found = []
            for loss, mass, other, least in _pieces(_outcomes(groups, unit, digits), unit, 0):
                while goals and least >= goals[-1]:
                    share = (mass - goals.pop()) / other
                    found.append(decimals.of(loss * unit) + min(share, Decimal(1)).ln())
                if not goals:
                    break
            # Those that are not found are below 0.
            high = found[0] + wrong if found else Decimal(0)
            low = found[1] - wrong if not goals else Decimal(0)
            return max(low, Decimal(0)), max(high, Decimal(0))

    # So that delta - wrong is positive.
    digits = 4 * _SPARE + max(0, -decimals.bits(delta)) // 3
    return _rounded_up(ends, decimals.least(total(groups)), digits)


def exact_delta(groups: Groups, epsilon: Fraction) -> float:
    """Return the least delta at an epsilon below the sum of the losses, rounded up."""
    denominators = (loss.denominator for loss in groups)
    unit = Fraction(1, math.lcm(epsilon.denominator, *denominators))

    def ends(digits: int) -> tuple[Decimal, Decimal]:
        wrong = Decimal(10) ** -digits
        with localcontext(_context(groups, digits)):
            value = Decimal(0)
            outcomes = _outcomes(groups, unit, digits)
            for _, _, _, value in _pieces(outcomes, unit, int(epsilon / unit)):  # noqa: B007
                pass
            return max(value - wrong, _TINY), value + wrong

    return _rounded_up(ends, 1.0)


def _context(groups: Groups, digits: int) -> Context:
    """Return a context in which all operations together are off by less than 10**-digits."""
    operations = sum(n * (1 + math.ceil(loss)) for loss, n in groups.items()) + MOST_SUMS
    return decimals.context(digits + _SPARE + len(str(operations)))


def _outcomes(groups: Groups, unit: Fraction, digits: int) -> list[Outcome]:
    """Return the sums of losses, the greatest first, except for a mass of 10**-digits."""
    sums = {0: Decimal(1)}
    for loss, n in groups.items():
        step = int(loss / unit)
        combined: defaultdict[int, Decimal] = defaultdict(Decimal)
        for k, weight in _binomial(loss, n, digits + _SPARE).items():
            for before, other in sums.items():
                combined[before + (n - 2 * k) * step] += weight * other
        sums = combined
    return sorted(sums.items(), reverse=True)


def _binomial(loss: Fraction, n: int, digits: int) -> dict[int, Decimal]:
    """Return the probability of k negative losses of n, for all k but a mass of 2 * 10**-digits."""
    odds = (-decimals.of(loss)).exp()
    start = int((n + 1) * odds / (1 + odds))
    least = Decimal(10) ** -digits
    weights = {start: Decimal(1)}
    for step in (1, -1):
        k, weight = start, Decimal(1)
        while 0 <= k + step <= n:
            # It falls from step to step: the weights left out are below a geometric series.
            ratio = odds * (n - k) / (k + 1) if step == 1 else k / (odds * (n - k + 1))
            k, weight = k + step, weight * ratio
            if weight <= least * (1 - ratio):
                break
            weights[k] = weight
    whole = sum(weights.values())
    return {k: weight / whole for k, weight in weights.items()}


def _pieces(
    outcomes: list[Outcome], unit: Fraction, floor: int
) -> Iterator[tuple[int, Decimal, Decimal, Decimal]]:
    """Return delta between one loss and the next, from the greatest down to the floor.

    As (loss, mass, other, least): delta at e is ``mass - other * exp(e - loss)``, for e from the
    loss down to the next one or to the floor, where it is least.
    """

    @cache
    def fading(gap: int) -> Decimal:
        return (-decimals.of(gap * unit)).exp()

    mass = other = Decimal(0)
    following = [loss for loss, _ in outcomes[1:]] + [floor]
    for (loss, weight), after in zip(outcomes, following, strict=True):
        if loss <= floor:
            break
        mass += weight
        other += weight
        faded = other * fading(loss - max(after, floor))
        yield loss, mass, other, mass - faded
        other = faded


def renyi(loss: Fraction, order: Fraction) -> float:
    """Return the Renyi divergence of randomised response of a positive loss, rounded up."""
    spread = 1 / (order - 1) if order > 1 else 0

    def ends(digits: int) -> tuple[Decimal, Decimal]:
        wrong = Decimal(10) ** -digits
        size = len(str(math.ceil(loss + spread)))
        with localcontext(decimals.context(digits + _SPARE + size)):
            odds = (-decimals.of(loss)).exp()
            if order == 1:
                value = decimals.of(loss) * (1 - odds) / (1 + odds)
            else:
                far = (-decimals.of((2 * order - 1) * loss)).exp()
                logs = (1 + far).ln() - (1 + odds).ln()
                value = decimals.of(loss) + logs / decimals.of(order - 1)
            return max(value - wrong, _TINY), value + wrong

    return _rounded_up(ends, decimals.least(loss))


def renyi_epsilon(groups: Groups, delta: Fraction) -> float:
    """Return the least epsilon that Renyi divergences allow at a delta above 0, rounded up."""
    with localcontext(_context(groups, _GRID_DIGITS)):
        # Less than delta, so that renyi_delta is at most delta, although its order may differ.
        target = decimals.log(delta) - Decimal("1e-12")
        found = _over_orders(groups, lambda t, log: (log - target - (1 + t).ln()) / t + _share(t))
        return decimals.least(max(found + _MARGIN * (1 + abs(found)), Decimal(0)))


def renyi_delta(groups: Groups, epsilon: Fraction) -> float:
    """Return the least delta that Renyi divergences allow, rounded up."""
    with localcontext(_context(groups, _GRID_DIGITS)):
        target = decimals.of(epsilon)
        found = _over_orders(groups, lambda t, log: log - t * (target - _share(t)) - (1 + t).ln())
        return decimals.least(max((min(found, Decimal(0)) + _MARGIN).exp(), _TINY))


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> float:
    """Return the least epsilon that rho-zCDP allows at a delta in (0, 1), rounded up."""
    with localcontext(decimals.context(_GRID_DIGITS)):
        target, cost = -decimals.log(delta), decimals.of(rho)

        def bound(t: Decimal) -> Decimal:
            return cost * (1 + t) + (target - (1 + t).ln()) / t + _share(t)

        best = (target / cost).sqrt()
        for step in map(Decimal, ("1", "0.03", "0.001")):
            # The bound holds at any order, so the search need not find the best one.
            best = min((best * (step * k).exp() for k in range(-32, 33)), key=bound)
        return decimals.least(max(bound(best) + _MARGIN * (1 + abs(bound(best))), Decimal(0)))


def _share(t: Decimal) -> Decimal:
    return (t / (1 + t)).ln()


def _over_orders(groups: Groups, bound: Callable[[Decimal, Decimal], Decimal]) -> Decimal:
    """Return a bound at the best order, given as a function of it.

    Its arguments are ``t = order - 1`` and the logarithm of ``E[exp(t S)]`` for the sum S of
    losses. Float64 chooses the order; the bound holds at any.
    """
    losses = np.array([decimals.up(loss) for loss in groups])
    if losses.max() == math.inf:
        return Decimal("Infinity")
    counts = np.array(list(groups.values()), dtype=np.float64)
    odds, together = np.log1p(np.exp(-losses)), decimals.of(total(groups))

    def approximate(log_t: float) -> Decimal:
        t = math.exp(log_t)
        logs = np.log1p(np.exp(-(1 + 2 * t) * losses)) - odds
        # In Decimal, since a bound may subtract almost the same.
        return bound(Decimal(t), Decimal(t) * together + Decimal(float(counts @ logs)))

    # The greatest term, t * together, has up to 18 digits more than this sum of losses.
    with localcontext(decimals.context(40 + len(str(math.ceil(together))))):
        best = min(range(-25, 40), key=approximate)
        low, high = best - 1.0, best + 1.0
        while high - low > 1e-8:
            thirds = low + (high - low) / 3, high - (high - low) / 3
            low, high = (
                (low, thirds[1])
                if approximate(thirds[0]) <= approximate(thirds[1])
                else (thirds[0], high)
            )
    t = Decimal(math.exp(low))
    # A bound may subtract almost as much as the greatest term, t * together.
    with localcontext(decimals.context(getcontext().prec + 20 + len(str(math.ceil(together))))):
        # One logarithm for all, since each takes longer than the rest.
        product = Decimal(1)
        for loss, n in groups.items():
            exact = decimals.of(loss)
            far = (-(1 + 2 * t) * exact).exp()
            product *= ((1 + far) / (1 + (-exact).exp())) ** n
        return bound(t, t * together + product.ln())


def _sums(rate: Fraction, distance: int, n: int) -> list[tuple[Fraction, float]]:
    """Return the sums of the losses of n cells, each changed by the distance.

    A mass of less than ``_GRID_REST`` is left out.
    """
    if distance == 1:
        weights = _binomial(rate, n, _GRID_DIGITS)
        return [((n - 2 * k) * rate, float(weight)) for k, weight in weights.items()]
    odds = (-decimals.of(rate)).exp()
    inner = [(1 - odds) * odds**k for k in range(1, distance)]
    cell = np.array([float(w / (1 + odds)) for w in (Decimal(1), *inner, odds**distance)])
    first, power = 0, np.ones(1)
    for bit in f"{n:b}":
        first, power = 2 * first, np.convolve(power, power)
        if bit == "1":
            power = np.convolve(power, cell)
        kept = np.flatnonzero(power > 1e-110)
        first, power = first + int(kept[0]), power[kept[0] : kept[-1] + 1]
    return [((n * distance - 2 * k) * rate, w) for k, w in enumerate(power.tolist(), first)]


def allowance(cells: Cells) -> tuple[float, float]:
    """Return how much sampled noise adds to the epsilon and delta of ideal noise, by lemma 14.

    Cells that change by 1 add nothing: their pure loss holds for sampled noise too.
    """
    wide = [(rate, n) for (rate, distance), n in cells.items() if distance > 1]
    epsilon = SLACK * sum((rate * n for rate, n in wide), Fraction(0))
    return decimals.up(epsilon), decimals.up(4 * FLOOR * sum(n for _, n in wide))


def last(rising: Callable[[float], float], low: float, high: float) -> float:
    """Return the last float at which a rising function is not above 0.

    It is not above 0 at `low`, and above 0 at `high`. This is the Illinois method of false
    position, and bisection where the function is 0.
    """
    below, above = rising(low), rising(high)
    side = 0
    while (after := math.nextafter(low, high)) < high:
        share = below / (below - above) if below else 0.5
        guess = min(max(low + (high - low) * share, after), math.nextafter(high, low))
        value = rising(guess)
        if value <= 0:
            low, below, above, side = guess, value, above / 2 if side < 0 else above, -1
        else:
            high, above, below, side = guess, value, below / 2 if side > 0 else below, 1
    return low


class Grid:
    """Upper bounds for mixed losses, from a dominating distribution on multiples of a step.

    A loss between two multiples becomes one of both, with probabilities that keep the means of 1
    and of ``exp(-loss)``: merging the two again is post-processing. All weights are positive, so
    float64 only adds a relative error, which is bounded.
    """

    def __init__(self, cells: Cells) -> None:
        losses: Counter[Fraction] = Counter()
        for (rate, distance), n in cells.items():
            losses[rate * distance] += n
        with localcontext(_context(losses, _GRID_DIGITS)):
            parts = [_sums(*cell, n) for cell, n in cells.items()]
        parts.sort(key=len, reverse=True)
        entries = 2 * sum(map(len, parts))
        # Rounding moves the sum by some steps times the root of the number of groups.
        square = total({loss**2: n for loss, n in losses.items()})
        fine = (decimals.bits(square) - len(cells).bit_length()) // 2 - 17
        width = sum((max(part)[0] - min(part)[0] for part in parts), Fraction(0))
        later = entries - 2 * len(parts[0])
        coarse = width * max(Fraction(1, MOST_STEPS), Fraction(later, MOST_WORK))
        exponent = max(fine, decimals.bits(coarse) + 1, -500)
        self.step = math.ldexp(1, exponent)
        self._first, self._weights = 0, np.ones(1)
        step = Fraction(2) ** exponent
        reach = sum(max(part)[0] // step + 1 for part in parts)
        for part in parts:
            reach -= max(part)[0] // step + 1
            self._add(part, step, -reach)
        # One rounding for each product and sum, and some for each weight.
        powers = sum((2 * d + 20) * n.bit_length() * n for (_, d), n in cells.items() if d > 1)
        self._wrong = (entries + 16 * len(cells) + self._weights.size + powers) * 2.0**-52
        self._slack, self._floor = allowance(cells)
        self._wrong += self._floor

    def _add(self, part: list[tuple[Fraction, float]], step: Fraction, least: int) -> None:
        """Convolve with the losses of a group, split between multiples of the step.

        Sums of less than the least multiple are left out: the groups to come cannot lift them
        above 0, and no epsilon is below, as the slack is less than a step.
        """
        split: defaultdict[int, float] = defaultdict(float)
        whole = math.expm1(-self.step)
        for loss, weight in part:
            below, rest = divmod(loss / step, 1)
            high, low = float(rest) * self.step, float(1 - rest) * self.step
            split[below + 1] += weight * (math.expm1(-high) / whole)
            split[below] += weight * (math.exp(-high) * math.expm1(-low) / whole)
        first = max(self._first + min(split), least)
        sums = np.zeros(self._first + self._weights.size + max(split) - first)
        for place, weight in split.items():
            start = self._first + place - first
            kept = self._weights[max(-start, 0) :]
            sums[max(start, 0) :][: kept.size] += weight * kept
        self._first, self._weights = first, sums

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at an epsilon that is not negative."""
        place, above = divmod(epsilon, self.step)
        after = int(place) - self._first
        weights = self._weights[max(after, 0) :]
        if above or after < 0:
            parts = self._parts(max(-after, 0), weights.size, above)
        else:
            parts = self._on_grid[: weights.size]
        # Not by BLAS, whose threads take longer than the sum.
        value = float(np.einsum("i,i->", weights, parts))
        return min(1.0, value * (1 + self._wrong) + self._floor + _GRID_REST)

    def _parts(self, first: int, size: int, above: float = 0.0) -> NDArray[np.float64]:
        """Return the share of its weight that each loss adds to delta.

        Epsilon is a multiple of the step plus `above`, and the losses are `first` and more steps
        from that multiple. No share is negative, so delta has a relative error alone; a difference
        of the sums of ``weight`` and of ``weight * exp(epsilon - loss)`` would cancel.
        """
        losses = np.arange(first, first + size) * self.step - above + self._slack
        shares: NDArray[np.float64] = -np.expm1(-np.maximum(losses, 0.0))
        return shares

    @cached_property
    def _on_grid(self) -> NDArray[np.float64]:
        """The shares at any multiple of the step: the losses above it are the same multiples."""
        return self._parts(0, self._weights.size)

    def epsilon(self, delta: Fraction) -> float:
        """Return the least multiple of the step at which delta is at most this one, or infinity."""
        places = range(max(self._first + self._weights.size, 0))
        place = bisect_left(places, True, key=lambda n: self.delta(n * self.step) <= delta)
        return place * self.step if place < len(places) else math.inf

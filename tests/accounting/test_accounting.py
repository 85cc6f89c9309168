"""The total privacy loss, against sums over all outcomes of randomised response by mpmath."""

import itertools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mpf

from exact import stated
from geomdp import GeometricMechanism
from geomdp._numerics import composition
from geomdp._numerics.composition import allowance
from geomdp.accounting import Budget, compose, compose_delta, loss_distribution, rdp, split, zcdp
from tapes import sampled_distribution

MECHANISM = GeometricMechanism(1)
FEW = [0.1, Fraction(1, 3), 0.7]
losses = st.one_of(
    st.floats(0, 3), st.builds(Fraction, st.integers(0, 50), st.integers(10, 60)), st.just(0.25)
)
few_losses = st.one_of(
    st.lists(losses, max_size=7), st.builds(lambda x, n: [x] * n, losses, st.integers(0, 7))
)
deltas = st.one_of(st.floats(1e-30, 1), st.floats(-300, 0).map(lambda x: 10.0**x))


def ratio(number: object) -> mpf:
    return mpf(stated(number).numerator) / stated(number).denominator


def brute_force(many: list[object], epsilon: object) -> mpf:
    """Return delta as the sum over all 2^n outcomes."""
    chances = [1 / (1 + mpmath.exp(-ratio(loss))) for loss in many]
    total = mpf(0)
    for signs in itertools.product((True, False), repeat=len(many)):
        one = mpmath.fprod(p if s else 1 - p for p, s in zip(chances, signs, strict=True))
        other = mpmath.fprod(1 - p if s else p for p, s in zip(chances, signs, strict=True))
        total += max(mpf(0), one - mpmath.exp(ratio(epsilon)) * other)
    return total


def by_binomials(loss: object, n: int, epsilon: object) -> mpf:
    """Return delta as the sum over the numbers of outcomes, all of them."""
    p = 1 / (1 + mpmath.exp(-ratio(loss)))
    q = 1 - p
    terms = (
        mpmath.binomial(n, k)
        * (p ** (n - k) * q**k - mpmath.exp(ratio(epsilon)) * p**k * q ** (n - k))
        for k in range(n + 1)
        if (n - 2 * k) * stated(loss) > stated(epsilon)
    )
    return mpmath.fsum(terms)


def is_the_least(value: float, holds: object) -> bool:
    """Return whether a float is the least one, not below 0, of those that hold."""
    return holds(value) and (value == 0 or not holds(math.nextafter(value, 0)))


@settings(deadline=None)
@given(many=few_losses, delta=deltas)
@example(many=[0.1] * 5, delta=1e-6)
@example(many=[1e-9, 1, 50], delta=1e-40)
@example(many=[1e-300] * 3, delta=1e-301)
@example(many=[300, 300], delta=0.5)
def test_epsilon_is_the_least_float(many: list[object], delta: float) -> None:
    with mpmath.workdps(1200):
        assert is_the_least(compose(many, delta), lambda e: brute_force(many, e) <= ratio(delta))


@settings(deadline=None)
@given(many=few_losses, epsilon=st.one_of(st.floats(0, 10), st.just(Fraction(1, 3))))
@example(many=[1e-300] * 3, epsilon=0)
@example(many=[800, 800], epsilon=1599)
@example(many=[1e-5, 1000.0], epsilon=1000)
def test_delta_is_the_least_float(many: list[object], epsilon: object) -> None:
    with mpmath.workdps(1200):
        exact = brute_force(many, epsilon)
        # The sum of 1200 digits of numbers near 1.
        exact = exact if exact > mpf(10) ** -1100 else mpf(0)
        assert is_the_least(compose_delta(many, epsilon), lambda d: exact <= ratio(d))


@pytest.mark.parametrize("loss", [0.003, 0.1, 2])
@pytest.mark.parametrize(("n", "delta"), [(50, 1e-6), (1000, 1e-6), (1000, 1e-200), (999, 0.9)])
def test_many_equal_losses_give_the_least_float(loss: float, n: int, delta: float) -> None:
    with mpmath.workdps(600):
        epsilon = compose({loss: n}, delta)
        assert is_the_least(epsilon, lambda e: by_binomials(loss, n, e) <= ratio(delta))
        exact = by_binomials(loss, n, epsilon / 2)
        assert is_the_least(compose_delta({loss: n}, epsilon / 2), lambda d: exact <= ratio(d))


def test_a_million_equal_losses() -> None:
    loss, n, delta = 0.01, 10**6, 1e-6
    epsilon = compose({loss: n}, delta)
    assert compose_delta({loss: n}, epsilon) <= delta
    assert compose_delta({loss: n}, math.nextafter(epsilon, 0)) >= delta
    # Every term of it, by log-gamma in 40 digits, over 30 standard deviations.
    with mpmath.workdps(40):
        p = 1 / (1 + mpmath.exp(-mpf(loss)))
        most = int((n - epsilon / loss) / 2)
        logs = (
            (k, mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1))
            for k in range(most - 6000, most + 1)
        )
        exact = mpmath.fsum(
            mpmath.exp(log + (n - k) * mpmath.log(p) + k * mpmath.log(1 - p))
            * -mpmath.expm1(epsilon - (n - 2 * k) * mpf(loss))
            for k, log in logs
        )
    assert abs(exact / mpf(delta) - 1) < 1e-12


def test_delta_zero_gives_the_exact_sum_rounded_up() -> None:
    # Unlike sum, which compensates for rounding from Python 3.12 on.
    assert [*itertools.accumulate([0.1] * 50)][-1] < 5
    assert compose([0.1] * 50) == compose({0.1: 50}) == compose([Fraction(1, 10)] * 50) == 5
    assert compose([0.1] * 3) == 0.3
    assert compose([Fraction(0.1)] * 50) == math.nextafter(5, 6)
    assert compose([]) == compose([0, 0.0], 0.5) == 0
    assert compose([1e308] * 2) == math.inf


@settings(deadline=None, max_examples=30)
@given(many=few_losses, more=losses, delta=deltas, other=deltas)
def test_epsilon_is_monotone(many: list[object], more: object, delta: float, other: float) -> None:
    less, most = sorted((delta, other))
    epsilon = compose(many, less)
    assert compose(many, most) <= epsilon <= compose(many)
    assert compose([*many, more], less) >= epsilon
    assert compose(many[::-1], less) == epsilon
    assert compose_delta(many, epsilon) <= less


def test_equal_losses_merge() -> None:
    assert compose([1, 1.0, Fraction(1), np.float64(1), np.int64(1)], 0.1) == compose({1: 5}, 0.1)
    assert compose(iter([0.5, 1]), 0.1) == compose({1: 1, Fraction(1, 2): 1, 3: 0}, 0.1)


MIXED = [
    {0.1: 10, 0.2: 10, 0.3000001: 10},
    {Fraction(k, 20): 3 for k in range(1, 20)},
    {0.01: 300, 0.5: 3},
    {1e-9: 5, 0.1: 50, 3: 2},
    {10: 5, 0.1: 5},
]


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("groups", MIXED)
def test_the_grid_is_an_upper_bound_within_its_error(
    groups: dict[object, int], delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = compose(groups, delta)
    less = compose(groups, stated(delta) - Fraction(5, 10**32))
    grid = composition.Grid({(stated(loss), 1): n for loss, n in groups.items()})
    monkeypatch.setattr(composition, "MOST_SUMS", 0)
    bound = compose(groups, delta)
    assert exact <= bound <= less + grid.step * (2 + 6 * math.sqrt(len(groups)))
    assert bound <= exact * (1 + 1e-4)
    assert compose_delta(groups, bound) <= delta
    monkeypatch.undo()
    on_grid = grid.epsilon(stated(delta))
    assert bound <= on_grid
    assert compose_delta(groups, on_grid) <= grid.delta(on_grid) <= delta


def test_many_mixed_losses_are_between_bounds() -> None:
    # 2^40 sums, between those of rounded losses.
    many = [0.1 + math.sqrt(k) / 1000 for k in range(40)]
    least = compose([Fraction(math.floor(loss * 2000), 2000) for loss in many], 1e-6)
    most = compose([Fraction(math.ceil(loss * 2000), 2000) for loss in many], 1e-6)
    assert not composition.is_exact({stated(loss): 1 for loss in many})
    bound = compose(many, 1e-6)
    assert least <= bound <= most <= least * 1.01
    assert compose(many, 1e-95) <= compose(many)
    assert compose_delta(many, bound) <= 1e-6
    assert compose_delta(many, 100) == 0


def test_huge_and_tiny_mixed_losses() -> None:
    groups = {1e-320: 300, 0.5: 300, 1e3: 3}
    assert 3000 < compose(groups, 0.01) <= compose(groups)
    assert compose({1e200: 300, 1e199: 300, 1: 1}, 0.01) == compose({1e200: 300, 1e199: 300, 1: 1})
    assert compose_delta({1e200: 300, 1e199: 300, 1: 1}, 5) == 1


def by_zcdp(losses: list[float], delta: float) -> float:
    """Return the least epsilon of the conversions from zCDP."""
    rho = sum(map(zcdp, losses))
    orders = 1 + np.geomspace(1e-2, 1e4, 10**5)
    tails = np.log((orders - 1) / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return min(rho + 2 * math.sqrt(rho * math.log(1 / delta)), (orders * rho + tails).min())


@pytest.mark.parametrize(
    ("many", "delta"),
    [
        (np.random.default_rng(0).uniform(0, 0.1, 1000), 1e-6),
        (np.linspace(0.04, 0.06, 400), 1e-12),
    ],
)
def test_many_distinct_losses_cost_no_more_than_by_zcdp(
    many: list[float], delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10^4 distinct losses gave 49.3, where zCDP gives 47.0."""
    # So that the grid of fewer losses is as coarse as theirs.
    monkeypatch.setattr(composition, "MOST_WORK", 2**20)
    grid = composition.Grid({(stated(loss), 1): 1 for loss in many})
    assert grid.epsilon(stated(delta)) > by_zcdp(many, delta)
    bound = compose(many, delta)
    assert bound <= by_zcdp(many, delta)
    assert compose_delta(many, bound) <= delta
    # Losses of two decimals less give at least the exact value of smaller ones.
    assert bound >= compose([Fraction(math.floor(loss * 200), 200) for loss in many], delta)


@settings(deadline=None)
@given(many=st.lists(losses.filter(lambda loss: loss > 0), min_size=1, max_size=6), delta=deltas)
@example(many=[1e200, 1e199], delta=0.01)
@example(many=[Fraction(10**309)], delta=0.01)
@example(many=[5e-324, 1.0], delta=1e-300)
@example(many=[1.375, 1.28125, 1.192092896e-07], delta=1.192092896e-07)
@example(many=[0.25], delta=8.2046961090249905e-16)
@example(many=[1e-9] * 5, delta=1e-12)
def test_renyi_divergences_give_upper_bounds(many: list[object], delta: float) -> None:
    groups = {stated(loss): many.count(loss) for loss in many}
    found = composition.renyi_epsilon(groups, stated(delta))
    assert compose(many, delta) <= found
    if found < composition.total(groups):
        # Not that of `found` is at most delta: both hold at any order, and float64 chooses it.
        assert compose_delta(many, found) <= composition.renyi_delta(groups, stated(found))


@pytest.mark.parametrize("delta", [0, 1e-300, 1e-9, Fraction(1, 3), Decimal("0.99")])
@pytest.mark.parametrize(
    ("total", "n"), [(1, 1), ("0.1", 7), (Fraction(1, 3), 12), (3, 365), (1e-9, 10)]
)
def test_split_gives_the_greatest_float_that_fits(total: object, n: int, delta: object) -> None:
    each, whole = split(total, n, delta), stated(total)
    assert type(each) is float
    after = math.nextafter(each, math.inf)
    if delta == 0:
        assert n * stated(each) <= whole < n * stated(after)
    else:
        # The sum is exact, and compose is rounded up.
        assert stated(compose({each: n}, delta)) <= whole or n * stated(each) <= whole
        assert whole < stated(compose({after: n}, delta))
    budget = Budget(total, delta, {each: n})
    budget.spend(GeometricMechanism(each))


def test_split_of_nothing_and_of_much() -> None:
    assert split(0, 5) == 0
    assert split(1, 4) == 0.25
    nothing = split(0, 10, 1e-6)
    assert compose({nothing: 10}, 1e-6) == 0 < compose({math.nextafter(nothing, 1): 10}, 1e-6)
    assert split(10, 10**5, 1e-6) > 20 * split(10, 10**5)


def test_losses_chosen_by_outputs_can_cost_more() -> None:
    """Why losses must be fixed in advance: both plans are within delta, the choice is not."""
    epsilon, first = 1, 0.1
    plans = ({1.0122: 1}, {0.05: 200})
    fixed = max(
        compose_delta([first] + [x for x in plan for _ in range(plan[x])], epsilon)
        for plan in plans
    )
    chance = 1 / (1 + math.exp(-first))
    chosen = sum(
        weight * max(compose_delta(plan, epsilon - loss) for plan in plans)
        for loss, weight in ((first, chance), (-first, 1 - chance))
    )
    assert chosen > 1.3 * fixed


def by_outcomes(cells: dict[tuple[object, int], int], epsilon: object) -> mpf:
    """Return delta as the sum over all noises of all cells, up to each change."""
    sums = {Fraction(0): mpf(1)}
    for (rate, linf), n in cells.items():
        a = mpmath.exp(-ratio(rate))
        masses = {0: 1 / (1 + a), linf: a**linf / (1 + a)}
        masses |= {k: (1 - a) / (1 + a) * a**k for k in range(1, linf)}
        for _ in range(n):
            combined: dict[Fraction, mpf] = {}
            for before, mass in sums.items():
                for k, weight in masses.items():
                    loss = before + (linf - 2 * k) * stated(rate)
                    combined[loss] = combined.get(loss, mpf(0)) + mass * weight
            sums = combined
    terms = (
        p * -mpmath.expm1(ratio(epsilon) - ratio(s)) for s, p in sums.items() if s > stated(epsilon)
    )
    return mpmath.fsum(terms)


@pytest.mark.parametrize(
    "cells",
    [
        {(0.1, 4): 6},
        {(1, 2): 9, (0.25, 3): 4},
        {(Fraction(1, 3), 1): 5, (0.7, 40): 2},
        {(3, 5): 7, (3, 1): 7},
        {(0.001, 7): 20},
    ],
)
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_loss_distribution_is_an_upper_bound_within_its_error(
    cells: dict[tuple[object, int], int], delta: float
) -> None:
    first, *others = (
        n * loss_distribution(GeometricMechanism(rate), linf=linf)
        for (rate, linf), n in cells.items()
    )
    together = sum(others, first)
    pure = {stated(rate) * linf: n for (rate, linf), n in cells.items()}
    bound = together.epsilon_at(delta)
    with mpmath.workdps(60):
        assert by_outcomes(cells, bound) <= ratio(delta)
        # Below it by its error, and by what sampled noise adds.
        below = stated(bound) * (1 - Fraction(1, 10**4)) - Fraction(1, 10**12)
        added = sum(cells.values()) * mpf(2) ** -50
        assert by_outcomes(cells, below) > ratio(delta) * (1 - mpf("0.001")) - added
        assert by_outcomes(cells, bound) <= together.delta_at(bound) <= delta
    assert bound <= compose(pure, delta) * (1 + 1e-4)
    assert together.epsilon_at() == compose(pure)


@pytest.mark.parametrize(("scale", "R"), [(Fraction(1, 2), 12), (3, 20), (40, 60)])
@pytest.mark.parametrize("linf", [2, 3])
def test_sampled_noise_is_within_the_loss_distribution(scale: Fraction, R: int, linf: int) -> None:
    sampled = sampled_distribution(scale, R)
    mechanism = GeometricMechanism.from_scale(scale, (0, R))
    table = loss_distribution(mechanism, linf=linf)
    for share in (0, 0.3, 0.7, 1 - 2**-30):
        epsilon = float(mechanism.rate * linf) * share
        with mpmath.workdps(60):
            worst = max(
                mpmath.fsum(
                    max(mpf(0), p - mpmath.exp(epsilon) * q)
                    for p, q in zip(sampled.masses[x], sampled.masses[x + d], strict=True)
                )
                for x in range(R + 1 - linf)
                for d in range(1, linf + 1)
            )
            bound = table.delta_at(epsilon)
            assert worst / sampled.total <= ratio(bound)
        # Not far above: the bounds censor a part of the noise.
        assert float(worst / sampled.total) >= 0.6 * bound - 1e-6


@pytest.mark.parametrize("rate", [2.0**-50, 1e-9, 0.01, 1, 40, Fraction(10**30)])
@pytest.mark.parametrize("bounds", [None, (0, 1), (0, 10**6)])
def test_what_sampled_noise_adds_is_that_of_the_certificate(
    rate: float | Fraction, bounds: tuple[int, int] | None
) -> None:
    """The terms of lemma 14 for one cell, from its certificate."""
    proof = GeometricMechanism(rate, bounds=bounds).certificate()
    assert proof.delta is not None
    assert proof.floor is not None
    epsilon, delta = allowance({(stated(rate), 2): 1, (stated(rate), 1): 5})
    assert 3 * proof.delta <= epsilon
    assert proof.delta + 2 * proof.floor <= delta
    assert proof.holds
    large = Fraction(2, 3 * 2**54) * min(1, stated(rate))
    assert not replace(proof, delta=large, sampled_rate=stated(rate) / 2).holds
    assert not replace(proof, floor=Fraction(2, 2**52)).holds
    assert allowance({(stated(rate), 1): 5}) == (0, 0)


def test_cells_changed_by_one_are_pure_releases() -> None:
    table = 50 * loss_distribution(GeometricMechanism(0.1), l0=3)
    assert table.epsilon_at(1e-6) == compose({0.1: 150}, 1e-6)
    assert table.delta_at(6) == compose_delta({0.1: 150}, 6)
    assert table.epsilon_at(0) == compose({0.1: 150})
    assert table.delta_at(20) == 0


@pytest.mark.parametrize(("linf", "l0", "releases"), [(1, 1, 50), (1, 3, 50), (4, 3, 20)])
def test_dp_accounting_is_close_to_the_exact_value(linf: int, l0: int, releases: int) -> None:
    from dp_accounting.pld import PLDAccountant  # noqa: PLC0415

    one = loss_distribution(GeometricMechanism(0.1), l0=l0, linf=linf)
    many = releases * one
    exact = many.epsilon_at(1e-6)
    with mpmath.workdps(40):
        ideal = by_outcomes({(0.1, linf): l0 * releases}, exact * (1 - 1e-4) - 1e-12)
        assert ideal > 1e-6 * (1 - 0.01)
    event = PLDAccountant().compose(many.to_dp_event()).get_epsilon(1e-6)
    pld = many.to_pld().get_epsilon_for_delta(1e-6)
    for theirs in (event, pld):
        assert exact * (1 - 1e-4) <= theirs <= exact * (1 + 1e-2)


@pytest.mark.parametrize("interval", [1e-4, 1e-3])
@pytest.mark.parametrize("n", [1, 50, 5000])
@pytest.mark.parametrize("rate", [0.01, 0.1])
def test_to_pld_is_never_below_the_exact_value(rate: float, n: int, interval: float) -> None:
    """The rounding errors of the convolution made delta too small by up to 1e-13."""
    many = n * loss_distribution(GeometricMechanism(rate))
    theirs = many.to_pld(interval)
    for delta in (1e-13, 1e-12, 1e-10, 1e-9, 1e-6, 1e-2):
        epsilon = theirs.get_epsilon_for_delta(delta)
        assert epsilon >= many.epsilon_at(delta)
        assert (epsilon == math.inf) == (delta < 1e-12 + n * 2.0**-48)
        if delta >= 1e-9:
            # Close, but for the rounding of each loss up to the interval.
            within = epsilon <= n * interval or many.delta_at(epsilon - n * interval) >= delta * 0.9
            assert within


def test_to_pld_covers_sampled_noise() -> None:
    many = 20 * loss_distribution(GeometricMechanism(0.1), linf=4)
    for delta in (1e-10, 1e-6):
        epsilon = many.to_pld().get_epsilon_for_delta(delta)
        with mpmath.workdps(40):
            ideal = by_outcomes({(0.1, 4): 20}, epsilon - 2 * 2.0**-54)
            assert ideal * (1 + mpf(20) / 2**50) + mpf(20) / 2**50 <= ratio(delta)


@pytest.mark.parametrize("linf", [2, 30])
@pytest.mark.parametrize("rate", [1e-9, 0.01, 1, 40])
@pytest.mark.parametrize("n", [1, 3, 200])
def test_a_loss_distribution_is_never_above_composition(n: int, rate: float, linf: int) -> None:
    """Steps of the grid put some epsilons above the sum of the losses."""
    table = n * loss_distribution(GeometricMechanism(rate), linf=linf)
    losses = {stated(rate) * linf: n}
    for delta in (1e-15, 1e-9, 1e-3, 0.3, 0.9):
        assert table.epsilon_at(delta) <= compose(losses, delta) <= compose(losses)
    for epsilon in (0, compose(losses) / 2):
        assert table.delta_at(epsilon) <= compose_delta(losses, epsilon)


@pytest.mark.parametrize("loss", [5e-324, 1e-200, 1e-9, 0.1, Fraction(1, 3), 1, 40, 1e5, 1e300])
@pytest.mark.parametrize("order", [1, 1 + 2**-52, Fraction(3, 2), 2, 32, 1e10])
def test_renyi_divergence_is_that_of_randomised_response(loss: object, order: object) -> None:
    with mpmath.workdps(2000 if stated(loss) < 1 else 700):
        x, a = ratio(loss), ratio(order)
        odds = mpmath.exp(-x)
        p, q = 1 / (1 + odds), odds / (1 + odds)
        if order == 1:
            exact = (p - q) * x
        else:
            # (p^a q^(1-a) + q^a p^(1-a)), over exp((a - 1) x).
            exact = x + mpmath.log(p + q * mpmath.exp(-2 * (a - 1) * x)) / (a - 1)
        assert is_the_least(rdp(loss, order), lambda d: exact <= ratio(d))
    assert rdp(loss, order) <= compose([loss])
    assert order != 1 or rdp(loss, order) == zcdp(loss)
    assert rdp(loss, math.inf) == loss if isinstance(loss, float) else True


@given(loss=st.floats(1e-5, 500), order=st.floats(1, 1e5))
def test_zcdp_bounds_renyi_divergences(loss: float, order: float) -> None:
    assert rdp(loss, order) <= order * zcdp(loss) * (1 + 1e-15)
    assert zcdp(loss) <= min(loss, loss * loss / 2) * (1 + 1e-15)
    assert zcdp(0) == rdp(0, order) == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: compose(0.1), TypeError, "losses = 0.1 has type float"),
        (lambda: compose("12"), TypeError, r"losses = '12' has type str: give several numbers"),
        (lambda: compose(b"12"), TypeError, "losses has type bytes"),
        (lambda: split(1, 0), ValueError, "n = 0 is not accepted"),
        (lambda: split(1, 10**10), ValueError, "n = 10000000000 is not accepted"),
        (lambda: split(-1, 1), ValueError, "total = -1 is not accepted"),
        (lambda: split(1, 2, 1), ValueError, "delta = 1 is not accepted: give .* below 1"),
        (lambda: compose([1, True]), TypeError, r"losses\[1\] = True has type bool"),
        (lambda: compose([GeometricMechanism(1)]), TypeError, r"losses\[0\] has type Geo"),
        (lambda: compose([-1]), ValueError, r"losses\[0\] = -1 is not accepted"),
        (lambda: compose([math.inf]), ValueError, r"losses\[0\] = inf is not accepted"),
        (lambda: compose({-1: 3}), ValueError, "loss = -1 is not accepted"),
        (lambda: compose({1: -3}), ValueError, r"losses\[1\] = -3 is not accepted"),
        (lambda: compose({1: 2.0}), TypeError, r"losses\[1\] = 2.0 has type float"),
        (lambda: compose({1: 10**10}), ValueError, "10000000000 releases are not accepted"),
        (lambda: compose([1], 1.1), ValueError, "delta = 1.1 is not accepted"),
        (lambda: compose([1], math.nan), ValueError, "delta = nan is not accepted"),
        (lambda: compose_delta([1], -1), ValueError, "epsilon = -1 is not accepted"),
        (lambda: rdp(1, 0.5), ValueError, "order = 0.5 is not accepted"),
        (lambda: zcdp(-1), ValueError, "loss = -1 is not accepted"),
        (lambda: loss_distribution(MECHANISM, l0=0), ValueError, "l0 = 0 is not accepted"),
        (lambda: loss_distribution(MECHANISM, linf=1.0), TypeError, "linf = 1.0 has type float"),
        (lambda: loss_distribution(GeometricMechanism.from_scale(0)), ValueError, "without noise"),
        (
            lambda: 10**9 * loss_distribution(MECHANISM, l0=2),
            ValueError,
            "2000000000 noisy counts",
        ),
        (lambda: 0 * loss_distribution(MECHANISM), ValueError, "releases = 0 is not accepted"),
        (lambda: loss_distribution(MECHANISM).epsilon_at(2), ValueError, "delta = 2 is not"),
        (lambda: loss_distribution(MECHANISM).delta_at(-2), ValueError, "epsilon = -2 is not"),
        (lambda: loss_distribution(MECHANISM) + 1, TypeError, "unsupported operand"),
        (lambda: Budget(-1), ValueError, "epsilon = -1 is not accepted"),
        (lambda: Budget(1, 2), ValueError, "delta = 2 is not accepted"),
        (lambda: Budget(1).spend(GeometricMechanism(1), -1), ValueError, "d_in = -1"),
        (lambda: Budget(1).spend(GeometricMechanism(1), label=3), TypeError, "label = 3 has type"),
    ],
)
def test_bad_parameters_raise(call: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_too_wide_a_change_names_a_number_that_is_accepted() -> None:
    """It said "give at most 0 of them" where no number of counts is accepted."""
    with pytest.raises(
        ValueError, match=r"linf = 4097 for 1 noisy count .* a linf of at most 4096"
    ):
        loss_distribution(MECHANISM, linf=4097)
    loss_distribution(MECHANISM, linf=4096)
    with pytest.raises(ValueError, match=r"linf = 2048 for 5 noisy counts .* at most 4 of them"):
        loss_distribution(MECHANISM, l0=5, linf=2048)
    loss_distribution(MECHANISM, l0=4, linf=2048)


def test_losses_show_releases_of_one_count_as_counts() -> None:
    """It said "50 cells" for 50 releases of one."""
    loss = loss_distribution(GeometricMechanism(0.1))
    assert repr(loss) == "<LossDistribution: 1 noisy count of rate 0.1, changed by at most 1>"
    shown = "<LossDistribution: 50 noisy counts of rate 0.1, changed by at most 1>"
    assert repr(50 * loss) == shown

"""Tiers: certificates, checked by the stand-alone verifier; laws; and refusals before any draw."""

import copy
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from exact import stated
from geomdp import GeometricMechanism, testing
from geomdp._kernel import core
from geomdp._noise import errors_of
from geomdp.tiers import TierPlan
from laws import step_law, times
from verifier.verify import VerificationError, main, verify_tiers

CHAINS = [
    [1, Fraction(1, 10)],
    [2, 0.5, 0.1],
    [Fraction(11, 20), 0.5],
    [8, 0.01],
    [1e-6, 1e-8],
    [100, 1],
    [2, 1.75, 1.5, 1.25, 1, 0.75, 0.5, 0.25],
]
BOUNDS = [(0, 1), (0, 2), (-5, 15), (0, 4526), None, (0, 2**64 - 1)]


def plans(chain: list[Any], bounds: tuple[int, int] | None) -> tuple[TierPlan, ...]:
    finest, *coarser = chain
    return GeometricMechanism(finest, bounds=bounds).tier_plans(coarser[::-1])


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_verifies(chain: list[Any], bounds: tuple[int, int] | None) -> None:
    each = plans(chain, bounds)
    found = each[0].certificate()
    assert all(plan.certificate() == found for plan in each)
    report = verify_tiers(found.to_json())
    assert found.holds
    assert report.rates == tuple(min(stated(x), Fraction(x)) for x in chain[::-1])
    assert [*each[0].epsilons] == [plan.epsilon for plan in each] == chain[::-1]
    for plan, rate, bound in zip(each, report.rates, report.total_variation, strict=True):
        assert plan.rate == rate
        assert bound <= errors_of(plan).total_variation <= 2**-47
    # The finest tier is a release of its epsilon, but for the mass of its floor.
    assert found.tiers[-1].keep is None
    assert all(tier.keep for tier in found.tiers[:-1])


def good() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plans([2, 0.5, 0.1], None)[0].certificate().to_json())
    return found


def own_floor(cert: dict[str, Any]) -> None:
    """Replace the finest plan by the ordinary one, with a floor of the tier's own rate."""
    own = json.loads(GeometricMechanism(2).certificate().to_json())
    cert["tiers"][2].update((key, own[key]) for key in ("digits", "floor"))


def one_keep(cert: dict[str, Any]) -> None:
    keep = cert["tiers"][0]["keep"]
    keep["end"] = keep["inside"]


def move(tier: int, name: str, units: int) -> Callable[[dict[str, Any]], None]:
    def moved(cert: dict[str, Any]) -> None:
        keep = cert["tiers"][tier]["keep"]
        keep[name] = hex(int(keep[name], 16) + units)

    return moved


def put(tier: int, **fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda cert: cert["tiers"][tier].update(fields)


def less_kappa(cert: dict[str, Any]) -> None:
    tier = cert["tiers"][0]
    tier["kappa"] = str(Fraction(tier["kappa"]) * Fraction(9, 10))


def more_kappa(cert: dict[str, Any]) -> None:
    cert["tiers"][1]["kappa"] = str(Fraction(1, 2**50))


def understated(cert: dict[str, Any]) -> None:
    bound = verify_tiers(cert).total_variation[0]
    cert["tiers"][0]["total_variation"] = math.nextafter(bound, 0.0)


FAULTS = [
    (own_floor, r"floor: eta exceeds g 2\^-k tanh\(rate/2\) \(ii\)"),
    (one_keep, "keep: end is more than one unit off"),
    (move(0, "inside", 2), "keep: inside is more than one unit off"),
    (move(1, "end", -2), "keep: end is more than one unit off"),
    (move(1, "end", 2**63), "keep: end is not < 2"),
    (less_kappa, "kappa: less than the step's error"),
    (more_kappa, r"delta: 3 \(delta \+ kappa\)"),
    (put(0, sampled_rate="1/10"), "digit 0: threshold|delta: 3"),
    (put(0, words_per_draw=5), "words_per_draw"),
    (put(0, keep=None, kappa="0/1"), "words_per_draw|keep: only the finest"),
    (put(2, kappa="1/9"), "kappa: stated without a step"),
    (put(1, range="7"), "tiers: ranges differ"),
    (put(1, rate="1/10"), "tiers: rates do not increase"),
    (put(1, tight_epsilon=0.5), "tight_epsilon: stated for a tier"),
    (understated, "total_variation: stated is less"),
    (lambda cert: cert.update(tiers=[]), "tiers: none"),
    (lambda cert: cert["tiers"].reverse(), "tiers: rates do not increase"),
    (lambda cert: cert.update(format="geomdp-certificate-2"), "format"),
]


@pytest.mark.parametrize(("spoil", "message"), FAULTS)
def test_a_fault_is_refused(spoil: Callable[[dict[str, Any]], None], message: str) -> None:
    cert = good()
    verify_tiers(copy.deepcopy(cert))
    spoil(cert)
    with pytest.raises(VerificationError, match=f"^({message})"):
        verify_tiers(json.dumps(cert))


def test_the_command_verifies_tiers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, tiers, bad = (tmp_path / f"{name}.json" for name in ("one", "tiers", "bad"))
    one.write_text(GeometricMechanism(1).certificate().to_json())
    tiers.write_text(plans([1, Fraction(1, 10)], None)[0].certificate().to_json())
    cert = good()
    own_floor(cert)
    bad.write_text(json.dumps(cert))
    assert main([str(one), str(tiers)]) == 0
    assert main([str(bad)]) == 1
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith(f"ok {one}: rate 1, ")
    assert second.startswith(f"ok {tiers}: tiers, rates 1/10, 1, range {2**64 - 1}, ")
    assert third.startswith(f"FAILED {bad}: floor: eta exceeds")


def test_one_output() -> None:
    found = plans([1, 0.1], (3, 3))[0].certificate()
    assert verify_tiers(found.to_json()).range == 0
    assert found.holds
    assert (GeometricMechanism(1, bounds=(3, 3)).tiers([9, 1], [0.1])[0.1] == 3).all()


# --- The law of plans of full width, from certificates, in exact fractions. ---


def real(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


@pytest.mark.parametrize("r", [1, 2, 12])
@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_every_tier_of_full_width_is_private(chain: list[Any], r: int) -> None:
    found = plans(chain, (0, r))
    with ctx.workprec(1500):
        check_laws(found, r)


def check_laws(plans: tuple[TierPlan, ...], r: int) -> None:
    found = plans[0].certificate()
    document = json.loads(found.to_json())
    law: list[list[Fraction]] = []
    tiers = [*zip(document["tiers"], found.tiers, plans, strict=True)]
    for tier, said, plan in reversed(tiers):
        law = times(law, step_law(tier)) if law else step_law(tier)
        ratio = max(
            max(p, q) / min(p, q)
            for one, other in pairwise(law)
            for p, q in zip(one, other, strict=True)
        )
        rate = Fraction(tier["rate"])
        assert real(ratio).log() <= real(rate)
        # Total variation to the nominal distribution, and accuracy, as stated.
        a = (-real(rate)).exp()
        for x, row in enumerate(law):
            inner = [(1 - a) / (1 + a) * a ** abs(y - x) for y in range(r + 1)]
            ideal = [a**x / (1 + a), *inner[1:-1], a ** (r - x) / (1 + a)]
            away = sum((abs(real(p) - q) for p, q in zip(row, ideal, strict=True)), arb(0)) / 2
            assert away <= arb(said.certificate.total_variation)
            for level in (Fraction(1, 20), Fraction(1, 10**6)):
                reach = plan.accuracy(level)
                missed = sum(p for y, p in enumerate(row) if abs(y - x) > reach)
                assert missed <= level


# --- The call. ---


def test_coarser_tiers_keep_or_draw_again() -> None:
    """Equal noisy counts occur as often as the step keeps, and unequal ones are symmetric."""
    mechanism = GeometricMechanism(2)
    tiers = mechanism.tiers(np.full(10**6, 500), [0.5])
    keep = math.sinh(0.25) ** 2 / math.sinh(1) ** 2
    a = math.exp(-0.5)
    same = keep + (1 - keep) * (1 - a) / (1 + a)
    # 6 standard deviations: a level below 1e-8.
    moved = tiers[0.5] - tiers[2]
    assert abs((moved == 0).mean() - same) < 6 * math.sqrt(same * (1 - same) / 10**6)
    up, down = (moved > 0).sum(), (moved < 0).sum()
    assert abs(int(up) - int(down)) < 6 * math.sqrt(10**6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_arrays_of_any_layout(dtype: str) -> None:
    mechanism = GeometricMechanism(1, bounds=(0, 100))
    counts = np.arange(60, dtype=dtype).reshape(3, 20)
    for given in (counts, counts.T, counts[:, ::2], counts.astype(counts.dtype.newbyteorder())):
        tiers = mechanism.tiers(given, [0.1, 0.5])
        assert list(tiers) == [0.1, 0.5, 1]
        for noisy in tiers.values():
            assert (noisy.shape, noisy.dtype) == (given.shape, np.dtype(dtype))
            assert noisy.min() >= 0
            assert noisy.max() <= 100
    assert mechanism.tiers(counts[:0], [0.1])[0.1].shape == (0, 20)
    assert mechanism.tiers(7, [0.1])[0.1].shape == ()


def test_each_tier_has_a_tape_of_its_own() -> None:
    """By known keys: the finest tier is a release, and the others depend on it and their own."""
    own = core.Tiers([(1, 1), (1, 10)], (0, 1000))
    counts = np.arange(5000) % 1000

    def draw(keys: list[bytes], threads: int) -> list[Any]:
        outs = [np.empty_like(counts), np.empty_like(counts)]
        core.tiers_not_private(own, keys, counts, outs, threads)
        return outs

    one, two = bytes(32), bytes(31) + b"1"
    fine, coarse = draw([one, two], 1)
    mechanism = GeometricMechanism(1, bounds=(0, 1000))
    assert (fine == testing.release_not_private(mechanism, counts, one)).all()
    again, other = draw([one, one], 3)
    assert (again == fine).all()
    assert (other != coarse).any()
    assert (draw([one, two], 3)[1] == coarse).all()


def test_tiers_of_one_object() -> None:
    mechanism = GeometricMechanism("1/2", sensitivity=3, bounds=(0, 100))
    tiers = mechanism.tiers([50, 60], ["0.1", Fraction(1, 4)])
    assert [*tiers] == [0.1, Fraction(1, 4), Fraction(1, 2)]
    assert (tiers["0.1"] == tiers[Fraction(1, 10)]).all()
    assert (tiers["0.1"] == tiers[0.1]).all()
    assert Fraction(0.1) not in tiers  # It is not 1/10.
    assert "0.25" in tiers
    assert len(tiers) == 3
    again = pickle.loads(pickle.dumps(tiers))
    assert all((again[epsilon] == tiers[epsilon]).all() for epsilon in tiers)
    assert [6 * plan.rate for plan in tiers.plans] == [Fraction(1, 5), Fraction(1, 2), 1]
    lower, upper = tiers.plans[0].confidence_interval(tiers["0.1"], 0.05)
    assert (lower <= tiers["0.1"]).all()
    assert (upper >= tiers["0.1"]).all()
    # There is no way to a second coarse array.
    assert not {"tiers", "coarsen", "release"} & {*dir(tiers)}
    with pytest.raises(KeyError, match=r"epsilon = 1 is not accepted: give one of 0.1, 0.25, 0.5"):
        tiers[1]
    assert tiers.get(1) is None


REFUSED: list[tuple[Any, type[Exception], str]] = [
    ([0.1, 0.1], ValueError, "epsilons"),
    ([0.5, 0.1], ValueError, "epsilons"),
    ([1], ValueError, "epsilons"),
    ([2], ValueError, "epsilons"),
    ([0], ValueError, "epsilons"),
    ([-0.1, 0.1], ValueError, "epsilons"),
    ([math.nan], ValueError, "epsilons"),
    ([math.inf], ValueError, "epsilons"),
    ([], TypeError, "epsilons"),
    (0.1, TypeError, "epsilons"),
    ("0.1", TypeError, "epsilons"),
    ([None], TypeError, "epsilons"),
    ([i / 10 for i in range(1, 9)], ValueError, "tiers = 9"),
    ([1e-30, 0.1], ValueError, "rates of tiers"),
]


@pytest.mark.parametrize(("epsilons", "error", "name"), REFUSED, ids=str)
def test_refused_before_any_draw(
    epsilons: Any, error: type[Exception], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = GeometricMechanism(1, bounds=(0, 100))
    monkeypatch.delattr(np, "empty")  # Not even a place to draw to.
    with pytest.raises(error, match=f"^{name}"):
        mechanism.tiers([1, 2], epsilons)
    with pytest.raises(error, match=f"^{name}"):
        mechanism.tier_plans(epsilons)[0].certificate()


def test_bounds_and_scales_that_are_refused() -> None:
    with pytest.raises(ValueError, match="bounds"):
        GeometricMechanism(1).tiers(np.array([1], np.uint8), [0.1])
    with pytest.raises(OverflowError, match="bounds"):
        GeometricMechanism(1, bounds=(0, 1000)).tiers(np.array([1], np.uint8), [0.1])
    with pytest.raises(ValueError, match="scale = 0"):
        GeometricMechanism.from_scale(0, (0, 9)).tiers([1], [0.1])
    with pytest.raises(TypeError, match="counts"):
        GeometricMechanism(1).tiers([1.5], [0.1])

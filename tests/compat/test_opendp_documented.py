"""What OpenDP's documentation shows, by its own noise and by ours: only the import differs."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import opendp.measurements
import opendp.prelude as dp
import pytest
from opendp.context import constructors
from opendp.mod import GLOBAL_FEATURES

import geomdp.compat.opendp

either = pytest.mark.parametrize(
    "noise", [opendp.measurements, geomdp.compat.opendp], ids=["opendp", "geomdp"]
)


@pytest.fixture(autouse=True)
def contrib() -> Iterator[None]:
    flags = set(GLOBAL_FEATURES)
    dp.enable_features("contrib")
    yield
    GLOBAL_FEATURES.clear()
    GLOBAL_FEATURES.update(flags)


@either
def test_a_count_with_make_geometric(noise: ModuleType) -> None:
    input_space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    geometric = noise.make_geometric(*input_space, scale=1.0)
    release = geometric(100)
    assert type(release) is int
    assert 60 <= release <= 140
    assert geometric.map(1) == 1.0


@either
def test_a_count_with_then_geometric(noise: ModuleType) -> None:
    input_space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    geometric = input_space >> noise.then_geometric(scale=1.0)
    assert 60 <= geometric(100) <= 140
    assert geometric.check(1, 1.0)


@either
def test_bounds(noise: ModuleType) -> None:
    input_space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    geometric = noise.make_geometric(*input_space, scale=10.0, bounds=(0, 200))
    assert all(0 <= geometric(100) <= 200 for _ in range(20))


@either
def test_make_laplace_on_integers(noise: ModuleType) -> None:
    input_space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    laplace = noise.make_laplace(*input_space, scale=2.0)
    assert 20 <= laplace(100) <= 180
    assert laplace.map(d_in=1) == 0.5
    assert (input_space >> noise.then_laplace(scale=2.0)).map(3) == 1.5


@either
def test_a_vector(noise: ModuleType) -> None:
    input_space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    release = (input_space >> noise.then_laplace(scale=1.0))([10, 20, 30])
    assert [type(count) for count in release] == [int, int, int]
    assert all(abs(count - true) < 40 for count, true in zip(release, (10, 20, 30), strict=True))


@either
def test_a_count_of_records(noise: ModuleType) -> None:
    input_space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    count = input_space >> dp.t.then_count()
    private = count >> noise.then_laplace(scale=1.0)
    assert abs(private(["a"] * 100) - 100) < 40
    assert private.map(d_in=1) == 1.0


@either
def test_the_scale_by_binary_search(noise: ModuleType) -> None:
    input_space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    count = input_space >> dp.t.then_count()
    scale = dp.binary_search_param(
        lambda scale: count >> noise.then_laplace(scale), d_in=1, d_out=0.5
    )
    assert scale == 2.0


@either
def test_a_histogram_of_known_categories(noise: ModuleType) -> None:
    input_space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    histogram = (
        input_space
        >> dp.t.then_count_by_categories(categories=["A", "B", "C"], null_category=True)
        >> noise.then_laplace(scale=2.0)
    )
    release = histogram(list("AABCZZ"))
    assert len(release) == 4
    assert histogram.map(1) == 0.5


@either
def test_a_compositor(noise: ModuleType) -> None:
    input_space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    compositor = dp.c.make_adaptive_composition(
        *input_space, output_measure=dp.max_divergence(), d_in=1, d_mids=[1.0, 1.0]
    )
    queryable = compositor([1] * 100)
    query = input_space >> dp.t.then_count() >> noise.then_laplace(scale=1.0)
    releases: list[Any] = [queryable(query), queryable(query)]
    assert all(abs(release - 100) < 40 for release in releases)


@either
def test_an_instance_of_measurement(noise: ModuleType) -> None:
    laplace = noise.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=2.0)
    assert str(laplace).split() == [
        *("Measurement(", "input_domain", "=", "AtomDomain(T=i32),"),
        *("input_metric", "=", "AbsoluteDistance(i32),"),
        *("output_measure", "=", "MaxDivergence)"),
    ]
    assert [type(release(100)) for release in (laplace, laplace.invoke)] == [int, int]
    assert laplace.check(1, 0.5)
    input_space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    chained = input_space >> dp.t.then_count() >> laplace
    assert abs(chained([1, 2, 3]) - 3) < 80
    assert chained.check(1, 0.5)


@either
def test_the_bounds_of_a_sum_by_binary_search(noise: ModuleType) -> None:
    def make_sum(b: int) -> dp.Measurement:
        space = dp.vector_domain(dp.atom_domain((-b, b)), 10_000), dp.symmetric_distance()
        return space >> dp.t.then_sum() >> noise.then_laplace(100.0)

    measurement = dp.binary_search_chain(make_sum, d_in=2, d_out=1.0, bounds=(0, 10_000))
    assert measurement.map(2) == 1.0
    assert dp.binary_search_param(make_sum, d_in=2, d_out=1.0, bounds=(0, 10_000)) == 50
    assert abs(measurement([5] * 10_000) - 50_000) < 4000


@either
def test_a_fully_adaptive_compositor(noise: ModuleType) -> None:
    geometric = noise.make_geometric(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=4.0)
    odometer = dp.c.make_fully_adaptive_composition(
        input_domain=geometric.input_domain,
        input_metric=geometric.input_metric,
        output_measure=geometric.output_measure,
    )
    queryable = odometer(100)
    assert all(abs(queryable(geometric) - 100) < 160 for _ in range(2))
    assert queryable.privacy_loss(1) == 0.5


@pytest.fixture
def context() -> Iterator[dp.Context]:
    names = dict(constructors)
    geomdp.compat.opendp.register()
    yield dp.Context.compositor(
        data=[1, 2, 3, 4] * 25,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=3.0),
        split_evenly_over=3,
    )
    constructors.clear()
    constructors.update(names)


prefix = pytest.mark.parametrize("prefix", ["", "geomdp_"], ids=["opendp", "geomdp"])


@prefix
def test_a_count_in_the_context(context: dp.Context, prefix: str) -> None:
    query = getattr(context.query().count(), prefix + "laplace")()
    assert query.param() == 1.0
    release = query.release()
    assert type(release) is int
    assert abs(release - 100) < 40
    assert context.current_privacy_loss() == [1.0]


@prefix
def test_a_clamped_sum_in_the_context(context: dp.Context, prefix: str) -> None:
    query = getattr(context.query().clamp((1, 10)).sum(), prefix + "laplace")()
    assert query.param() == 10.0
    assert abs(query.release() - 250) < 400


@prefix
def test_a_scale_given_in_the_context(context: dp.Context, prefix: str) -> None:
    query = getattr(context.query().count(), prefix + "geometric")(scale=2.0, bounds=(0, 90))
    assert query.resolve().map(1) == 0.5
    assert query.release() in range(91)


@prefix
def test_a_histogram_in_the_context(context: dp.Context, prefix: str) -> None:
    counts = context.query().count_by_categories(categories=[1, 2, 3], null_category=True)
    release = getattr(counts, prefix + "laplace")().release()
    assert all(type(count) is int and abs(count - 25) < 40 for count in release)
    assert len(release) == 4

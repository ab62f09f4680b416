import numpy as np
import ot
import pytest
from scipy import sparse

from frot import InputError
from frot.selection._effects import measure
from frot.selection._scaling import Sides, SortedTransport, scale_sides, units_of
from tests.selection.planted import two_sides


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 5), (7, 3), (3, 8), (6, 4), (1, 9)])
@pytest.mark.parametrize("weighted", [False, True])
def test_sorted_products_are_those_of_optimal_transport(n, m, weighted):
    rng = np.random.default_rng(10 * n + m)
    a, b = (rng.uniform(0.2, 1.0, size) if weighted else np.ones(size) for size in (n, m))
    a, b = a / a.sum(), b / b.sum()
    x, y = rng.normal(size=(4, n)), rng.normal(size=(4, m))
    x[1] = np.round(x[1])  # with ties
    matched = SortedTransport(a, b)
    found = matched.products(*matched.sort(x, y))
    for feature in range(4):
        cost = ot.emd2(a, b, (x[feature][:, None] - y[feature]) ** 2)
        square = a @ x[feature] ** 2 + b @ y[feature] ** 2
        assert square - 2.0 * found[feature] == pytest.approx(cost, abs=1e-12)


def test_sorting_leaves_the_input_alone():
    x, y = np.array([[2.0, 1.0]]), np.array([[4.0, 3.0]])
    SortedTransport(np.full(2, 0.5), np.full(2, 0.5)).sort(x, y)
    assert x.tolist() == [[2.0, 1.0]]
    assert y.tolist() == [[4.0, 3.0]]


@pytest.mark.parametrize("weighted", [False, True])
def test_no_plan_is_cheaper_than_sorting_and_no_sorting_than_the_means(weighted):
    sides = two_sides(weighted=weighted)
    scaled = scale_sides(sides)
    x, y = scaled.block(slice(None))
    a, b = sides.weights
    assert scaled.wasserstein is not None
    assert (scaled.units.shift <= scaled.wasserstein).all()
    np.testing.assert_allclose(scaled.units.shift, (x @ a - y @ b) ** 2, atol=1e-12)
    for feature in range(len(x)):
        cost = ot.emd2(a, b, (x[feature][:, None] - y[feature]) ** 2)
        assert scaled.wasserstein[feature] == pytest.approx(cost, abs=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_balanced_puts_the_means_at_opposite_places_and_the_energies_at_two(weighted):
    sides = two_sides(weighted=weighted)
    scaled = scale_sides(sides)
    x, y = scaled.block(slice(None))
    a, b = sides.weights
    np.testing.assert_allclose(x @ a, -(y @ b), atol=1e-12)
    np.testing.assert_allclose(x**2 @ a + y**2 @ b, 2.0)
    np.testing.assert_allclose(scaled.energy, 2.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_paper_is_the_pooled_standard_deviation(weighted):
    sides = two_sides(weighted=weighted)
    share = sides.share
    weights = np.concatenate([share * sides.weights[0], (1 - share) * sides.weights[1]])
    values = np.asarray(sides.table).T
    mean = values @ weights
    expected = np.sqrt((values - mean[:, None]) ** 2 @ weights)
    np.testing.assert_allclose(scale_sides(sides, "paper").units.scale, expected)


def test_none_keeps_the_units():
    scaled = scale_sides(two_sides(), "none")
    assert (scaled.units.scale == 1.0).all()


@pytest.mark.parametrize("scaling", ["balanced", "paper", "none"])
def test_values_that_are_not_kept_are_scaled_alike(scaling):
    dense = two_sides()
    thin = Sides.of(sparse.csc_array(dense.table), *dense.rows)
    kept, read = scale_sides(dense, scaling), scale_sides(thin, scaling)
    assert kept.kept is not None
    assert read.kept is None
    for one, two in zip(kept.block(slice(2, 7)), read.block(slice(2, 7)), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-13)
    assert kept.wasserstein is not None
    assert read.wasserstein is not None
    np.testing.assert_allclose(kept.wasserstein, read.wasserstein)


@pytest.mark.parametrize("value", [0.0, 0.1, -3e7, 1e-300])
def test_a_constant_feature_is_exactly_zero(value):
    sides = two_sides()
    np.asarray(sides.table)[:, 3] = value
    scaled = scale_sides(sides)
    assert scaled.units.constant.tolist() == [column == 3 for column in range(12)]
    assert scaled.units.shift[3] == scaled.energy[3] == 0.0
    assert not scaled.block(np.array([3]))[0].any()


def test_an_offset_costs_no_digits():
    sides = two_sides()
    moved = Sides.of(np.asarray(sides.table) + 2.0**20, *sides.rows)
    np.testing.assert_allclose(
        scale_sides(moved).units.shift, scale_sides(sides).units.shift, rtol=1e-8
    )


def test_squares_that_overflow_are_refused():
    sides = two_sides()
    np.asarray(sides.table)[0, 0] = 1e200
    with pytest.raises(InputError, match="overflow; divide it by a constant"):
        scale_sides(sides)


@pytest.mark.parametrize("scaling", ["balanced", "paper", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
def test_units_from_moments_are_those_of_the_values(scaling, weighted, form):
    sides = two_sides(weighted=weighted)
    table = np.asarray(sides.table)
    table[:, 3], table[:, 5] = 0.1, 0.0
    table[:, 7] = 1e6 + 1e-3 * table[:, 7]
    weight = np.concatenate([sides.share * sides.weights[0], (1 - sides.share) * sides.weights[1]])
    read = Sides.of(form(table), *sides.rows, weight)
    scaled = scale_sides(read, scaling)
    units = units_of(read, measure(form(table), *sides.rows, weight), scaling)
    assert units.constant.tolist() == scaled.units.constant.tolist()
    assert units.constant.sum() == 2
    np.testing.assert_allclose(units.scale, scaled.units.scale, rtol=1e-4)
    np.testing.assert_allclose(units.centre, scaled.units.centre)
    np.testing.assert_allclose(units.shift, scaled.units.shift, rtol=1e-4)
    np.testing.assert_allclose(units.correlation, scaled.units.correlation, rtol=1e-4)


def test_sorting_many_samples_makes_no_plan():
    import tracemalloc

    rng = np.random.default_rng(0)
    n, m = 30_000, 20_000
    tracemalloc.start()
    matched = SortedTransport(np.full(n, 1 / n), np.full(m, 1 / m))
    found = matched.products(*matched.sort(rng.normal(size=(1, n)), rng.normal(size=(1, m))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == pytest.approx(1.0, abs=0.05)
    # A plan of them all would take 4.8 GB.
    assert peak < 20e6

import numpy as np
import ot
import pytest

from frot.selection._decomposition import Parts, SortedTransport
from frot.selection._scaling import scale_sides
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
    assert (scaled.shift <= scaled.wasserstein).all()
    np.testing.assert_allclose(scaled.shift, (x @ a - y @ b) ** 2, atol=1e-12)
    for feature in range(len(x)):
        cost = ot.emd2(a, b, (x[feature][:, None] - y[feature]) ** 2)
        assert scaled.wasserstein[feature] == pytest.approx(cost, abs=1e-10)


def test_parts_add_up_and_are_averaged():
    one = Parts.of(np.array([3.0]), np.array([1.0]), np.array([2.0]))
    two = Parts.of(np.array([5.0]), np.array([3.0]), np.array([3.0]))
    mean = Parts.mean([one, two])
    assert (mean.phi[0], mean.shift[0], mean.shape[0], mean.misalignment[0]) == (4.0, 2.0, 0.5, 1.5)

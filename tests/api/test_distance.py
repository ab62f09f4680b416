"""The paper's proposition 1: FRWD_p is a metric between weighted sets of points."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import ot
import pytest
from hypothesis import given
from scipy.spatial.distance import cdist

import frot
from tests.reference import quiet
from tests.strategies import group_lists, point_clouds

orders = st.sampled_from([1.0, 2.0, 3.0])
metrics = st.sampled_from(["euclidean", "cityblock", "chebyshev"])


@given(point_clouds(clouds=1), orders, metrics, st.data())
def test_identity(clouds, p, metric, data):
    groups = data.draw(group_lists(clouds[0].shape[1], covering=True))
    assert frot.distance(clouds[0], clouds[0], groups, p=p, metric=metric) == 0.0


@given(point_clouds(), orders, metrics, st.data())
def test_symmetry(clouds, p, metric, data):
    X, Y = clouds
    groups = data.draw(group_lists(X.shape[1], covering=True))
    there = quiet(frot.distance, X, Y, groups, p=p, metric=metric)
    back = quiet(frot.distance, Y, X, groups, p=p, metric=metric)
    assert there == pytest.approx(back, rel=1e-6, abs=1e-9)


@given(point_clouds(clouds=3), orders, metrics, st.data())
def test_triangle_inequality(clouds, p, metric, data):
    groups = data.draw(group_lists(clouds[0].shape[1], covering=True))
    solver = frot.LinearProgram()

    def between(X, Y):
        return quiet(frot.distance, X, Y, groups, p=p, metric=metric, solver=solver)

    X, Y, Z = clouds
    assert between(X, Z) <= (between(X, Y) + between(Y, Z)) * (1 + 1e-7) + 1e-9


@given(point_clouds(), metrics)
def test_points_that_differ_are_apart(clouds, metric):
    X = clouds[0]
    away = quiet(frot.distance, X, X + 1.0, p=2, metric=metric)
    assert away == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_one_group_is_the_wasserstein_distance(p):
    rng = np.random.default_rng(0)
    X, Y, a = rng.normal(size=(9, 3)), rng.normal(size=(7, 3)), rng.dirichlet(np.ones(9))
    expected = ot.emd2(a, np.full(7, 1 / 7), cdist(X, Y) ** p) ** (1 / p)
    assert frot.distance(X, Y, "all", p=p, a=a) == pytest.approx(expected, rel=1e-10)


def test_larger_orders_are_larger():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(9, 4)), rng.normal(size=(9, 4))
    one, two, three = (frot.distance(X, Y, [2, 2], p=p) for p in (1, 2, 3))
    assert one < two < three


def test_it_is_the_root_of_what_solve_returns():
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))
    value = frot.solve(X, Y, [1, 3], metric="chebyshev", p=3.0).value
    assert frot.distance(X, Y, [1, 3], metric="chebyshev", p=3.0) == value ** (1 / 3)


@pytest.mark.parametrize("option", ["eta", "eps"])
def test_regularisation_is_refused(option):
    with pytest.raises(frot.InputError, match="eta, eps: a distance has neither"):
        frot.distance([[0.0]], [[1.0]], **{option: 0.1})


def test_orders_below_one_are_refused():
    with pytest.raises(frot.InputError, match=r"p: must be finite and >= 1, got 0.5"):
        frot.distance([[0.0]], [[1.0]], p=0.5)


@pytest.mark.parametrize(
    ("how", "reason"),
    [("mean", "the triangle inequality fails"), ("regret", "different clouds are at 0")],
)
def test_normalisations_that_make_it_no_distance_are_refused(how, reason):
    X, Y = [[0.0], [1.0]], [[1.0], [3.0]]
    with pytest.raises(frot.InputError, match=f"normalise: '{how}' .*{reason}"):
        frot.distance(X, Y, normalise=how)
    with pytest.raises(frot.InputError, match=f"normalise: '{how}' .*{reason}"):
        frot.pairwise([X, Y], normalise=how)
    assert frot.distance(X, Y, normalise="none") == frot.distance(X, Y)


NO_METRICS = {
    "squared": (
        {"metric": "sqeuclidean", "p": 1.0},
        "metric: 'sqeuclidean' is no metric, .* fails",
    ),
    "cosine": ({"metric": "cosine"}, "metric: 'cosine' is no metric, .* at 0 whatever"),
    "not zero": ({"metric": "russellrao"}, "metric: 'russellrao' .* equal points are not at 0"),
    "units": ({"metric": "seuclidean"}, "metric: 'seuclidean' divides by .* the pair itself"),
    "left out": ({"groups": [[0], [2]]}, "groups: leave out 1 of 3 features, .* still be at 0"),
}


@pytest.mark.parametrize("why", NO_METRICS)
def test_what_makes_it_no_metric_is_refused_with_the_reason(why):
    X, Y = np.eye(3), np.eye(3) + 1.0
    options, message = NO_METRICS[why]
    with pytest.raises(frot.InputError, match=f"{message}.*frot.solve"):
        frot.distance(X, Y, **options)
    with pytest.raises(frot.InputError, match=f"{message}.*frot.solve"):
        frot.pairwise([X, Y], **options)


def test_a_metric_of_the_registry_is_a_square(monkeypatch):
    class Doubled(frot.costs.FactoredMetric):
        def embed(self, points, columns):
            return 2.0 * points

    monkeypatch.setitem(frot.costs.METRICS, "doubled", Doubled())
    with pytest.raises(frot.InputError, match=r"'doubled' is no metric.* the square of a distance"):
        frot.distance([[0.0]], [[1.0]], metric="doubled")


@pytest.mark.parametrize(
    "metric",
    ["braycurtis", "correlation", "cosine", "dice", "russellrao", "sqeuclidean",
     "yule", "seuclidean", "mahalanobis"],
)  # fmt: skip
def test_every_name_that_is_refused_is_one_of_scipys(metric):
    with pytest.raises(frot.InputError, match=r"is no metric|the pair itself"):
        frot.distance(np.eye(3), np.eye(3), metric=metric)


BITS = np.random.default_rng(5).random((12, 9)) < 0.5
KNOWN_METRICS = [
    "canberra", "chebyshev", "cityblock", "euclidean", "hamming", "jaccard", "jensenshannon",
    "minkowski", "rogerstanimoto", "sokalsneath",
]  # fmt: skip


@pytest.mark.parametrize("metric", KNOWN_METRICS)
def test_the_others_of_scipys_are_metrics_where_they_were_looked_at(metric):
    points = np.unique(np.vstack([BITS, np.eye(9, dtype=bool)]), axis=0)
    points = points[points.any(axis=1)].astype(float)
    if metric == "jensenshannon":
        points = points / points.sum(axis=1, keepdims=True)
    D = cdist(points, points, metric=metric)
    assert (D[:, :, None] <= D[:, None, :] + D.T[None, :, :] + 1e-9).all()
    assert (D[~np.eye(len(D), dtype=bool)] > 0.0).all()
    assert frot.distance(points[:3], points[3:], "all", metric=metric, p=1.0) > 0.0

"""Any metric SciPy knows, in chunks."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import frot
from frot import Groups, Plan
from frot.costs import Distances, build_costs
from frot.costs.distances import Powers

RNG = np.random.default_rng(0)
X, Y = RNG.random((7, 5)) + 0.1, RNG.random((6, 5)) + 0.1


@pytest.mark.parametrize(
    "metric", ["braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "jensenshannon"]
)
def test_blocks_are_scipys(metric):
    costs = Distances(X, Y, Groups.from_sizes([2, 3]), metric, p=2.0)
    assert np.array_equal(costs.block(1), cdist(X[:, 2:], Y[:, 2:], metric) ** 2)
    assert np.array_equal(costs.block(1, slice(2, 4)), costs.block(1)[2:4])


@pytest.mark.parametrize("metric", ["seuclidean", "mahalanobis"])
def test_metrics_that_look_at_all_points_do_not_depend_on_the_chunks(metric):
    groups = Groups.all(5)
    whole = cdist(X, Y, metric)
    chunked = Distances(X, Y, groups, metric, chunk_bytes=1)
    assert chunked.mix(np.ones(1)) == pytest.approx(whole, rel=1e-10)


@pytest.mark.parametrize("metric", ["seuclidean", "mahalanobis"])
def test_nor_on_the_points_that_are_taken(metric):
    part = Distances(X, Y, Groups.all(5), metric).take(np.arange(6), np.arange(4))
    assert part.mix(np.ones(1)) == pytest.approx(cdist(X, Y, metric)[:6, :4], rel=1e-10)


def test_only_groups_with_weight_are_computed(monkeypatch):
    costs = Distances(X, Y, Groups.each(5), "euclidean")
    seen = []
    original = Distances.block

    def counted(self, group, rows=slice(None)):
        seen.append(group)
        return original(self, group, rows)

    monkeypatch.setattr(Distances, "block", counted)
    costs.mix(np.array([0.0, 0.5, 0.0, 0.5, 0.0]))
    assert seen == [1, 3]


def test_a_plan_on_few_rows_reads_few_rows(monkeypatch):
    costs = Distances(X, Y, Groups.all(5), "euclidean", chunk_bytes=1)
    seen = []
    original = Distances.block

    def counted(self, group, rows=slice(None)):
        seen.append(rows)
        return original(self, group, rows)

    monkeypatch.setattr(Distances, "block", counted)
    phi = costs.inner(Plan.from_arcs([2, 5], [0, 1], [0.5, 0.5], (7, 6)))
    assert seen == [slice(2, 3), slice(5, 6)]
    assert phi[0] == pytest.approx(0.5 * (cdist(X, Y)[2, 0] + cdist(X, Y)[5, 1]), rel=1e-14)


def test_a_function_of_the_users_is_blamed_for_what_it_raises():
    def broken(u, v):
        raise ZeroDivisionError("no distance")

    with pytest.raises(frot.InputError, match=r"metric: could not be computed .*no distance") as at:
        frot.solve(X, Y, metric=broken)
    assert isinstance(at.value.__cause__, ZeroDivisionError)
    with pytest.raises(frot.InputError, match=r"metric: could not be computed .*no distance"):
        frot.solve(X, Y, metric=broken, memory_budget=0)


@pytest.mark.parametrize(
    ("door", "call"),
    [
        ("build_costs", lambda: frot.solve(X, Y, metric="canberra")),
        ("Stack", lambda: frot.solve_costs(np.ones((1, 2, 2)))),
    ],
)
def test_nobody_else_is_blamed_for_an_error_of_ours(door, call, monkeypatch):
    def broken(*given):
        raise RuntimeError("ours")

    monkeypatch.setattr(f"frot.api.solve.{door}", broken)
    with pytest.raises(RuntimeError, match=r"^ours$"):
        call()


def test_a_covariance_that_cannot_be_inverted_is_named():
    flat = np.column_stack([X, np.ones(len(X))]), np.column_stack([Y, np.ones(len(Y))])
    with pytest.raises(frot.InputError, match="metric: 'mahalanobis' needs a covariance"):
        frot.solve(*flat, "all", metric="mahalanobis")


@pytest.mark.parametrize("p", [0.25, 0.5, 2.0])
def test_powers_of_cosines_of_vectors_that_are_nearly_parallel(p):
    """One minus a cosine loses what is small, and a root makes much of that; ours does not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 5))
    Y = X * rng.uniform(0.5, 2.0, (6, 1)) + 1e-7 * rng.normal(size=(6, 5))
    costs = build_costs(X, Y, Groups.all(5), "cosine", p)
    exact = np.array([[_cosine_power(x, y, p) for y in Y] for x in X])
    found, off = costs.mix(np.ones(1)), costs.rounding(np.ones(1))
    allowed = off.relative * np.abs(found) + off.sums
    assert (np.abs(found - exact) <= allowed).all()
    assert allowed.max() < (1e-13 if p >= 0.5 else 1e-6)


def _cosine_power(x: np.ndarray, y: np.ndarray, p: float) -> float:
    with localcontext() as context:
        context.prec = 60
        u, v = ([Decimal(float(one)) for one in row] for row in (x, y))
        product = sum(s * t for s, t in zip(u, v, strict=True))
        lengths = Decimal(sum(s * s for s in u)).sqrt() * Decimal(sum(t * t for t in v)).sqrt()
        return float((1 - product / lengths) ** Decimal(p))


FAR_RNG = np.random.default_rng(0)
# The third point of FAR_X is far away from all others.
FAR_X = FAR_RNG.normal(size=(5, 3))
FAR_X[2] += 1e8
FAR_Y = FAR_RNG.normal(size=(4, 3))
ALPHA = FAR_RNG.dirichlet(np.ones(3))


@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_far_point_costs_the_others_no_digits(p):
    costs = Powers(FAR_X, FAR_Y, float(p))
    exact = [
        [
            sum(
                Fraction(w) * abs(Fraction(x) - Fraction(y)) ** p
                for w, x, y in zip(ALPHA, row, col, strict=True)
            )
            for col in FAR_Y
        ]
        for row in FAR_X
    ]
    off = np.array(
        [
            [float(abs(Fraction(c) - e)) for c, e in zip(row, truth, strict=True)]
            for row, truth in zip(costs.mix(ALPHA), exact, strict=True)
        ]
    )
    known = costs.rounding(ALPHA)
    assert not np.any(known.sums)
    assert (off <= known.relative * np.array(exact, dtype=float)).all()


@pytest.mark.parametrize("groups", ["each", "all"])
def test_a_far_point_of_next_to_no_weight_leaves_the_interval_narrow(groups):
    a = np.array([0.3, 0.3, 1e-13, 0.2, 0.2 - 1e-13])
    points = {"each": (FAR_X, FAR_Y), "all": (FAR_X[:, :1], FAR_Y[:, :1])}[groups]
    result = frot.solve(
        *points, a=a, metric="cityblock", p=2.0, groups=groups, eps=frot.relative(1.0),
        solver=frot.Entropic(tol=1e-6),
    )  # fmt: skip
    assert result.status is frot.Status.CONVERGED
    assert result.gap <= 1e-6

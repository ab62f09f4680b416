"""Points without weight are left out before any solver, and come back with their potentials."""

from __future__ import annotations

import numpy as np
import pytest

import frot


def far_points_of_weight(weight: float):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 4)), rng.normal(size=(5, 4)) + 0.5
    X[1], Y[3] = 1e8, -2e8
    a, b = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(5))
    a[1], b[3] = weight, 0.0
    return X, Y, a / a.sum(), b / b.sum()


@pytest.mark.parametrize("options", [{}, {"eta": 2.0}, {"eps": 0.3}, {"eta": 2.0, "eps": 0.3}])
def test_light_weights_count_as_zero(options):
    X, Y, a, b = far_points_of_weight(3e-17)
    kept = [0, 2, 3, 4, 5], [0, 1, 2, 4]
    with pytest.warns(frot.DataWarning, match="a: 1 of 6 weights are below 1e-15 of the largest"):
        whole = frot.solve(X, Y, [2, 2], a=a, b=b, **options)
    alone = frot.solve(
        X[kept[0]], Y[kept[1]], [2, 2], a=a[kept[0]], b=b[kept[1]], normalise_weights=True,
        **options,
    )  # fmt: skip
    assert whole.status is frot.Status.CONVERGED
    assert whole.value == pytest.approx(alone.value, rel=1e-4)
    plan = np.asarray(whole.plan)
    assert not plan[1].any()
    assert not plan[:, 3].any()


OPTIONS = {
    "exact": {},
    "smooth": {"eta": 0.1},
    "entropic": {"eps": 0.2, "eta": 0.1},
    "streamed": {"eps": 0.2, "memory_budget": 100},
    "unbalanced": {"tau": 1.0, "eps": 0.2},
    "partial": {"tau": 1.5, "penalty": "tv"},
    "sweeps": {
        "eta": 0.2,
        "tol": 0.01,
        "solver": frot.FrankWolfe(oracle=frot.Sinkhorn(eps=0.1)),
    },
}


def weightless() -> tuple[np.ndarray, ...]:
    """Points of which some weigh nothing, one of them far away, and which of either side do."""
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(7, 4)), rng.normal(size=(6, 4)) + 0.5
    a, b = rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(6))
    a[[1, 4]], b[5], X[1] = 0.0, 0.0, 1e6
    return X, Y, a / a.sum(), b / b.sum()


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
def test_points_without_weight_are_nowhere_but_in_the_potentials(options):
    X, Y, a, b = weightless()
    rows, cols = np.flatnonzero(a), np.flatnonzero(b)
    whole = frot.solve(X, Y, [2, 2], a=a, b=b, **options)
    alone = frot.solve(X[rows], Y[cols], [2, 2], a=a[rows], b=b[cols], **options)
    assert whole.value == pytest.approx(alone.value, rel=1e-12)
    assert (whole.lower, whole.upper) == pytest.approx((alone.lower, alone.upper), rel=1e-12)
    plan = np.asarray(whole.plan)
    np.testing.assert_allclose(plan[np.ix_(rows, cols)], np.asarray(alone.plan), atol=1e-13)
    assert plan.sum() == pytest.approx(np.asarray(alone.plan).sum(), rel=1e-14)
    # Whatever a lazy plan is asked, the rows and columns of zeros are there.
    V = np.arange(12.0).reshape(6, 2)
    np.testing.assert_allclose(whole.plan @ V, plan @ V, atol=1e-14)
    np.testing.assert_allclose(whole.plan.T @ X, plan.T @ X, atol=1e-9)
    np.testing.assert_allclose(whole.plan.sum(axis=1), plan.sum(axis=1), atol=1e-15)
    np.testing.assert_allclose(whole.plan.rows(np.array([1, 2])), plan[[1, 2]], atol=1e-15)
    f, g = whole.potentials
    np.testing.assert_allclose(f[rows], alone.potentials[0], rtol=1e-12)
    assert np.isfinite(f).all()
    assert np.isfinite(g).all()
    if "eps" not in options:
        costs = ((X[:, None] - Y) ** 2).reshape(7, 6, 2, 2).sum(axis=3) @ whole.alpha
        assert (f[:, None] + g <= costs * (1 + 1e-12) + 1e-9).all()


@pytest.mark.parametrize("eps", [0.2, 1.5])
def test_their_potentials_are_derivatives_by_their_weights(eps):
    X, Y, a, b = weightless()
    X[1] = 0.3
    options = {"eps": eps, "eta": 0.1, "tol": 1e-12}
    f, _ = frot.solve(X, Y, [2, 2], a=a, b=b, **options).potentials
    step, other = 1e-6, 2
    moved = a.copy()
    moved[[1, other]] += step, -step
    values = [frot.solve(X, Y, [2, 2], a=w, b=b, **options).value for w in (a, moved)]
    # A derivative at the end of an interval, by one-sided differences: its entropy is not smooth.
    assert (values[1] - values[0]) / step == pytest.approx(f[1] - f[other], abs=1e-4)

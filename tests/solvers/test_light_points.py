"""Points of next to no weight whose costs matter all the same: 1e-10 of the mass that pays 1e9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import frot


def _light_costs(seed: Any, groups: int, n: int, m: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    stack = rng.random((groups, n, m))
    rows, cols = rng.random(n) < 0.4, rng.random(m) < 0.2
    stack[:, rows] *= 1e9
    stack[:, :, cols] *= 1e9
    a = np.where(rows, 1e-9 * rng.random(n) + 1e-10, rng.random(n) + 0.05)
    b = np.where(cols, 1e-9 * rng.random(m) + 1e-10, rng.random(m) + 0.05)
    return stack, a / a.sum(), b / b.sum()


@pytest.mark.parametrize("eta", [0.0, 0.02])
@pytest.mark.parametrize("seed", [0, 2, 36])
def test_the_value_of_an_entropic_problem_may_be_piecewise_linear(seed, eta):
    # Steps along the gradient zigzag: these ended with gaps of 3 to 8 %.
    stack, a, b = _light_costs(seed, 3, 8, 6)
    result = frot.solve_costs(stack, a, b, normalise_weights=True, eps=2.0, eta=eta)
    assert result.status is frot.Status.CONVERGED
    # Without the entropies it costs no more, and the product plan has none.
    plain = frot.solve_costs(stack, a, b, normalise_weights=True)
    assert plain.lower <= result.upper


@pytest.mark.parametrize(
    ("seed", "solver"), [(18, "auto"), (20, "auto"), (27, "auto"), (3, "frank_wolfe")]
)
def test_far_points_with_eta(seed, solver):
    # Potentials of 1e16 are rounded to more than the value: these gaps were 25 to 71 %.
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    far = rng.random(6) < 0.4
    Y[far] *= 1e8
    b = np.where(far, 1e-15 * rng.random(6) + 1e-16, rng.random(6) + 0.05)
    call = {"b": b, "normalise_weights": True}
    options = {"eta": frot.relative(0.03), "tol": 1e-5, "solver": solver}
    result = frot.solve(X, Y, "each", **options, **call)
    assert result.status is frot.Status.CONVERGED
    plain = frot.solve(X, Y, "each", **call)
    assert plain.lower <= result.upper
    assert result.lower <= plain.upper + result.eta * np.log(4.0)


@pytest.mark.parametrize("seed", [8, 13, 27])
def test_sums_of_signed_costs_are_as_sharp_as_the_arcs_they_use(seed):
    # The largest cost of all used to blur what no plan pays.
    stack, a, b = _light_costs(seed, 2, 6, 5)
    rng = np.random.default_rng(seed)
    stack *= np.where(rng.random(stack.shape) < 0.2, -1.0, 1.0)
    one = frot.solve_costs(stack[:1], a, b, normalise_weights=True)
    assert one.status is frot.Status.CONVERGED
    assert one.gap <= 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_marginals_of_light_points_are_right_to_the_last_places(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(8, 2)), rng.normal(size=(12, 2))
    far = np.array([1, 4, 5])
    X[far] *= 1e8
    a = rng.random(8) + 0.05
    a[far] = 1e-16 * (1.0 + rng.random(3))
    a /= a.sum()
    plan = np.asarray(frot.solve(X, Y, "each", a=a, eta=frot.relative(1e-3), tol=1e-6).plan)
    assert np.abs(plan.sum(axis=1) / a - 1.0).max() <= 1e-14


def test_a_run_without_time_knows_what_a_users_metric_costs_at_least():
    def taxi(u, v):
        return float(np.abs(u - v).sum())

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)) + 9.0
    with pytest.warns(frot.ConvergenceWarning):
        result = frot.solve(X, Y, "all", metric=taxi, p=1.0, time_limit=1e-9)
    assert 0.0 < result.lower <= frot.solve(X, Y, "all", metric=taxi, p=1.0).value


def test_potentials_of_max_min_prove_its_bound_beside_far_points():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 2)), rng.normal(size=(8, 2))
    Y[[0, 4]] *= 1e6
    b = rng.random(8) + 0.05
    b[[0, 4]] = 1e-15
    b /= b.sum()
    result = frot.max_min(X, Y, "each", b=b)
    f, g = (side.astype(np.longdouble) for side in result.potentials)
    proven = float(f.mean() + g @ b)
    assert proven == pytest.approx(result.lower, rel=1e-9)


def test_means_that_cancel_are_not_divided_by():
    # Of +1 and -1 in equal parts rounding left a mean of 3e-17, and the group was scaled by that.
    signs = [[1, 1, 1, -1, -1, -1], [1, -1, 1, 1, -1, -1], [1, 1, 1, -1, 1, -1]]
    stack = np.array(signs, dtype=float)[:, None]
    result = frot.solve_costs(stack, normalise="mean")
    assert result.upper - result.lower <= 1e-12
    # Of the last group alone the mean is not zero: two of six, which becomes one.
    np.testing.assert_allclose(result.phi, [0.0, 0.0, 1.0], atol=1e-12)


def test_an_answer_whose_time_is_up_is_not_lost_beside_points_of_no_weight():
    stack = np.array([[[5e8, 0.3, 9e8]], [[7e8, 0.9, 8e8]]])
    with pytest.warns(frot.ConvergenceWarning):
        result = frot.solve_costs(
            stack, b=[2e-300, 1.0, 1e-301], eta=0.02, eps=0.4, time_limit=1e-9
        )
    assert result.status is frot.Status.TIME_LIMIT
    assert result.lower <= result.upper


def _signed_light_costs(seed: int) -> tuple[np.ndarray, ...]:
    """The same with both signs, of two groups of which the first is far above or below."""
    rng = np.random.default_rng(seed)
    stack, a, b = _light_costs(rng, 2, 6, 5)
    stack[0] -= stack[0].mean() * rng.random()
    return stack * np.where(rng.random(stack.shape) < 0.2, -1.0, 1.0), a, b


@pytest.mark.filterwarnings("ignore::frot.ConvergenceWarning")
@pytest.mark.parametrize("seed", [0, 4, 7, 36, 37])
def test_costs_of_both_signs_are_known_to_rounding(seed):
    # The best mixture of plans but for rounding may be nowhere near with it: gaps were up to one.
    stack, a, b = _signed_light_costs(seed)
    result = frot.solve_costs(stack, a, b, normalise_weights=True)
    assert result.status in (frot.Status.CONVERGED, frot.Status.PRECISION)
    assert result.gap <= 2e-4


@pytest.mark.parametrize("seed", [0, 4, 16, 33, 36, 37])
def test_a_light_column_far_below_zero_does_not_drown_a_heavy_row(seed):
    # Rows somewhat lighter than a column used to have no say in its potential.
    stack, a, b = _signed_light_costs(seed)
    result = frot.solve_costs(stack[1:], a, b, normalise_weights=True)
    assert result.status is frot.Status.CONVERGED

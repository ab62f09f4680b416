"""Infinite costs: what they mean to every solver, and when they leave nothing."""

from __future__ import annotations

import numpy as np
import pytest

import frot
from frot import InputError, Status
from frot.solvers.start import allowed_plan
from tests.reference import linear_program, quiet


def with_forbidden(seed: int, n: int = 6, m: int = 6, share: float = 0.5) -> np.ndarray:
    """A stack with infinite costs that leaves a permutation at least."""
    rng = np.random.default_rng(seed)
    stack = rng.random((3, n, m))
    shut = rng.random((3, n, m)) < share
    shut[:, np.arange(n), rng.permutation(n)] = False
    stack[shut] = np.inf
    return stack


def shut_arcs(stack: np.ndarray) -> np.ndarray:
    return np.asarray(np.isinf(stack).any(axis=0))


@pytest.mark.parametrize("solver", ["exact", "linear_program", frot.FrankWolfe()])
@pytest.mark.parametrize("seed", range(8))
def test_solvers_agree_with_a_program_without_these_arcs(solver, seed):
    stack = with_forbidden(seed)
    found = frot.solve_costs(stack, solver=solver)
    assert found.status is Status.CONVERGED
    # A number so large that no plan with mass 1e-9 on such an arc could be optimal.
    big = np.where(shut_arcs(stack), 1e5, stack)
    uniform = np.full(6, 1 / 6)
    expected = linear_program(big, uniform, uniform)
    assert found.value == pytest.approx(expected, rel=1e-7)
    rows, cols, _ = found.plan.arcs()
    assert not shut_arcs(stack)[rows, cols].any()
    assert np.isfinite([found.lower, found.upper, *found.phi, *found.alpha]).all()


@pytest.mark.parametrize("eta", [0.0, 0.1])
def test_many_points(eta):
    stack = with_forbidden(0, 80, 80, share=0.3)
    found = frot.solve_costs(stack, eta=eta)
    assert found.status is Status.CONVERGED
    assert np.asarray(found.plan)[shut_arcs(stack)].sum() == 0.0


def test_the_only_plan_that_is_left():
    stack = np.full((2, 3, 3), np.inf)
    stack[:, [0, 1, 2], [1, 2, 0]] = [[1.0, 2.0, 3.0], [3.0, 2.0, 1.5]]
    found = frot.solve_costs(stack)
    assert found.value == pytest.approx(6.5 / 3.0, rel=1e-14)
    assert found.plan.argmax().tolist() == [1, 2, 0]


def test_weights_that_agree_only_in_sum_of_parts():
    """Blocks of 3 x 1 and 1 x 3: sums of thirds are not quite sums of sixths."""
    stack = np.full((1, 4, 4), np.inf)
    stack[0, :3, 0] = 1.0
    stack[0, 3, 1:] = 2.0
    found = frot.solve_costs(stack, a=[1 / 6, 1 / 6, 1 / 6, 1 / 2], b=[1 / 2, 1 / 6, 1 / 6, 1 / 6])
    assert found.value == pytest.approx(1.5, rel=1e-14)


def test_no_plan_is_left():
    stack = np.zeros((1, 3, 3))
    stack[0, [0, 1], 1:] = np.inf
    with pytest.raises(InputError, match="rows 0, 1 weigh 0\\.666667, and the columns"):
        frot.solve_costs(stack)
    stack[0, 2] = np.inf
    with pytest.raises(InputError, match="infinite costs leave no plan"):
        frot.solve_costs(stack)


def test_a_point_without_weight_may_be_shut_in():
    stack = np.zeros((1, 3, 2))
    stack[0, 1] = np.inf
    assert frot.solve_costs(stack, a=[0.5, 0.0, 0.5]).value == 0.0


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_other_infinities_are_refused(value):
    stack = np.zeros((1, 2, 2))
    stack[0, 0, 1] = value
    with pytest.raises(InputError, match="NaN or minus infinity"):
        frot.solve_costs(stack)


def test_a_metric_may_forbid_pairs():
    def same_side(u: np.ndarray, v: np.ndarray) -> float:
        return float(np.abs(u - v).sum()) if u[0] * v[0] > 0 else np.inf

    found = frot.solve([[-1.0], [1.0]], [[2.0], [-3.0]], "all", metric=same_side)
    assert found.value == pytest.approx(1.5)


def test_a_plan_made_of_allowed_arcs():
    shut = shut_arcs(with_forbidden(3))
    uniform = np.full(6, 1 / 6)
    plan = allowed_plan(shut, uniform, uniform)
    assert np.asarray(plan)[shut].sum() == 0.0
    assert plan.sum(axis=1) == pytest.approx(uniform, rel=1e-15)


def test_a_run_without_time_has_an_interval():
    stack = with_forbidden(1, 60, 60)
    found = quiet(frot.solve_costs, stack, time_limit=1e-9)
    exact = frot.solve_costs(stack)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper < np.inf


def dual_value(found: frot.Result, stack: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """What the weights and potentials handed out prove, summed in the plainest way."""
    f, g = found.potentials
    shut = shut_arcs(stack)
    mixed = np.tensordot(found.alpha, np.where(shut, 0.0, stack), 1)
    scores = np.where(shut, -np.inf, f[:, None] + g - mixed) / found.eps
    mass = float((a[:, None] * b * np.exp(scores)).sum())
    return float(a @ f + b @ g - found.eps * (mass - 1.0))


def soft_value(stack: np.ndarray, plan: np.ndarray, eps: float, product: np.ndarray) -> float:
    used = plan > 0.0
    costs = np.where(shut_arcs(stack), 0.0, stack)
    entropy = float((plan[used] * np.log(plan[used] / product[used])).sum())
    return float((costs * plan).sum(axis=(1, 2)).max()) + eps * entropy


@pytest.mark.parametrize("eps", [1e-4, 0.05, 1.0, 100.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("n", [6, 70])
def test_entropic_plans_keep_off_forbidden_arcs(n, share, eps):
    """With many arcs forbidden, some that are allowed are empty in every plan."""
    stack = with_forbidden(n, n, n, share)
    found = frot.solve_costs(stack, eps=eps, tol=1e-7)
    assert found.status is Status.CONVERGED
    plan, uniform = np.asarray(found.plan), np.full(n, 1 / n)
    assert plan[shut_arcs(stack)].sum() == 0.0
    assert plan.sum(axis=1) == pytest.approx(uniform, rel=1e-12)
    assert plan.sum(axis=0) == pytest.approx(uniform, rel=1e-12)
    value = soft_value(stack, plan, eps, np.outer(uniform, uniform))
    assert found.lower * (1.0 - 1e-12) <= value <= found.upper * (1.0 + 1e-12)
    assert dual_value(found, stack, uniform, uniform) == pytest.approx(found.lower, rel=1e-9)


@pytest.mark.parametrize("eps", [0.1, 1.0])
def test_entropic_agrees_with_sweeps_on_the_arcs_that_can_carry_mass(eps):
    """Two blocks, and allowed arcs from the first to the second, which are shut in effect."""
    rng = np.random.default_rng(0)
    cost = rng.random((5, 5))
    cost[2:, :2] = np.inf
    kernel = np.where(np.isinf(cost), 0.0, np.exp(-np.where(np.isinf(cost), 0.0, cost) / eps))
    kernel[:2, 2:] = 0.0
    u, v = np.ones(5), np.ones(5)
    for _ in range(20_000):
        u = 5.0 / (kernel @ v)
        v = 5.0 / (kernel.T @ u)
    plan = u[:, None] * kernel * v / 25.0
    product = np.full((5, 5), 1 / 25)
    expected = soft_value(cost[None], plan, eps, product)
    found = frot.solve_costs(cost[None], eps=eps, tol=1e-9)
    assert found.value == pytest.approx(expected, rel=1e-8)
    assert np.asarray(found.plan) == pytest.approx(plan, abs=1e-5)


@pytest.mark.parametrize("eta", [0.0, 0.1])
def test_entropic_with_the_only_plan_that_is_left(eta):
    """A triangle of allowed arcs leaves its diagonal, n nested parts; its entropy is log n."""
    n, rng = 12, np.random.default_rng(1)
    stack = rng.random((3, n, n))
    rows, cols = np.tril_indices(n, -1)
    stack[:, rows, cols] = np.inf
    found = frot.solve_costs(stack, eps=0.3, eta=eta, tol=1e-9)
    phi = np.trace(stack, axis1=1, axis2=2) / n
    level = phi.max() if eta == 0.0 else eta * np.log(np.exp(phi / eta).sum())
    assert found.value == pytest.approx(level + 0.3 * np.log(n), rel=1e-9)
    assert np.asarray(found.plan) == pytest.approx(np.eye(n) / n, rel=1e-12)
    assert found.phi == pytest.approx(phi, rel=1e-12)


def test_entropic_plans_of_many_arcs():
    """More arcs than are summed number by number."""
    rng = np.random.default_rng(0)
    stack = rng.random((1, 340, 340))
    stack[0, rng.random((340, 340)) < 0.05] = np.inf
    stack[0, np.arange(340), np.arange(340)] = 0.5
    found = frot.solve_costs(stack, eps=0.5)
    assert found.status is Status.CONVERGED
    plan = np.asarray(found.plan)
    assert plan[np.isinf(stack[0])].sum() == 0.0
    assert plan.sum(axis=0) == pytest.approx(np.full(340, 1 / 340), rel=1e-13)


def test_entropic_with_nothing_to_pay():
    """Of two rows one may go to one column only: the plan is all that is left, and log 2."""
    stack = np.array([[[0.0, np.inf], [0.0, 0.0]]])
    found = frot.solve_costs(stack, eps=1.0)
    assert found.value == pytest.approx(np.log(2.0), rel=1e-9)


@pytest.mark.parametrize("order", [False, True])
def test_entropic_parts_of_different_sizes(order):
    """A part with more columns than rows, and weights whose sums agree to rounding only."""
    stack = np.full((1, 4, 4), np.inf)
    stack[0, :3, 0] = [1.0, 2.0, 3.0]
    stack[0, 3, 1:] = 2.0
    stack[0, 0, 1] = 0.5
    a, b = [1 / 6, 1 / 6, 1 / 6, 1 / 2], [1 / 2, 1 / 6, 1 / 6, 1 / 6]
    if order:
        stack, a, b = stack.transpose(0, 2, 1), b, a
    found = frot.solve_costs(stack, a=a, b=b, eps=0.5, tol=1e-9)
    # Every arc that carries mass carries a sixth, of a product of a sixth and a half.
    assert found.value == pytest.approx(2.0 + 0.5 * np.log(2.0), rel=1e-8)


def test_entropic_refuses_where_no_plan_is_left():
    stack = np.zeros((1, 3, 3))
    stack[0, [0, 1], 1:] = np.inf
    with pytest.raises(InputError, match="rows 0, 1 weigh 0\\.666667, and the columns"):
        frot.solve_costs(stack, eps=0.1)


def test_a_metric_may_forbid_pairs_with_eps():
    def same_side(u: np.ndarray, v: np.ndarray) -> float:
        return float(np.abs(u - v).sum()) if u[0] * v[0] > 0 else np.inf

    found = frot.solve([[-1.0], [1.0]], [[2.0], [-3.0]], "all", metric=same_side, eps=0.1)
    assert found.value == pytest.approx(1.5 + 0.1 * np.log(2.0), rel=1e-8)


def test_sinkhorn_as_an_oracle_refuses_infinite_costs():
    with pytest.raises(InputError, match=r"infinite costs are not for Sinkhorn.* as an oracle"):
        frot.solve_costs(with_forbidden(0), eps=0.1, solver=frot.FrankWolfe(oracle=frot.Sinkhorn()))


def test_an_entropic_run_without_time_has_an_interval():
    stack = with_forbidden(1, 60, 60)
    found = quiet(frot.solve_costs, stack, eps=0.1, time_limit=1e-9)
    sharp = frot.solve_costs(stack, eps=0.1)
    assert found.lower <= sharp.upper
    assert sharp.lower <= found.upper < np.inf
    assert np.asarray(found.plan)[shut_arcs(stack)].sum() == 0.0


def test_an_entropic_run_of_one_step_says_what_its_potentials_prove():
    stack = with_forbidden(2)
    found = quiet(frot.solve_costs, stack, eps=0.1, solver=frot.Entropic(max_iter=1))
    uniform = np.full(6, 1 / 6)
    assert dual_value(found, stack, uniform, uniform) >= found.lower - 1e-12
    plain = frot.solve_costs(stack)
    assert found.unregularised[0] <= plain.upper
    assert plain.lower <= found.unregularised[1]


@pytest.mark.parametrize("eps", [0.0, 0.07])
def test_points_without_weight_that_nothing_reaches_bind_nothing(eps):
    stack, weights = np.array([[[0.6, np.inf], [np.inf, np.inf]]]), np.array([1.0, 0.0])
    found = frot.solve_costs(stack, a=weights, b=weights, eps=eps)
    assert found.value == pytest.approx(0.6)
    assert [part[1] for part in found.potentials] == [0.0, 0.0]

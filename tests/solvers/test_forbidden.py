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


def test_with_eps_they_are_refused():
    with pytest.raises(InputError, match="infinite costs are not for eps > 0; give such arcs"):
        frot.solve_costs(with_forbidden(0), eps=0.1)


def test_sinkhorn_as_an_oracle_refuses_infinite_costs():
    with pytest.raises(InputError, match=r"infinite costs are not for Sinkhorn.* as an oracle"):
        frot.solve_costs(with_forbidden(0), eps=0.1, solver=frot.FrankWolfe(oracle=frot.Sinkhorn()))


def test_points_without_weight_that_nothing_reaches_bind_nothing():
    stack, weights = np.array([[[0.6, np.inf], [np.inf, np.inf]]]), np.array([1.0, 0.0])
    found = frot.solve_costs(stack, a=weights, b=weights)
    assert found.value == pytest.approx(0.6)
    assert [part[1] for part in found.potentials] == [0.0, 0.0]

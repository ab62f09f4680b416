"""The referee: HiGHS on the whole program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import frot
from frot import LinearProgram, Status
from frot._base.stopping import DeadlineError, deadline
from frot.solvers import EpigraphProgram
from tests.reference import linear_program

RNG = np.random.default_rng(0)
STACK = RNG.random((4, 11, 8))
A, B = RNG.dirichlet(np.ones(11)), RNG.dirichlet(np.ones(8))
METHODS: tuple[Any, ...] = ("simplex", "ipm")


@pytest.mark.parametrize("method", METHODS)
def test_it_is_the_optimum(method):
    result = frot.solve_costs(STACK, A, B, solver=LinearProgram(method=method))
    assert result.status is Status.CONVERGED
    assert result.value == pytest.approx(linear_program(STACK, A, B), rel=1e-9)
    assert result.iterations == 1
    assert result.solver == (
        f"LinearProgram(method='{method}', tol=1e-07, max_iter=10, time_limit=None)"
    )


def test_weights_are_the_duals():
    result = frot.solve_costs(STACK, A, B, solver="linear_program")
    assert result.alpha @ (result.value - result.phi) <= 1e-8
    step = 1e-6
    for group in range(4):
        more = STACK.copy()
        more[group] *= 1.0 + step
        moved = linear_program(more, A, B)
        slope = (moved - result.value) / step
        assert slope == pytest.approx(result.alpha[group] * result.phi[group], abs=1e-3)


def test_uneven_weights_do_not_make_it_infeasible():
    rng = np.random.default_rng(1)
    a = 10.0 ** -rng.uniform(0, 11, 20)
    a /= a.sum()
    stack = rng.random((3, 20, 8))
    result = frot.solve_costs(stack, a, solver="linear_program")
    assert result.status is Status.CONVERGED


def test_a_time_limit_leaves_a_certified_interval():
    stack = np.random.default_rng(2).random((20, 60, 60))
    with pytest.warns(frot.ConvergenceWarning, match="Stopped at time_limit"):
        result = frot.solve_costs(stack, solver=LinearProgram(time_limit=1e-3))
    assert result.status is Status.TIME_LIMIT
    exact = frot.solve_costs(stack)
    assert result.lower <= exact.value <= result.upper


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(6))
def test_heavy_tails_and_light_weights(method, seed):
    rng = np.random.default_rng(seed)
    a, b = (10.0 ** -rng.uniform(0, 4, size) for size in (9, 7))
    stack = rng.pareto(0.7, (3, 9, 7))
    options = {"normalise_weights": True, "solver": LinearProgram(method=method)}
    result = frot.solve_costs(stack, a, b, **options)
    assert result.status is Status.CONVERGED
    exact = frot.solve_costs(stack, a, b, normalise_weights=True)
    assert max(result.lower, exact.lower) <= min(result.upper, exact.upper)


def test_the_callback_sees_its_solution():
    seen: list[frot.Progress] = []
    result = frot.solve_costs(STACK, A, B, solver="linear_program", callback=seen.append)
    assert seen == list(result.history)
    assert seen[-1].gap <= 1e-7


def test_a_plan_that_costs_far_more_than_is_typical():
    # Two rows of three have one cheap column, so that a dear arc has to be used.
    stack = np.random.default_rng(0).random((4, 3, 3))
    stack[:2, :2, 1:] = 1e12
    result = frot.solve_costs(stack, solver="linear_program")
    exact = frot.solve_costs(stack)
    assert result.status is Status.CONVERGED
    assert exact.lower <= result.upper
    assert result.lower <= exact.upper


def test_where_highs_would_cycle_it_is_stopped(monkeypatch):
    # No step is enough: what the points alone prove is left.
    monkeypatch.setattr("frot.solvers._linear_program.EpigraphProgram.most_steps", 0)
    with pytest.warns(frot.ConvergenceWarning):
        result = frot.solve_costs(STACK, A, B, solver="linear_program")
    assert result.status is Status.STALLED
    assert result.lower <= frot.solve_costs(STACK, A, B).value <= result.upper


COSTS = np.random.default_rng(0).random((3, 6, 5))
EVEN_A, EVEN_B = np.full(6, 1 / 6), np.full(5, 1 / 5)
ROWS, COLS = np.divmod(np.arange(30), 5)


def solve_vertex(a, b, rows, cols, costs, method="simplex", presolve=False):
    return EpigraphProgram(a, b, rows, cols, costs, method).solve(presolve)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("presolve", [True, False])
def test_all_arcs_give_the_optimum(method, presolve):
    flat = COSTS.reshape(3, -1)
    found = solve_vertex(EVEN_A, EVEN_B, ROWS, COLS, flat, method=method, presolve=presolve)
    assert found is not None
    assert (flat @ found.mass).max() == pytest.approx(
        linear_program(COSTS, EVEN_A, EVEN_B), rel=1e-8
    )
    assert found.alpha.sum() == pytest.approx(1.0, rel=1e-12)
    assert np.bincount(ROWS, found.mass) == pytest.approx(EVEN_A, abs=1e-9)
    assert np.count_nonzero(found.mass > 1e-12) <= 6 + 5 + 3


def test_arcs_that_admit_no_plan():
    keep = COLS != 2
    costs = COSTS.reshape(3, -1)[:, keep]
    assert solve_vertex(EVEN_A, EVEN_B, ROWS[keep], COLS[keep], costs) is None


def test_no_time():
    rng = np.random.default_rng(1)
    rows, cols = np.divmod(np.arange(150 * 150), 150)
    uniform = np.full(150, 1 / 150)
    with deadline(1e-3), pytest.raises(DeadlineError):
        solve_vertex(uniform, uniform, rows, cols, rng.random((8, 150 * 150)))

"""Parts of problems with forbidden arcs: which arcs can carry mass, and potentials for proofs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from frot.costs import ForbiddenCosts, StackedCosts
from frot.problem.problem import Problem
from frot.solvers.entropic.arcs import SeparateParts
from frot.solvers.start import allowed_plan


def problem_of(seed: int) -> Problem:
    """Whole weights, so that sets of rows and columns often weigh the same."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(3, 7, 2)
    a, b = rng.integers(1, 3, n) * 1.0, rng.integers(1, 3, m) * 1.0
    a, b = a / a.sum(), b / b.sum()
    while True:
        shut = rng.random((n, m)) < 0.6
        try:
            allowed_plan(shut, a, b)
        except ValueError:
            continue
        stack = np.where(shut, np.inf, rng.random((1, n, m)))
        return Problem(ForbiddenCosts.of_stack(stack), a, b, eps=0.1)


def most_mass(problem: Problem, row: int, col: int) -> float:
    """What an arc can carry, by a linear program."""
    n, m = len(problem.a), len(problem.b)
    shut = problem.costs.forbidden
    assert shut is not None
    conditions = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    worth = np.zeros((n, m))
    worth[row, col] = -1.0
    bounds = [(0.0, 0.0 if closed else None) for closed in shut.ravel()]
    right = np.concatenate([problem.a, problem.b])
    return -linprog(worth.ravel(), A_eq=conditions, b_eq=right, bounds=bounds).fun


@pytest.mark.parametrize("seed", range(12))
def test_arcs_between_parts_are_those_that_no_plan_uses(seed: int):
    problem = problem_of(seed)
    parts = SeparateParts.of(problem)
    assert parts is not None
    shut = problem.costs.forbidden
    assert shut is not None
    for row, col in np.argwhere(~shut):
        assert (most_mass(problem, row, col) > 1e-9) == parts.inside[row, col]


@pytest.mark.parametrize("seed", range(12))
def test_parts_are_moved_until_arcs_between_them_are_empty(seed: int):
    problem = problem_of(seed)
    parts = SeparateParts.of(problem)
    assert parts is not None
    f = np.random.default_rng(seed).normal(size=len(problem.a))
    moved = parts.move(np.ones(1), f, problem)
    mixed = problem.costs.mix(np.ones(1))
    with np.errstate(over="ignore"):
        kernel = problem.a[:, None] * np.exp((moved[:, None] - mixed) / problem.eps)
    shares = kernel / kernel.sum(axis=0)
    assert shares[~parts.inside].max(initial=0.0) < 1e-18
    # Inside a part all rows move alike.
    for part in np.unique(parts.rows):
        shift = (moved - f)[parts.rows == part]
        assert shift == pytest.approx(np.full(len(shift), shift[0]), abs=1e-12)


def test_a_problem_without_forbidden_arcs_has_no_parts():
    half = np.array([0.5, 0.5])
    assert SeparateParts.of(Problem(StackedCosts(np.ones((1, 2, 2))), half, half)) is None

"""The best mixture of known plans: a small min-max of its own."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

from frot import Simplex
from frot.solvers.corrective import best_mixture
from tests.strategies import seeds


def by_linear_program(phis: np.ndarray) -> float:
    """Min over mixtures of the largest group cost."""
    groups, count = phis.shape
    solved = linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=np.hstack([phis, -np.ones((groups, 1))]),
        b_ub=np.zeros(groups),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * count + [(None, None)],
    )
    return float(solved.fun)


@given(seeds, st.integers(1, 6), st.integers(1, 6))
def test_without_entropy_it_is_a_matrix_game(seed, groups, count):
    phis = np.random.default_rng(seed).random((groups, count))
    weights, alpha = best_mixture(phis, Simplex(), unit=1.0)
    truth = by_linear_program(phis)
    assert (phis @ weights).max() == pytest.approx(truth, abs=1e-7)
    assert (alpha @ phis).min() == pytest.approx(truth, abs=1e-7)
    for simplex in (weights, alpha):
        assert simplex.min() >= 0.0
        assert simplex.sum() == pytest.approx(1.0, rel=1e-12)


@given(seeds, st.sampled_from([0.01, 0.3, 5.0]), st.sampled_from([1e-6, 1.0, 1e6]))
def test_with_entropy_no_other_mixture_is_better(seed, eta, unit):
    rng = np.random.default_rng(seed)
    phis = rng.random((4, 5)) * unit
    adversary = Simplex(eta * unit)
    weights, _ = best_mixture(phis, adversary, unit)
    best = adversary.best(phis @ weights)[0]
    for other in (*np.eye(5), *rng.dirichlet(np.ones(5), 20)):
        assert best <= adversary.best(phis @ other)[0] + 1e-7 * unit


@pytest.mark.parametrize("column", [np.zeros(3), np.ones(3)])
def test_plans_that_are_all_the_same(column):
    weights, alpha = best_mixture(np.column_stack([column] * 4), Simplex(), unit=1.0)
    assert weights.sum() == pytest.approx(1.0)
    assert alpha.sum() == pytest.approx(1.0)
    assert np.isfinite(weights).all()


def test_a_single_plan():
    weights, alpha = best_mixture(np.array([[1.0], [3.0]]), Simplex(), unit=1.0)
    assert weights.tolist() == [1.0]
    assert alpha.tolist() == [0.0, 1.0]


def test_costs_far_above_their_unit_leave_no_direction_and_no_warning():
    # Slacks next to costs that large round to zero.
    column = np.array([7054532.127896651, 1195578.4152296337, 14084218.66602767, 64051008.78986745])
    weights, alpha = best_mixture(np.column_stack([column, column]), Simplex(), 1.6e-9, 1e-3)
    assert weights.sum() == pytest.approx(1.0)
    assert np.isfinite(alpha).all()

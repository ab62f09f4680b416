"""Costs made comparable between groups."""

from __future__ import annotations

import numpy as np
import ot
import pytest

import frot
from frot.api.normalise import normalise_costs
from frot.costs import Stack

RNG = np.random.default_rng(0)
STACK = RNG.random((3, 5, 6)) * np.array([1.0, 10.0, 0.1])[:, None, None]
A, B = RNG.dirichlet(np.ones(5)), RNG.dirichlet(np.ones(6))


def each(costs) -> np.ndarray:
    return np.stack([costs.mix(row) for row in np.eye(3)])


def test_none_changes_nothing():
    costs = Stack(STACK)
    assert normalise_costs(costs, A, B, "none") is costs


def test_mean_makes_the_mean_cost_one():
    costs = normalise_costs(Stack(STACK), A, B, "mean")
    assert costs.product(A, B) == pytest.approx([1.0, 1.0, 1.0], rel=1e-14)
    means = np.einsum("i,lij,j->l", A, STACK, B)
    assert each(costs) == pytest.approx(STACK / means[:, None, None], rel=1e-13)


def test_mean_leaves_a_group_without_cost_alone():
    stack = np.concatenate([STACK, np.zeros((1, 5, 6))])
    costs = normalise_costs(Stack(stack), A, B, "mean")
    assert costs.product(A, B).tolist()[-1] == 0.0


def test_regret_subtracts_the_groups_own_optimum():
    costs = normalise_costs(Stack(STACK), A, B, "regret")
    best = np.array([ot.emd2(A, B, group) for group in STACK])
    assert each(costs) == pytest.approx(STACK - best[:, None, None], rel=1e-12, abs=1e-14)
    assert [ot.emd2(A, B, group) for group in each(costs)] == pytest.approx([0.0] * 3, abs=1e-12)


def test_regret_ignores_points_without_weight():
    a = np.append(A[:4] / A[:4].sum(), 0.0)
    costs = normalise_costs(Stack(STACK), a, B, "regret")
    best = np.array([ot.emd2(a[:4], B, group[:4]) for group in STACK])
    assert each(costs) == pytest.approx(STACK - best[:, None, None], rel=1e-12, abs=1e-14)


def test_too_little_time_for_regret_is_named():
    with pytest.raises(frot.InputError, match="time_limit: was up before the optimum of every"):
        frot.solve_costs(STACK, normalise="regret", time_limit=1e-9)


def test_regret_knows_the_optimum_beside_large_costs():
    # Only arcs of 1e12 connect the two rows' columns, so that potentials are as large.
    stack = np.zeros((1, 2, 7))
    stack[0, [0, 1], [3, 0]] = 1e12
    stack[0, 1, [1, 6]] = stack[0, 0, 5] = 1.0
    costs = normalise_costs(Stack(stack), np.array([0.3, 0.7]), np.full(7, 1 / 7), "regret")
    assert float(costs.mix(np.ones(1))[0, 0]) == pytest.approx(-0.9 / 7, rel=1e-9)

"""Any convex set of weights, one of the user's own among them, through the same doors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import frot
from frot.costs import Stack
from frot.problem.problem import Problem

RNG = np.random.default_rng(0)
C = RNG.uniform(size=(3, 7, 8)) * np.array([0.8, 1.0, 1.2])[:, None, None]
X, Y = RNG.normal(size=(12, 3)), RNG.normal([0.0, 0.5, 1.0], size=(15, 3))


class Quarter:
    """Weights of sum one and at least a quarter each."""

    def best(self, phi):
        alpha = np.full(len(phi), 0.25)
        alpha[np.argmax(phi)] += 1.0 - 0.25 * len(phi)
        return float(alpha @ phi), alpha


VERTICES = np.full((3, 3), 0.25) + 0.25 * np.eye(3)


def test_a_set_of_ones_own_is_the_hull_of_its_answers():
    truth = frot.solve_costs(np.tensordot(VERTICES, C, 1))
    res = frot.solve_costs(C, adversary=Quarter())
    assert res.status is frot.Status.CONVERGED
    assert max(res.lower, truth.lower) <= min(res.upper, truth.upper)
    assert res.alpha.min() >= 0.25
    assert res.alpha.sum() == pytest.approx(1.0)


class Wrong(Quarter):
    """States more than its weights attain."""

    def best(self, phi):
        value, alpha = super().best(phi)
        return value, alpha * (1.0 + 1e-3)


def test_an_answer_that_is_not_attained_is_refused_before_any_work():
    with pytest.raises(frot.InputError, match=r"Wrong.best\(phi\) returned the value"):
        frot.solve_costs(C, adversary=Wrong())


def test_a_problem_made_by_hand_is_no_way_around():
    weights = np.full(7, 1.0 / 7.0), np.full(8, 0.125)
    sets: list[Any] = [frot.CappedSimplex(2), Quarter()]
    for adversary in sets:
        problem = Problem(Stack(C), *weights, adversary)
        truth = frot.solve_costs(C, adversary=adversary)
        res = frot.CuttingSet()(problem)
        assert max(res.lower, truth.lower) <= min(res.upper, truth.upper)
        if isinstance(adversary, Quarter):
            with pytest.raises(frot.InputError, match="Exact does not take Quarter"):
                frot.Exact()(problem)


@pytest.mark.parametrize(
    "adversary",
    [
        frot.Ellipsoid([0.3, 0.3, 0.4], 0.2),
        frot.Polytope(VERTICES),
        Quarter(),
        frot.CappedSimplex(2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_points_and_costs_agree(adversary):
    stack = (X.T[:, :, None] - Y.T[:, None, :]) ** 2
    found = [
        frot.solve(X, Y, adversary=adversary, solver="cutting_set"),
        frot.solve_costs(stack, adversary=adversary, solver="cutting_set"),
    ]
    assert found[0].solver.startswith("CuttingSet")
    assert max(one.lower for one in found) <= min(one.upper for one in found)
    assert all(one.gap <= 1e-8 for one in found)


def test_negative_weights_and_costs():
    signed = C - 0.5
    corners = np.array(np.meshgrid([-1.0, 0.5], [-0.5, 1.0], [0.0, 1.0])).reshape(3, -1).T
    box = frot.Polytope(corners)
    truth = frot.solve_costs(np.tensordot(corners, signed, 1), tol=1e-7)
    res = frot.solve_costs(signed, adversary=box, tol=1e-7)
    assert max(res.lower, truth.lower) <= min(res.upper, truth.upper)
    with pytest.warns(frot.ConvergenceWarning):
        hurried = frot.solve_costs(signed, adversary=box, time_limit=1e-9)
    assert hurried.lower <= truth.value <= hurried.upper


def test_points_without_weight_come_back():
    a = np.array([0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0])
    res = frot.solve_costs(C, a, adversary=Quarter())
    small = frot.solve_costs(C[:, 1:3], adversary=Quarter())
    assert res.value == pytest.approx(small.value, rel=1e-9)
    assert res.plan.shape == (7, 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "exact"}, "Exact does not take Quarter"),
        ({"solver": frot.FrankWolfe()}, "FrankWolfe does not take Quarter"),
        ({"solver": "linear_program"}, "LinearProgram does not take Quarter"),
        ({"solver": "entropic", "eps": 0.1}, "Entropic does not take Quarter"),
        ({"eps": 0.1}, "CuttingSet solves eta = 0 and eps = 0"),
        ({"eta": 0.1}, "eta, prior: are for"),
        ({"adversary": frot.Ellipsoid([0.5], 0.1)}, "holds weights of 1 groups"),
        ({"adversary": frot.Polytope}, "has no best"),
        ({"memory_budget": 100.0}, "all 3 x 12 x 15 costs have to be kept"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(options, message):
    with pytest.raises(frot.InputError, match=message):
        frot.solve(X, Y, **{"adversary": Quarter(), **options})


def test_infinite_costs_are_refused():
    dear = C.copy()
    dear[:, 0, 0] = np.inf
    with pytest.raises(frot.InputError, match="infinite costs"):
        frot.solve_costs(dear, adversary=Quarter())

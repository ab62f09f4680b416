"""Any convex set of weights, one of the user's own among them, through the same doors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import frot
from frot.costs import StackedCosts
from frot.problem.problem import Problem
from tests.reference import quiet

RNG = np.random.default_rng(0)
C = RNG.uniform(size=(3, 7, 8)) * np.array([0.8, 1.0, 1.2])[:, None, None]
X, Y = RNG.normal(size=(12, 3)), RNG.normal([0.0, 0.5, 1.0], size=(15, 3))


class Leaning:
    """Weights of sum one and at least a quarter each; its answers lean out of the set."""

    def __init__(self, lean: float) -> None:
        self.lean = lean

    def best(self, phi):
        alpha = np.full(len(phi), 0.25)
        alpha[np.argmax(phi)] += 1.0 - 0.25 * len(phi)
        value = float(alpha @ phi)
        return value, alpha * (1.0 + self.lean)

    def contains(self, alpha):
        return bool((alpha >= 0.25 - 1e-15).all() and abs(alpha.sum() - 1.0) <= 1e-14)

    def project(self, alpha):
        room = frot.Simplex().project(alpha - 0.25)
        return 0.25 + (1.0 - 0.25 * len(alpha)) * room


VERTICES = np.full((3, 3), 0.25) + 0.25 * np.eye(3)


@pytest.mark.parametrize("lean", [0.0, 1e-9, 1e-3, 0.1])
def test_answers_that_lean_out_of_their_set_prove_nothing_wrong(lean):
    truth = frot.solve_costs(np.tensordot(VERTICES, C, 1))
    # Projected, they are not the best answers, so that the interval need not close.
    res = quiet(frot.solve_costs, C, adversary=Leaning(lean))
    assert res.lower <= truth.upper
    assert truth.lower <= res.upper
    assert Leaning(0.0).contains(res.alpha)
    assert res.gap <= max(1e-8, lean)


def test_a_problem_made_by_hand_is_no_way_around():
    weights = np.full(7, 1.0 / 7.0), np.full(8, 0.125)
    sets: list[Any] = [frot.CappedSimplex(2), Leaning(0.1)]
    for adversary in sets:
        problem = Problem(StackedCosts(C), *weights, adversary)
        truth = quiet(frot.solve_costs, C, adversary=adversary)
        res = quiet(frot.CuttingSet(), problem)
        assert max(res.lower, truth.lower) <= min(res.upper, truth.upper)
        if isinstance(adversary, Leaning):
            with pytest.raises(frot.InputError, match="Exact does not take Leaning"):
                frot.Exact()(problem)


@pytest.mark.parametrize(
    "adversary",
    [
        frot.Box([0.0, 0.1, 0.2], [1.0, 0.5, 0.4]),
        frot.Ellipsoid([0.3, 0.3, 0.4], 0.2),
        frot.Polytope(VERTICES),
        frot.Polyhedron(np.vstack([np.eye(3), -np.eye(3)]), [1, 1, 1, 0, 0, 0]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_points_and_costs_and_the_function_agree(adversary):
    stack = (X.T[:, :, None] - Y.T[:, None, :]) ** 2
    found = [
        frot.solve(X, Y, adversary=adversary),
        frot.solve_costs(stack, adversary=adversary),
        frot.cutting_set(stack, adversary=adversary),
    ]
    assert found[0].solver.startswith("CuttingSet")
    assert max(one.lower for one in found) <= min(one.upper for one in found)
    assert all(one.gap <= 1e-8 for one in found)


def test_negative_weights_and_costs():
    signed = C - 0.5
    box = frot.Box([-1.0, -0.5, 0.0], [0.5, 1.0, 1.0])
    corners = np.array(np.meshgrid(*zip(box.low, box.high, strict=True))).reshape(3, -1).T
    truth = frot.solve_costs(np.tensordot(corners, signed, 1), tol=1e-7)
    res = frot.solve_costs(signed, adversary=box, tol=1e-7)
    assert max(res.lower, truth.lower) <= min(res.upper, truth.upper)
    with pytest.warns(frot.ConvergenceWarning):
        hurried = frot.solve_costs(signed, adversary=box, time_limit=1e-9)
    assert hurried.lower <= truth.value <= hurried.upper


def test_points_without_weight_come_back():
    a = np.array([0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0])
    res = frot.solve_costs(C, a, adversary=Leaning(0.0))
    small = frot.solve_costs(C[:, 1:3], adversary=Leaning(0.0))
    assert res.value == pytest.approx(small.value, rel=1e-9)
    assert res.plan.shape == (7, 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "exact"}, "Exact does not take Leaning"),
        ({"solver": frot.FrankWolfe()}, "FrankWolfe does not take Leaning"),
        ({"solver": "linear_program"}, "LinearProgram does not take Leaning"),
        ({"solver": "entropic", "eps": 0.1}, "Entropic does not take Leaning"),
        ({"eps": 0.1}, "CuttingSet solves eta = 0 and eps = 0"),
        ({"eta": 0.1}, "eta, prior: are for"),
        ({"adversary": frot.Box([0.0], [1.0])}, "holds weights of 1 groups"),
        ({"adversary": frot.Box}, "has no best"),
        ({"memory_budget": 100.0}, "all 3 x 12 x 15 costs have to be kept"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(options, message):
    with pytest.raises(frot.InputError, match=message):
        frot.solve(X, Y, **{"adversary": Leaning(0.0), **options})


def test_infinite_costs_are_refused():
    dear = C.copy()
    dear[:, 0, 0] = np.inf
    with pytest.raises(frot.InputError, match="infinite costs"):
        frot.solve_costs(dear, adversary=Leaning(0.0))


def test_the_old_name_works_and_says_so():
    with pytest.warns(DeprecationWarning, match="adversary="):
        old = frot.cutting_set(C, uncertainty=frot.CappedSimplex(2))
    assert old.value == frot.cutting_set(C, adversary=frot.CappedSimplex(2)).value
    with pytest.raises(frot.InputError, match="old name"):
        frot.cutting_set(C, adversary=frot.Simplex(), uncertainty=frot.Simplex())

"""What points of an ascent have to be before they are proven."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from frot import Simplex
from frot.costs.stack import Stack
from frot.solvers.entropic.ascent import Aim, Ascent
from frot.solvers.entropic.certificate import certify
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.point import Point, regrets


def engine(eta: float, zeros: int = 0) -> DenseEngine:
    rng = np.random.default_rng(0)
    costs: Any = Stack(rng.random((1, 3, 12, 10)))
    a, b = np.ones((1, 12)), np.full((1, 10), 0.1)
    a[:, :zeros] = 0.0
    a /= a.sum()
    problem = EntropicProblem.of(costs.home, a, b, Simplex(eta), 0.05, costs.product(a, b))
    return DenseEngine(costs, problem)


@pytest.mark.parametrize("eta", [0.0, 0.1])
def test_regrets_fall_to_nothing_and_are_never_negative(eta):
    made, seen = engine(eta), []

    def note(point: Point) -> bool:
        seen.append(float(regrets(made.problem, point)[0]))
        return False

    Ascent(made, np.array([[0.8, 0.1, 0.1]]), tol=1e-12).climb(note, limit=60)
    assert seen[0] > 1e-3
    assert min(seen) > -1e-14
    assert seen[-1] < 1e-12


@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_near_points_have_near_plans(tol):
    made = engine(0.1)
    first = np.array([[0.8, 0.1, 0.1]])
    exact = Ascent(made, first, tol=1e-12).climb(lambda point: False, limit=60)
    aim = Aim(1e-14, tol)
    ascent = Ascent(made, first, tol=aim.sweeps)
    point = ascent.climb(lambda point: bool(aim.near(made.problem, point)[0]), limit=60)
    assert aim.near(made.problem, point)[0]
    assert np.abs(point.plan - exact.plan).sum() <= tol
    proof = certify(made, point.alpha, point.g)
    assert float(proof.upper[0] - proof.lower[0]) <= aim.proven * float(proof.upper[0])
    # A gap of tol alone is found sooner, and says less.
    assert float(proof.upper[0] - proof.lower[0]) > 1e-14


def test_tighter_aims_sweep_closer():
    aim = Aim(1e-6, 1e-2)
    assert aim.tighter().sweeps < aim.sweeps
    assert aim.tighter().proven == aim.proven == 1e-2
    assert Aim(1e-6).sweeps == Aim(1e-6).proven == 1e-6


def test_rows_without_weight_can_be_proven():
    made = engine(0.1, zeros=3)
    at = made.sweep(np.full((1, 3), 1 / 3), np.zeros((1, 10)), 1e-12)
    proof = certify(made, at.alpha, at.g)
    assert float(at.dual[0]) == pytest.approx(float(proof.lower[0]), rel=1e-9)
    assert np.isfinite(proof.upper).all()

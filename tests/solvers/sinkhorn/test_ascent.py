"""What points of an ascent have to be before they are proven."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from frot import Simplex
from frot.costs.stack import StackGeometry
from frot.solvers.sinkhorn.ascent import Aim, Ascent
from frot.solvers.sinkhorn.certificate import certify
from frot.solvers.sinkhorn.dense import DenseEngine
from frot.solvers.sinkhorn.engine import regrets
from frot.solvers.sinkhorn.terms import BatchTerms


def engine(eta: float, zeros: int = 0) -> DenseEngine:
    rng = np.random.default_rng(0)
    costs: Any = StackGeometry(rng.random((1, 3, 12, 10)))
    a, b = np.ones((1, 12)), np.full((1, 10), 0.1)
    a[:, :zeros] = 0.0
    a /= a.sum()
    terms = BatchTerms.of(costs.home, a, b, Simplex(eta), 0.05, costs.product(a, b))
    return DenseEngine(costs, terms)


@pytest.mark.parametrize("eta", [0.0, 0.1])
def test_regrets_fall_to_nothing_and_are_never_negative(eta):
    made, seen = engine(eta), []
    for count, at in enumerate(Ascent(made, np.array([[0.8, 0.1, 0.1]]), tol=1e-12)):
        seen.append(float(regrets(made.terms, at)[0]))
        if count == 60:
            break
    assert seen[0] > 1e-3
    assert min(seen) > -1e-14
    assert seen[-1] < 1e-12


@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_near_points_have_near_plans(tol):
    made = engine(0.1)
    first = np.array([[0.8, 0.1, 0.1]])
    *_, exact = (at for _, at in zip(range(60), Ascent(made, first, tol=1e-12), strict=False))
    aim = Aim(1e-14, tol)
    at = next(at for at in Ascent(made, first, tol=aim.sweeps) if aim.near(made.terms, at)[0])
    assert np.abs(at.plan - exact.plan).sum() <= tol
    proof = certify(made, at.alpha, at.g)
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

"""Powers of differences, mixed: right to the last places of each entry, wherever points lie."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import frot
from frot.costs._separable import SeparableCosts

RNG = np.random.default_rng(0)
# The third point of X is far away from all others.
X = RNG.normal(size=(5, 3))
X[2] += 1e8
Y = RNG.normal(size=(4, 3))
ALPHA = RNG.dirichlet(np.ones(3))


@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_far_point_costs_the_others_no_digits(p):
    costs = SeparableCosts(X, Y, float(p))
    exact = [
        [
            sum(
                Fraction(w) * abs(Fraction(x) - Fraction(y)) ** p
                for w, x, y in zip(ALPHA, row, col, strict=True)
            )
            for col in Y
        ]
        for row in X
    ]
    off = np.array(
        [
            [float(abs(Fraction(c) - e)) for c, e in zip(row, truth, strict=True)]
            for row, truth in zip(costs.mix(ALPHA), exact, strict=True)
        ]
    )
    known = costs.rounding(ALPHA)
    assert known.absolute == 0.0
    assert (off <= known.relative * np.array(exact, dtype=float)).all()


@pytest.mark.parametrize("groups", ["each", "all"])
def test_a_far_point_of_next_to_no_weight_leaves_the_interval_narrow(groups):
    a = np.array([0.3, 0.3, 1e-13, 0.2, 0.2 - 1e-13])
    points = {"each": (X, Y), "all": (X[:, :1], Y[:, :1])}[groups]
    result = frot.solve(
        *points, a=a, metric="cityblock", p=2.0, groups=groups, eps=frot.relative(1.0),
        solver=frot.Entropic(tol=1e-6),
    )  # fmt: skip
    assert result.status is frot.Status.CONVERGED
    assert result.gap <= 1e-6

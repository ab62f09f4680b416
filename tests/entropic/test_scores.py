"""Blocks of scores are those of the costs, and blocks of plans those of the potentials."""

from __future__ import annotations

import numpy as np
import pytest

from frot import Simplex
from frot._arrays import Home
from frot._entropic import _blocks
from frot._entropic._blocks import row_blocks
from frot._entropic._forming import form, measure
from frot._entropic._geometry import Geometry, PointGeometry, StackGeometry
from frot._entropic._scores import scores_at
from frot._entropic._terms import Terms

RNG = np.random.default_rng(0)
POINTS = PointGeometry(RNG.normal(size=(2, 7, 3)), RNG.normal(size=(2, 5, 3)), RNG.random((4, 3)))
STACK = StackGeometry(POINTS.stack())
ALPHA = RNG.dirichlet(np.ones(4), size=2)
A, B = RNG.dirichlet(np.ones(7), size=2), RNG.dirichlet(np.ones(5), size=2)
TERMS = Terms.of(Home.of(A), A, B, Simplex(), np.array([0.3, 0.7]), 1.0)
MIXED = POINTS.mix(ALPHA)


@pytest.mark.parametrize("geometry", [POINTS, STACK], ids=["points", "stack"])
def test_scores(geometry: Geometry):
    scores = scores_at(geometry, TERMS, ALPHA)
    bias, part = RNG.normal(size=(2, 5)), slice(2, 6)
    found = scores.block(part, bias) - scores.offset(part)[:, :, None]
    expected = bias[:, None, :] - MIXED[:, part] / TERMS.eps[:, :, None]
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("budget", [1, 10**9])
@pytest.mark.parametrize("geometry", [POINTS, STACK], ids=["points", "stack"])
def test_plans(geometry: Geometry, budget: int, monkeypatch):
    monkeypatch.setattr(_blocks, "BLOCK_BYTES_ON_HOST", budget)
    f, g = RNG.normal(size=(2, 7)), RNG.normal(size=(2, 5))
    exponent = (f[:, :, None] + g[:, None, :] - MIXED) / TERMS.eps[:, :, None]
    plan = A[:, :, None] * B[:, None, :] * np.exp(exponent)
    scores = scores_at(geometry, TERMS, ALPHA)
    for part, block in form(scores, TERMS, f, g, row_blocks(geometry)):
        expected = plan[:, part] / A[:, part, None]
        assert block == pytest.approx(expected, rel=1e-11)
    rows, masses, phi = measure(geometry, TERMS, ALPHA, f, g)
    assert A * rows == pytest.approx(plan.sum(axis=2), rel=1e-11)
    assert masses == pytest.approx(plan.sum(axis=1), rel=1e-11)
    assert phi == pytest.approx(np.einsum("bij,blij->bl", plan, STACK.C), rel=1e-10)


def test_blocks_cover_all_rows_once(monkeypatch):
    for budget in (1, 80, 100, 161, 10**9):
        monkeypatch.setattr(_blocks, "BLOCK_BYTES_ON_HOST", budget)
        parts = row_blocks(POINTS)
        assert [row for part in parts for row in range(7)[part]] == list(range(7))
        assert all(part.stop - part.start <= max(1, budget // 40) for part in parts)

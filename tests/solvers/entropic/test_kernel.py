"""Blocks of scores are those of the costs, and blocks of plans those of the potentials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from frot import Simplex
from frot._base.arrays import Home
from frot.costs.points import Points
from frot.costs.protocol import Costs
from frot.costs.stack import Stack
from frot.solvers.entropic import kernel as row_blocks_module
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.kernel import column_potentials, form_rows, row_blocks, scores_at

RNG = np.random.default_rng(0)
POINTS = Points(RNG.normal(size=(2, 7, 3)), RNG.normal(size=(2, 5, 3)), RNG.random((4, 3)))
STACK = Stack(POINTS.stack())
ALPHA = RNG.dirichlet(np.ones(4), size=2)
A, B = RNG.dirichlet(np.ones(7), size=2), RNG.dirichlet(np.ones(5), size=2)
TERMS = EntropicProblem.of(Home.of(A), A, B, Simplex(), np.array([0.3, 0.7]), np.ones((2, 4)))
MIXED = POINTS.mix(ALPHA)


@pytest.mark.parametrize("geometry", [POINTS, STACK], ids=["points", "stack"])
def test_scores(geometry: Costs):
    scores = scores_at(geometry, TERMS, ALPHA)
    bias, part = RNG.normal(size=(2, 5)), slice(2, 6)
    offset = np.broadcast_to(scores.offset(part), (2, 4))
    found = scores.block(part, bias) - offset[:, :, None]
    expected = bias[:, None, :] - MIXED[:, part] / TERMS.eps[:, :, None]
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("budget", [1, 10**9])
@pytest.mark.parametrize("geometry", [POINTS, STACK], ids=["points", "stack"])
class TestPlans:
    g = RNG.normal(size=(2, 5))

    def test_rows_are_softmaxes(self, geometry: Costs, budget: int, monkeypatch):
        monkeypatch.setattr(row_blocks_module, "BLOCK_BYTES_ON_HOST", budget)
        kernel = B[:, None, :] * np.exp((self.g[:, None, :] - MIXED) / TERMS.eps[:, :, None])
        plan = A[:, :, None] * kernel / kernel.sum(axis=2, keepdims=True)
        scores = scores_at(geometry, TERMS, ALPHA)
        right, partials = RNG.random((2, 5)), 0.0
        for part, block, total, f in form_rows(scores, TERMS, self.g, row_blocks(geometry)):
            left = A[:, part] / total
            assert left[:, :, None] * block == pytest.approx(plan[:, part], rel=1e-11)
            assert f == pytest.approx(-TERMS.eps * np.log(kernel.sum(axis=2))[:, part], abs=1e-12)
            partials = partials + scores.partial(part, block, left, right)
        thin = plan * right[:, None, :]
        phi = scores.total(partials, thin.sum(axis=2), thin.sum(axis=1))
        assert phi == pytest.approx(np.einsum("bij,blij->bl", thin, STACK.C), rel=1e-10)

    def test_columns_are_softmins(self, geometry: Costs, budget: int, monkeypatch):
        monkeypatch.setattr(row_blocks_module, "BLOCK_BYTES_ON_HOST", budget)
        f = RNG.normal(size=(2, 7))
        expected = logsumexp(
            (f[:, :, None] - MIXED) / TERMS.eps[:, :, None], b=A[:, :, None], axis=1
        )
        found = column_potentials(scores_at(geometry, TERMS, ALPHA), TERMS, f, row_blocks(geometry))
        assert found == pytest.approx(-TERMS.eps * expected, abs=1e-12)


def test_rows_without_weight_have_no_say_in_the_columns(monkeypatch):
    """Not even where a whole block of them comes first."""
    monkeypatch.setattr(row_blocks_module, "BLOCK_BYTES_ON_HOST", 1)
    a = np.where(np.arange(7) < 2, 0.0, A)
    problem = EntropicProblem.of(
        Home.of(A), a / a.sum(axis=1, keepdims=True), B, Simplex(), 1e-4, np.ones((2, 4))
    )
    f = RNG.normal(size=(2, 7)) - 1.0
    found = column_potentials(scores_at(STACK, problem, ALPHA), problem, f, row_blocks(STACK))
    few = replace(problem, a=problem.a[:, 2:])
    part = STACK.take(np.arange(2, 7), np.arange(5))
    alone = column_potentials(scores_at(part, few, ALPHA), few, f[:, 2:], row_blocks(part))
    assert np.isfinite(found).all()
    assert found == pytest.approx(alone, rel=1e-12)


def test_blocks_cover_all_rows_once(monkeypatch):
    for budget in (1, 80, 100, 161, 10**9):
        monkeypatch.setattr(row_blocks_module, "BLOCK_BYTES_ON_HOST", budget)
        parts = row_blocks(POINTS)
        assert [row for part in parts for row in range(7)[part]] == list(range(7))
        assert all(part.stop - part.start <= max(1, budget // 80) for part in parts)

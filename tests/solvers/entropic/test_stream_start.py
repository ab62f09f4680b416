"""A start from a sample: near the answer, the same every time, and not fooled by weights."""

from __future__ import annotations

import numpy as np
import pytest

from frot import Simplex
from frot._base.arrays import Home
from frot.costs import Stack
from frot.costs.points import Points
from frot.costs.protocol import Batch
from frot.solvers.entropic import stream
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.stream import StreamEngine

RNG = np.random.default_rng(0)
POINTS = Points(RNG.normal(size=(1, 120, 3)), RNG.normal(size=(1, 90, 3)) + 0.5)
STACK = Batch((Stack(POINTS.stack()[0]),))
A, B = np.full((1, 120), 1 / 120), np.full((1, 90), 1 / 90)
TERMS = EntropicProblem.of(Home.of(A), A, B, Simplex(0.1), 0.5, np.ones((1, 3)))
ALPHA = np.array([[0.2, 0.3, 0.5]])


@pytest.mark.parametrize("geometry", [POINTS, STACK], ids=["points", "stack"])
@pytest.mark.parametrize("size", [40, 1000])
def test_the_potential_is_nearly_right(geometry, size, monkeypatch):
    monkeypatch.setattr(stream, "SAMPLE_ON_HOST", size)
    engine = DenseEngine(geometry, TERMS)
    from_nothing = engine.sweep(ALPHA, np.zeros((1, 90)), np.inf)
    started = engine.sweep(ALPHA, StreamEngine(geometry, TERMS).sampled_start(ALPHA), np.inf)
    # With all points in the sample it is right; with a third of them it is a good start.
    assert started.error[0] <= (0.02 if size == 1000 else 0.5 * from_nothing.error[0])


@pytest.mark.parametrize("geometry", [POINTS, STACK], ids=["points", "stack"])
def test_weights_come_too(geometry, monkeypatch):
    monkeypatch.setattr(stream, "SAMPLE_ON_HOST", 60)
    alpha, g = StreamEngine(geometry, TERMS).first_weights(ALPHA)
    again, _ = StreamEngine(geometry, TERMS).first_weights(ALPHA)
    assert np.array_equal(alpha, again)
    assert alpha.sum() == pytest.approx(1.0)
    assert g.shape == (1, 90)
    assert np.isfinite(g).all()


def test_points_without_weight_are_not_drawn():
    weights = np.zeros((1, 50))
    weights[0, [3, 17, 40]] = [0.98, 0.01, 0.01]
    assert set(stream._sample(50, 10, weights)) <= {3, 17, 40}
    assert 3 in stream._sample(50, 10, weights)
    assert len(stream._sample(50, 10, np.full((1, 50), 0.02))) == 10

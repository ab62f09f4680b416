"""Methods that live beside the package, on small maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import frot
from _match_methods import BestLayer, MaxMin, Normalised, SubspaceRobust, directions
from frot.correspondence.methods import match_cells
from tests.correspondence.layers import plain_stack
from tests.correspondence.test_methods import CHANNELS, METHODS, l1, pair, setting, sinkhorn


def matched(method) -> Any:
    return match_cells(setting(method=method))


def test_one_layer_is_plain_transport():
    given = setting()
    C = plain_stack(given.layers.source, given.layers.target)
    best = matched(BestLayer())
    assert best.alpha.tolist() == [0, 1, 0, 0]
    assert l1(best.plan, sinkhorn(C[1], given.a, given.b, 0.1)) < 5e-3

    # Layer by layer, the costliest optimum, its entropy included.
    def optimum(C):
        return frot.solve_costs(C[None], given.a, given.b, eps=0.1).value

    worst = matched(MaxMin())
    assert worst.alpha.argmax() == np.argmax([optimum(C) for C in C])
    assert worst.phi == pytest.approx((C * np.asarray(worst.plan)).sum(axis=(1, 2)), abs=1e-4)
    # The adversary's entropy is at least zero.
    assert worst.result.lower <= METHODS["frot"](setting(prior="uniform")).result.upper


def test_srw_in_all_directions_is_the_sum_of_the_layers():
    every = matched(SubspaceRobust(rank=10_000, eps=0.4))
    layers = pair()
    X, Y = layers.vectors()
    assert X.shape[1] == sum(CHANNELS)
    cost = ((X[:, None] - Y[None]) ** 2).sum(axis=2)
    given = setting()
    assert l1(every.plan, sinkhorn(cost, given.a, given.b, 0.4)) < 5e-3


def test_srw_finds_the_same_directions_from_either_square():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 60)) * np.geomspace(3, 0.1, 60), rng.normal(size=(25, 60))
    plan = rng.random((30, 25))
    plan /= plan.sum()
    apart = X[:, None] - Y[None]
    moments = np.einsum("ij,ijk,ijl->kl", plan, apart, apart)
    expected = np.linalg.eigh(moments)[1][:, -4:]
    for side in (X, np.hstack([X, np.zeros((30, 40))])):
        other = Y if side is X else np.hstack([Y, np.zeros((25, 40))])
        found = directions(side, other, plan, 4)[:60]
        assert found @ found.T == pytest.approx(expected @ expected.T, abs=1e-6)


@pytest.mark.parametrize("normalise", ["mean", "regret"])
def test_costs_may_be_normalised(normalise):
    found = matched(Normalised(normalise))
    given = setting()
    C = plain_stack(given.layers.source, given.layers.target)
    core = frot.solve_costs(C, given.a, given.b, eta=0.3, eps=0.1, normalise=normalise)
    assert found.result.lower <= core.upper
    assert core.lower <= found.result.upper

"""Divergences under many labellings: those of `frot.solve`, each labelling by itself."""

from __future__ import annotations

import numpy as np
import pytest

import frot
from frot.solvers.entropic.relabelled import PoolPotentials


def pool(seed: int, count: int = 30, tails: float = np.inf) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count, 2)) if tails == np.inf else rng.standard_t(tails, (count, 2))
    return ((points[:, None] - points) ** 2).sum(axis=2)


def labellings(count: int, part: int, number: int = 6) -> np.ndarray:
    rng, inside = np.random.default_rng(1), np.zeros((count, number), dtype=bool)
    for column in inside.T:
        column[rng.permutation(count)[:part]] = True
    return inside


def divergence(cost: np.ndarray, inside: np.ndarray, eps: float) -> tuple[float, float]:
    """Return the interval of the divergence, one problem at a time."""

    def between(rows, cols):
        return frot.solve_costs(cost[np.ix_(rows, cols)][None], eps=eps, tol=1e-9)

    cross, first, second = (
        between(*parts) for parts in ((inside, ~inside), (inside, inside), (~inside, ~inside))
    )
    low = cross.lower - 0.5 * (first.upper + second.upper)
    return low, cross.upper - 0.5 * (first.lower + second.lower)


@pytest.mark.parametrize("part", [15, 8])
@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_many_sweeps_end_at_the_divergence(part, eps):
    cost = pool(0)
    inside = labellings(len(cost), part)
    found = PoolPotentials.of(cost, eps).divergences(cost, inside, 400)
    for column, value in zip(inside.T, found, strict=True):
        low, high = divergence(cost, column, eps)
        assert low - 1e-7 <= value <= high + 1e-7


@pytest.mark.parametrize("tails", [np.inf, 3.0])
def test_eight_sweeps_order_labellings_as_many_do(tails):
    cost = pool(2, 60, tails)
    base = PoolPotentials.of(cost, 0.2 * cost.mean())
    inside = labellings(60, 30, 100)
    few, many = (base.divergences(cost, inside, sweeps) for sweeps in (8, 300))
    assert np.corrcoef(few, many)[0, 1] > 0.99


def test_a_labelling_is_the_same_beside_others():
    cost = pool(3)
    base, inside = PoolPotentials.of(cost, 0.5), labellings(30, 12)
    together = base.divergences(cost, inside, 8)
    alone = [base.divergences(cost, column[:, None], 8)[0] for column in inside.T]
    assert together == pytest.approx(alone, abs=1e-12)


def test_points_too_far_for_a_kernel_give_numbers():
    cost = pool(4)
    # Two points near each other that a kernel of double precision cannot tell from infinity.
    cost[:2, 2:] += 1e6
    cost[2:, :2] += 1e6
    found = PoolPotentials.of(cost, 0.5).divergences(cost, labellings(30, 15, 50), 20)
    assert np.isfinite(found).all()

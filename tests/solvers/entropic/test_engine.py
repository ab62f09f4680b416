"""Momentum: the rate that errors tell, when to look at them, and retreat where they grow."""

from __future__ import annotations

import numpy as np
import pytest

from frot.solvers.entropic.engine import Momentum


def contraction(rates: np.ndarray, momentum: Momentum, steps: int) -> float:
    """What a step takes off the error of a linear iteration with these eigenvalues."""
    g = last = np.ones(len(rates))
    sizes = []
    for _ in range(steps):
        g, last = momentum.ahead(g, (rates - 1.0) * g, last), g
        sizes.append(float(np.abs(g).max()))
    return (sizes[-1] / sizes[steps // 2]) ** (1.0 / (steps - 1 - steps // 2))


def test_errors_contract_by_q():
    rates = np.linspace(0.0, 0.96, 30)
    momentum = Momentum()
    momentum.begin(1.0, 0)
    momentum.update(0.96**4, 4)
    assert momentum.q == pytest.approx((1.0 - 0.2) / (1.0 + 0.2))
    # A double root costs a little more than its size.
    assert contraction(rates, momentum, 200) == pytest.approx(momentum.q, abs=0.01)


def test_what_is_seen_under_momentum_tells_the_same_rate():
    # Of the largest eigenvalue, 0.99, when q is too small for it.
    momentum = Momentum(q=0.5)
    seen = contraction(np.array([0.99]), momentum, 400)
    momentum.begin(1.0, 0)
    momentum.update(seen**4, 4)
    assert momentum.q == pytest.approx((1.0 - 0.1) / (1.0 + 0.1), rel=1e-3)


def test_one_problem_is_looked_at_when_its_error_should_be_small_enough():
    momentum = Momentum()
    assert momentum.sweeps_ahead(1.0, 0, 0.01) == 1
    # Halved a sweep, 0.5 is a hundredth and less after 6 more; but q is chosen before that.
    assert momentum.sweeps_ahead(0.5, 1, 0.01) == 3
    assert momentum.sweeps_ahead(0.1, 2, 0.01) == 2
    # Nothing is known of errors that grow, or are no numbers.
    for error in (0.2, np.inf, np.nan, 0.0):
        assert momentum.sweeps_ahead(error, 3, 0.01) == 1
        momentum.update(error, 4)
    assert momentum.q == 0.0


def test_momentum_retreats_when_errors_grow_and_then_stays_below():
    momentum = Momentum(np, np.ones(1))
    seen = []
    for sweep in range(0, 2000, 10):
        # Errors fall slowly below q = 0.5 and rise above it.
        error = 0.98**sweep if momentum.q[0] < 0.5 else 1.0 + sweep
        momentum.update(np.array([error]), sweep)
        seen.append(float(momentum.q[0]))
    assert max(seen) > 0.5
    assert max(seen[-50:]) < 0.5
    assert seen[-1] > 0.2

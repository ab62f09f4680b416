"""The interior point's linear algebra: one matrix, whichever way it is filled."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import frot
from frot.solvers.exact import interior


def clouds(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 6)), rng.normal(size=(m, 6)) + 0.2


@pytest.mark.parametrize("options", [{}, {"eta": 0.3}, {"tau": 2.0}])
def test_few_entries_and_all_of_them_make_the_same_matrix(options, monkeypatch):
    X, Y = clouds(70, 60)
    answers = []
    for most in (10**6, 0):
        monkeypatch.setattr(interior.Interior, "dense_up_to", most)
        answers.append(frot.solve(X, Y, [2, 2, 2], tol=1e-8, **options))
    assert answers[0].status is answers[1].status is frot.Status.CONVERGED
    assert answers[0].iterations == answers[1].iterations
    assert answers[0].value == pytest.approx(answers[1].value, rel=1e-9)


def test_a_step_needs_one_matrix_of_the_columns():
    # Memory that is new to each step took a third of its time.
    n, groups = 700, 3
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(n), 3)
    cols = np.sort((np.arange(n)[:, None] + np.array([0, 1, 9])) % n, axis=1).ravel()
    uniform, weights, count = np.full(n, 1.0 / n), np.full(groups, 1.0 / groups), len(rows)
    state = interior.Interior(
        uniform, uniform, rows, cols, rng.random((groups, count)), 0.0, np.zeros(groups),
        x=np.full(count, 1.0 / count), z=np.ones(count), alpha=weights, s=weights,
        f=np.zeros(n), g=np.zeros(n), t=1.0,
    )  # fmt: skip
    assert state.step()
    before = state.mu
    tracemalloc.start()
    try:
        assert state.step()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert state.mu < before
    assert peak <= 1.5 * 8 * n * n

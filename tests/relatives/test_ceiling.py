"""The bound on the largest eigenvalues holds whatever vectors it is given."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frot import Plan
from frot.relatives._displacement import Displacements, ceiling
from tests.strategies import seeds


def spread(seed: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matrix of eigenvalues with ties, and its eigenvectors."""
    draw = np.random.default_rng(seed)
    values = np.sort(draw.integers(0, 5, size) + draw.choice([0.0, 1e-3], size))
    vectors = np.linalg.qr(draw.normal(size=(size, size)))[0]
    return (vectors * values) @ vectors.T, values, vectors


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from([0.0, 1e-6, 1e-2, 1.0]), st.sampled_from([0.0, 1e-8, 1e-3, 1.0]))
def test_no_noise_in_the_vectors_and_no_missed_one_breaks_the_bound(seed, noise, room):
    matrix, values, vectors = spread(seed, 12)
    draw = np.random.default_rng(seed + 1)
    k = int(draw.integers(1, 6))
    # Some of the leading ones are left out, as Lanczos may.
    kept = np.sort(draw.choice(12, 7, replace=False))
    rough = vectors[:, kept] + noise * draw.normal(size=(12, 7))
    found = ceiling(matrix.copy, values[kept], rough, k, room)
    assert found >= values[-k:].sum() - 1e-12


def test_good_vectors_are_proven_within_the_room_and_without_eigenvalues(monkeypatch):
    from frot.relatives import _displacement as _ceiling

    matrix, values, vectors = spread(3, 40)
    monkeypatch.setattr(_ceiling, "eigh", None)
    calls = []

    def half() -> np.ndarray:
        calls.append(1)
        # Above the diagonal nothing may be read.
        return np.tril(matrix) + np.triu(np.full((40, 40), np.nan), 1)

    found = ceiling(half, values[-10:], vectors[:, -10:], 4, 0.01)
    top = values[-4:].sum()
    assert top <= found <= top + 0.01 * (1.0 + 1e-9)
    assert len(calls) == 1


def test_a_plan_is_judged_by_half_of_its_matrix():
    draw = np.random.default_rng(0)
    X, Y = draw.normal(size=(2, 30, 600))
    plan = Plan(draw.dirichlet(np.ones(900)).reshape(30, 30))
    at = Displacements(X, Y, plan.sum(axis=1), plan.sum(axis=0))
    values, vectors, _ = at.top(plan, 10)
    bound = at.proven(plan, values, vectors, 5, 1e-6)
    assert bound == pytest.approx(values[-5:].sum(), rel=1e-6)
    assert bound >= values[-5:].sum()

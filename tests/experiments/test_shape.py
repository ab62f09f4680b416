"""The shape experiment: settings are what they say, and its tables and claims are there."""

from __future__ import annotations

import numpy as np
import pytest

import shape
from shape import EXPERIMENT, LEVELS, POWERS, TESTS, Alternative, Setting, power, wasserstein_p


def test_settings_differ_in_nothing_but_what_they_say(monkeypatch):
    monkeypatch.setattr(shape, "FEATURES", 4)
    X, y, batch = Setting("", (4000, 6000), "skewed", shift=2.0).draw(0)
    assert batch is None
    np.testing.assert_allclose(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0), 2.0, atol=0.1)
    np.testing.assert_allclose(X[y == 1].std(axis=0), X[y == 0].std(axis=0), rtol=0.1)
    _, _, batch = Setting("", batches=3).draw(0)
    assert np.bincount(np.asarray(batch)).tolist() == [40, 40, 40]
    _, first = Alternative("").draw(1)
    draws = np.stack([Alternative("").draw(seed)[0] for seed in range(200)])
    assert draws[:, first].mean() == pytest.approx(0.0, abs=0.03)
    assert draws[:, first].std() == pytest.approx(1.0, rel=0.03)


def test_a_hidden_subgroup_is_found_by_the_form(monkeypatch):
    monkeypatch.setattr(shape, "FEATURES", 20)
    monkeypatch.setattr(shape, "PERMUTATIONS", 99)
    found = power(0, (POWERS[0], 0))
    assert set(found) == set(TESTS)
    assert found["form"] > max(found["KS"], found["Levene"], found["spread"])


def test_distances_beyond_the_shift_are_tested_by_permutations(monkeypatch):
    monkeypatch.setattr(shape, "PERMUTATIONS", 99)
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[:30, 1] *= 4.0
    p = wasserstein_p(X, np.arange(60) < 30, 0)
    assert p[1] == 0.01 < p[0]


def test_the_experiment_has_its_tables_and_claims(tmp_path, monkeypatch):
    monkeypatch.setattr(shape, "FEATURES", 6)
    monkeypatch.setattr(shape, "PERMUTATIONS", 19)
    run = EXPERIMENT(tables=2, halves=0, workers=1, out=tmp_path)
    assert [row[0] for row in run.tables[0].rows] == [one.name for one in LEVELS]
    assert [row[0] for row in run.tables[1].rows] == [one.name for one in POWERS]
    assert [len(claim.checks) for claim in run.claims] == [8, 8, 3]

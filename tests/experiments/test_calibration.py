"""Tests of simulated tables err as often as they say; figures are means with binomial errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calibration
from calibration import EXPERIMENT, SETTINGS, TESTS, Setting, measure

TABLES = 40
BY_NAME = {one.name: one for one in SETTINGS}
POOLED, OWN = "permutations, pooled null", "permutations, Benjamini-Hochberg"
ALL = "permutations, max-T"


@pytest.fixture(scope="module")
def measured():
    """Measure a setting once, on fewer tables than the experiment has: (tables,) by number."""
    known = {}

    def of(name):
        if name not in known:
            draws = [measure(0, (BY_NAME[name], index)) for index in range(TABLES)]
            known[name] = {key: np.array([draw[key] for draw in draws]) for key in draws[0]}
        return known[name]

    return of


def above(share):
    """Three standard errors above a share of tables, as if one table were all or nothing."""
    return share + 3.0 * np.sqrt(share * (1.0 - share) / TABLES)


def error(values):
    return values.std(ddof=1) / TABLES**0.5


@pytest.mark.parametrize("name", ["nothing differs", "correlated, nothing differs"])
def test_where_nothing_differs_something_is_found_as_rarely_as_said(measured, name):
    by = measured(name)
    assert by["permutations"].mean() == pytest.approx(
        0.05, abs=3.0 * error(by["permutations"]) + 0.002
    )
    assert by[f"FDR, {POOLED}"].mean() <= above(0.1)
    assert by[f"FDR, {ALL}"].mean() <= above(0.1)
    assert f"power, {POOLED}" not in by


@pytest.mark.parametrize("name", ["20 of 500 differ", "correlated, 20 of 500 differ"])
def test_few_permutations_find_what_differs_with_a_pooled_null(measured, name):
    by = measured(name)
    assert by[f"power, {POOLED}"].mean() > 0.88
    assert by[f"power, {OWN}"].mean() < 0.05
    rate = by[f"FDR, {POOLED}"]
    assert rate.mean() <= 0.1 + 3.0 * error(rate)


def test_unequal_variances_inflate_the_pooled_variance_and_not_welchs(measured):
    by = measured("50 against 10 of 3 times the spread, nothing differs")
    assert by["permutations"].mean() == pytest.approx(0.05, abs=0.01)
    assert by["moderated"].mean() > 0.1
    by = measured("50 against 10 of a third of the spread, 20 differ")
    assert by["permutations"].mean() == pytest.approx(0.05, abs=0.01)
    assert by["moderated"].mean() < 0.02
    rate = by[f"FDR, {POOLED}"]
    assert rate.mean() <= 0.1 + 3.0 * error(rate)


@pytest.mark.parametrize("name", ["three batches, 20 of 500 differ", "20 pairs, 20 of 500 differ"])
def test_batches_and_pairs_keep_the_level_and_the_power(measured, name):
    by = measured(name)
    for test in TESTS:
        assert by[test].mean() == pytest.approx(0.05, abs=3.0 * error(by[test]))
    assert by[f"power, {POOLED}"].mean() > 0.7
    assert by["power, moderated t, Benjamini-Hochberg"].mean() > 0.7


def test_the_setting_is_what_it_says():
    one = Setting("", (400, 300), true=2, gap=3.0, shared=0.5, ratio=2.0, features=6)
    X, y, block = one.draw(0)
    assert block is None
    assert np.bincount(y).tolist() == [400, 300]
    means = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    np.testing.assert_allclose(means, [-3.0, 3.0, 0.0, 0.0, 0.0, 0.0], atol=0.4)
    spread = X[y == 1].std(axis=0) / X[y == 0].std(axis=0)
    np.testing.assert_allclose(spread, 2.0, rtol=0.15)
    assert np.corrcoef(X[y == 0].T)[0, 5] == pytest.approx(0.5, abs=0.12)
    _, y, block = Setting("", (20, 20), blocks="pairs").draw(0)
    assert all(sorted(y[block == one]) == [0, 1] for one in range(20))
    _, y, block = Setting("", (3000, 3000), blocks="batches").draw(0)
    assert (y[block == 0] == 0).mean() > 0.65 > 0.35 > (y[block == 2] == 0).mean()


def test_the_experiment_has_a_row_a_setting_and_its_claims(tmp_path, monkeypatch):
    small = tuple(replace(one, true=one.true and 2, features=10) for one in SETTINGS)
    monkeypatch.setattr(calibration, "SETTINGS", small)
    run = EXPERIMENT(tables=2, workers=1, out=tmp_path)
    assert [row[0] for row in run.tables[0].rows] == [one.name for one in SETTINGS]
    # No power where nothing differs.
    heads = run.tables[0].header
    assert run.tables[0].rows[0][heads.index("power, permutations, max-T")] == ""
    assert [len(claim.checks) for claim in run.claims] == [11, 14, 4, 4, 11, 14, 2]
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"calibration.png", "calibration.json", "calibration.md"}


@pytest.mark.parametrize(
    ("mean", "inside"), [((0.05, 0.0), True), ((0.07, 0.004), False), ((0.07, 0.006), True)]
)
def test_claims_allow_two_standard_errors(mean, inside):
    assert calibration.within(mean, 0.04, 0.06) is inside

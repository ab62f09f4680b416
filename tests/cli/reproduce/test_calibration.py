"""Tests of simulated tables err as often as they say; figures are means with binomial errors."""

import numpy as np
import pytest

from frot.cli.reproduce.calibration import SETTINGS, Setting, calibration, measure, summarise

TABLES = 40
BY_NAME = {one.name: one for one in SETTINGS}
POOLED, OWN, ALL = "t, pooled null", "t, Benjamini-Hochberg", "t, max-T"


@pytest.fixture(scope="module")
def found():
    """Measure a setting once, on fewer tables than the experiment has."""
    known = {}

    def of(name):
        if name not in known:
            known[name] = summarise([measure(BY_NAME[name], index, 0) for index in range(TABLES)])
        return known[name]

    return of


def above(share):
    """Three standard errors above a share of tables, as if one table were all or nothing."""
    return share + 3.0 * np.sqrt(share * (1.0 - share) / TABLES)


@pytest.mark.parametrize("name", ["nothing differs", "correlated, nothing differs"])
def test_where_nothing_differs_something_is_found_as_rarely_as_said(found, name):
    by = found(name)
    assert by["t"][0].mean == pytest.approx(0.05, abs=3.0 * by["t"][0].error + 0.002)
    assert by[POOLED][0].mean <= above(0.1)
    assert by[ALL][0].mean <= above(0.1)


@pytest.mark.parametrize("name", ["20 of 500 differ", "correlated, 20 of 500 differ"])
def test_few_permutations_find_what_differs_with_a_pooled_null(found, name):
    by = found(name)
    assert by[POOLED][1].mean > 0.88
    assert by[OWN][1].mean < 0.05
    assert by[POOLED][0].mean <= 0.1 + 3.0 * by[POOLED][0].error


def test_unequal_variances_inflate_the_shift_and_not_t(found):
    by = found("50 against 10 of 3 times the spread, nothing differs")
    assert by["t"][0].mean == pytest.approx(0.05, abs=0.01)
    assert by["shift"][0].mean > 0.1
    by = found("50 against 10 of a third of the spread, 20 differ")
    assert by["t"][0].mean == pytest.approx(0.05, abs=0.01)
    assert by["shift"][0].mean < 0.02
    assert by[POOLED][0].mean <= 0.1 + 3.0 * by[POOLED][0].error


def test_the_setting_is_what_it_says():
    X, y = Setting("", (400, 300), true=2, gap=3.0, shared=0.5, ratio=2.0, features=6).draw(0)
    assert np.bincount(y).tolist() == [400, 300]
    means = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    np.testing.assert_allclose(means, [-3.0, 3.0, 0.0, 0.0, 0.0, 0.0], atol=0.4)
    spread = X[y == 1].std(axis=0) / X[y == 0].std(axis=0)
    np.testing.assert_allclose(spread, 2.0, rtol=0.15)
    assert np.corrcoef(X[y == 0].T)[0, 5] == pytest.approx(0.5, abs=0.12)


def test_a_stopped_experiment_goes_on_and_is_written(tmp_path, monkeypatch):
    small = tuple(Setting(one.name, true=one.true and 2, features=10) for one in SETTINGS)
    monkeypatch.setattr("frot.cli.reproduce.calibration.SETTINGS", small)
    first = calibration(2, folder=tmp_path / "run")
    again = calibration(3, folder=tmp_path / "run")
    assert first.numbers["tables"] == 2
    assert len(again.tables[0].rows) == len(SETTINGS)
    assert again.tables[0].rows[0][4] == ""  # no power where nothing differs
    names = {path.name for path in again.write(tmp_path)}
    assert names == {"calibration.png", "calibration.json", "calibration.md"}
    assert [verdict.kind for verdict in again.verdicts] == ["The"] * 3

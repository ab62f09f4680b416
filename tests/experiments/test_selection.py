"""The paper's feature selection: rankings, the protocol of its splits, and the verdicts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.feature_selection import f_classif

import frot
import selection
from _baselines import (
    KS,
    RANKINGS,
    TEST_SHARE,
    accuracies,
    frot_paper,
    frot_stack,
    linear,
    mmd,
    mrmr,
    split,
    wasserstein,
    wasserstein_call,
)
from _runner import Run
from frot.datasets import Expression, available, load_expression
from selection import EXPERIMENT, claim_accuracies, claim_times

EVERY = [ranking for _, ranking in RANKINGS.values()]


def table(n=40, d=60, shift=2.0, seed=0):
    """A class of a quarter of the samples, and another one that is higher in five features."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), np.repeat(["a", "b"], [n // 4, n - n // 4])
    X[y == "b", :5] += shift
    return X, y


def standardised(n=40, d=60):
    X, y = table(n, d, shift=4.0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def expression(name):
    X, y = table()
    names = tuple(f"x{column}" for column in range(X.shape[1]))
    return Expression(X, y, names, name, "https://example.org", "", "", "")


class TestRankings:
    @pytest.mark.parametrize("key", RANKINGS)
    def test_what_differs_comes_first_and_a_constant_feature_last(self, key):
        X, y = standardised()
        X[:, 7] = 0.0
        order = np.argsort(-RANKINGS[key][1](X, y), kind="stable")
        # mRMR takes one of those that are much the same, and then others.
        first = 1 if key == "mrmr" else 5
        assert set(order[:first].tolist()) <= set(range(5))
        assert order[-1] == 7

    def test_the_algorithm_as_written_is_frots(self):
        X, y = standardised(d=12)
        np.testing.assert_allclose(frot_stack(X, y), frot_paper(X, y), rtol=1e-9)

    @pytest.mark.parametrize("n", [40, 41, 42])
    def test_wasserstein_is_scipys(self, n):
        X, y = standardised(n)
        one, two = X[y == "a"], X[y == "b"]
        expected = [stats.wasserstein_distance(one[:, k], two[:, k]) for k in range(X.shape[1])]
        np.testing.assert_allclose(wasserstein(X, y), expected)
        np.testing.assert_allclose(wasserstein_call(X, y), expected)

    def test_linear_is_pearsons_and_ranks_as_f_classif(self):
        X, y = standardised()
        expected = np.abs([np.corrcoef(column, y == "a")[0, 1] for column in X.T])
        np.testing.assert_allclose(linear(X, y), expected)
        np.testing.assert_array_equal(np.argsort(linear(X, y)), np.argsort(f_classif(X, y)[0]))

    def test_mmd_is_the_double_sum(self):
        X, y = standardised(n=8, d=3)
        sign = np.where(y == "a", 1 / 2, -1 / 6)
        kernel = np.exp(-((X[:, None] - X) ** 2) / 2)
        np.testing.assert_allclose(mmd(X, y), np.einsum("i,j,ijk->k", sign, sign, kernel))

    def test_mrmr_takes_no_twins(self):
        y = np.repeat([0, 1], 40)
        noise = np.random.default_rng(0).normal(size=(4, 80))
        first = y + 0.5 * noise[0]
        X = np.column_stack([first, first + 0.01 * noise[1], y + 0.5 * noise[2], noise[3]])
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        assert set(np.argsort(-linear(X, y))[:2].tolist()) == {0, 1}
        assert np.argsort(-mrmr(X, y)).tolist()[:2] == [0, 2]


class TestProtocol:
    def test_it_is_the_papers(self):
        assert KS == (10, 20, 30, 40, 50)
        assert TEST_SHARE == 0.25
        assert EXPERIMENT.options["splits"][0] == 50

    def test_a_split_is_stratified_and_scaled_on_its_training_part(self):
        train, labels, test, truth = split(*table(), 1, 3)
        assert (len(train), len(test)) == (30, 10)
        assert abs((labels == "a").mean() - (truth == "a").mean()) < 0.1
        np.testing.assert_allclose(train.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(train.std(axis=0), 1.0)
        assert np.abs(test.mean(axis=0)).max() > 0.1

    def test_splits_differ_by_index_and_by_seed(self):
        tests = [split(*table(), *pair)[2] for pair in [(0, 0), (0, 1), (1, 0), (0, 0)]]
        assert not np.array_equal(tests[0], tests[1])
        assert not np.array_equal(tests[0], tests[2])
        np.testing.assert_array_equal(tests[0], tests[3])

    def test_accuracy_is_high_on_what_can_be_told_apart_and_low_on_noise(self):
        for shift, low, high in ((5.0, 0.95, 1.0), (0.0, 0.4, 0.9)):
            rows = [accuracies(*table(shift=shift), 0, i, rankings=[linear]) for i in range(5)]
            assert rows[0].shape == (1, len(KS))
            assert low <= np.mean(rows) <= high


@pytest.fixture
def on_disk(monkeypatch):
    monkeypatch.setattr(selection, "available", lambda root: ("colon", "chowdary", "gravier"))
    monkeypatch.setattr(selection, "load_expression", lambda name, root: expression(name))
    monkeypatch.setattr(selection, "LEAST", 0.0)


@pytest.mark.usefixtures("on_disk")
class TestRuns:
    def test_sets_of_the_paper_and_the_stand_in(self, tmp_path):
        run = EXPERIMENT(splits=2, workers=1, out=tmp_path)
        sets = run.numbers["sets"]
        assert list(sets) == ["colon", "chowdary, for GLI_85"]
        assert sets["chowdary, for GLI_85"]["paper"]["mmd"] == 23.6
        assert sets["colon"]["shared"] >= 0.98
        assert len(run.claims) == 4
        assert run.notes[-1].endswith("asked for: leukemia, prostate_ge, gli_85.")
        accuracy, differences, seconds = run.tables
        assert [row[0] for row in accuracy.rows] == [label for label, _ in RANKINGS.values()]
        assert len(differences.rows) == 2
        assert all(float(cell) > 0.0 for row in seconds.rows[:9] for cell in row[1:])
        assert seconds.rows[-1] == ["FROT, the paper's figure", "0.41", "3.44"]
        assert (tmp_path / "selection.png").read_bytes().startswith(b"\x89PNG")

    def test_sets_that_are_asked_for(self):
        run = EXPERIMENT(splits=1, workers=1, genes=("gravier",))
        assert list(run.numbers["sets"]) == ["gravier"]
        # The paper says nothing about them.
        assert run.claims == []

    def test_the_figure_has_a_panel_a_set_and_a_line_a_ranking(self):
        figure = EXPERIMENT(splits=1, workers=1).pictures[0].figure
        assert [len(axes.lines) for axes in figure.axes] == [len(RANKINGS)] * 2


def test_without_data_it_says_where_it_looked(tmp_path):
    with pytest.raises(frot.InputError, match=r"'colon' is not there: no colon\.mat in") as raised:
        EXPERIMENT(data=tmp_path)
    assert str(tmp_path) in str(raised.value)
    with pytest.raises(frot.InputError, match="'colno' is not a data set"):
        EXPERIMENT(genes=("colno",))


def measured(wasserstein=0.0, linear=0.1, mmd=0.1, **seconds):
    """Accuracies of FROT less those of others, each of which varies by .01 between splits."""
    apart = {"wasserstein": wasserstein, "linear": linear, "mmd": mmd}
    noise = 0.01 * np.random.default_rng(0).choice([-1.0, 1.0], size=(100, 5))
    taken = {"wasserstein": 0.001, "call": 0.1, "mmd": 0.1, "stack": 1.0, "frot_paper": 0.01}
    return {
        "accuracies": {
            "frot_paper": np.full((100, 5), 0.8),
            **{key: 0.8 - mean + noise for key, mean in apart.items()},
        },
        "seconds": taken | seconds,
    }


def verdicts(sets):
    run = Run(EXPERIMENT, EXPERIMENT.complete({}))
    claim_accuracies(run, sets)
    claim_times(run, sets)
    return run.claims


class TestClaims:
    def test_what_the_paper_saw_would_hold(self):
        sets = {
            name: measured(wasserstein=0.001, stack=0.02, mmd=0.1) for name in ("colon", "leukemia")
        }
        for one in sets.values():
            one["seconds"] |= {"wasserstein": 5.0, "call": 5.0, "mmd": 3.0}
        assert {claim.verdict for claim in verdicts(sets)} == {"holds"}

    def test_what_is_measured_does_not(self):
        sets = {"colon": measured(), "leukemia": measured(wasserstein=-0.04, linear=-0.04)}
        made = verdicts(sets)
        assert [claim.verdict for claim in made] == [
            "in part",
            "in part",
            "does not hold",
            "in part",
        ]
        numbers = "; ".join(made[1].checks)
        assert "above linear correlation on 1 of 2 sets and below on 1 (colon +0." in numbers
        assert "Wasserstein, by sorting: 0.001 s" in next(iter(made[2].checks))
        assert "0.1 times as fast" in next(iter(made[2].checks))


@pytest.mark.skipif("colon" not in available(), reason="the data set colon is not there")
class TestColon:
    def test_every_ranking_does_better_than_the_larger_class(self):
        data = load_expression("colon")
        rows = [accuracies(data.X, data.y, 0, i, rankings=EVERY, ks=[30]) for i in range(4)]
        means = np.mean(rows, axis=0)
        assert means.shape == (len(RANKINGS), 1)
        assert means.min() > 40 / 62

    def test_frot_ranks_as_the_algorithm_as_written(self):
        data = load_expression("colon")
        X, y, _, _ = split(data.X, data.y, 0, 0)
        first, second = (set(np.argsort(-f(X, y))[:50]) for f in (frot_paper, frot_stack))
        assert len(first & second) >= 48

import numpy as np
import pytest

import frot
from frot.selection import FROTSelector, stability_selection
from tests.selection.planted import SIGNAL, planted


def test_planted_features_are_selected_always_and_others_by_chance():
    X, y = planted(n=30, m=30, gap=3.0)
    found = stability_selection(X, y, selector=FROTSelector(5), n_pairs=10)
    assert found.n_fits == 20
    assert found.mean_selected == 5.0
    assert found.frequency[list(SIGNAL)].tolist() == [1.0, 1.0, 1.0]
    assert found.frequency.sum() == pytest.approx(5.0)
    assert np.flatnonzero(found.selected(0.9)).tolist() == list(SIGNAL)
    assert found.expected_errors(0.9) == pytest.approx(25 / 40 / 0.8)
    assert found.table["frequency"].is_monotonic_decreasing
    assert repr(found).startswith("Stability selection of 40 features: ")
    assert "of 20 fits or more, 5 in each" in repr(found)


def test_halves_are_complementary_and_stratified(monkeypatch):
    X, y = planted(n=12, m=8)
    X = np.column_stack([X, np.arange(20)])
    seen = []
    real = FROTSelector.fit

    def spy(self, X, y, sample_weight=None):
        seen.append((X[:, -1].astype(int), y))
        return real(self, X, y, sample_weight)

    monkeypatch.setattr(FROTSelector, "fit", spy)
    stability_selection(X, y, selector=FROTSelector(2), n_pairs=2)
    for one, two in (seen[:2], seen[2:]):
        assert not set(one[0]) & set(two[0])
        assert np.bincount(one[1]).tolist() == np.bincount(two[1]).tolist() == [6, 4]
    assert set(seen[0][0]) != set(seen[2][0])


def test_workers_and_resuming_do_not_change_the_answer(tmp_path):
    X, y = planted()
    options = {"selector": FROTSelector(4), "n_pairs": 9}
    whole = stability_selection(X, y, **options)
    path = tmp_path / "run"
    stability_selection(X, y, **{**options, "n_pairs": 3}, checkpoint=path)
    again = stability_selection(X, y, **options, checkpoint=path, n_jobs=2)
    np.testing.assert_array_equal(whole.frequency, again.frequency)
    with pytest.raises(frot.InputError, match="other data or options"):
        stability_selection(X, y, n_pairs=3, checkpoint=path)


def test_groups_and_weights():
    X, y = planted(gap=3.0)
    groups = {"signal": [0, 1, 2], "noise": range(3, 40)}
    found = stability_selection(
        X, y, selector=FROTSelector(1, groups=groups), n_pairs=3, sample_weight=np.ones(40)
    )
    assert found.names == ("signal", "noise")
    assert found.frequency.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("classes", [("a", "b", "c"), (1, 2, 3)])
def test_the_reference_is_the_class_of_that_name(classes):
    # Of the first class both others differ most in feature 0, and of the second in feature 1.
    at = np.repeat([0, 1, 2], 30)
    X = np.random.default_rng(0).normal(size=(90, 6))
    X[:, 0] += np.array([0.0, 8.0, 8.0])[at]
    X[:, 1] += np.array([0.0, -5.0, 5.0])[at]
    for reference, feature in zip(classes, (0, 1), strict=False):
        selector = FROTSelector(1, reference=reference, plan=False)
        found = stability_selection(X, np.array(classes)[at], selector=selector, n_pairs=4)
        assert np.flatnonzero(found.frequency).tolist() == [feature]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n_pairs": 0}, "n_pairs: must be"), ({"random_state": "x"}, "random_state: 'x'")],
)
def test_bad_options_are_refused(options, message):
    X, y = planted()
    with pytest.raises(frot.InputError, match=message):
        stability_selection(X, y, **options)


def test_a_class_too_small_to_halve_is_named():
    X, y = planted(n=20, m=3)
    with pytest.raises(frot.InputError, match="class treated has 3 samples; halves need four"):
        stability_selection(X, y)
    with pytest.raises(frot.InputError, match="threshold: must be"):
        stability_selection(*planted(), n_pairs=1).expected_errors(0.5)

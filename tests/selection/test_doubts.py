"""Tables that probably are not what was meant: each is told, and what is usual is not."""

import warnings

import numpy as np
import pandas
import pytest
from scipy import sparse

import frot
from frot.selection import FROTSelector, pathway_test, permutation_test, read_samples
from tests.selection.planted import planted


def silent(X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return FROTSelector(3, plan=False, **options).fit(X, y)


@pytest.mark.parametrize("others", [["All", "ALL "], ["b  cell", "B Cell"]])
def test_labels_that_differ_by_case_or_blanks_only(others):
    X, y = planted()
    labels = np.where(np.arange(40) < 20, others[0], np.where(np.arange(40) < 30, others[1], "x"))
    with pytest.warns(frot.DataWarning, match="taken for 2 classes though they differ by case"):
        FROTSelector(3, plan=False).fit(X, labels)
    silent(X, np.where(y == y[0], "ALL", "AML"))
    silent(X, np.where(y == y[0], "-1", "1"))


def test_a_sample_that_is_there_twice():
    X, y = planted()
    frame = pandas.DataFrame(X, index=pandas.Index([f"P{i}" for i in range(40)]))
    silent(frame, y)
    twice = frame.rename(index={"P3": "P1"})
    with pytest.warns(frot.DataWarning, match=r"1 sample is named more than once \('P1'\)"):
        FROTSelector(3, plan=False).fit(twice, y)
    frame.iloc[7] = frame.iloc[2]
    with pytest.warns(frot.DataWarning, match=r"row 2 \('P2'\) and row 7 \('P7'\) hold the same"):
        FROTSelector(3, plan=False).fit(frame, y)
    # Whole numbers are alike by chance.
    silent(np.zeros_like(X) + (np.arange(40) % 3)[:, None], y)


def test_intensities_that_are_no_logarithms():
    rng = np.random.default_rng(0)
    level = rng.uniform(4.0, 14.0, size=300)
    logs = level + 0.3 * rng.normal(size=(40, 300))
    y = np.repeat(["a", "b"], 20)
    with pytest.warns(frot.DataWarning, match=r"spread grows with their level.*log2"):
        FROTSelector(3, plan=False).fit(2.0**logs, y)
    background = 2.0**logs - 60.0 + 30.0 * rng.normal(size=logs.shape)
    assert 0.15 < (background < 0.0).mean() < 0.3
    with pytest.warns(frot.DataWarning) as told:
        FROTSelector(3, plan=False).fit(background, y)
    assert "spread grows with their level" in str(told[0].message)
    assert "fold changes are NaN" in str(told[1].message)
    silent(logs, y)
    # Features in different units have spreads of their own.
    silent(rng.normal(size=(40, 300)) * rng.uniform(1.0, 90.0, size=300) + 200.0, y)
    silent((2.0 ** logs[:, :30]), y)


def test_what_a_fit_told_is_not_told_by_its_tests():
    X, y = planted()
    y = np.where(np.arange(40) % 2, "a", "A")
    with pytest.warns(frot.DataWarning, match="differ by case"):
        selector = FROTSelector(3, plan=False).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", frot.DataWarning)
        selector.permutation_test(X, y, n_permutations=99)
    with pytest.warns(frot.DataWarning, match="differ by case"):
        permutation_test(X, y, n_permutations=99)
    with pytest.warns(frot.DataWarning, match="differ by case"):
        pathway_test(X, y, [range(9), range(9, 20)], n_permutations=99)


def test_features_that_nobody_has(tmp_path):
    X, y = planted()
    X[:, [1, 5]] = np.nan
    with pytest.warns(frot.DataWarning, match=r"2 features have no value in any sample \('1', '5'"):
        found = FROTSelector(2, missing="impute", plan=False).fit(X, y)
    assert set(found.ranking_[[1, 5]]) == {39, 40}
    (tmp_path / "a.csv").write_text("arm,u,v,w\na,1.5,,#N/A\nb,2,,3\nb,4,,5\na,3,,NA\n")
    with pytest.warns(frot.DataWarning, match=r"'v'.*no value in any sample; left out"):
        samples = read_samples(tmp_path / "a.csv", "arm")
    assert samples.names == ("u", "w")
    np.testing.assert_array_equal(samples.X[:, 1], [np.nan, 3.0, 5.0, np.nan])


def test_a_label_that_a_spreadsheet_could_not_find(tmp_path):
    (tmp_path / "a.csv").write_text("arm,u\na,1.5\n#N/A,2\nb,4\n")
    with pytest.raises(frot.InputError, match="1 samples, the first in row 2, have no 'arm'"):
        read_samples(tmp_path / "a.csv", "arm")


def test_days_of_a_spreadsheet_among_names(tmp_path):
    (tmp_path / "a.csv").write_text("arm,TP53,44806,MYC\na,1.5,2,3\nb,2,3,4\n")
    with pytest.warns(frot.DataWarning, match=r"named like dates \('44806'\)"):
        read_samples(tmp_path / "a.csv", "arm")
    (tmp_path / "a.csv").write_text("arm,7157,44806,4609\na,1.5,2,3\nb,2,3,4\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_samples(tmp_path / "a.csv", "arm")


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_bad_numbers_are_located(wrong):
    X, y = planted()
    X[3, 2], X[9, 1] = wrong, wrong
    frame = pandas.DataFrame(X, columns=pandas.Index([f"g{i}" for i in range(40)]))
    frame.index = pandas.Index([f"s{i}" for i in range(40)])
    with pytest.raises(
        frot.InputError, match=r"2 of 1,600, the first in row 3 \('s3'\), feature 'g2'"
    ):
        FROTSelector(3).fit(frame, y)
    with pytest.raises(frot.InputError, match=r"2 of 1,600, the first in row 3, feature 2;"):
        FROTSelector(3).fit(sparse.csr_array(X), y)


def test_masked_arrays_are_refused_wherever_they_come_in():
    X, y = planted()
    masked = np.ma.masked_less(np.ones(40), 0.0)
    with pytest.raises(frot.InputError, match=r"^y: is a masked array"):
        FROTSelector(3).fit(X, masked)
    with pytest.raises(frot.InputError, match=r"^X: is a masked array"):
        FROTSelector(3).fit(np.ma.masked_less(X, -2.0), y)
    with pytest.raises(frot.InputError, match=r"^block: is a masked array"):
        permutation_test(X, y, block=masked)


def test_a_name_that_is_nearly_right_is_proposed(tmp_path):
    X, y = planted()
    (tmp_path / "a.csv").write_text("Diagnosis,u\na,1.5\nb,2\n")
    with pytest.raises(frot.InputError, match="it has 'Diagnosis', 'u'; did you mean 'Diagnosis'"):
        read_samples(tmp_path / "a.csv", "diagnosys")
    with pytest.raises(frot.InputError, match=r"did you mean"):
        FROTSelector(3, reference=str(y[0]).upper() + "s").fit(X, y)

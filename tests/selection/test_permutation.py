import numpy as np
import pytest
from scipy import sparse, stats

import frot
from frot.selection import FROTSelector, permutation_test
from tests.selection.planted import SIGNAL, planted

# Few permutations are quick, and said to be few.
pytestmark = pytest.mark.filterwarnings("ignore:n_permutations")


def test_planted_features_are_significant():
    X, y = planted(gap=3.0)
    test = permutation_test(X, y, n_permutations=99)
    assert test.observed.shape == test.p.shape == test.q.shape == test.p_max.shape == (40,)
    assert ((test.p > 0.0) & (test.p <= 1.0)).all()
    assert (test.p_max >= test.p).all()
    assert test.p[list(SIGNAL)].tolist() == [0.01] * 3
    assert (test.p_max[list(SIGNAL)] <= 0.02).all()
    assert (test.q[list(SIGNAL)] <= 0.05).all()


def test_a_feature_that_does_not_differ_is_not_found_besides_others_that_do():
    wrong, least = [], []
    for seed in range(60):
        X, y = planted(gap=3.0, d=13, seed=seed)
        test = permutation_test(X, y, n_permutations=19)
        wrong.append(np.mean(test.p[3:] <= 0.1))
        least.append(test.p_max[3:].min() <= 0.1)
    assert np.mean(wrong) == pytest.approx(0.1, abs=3 * np.sqrt(0.09 / 600))
    assert np.mean(least) <= 0.1 + 2.5 * np.sqrt(0.09 / 60)


def layout(kind, rng):
    """Return labels and blocks: batches in which classes differ in number, or pairs."""
    if kind == "pairs":
        return np.tile([0, 1], 12), np.repeat(np.arange(12), 2)
    batch = np.repeat([0, 1], 14)
    return np.r_[rng.permutation([0] * 10 + [1] * 4), rng.permutation([0] * 4 + [1] * 10)], batch


@pytest.mark.parametrize("kind", ["batches", "pairs"])
def test_p_is_uniform_and_max_t_holds_within_blocks(kind):
    first, least = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        y, block = layout(kind, rng)
        X = rng.normal(size=(len(y), 12)) + rng.normal(size=(len(y), 1))
        X += 3.0 * rng.normal(size=(block.max() + 1, 12))[block]
        test = permutation_test(X, y, n_permutations=19, block=block, random_state=seed)
        first.append(test.p[0])
        least.append(test.p_max.min())
    # Twenty values are possible; a half step makes them uniform on the unit interval.
    assert stats.kstest(np.array(first) - 1 / 40, "uniform").pvalue > 0.01
    assert np.mean(np.array(least) <= 0.1) <= 0.1 + 2.5 * np.sqrt(0.09 / 150)


def test_what_differs_between_blocks_only_is_neither_found_nor_in_the_way():
    rng = np.random.default_rng(0)
    batch, y = np.tile([0, 1], 20), np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 60))
    X[:, :30] += 8.0 * batch[:, None]
    X[np.ix_(y == 1, range(5))] += 2.0
    test = permutation_test(X, y, n_permutations=99, block=batch)
    assert (test.q[:5] <= 0.05).all()
    assert (test.q[5:] <= 0.05).mean() <= 0.05
    free = permutation_test(X, y, n_permutations=99)
    assert (free.q[:5] > 0.05).any()
    # In other numbers of the classes, what differs between batches would be found.
    uneven = np.r_[np.repeat([0, 1], [16, 4]), np.repeat([0, 1], [4, 16])]
    moved = rng.normal(size=(40, 8)) + 3.0 * np.repeat([0, 1], 20)[:, None]
    assert (permutation_test(moved, uneven, n_permutations=99).p < 0.05).all()
    within = permutation_test(moved, uneven, n_permutations=99, block=np.repeat([0, 1], 20))
    assert np.median(within.p) > 0.1


def test_seeds_change_it_and_the_same_seed_does_not():
    X, y = planted(d=12)
    runs = [permutation_test(X, y, n_permutations=49, random_state=seed).p for seed in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()


def test_the_selector_puts_p_and_q_into_its_table_within_its_blocks():
    X, y = planted(gap=3.0)
    batch = np.tile([0, 1], 20)
    selector = FROTSelector(3).fit(X, y, batch)
    before = selector.table_
    test = selector.permutation_test(X, y, n_permutations=49)
    assert test is selector.permutation_
    np.testing.assert_array_equal(test.p, permutation_test(X, y, n_permutations=49, block=batch).p)
    table = selector.table_.set_index("feature")
    assert table.loc["x0", "p"] == test.p[0] == 0.02
    assert table.loc["x7", "q"] == test.q[7]
    assert table.loc["x7", "p_max"] == test.p_max[7]
    assert "p_max" not in before
    assert selector.fit(X, y, batch).table_.equals(before)


def test_sparse_tables_are_tested_alike():
    X, y = planted(gap=3.0)
    X[np.abs(X) < 0.6] = 0.0
    dense, thin = (
        permutation_test(form, y, n_permutations=20) for form in (X, sparse.csr_array(X))
    )
    np.testing.assert_array_equal(dense.p, thin.p)
    np.testing.assert_allclose(dense.observed, thin.observed, rtol=1e-5)


def test_a_feature_counts_by_the_comparison_in_which_it_differs_most():
    X, y = planted(classes=3, gap=3.0)
    test = permutation_test(X, y, n_permutations=49)
    assert test.p[list(SIGNAL)].tolist() == [0.02, 0.02, 0.02]
    alone = [permutation_test(X, y == name, n_permutations=9).observed for name in np.unique(y)]
    np.testing.assert_allclose(test.observed, np.max(alone, axis=0), rtol=1e-5)
    with_reference = permutation_test(
        X, y, selector=FROTSelector(reference="control"), n_permutations=49
    )
    assert with_reference.p[list(SIGNAL)].tolist() == [0.02, 0.02, 0.02]
    nothing = [
        permutation_test(*planted(classes=3, gap=0.0, d=12, seed=s), n_permutations=19).p.min()
        for s in range(40)
    ]
    assert np.mean(np.array(nothing) <= 0.05) < 0.9


def test_a_table_is_returned():
    X, y = planted(gap=3.0)
    test = permutation_test(X, y, n_permutations=49)
    assert test.table.columns.tolist() == ["feature", "t", "p", "q", "q_bh", "p_max"]
    assert test.table["q"].is_monotonic_increasing
    assert set(test.table["feature"][:3]) == {"x0", "x1", "x2"}
    assert 0.0 < test.pi0 <= 1.0


def test_it_prints_in_ten_lines():
    X, y = planted(gap=3.0)
    frame = {f"a_gene_with_a_name_that_is_too_long_{i}": X[:, i] for i in range(40)}
    import pandas as pd

    lines = str(permutation_test(pd.DataFrame(frame), y, n_permutations=99)).splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Permutation test of 40 features: 99 permutations of Welch's t"
    assert lines[1].endswith("3 with max-T p <= 0.05")


@pytest.mark.filterwarnings("error:n_permutations")
def test_too_few_permutations_are_said_to_be_with_the_number_that_would_do():
    X, y = planted(gap=3.0, d=400)
    with pytest.warns(frot.ConvergenceWarning, match="no q can be below 0.1; 19 would allow 0.05"):
        few = permutation_test(X, y, n_permutations=9)
    assert few.q.min() == 0.1
    assert permutation_test(X, y, n_permutations=19).q.min() == 0.05


def test_a_bar_is_drawn(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    permutation_test(*planted(), n_permutations=99, progress=True)
    assert capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_permutations": 0}, "n_permutations: must be"),
        ({"block": np.zeros(3)}, "block: has shape"),
        ({"random_state": 0.5}, "random_state: 0.5 is not a whole number"),
        ({"progress": "yes"}, "progress: "),
        ({"selector": FROTSelector(1, groups=[[0], [1, 2]])}, "selector: has groups of features"),
        ({"selector": "frot"}, "selector: 'frot' is not a FROTSelector"),
    ],
)
def test_bad_options_are_refused(options, message):
    X, y = planted()
    with pytest.raises(frot.InputError, match=message):
        permutation_test(X, y, **options)

import numpy as np
import pandas as pd
import pytest

import frot
from frot.selection import FROTSelector, pathway_test

N, D, MODULE = 30, 400, 20


def correlated(rng, n=N, d=D):
    """Noise of genes in modules of twenty, with correlations of 0.5 within each."""
    modules = np.repeat(rng.normal(size=(n, d // MODULE)), MODULE, axis=1)
    return np.sqrt(0.5) * (rng.normal(size=(n, d)) + modules)


def random_sets(rng, d=D, count=20, low=10, high=80):
    """Half of the sets are made of modules, half of genes from anywhere; they overlap."""
    sets = {}
    for number, size in enumerate(np.linspace(low, high, count).astype(int)):
        start = rng.integers(d - size)
        genes = np.arange(start, start + size) if number % 2 else rng.permutation(d)[:size]
        sets[f"s{number}"] = genes
    return sets


def labels(rng, n=N, share=2 / 3):
    return rng.permutation(np.arange(n) < share * n).astype(int)


def results_of(repeats, seed, n=N, shift=None):
    """Test random tables, with genes shifted where asked for."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(repeats):
        X, y = correlated(rng, n), labels(rng, n)
        if shift is not None:
            X += shift(rng) * y[:, None]
        found.append(pathway_test(X, y, random_sets(rng), n_permutations=99))
    return found


def mean_and_error(values):
    """Sets of one table are not independent; tables are."""
    return np.mean(values), np.std(values) / np.sqrt(len(values))


def rejected(tests, name):
    return mean_and_error([(getattr(test, name) <= 0.05).mean() for test in tests])


def test_both_nulls_hold_and_no_size_is_favoured_where_genes_are_correlated():
    tests = results_of(150, 0)
    for name in ("p_self_contained", "p_competitive"):
        rate, error = rejected(tests, name)
        assert abs(rate - 0.05) <= 3.0 * error, name
        assert error < 0.01
    # No false discovery is more than one, so that the rate is that of tables with any.
    some = [(test.q_competitive <= 0.1).any() for test in tests]
    assert np.mean(some) <= 0.1 + 3.0 * np.sqrt(0.09 / len(tests))
    # The largest quarter are the last five of twenty.
    share, error = mean_and_error([(test.order[:5] >= 15).mean() for test in tests])
    assert abs(share - 0.25) <= 3.0 * error
    assert error < 0.02


def test_both_nulls_hold_for_few_samples():
    tests = results_of(100, 3, n=8)
    for name in ("p_self_contained", "p_competitive"):
        rate, error = rejected(tests, name)
        assert abs(rate - 0.05) <= 3.0 * error, name


def test_the_competitive_null_holds_beside_genes_that_differ():
    def some(rng):
        return np.where(rng.random(D) < 0.2, rng.normal(size=D), 0.0)

    tests = results_of(60, 1, shift=some)
    rate, error = rejected(tests, "p_competitive")
    assert rate <= 0.05 + 3.0 * error
    # Every set has genes that differ, and the other null says so.
    assert rejected(tests, "p_self_contained")[0] > 0.5


def planted_sets(seed=0, n=50, d=2000, gap=1.4):
    rng = np.random.default_rng(seed)
    X, y = correlated(rng, n, d), np.where(labels(rng, n), "mutant", "wild type")
    sets = random_sets(rng, d, count=30, low=30, high=200)
    genes = [f"g{column}" for column in range(d)]
    members = {name: [genes[column] for column in columns] for name, columns in sets.items()}
    hit = rng.permutation(sets["s28"])[:12]
    X[np.ix_(y == "wild type", hit)] += gap
    return pd.DataFrame(X, columns=genes), y, members, [genes[column] for column in hit]


def test_a_few_genes_of_many_bring_their_set_to_the_top():
    X, y, sets, hit = planted_sets()
    selector = FROTSelector(groups=sets).fit(X, y)
    assert selector.table_["feature"][0] == "s28"
    assert selector.table_["p"].isna().all()
    test = selector.pathway_test(X, y, n_permutations=200)
    assert selector.table_["p"][0] == test.table["p_competitive"][0] <= 0.01
    first = test.table.iloc[0]
    assert (first["pathway"], first["up_in"], first["contrast"]) == (
        "s28", "wild type", "mutant vs wild type",
    )  # fmt: skip
    assert first["direction"] < -0.6
    assert first["q_competitive"] <= 0.05
    assert first["size"] == first["listed"] == len(sets["s28"])
    edge = test.leading_edge("s28")
    assert len(set(hit) & set(edge)) >= 10
    assert len(edge) <= 24
    assert first["leading_edge"] == ", ".join(edge)
    assert test.table["score"].is_monotonic_decreasing


def test_which_way_sets_go():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 300)), np.repeat(["a", "b", "c"], 20)
    X[:20, :10] += 2.0
    X[20:40, 10:20] -= 2.0
    X[40:, 20:25] += 2.0
    X[40:, 25:30] -= 2.0
    sets = {"up": range(10), "down": range(10, 20), "both": range(20, 30), "no": range(30, 90)}
    test = pathway_test(X, y, sets, n_permutations=50)
    assert test.up_in[:3] == ("a", "all but b", "mixed")
    assert test.contrast[:3] == ("a vs rest", "b vs rest", "c vs rest")
    assert test.order[-1] == 3
    shown = repr(test).splitlines()
    assert shown[0] == "Pathway test of 4 sets: 50 permutations"
    assert [line.split()[0] for line in shown[3:]] == [test.names[one] for one in test.order]
    np.testing.assert_allclose(test.share_up[:2], [1.0, 0.0])
    assert (test.remarks[3], test.table["remark"].iloc[-1]) == 2 * (test.remarks[3],)
    pairs = pathway_test(X, y, sets, selector=FROTSelector(reference="c"), n_permutations=50)
    assert (pairs.up_in[0], pairs.contrast[0]) == ("a", "a vs c")


def test_overlapping_sets_name_the_better_one():
    X, y, sets, _ = planted_sets(1)
    sets["copy"] = [*sets["s28"][:-4], *sorted(set(sets["s3"]) - set(sets["s28"]))]
    test = pathway_test(X, y, sets, n_permutations=100)
    worse, better = sorted(["copy", "s28"], key=lambda name: test.score[test.names.index(name)])
    name, share = test.redundancy()[test.names.index(worse)]
    assert name == better
    assert share > 0.5
    shares = test.shared_edges()
    assert shares.shape == (31, 31)
    assert shares.max() <= 1.0


def test_a_shift_of_batches_is_no_difference_of_classes():
    rng = np.random.default_rng(7)
    batch = np.repeat([0, 1], 20)
    y = np.concatenate([rng.permutation(np.arange(20) < share) for share in (14, 6)]).astype(int)
    X = correlated(rng, 40) + 3.0 * rng.normal(size=D) * batch[:, None]
    sets = random_sets(rng)
    alone, within = (pathway_test(X, y, sets, n_permutations=99, block=b) for b in (None, batch))
    assert (alone.p_self_contained <= 0.05).mean() > 0.5
    assert (within.p_self_contained <= 0.05).mean() <= 0.3
    assert np.abs(within.mean_z).max() < np.abs(alone.mean_z).max()


def test_sets_of_a_file_are_limited_and_named(tmp_path):
    X, y, sets, _ = planted_sets()
    path = tmp_path / "sets.gmt"
    lines = [[name, "-", *genes, "absent"] for name, genes in sets.items()]
    lines.append(["SMALL", "-", "g1", "g2"])
    path.write_text("".join("\t".join(line) + "\n" for line in lines))
    test = pathway_test(X, y, path, n_permutations=20)
    assert test.groups.dropped == ("SMALL",)
    assert test.names == tuple(sets)
    assert (test.table["coverage"] < 1.0).all()
    assert (test.table["listed"] == test.table["size"] + 1).all()
    unnamed = pathway_test(X.to_numpy(), y, path, n_permutations=20, feature_names=list(X))
    np.testing.assert_array_equal(unnamed.score, test.score)
    with pytest.raises(frot.InputError, match=r"none of 31 has 400 to 500 features of the data"):
        pathway_test(X, y, path, min_size=400)


def test_a_set_without_a_leading_edge_says_why():
    X, y, sets, _ = planted_sets(d=400)
    X = X.assign(flat=1.0, flat2=1.0)
    sets = {"hit": sets["s28"], "flat": ["flat", "flat2"], "no": list(X)[:9]}
    X.iloc[:, :9] = 0.01 * X.iloc[:, :9] + np.tile([0.0, 1.0], 25)[:, None]
    test = pathway_test(X, y, sets, n_permutations=50, min_size=2)
    assert test.remarks == ("", "none of it varies", "differs no more than other genes do")
    table = test.table.set_index("pathway")
    assert table.loc["flat", "remark"] == "none of it varies"
    assert (table.loc["hit", "remark"], table.loc["hit", "edge_size"] > 0) == ("", True)


def test_where_nothing_is_found_it_says_what_would_have_been():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 200)), np.repeat(["a", "b"], 15)
    test = pathway_test(X, y, {"s": range(20), "t": range(20, 40)}, n_permutations=99)
    assert test.power.startswith("No set of 2 has a competitive q <= 0.05: one of 20 genes would")
    assert f"differed by {test.detectable:.2f} standard deviations" in repr(test)
    X[:15, :20] += 3.0
    assert pathway_test(X, y, {"s": range(20), "t": range(20, 40)}, n_permutations=99).power == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_permutations": 1}, "n_permutations: must be a whole number >= 2"),
        ({"min_size": 0}, "min_size: must be"),
        ({"min_size": 9, "max_size": 8}, "max_size: must be a whole number >= 9"),
        ({"block": np.zeros(3)}, "block: has shape"),
        ({"feature_names": ["a"]}, "feature_names"),
    ],
)
def test_bad_options_are_refused(options, message):
    X, y = planted_sets(d=300)[:2]
    with pytest.raises(frot.InputError, match=message):
        pathway_test(X.to_numpy(), y, {"a": range(20), "b": range(20, 60)}, **options)

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import frot
from frot.groups.groups import Groups
from frot.selection import FROTSelector, pathway_test
from frot.selection._inputs import prepare
from frot.selection._set_statistics import (
    Collapsed,
    leading_edge,
    set_scores,
    set_statistics,
    standardise,
)
from tests.selection.planted import planted

SETS = {"signal": range(8), "noise": range(8, 30), "mixed": [0, 12, 20, 33, 39]}


def statistics(X, y, block=None, count=20, sets=SETS):
    prepared = prepare(FROTSelector(groups=sets), X, y, block)
    return set_statistics(prepared.table, prepared.contrasts, prepared.groups, count)


def same(one, two):
    for name in ("competitive", "self_contained", "z"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=2e-5)


def test_statistics_are_the_definitions():
    X, y = planted()
    found = statistics(X, y)
    beyond = np.square(np.maximum(np.abs(found.z[0]) - 1.0, 0.0))
    np.testing.assert_allclose(found.contributions, beyond)
    expected = [beyond[list(members)].mean() for members in SETS.values()]
    np.testing.assert_allclose(found.self_contained[0], expected, rtol=1e-5)
    np.testing.assert_allclose(found.competitive.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(found.competitive.std(axis=0), 1.0, atol=1e-5)
    assert found.competitive[0].argmax() == 0


def test_units_and_the_order_of_features_do_not_matter():
    X, y = planted()
    rng = np.random.default_rng(1)
    same(statistics(X, y), statistics(X * rng.uniform(0.1, 9.0, 40) + rng.normal(size=40), y))
    order = rng.permutation(40)
    place = np.argsort(order)
    moved = {name: place[list(members)] for name, members in SETS.items()}
    turned = statistics(X[:, order], y, sets=moved)
    np.testing.assert_allclose(turned.competitive, statistics(X, y).competitive, atol=2e-5)


def test_sparse_tables_give_the_same():
    X, y = planted()
    X[np.abs(X) < 0.7] = 0.0
    same(statistics(X, y), statistics(sparse.csr_array(X), y))


def test_a_feature_of_equal_means_varies():
    X, y = planted(n=20, m=20)
    # Exactly the same values in both classes, in other order.
    X[:, 39] = np.arange(40) % 10
    found = statistics(X, y)
    assert found.z[0, 39] == 0.0
    assert found.varying[39]


def test_a_feature_that_does_not_vary_counts_nowhere():
    X, y = planted(d=41)
    X[:, 40] = 7.0
    more = {**SETS, "noise": [*SETS["noise"], 40]}
    one, two = statistics(X[:, :40], y), statistics(X, y, sets=more)
    np.testing.assert_allclose(one.competitive, two.competitive, atol=2e-5)
    assert not two.varying[40]


def test_what_differs_between_blocks_does_not_count():
    X, y = planted(n=20, m=20)
    block = np.arange(40) % 10
    moved = X + np.random.default_rng(3).normal(size=(10, 40))[block]
    same(statistics(X, y, block=block), statistics(moved, y, block=block))


def test_scores_of_a_fit_are_within_blocks_and_of_genes():
    X, y = planted(n=20, m=20)
    block = np.arange(40) % 10
    moved = X + 5.0 * np.random.default_rng(3).normal(size=(10, 40))[block]
    one, two = (prepare(FROTSelector(groups=SETS), values, y, block) for values in (X, moved))
    np.testing.assert_allclose(set_scores(one), set_scores(two), atol=1e-3)
    names = [f"g{column}" for column in range(40)]
    twice = pd.DataFrame(np.hstack([X, X[:, :3] - 9.0]), columns=[*names, *names[:3]])
    sets = {name: [names[k] for k in members] for name, members in SETS.items()}
    probes, genes = (
        set_scores(prepare(FROTSelector(groups=sets), table, y))
        for table in (twice, twice.iloc[:, :40])
    )
    np.testing.assert_allclose(probes, genes, atol=1e-3)


def test_standardised_statistics_without_spread_are_zero():
    found = standardise(np.array([[5.0, 1.0], [1.0, 1.0], [3.0, 1.0]]))
    np.testing.assert_allclose(found[:, 0], np.array([2.0, -2.0, 0.0]) / np.sqrt(8.0 / 3.0))
    assert (found[:, 1] == 0.0).all()


def test_what_a_leading_edge_leaves_is_ordinary():
    rng = np.random.default_rng(0)
    values = rng.exponential(size=300)
    members = rng.permutation(300)[:60]
    values[members[:7]] += 20.0
    edge = leading_edge(values, members, 1.0)
    assert set(members[:7]) <= set(edge)
    assert np.delete(values[members], np.isin(members, edge)).mean() <= 1.0
    assert np.delete(values[members], np.isin(members, edge[:-1])).mean() > 1.0
    assert leading_edge(values, members[7:], 5.0).size == 0


class TestCollapse:
    """Probes of one gene become one feature."""

    NAMES = ("TP53", "MYC", "TP53", "BAX", "TP53")
    TABLE = np.array([[1.0, 5.0, 2.0, 0.0, 9.0], [3.0, 7.0, 2.0, 1.0, 1.0]])

    @pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
    @pytest.mark.parametrize(
        ("how", "gene", "words"),
        [("max", [9.0, 1.0], "the one of the highest mean"), ("mean", [4.0, 2.0], "their mean")],
    )
    def test_into_one(self, form, how, gene, words):
        sets = Groups.parse({"a": [0, 2, 3], "b": [1, 4]}, 5)
        found = Collapsed.of(form(self.TABLE), sets, self.NAMES, how)
        table = found.table.toarray() if sparse.issparse(found.table) else found.table
        np.testing.assert_allclose(table, [[gene[0], 5.0, 0.0], [gene[1], 7.0, 1.0]])
        assert found.names == ("TP53", "MYC", "BAX")
        assert [members.tolist() for members in found.groups.indices] == [[0, 2], [0, 1]]
        assert found.groups.names == ("a", "b")
        assert f"5 features are 3 genes: of several with one name {words} counts" in found.note

    def test_not_where_names_differ_or_none_is_asked_for(self):
        sets = Groups.parse([[0, 1]], 5)
        for names, how in ((self.NAMES, None), (tuple("abcde"), "max")):
            found = Collapsed.of(self.TABLE, sets, names, how)
            assert found.table is self.TABLE
            assert (found.names, found.note) == (names, "")

    def test_a_test_of_sets_counts_genes_and_says_so(self):
        X, y = planted(gap=3.0)
        names = [f"g{column // 2}" for column in range(40)]
        sets = {"signal": ["g0", "g1"], "rest": [f"g{k}" for k in range(2, 20)]}
        frame = pd.DataFrame(X, columns=names)
        test = pathway_test(frame, y, sets, n_permutations=50)
        assert test.groups.sizes.tolist() == [2, 18]
        assert "40 features are 20 genes" in repr(test)
        assert set(test.leading_edge("signal")) <= {"g0", "g1"}
        probes = pathway_test(frame, y, sets, n_permutations=50, collapse=None)
        assert probes.groups.sizes.tolist() == [4, 36]
        assert probes.note == ""
        with pytest.raises(frot.InputError, match="collapse: 'median' is none of"):
            pathway_test(frame, y, sets, n_permutations=50, collapse="median")


def test_the_effect_that_would_be_seen_is_seen_in_every_second_study():
    rng = np.random.default_rng(0)
    sets = {f"s{k}": np.arange(20 * k, 20 * k + 20) for k in range(20)}
    y = np.repeat([0, 1], 15)
    tables = [rng.normal(size=(30, 600)) for _ in range(40)]
    shifts = [pathway_test(X, y, sets, n_permutations=99).detectable for X in tables[:10]]
    assert np.std(shifts) < 0.15 * np.mean(shifts)
    found = []
    for X in tables[10:]:
        moved = X.copy()
        moved[np.ix_(y == 1, sets["s3"])] += np.mean(shifts)
        found.append(pathway_test(moved, y, sets, n_permutations=99).q_competitive[3] <= 0.05)
    assert 0.25 <= np.mean(found) <= 0.8
    few = pathway_test(tables[0], y, sets, n_permutations=10)
    assert np.isnan(few.detectable)

import numpy as np
from scipy import sparse, stats

from frot.groups.groups import Groups
from frot.selection import FROTSelector
from frot.selection._gene_sets import leading_edge, set_statistics
from frot.selection._inputs import prepare
from tests.selection.planted import planted

SETS = {"signal": range(8), "noise": range(8, 30), "mixed": [0, 12, 20, 33, 39]}


def statistics(X, y, weight=None, block=None, count=20, **options):
    prepared = prepare(FROTSelector(groups=SETS, **options), X, y, weight)
    blocks = np.zeros(X.shape[0], dtype=int) if block is None else block
    return set_statistics(prepared, blocks, count, 0)


def same(one, two):
    for name in ("competitive", "self_contained", "z"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=2e-5)


def test_deviates_are_as_rare_as_welchs_t():
    X, y = planted(d=40)
    first, second = X[y == "control"], X[y == "treated"]
    t, p = (np.asarray(one) for one in stats.ttest_ind(first, second, equal_var=False))
    exact = np.sign(t) * stats.norm.isf(p / 2.0)
    np.testing.assert_allclose(statistics(X, y).z[0], exact, rtol=5e-3, atol=5e-3)


def test_units_and_the_order_of_features_do_not_matter():
    X, y = planted()
    rng = np.random.default_rng(1)
    same(statistics(X, y), statistics(X * rng.uniform(0.1, 9.0, 40) + rng.normal(size=40), y))


def test_sparse_tables_and_weights():
    X, y = planted()
    X[np.abs(X) < 0.7] = 0.0
    same(statistics(X, y), statistics(sparse.csr_array(X), y))
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    weight[[3, 30]] = 0.0
    kept = weight > 0.0
    same(statistics(X, y, weight), statistics(X[kept], y[kept], weight[kept]))


def test_a_feature_that_does_not_vary_counts_nowhere():
    X, y = planted(d=41)
    X[:, 40] = 7.0
    one = prepare(FROTSelector(groups=SETS), X[:, :40], y)
    two = prepare(FROTSelector(groups={**SETS, "noise": [*SETS["noise"], 40]}), X, y)
    blocks = np.zeros(len(X), dtype=int)
    found, other = (set_statistics(ready, blocks, 20, 0) for ready in (one, two))
    np.testing.assert_allclose(found.competitive, other.competitive, atol=2e-5)
    assert not other.varying[40]


def test_what_differs_between_blocks_does_not_count():
    X, y = planted(n=20, m=20)
    block = np.arange(40) % 10
    moved = X + np.random.default_rng(3).normal(size=(10, 40))[block]
    same(statistics(X, y, block=block), statistics(moved, y, block=block))


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


def test_coverage_and_limits(tmp_path):
    path = tmp_path / "sets.gmt"
    path.write_text("A\t-\ta\tb\tc\tx\nB\t-\ta\ty\tz\tw\tv\nC\t-\tb\tc\n")
    groups = Groups.from_gmt(path, ["a", "b", "c"])
    assert groups.listed == (4, 5, 2)
    np.testing.assert_allclose(groups.coverage, [0.75, 0.2, 1.0])
    assert groups.limited(1, min_coverage=0.5).names == ("A", "C")
    assert groups.limited(2, 2).dropped == ("A", "B")
    assert groups.limited(2).listed == (4, 2)
    assert Groups.parse([2, 1], 3).limited().sizes.tolist() == [2, 1]

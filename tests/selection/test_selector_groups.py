import numpy as np
import pandas as pd
import pytest

import frot
from frot.selection import FROTSelector
from tests.selection.planted import planted


def test_groups_are_kept_whole_and_may_overlap():
    X, y = planted()
    groups = {"signal": [0, 1, 2], "half": [1, 2, 3], "noise": range(6, 40)}
    found = FROTSelector(2, groups=groups).fit(X, y)
    assert found.groups_.names == ("signal", "half", "noise")
    assert found.groups_support_.tolist() == [True, True, False]
    assert np.flatnonzero(found.get_support()).tolist() == [0, 1, 2, 3]
    assert found.scores_.shape == found.phi_.shape == (3,)
    assert found.table_["feature"].tolist() == ["signal", "half", "noise"]


def test_a_groups_cost_is_the_mean_of_its_features_and_so_are_the_parts():
    X, y = planted()
    groups = frot.Groups.from_indices([[0, 1, 2], [2, 3, 4, 5], range(6, 40)], 40)
    found = FROTSelector(1, groups=groups).fit(X, y)
    single = found.comparisons_[0].features
    for name in ("phi", "shift", "shape", "misalignment"):
        per_feature = getattr(single, name)
        expected = [per_feature[members].mean() for _, members in groups]
        np.testing.assert_allclose(getattr(found, f"{name}_"), expected, atol=1e-12)


def test_sums_of_costs_grow_with_size():
    X, y = planted(d=203, gap=1.5)
    groups = {"signal": [0, 1, 2], "large": range(3, 203)}
    for cost, ranking in (("mean", [1, 2]), ("sum", [2, 1])):
        found = FROTSelector(1, groups=groups, score="phi", group_cost=cost).fit(X, y)
        assert found.ranking_.tolist() == ranking


def test_a_groups_constant_features_do_not_dilute_it():
    X, y = planted()
    X[:, 30:] = 1.0
    with_constants = {"a": [0, 1, *range(30, 40)], "b": range(3, 30)}
    without = {"a": [0, 1], "b": range(3, 30)}
    one, two = (FROTSelector(1, groups=g).fit(X, y) for g in (with_constants, without))
    np.testing.assert_allclose(one.phi_, two.phi_)


def test_gene_sets_from_a_file(tmp_path):
    X, y = planted()
    table = pd.DataFrame({f"gene{column}": values for column, values in enumerate(X.T)})
    path = tmp_path / "sets.gmt"
    path.write_text("UP\t-\tgene0\tgene1\tABSENT\nOTHER\t-\tgene9\tgene8\nNONE\t-\tABSENT\n")
    found = FROTSelector(1, groups=str(path)).fit(table, y)
    assert found.get_feature_names_out().tolist() == ["gene0", "gene1"]
    assert found.groups_.dropped == ("NONE",)


def test_a_group_without_a_gene_of_the_data_is_named(tmp_path):
    X, y = planted()
    table = pd.DataFrame({f"gene{column}": values for column, values in enumerate(X.T)})
    with pytest.raises(frot.InputError, match=r"group 'set'.*TP53"):
        FROTSelector(1, groups={"set": ["TP53"]}).fit(table, y)
    path = tmp_path / "sets.gmt"
    path.write_text("UP\t-\tTP53\n")
    with pytest.raises(frot.InputError, match=r"sets\.gmt"):
        FROTSelector(1, groups=path).fit(table, y)


def test_more_groups_than_there_are():
    X, y = planted()
    with pytest.raises(frot.InputError, match="3 groups are asked for but there are 2"):
        FROTSelector(3, groups=[[0, 1], [2, 3]]).fit(X, y)

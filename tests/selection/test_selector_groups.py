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
    assert found.scores_.shape == found.alpha_.shape == (3,)
    assert found.table_["feature"].tolist() == ["signal", "half", "noise"]


def test_groups_have_the_direction_of_their_features():
    X, y = planted()
    groups = {"signal": [0, 1, 2], "noise": [3, 4, 5, 6]}
    found = FROTSelector(1, groups=groups).fit(X, y)
    table = found.table_.set_index("feature")
    assert table.loc["signal", "up_in"] == "treated"
    t = found.comparisons_[0].effects.t
    assert table.loc["signal", "t"] == pytest.approx(t[:3].mean())
    assert "log2_fold_change" not in table
    assert table["p"].isna().all()
    by_alpha = FROTSelector(1, groups=groups, score="alpha").fit(X, y)
    assert by_alpha.scores_.tolist() == by_alpha.alpha_.tolist()


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

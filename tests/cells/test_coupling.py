import numpy as np
import pandas as pd
import pytest

import frot
from frot.cells import Cells, couple
from tests.cells.planted import GROUPS, planted


@pytest.fixture(scope="module")
def found():
    X, obs, names = planted()
    obs["fate"] = pd.Series(pd.Categorical(obs["kind"], categories=["stem", "blood", "nerve"]))
    obs["partly"] = [None, "a", "b", "a"] * 20
    cells = Cells(X, obs, names, [f"cell{at}" for at in range(80)], obsm={"X_umap": X[:, :2]})
    return couple(cells, groups=GROUPS, growth="growth", tau=(0.5, 1.0))


def test_push_and_pull_are_rows_and_columns_of_the_plan(found):
    plan = np.asarray(found.result.plan)
    mask = np.arange(40) < 7
    np.testing.assert_allclose(found.push(mask), plan[:7].sum(axis=0) / plan[:7].sum())
    np.testing.assert_allclose(found.pull(mask), plan[:, :7].sum(axis=1) / plan[:, :7].sum())
    np.testing.assert_allclose(found.push(), plan.sum(axis=0) / plan.sum())


def test_cells_are_named_masked_or_of_a_category(found):
    stem = np.arange(40) % 2 == 0
    names = [f"cell{at}" for at in range(0, 40, 2)]
    for cells in (found.push(names), found.push("stem", column="kind"), found.push(2.0 * stem)):
        np.testing.assert_allclose(cells, found.push(stem))
    both = found.pull(["stem", "blood"], column="kind")
    np.testing.assert_allclose(both, found.pull())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cells": "cell41"}, "'cell41' is not a cell of 3"),
        ({"cells": "nerve", "column": "kind"}, "none of 3 is 'nerve' in kind; there are 'blood'"),
        ({"cells": np.ones(3)}, "has shape (3,); give a mask or weights of the 40 cells of 3"),
        ({"cells": -np.ones(40)}, "weights must be finite, >= 0"),
        ({"cells": "stem", "column": "type"}, "adata.obs has no column 'type'"),
    ],
)
def test_cells_that_there_are_not_are_refused(found, arguments, message):
    with pytest.raises(frot.InputError) as caught:
        found.push(**arguments)
    assert message in str(caught.value)


def test_transitions_are_sums_of_the_plan_in_the_order_of_categories(found):
    plan = np.asarray(found.result.plan)
    stem = np.arange(40) % 2 == 0
    mass = found.transition_matrix("fate", share="none")
    assert mass.index.tolist() == mass.columns.tolist() == ["stem", "blood"]
    assert mass.loc["stem", "blood"] == pytest.approx(plan[stem][:, ~stem].sum())
    np.testing.assert_allclose(found.transition_matrix("kind").sum(axis=1), 1.0)
    np.testing.assert_allclose(found.transition_matrix("kind", share="target").sum(axis=0), 1.0)
    assert np.diag(found.transition_matrix("kind")).min() > 0.9
    with pytest.raises(frot.InputError, match="share: 'all' is not known"):
        found.transition_matrix("kind", share="all")


def test_cells_without_a_category_are_in_no_row(found):
    mass = found.transition_matrix("partly", share="none")
    assert mass.shape == (2, 2)
    assert mass.to_numpy().sum() < found.mass


def test_labels_come_with_probabilities_that_sum_to_one(found):
    fates = found.transfer_labels("kind")
    np.testing.assert_allclose(fates[["stem", "blood"]].sum(axis=1), 1.0)
    np.testing.assert_allclose(fates["probability"], fates[["stem", "blood"]].max(axis=1))
    assert fates.index[1] == "cell1"
    assert (fates["label"] == found.data.obs["kind"][:40]).mean() > 0.9
    origins = found.transfer_labels("kind", to="target")
    plan = np.asarray(found.result.plan)
    stem = np.arange(40) % 2 == 0
    np.testing.assert_allclose(origins["stem"], plan[stem].sum(axis=0) / plan.sum(axis=0))


def test_labels_may_be_called_as_columns_of_the_answer_are(found):
    kinds = found.data.obs["kind"]
    found.data.obs["label"] = np.where(kinds == "stem", "label", "probability")
    told, expected = found.transfer_labels("label"), found.transfer_labels("kind")
    np.testing.assert_array_equal(told["label"] == "label", expected["label"] == "stem")
    np.testing.assert_array_equal(told["probability"], expected["probability"])
    np.testing.assert_array_equal(told["of label"], expected["stem"])
    np.testing.assert_array_equal(told["of probability"], expected["blood"])


def test_barycentres_are_means_of_targets(found):
    plan = np.asarray(found.result.plan)
    umap = found.data.obsm["X_umap"][40:]
    expected = plan @ umap / plan.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.barycentric_map("X_umap"), expected)
    np.testing.assert_allclose(found.barycentric_map(umap), expected)
    assert found.barycentric_map().shape == (40, 6)
    with pytest.raises(frot.InputError, match="obsm has no 'X_pca'; it has 'X_umap'"):
        found.barycentric_map("X_pca")


def test_drivers_take_the_cost_apart(found):
    table = found.drivers(top=None)
    assert set(table["gene"]) == set(GROUPS["one"] + GROUPS["two"])
    shares = table.groupby("group")["gene_share"].sum()
    np.testing.assert_allclose(shares, 1.0)
    heads = table.drop_duplicates("group").set_index("group")
    costs = dict(zip(found.result.names, found.result.phi, strict=True))
    worth = {name: heads.loc[name, "weight"] * costs[name] for name in heads.index}
    for name in heads.index:
        # Costs are those of the plan itself, by two roads.
        assert heads.loc[name, "group_share"] == pytest.approx(worth[name] / sum(worth.values()))
    assert len(found.drivers(top=1)) == 2


def test_changes_are_in_the_units_of_the_table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    X[50:, 2] += 5.0
    found = couple((X, {"day": np.repeat([0, 1], 50)}), groups={"all": range(4)})
    table = found.drivers()
    assert table["gene"][0] == "2"
    gain = X[50:].mean(axis=0) - X[:50].mean(axis=0)
    np.testing.assert_allclose(table.sort_values("gene")["change"], gain, atol=1e-8)


def test_the_summary_says_how_right_it_is(found):
    text = found.summary()
    assert "2 of 3 groups taken" in text
    assert "interval" in text
    assert "40 to 40 cells, 2 of 3 groups" in repr(found)


def test_the_summary_says_which_groups_could_not_pass():
    X, obs, names = planted()
    X[:, 7] = 1.0
    data = Cells(X, obs, names)
    text = couple(data, groups=GROUPS | {"silent": ["g7"]}).summary()
    assert "2 of 3 groups taken, 1 without a gene that varies here" in text
    assert "3 groups taken without a gate" in couple(data, groups=GROUPS, gate=None).summary()
    assert "one group, no gate" in couple(data, groups={"one": GROUPS["one"]}).summary()


def test_the_summary_counts_cells_that_get_next_to_nothing():
    X, obs, names = planted()
    found = couple(Cells(X, obs, names), groups=GROUPS, tau=(np.inf, 1e-3), eps=1e-3)
    left = int((found.marginals[1] < 0.1 / 40).sum())
    assert left > 0
    assert found.mass == pytest.approx(1.0)
    assert f"target    {left} of 40 cells have less than 10% of an equal share" in found.summary()
    assert "source    " not in found.summary()

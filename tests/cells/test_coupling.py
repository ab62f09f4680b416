from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import frot
from frot.cells import Cells, Coupling, couple
from tests.cells.planted import GROUPS, planted


def cells(form=np.asarray, **more):
    X, obs, names = planted(form=form)
    return Cells(X, obs | more.pop("obs", {}), names, **more)


def test_only_groups_that_have_a_witness_are_taken():
    found = couple(cells(), groups=GROUPS)
    assert [one.passed for one in found.about] == [True, True, False]
    assert found.alpha[2] == 0.0
    assert found.alpha.sum() == pytest.approx(1.0)
    assert found.result.status is frot.Status.CONVERGED
    table = found.groups
    assert table["group"].tolist()[2] == "noise"
    assert (table["components"] <= table["genes"]).all()


def test_the_answer_is_that_of_solve_on_the_blocks():
    found = couple(cells(), groups=GROUPS, eps=0.05, eta=0.1, tau=(np.inf, 0.7))
    X, Y = (np.hstack([getattr(b, side) for b in found.blocks]) for side in ("source", "target"))
    sizes = [block.size for block in found.blocks]
    other = frot.solve(X, Y, sizes, eps=0.05, eta=0.1, tau=(np.inf, 0.7))
    assert other.lower <= found.result.upper
    assert found.result.lower <= other.upper
    np.testing.assert_allclose(found.alpha[:2], other.alpha, atol=1e-3)
    np.testing.assert_allclose(found.marginals[0], 1.0 / 40)
    assert found.mass == pytest.approx(1.0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, pd.DataFrame])
def test_tables_of_any_kind_and_annotations_of_any_kind_give_the_same(form):
    expected = couple(cells(), groups=GROUPS)
    X, obs, names = planted()
    if form is pd.DataFrame:
        data = (pd.DataFrame(X, columns=names), pd.DataFrame(obs))
    else:
        days = obs["day"].astype(str)
        data = SimpleNamespace(
            X=form(X), obs=pd.DataFrame(obs | {"day": pd.Categorical(days)}), var_names=names,
            obsm={}, layers={}, uns={}, raw=None,
        )  # fmt: skip
    found = couple(data, "day", 3, 4.0, groups=GROUPS)
    np.testing.assert_allclose(found.alpha, expected.alpha, atol=1e-6)


def test_cells_that_grow_weigh_more():
    found = couple(cells(), groups=GROUPS, growth="growth")
    rates = cells().obs["growth"][:40]
    np.testing.assert_allclose(found.marginals[0], rates / rates.sum())
    np.testing.assert_allclose(found.marginals[1], 1.0 / 40)


def test_latent_blocks_need_no_genes():
    X, obs, _ = planted()
    data = Cells(np.zeros((80, 1)), obs, obsm={"X_pca": X[:, :3], "X_scvi": X[:, 3:6]})
    found = couple(data, groups=["X_pca", "X_scvi"], eps=0.0)
    assert found.names == ("X_pca", "X_scvi")
    assert found.result.plan.is_sparse
    only = couple(data, groups="X_pca")
    assert np.isnan(only.about[0].z)
    assert only.about[0].passed


def test_gene_sets_of_a_file_are_told_with_those_that_have_no_gene(tmp_path):
    sets = GROUPS | {"empty": ["MYC", "TP53"]}
    lines = ("\t".join([name, "-", *genes]) for name, genes in sets.items())
    (tmp_path / "sets.gmt").write_text("\n".join(lines))
    found = couple(cells(), groups=tmp_path / "sets.gmt")
    assert found.names == ("one", "two", "noise", "empty")
    assert found.about[3].genes == 0
    np.testing.assert_allclose(found.alpha, [*couple(cells(), groups=GROUPS).alpha, 0.0])


def test_a_device_gives_the_same():
    pytest.importorskip("torch")
    found, expected = (couple(cells(), groups=GROUPS, device=one) for one in ("cpu", None))
    np.testing.assert_allclose(found.alpha, expected.alpha, atol=1e-6)
    np.testing.assert_allclose(found.push(), expected.push(), atol=1e-6)


def test_the_first_and_the_last_of_three_days():
    X, obs, names = planted(days=3)
    found = couple(Cells(X, obs, names), "day", 5, 3, groups=GROUPS)
    assert (found.source.day, found.target.day) == (5, 3)
    np.testing.assert_array_equal(found.source.rows, np.arange(80, 120))


def test_where_nothing_is_coherent_all_groups_are_taken_with_a_warning():
    X = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.warns(frot.DataWarning, match="no group is coherent"):
        found = couple((X, {"day": np.repeat([1, 2], 30)}), groups=[2, 2])
    assert all(one.passed for one in found.about)


def test_large_plans_are_never_formed():
    found = couple(cells(), groups=GROUPS, memory_budget=1e3)
    assert isinstance(found.result.plan, frot.LazyPlan)
    expected = couple(cells(), groups=GROUPS)
    np.testing.assert_allclose(
        found.transition_matrix("kind"), expected.transition_matrix("kind"), atol=1e-3
    )


def test_a_coupling_starts_another():
    first = couple(cells(), groups=GROUPS)
    again = couple(cells(), groups=GROUPS, start=first)
    assert again.result.iterations <= first.result.iterations
    np.testing.assert_allclose(again.alpha, first.alpha, atol=1e-3)
    with pytest.raises(frot.InputError, match="start: is a coupling of other groups"):
        couple(cells(), groups=GROUPS, start=first, gate=None)


def test_ctrl_c_brings_the_coupling_found_until_then():
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(frot.Interrupted) as caught:
        couple(cells(), groups=GROUPS, callback=stop)
    found = caught.value.result
    assert isinstance(found, Coupling)
    assert found.result.status is frot.Status.INTERRUPTED
    assert found.result.lower <= found.result.upper


def test_next_to_no_mass_left_is_said_with_the_tau_that_keeps_half():
    with pytest.warns(frot.ConvergenceWarning, match=r"tau=\S+ would keep about half"):
        couple(cells(), groups=GROUPS, tau=1e-4, eps=0.0)


REFUSED = [
    ({"key": "week"}, "key: adata.obs has no column 'week'; it has 'day'"),
    ({"source": 9, "target": 4}, "source: day has no 9; it has '3', '4'"),
    ({"source": 3}, "source, target: give both; day has '3', '4'"),
    ({"source": 3, "target": 3}, "both are 3"),
    ({"key": "only"}, "key: 'only' needs at least two days; all cells are of 'x'"),
    ({"growth": "nobody"}, "growth: adata.obs has no column 'nobody'"),
    ({"growth": "dying"}, "growth: must be > 0 and finite, but 'dying' is 0 for cell '0'"),
    ({"growth": "kind"}, "growth: column 'kind' has entries that are not numbers"),
    ({"tau": 0.0}, "tau: must be > 0"),
    ({"tau": -1.0}, "tau: must be > 0"),
    ({"eps": -1.0}, "eps: must be finite and >= 0"),
    ({"groups": {"a": ["g0"], "b": ["MYC"]}}, "groups: 'b' has no gene that adata has"),
    ({"groups": None}, "groups: needs sets of genes"),
    ({"layer": "raw"}, "layer: adata has no layer 'raw'"),
    ({"gate": 4.0}, "gate: is a probability between 0 and 1"),
    ({"gate": 0.0}, "gate: is a probability between 0 and 1"),
    ({"denoise": 0.5}, "denoise: "),
    ({"growth": np.ones(3)}, "is not the name of a column of adata.obs"),
    ({"start": 3}, "start: 3 is not a Coupling"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=lambda one: str(one)[:40])
def test_bad_input_is_refused_in_one_sentence(arguments, message):
    data = cells(obs={"only": ["x"] * 80, "dying": np.zeros(80)})
    with pytest.raises(frot.InputError) as caught:
        couple(data, **({"groups": GROUPS} | arguments))
    assert message in str(caught.value)


def test_what_is_no_table_of_cells_is_refused():
    with pytest.raises(frot.InputError, match="adata: 5 has no X"):
        couple(5, groups=GROUPS)
    with pytest.raises(frot.InputError, match="column 'day' has 3 entries for 2 cells"):
        couple(([[1.0], [2.0]], {"day": [1, 2, 3]}), groups=[1])


def test_three_days_without_saying_which_are_refused():
    X, obs, names = planted(days=3)
    with pytest.raises(frot.InputError, match="day has 3 days; say which two of '3', '4', '5'"):
        couple(Cells(X, obs, names), groups=GROUPS)


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

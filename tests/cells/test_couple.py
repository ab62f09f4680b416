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
    ({"key": "only"}, "key: 'only' has to tell two days at least; all cells are of 'x'"),
    ({"growth": "nobody"}, "growth: adata.obs has no column 'nobody'"),
    ({"growth": "dying"}, "growth: must be > 0 and finite, but 'dying' is 0 for cell '0'"),
    ({"growth": "kind"}, "growth: column 'kind' has entries that are no numbers"),
    ({"tau": 0.0}, "tau: must be > 0"),
    ({"tau": -1.0}, "tau: must be > 0"),
    ({"eps": -1.0}, "eps: must be finite and >= 0"),
    ({"groups": {"a": ["g0"], "b": ["MYC"]}}, "groups: 'b' has no gene that adata has"),
    ({"groups": None}, "groups: needs sets of genes"),
    ({"layer": "raw"}, "layer: adata has no layer 'raw'"),
    ({"gate": 4.0}, "gate: is a chance between 0 and 1"),
    ({"gate": 0.0}, "gate: is a chance between 0 and 1"),
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

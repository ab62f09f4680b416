"""What a result tells and keeps."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import frot
from frot import Plan, Result, Status


@pytest.fixture(scope="module")
def result() -> Result:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 14)), rng.normal(size=(7, 14)) + np.linspace(0, 2, 14)
    return frot.solve(X, Y, {f"gene {i}": [i] for i in range(14)}, eta=0.7)


def handmade(alpha, phi, names) -> Result:
    return Result(
        value=3.0,
        lower=2.0,
        upper=3.0,
        status=Status.MAX_ITER,
        alpha=np.array(alpha),
        phi=np.array(phi),
        plan=Plan(np.eye(2) / 2),
        potentials=(np.zeros(2), np.zeros(2)),
        mean_cost=1.0,
        names=tuple(names),
        solver="by hand",
        iterations=4,
        time=0.25,
    )


def test_perplexity_counts_the_groups_in_effect():
    assert handmade([0.5, 0.5, 0.0], [1, 1, 0], "abc").perplexity == pytest.approx(2.0, rel=1e-14)
    assert handmade([1.0, 0.0, 0.0], [1, 1, 0], "abc").perplexity == 1.0
    assert handmade([0.25] * 4, [1] * 4, "abcd").perplexity == pytest.approx(4.0, rel=1e-14)


def test_ranking_is_by_weight_then_by_cost():
    ranked = handmade([0.1, 0.0, 0.9, 0.0], [5.0, 1.0, 5.0, 2.0], "abcd").ranking()
    assert ranked.tolist() == [2, 0, 3, 1]


def test_gap_is_relative_to_the_upper_bound():
    assert handmade([1.0], [3.0], "a").gap == pytest.approx(1.0 / 3.0, rel=1e-15)


def test_repr():
    assert repr(handmade([1.0], [3.0], "a")) == (
        "Result(value=3, lower=2, upper=3, gap=3.3e-01, status=Status.MAX_ITER, solver='by hand')"
    )


def test_summary_of_few_groups():
    lines = handmade([0.25, 0.75], [1.0, 3.0], ["short", "a longer name"]).summary().splitlines()
    assert lines == [
        "Feature-robust transport of 2 to 2 points in 2 groups",
        "  value     3",
        "  interval  [2, 3]  (gap 3.3e-01)",
        "  status    MAX_ITER: Stopped at max_iter before the interval was within the tolerance.",
        "  problem   costs as given, normalise none, eta 0, eps 0, tau none",
        f"  solver    by hand, 4 iterations, 0.25 s, frot {frot.__version__}",
        "  plan      dense, mass 1",
        "  groups    1.75 in effect; the heaviest:",
        "    a longer name  alpha 0.750000  phi 3",
        "    short          alpha 0.250000  phi 1",
    ]


def test_summary_of_many_groups_says_how_many_are_left_out(result: Result):
    assert result.summary().splitlines()[-1] == "    ... and 4 more"
    assert result.summary(top=3).splitlines()[-1] == "    ... and 11 more"
    heaviest = result.names[result.ranking()[0]]
    assert result.summary(top=1).splitlines()[-2].split("  ")[2] == heaviest


@pytest.mark.parametrize("name", ["answer", "answer.npz"])
def test_save_and_load(result: Result, tmp_path, name):
    path = result.save(tmp_path / name)
    assert path == tmp_path / "answer.npz"
    with np.load(path, allow_pickle=False) as data:
        for field in ("value", "lower", "upper", "gap", "eta", "eps", "time", "iterations"):
            assert float(data[field]) == getattr(result, field)
        assert np.array_equal(data["alpha"], result.alpha)
        assert np.array_equal(data["phi"], result.phi)
        assert data["names"].tolist() == list(result.names)
        assert str(data["status"]) == "CONVERGED"
        assert str(data["solver"]) == result.solver
        assert np.array_equal(data["f"], result.potentials[0])
        assert np.array_equal(data["g"], result.potentials[1])
        arcs = data["plan_rows"], data["plan_cols"], data["plan_mass"]
        again = Plan.from_arcs(*arcs, tuple(data["plan_shape"]))
    assert np.array_equal(np.asarray(again), np.asarray(result.plan))


def test_what_a_solver_fills_in(result: Result):
    assert result.status is Status.CONVERGED
    assert (result.eta, result.eps) == (0.7, 0.0)
    assert result.solver.startswith("Exact(")
    assert result.iterations >= 1
    assert result.time > 0.0
    assert result.history[-1].upper == result.upper
    assert result.points is not None
    assert result.points[1].shape == (7, 14)
    assert result.mean_cost > 0.0


def test_what_is_proven_without_eps_is_computed_once_and_kept(tmp_path):
    X, Y, _ = frot.toy(20)
    found = frot.solve(X, Y, "all", eps=frot.relative(0.5))
    assert found.plain is None
    assert found.problem is not None
    exact = frot.solve(X, Y, "all")
    again = pickle.loads(pickle.dumps(found))
    low, high = found.unregularised
    assert low <= exact.upper
    assert exact.lower <= high
    assert high - low < 0.5 * high
    assert found.unregularised is found.unregularised
    assert again.plain == (low, high)
    fresh = frot.solve(X, Y, "all", eps=frot.relative(0.5))
    loaded = frot.load(fresh.save(tmp_path / "kept"))
    assert loaded.unregularised == pytest.approx((low, high), rel=1e-15)
    assert f"{low:.10g}" in fresh.summary()


def test_one_iteration_is_not_several():
    result = frot.solve([[0.0]], [[1.0]])
    assert replace(result, iterations=1).summary().count(", 1 iteration, ") == 1
    assert ", 2 iterations, " in replace(result, iterations=2).summary()


def test_only_convergence_is_ok():
    assert [status for status in Status if status.ok] == [Status.CONVERGED]


@pytest.mark.parametrize("status", list(Status))
def test_each_says_itself_in_a_sentence_and_by_name(status: Status):
    assert status.sentence[0].isupper()
    assert status.sentence.endswith(".")
    assert str(status) == status.name
    assert repr(status) == f"Status.{status.name}"


def test_sentences_differ():
    assert len({status.sentence for status in Status}) == len(Status)


def test_the_summary_says_what_a_methods_section_needs(tmp_path):
    X = np.random.default_rng(0).normal(size=(6, 3))
    res = frot.solve(
        X, X[:5] + 1.0, metric="cityblock", p=1.5, eta=0.25, eps=0.5, tau=(2.0, np.inf), tol=0.01,
        normalise="mean", adversary=frot.CappedSimplex(2),
    )  # fmt: skip
    again = frot.load(res.save(tmp_path / "res.npz"))
    for each in (res, again):
        text = each.summary()
        for part in (
            "metric cityblock, p 1.5", "normalise mean", "eta 0.25", "eps 0.5", "tau 2 and inf",
            "adversary CappedSimplex(k=2)", "Entropic", "tol 0.01 of the gap",
            f"frot {frot.__version__}",
        ):  # fmt: skip
            assert part in text
        assert each.to_dict()["metric"] == "cityblock"
    one = frot.solve_costs(np.eye(2)[None])
    assert "costs as given" in one.summary()
    assert "2 to 2 points in 1 group\n" in one.summary()
    assert "2 to 2 points in 1 group<" in one._repr_html_()


POINTS = np.random.default_rng(0).normal(size=(6, 4))
METHODS: dict[str, tuple[Any, list[str]]] = {
    "wasserstein": (frot.wasserstein, ["metric euclidean, p 2", "adversary Simplex", "tol 1e-09"]),
    "srw": (
        lambda X, Y: frot.srw(X, Y, k=2, tol=0.5),
        ["metric sqeuclidean, p 1", "adversary Fantope(k=2)", "tol 0.5 of the gap"],
    ),
    "max_sliced": (
        frot.max_sliced,
        ["metric sqeuclidean, p 1", "adversary one direction", "tol 1e-09", "restarts=10"],
    ),
    "sliced": (
        frot.sliced,
        ["metric sqeuclidean, p 1", "the mean over directions", "projections=200"],
    ),
    "max_min": (
        lambda X, Y: frot.max_min(X, Y, [2, 2], metric="cityblock", p=1.5),
        ["metric cityblock, p 1.5", "adversary one group, before the plan", "tol 1e-09"],
    ),
    "equitable": (
        lambda X, Y: frot.equitable(abs(X[:, None] - Y[:3]).transpose(2, 0, 1), tol=0.01),
        ["costs as given", "adversary Simplex", "tol 0.01 of the gap"],
    ),
    "member": (
        lambda X, Y: frot.solve_batch(
            X[None], Y[None], [2, 2], metric="cosine", eta=0.1, eps=0.2, tol=0.01,
            adversary=frot.CappedSimplex(2),
        )[0],
        [
            "metric cosine, p 1", "eta 0.1, eps 0.2", "adversary CappedSimplex(k=2)",
            "tol 0.01 of the gap",
        ],
    ),
    "prior": (
        lambda X, Y: frot.solve(X, Y, [2, 2], eta=1.0, prior=[3.0, 1.0]),
        ["adversary Simplex(prior=[0.75, 0.25])"],
    ),
    "ellipsoid": (
        lambda X, Y: frot.solve(X, Y, [2, 2], adversary=frot.Ellipsoid([0.5, 0.5], 0.25)),
        ["adversary Ellipsoid(centre=[0.5, 0.5], shape=[[0.25, 0], [0, 0.25]])"],
    ),
    "polytope": (
        lambda X, Y: frot.solve(X, Y, "each", adversary=frot.Polytope(np.eye(4))),
        ["adversary Polytope(vertices=array of shape (4, 4))"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore::frot.ConvergenceWarning")
def test_every_method_says_what_it_solved(name, tmp_path):
    call, parts = METHODS[name]
    result = call(POINTS, POINTS[::-1] ** 2)
    for each in (result, frot.load(result.save(tmp_path / "result.npz"))):
        for part in (*parts, "normalise none", "tau none", f"frot {frot.__version__}"):
            assert part in each.summary()
        assert all(part in each._repr_html_() for part in parts)


def test_a_set_of_ones_own_is_named_or_writes_itself():
    class Half:
        def best(self, phi):
            alpha = np.full(len(phi), 1.0 / len(phi))
            return float(alpha @ phi), alpha

    class Written(Half):
        def __repr__(self):
            return "Written(share=0.5)"

    for given, said in ((Half(), "adversary Half"), (Written(), "adversary Written(share=0.5)")):
        result = frot.solve(POINTS, POINTS + 1.0, [2, 2], adversary=given)
        assert said in result.summary().splitlines()[4]


def test_a_member_from_a_file_says_what_it_solved(tmp_path):
    batch = frot.solve_batch(POINTS[None], POINTS[None] + 1.0, [2, 2], eps=0.2, tol=0.01, tau=5.0)
    again = frot.load(batch[0].save(tmp_path / "member.npz"))
    for name in ("metric", "adversary", "tol", "version"):
        assert getattr(again, name) == getattr(batch, name) == getattr(batch[0], name)
    for name in ("tau", "totals", "mean_cost", "mass", "unregularised"):
        assert getattr(again, name) == pytest.approx(getattr(batch[0], name), rel=1e-12)


@pytest.mark.parametrize("solver", ["exact", "frank_wolfe", "linear_program", "cutting_set"])
def test_a_callback_is_called_once_an_iteration(solver):
    seen = []
    stack = np.random.default_rng(1).random((4, 12, 11))
    res = frot.solve_costs(stack, solver=solver, callback=seen.append)
    assert [now.iteration for now in seen] == list(range(1, res.iterations + 1))
    seen.clear()
    res = frot.solve_costs(stack, eps=0.01, eta=0.1, callback=seen.append)
    assert [now.iteration for now in seen] == list(range(1, res.iterations + 1))

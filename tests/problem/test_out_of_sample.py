"""Images of new points: those of the source points themselves, shifts, doors."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frot
from frot.problem import out_of_sample

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 6)), RNG.normal(size=(25, 6)) + 1.0
GROUPS = [2, 3, 1]


def taxi(u: np.ndarray, v: np.ndarray) -> float:
    return float(np.abs(u - v).sum())


def projected(res: frot.Result) -> np.ndarray:
    """Means of the rows of the plan."""
    plan = np.asarray(res.plan)
    mass = plan.sum(axis=1, keepdims=True)
    return np.divide(plan @ Y, mass, out=np.zeros((len(plan), 6)), where=mass > 0.0)


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "eta": {"eta": 0.2},
    "mean": {"normalise": "mean"},
    "cityblock": {"metric": "cityblock"},
    "cosine": {"metric": "cosine"},
    "fourth powers": {"metric": "euclidean", "p": 4.0},
    "unbalanced": {"tau": 2.0},
    "capped": {"adversary": frot.CappedSimplex(2)},
    "weights": {"a": RNG.dirichlet(np.ones(30)), "b": RNG.dirichlet(np.ones(25))},
    "a light point": {"b": np.append(np.zeros(5), np.full(20, 0.05))},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_source_points_go_to_the_means_of_their_rows(options: dict[str, Any]) -> None:
    res = frot.solve(X, Y, GROUPS, **options)
    np.testing.assert_allclose(res.transport(X), projected(res), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_with_eps_the_potentials_make_the_rows(options: dict[str, Any]) -> None:
    eps = 0.05 * frot.solve(X, Y, GROUPS, **options).mean_cost
    res = frot.solve(X, Y, GROUPS, eps=eps, tol=1e-10, **options)
    np.testing.assert_allclose(res.transport(X), projected(res), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [{"normalise": "regret"}, {"mass": 0.5}, {"tau": 3.0}])
def test_points_that_move_nothing_are_passed_over(options: dict[str, Any]) -> None:
    if "tau" in options:
        options = options | {"penalty": "tv"}
    res = frot.solve(X, Y, GROUPS, **options)
    moves = res.marginals[0] > 0.0
    assert moves.any()
    np.testing.assert_allclose(res.transport(X[moves]), projected(res)[moves], rtol=1e-12)
    assert np.isfinite(res.transport(X)).all()


def test_the_softmax_is_what_the_formula_says() -> None:
    b = np.append(0.5, np.full(24, 0.5 / 24))
    res = frot.solve(X, Y, GROUPS, b=b, eps=0.7, eta=0.3)
    new = RNG.normal(size=(4, 6))
    cost = np.zeros((4, 25))
    for weight, group in zip(res.alpha, ([0, 1], [2, 3, 4], [5]), strict=True):
        cost += weight * ((new[:, None, group] - Y[:, group]) ** 2).sum(axis=2)
    shares = b * np.exp((res.potentials[1] - cost) / 0.7)
    expected = shares @ Y / shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(res.transport(new), expected, rtol=1e-10)


def test_new_points_move_as_the_nearest_does() -> None:
    res = frot.solve(X, Y, GROUPS)
    off = 1e-3 * RNG.normal(size=X.shape)
    np.testing.assert_allclose(res.transport(X + off) - off, res.transport(X), rtol=1e-12)


def test_clouds_that_are_shifted_shift_their_neighbourhood() -> None:
    shift = np.array([5.0, -3.0, 2.0, 0.0, 1.0, 0.0])
    res = frot.solve(X, X + shift, GROUPS)
    new = RNG.normal(size=(7, 6))
    np.testing.assert_allclose(res.transport(new), new + shift, rtol=1e-12)
    smooth = frot.solve(X, X + shift, GROUPS, eps=1e-3)
    np.testing.assert_allclose(smooth.transport(X), X + shift, atol=5e-3)


def test_units_of_all_points_do_not_matter() -> None:
    new = RNG.normal(size=(5, 6))
    res = frot.solve(X, Y, GROUPS, eps=0.5)
    far = frot.solve(100.0 * X + 7.0, 100.0 * Y + 7.0, GROUPS, eps=0.5e4)
    expected = 100.0 * res.transport(new) + 7.0
    np.testing.assert_allclose(far.transport(100.0 * new + 7.0), expected, rtol=1e-5)


def test_weights_of_groups_choose_the_nearest() -> None:
    # The second feature differs between the sides, and alone has weight.
    source = np.array([[0.0, 0.0], [10.0, 1.0]])
    target = np.array([[0.0, 100.0], [10.0, 201.0]])
    res = frot.solve(source, target, "each")
    assert res.alpha.tolist() == [0.0, 1.0]
    np.testing.assert_allclose(res.transport([[0.0, 0.9]]), [[0.0, 200.9]], rtol=1e-12)


def test_all_groups_decide_between_points_that_are_as_near() -> None:
    source = np.array([[0.0, 0.0], [10.0, 0.0], [5.0, 0.0]])
    way = np.array([[0.0, 50.0], [1.0, 51.0], [-1.0, 52.0]])
    res = frot.solve(source, source + way, "each")
    assert res.alpha.tolist() == [0.0, 1.0]
    images = 3.0 * np.asarray(res.plan) @ (source + way)
    np.testing.assert_allclose(res.transport(source), images, rtol=1e-12)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    choices: list[dict[str, Any]] = [{}, {"eps": 0.5}]
    for options in choices:
        res = frot.solve(X, Y, GROUPS, **options)
        whole = res.transport(X)
        monkeypatch.setattr(out_of_sample, "AT_ONCE", 2_000)
        np.testing.assert_allclose(res.transport(X), whole, rtol=1e-12)
        monkeypatch.undo()


def test_saved_and_pickled_results_know_their_points(tmp_path: Path) -> None:
    new = RNG.normal(size=(5, 6))
    choices: list[dict[str, Any]] = [{"normalise": "mean"}, {"eps": 0.5}]
    for options in choices:
        res = frot.solve(X, Y, GROUPS, **options)
        back = frot.load(res.save(tmp_path / "res.npz"))
        np.testing.assert_array_equal(back.transport(new), res.transport(new))
        again = pickle.loads(pickle.dumps(res))
        np.testing.assert_array_equal(again.transport(new), res.transport(new))


def test_functions_are_passed_again() -> None:
    res = frot.solve(X[:8], Y[:7], GROUPS, metric=taxi)
    with pytest.raises(frot.InputError, match="metric=taxi"):
        res.transport(X)
    known = frot.solve(X[:8], Y[:7], GROUPS, metric="cityblock")
    np.testing.assert_allclose(res.transport(X, metric=taxi), known.transport(X), rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"eps": 0.5, "tol": 1e-9}])
def test_tensors_in_tensors_out(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    res = frot.solve(X, Y, GROUPS, **options)
    single = frot.solve(torch.tensor(X), torch.tensor(Y), GROUPS, **options)
    new = RNG.normal(size=(5, 6))
    images = single.transport(torch.tensor(new))
    assert torch.is_tensor(images)
    assert images.dtype == torch.float64
    np.testing.assert_allclose(images.numpy(), res.transport(new), rtol=1e-5)
    assert isinstance(single.transport(new), np.ndarray)
    assert single.transport(torch.tensor(new, dtype=torch.float32)).dtype == torch.float32


def test_tables_are_read() -> None:
    pandas = pytest.importorskip("pandas")
    res = frot.solve(X, Y, GROUPS)
    np.testing.assert_array_equal(res.transport(pandas.DataFrame(X)), res.transport(X))


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        (np.ma.masked_less(X, 0.0), "X_new: is a masked array"),
        (X[:, :5], "X_new: has 5 features, and .* have 6"),
        (np.full((2, 6), np.nan), "X_new: 12 of 12 entries are NaN"),
        (X[0], "X_new: has shape"),
        (X[:0], "X_new: has no points"),
        ("points.csv", "X_new: is the text"),
        (X + 1j, "X_new: is complex"),
    ],
)
def test_what_is_no_point_is_refused(new: Any, sentence: str) -> None:
    with pytest.raises(frot.InputError, match=sentence):
        frot.solve(X, Y, GROUPS).transport(new)


def test_points_without_an_image_are_named() -> None:
    res = frot.solve(X, Y, GROUPS, metric="cosine")
    with pytest.raises(frot.InputError, match="X_new row 1 is all zeros"):
        res.transport(np.array([[1.0] * 6, [0.0] * 6]))


def test_results_without_points_are_refused() -> None:
    results = (
        frot.solve_costs([[[0.0, 1.0], [1.0, 0.0]]]),
        frot.srw(X, Y, 2),
        frot.solve_batch(X[None], Y[None], GROUPS)[0],
    )
    for res in results:
        with pytest.raises(frot.InputError, match=r"transport: .* frot\.solve"):
            res.transport(X)

"""The contract's sentences at every door of the package; its numbers are in base/test_contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import frot
import frot.torch
from frot.correspondence import mask_score, pck, point_errors
from frot.relatives.compare import METHODS
from frot.selection import FROTSelector, pathway_test, permutation_test

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(8, 4)), RNG.normal(size=(6, 4))
STACK = RNG.random((3, 5, 6))
LABELS = np.arange(8) % 2
MASKED, MASKED_STACK = np.ma.masked_less(X, -1.0), np.ma.masked_less(STACK, 0.1)
WHOLE = (100 * X).astype(np.int64) + 2**60


def loss(x: np.ndarray, y: np.ndarray) -> Any:
    return frot.torch.FRWDLoss()(torch.as_tensor(x), torch.as_tensor(y))


POINT_DOORS: dict[str, Callable[[Any, Any], Any]] = {
    "solve": frot.solve,
    "distance": frot.distance,
    "pairwise": lambda x, y: frot.pairwise([x, y]),
    "solve_batch": lambda x, y: frot.solve_batch([x], [y]),
    "two_sample_test": lambda x, y: frot.two_sample_test(x, y, permutations=9),
    "wasserstein": frot.wasserstein,
    "srw": lambda x, y: frot.srw(x, y, 2),
    "max_sliced": frot.max_sliced,
    "sliced": frot.sliced,
    "max_min": frot.max_min,
}
COST_DOORS: dict[str, Callable[[Any], Any]] = {
    "solve_costs": frot.solve_costs,
    "equitable": frot.equitable,
}
TABLE_DOORS: dict[str, Callable[[Any, Any], Any]] = {
    "selector": lambda x, y: FROTSelector().fit(x, y),
    "permutation test": lambda x, y: permutation_test(x, y),
    "pathway test": lambda x, y: pathway_test(x, y, [[0, 1], [2, 3]]),
}


def test_every_relative_is_a_door():
    assert {*METHODS} - {"frot"} <= {*POINT_DOORS, *COST_DOORS}


@pytest.mark.parametrize("door", POINT_DOORS.values(), ids=list(POINT_DOORS))
def test_points(door):
    with pytest.raises(frot.InputError, match="is a masked array; drop the masked entries"):
        door(MASKED, Y)
    with pytest.raises(frot.InputError, match=r"has integers beyond 2\^53"):
        door(WHOLE, Y)
    with pytest.raises(frot.InputError, match="NaN or infinite"):
        door(np.where(np.eye(8, 4) > 0.0, np.inf, X), Y)


@pytest.mark.parametrize("door", COST_DOORS.values(), ids=list(COST_DOORS))
def test_costs(door):
    infinite, light = STACK.copy(), np.array([1e-14, 0.25, 0.25, 0.25, 0.25])
    infinite[0, 1, 2] = np.inf
    with pytest.raises(frot.InputError, match=r"C\[0, 1, 2\]; .* a cost larger than all others"):
        door(infinite)
    for scale in (1e-150, 1e150):
        with pytest.raises(frot.InputError, match=r"on average, .*; rescale"):
            door(scale * STACK)
    with pytest.raises(frot.InputError, match="is a masked array"):
        door(MASKED_STACK)
    dear = STACK.copy()
    dear[0, 0] = 1e22
    with pytest.raises(frot.InputError, match=r"times the mean, .*; rescale it"):
        frot.solve_costs(dear, light, normalise_weights=True)


@pytest.mark.parametrize("scale", [1e-90, 1e90])
@pytest.mark.parametrize(
    "name", ["solve", "pairwise", "solve_batch", "two_sample_test", "wasserstein", "max_min"]
)
def test_points_whose_costs_are_out_of_range(name, scale):
    with pytest.raises(frot.InputError, match="rescale"):
        POINT_DOORS[name](scale * X, scale * Y)


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_the_loss(scale):
    with pytest.raises(frot.InputError, match=r"^x, y: the costs.*rescale"):
        loss(scale * X, scale * Y)


@pytest.mark.parametrize("door", TABLE_DOORS.values(), ids=list(TABLE_DOORS))
def test_tables(door):
    with pytest.raises(frot.InputError, match="X: is a masked array"):
        door(MASKED, LABELS)
    with pytest.raises(frot.InputError, match="y: is a masked array"):
        door(X, np.ma.masked_equal(LABELS, 0))
    with pytest.raises(frot.InputError, match=r"X: has integers beyond 2\^53"):
        door(WHOLE, LABELS)


def test_groups():
    with pytest.raises(frot.InputError, match="group 'g0': is a masked array"):
        frot.solve(X, Y, [np.ma.masked_equal([0, 1], 1)])


def test_scores_of_matches():
    points = np.ma.masked_less([[1.0, 2.0], [3.0, 4.0]], 2.0)
    for call in (
        lambda: point_errors(points, points, 10.0),
        lambda: pck([np.ma.masked_less([0.1, 0.2], 0.15)]),
        lambda: mask_score(np.ma.masked_equal([[True, False]], True), [[True, False]]),
    ):
        with pytest.raises(frot.InputError, match="is a masked array"):
            call()


@pytest.mark.parametrize("name", ["a", "b"])
def test_light_weights_are_said_once(name):
    light = np.array([1e-17, *np.full(5, 0.2)])
    cut = {"a": X[:6], "b": Y[:6]}
    weights: dict[str, Any] = {name: light}
    with pytest.warns(frot.DataWarning, match=f"{name}: 1 of 6 weights are below 1e-15") as heard:
        result = frot.solve(cut["a"], cut["b"], **weights)
    assert len(heard) == 1
    assert result.status is frot.Status.CONVERGED


@pytest.mark.parametrize("options", [{}, {"eta": 0.1}, {"eps": 0.1}, {"eps": 0.1, "eta": 0.1}])
def test_no_cost_at_all(options):
    same = np.ones((3, 2))
    result = frot.solve(same, same, **options)
    assert result.status is frot.Status.CONVERGED
    assert result.value == pytest.approx(options.get("eta", 0.0) * np.log(2.0), abs=1e-14)
    batch = frot.solve_batch([same], [same], **{"eps": 0.1, **options})
    assert batch.status == (frot.Status.CONVERGED,)


def test_a_set_and_itself():
    cloud = np.random.default_rng(0).normal(size=(200, 5))
    result = frot.solve(cloud, cloud)
    assert result.status is frot.Status.CONVERGED
    assert result.value == 0.0
    assert result.gap <= 1e-100


@pytest.mark.parametrize("option", ["eta", "tau"])
def test_amounts_beside_which_costs_are_rounding_are_refused(option):
    X = np.random.default_rng(0).normal(size=(4, 3))
    large: dict[str, Any] = {option: 1e30}
    for call in (
        lambda: frot.solve(X, X + 1.0, **large),
        lambda: frot.solve_costs(np.ones((2, 4, 4)), **large),
        lambda: frot.solve_batch(X[None], X[None] + 1.0, eps=0.1, **large),
        *([lambda: frot.two_sample_test(X, X + 1.0, permutations=19, **large)] * (option == "eta")),
    ):
        with pytest.raises(frot.InputError, match=rf"^{option}: 1e\+\d\d is too large"):
            call()


@pytest.mark.parametrize("debias", [False, True])
@pytest.mark.parametrize("option", ["eta", "eps", "tau"])
def test_the_loss_refuses_amounts_beside_which_costs_are_rounding(option, debias):
    torch = pytest.importorskip("torch")
    from frot.torch import FRWDLoss

    x = torch.as_tensor(np.random.default_rng(0).normal(size=(4, 3)))
    large: dict[str, Any] = {option: 1e308}
    loss = FRWDLoss([1, 2], debias=debias, **large)
    with pytest.raises(
        frot.InputError, match=rf"^{option}: 1e\+308 is too large to see costs of x"
    ):
        loss(x, x + 1.0)

"""One clear error each, before any work."""

from __future__ import annotations

import numpy as np
import pytest

import frot

X, Y = np.zeros((3, 2)), np.ones((4, 2))
STACK = np.ones((2, 3, 4))
POINTS = (
    lambda X, Y, **more: frot.srw(X, Y, k=1, **more),
    frot.max_sliced,
    frot.sliced,
    frot.max_min,
    frot.wasserstein,
)
COSTS = (frot.equitable,)


@pytest.mark.parametrize("k", [0, -1, 3, 1.5, np.nan, "two", True])
def test_k_out_of_range(k):
    with pytest.raises(frot.InputError, match=r"^k: "):
        frot.srw(X, Y, k=k)


@pytest.mark.parametrize("method", POINTS)
def test_a_cost_stack_where_points_are_needed(method):
    with pytest.raises(frot.InputError, match=r"X: has 3 dimensions.*points"):
        method(STACK, STACK)


@pytest.mark.parametrize("method", POINTS)
def test_points_and_weights_are_checked_as_by_solve(method):
    with pytest.raises(frot.InputError, match=r"have 2 and 3 features"):
        method(X, np.ones((4, 3)))
    with pytest.raises(frot.InputError, match=r"Y: 1 of 8 entries are NaN"):
        method(X, np.where(np.arange(8).reshape(4, 2) == 5, np.nan, Y))
    with pytest.raises(frot.InputError, match=r"a: weights must be >= 0"):
        method(X, Y, a=[0.5, 1.0, -0.5])
    with pytest.raises(frot.InputError, match=r"^b: has shape"):
        method(X, Y, b=[1.0])
    with pytest.raises(frot.InputError, match=r"^X: has shape \(3,\)"):
        method(np.zeros(3), Y)


@pytest.mark.parametrize("method", COSTS)
def test_costs_and_weights_are_checked_as_by_solve_costs(method):
    with pytest.raises(frot.InputError, match=r"C: has shape \(3, 4\)"):
        method(STACK[0])
    with pytest.raises(frot.InputError, match=r"C: .* NaN"):
        method(STACK * np.nan)
    with pytest.raises(frot.InputError, match=r"masses differ"):
        method(STACK, [1.0, 1.0, 1.0], np.full(4, 0.25))
    with pytest.raises(frot.InputError, match=r"names: 1 names"):
        method(STACK, names=["a"])


@pytest.mark.parametrize(
    ("option", "value"), [("tol", -1.0), ("max_iter", 0), ("time_limit", 0.0), ("max_iter", 1.5)]
)
@pytest.mark.parametrize("method", [*POINTS[:2], *COSTS])
def test_limits(method, option, value):
    arguments = (STACK,) if method in COSTS else (X, Y)
    with pytest.raises(frot.InputError, match=f"^{option}: "):
        method(*arguments, **{option: value})


def test_negative_costs_cannot_be_shared():
    with pytest.raises(frot.InputError, match=r"C: costs must be >= 0.*C\[0, 1, 2\] = -1"):
        frot.equitable(np.where(np.arange(24).reshape(2, 3, 4) == 6, -1.0, STACK))


def test_groups_of_ordinary_transport():
    with pytest.raises(frot.InputError, match=r"^groups: .* use frot\.solve"):
        frot.wasserstein(X, Y, groups=[1, 1])


def test_how_many_directions():
    with pytest.raises(frot.InputError, match=r"^restarts: "):
        frot.max_sliced(X, Y, restarts=0)
    with pytest.raises(frot.InputError, match=r"^projections: must be a whole number >= 2"):
        frot.sliced(X, Y, projections=1)

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
    frot.generalised_max_sliced,
    frot.sliced,
    frot.max_min,
    frot.wasserstein,
)
COSTS = (frot.cutting_set, frot.equitable)


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
@pytest.mark.parametrize("method", [*POINTS[:3], *COSTS])
def test_limits(method, option, value):
    arguments = (STACK,) if method in COSTS else (X, Y)
    with pytest.raises(frot.InputError, match=f"^{option}: "):
        method(*arguments, **{option: value})


def test_negative_costs_cannot_be_shared():
    with pytest.raises(frot.InputError, match=r"C: costs must be >= 0.*C\[0, 1, 2\] = -1"):
        frot.equitable(np.where(np.arange(24).reshape(2, 3, 4) == 6, -1.0, STACK))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: frot.CappedSimplex(0), r"^k: "),
        (lambda: frot.Box([0.0, 2.0], [1.0, 1.0]), r"box is empty, low\[1\]"),
        (lambda: frot.Box([0.0, 0.0], [1.0, np.inf]), r"high: .* infinite"),
        (lambda: frot.Box([0.0], [1.0, 1.0]), r"low, high"),
        (lambda: frot.Polytope([]), r"vertices: .*empty"),
        (lambda: frot.Polytope([1.0]), r"vertices: has shape"),
        (lambda: frot.Polyhedron([[1.0]], [1.0]), r"unbounded"),
        (lambda: frot.Polyhedron([[1.0], [-1.0]], [0.0, -1.0]), r"empty"),
        (lambda: frot.Polyhedron([[1.0]], [1.0, 2.0]), r"A, b: 1 rows"),
        (lambda: frot.Ellipsoid([0.0], np.ones((2, 2))), r"shape: has 2 rows"),
    ],
)
def test_sets_that_are_empty_or_unbounded(make, message):
    with pytest.raises(frot.InputError, match=message):
        make()


class Endless:
    def best(self, phi):
        return np.inf, np.full(len(phi), np.inf)


@pytest.mark.parametrize(
    ("adversary", "message"),
    [
        (frot.CappedSimplex(3), r"CappedSimplex\(k=3\) is empty for 2 groups"),
        (frot.Box([0.0], [1.0]), r"weights of 1 groups, but there are 2"),
        (frot.Simplex(eta=1.0), r"takes no entropy"),
        (frot.CappedSimplex, r"has no best"),
        ("simplex", r"has no best"),
        (Endless(), r"empty or unbounded"),
    ],
)
def test_sets_that_do_not_fit(adversary, message):
    with pytest.raises(frot.InputError, match=message):
        frot.cutting_set(STACK, adversary=adversary)


def test_groups_of_ordinary_transport():
    with pytest.raises(frot.InputError, match=r"^groups: .* use frot\.solve"):
        frot.wasserstein(X, Y, groups=[1, 1])


def test_defining_functions():
    with pytest.raises(frot.InputError, match=r"defining_function: 'quintic' is neither"):
        frot.generalised_max_sliced(X, Y, "quintic")
    with pytest.raises(frot.InputError, match=r"one finite number per point"):
        frot.generalised_max_sliced(X, Y, lambda points, theta: points)
    with pytest.raises(frot.InputError, match=r"could not be computed"):
        frot.generalised_max_sliced(X, Y, lambda points, theta: points @ theta[:1])
    with pytest.raises(frot.InputError, match=r"^restarts: "):
        frot.max_sliced(X, Y, restarts=0)

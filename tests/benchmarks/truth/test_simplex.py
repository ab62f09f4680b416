from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from benchmarks._fuzz.truth.simplex import Arc, Optimum, check_optimum, minimise_worst
from tests.reference import exact_two_by_two, linear_program


def whole_arcs(stack: np.ndarray) -> list[Arc]:
    """Arcs of costs that are whole numbers over 2^60."""
    count, n, m = stack.shape
    unit = 2**60
    return [
        Arc(i, j, tuple(int(Fraction(stack[group, i, j]) * unit) for group in range(count)))
        for i in range(n)
        for j in range(m)
    ]


def draw(seed: int) -> tuple[np.ndarray, list[int], list[int]]:
    """Costs, whole or not, and masses of equal sums, tied or not."""
    rng = np.random.default_rng(seed)
    count, n, m = int(rng.integers(1, 6)), int(rng.integers(1, 9)), int(rng.integers(1, 9))
    stack = rng.integers(0, 4, (count, n, m)) if seed % 2 else rng.random((count, n, m))
    a, b = ((np.ones(k, int) if seed % 3 else rng.integers(1, 99, k)) for k in (n, m))
    left, right = [int(x) * int(b.sum()) for x in a], [int(x) * int(a.sum()) for x in b]
    return stack.astype(float), left, right


@pytest.mark.parametrize("seed", range(40))
def test_it_agrees_with_highs_and_is_proven(seed):
    stack, a, b = draw(seed)
    arcs = whole_arcs(stack)
    found = minimise_worst(a, b, arcs)
    check_optimum(a, b, arcs, found)
    total = sum(a)
    value = float(found.value / total) / 2**60
    weights = (np.array([x / total for x in side]) for side in (a, b))
    assert value == pytest.approx(linear_program(stack, *weights), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_two_by_two_is_exact(seed):
    rng = np.random.default_rng(seed)
    stack = rng.random((int(rng.integers(1, 5)), 2, 2))
    shares = rng.integers(1, 64, 2)
    a, b = ([int(k), 64 - int(k)] for k in shares)
    expected = exact_two_by_two(stack, np.array(a) / 64.0, np.array(b) / 64.0)
    assert minimise_worst(a, b, whole_arcs(stack)).value == expected * 64 * 2**60


@pytest.mark.parametrize("seed", range(10))
def test_ties_end_at_an_optimal_assignment(seed):
    rng = np.random.default_rng(seed)
    cost = rng.integers(0, 3, (7, 7))
    arcs = [Arc(i, j, (int(cost[i, j]),)) for i in range(7) for j in range(7)]
    assert minimise_worst([1] * 7, [1] * 7, arcs).value == cost[linear_sum_assignment(cost)].sum()


def test_arcs_side_by_side():
    # One arc is dear in one group each; sharing halves both.
    arcs = [Arc(0, 0, (2, 0)), Arc(0, 0, (0, 2))]
    found = minimise_worst([1], [1], arcs)
    assert (found.value, found.mass) == (1, {0: Fraction(1, 2), 1: Fraction(1, 2)})


@pytest.mark.parametrize(("a", "b"), [([1], [2]), ([0, 1], [1]), ([-1, 2], [1])])
def test_masses_that_do_not_fit_are_refused(a, b):
    arcs = [Arc(i, j, (1,)) for i in range(len(a)) for j in range(len(b))]
    with pytest.raises(ValueError, match="equal sums"):
        minimise_worst(a, b, arcs)


class TestTheProofFails:
    """Spoil an optimum in one way each."""

    @pytest.fixture
    def solved(self) -> tuple[list[int], list[int], list[Arc], Optimum]:
        stack, a, b = draw(6)
        arcs = whole_arcs(stack)
        return a, b, arcs, minimise_worst(a, b, arcs)

    @pytest.mark.parametrize(
        ("change", "complaint"),
        [
            (lambda o: {"value": o.value - 1}, "a gap"),
            (lambda o: {"mass": {at: 2 * x for at, x in o.mass.items()}}, "marginals"),
            (lambda o: {"alpha": tuple(2 * x for x in o.alpha)}, "sum to one"),
            (lambda o: {"alpha": (o.alpha[0] + 1, -1, *o.alpha[2:])}, "below zero"),
            (lambda o: {"f": tuple(x + 1 for x in o.f)}, "above a cost"),
            (lambda o: {"f": tuple(x - 1 for x in o.f)}, "a gap"),
        ],
    )
    def test_it(self, solved, change, complaint):
        a, b, arcs, found = solved
        with pytest.raises(AssertionError, match=complaint):
            check_optimum(a, b, arcs, dataclasses.replace(found, **change(found)))

    def test_masses_below_zero(self, solved):
        a, b, arcs, found = solved
        ends = {(arcs[at].row, arcs[at].col): at for at in range(len(arcs))}
        mass = {ends[i, j]: Fraction(0) for i in range(len(a)) for j in range(len(b))} | found.mass
        # Around a square, so that the marginals stay right.
        for (i, j), sign in {(0, 0): 1, (0, 1): -1, (1, 1): 1, (1, 0): -1}.items():
            mass[ends[i, j]] += sign * 10**6 * sum(a)
        with pytest.raises(AssertionError, match="masses below zero"):
            check_optimum(a, b, arcs, dataclasses.replace(found, mass=mass))

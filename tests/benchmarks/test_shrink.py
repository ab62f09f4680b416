"""Shrinking: what is left fails as the whole did, and nothing more can be taken away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks._fuzz.case import Case, CostProblem, PointProblem
from benchmarks._fuzz.doors import draw_case
from benchmarks._fuzz.shrink import shrink


def points_case(**options: Any) -> Case:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))
    X[3, 2] = 1e6
    a = rng.dirichlet(np.ones(6))
    problem = PointProblem(X, Y, [[0, 1], [2], [3]], a=a)
    return Case("plain points", "solve", (X, Y), {"a": a, **options}, (problem,))


def test_points_groups_and_options_go():
    case = points_case(tol=0.1, prior=np.ones(3), eta=0.123456)
    small = shrink(case, lambda one: bool((np.abs(one.args[0]) > 1e5).any()))
    assert small.args[0].tolist() == [[1e6]]
    assert small.args[1].shape == (1, 1)
    assert small.options == {"groups": [[0]]}
    assert small.problems[0].shape == (1, 1, 1)


def test_what_matters_stays():
    case = points_case(eta=0.123456, prior=np.array([1.0, 2.0, 3.0]))
    small = shrink(case, lambda one: len(one.options.get("prior", ())) == 2)
    assert small.problems[0].shape[0] == len(small.options["prior"]) == 2
    # The entropy is not needed for this.
    assert "eta" not in small.options


def test_costs_lose_digits():
    stack = np.random.default_rng(0).random((2, 3, 3))
    stack[0, 0, 0] = np.inf
    case = Case("forbidden arcs", "solve_costs", (stack,), {}, (CostProblem(stack),))
    small = shrink(case, lambda one: bool(np.isinf(one.args[0]).any() and one.args[0].size > 1))
    assert small.args[0].size == 2
    assert len(small.code()) < 50


def test_members_of_a_batch_go():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 5, 2))
    a = rng.dirichlet(np.ones(4), size=3)
    problems = tuple(PointProblem(x, y, [[0], [1]], a=w) for x, y, w in zip(X, Y, a, strict=True))
    case = Case("plain points", "solve_batch", (X, Y), {"a": a, "eps": 0.1}, problems)
    small = shrink(case, lambda one: one.args[0].shape[1] >= 2)
    assert small.args[0].shape == (1, 2, 1)


@pytest.mark.parametrize("kind", ["plain points", "big costs", "light points", "single point"])
def test_calls_stay_calls(kind):
    # Every candidate on the way is well-formed, or is passed over.
    for number in range(6):
        case = draw_case(np.random.default_rng([3, number]), kind)
        if case.door == "pairwise":
            continue
        seen = []

        def look(one: Case, seen: list[Case] = seen) -> bool:
            seen.append(one)
            return len(seen) < 40

        shrink(case, look)
        for one in seen:
            for problem in one.problems:
                assert problem.program.shape == problem.shape


def test_clouds_are_left_alone():
    case = Case("plain points", "pairwise", ([np.zeros((1, 1))],), {}, ())
    assert shrink(case, lambda one: True) is case

"""Calls that went wrong once, kept so that they never do again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import frot

from .case import Case, CostProblem, PointProblem, Problem
from .options import excuses

__all__ = ["REPORTED"]


def _costs(stack: Any, **options: Any) -> Case:
    stack = np.asarray(stack, dtype=float)
    problem = CostProblem(stack, options.get("a"), options.get("b"))
    return _case("solve_costs", (stack,), options, problem)


def _points(X: Any, Y: Any, members: Any = None, **options: Any) -> Case:
    X, Y = np.asarray(X, dtype=float), np.asarray(Y, dtype=float)
    every = [[at] for at in range(X.shape[1])] if members is None else members
    meant = {name: options[name] for name in ("a", "b", "metric") if name in options}
    problem = PointProblem(X, Y, every, **meant)
    if members is not None:
        options["groups"] = members
    return _case("solve", (X, Y), options, problem)


def _case(door: str, args: tuple[Any, ...], options: dict[str, Any], problem: Problem) -> Case:
    return Case("reported", door, args, options, (problem,), excused=excuses(options))


def _small_eps() -> Case:
    rng = np.random.default_rng(33)
    X, Y = rng.normal(size=(20, 6)), rng.normal(size=(13, 6)) + 0.3
    return _points(X, Y, [[0, 1], [2, 3], [4, 5]], eps=frot.relative(1e-4))


def _near_duplicates(noise: float, **options: Any) -> Case:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 3))
    Y = X[rng.permutation(10)] + noise * rng.normal(size=X.shape)
    return _points(X, Y, **options)


def _tiny_weights(seed: int, method: Any) -> Case:
    rng = np.random.default_rng(seed)
    a, b = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(5))
    a[:2] *= 1e-12
    X, Y = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    X[:2] += 1e6
    options = {"a": a / a.sum(), "b": b, "solver": frot.LinearProgram(method=method)}
    return _points(X, Y, **options)


def _weight_zero(**options: Any) -> Case:
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    X[0] = 1e7
    return _points(X, Y, a=np.array([0.0, 0.5, 0.25, 0.25]), **options)


def _one_arc_shut() -> Case:
    stack = np.random.default_rng(0).random((1, 4, 6))
    stack[0, 3, 3] = np.inf
    return _costs(stack)


def _batch(X: Any, Y: Any, **options: Any) -> Case:
    X, Y = np.asarray(X, dtype=float), np.asarray(Y, dtype=float)
    every = [list(range(X.shape[2]))]
    sides = {name: options.get(name, [None] * len(X)) for name in ("a", "b")}
    problems = tuple(
        PointProblem(x, y, every, a=a, b=b)
        for x, y, a, b in zip(X, Y, sides["a"], sides["b"], strict=True)
    )
    return Case("reported", "solve_batch", (X, Y), {"groups": "all", **options}, problems)


def _loss(number: Any, **options: Any) -> Case:
    X, Y = np.array([[0.1, -1.0]], dtype=number), np.array([[-0.9, -1.0]], dtype=number)
    metric = {name: options[name] for name in ("metric",) if name in options}
    problem = PointProblem(X, Y, [[0, 1]], **metric)
    options = {"groups": "all", **options}
    return Case("reported", "FRWDLoss", (X, Y, None, None), options, (problem,))


def _light_on_a_line() -> Case:
    b, eps = np.array([1.0, 4e-15]), frot.relative(0.0314)
    return _points([[2.0]], [[0.7], [8e5]], b=b, metric="cityblock", eps=eps)


def _max_min_without_weight() -> Case:
    X, Y = np.array([[2.0, 0.7], [-2.0, 1.0]]), np.array([[0.7, -0.7], [-0.8, -1.0]])
    b = np.array([0.0, 1.0])
    problem = PointProblem(X, Y, [[0, 1]], b=b)
    return _case("max_min", (X, Y), {"b": b, "groups": "all"}, problem)


def _equitable_without_weight() -> Case:
    stack, b = np.array([[[0.5, 0.1], [0.1, 0.7]]]), np.array([0.0, 1.0])
    return _case("equitable", (stack,), {"b": b}, CostProblem(stack, b=b))


REPORTED: tuple[Callable[[], Case], ...] = (
    lambda: _costs(
        [[[1e4, 0.0], [1e4, 3.0], [3.0, 2.0]], [[0.0, 0.0], [1.0, 1e4], [2.0, 1.0]]]
    ),
    lambda: _points([[1e4], [0.0]], [[1.0], [2.0]], a=np.array([1e-9, 1.0 - 1e-9])),
    _weight_zero,
    lambda: _weight_zero(eps=frot.relative(0.05)),
    lambda: _weight_zero(eta=1.0, eps=0.1),
    _small_eps,
    lambda: _near_duplicates(1e-6),
    lambda: _near_duplicates(1e-9),
    lambda: _near_duplicates(1e-12),
    lambda: _near_duplicates(1e-6, eps=frot.relative(1e-3)),
    lambda: _tiny_weights(0, "simplex"),
    lambda: _tiny_weights(1, "ipm"),
    # Forbidden arcs
    lambda: _costs([[[np.inf, 0.3], [0.5, 0.7]]], eps=0.5),
    _one_arc_shut,
    # Stopped before the first step
    lambda: _costs([[[0.6]]], time_limit=1e-9),
    lambda: _points([[-1.0]], [[-0.5], [-2.0]], b=np.array([0.0, 1.0]), time_limit=1e-9),
    lambda: _points([[1.3, 8.2], [0.7, 5.2]], [[0.9, 8.5], [0.4, 6.2]], eps=6.0, max_iter=1),
    # Points that weigh little or nothing
    lambda: _costs([[[0.1, 2e8]]], b=np.array([1.0, 1e-300]), eps=0.04),
    lambda: _batch([[[0.9, -1.0]]], [[[-9e8, -1e9], [-1.0, 1.0]]], b=np.array([[0.0, 1.0]])),
    lambda: _batch([[[-0.7], [1e8]]], [[[1.0]]], a=np.array([[1.0, 5e-15]])),
    _light_on_a_line,
    _max_min_without_weight,
    _equitable_without_weight,
    # Scales
    lambda: _batch([[[-1e20]]], [[[2e20]]], eps=1e-6),
    # The loss
    lambda: _loss(np.float32, metric="cosine"),
    lambda: _loss(np.float64, eta=0.1, eps=0.0, subgradient=True, prior=np.ones(1)),
)  # fmt: skip

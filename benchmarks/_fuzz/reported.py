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
    problem = PointProblem(X, Y, every, a=options.get("a"), b=options.get("b"))
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
)  # fmt: skip

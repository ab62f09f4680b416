"""A smaller call that goes wrong in the same way: fewer points, groups, options and digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .case import Case, CostProblem, PointProblem, Problem

__all__ = ["shrink"]

# Options that a call can do without, in the order in which they are tried.
SPARE = ("start", "callback", "prior", "tol", "max_iter", "time_limit", "normalise", "solver",
         "debias", "p", "metric", "eta", "eps", "a", "b")  # fmt: skip


def shrink(case: Case, still_fails: Callable[[Case], bool]) -> Case:
    """Return the smallest call found that still fails, taking away one thing after another."""
    if case.door == "pairwise" or not case.problems:
        return case
    while True:
        for smaller in _smaller(case):
            if len(smaller.code()) < len(case.code()) and _fails(smaller, still_fails):
                case = smaller
                break
        else:
            return case


def _fails(case: Case, still_fails: Callable[[Case], bool]) -> bool:
    try:
        return still_fails(case)
    except Exception:
        # What is left is no problem any more: no weight, no arc, a shape that does not fit.
        return False


def _smaller(case: Case) -> Iterator[Case]:
    """Yield calls with one thing less, the largest things first."""
    count, n, m = case.problems[0].shape
    if len(case.problems) > 1:
        for at in range(len(case.problems)):
            yield _made(case, case.problems[:at] + case.problems[at + 1 :])
    for name in SPARE:
        if name in case.options:
            yield _without(case, name)
    for axis, size in ((1, n), (2, m), (0, count)):
        for at in range(size if size > 1 else 0):
            yield from _dropped(case, axis, at)
    for digits in (1, 2, 3, 5):
        yield _made(case, tuple(_rounded(problem, digits) for problem in case.problems))
        for name in ("eta", "eps"):
            if isinstance(case.options.get(name), float):
                short = _digits(np.array(case.options[name]), digits).item()
                yield replace(case, options={**case.options, name: short})


def _without(case: Case, name: str) -> Case:
    options = {key: value for key, value in case.options.items() if key != name}
    changed: dict[str, Any] = {
        "a": {"a": None},
        "b": {"b": None},
        "normalise": {"normalise": "none"},
        "metric": {"metric": "sqeuclidean"},
        "p": {"p": 1.0},
    }.get(name, {})
    problems = tuple(replace(problem, **changed) for problem in case.problems)
    return _made(replace(case, options=options), problems)


def _dropped(case: Case, axis: int, at: int) -> Iterator[Case]:
    """Leave out a group (0), a row (1) or a column (2) of all problems."""
    options = dict(case.options)
    if axis == 0:
        if "adversary" in options:
            return
        if "prior" in options:
            options["prior"] = np.delete(options["prior"], at)
    options.pop("start", None)
    problems = tuple(_drop(problem, axis, at) for problem in case.problems)
    yield _made(replace(case, options=options), problems)


def _drop(problem: Problem, axis: int, at: int) -> Problem:
    a, b = problem.a, problem.b
    if axis == 1 and a is not None:
        a = _summing_to_one(np.delete(a, at))
    if axis == 2 and b is not None:
        b = _summing_to_one(np.delete(b, at))
    if isinstance(problem, CostProblem):
        return replace(problem, stack=np.delete(problem.stack, at, axis=axis), a=a, b=b)
    X = np.delete(problem.X, at, axis=0) if axis == 1 else problem.X
    Y = np.delete(problem.Y, at, axis=0) if axis == 2 else problem.Y
    members = [list(group) for group in problem.members]
    if axis == 0:
        del members[at]
        used = sorted({feature for group in members for feature in group})
        X, Y = X[:, used], Y[:, used]
        members = [[used.index(feature) for feature in group] for group in members]
    return replace(problem, X=X, Y=Y, members=members, a=a, b=b)


def _rounded(problem: Problem, digits: int) -> Problem:
    a, b = (
        None if side is None else _summing_to_one(_digits(side, digits))
        for side in (problem.a, problem.b)
    )
    if isinstance(problem, CostProblem):
        return replace(problem, stack=_digits(problem.stack, digits), a=a, b=b)
    assert isinstance(problem, PointProblem)
    return replace(problem, X=_digits(problem.X, digits), Y=_digits(problem.Y, digits), a=a, b=b)


def _digits(values: np.ndarray, digits: int) -> np.ndarray:
    """Keep some significant digits of every number."""
    short = [float(f"{value:.{digits - 1}e}") for value in values.ravel().tolist()]
    return np.array(short).reshape(values.shape).astype(values.dtype)


def _summing_to_one(weights: np.ndarray) -> np.ndarray:
    return weights if abs(weights.sum() - 1.0) < 1e-6 else weights / weights.sum()


def _made(case: Case, problems: tuple[Problem, ...]) -> Case:
    """The same call on other problems."""
    options = dict(case.options)
    first = problems[0]
    batch = case.door == "solve_batch"
    if case.door != "FRWDLoss":
        for name in ("a", "b"):
            sides = [getattr(problem, name) for problem in problems]
            if sides[0] is None:
                options.pop(name, None)
            else:
                options[name] = np.stack(sides) if batch else sides[0]
    if isinstance(first, CostProblem):
        return replace(case, args=(first.stack,), options=options, problems=problems)
    if case.door != "wasserstein":
        options["groups"] = [list(group) for group in first.members]
    args: tuple[Any, ...] = (first.X, first.Y)
    if batch:
        parts: Any = problems
        args = np.stack([part.X for part in parts]), np.stack([part.Y for part in parts])
    if case.door == "FRWDLoss":
        args = (first.X, first.Y, first.a, first.b)
    return replace(case, args=args, options=options, problems=problems)

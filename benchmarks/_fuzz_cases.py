"""Random well-formed problems of every kind, each with the costs and weights that it means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

import frot

__all__ = ["Case", "random_case"]

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Case:
    """One call of the library: ``getattr(frot, call)(*args, **options)``.

    `complaint` says what is wrong with it on purpose. A well-formed case has none; it carries the
    cost stack and the weights it means, computed without frot.
    """

    call: str
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    complaint: str = ""
    stack: np.ndarray | None = None
    a: np.ndarray | None = None
    b: np.ndarray | None = None
    power: float = 1.0
    # What rounding of the points' coordinates may do to a cost.
    tiny: float = 0.0

    def run(self) -> Any:
        """Make the call."""
        return getattr(frot, self.call)(*self.args, **self.options)

    def describe(self) -> str:
        """Say in a line what is called, and on what."""
        shown = {
            name: value if np.isscalar(value) or name == "solver" else f"<{type(value).__name__}>"
            for name, value in self.options.items()
        }
        return f"frot.{self.call}: {self.note}; {shown}"


def random_case(rng: Rng) -> Case:
    """Draw a well-formed problem with random options."""
    problem = _points_case(rng) if rng.random() < 0.5 else _costs_case(rng)
    if problem.call == "distance":
        return problem
    assert problem.stack is not None
    level = float(np.abs(problem.stack).mean()) or 1.0
    options = dict(problem.options) | _solver_options(rng, level, problem.stack.shape)
    return replace(problem, options=options, note=f"{problem.note} {problem.stack.shape}")


# Sizes and weights


def _size(rng: Rng) -> int:
    sizes = [1, 2, 3, 5, 8, 12, 20, 40, 80, 150]
    return int(rng.choice(sizes, p=[0.08, 0.1, 0.12, 0.17, 0.15, 0.12, 0.1, 0.08, 0.05, 0.03]))


def _scale(rng: Rng) -> float:
    if rng.random() < 0.5:
        return 1.0
    if rng.random() < 0.1:
        return float(rng.choice([1e-100, 1e-30, 1e30, 1e100]))
    return float(10.0 ** rng.uniform(-6, 6))


def _weights(rng: Rng, size: int) -> tuple[Any, np.ndarray]:
    """Weights as a user would pass them, and what they mean."""
    uniform = np.full(size, 1.0 / size)
    kind = rng.choice(["none", "dirichlet", "zeros", "tiny", "ties", "float32", "point"])
    if kind == "none":
        return None, uniform
    if kind == "float32":
        passed: Any = uniform.astype(np.float32)
    elif kind == "point":
        passed = np.eye(size)[rng.integers(size)]
    elif kind == "ties":
        counts = rng.integers(1, 4, size)
        passed = counts / counts.sum()
    else:
        passed = rng.dirichlet(np.ones(size))
        if kind == "zeros":
            passed[rng.random(size) < 0.4] = 0.0
        if kind == "tiny":
            passed[rng.random(size) < 0.5] *= 10.0 ** rng.uniform(-14, -3)
        if passed.sum() == 0.0:
            passed = np.eye(size)[0]
        passed = passed / passed.sum()
    meant = np.asarray(passed, dtype=float)
    return (passed.tolist() if rng.random() < 0.2 else passed), meant / meant.sum()


def _sides(rng: Rng, n: int, m: int) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    (a, a_meant), (b, b_meant) = _weights(rng, n), _weights(rng, m)
    options: dict[str, Any] = {}
    if rng.random() < 0.1:
        a, b = 3.0 * a_meant, 0.2 * b_meant
        options["normalise_weights"] = True
    if a is not None:
        options["a"] = a
    if b is not None:
        options["b"] = b
    return options, a_meant, b_meant


# Costs


def _centred(stack: np.ndarray) -> np.ndarray:
    stack = stack - stack.mean(axis=1, keepdims=True)
    return stack - stack.mean(axis=2, keepdims=True)


def _clustered(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    base, noise = rng.random(shape[1:]), rng.normal(size=shape)
    return base + 0.01 * noise


STACKS: dict[str, Callable[[Rng, tuple[int, ...]], np.ndarray]] = {
    "uniform": lambda rng, shape: rng.random(shape),
    "normal": lambda rng, shape: rng.normal(size=shape),
    "negative": lambda rng, shape: -rng.exponential(size=shape),
    "integers": lambda rng, shape: rng.integers(0, 4, shape).astype(float),
    "signs": lambda rng, shape: rng.choice([-1.0, 1.0], shape),
    "sparse": lambda rng, shape: rng.random(shape) * (rng.random(shape) < 0.3),
    "one entry": lambda rng, shape: np.eye(1, int(np.prod(shape)), 0).reshape(shape),
    "zeros": lambda rng, shape: np.zeros(shape),
    "constant": lambda rng, shape: np.full(shape, rng.normal()),
    "duplicates": lambda rng, shape: np.repeat(rng.random((1, *shape[1:])), shape[0], axis=0),
    "mixed scales": lambda rng, shape: (
        rng.random(shape) * 10.0 ** rng.uniform(-4, 4, (shape[0], 1, 1))
    ),
    "offset": lambda rng, shape: 1e6 + rng.random(shape),
    "centred": lambda rng, shape: _centred(rng.normal(size=shape)),
    "clustered": _clustered,
    "heavy tails": lambda rng, shape: rng.pareto(0.7, shape).clip(0.0, 1e6),
}


def _costs_case(rng: Rng) -> Case:
    n, m = _size(rng), _size(rng)
    count = int(rng.choice([1, 2, 3, 5, 9, 40, 250], p=[0.1, 0.25, 0.25, 0.2, 0.15, 0.04, 0.01]))
    if n * m > 500:
        count = min(count, 9)
    kind = str(rng.choice(list(STACKS)))
    stack = STACKS[kind](rng, (count, n, m)) * _scale(rng)
    options, a, b = _sides(rng, n, m)
    passed: Any = stack
    if rng.random() < 0.1 and np.abs(stack).max() < 1e30:
        stack = stack.astype(np.float32).astype(float)
        passed = stack.astype(np.float32)
    elif rng.random() < 0.1:
        passed = stack.tolist()
    if rng.random() < 0.1:
        options["names"] = [f"cost {i}" for i in range(count)]
    return Case("solve_costs", (passed,), options, f"{kind} stack", stack=stack, a=a, b=b)


# Points


POINTS: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "grid": lambda rng, n, d: rng.integers(0, 3, (n, d)).astype(float),
    "offset": lambda rng, n, d: 1e4 + rng.normal(size=(n, d)),
    "clusters": lambda rng, n, d: (
        rng.choice([-1e3, 0.0, 1e3], (n, 1)) + 1e-3 * rng.normal(size=(n, d))
    ),
    "duplicates": lambda rng, n, d: np.repeat(rng.normal(size=(1, d)), n, axis=0),
    "mixed scales": lambda rng, n, d: rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, d),
    "bool": lambda rng, n, d: rng.random((n, d)) < 0.5,
    "int": lambda rng, n, d: rng.integers(-5, 6, (n, d)),
    "float32": lambda rng, n, d: rng.normal(size=(n, d)).astype(np.float32),
}

METRICS = ("euclidean", "cityblock", "chebyshev", "minkowski", "canberra", "hamming", "callable")


def _groups(rng: Rng, d: int) -> tuple[Any, list[np.ndarray]]:
    """Groups as a user would write them, and their members."""
    kind = rng.choice(["default", "each", "all", "sizes", "lists", "mapping", "masks"])
    if kind in ("default", "each"):
        return (None if kind == "default" else "each"), [np.array([i]) for i in range(d)]
    if kind == "all":
        return "all", [np.arange(d)]
    if kind == "sizes":
        cut = int(rng.integers(1, d + 1))
        sizes = [cut, d - cut] if cut < d else [d]
        return sizes, np.split(np.arange(d), [cut]) if cut < d else [np.arange(d)]
    members = [rng.permutation(d)[: rng.integers(1, d + 1)] for _ in range(int(rng.integers(1, 6)))]
    if kind == "masks":
        masks = [np.isin(np.arange(d), member) for member in members]
        return masks, members
    if kind == "mapping":
        return {f"set {i}": member.tolist() for i, member in enumerate(members)}, members
    return [member.tolist() for member in members], members


def _taxi(u: np.ndarray, v: np.ndarray) -> float:
    return float(np.abs(u - v).sum())


def _metric_stack(
    X: np.ndarray, Y: np.ndarray, members: list[np.ndarray], metric: Any, p: float
) -> np.ndarray:
    plain = "cityblock" if metric is _taxi else metric
    return np.stack([cdist(X[:, g], Y[:, g], plain) ** p for g in members])


def _points_case(rng: Rng) -> Case:
    n, m, d = _size(rng), _size(rng), int(rng.integers(1, 9))
    kind = str(rng.choice(list(POINTS)))
    X, Y = POINTS[kind](rng, n, d), POINTS[kind](rng, m, d)
    if rng.random() < 0.1:
        Y, m, kind = X, n, f"{kind}, X = Y,"
    if X.dtype == float:
        scale = _scale(rng)
        scale = scale if 1e-6 <= scale <= 1e6 else 1.0
        X, Y = X * scale, Y * scale
    groups, members = _groups(rng, d)
    metric: Any = "sqeuclidean"
    p = 1.0
    if rng.random() < 0.5:
        metric = str(rng.choice(METRICS))
        metric = _taxi if metric == "callable" else metric
        p = float(rng.choice([1.0, 1.0, 2.0, 3.0, 0.5]))
    options, a, b = _sides(rng, n, m)
    stack = _metric_stack(np.asarray(X, float), np.asarray(Y, float), members, metric, p)
    options |= {"groups": groups, "metric": metric, "p": p}
    largest = max(float(np.abs(np.asarray(points, float)).max()) for points in (X, Y))
    tiny = (1e-14 * largest) ** (2.0 if metric == "sqeuclidean" else p)
    note = f"{kind} points {np.shape(X)} {np.shape(Y)}"
    if rng.random() < 0.1 and p >= 1.0:
        return Case("distance", (X, Y), options, note, stack=stack, a=a, b=b, power=p)
    if rng.random() < 0.08:
        options["normalise"] = "mean"
        means = np.einsum("i,lij,j->l", a, stack, b)
        stack = stack / np.where(means > 0.0, means, 1.0)[:, None, None]
    x_in, y_in = _container(rng, X), _container(rng, Y)
    return Case("solve", (x_in, y_in), options, note, stack=stack, a=a, b=b, tiny=tiny)


def _container(rng: Rng, points: np.ndarray) -> Any:
    kind = rng.choice(["array", "list", "fortran"], p=[0.8, 0.1, 0.1])
    if kind == "list":
        return points.tolist()
    return np.asfortranarray(points) if kind == "fortran" else points


# Solvers and their options


def _solver_options(rng: Rng, level: float, shape: tuple[int, ...]) -> dict[str, Any]:
    count, n, m = shape
    options: dict[str, Any] = {}
    if rng.random() < 0.4:
        options["eta"] = level * float(10.0 ** rng.uniform(-4, 1))
        if rng.random() < 0.1:
            options["eta"] = level * float(rng.choice([1e-12, 1e6]))
        if rng.random() < 0.2:
            options["prior"] = rng.dirichlet(np.ones(count)) + 1e-3
    if rng.random() < 0.25:
        options["eps"] = level * float(10.0 ** rng.uniform(-4, 0))
    options["solver"] = _solver(rng, options)
    if rng.random() < 0.1:
        options["tol"] = float(rng.choice([1e-3, 1e-5, 1e-8, 0.0]))
    if rng.random() < 0.1:
        options["max_iter"] = int(rng.integers(1, 6))
    if rng.random() < 0.05:
        options["time_limit"] = float(rng.choice([1e-9, 10.0]))
    if rng.random() < 0.1:
        options["start"] = rng.dirichlet(np.ones(count))
    elif rng.random() < 0.1:
        options["start"] = rng.random((n, m))
    if rng.random() < 0.05:
        options["callback"] = lambda now: now.iteration >= 2
    return options


def _solver(rng: Rng, options: dict[str, Any]) -> Any:
    smooth, entropic = "eta" in options, "eps" in options
    steps = ["fully_corrective", "line_search", "paper"] if smooth else ["fully_corrective"]
    step: Any = str(rng.choice(steps))
    calls = int(rng.choice([3, 20, 200]))
    if entropic:
        oracle = frot.Sinkhorn(tol=float(rng.choice([1e-3, 1e-6])), max_iter=1000)
        return frot.FrankWolfe(oracle=oracle, step=step, max_iter=min(calls, 20))
    wolfe = frot.FrankWolfe(step=step, max_iter=calls)
    if smooth:
        return [wolfe, "auto", "exact", frot.Exact()][rng.integers(4)]
    linear: list[Any] = [frot.LinearProgram(), frot.LinearProgram(method="ipm"), "linear_program"]
    return [wolfe, "auto", "exact", frot.Exact(tol=1e-7), *linear][rng.integers(7)]

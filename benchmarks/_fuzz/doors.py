"""From a kind of problem to a call: which function, which options, which containers."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np

import frot

from .case import Case, CostProblem, PointProblem
from .costs import COSTS
from .divergence import draw_divergence
from .draw import Rng, chance, groups, pick, size
from .options import REGIMES, amounts, level, limits, solver
from .points import POINTS, Clouds, Shape
from .two_samples import draw_two_samples

__all__ = ["KINDS", "draw_case"]

# Kinds that are about options rather than data.
SETTINGS = (
    "divergence", "mass", "metrics", "normalised", "time limit", "two samples", "weights"
)  # fmt: skip
KINDS = (*POINTS, *COSTS, *REGIMES, *SETTINGS)


def draw_case(rng: Rng, kind: str) -> Case:
    """Draw a well-formed call on a kind of problem."""
    if kind in POINTS:
        return _of_points(rng, kind, kind)
    if kind in COSTS:
        return _of_costs(rng, kind, kind)
    if kind == "metrics":
        return _solve(rng, kind, pick(rng, "plain points", "offset", "clusters"), _metric(rng))
    if kind == "divergence":
        return draw_divergence(rng, kind)
    if kind == "two samples":
        return draw_two_samples(rng, kind)
    if kind == "mass":
        return _mass(rng, kind)
    if kind == "normalised":
        return _normalised(rng, kind)
    if kind == "time limit":
        return _time_limit(rng, kind)
    if kind == "weights":
        return _unnormalised(rng, kind)
    if chance(rng, 0.3):
        return _of_costs(rng, kind, pick(rng, "plain costs", "ties", "plain costs", "signed costs"))
    data = pick(rng, "plain points", "plain points", "clusters", "grid", "offset", "histograms")
    return _of_points(rng, kind, data)


def _shape(rng: Rng) -> Shape:
    return Shape(size(rng), size(rng), int(rng.integers(2, 7)))


# Points


def _of_points(rng: Rng, kind: str, data: str) -> Case:
    door = pick(rng, *(_solve,) * 10, _wasserstein, _distance, _distance, _max_min, _batch, _batch,
                _batch, _pairwise, _loss, _loss)  # fmt: skip
    return door(rng, kind, data)


def _usual_metric(rng: Rng) -> dict[str, Any]:
    if chance(rng, 0.75):
        return {}
    return {"metric": pick(rng, "euclidean", "cityblock"), "p": float(pick(rng, 1, 1, 2))}


def _metric(rng: Rng) -> dict[str, Any]:
    """Any metric, and any power of it."""
    names = ("euclidean", "cityblock", "chebyshev", "minkowski", "canberra", "hamming", "cosine",
             "sqeuclidean", taxi)  # fmt: skip
    return {"metric": pick(rng, *names), "p": float(pick(rng, 1, 1, 2, 3, 0.5))}


def taxi(u: np.ndarray, v: np.ndarray) -> float:
    """A metric that is a function."""
    return float(np.abs(u - v).sum())


def _cosine(rng: Rng, members: list[list[int]], *pairs: tuple[Any, Any]) -> dict[str, Any]:
    """Draw cosines now and then, where they are more than rounding."""
    if chance(rng, 0.8) or not all(_directed(members, *pair) for pair in pairs):
        return {}
    return {"metric": "cosine"}


def _directed(members: list[list[int]], X: np.ndarray, Y: np.ndarray) -> bool:
    """Whether all points have a direction in every group, and not all the same."""
    points = np.concatenate([X, Y]).astype(float)
    for group in members:
        part = points[:, group]
        if not part.any(axis=1).all():
            return False
        unit = part / np.abs(part).max(axis=1, keepdims=True)
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        if np.ptp(unit, axis=0).max() < 1e-3:
            return False
    return True


def _weights(clouds: Clouds) -> dict[str, Any]:
    pairs = (("a", clouds.a), ("b", clouds.b))
    return {name: side for name, side in pairs if side is not None}


def _container(rng: Rng, points: np.ndarray) -> Any:
    kind = pick(rng, *("array",) * 8, "list", "fortran")
    if kind == "list":
        return points.tolist()
    return np.asfortranarray(points) if kind == "fortran" else points


def _solve(rng: Rng, kind: str, data: str, extras: dict[str, Any] | None = None) -> Case:
    shape = _shape(rng)
    clouds = POINTS[data](rng, shape)
    spec, members = groups(rng, clouds.X.shape[1])
    extras = _usual_metric(rng) if extras is None else extras
    if extras.get("metric") == "cosine" and not _directed(members, clouds.X, clouds.Y):
        extras = {**extras, "metric": "euclidean"}
    meant = {name: extras[name] for name in ("metric", "p", "normalise") if name in extras}
    problem = PointProblem(clouds.X, clouds.Y, members, a=clouds.a, b=clouds.b, **meant)
    options = {**_weights(clouds), **extras}
    if spec is not None:
        options["groups"] = spec
    return _regularised(
        rng, kind, "solve", tuple(_container(rng, x) for x in clouds[:2]), options, problem
    )


def _regularised(
    rng: Rng, kind: str, door: str, args: tuple[Any, ...], options: dict[str, Any], problem: Any
) -> Case:
    """Add eta, eps, a solver and limits."""
    options = {**options, **amounts(rng, problem, kind)}
    options |= solver(rng, options, level(problem))
    options |= limits(rng, problem)
    return Case(kind, door, args, options, (problem,))


def _wasserstein(rng: Rng, kind: str, data: str) -> Case:
    clouds = POINTS[data](rng, _shape(rng))
    every = [list(range(clouds.X.shape[1]))]
    metric, p = pick(rng, ("euclidean", 2.0), ("euclidean", 1.0), ("cityblock", 1.0))
    problem = PointProblem(clouds.X, clouds.Y, every, metric, p, clouds.a, clouds.b)
    options = {**_weights(clouds), "metric": metric, "p": p}
    drawn = amounts(rng, problem, kind)
    options |= {name: drawn[name] for name in ("eps",) if name in drawn}
    return Case(kind, "wasserstein", clouds[:2], options, (problem,))


def _distance(rng: Rng, kind: str, data: str) -> Case:
    clouds = POINTS[data](rng, _shape(rng))
    spec, members = groups(rng, clouds.X.shape[1], covering=True)
    metric, p = pick(rng, ("euclidean", 2.0), ("euclidean", 2.0), ("euclidean", 1.0),
                     ("cityblock", 1.0), ("chebyshev", 3.0))  # fmt: skip
    problem = PointProblem(clouds.X, clouds.Y, members, metric, p, clouds.a, clouds.b)
    options = {**_weights(clouds), "metric": metric, "p": p, "groups": spec}
    return Case(kind, "distance", clouds[:2], options, (problem,))


def _max_min(rng: Rng, kind: str, data: str) -> Case:
    clouds = POINTS[data](rng, _shape(rng))
    spec, members = groups(rng, clouds.X.shape[1])
    metric = _usual_metric(rng)
    problem = PointProblem(clouds.X, clouds.Y, members, a=clouds.a, b=clouds.b, **metric)
    options = {**_weights(clouds), **metric, "groups": spec, **_hurry(rng)}
    return Case(kind, "max_min", clouds[:2], options, (problem,))


def _batch(rng: Rng, kind: str, data: str) -> Case:
    shape = _shape(rng)
    drawn = [POINTS[data](rng, shape)]
    n, m = len(drawn[0].X), len(drawn[0].Y)
    for _ in range(int(rng.integers(1, 4))):
        other = POINTS[data](rng, shape)
        if (len(other.X), len(other.Y)) == (n, m):
            drawn.append(other)
    X, Y = np.stack([clouds.X for clouds in drawn]), np.stack([clouds.Y for clouds in drawn])
    a = np.stack([_or_uniform(clouds.a, n) for clouds in drawn])
    b = np.stack([_or_uniform(clouds.b, m) for clouds in drawn])
    spec, members = groups(rng, X.shape[2])
    metric = _cosine(rng, members, *zip(X, Y, strict=True))
    problems = tuple(
        PointProblem(*parts[:2], members, a=parts[2], b=parts[3], **metric)
        for parts in zip(X, Y, a, b, strict=True)
    )
    options = {"groups": spec, "a": a, "b": b, **metric}
    cheapest = min(problems, key=lambda problem: sum(problem.program.means()))
    options |= amounts(rng, cheapest, kind, entropic=True)
    if chance(rng, 0.2):
        options["tol"] = float(pick(rng, 1e-3, 1e-6, 1e-9))
    if chance(rng, 0.05):
        options["max_iter"] = int(rng.integers(1, 6))
    elif chance(rng, 0.05):
        options["time_limit"] = float(pick(rng, 1e-3, 0.1))
    return Case(kind, "solve_batch", (X, Y), options, problems)


def _or_uniform(weights: np.ndarray | None, count: int) -> np.ndarray:
    return np.full(count, 1.0 / count) if weights is None else weights


def _pairwise(rng: Rng, kind: str, data: str) -> Case:
    shape = _shape(rng)
    drawn = [POINTS[data](rng, shape) for _ in range(2)]
    clouds = [(drawn[0].X, drawn[0].a), (drawn[0].Y, drawn[0].b), (drawn[1].X, drawn[1].a)]
    spec, members = groups(rng, drawn[0].X.shape[1], covering=True)
    metric, p = pick(rng, ("euclidean", 2.0), ("cityblock", 1.0))
    problems = tuple(
        PointProblem(one[0], other[0], members, metric, p, one[1], other[1])
        for one, other in combinations(clouds, 2)
    )
    options = {"weights": [mass for _, mass in clouds], "groups": spec, "metric": metric, "p": p}
    return Case(kind, "pairwise", ([points for points, _ in clouds],), options, problems)


def _loss(rng: Rng, kind: str, data: str) -> Case:
    clouds = POINTS[data](rng, _shape(rng))
    number = np.float32 if clouds.X.dtype == np.float32 or chance(rng, 0.2) else np.float64
    with np.errstate(over="ignore"):
        X, Y = (points.astype(number) for points in clouds[:2])
    if not (np.isfinite(X).all() and np.isfinite(Y).all()):
        number, X, Y = np.float64, clouds.X.astype(float), clouds.Y.astype(float)
    a, b = (None if side is None else side.astype(number) for side in clouds[2:])
    spec, members = groups(rng, X.shape[1])
    metric = _cosine(rng, members, (X, Y))
    problem = PointProblem(X, Y, members, a=a, b=b, **metric)
    options = {"groups": spec, **metric, **amounts(rng, problem, kind, entropic=True)}
    if chance(rng, 0.15) and len(members) == 1:
        # With several groups the answer is that of one mixed cost, and no problem of the referee.
        options["debias"] = True
    return Case(kind, "FRWDLoss", (X, Y, a, b), options, (problem,))


def _normalised(rng: Rng, kind: str) -> Case:
    how = pick(rng, "mean", "mean", "regret")
    data = pick(rng, "plain points", "scales", "clusters", "grid", "near-duplicates", "counts")
    if chance(rng, 0.6):
        return _solve(rng, kind, data, {"normalise": how})
    drawn = COSTS[pick(rng, "plain costs", "cost scales", "ties", "big costs")](rng, _costs(rng))
    problem = CostProblem(*drawn, normalise=how)
    options = {"normalise": how, **_sides(drawn)}
    return _regularised(rng, kind, "solve_costs", (drawn.stack,), options, problem)


def _time_limit(rng: Rng, kind: str) -> Case:
    """Problems that take longer than the time they are given, or might."""
    n, m = int(rng.integers(20, 70)), int(rng.integers(20, 70))
    seconds = float(pick(rng, 1e-3, 0.02, 0.1))
    if chance(rng, 0.5):
        stack = rng.random((int(pick(rng, 2, 10, 40)), n, m))
        problem: Any = CostProblem(stack)
        door, args = "solve_costs", (stack,)
    else:
        d = int(pick(rng, 3, 10, 40))
        X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d)) + 0.3
        problem = PointProblem(X, Y, [[at] for at in range(d)])
        door, args = "solve", (X, Y)
    options = {"time_limit": seconds}
    # Units are known here, so that nothing has to be computed for them.
    if chance(rng, 0.5):
        options["eta"] = float(10.0 ** rng.uniform(-3, 0))
    if chance(rng, 0.4):
        options["eps"] = float(10.0 ** rng.uniform(-4, 0))
    options |= solver(rng, options)
    return Case(kind, door, args, options, (problem,))


def _unnormalised(rng: Rng, kind: str) -> Case:
    """Weights that do not sum to one, normalised on request."""
    clouds = POINTS["plain points"](rng, _shape(rng))
    a, b = (
        rng.integers(0, 9, len(points)) + np.eye(1, len(points), 0)[0].astype(int)
        for points in clouds[:2]
    )
    if chance(rng, 0.5):
        a, b = a * 10.0 ** rng.uniform(-6, 6), b * rng.random()
    spec, members = groups(rng, clouds.X.shape[1])
    problem = PointProblem(clouds.X, clouds.Y, members, a=a, b=b)
    options = {"a": a, "b": b, "groups": spec, "normalise_weights": True}
    return _regularised(rng, kind, "solve", clouds[:2], options, problem)


# Partial transport


def _mass(rng: Rng, kind: str) -> Case:
    """Points or costs of any kind, of which a given mass is moved."""
    if chance(rng, 0.5):
        whole = _solve(rng, kind, pick(rng, *POINTS))
    else:
        drawn = COSTS[pick(rng, *COSTS)](rng, _costs(rng))
        whole = _regularised(
            rng, kind, "solve_costs", (drawn.stack,), _sides(drawn), CostProblem(*drawn)
        )
    options = {name: value for name, value in whole.options.items() if name != "eps"}
    if isinstance(options.get("solver"), frot.Entropic) or options.get("solver") == "entropic":
        del options["solver"]
    least = 1.0
    if chance(rng, 0.4):
        # Masses of the two sides that differ.
        sizes = whole.problems[0].shape[1:]
        for name, count in zip("ab", sizes, strict=True):
            side = np.asarray(options.get(name, np.full(count, 1.0 / count)), dtype=float)
            options[name] = side * float(10.0 ** rng.uniform(-1, 2))
        least = min(float(options[name].sum()) for name in "ab")
    share = pick(rng, 1.0, 0.5, 0.9, 0.999, 1e-3, float(rng.random()), float(rng.random()))
    options["mass"] = max(share, 1e-6) * least
    return replace(whole, options=options)


# Costs


def _costs(rng: Rng) -> tuple[int, int, int]:
    return int(rng.integers(1, 7)), size(rng, least=1), size(rng, least=1)


def _sides(drawn: Any) -> dict[str, Any]:
    return {name: side for name, side in (("a", drawn.a), ("b", drawn.b)) if side is not None}


def _of_costs(rng: Rng, kind: str, data: str) -> Case:
    shape = _costs(rng)
    drawn = COSTS[data](rng, shape)
    problem = CostProblem(*drawn)
    count = len(drawn.stack)
    options = _sides(drawn)
    least = float(drawn.stack.min())
    relatives = kind not in REGIMES
    if relatives and least >= 0.0 and chance(rng, 0.12):
        options |= _hurry(rng)
        return Case(kind, "equitable", (drawn.stack,), options, (problem,))
    if relatives and chance(rng, 0.12):
        options |= {"adversary": _uncertainty(rng, count), **_hurry(rng)}
        return Case(kind, "cutting_set", (drawn.stack,), options, (problem,))
    passed: Any = drawn.stack
    if chance(rng, 0.1):
        passed = passed.tolist()
    return _regularised(rng, kind, "solve_costs", (passed,), options, problem)


def _hurry(rng: Rng) -> dict[str, Any]:
    """Draw a time limit now and then."""
    return {"time_limit": float(pick(rng, 1e-3, 0.1))} if chance(rng, 0.06) else {}


def _uncertainty(rng: Rng, count: int) -> Any:
    kind = pick(rng, "simplex", "capped", "box", "polytope")
    if kind == "capped" and count <= 6:
        return frot.CappedSimplex(int(rng.integers(1, count + 1)))
    if kind == "box" and count <= 4:
        low = rng.random(count) - 0.5
        high = low + rng.random(count)
        return frot.Polytope(np.array(list(product(*zip(low, high, strict=True)))))
    if kind == "polytope":
        return frot.Polytope(rng.random((int(rng.integers(1, 6)), count)))
    return frot.Simplex()

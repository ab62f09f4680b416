"""Kinds of cost matrices that people have: each draws a stack and the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .draw import Rng, chance, pick, weights

__all__ = ["COSTS", "Stack"]


class Stack(NamedTuple):
    """Cost matrices, (L, n, m), and weights; None is uniform."""

    stack: np.ndarray
    a: np.ndarray | None = None
    b: np.ndarray | None = None


Shape = tuple[int, int, int]


def _weighted(rng: Rng, stack: np.ndarray) -> Stack:
    _, n, m = stack.shape
    return Stack(stack, weights(rng, n), weights(rng, m))


def plain(rng: Rng, shape: Shape) -> Stack:
    """Uniform costs."""
    return _weighted(rng, rng.random(shape))


def big(rng: Rng, shape: Shape) -> Stack:
    """Large costs that stand for forbidden arcs: in some groups, or in all."""
    _, n, m = shape
    stack = rng.random(shape) * 10.0 ** rng.uniform(-1, 1)
    if chance(rng, 0.3):
        stack = np.floor(4.0 * stack)
    large = float(pick(rng, 1e4, 1e6, 1e9, 1e12))
    share = float(pick(rng, 0.1, 0.3, 0.6))
    how = pick(rng, "groups differ", "groups differ", "some groups", "all groups")
    if how == "all groups":
        stack[:, rng.random((n, m)) < share] = large
    else:
        where = rng.random(shape) < share
        if how == "some groups":
            where[rng.random(shape[0]) < 0.5] = False
        stack[where] = large
    return _weighted(rng, stack)


def forbidden(rng: Rng, shape: Shape) -> Stack:
    """Infinite costs, in one group or in all, around a plan that is left."""
    count, n, m = shape
    stack = rng.random(shape)
    # Multiples of 1/64 add up exactly, so that it is certain that the plan is left.
    units = rng.multinomial(64, np.full(n * m, 1.0 / (n * m))).reshape(n, m)
    closed = (units == 0) & (rng.random((n, m)) < pick(rng, 0.2, 0.6, 1.0))
    groups = slice(None) if chance(rng, 0.5) else int(rng.integers(count))
    stack[groups, closed] = np.inf
    return Stack(stack, units.sum(axis=1) / 64.0, units.sum(axis=0) / 64.0)


def no_plan(rng: Rng, shape: Shape) -> Stack:
    """Infinite costs that leave no plan: a point without arcs, or two points for one."""
    count, n, m = shape
    stack = rng.random(shape)
    group = int(rng.integers(count))
    if m > 1 and chance(rng, 0.5):
        # One row more than the first column has room for.
        stack[group, : n // m + 1, 1:] = np.inf
    else:
        stack[group, int(rng.integers(n)), :] = np.inf
    return Stack(stack)


def ties(rng: Rng, shape: Shape) -> Stack:
    """Small whole numbers, signs, indicators."""
    how = pick(rng, "integers", "signs", "one entry", "zeros", "constant")
    if how == "integers":
        stack = rng.integers(0, 4, shape).astype(float)
    elif how == "signs":
        stack = rng.choice([-1.0, 1.0], shape)
    elif how == "one entry":
        stack = np.zeros(shape)
        stack.flat[int(rng.integers(stack.size))] = 1.0
    else:
        stack = np.full(shape, 0.0 if how == "zeros" else rng.normal())
    return _weighted(rng, stack)


def copies(rng: Rng, shape: Shape) -> Stack:
    """Many copies of few groups, exact or nearly so."""
    few = rng.random((2, *shape[1:]))
    stack = few[rng.integers(2, size=int(pick(rng, 4, 12, 40)))]
    if chance(rng, 0.4):
        stack = stack * (1.0 + 10.0 ** -float(pick(rng, 6, 12, 15)) * rng.normal(size=stack.shape))
    return _weighted(rng, stack)


def scales(rng: Rng, shape: Shape) -> Stack:
    """Huge and tiny units, of all groups or of each its own."""
    stack = rng.random(shape)
    if chance(rng, 0.5):
        return _weighted(rng, stack * 10.0 ** float(pick(rng, -200, -100, -30, 30, 100, 200)))
    return _weighted(rng, stack * 10.0 ** rng.uniform(-8, 8, (shape[0], 1, 1)))


def signed(rng: Rng, shape: Shape) -> Stack:
    """Costs of both signs, centred ones, and a large constant that cancels nothing."""
    how = pick(rng, "normal", "centred", "offset", "negative")
    stack = rng.normal(size=shape)
    if how == "centred":
        stack -= stack.mean(axis=1, keepdims=True)
        stack -= stack.mean(axis=2, keepdims=True)
    elif how == "offset":
        stack = 10.0 ** float(pick(rng, 3, 6, 9)) + rng.random(shape)
    elif how == "negative":
        stack = -rng.exponential(size=shape)
    return _weighted(rng, stack)


def tails(rng: Rng, shape: Shape) -> Stack:
    """Heavy tails, and sparse costs."""
    if chance(rng, 0.5):
        return _weighted(rng, rng.pareto(0.5, shape).clip(0.0, 1e9))
    return _weighted(rng, rng.random(shape) * (rng.random(shape) < 0.3))


def light(rng: Rng, shape: Shape) -> Stack:
    """Points that weigh next to nothing, some of them where all is dear."""
    _, n, m = shape
    stack, sides = rng.random(shape), []
    for count, axis in ((n, 1), (m, 2)):
        mass = rng.dirichlet(np.ones(count))
        few = rng.permutation(count)[: int(rng.integers(0, count))]
        mass[few] = 10.0 ** -float(pick(rng, 9, 12, 15, 300)) * rng.random(len(few))
        far = np.ones((1, n, m))
        np.moveaxis(far, axis, 0)[few] = 10.0 ** float(pick(rng, 0, 4, 9))
        stack = stack * far
        sides.append(mass / mass.sum())
    return Stack(stack, *sides)


COSTS: dict[str, Callable[[Rng, Shape], Stack]] = {
    "plain costs": plain,
    "big costs": big,
    "forbidden arcs": forbidden,
    "no plan": no_plan,
    "ties": ties,
    "copies": copies,
    "cost scales": scales,
    "signed costs": signed,
    "heavy tails": tails,
    "light costs": light,
}

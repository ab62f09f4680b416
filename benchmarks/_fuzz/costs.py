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
    large = float(pick(rng, 1e2, 1e4, 1e6, 1e9))
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
    """Units of 1 to 1,000 and back, of all groups or of each its own."""
    stack = rng.random(shape)
    if chance(rng, 0.5):
        return _weighted(rng, stack * 10.0 ** float(pick(rng, -3, 3)))
    return _weighted(rng, stack * 10.0 ** rng.uniform(-1.5, 1.5, (shape[0], 1, 1)))


def signed(rng: Rng, shape: Shape) -> Stack:
    """Costs of both signs, centred ones, and a large constant that cancels nothing."""
    how = pick(rng, "normal", "centred", "offset", "negative")
    stack = rng.normal(size=shape)
    if how == "centred":
        stack -= stack.mean(axis=1, keepdims=True)
        stack -= stack.mean(axis=2, keepdims=True)
    elif how == "offset":
        stack = 10.0 ** float(pick(rng, 1, 3)) + rng.random(shape)
    elif how == "negative":
        stack = -rng.exponential(size=shape)
    return _weighted(rng, stack)


def tails(rng: Rng, shape: Shape) -> Stack:
    """Heavy tails, and sparse costs."""
    if chance(rng, 0.5):
        return _weighted(rng, rng.pareto(0.5, shape).clip(0.0, 1e6))
    return _weighted(rng, rng.random(shape) * (rng.random(shape) < 0.3))


COSTS: dict[str, Callable[[Rng, Shape], Stack]] = {
    "plain costs": plain,
    "big costs": big,
    "ties": ties,
    "copies": copies,
    "cost scales": scales,
    "signed costs": signed,
    "heavy tails": tails,
}

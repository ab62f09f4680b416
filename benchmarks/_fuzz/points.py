"""Kinds of points that people have: each draws two clouds and their weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .draw import Rng, chance, pick, weights

__all__ = ["POINTS", "Clouds", "Shape"]


class Shape(NamedTuple):
    """Numbers of points on either side, and of features."""

    n: int
    m: int
    d: int


class Clouds(NamedTuple):
    """Points and weights of both sides; None is uniform."""

    X: np.ndarray
    Y: np.ndarray
    a: np.ndarray | None = None
    b: np.ndarray | None = None


def _weighted(rng: Rng, X: np.ndarray, Y: np.ndarray) -> Clouds:
    return Clouds(X, Y, weights(rng, len(X)), weights(rng, len(Y)))


def plain(rng: Rng, shape: Shape) -> Clouds:
    """Normal points, one side shifted."""
    n, m, d = shape
    return _weighted(rng, rng.normal(size=(n, d)), rng.normal(size=(m, d)) + rng.normal(size=d))


def light(rng: Rng, shape: Shape) -> Clouds:
    """A few points that weigh little, far away."""
    n, m, d = shape
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    sides = []
    for points in (X, Y):
        count = len(points)
        mass = rng.dirichlet(np.ones(count))
        few = rng.permutation(count)[: int(rng.integers(0, max(1, count // 2)))]
        mass[few] = 10.0 ** -float(pick(rng, 3, 6, 9)) * rng.random(len(few))
        points[few] *= 10.0 ** float(pick(rng, 1, 2, 3))
        sides.append(mass / mass.sum())
    return Clouds(X, Y, *sides)


def outliers(rng: Rng, shape: Shape) -> Clouds:
    """Normal points, and one on a side that is far from all."""
    drawn = plain(rng, shape)
    drawn.X[0] *= 10.0 ** float(pick(rng, 1, 2, 4))
    if chance(rng, 0.3):
        drawn.Y[0] *= 10.0 ** float(pick(rng, 1, 2, 4))
    return drawn


def tails(rng: Rng, shape: Shape) -> Clouds:
    """Points with heavy tails."""
    n, m, d = shape
    return _weighted(rng, rng.standard_t(1.5, (n, d)), rng.standard_t(1.5, (m, d)))


def weightless(rng: Rng, shape: Shape) -> Clouds:
    """Points without any weight, near or far away."""
    n, m, d = shape
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    sides = []
    for points in (X, Y):
        count = len(points)
        mass = rng.dirichlet(np.ones(count)) if chance(rng, 0.5) else np.full(count, 1.0 / count)
        few = rng.permutation(count)[: int(rng.integers(0, count))]
        mass[few] = 0.0
        points[few] *= 10.0 ** float(pick(rng, 0, 1, 3))
        sides.append(mass / mass.sum())
    return Clouds(X, Y, *sides)


def near_duplicates(rng: Rng, shape: Shape) -> Clouds:
    """The same points in another order, with some noise: two files of one measurement."""
    n, m, d = shape
    X = rng.normal(size=(n, d))
    order = rng.permutation(n) if n == m else rng.integers(n, size=m)
    noise = 10.0 ** -float(pick(rng, 6, 8, 10, 12)) * rng.normal(size=(m, d))
    return Clouds(X, X[order] + noise) if chance(rng, 0.7) else _weighted(rng, X, X[order] + noise)


def duplicates(rng: Rng, shape: Shape) -> Clouds:
    """Points that are the same on both sides, or in some features."""
    n, m, d = shape
    X = rng.normal(size=(n, d))
    Y = X[rng.permutation(n) if n == m else rng.integers(n, size=m)].copy()
    how = pick(rng, "all", "one feature", "one point", "constant feature")
    if how == "one feature":
        Y[:, 1:] += rng.normal(size=(m, d - 1))
    elif how == "one point":
        X[:], Y[:] = X[0], X[0]
    elif how == "constant feature":
        X[:, 0], Y[:, 0] = 3.0, 3.0
        Y[:, 1:] = rng.normal(size=(m, d - 1))
    return _weighted(rng, X, Y)


def clusters(rng: Rng, shape: Shape) -> Clouds:
    """Tight clusters far apart."""
    n, m, d = shape
    apart, tight = 10.0 ** rng.uniform(0.5, 3), 10.0 ** rng.uniform(-3, 0)
    centres = apart * rng.normal(size=(3, d))
    X = centres[rng.integers(3, size=n)] + tight * rng.normal(size=(n, d))
    Y = centres[rng.integers(3, size=m)] + tight * rng.normal(size=(m, d))
    return _weighted(rng, X, Y)


def offset(rng: Rng, shape: Shape) -> Clouds:
    """Points far from the origin: dates in seconds, coordinates in metres."""
    n, m, d = shape
    shift = 10.0 ** float(pick(rng, 1, 3, 5)) * rng.normal(size=d)
    return _weighted(rng, shift + rng.normal(size=(n, d)), shift + rng.normal(size=(m, d)))


def scales(rng: Rng, shape: Shape) -> Clouds:
    """Units of 1 to 1,000 and back, of all features or of each its own."""
    n, m, d = shape
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    how = pick(rng, "all", "features")
    unit = 10.0 ** (rng.uniform(-1.5, 1.5, d) if how == "features" else pick(rng, -3, 3))
    return _weighted(rng, X * unit, Y * unit)


def one_hot(rng: Rng, shape: Shape) -> Clouds:
    """Categories as indicator columns."""
    n, m, d = shape
    return _weighted(rng, np.eye(d)[rng.integers(d, size=n)], np.eye(d)[rng.integers(d, size=m)])


def counts(rng: Rng, shape: Shape) -> Clouds:
    """Counts with many zeros, as of words or of single cells."""
    n, m, d = shape
    rate = rng.gamma(0.3, 2.0, size=d)
    X, Y = rng.poisson(rate, (n, d)), rng.poisson(rate + 0.2, (m, d))
    if chance(rng, 0.5):
        return _weighted(rng, np.log1p(X), np.log1p(Y))
    return _weighted(rng, X.astype(float), Y.astype(float))


def histograms(rng: Rng, shape: Shape) -> Clouds:
    """Pixels of two small pictures: positions and colour, weights with zeros."""
    n, m, d = shape
    side = int(np.ceil(np.sqrt(max(n, m))))
    grid = np.stack(np.divmod(np.arange(side**2), side), axis=1).astype(float)
    X, Y = (np.hstack([grid[:k], rng.integers(0, 256, (k, d))])[:, :d] for k in (n, m))
    sides = []
    for count in (n, m):
        mass = rng.integers(0, 256, count) * (rng.random(count) < 0.7)
        mass[0] += not mass.any()
        sides.append(mass / mass.sum())
    return Clouds(X, Y, *sides)


def genes(rng: Rng, shape: Shape) -> Clouds:
    """Many standardised features, few samples, a few of the features telling."""
    n, m, d = min(shape.n, 8), min(shape.m, 8), 6 * shape.d
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    Y[:, :3] += 1.5
    both = np.vstack([X, Y])
    both = (both - both.mean(axis=0)) / np.where(both.std(axis=0) > 0.0, both.std(axis=0), 1.0)
    return Clouds(both[:n], both[n:])


def grid(rng: Rng, shape: Shape) -> Clouds:
    """Small whole numbers: ties everywhere."""
    n, m, d = shape
    X, Y = rng.integers(0, 3, (n, d)), rng.integers(0, 3, (m, d))
    if chance(rng, 0.3):
        return _weighted(rng, X, Y)
    return _weighted(rng, X.astype(float), Y.astype(float))


def single(rng: Rng, shape: Shape) -> Clouds:
    """One point on a side, or on both."""
    drawn = plain(rng, shape)
    if chance(rng, 0.5):
        drawn = drawn._replace(X=drawn.X[:1], a=None)
    if chance(rng, 0.5) or len(drawn.X) > 1:
        drawn = drawn._replace(Y=drawn.Y[:1], b=None)
    return drawn


def float32(rng: Rng, shape: Shape) -> Clouds:
    """Single precision."""
    X, Y, a, b = pick(rng, plain, offset, clusters, near_duplicates)(rng, shape)
    return Clouds(X.astype(np.float32), Y.astype(np.float32), a, b)


POINTS: dict[str, Callable[[Rng, Shape], Clouds]] = {
    "plain points": plain,
    "light points": light,
    "weightless points": weightless,
    "outliers": outliers,
    "heavy-tailed points": tails,
    "near-duplicates": near_duplicates,
    "duplicates": duplicates,
    "clusters": clusters,
    "offset": offset,
    "scales": scales,
    "one-hot": one_hot,
    "counts": counts,
    "histograms": histograms,
    "genes": genes,
    "grid": grid,
    "single point": single,
    "float32": float32,
}

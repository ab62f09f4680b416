r"""The central path in more digits than double precision: to plans and weights near the optimum.

Plan x, weights alpha, potentials y = (f, g) and level t solve

.. math::
    C^\top \alpha - A^\top y + \varepsilon \log \frac{x}{a b^\top} = z, \quad
    t - C x + \eta \log \frac{\alpha}{q} = s, \quad A x = (a, b), \quad \sum \alpha = 1,

with x z = alpha s = mu on the path, and mu going to zero: a linear program for eta = eps = 0, and
the two entropies where these are not zero. Newton's method with a second-order correction. It runs
in NumPy's long double, and in mpmath's numbers as well, where an array of objects takes the place
of the array of long doubles. Nothing here is proven: that is what certificates are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Point", "Smooth", "follow"]

# The share of the way to the boundary that a step goes: from afar, and from close by.
FAR_REACH, NEAR_REACH = 0.9, 0.999


@dataclass(frozen=True, eq=False)
class Smooth:
    """A problem on arcs: costs (L, K), ends of the arcs (K,), weights, and the entropies.

    `log` is the logarithm of arrays of this kind of number.
    """

    costs: Any
    rows: np.ndarray
    cols: np.ndarray
    a: Any
    b: Any
    eta: Any
    eps: Any
    log_prior: Any
    log: Callable[[Any], Any]

    @property
    def need(self) -> Any:
        """Weights of the rows, then of the columns."""
        return np.concatenate([self.a, self.b])

    @property
    def product(self) -> Any:
        """Mass of the arcs under a b^T."""
        return self.a[self.rows] * self.b[self.cols]

    def gap(self, at: Point) -> Any:
        """Roughly how far apart the bounds of a point are, relatively."""
        n = len(self.a)
        phi = self.costs @ at.x
        alpha = at.alpha / at.alpha.sum()
        mixed, (f, g) = alpha @ self.costs, (at.y[:n], at.y[n:])
        above, below = phi.max(), 0 * at.t
        if self.eta > 0:
            above = above + self.eta * self.log(
                np.exp((phi - above) / self.eta + self.log_prior).sum()
            )
            below = -self.eta * (alpha * (self.log(alpha) - self.log_prior)).sum()
        if self.eps > 0:
            above = above + self.eps * (at.x * self.log(at.x / self.product)).sum()
            scores = (f[self.rows] + g[self.cols] - mixed) / self.eps
            below = below - self.eps * ((self.product * np.exp(scores)).sum() - 1)
        else:
            f = np.full(n, np.inf, dtype=mixed.dtype)
            np.minimum.at(f, self.rows, mixed - g[self.cols])
        below = below + f @ self.a + g @ self.b
        return (above - below) / max(abs(above), abs(below))

    def marginals(self, mass: Any) -> Any:
        """Sums of the arcs over rows and over columns, one after the other."""
        n = len(self.a)
        sums = self.need * 0
        np.add.at(sums, self.rows, mass)
        np.add.at(sums, n + self.cols, mass)
        return sums


@dataclass(frozen=True, eq=False)
class Point:
    """Where the path is: masses and their slacks (K,), potentials, weights and theirs, level."""

    x: Any
    z: Any
    y: Any
    alpha: Any
    s: Any
    t: Any

    @property
    def mu(self) -> Any:
        """The mean of all products that should vanish."""
        return ((self.x * self.z).sum() + (self.alpha * self.s).sum()) / (
            len(self.x) + len(self.alpha)
        )

    def step(self, move: Point, length: Any) -> Point:
        """Go along a direction."""
        return Point(
            self.x + length * move.x,
            self.z + length * move.z,
            self.y + length * move.y,
            self.alpha + length * move.alpha,
            self.s + length * move.s,
            self.t + length * move.t,
        )

    def map(self, change: Callable[[Any], Any]) -> Point:
        """Return the same point in another kind of number."""
        x, z, y, alpha, s, t = map(
            change, (self.x, self.z, self.y, self.alpha, self.s, np.array([self.t]))
        )
        return Point(x, z, y, alpha, s, t[0])


def start(problem: Smooth) -> Point:
    """Begin in the middle: the product plan, equal weights."""
    count = len(problem.costs)
    x = problem.product
    alpha = problem.costs[:, 0] * 0 + 1
    alpha = alpha / count
    phi = problem.costs @ x
    size = np.abs(problem.costs) @ x
    level = size.max() + problem.eta + problem.eps
    if not level > 0:
        level = level + 1
    mu = level / (count + len(x))
    return Point(x, mu / x, problem.need * 0, alpha, mu / alpha, phi.max())


def follow(problem: Smooth, at: Point | None = None, steps: int = 150) -> Iterator[Point]:
    """Yield points with less and less mu, from the middle or from a point close to the end."""
    reach = FAR_REACH if at is None else NEAR_REACH
    at = start(problem) if at is None else at
    for _ in range(steps):
        try:
            newton = _Newton(problem, at)
            mu = at.mu
            guess = newton.direction(0 * mu, 0, 0)
        except ZeroDivisionError:
            # Where long doubles become infinite, mpmath says so.
            return
        length = _length(at, guess, 1)
        ahead = at.step(guess, length)
        ratio = ahead.mu / mu
        sigma = min(max(ratio, 0 * mu), 1 + 0 * mu) ** 3
        move = newton.direction(sigma * mu, guess.x * guess.z, guess.alpha * guess.s)
        length = _length(at, move, reach)
        at = at.step(move, length)
        yield at


def _length(at: Point, move: Point, reach: Any) -> Any:
    """The longest step, at most one, that leaves everything positive."""
    longest = at.mu * 0 + 1
    for now, go in ((at.x, move.x), (at.z, move.z), (at.alpha, move.alpha), (at.s, move.s)):
        down = go < 0
        if down.any():
            longest = min(longest, reach * (now[down] / -go[down]).min())
    return longest


class _Newton:
    """The linearised equations at a point, factorised once."""

    def __init__(self, problem: Smooth, at: Point) -> None:
        self.problem, self.at = problem, at
        n, m = len(problem.a), len(problem.b)
        rows, cols, costs = problem.rows, problem.cols, problem.costs
        self.weight = at.x / (problem.eps + at.z)
        scaled = costs * self.weight
        size = n + m + len(costs)
        matrix = np.zeros((size, size), dtype=costs.dtype) + 0 * at.t
        sums = problem.marginals(self.weight)
        matrix[np.arange(n + m), np.arange(n + m)] = sums
        np.add.at(matrix, (rows, n + cols), self.weight)
        np.add.at(matrix, (n + cols, rows), self.weight)
        for group, part in enumerate(scaled):
            cross = -problem.marginals(part)
            matrix[: n + m, n + m + group] = cross
            matrix[n + m + group, : n + m] = cross
        matrix[n + m :, n + m :] = scaled @ costs.T
        self.stiff = (problem.eta + at.s) / at.alpha
        matrix[np.arange(n + m, size), np.arange(n + m, size)] += self.stiff
        # One potential is free: that of the heaviest point stays. Light points are eliminated
        # first, so that their equations are not what is left over of heavy ones.
        order = sorted(range(n + m), key=lambda node: problem.need[node])
        self.keep = np.array([*order[:-1], *range(n + m, size)])
        self.factor = _cholesky(matrix[np.ix_(self.keep, self.keep)])
        self.dual = (
            at.alpha @ costs - at.y[rows] - at.y[n + cols]
            + problem.eps * problem.log(at.x / problem.product) - at.z
        )  # fmt: skip
        self.primal = (
            at.t - costs @ at.x
            + problem.eta * (problem.log(at.alpha) - problem.log_prior) - at.s
        )  # fmt: skip
        self.lack = problem.need - problem.marginals(at.x)
        ones = np.zeros(size, dtype=costs.dtype) + 0 * at.t
        ones[n + m :] += 1
        self.ones = ones
        self.push = self._solve(ones)

    def _solve(self, right: Any) -> Any:
        full = right * 0
        full[self.keep] = _substitute(self.factor, right[self.keep])
        return full

    def direction(self, mu: Any, bend: Any, turn: Any) -> Point:
        """Aim at products mu, less what the second order adds to them."""
        problem, at = self.problem, self.at
        n, m = len(problem.a), len(problem.b)
        rho = -self.dual + (mu - bend) / at.x - at.z
        sigma = -self.primal + (mu - turn) / at.alpha - at.s
        moved = self.weight * rho
        right = np.concatenate(
            [self.lack - problem.marginals(moved), sigma + problem.costs @ moved]
        )
        found = self._solve(right)
        missing = 1 - at.alpha.sum()
        level = (found[n + m :].sum() - missing) / self.push[n + m :].sum()
        found = found - level * self.push
        y, alpha = found[: n + m], found[n + m :]
        gain = y[problem.rows] + y[n + problem.cols] - alpha @ problem.costs + rho
        x = self.weight * gain
        z = (mu - bend - at.z * x) / at.x - at.z
        s = (mu - turn - at.s * alpha) / at.alpha - at.s
        return Point(x, z, y, alpha, s, level)


def _cholesky(matrix: Any) -> Any:
    """Factorise; directions in which nothing is left are left alone."""
    work = matrix.copy()
    size = len(work)
    diagonal = np.diagonal(matrix).copy()
    small = _unit(matrix)
    for at in range(size):
        pivot = work[at, at]
        if not pivot > small * diagonal[at]:
            work[at:, at] = 0 * work[at:, at]
            work[at, at] = 0 * pivot
            continue
        root = pivot**0.5 if work.dtype == object else np.sqrt(pivot)
        column = work[at:, at] / root
        work[at:, at] = column
        rest = column[1:]
        work[at + 1 :, at + 1 :] -= rest[:, None] * rest
    return work


def _substitute(factor: Any, right: Any) -> Any:
    """Solve with the factor and its transpose."""
    found = right.copy()
    size = len(found)
    for at in range(size):
        if factor[at, at] == 0:
            found[at] = 0 * found[at]
            continue
        found[at] = found[at] / factor[at, at]
        found[at + 1 :] -= found[at] * factor[at + 1 :, at]
    for at in reversed(range(size)):
        if factor[at, at] == 0:
            continue
        found[at] = (found[at] - (factor[at + 1 :, at] * found[at + 1 :]).sum()) / factor[at, at]
    return found


def _unit(matrix: Any) -> Any:
    """What is rounding next to one."""
    if matrix.dtype == object:
        context: Any = matrix.flat[0].context
        return context.eps * 16
    return 16 * np.finfo(matrix.dtype).eps

r"""The second moments of a plan's displacements, never formed where that would be large.

.. math::
    V_\Pi = \sum_{ij} \pi_{ij} (x_i - y_j)(x_i - y_j)^\top
          = X^\top (D_a X - \Pi Y) + Y^\top (D_b Y - \Pi^\top X)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh, get_lapack_funcs, qr

from frot.costs.protocol import UNIT
from frot.plans.plan import Plan

# Up to this many features the matrix is formed and its eigenvectors are LAPACK's.
DENSE_FEATURES = 2_000
# Up to this many features points are turned whenever that saves coordinates.
SMALL = 500
# Plans of up to this many arcs times features are summed over differences of points.
PRECISE_UP_TO = 100_000


def reduce_points(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Centre the points, and turn them into as few coordinates as there are points, if that pays.

    Returns them, (n, r) and (m, r), and the basis, (d, r), or None where nothing was turned.

    Examples
    --------
    >>> X, Y, basis = reduce_points(np.array([[0.0, 3.0, 4.0]]), np.zeros((1, 3)))
    >>> float(np.abs(X - Y).sum().round(6)), basis.shape
    (5.0, (3, 1))
    """
    centre = (X.sum(axis=0) + Y.sum(axis=0)) / (len(X) + len(Y))
    X, Y = X - centre, Y - centre
    count = len(X) + len(Y)
    # Turning costs as much as several rounds; it has to save more than it costs.
    if count > X.shape[1] or (2 * count > X.shape[1] > SMALL):
        return X, Y, None
    # All differences lie in the span of the centred points, of dimension n + m - 1 at most.
    factors: Any = qr(np.vstack([X, Y])[:-1].T, mode="economic", pivoting=True)
    basis, triangle, _ = factors
    heights = np.abs(np.diagonal(triangle))
    rank = max(1, int((heights > 4.0 * UNIT * heights[0]).sum()))
    basis = np.ascontiguousarray(basis[:, :rank])
    return X @ basis, Y @ basis, basis


@dataclass(frozen=True, eq=False)
class Displacements:
    """Points and weights, and what plans between them do to their second moments.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> at = Displacements(np.eye(2), np.zeros((2, 2)), half, half)
    >>> at.moments(Plan(np.eye(2) / 2), np.eye(2))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    X: np.ndarray
    Y: np.ndarray
    a: np.ndarray
    b: np.ndarray

    @property
    def features(self) -> int:
        """Number of coordinates."""
        return self.X.shape[1]

    def moments(self, plan: Plan, basis: np.ndarray) -> np.ndarray:
        """Return basis^T V basis, shape (r, r); costs O((n + m) r^2) once points are projected."""
        return self.projected(basis).of(plan)

    def projected(self, basis: np.ndarray) -> Projected:
        """Return the points in another basis."""
        return Projected(self.X @ basis, self.Y @ basis, self.a, self.b)

    @cached_property
    def _whole(self) -> Projected:
        return Projected(self.X, self.Y, self.a, self.b)

    def apply(self, plan: Plan, vectors: np.ndarray) -> np.ndarray:
        """Return V @ vectors in O((n + m) d) a vector."""
        left, right = self.X @ vectors, self.Y @ vectors
        a, b = self.a, self.b
        if vectors.ndim == 2:
            a, b = a[:, None], b[:, None]
        out = self.X.T @ (a * left - plan @ right)
        out += self.Y.T @ (b * right - plan.T @ left)
        return out

    @cached_property
    def squares(self) -> float:
        """Mean square of both sets of points: what rounding in V is relative to."""
        sides = ((self.a, self.X), (self.b, self.Y))
        return sum(float(weights @ np.einsum("ik,ik->i", at, at)) for weights, at in sides)

    def top(
        self, plan: Plan, count: int, start: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the largest eigenvalues, their vectors, and what their sum may err by.

        Ascending as LAPACK's. Beyond some thousand features they are Lanczos's, which needs
        nothing but products with V and may miss one: the error is then infinite, see `proven`.
        """
        size = self.features
        count = min(count, size)
        if self.dense or 3 * count > size:
            matrix = self._whole.of(plan)
            values, vectors = eigh(matrix, subset_by_index=[size - count, size - 1])
            return values, vectors, self._doubt(plan, float(np.trace(matrix)))
        # Imported here, since it would make `import frot` wait.
        from scipy.sparse.linalg import LinearOperator, eigsh

        # SciPy's stubs do not know its keyword arguments.
        make: Any = LinearOperator
        lanczos: Any = eigsh
        operator = make(
            (size, size),
            matvec=lambda v: self.apply(plan, v.ravel()),
            matmat=lambda v: self.apply(plan, v),
            dtype=float,
        )
        first = None if start is None else start.sum(axis=1)
        values, vectors = lanczos(operator, k=count, which="LA", v0=first, tol=1e-6)
        order = np.argsort(values)
        return values[order], vectors[:, order], np.inf

    def proven(
        self, plan: Plan, values: np.ndarray, vectors: np.ndarray, k: int, room: float
    ) -> float:
        """Return a bound on the sum of the k largest eigenvalues, `room` above it at most.

        The vectors need not be right; the bound is all the same. See `ceiling`.
        """
        # The rounding of V turns no eigenvalue by more than it may turn all of them.
        doubt = self._doubt(plan, float(self.squares))
        return ceiling(lambda: self._lower_half(plan), values, vectors, k, room) + doubt

    def _lower_half(self, plan: Plan) -> np.ndarray:
        """Return V without what is above its diagonal blocks: half the work, no temporaries."""
        left = self.a[:, None] * self.X - plan @ self.Y
        right = self.b[:, None] * self.Y - plan.T @ self.X
        size = self.features
        matrix = np.zeros((size, size))
        step = max(256, size // 16)
        for begin in range(0, size, step):
            end = min(size, begin + step)
            block = matrix[begin:end, :end]
            np.matmul(self.X[:, begin:end].T, left[:, :end], out=block)
            block += self.Y[:, begin:end].T @ right[:, :end]
        return matrix

    @property
    def dense(self) -> bool:
        """Whether V is formed for its eigenvectors."""
        return self.features <= DENSE_FEATURES

    def _doubt(self, plan: Plan, total: float) -> float:
        """What rounding may do to a sum of eigenvalues that sum to `total` at most."""
        size = total if self._whole.precise(plan) else self.squares
        return (16.0 + 4.0 * float(np.sqrt(self.features + plan.count))) * UNIT * size


@dataclass(frozen=True, eq=False)
class Projected:
    """Points in a basis of few directions."""

    X: np.ndarray
    Y: np.ndarray
    a: np.ndarray
    b: np.ndarray

    @cached_property
    def _own(self) -> np.ndarray:
        return (self.X.T * self.a) @ self.X + (self.Y.T * self.b) @ self.Y

    def precise(self, plan: Plan) -> bool:
        """Whether V is summed over differences, which lose no digits."""
        return plan.is_sparse and plan.count * self.X.shape[1] <= PRECISE_UP_TO

    def of(self, plan: Plan) -> np.ndarray:
        """Return V of a plan in this basis."""
        if self.precise(plan):
            rows, cols, mass = plan.arcs()
            gaps = self.X[rows] - self.Y[cols]
            return (gaps.T * mass) @ gaps
        cross = self.X.T @ (plan @ self.Y)
        return self._own - cross - cross.T


def ceiling(
    lower_half: Callable[[], np.ndarray],
    values: np.ndarray,
    vectors: np.ndarray,
    k: int,
    room: float,
) -> float:
    """Return a number that the k largest eigenvalues of a matrix do not exceed in sum.

    `lower_half` returns the matrix, (d, d), of which what is above the diagonal is not read; it is
    overwritten. `values`, ascending, and `vectors`, (d, r) with r >= k, are approximate leading
    ones. `room` is what the bound may give away: where that is too little for vectors this rough,
    all eigenvalues are computed instead.

    Examples
    --------
    >>> matrix = np.diag([1.0, 2.0, 5.0])
    >>> found = ceiling(matrix.copy, np.array([2.0, 5.0]), np.eye(3)[:, 1:], 1, 0.1)
    >>> 5.0 <= found <= 5.1001
    True
    """
    size = len(vectors)
    share = room / k
    least = float(np.sort(values)[len(values) - k])
    # Every direction is left some distance from the level: what rough vectors need.
    level, above = least + share, np.maximum(values - least, 0.0)
    lengths = np.einsum("ik,ik->k", vectors, vectors)
    bound = k * level + float(above @ lengths)
    if room > 0.0 and level > 0.0:
        matrix = lower_half()
        np.negative(matrix, out=matrix)
        used = vectors[:, above > 0.0] * np.sqrt(above[above > 0.0])
        step = max(1, 2_000_000 // size)
        for begin in range(0, size, step):
            end = min(size, begin + step)
            matrix[begin:end, :end] += used[begin:end] @ used[:end].T
        np.einsum("ii->i", matrix)[:] += level
        trace = float(np.trace(matrix))
        # The transpose is the same matrix in the order that LAPACK works in place on.
        factorise: Any = get_lapack_funcs("potrf", (matrix,))
        _, failed = factorise(matrix.T, lower=0, overwrite_a=1, clean=0)
        if not failed:
            # What a factorisation that ran through can have been off by, in every direction.
            return bound + 2.0 * k * (size + 4.0) * UNIT * trace
    matrix = lower_half()
    exact = eigh(matrix, lower=True, eigvals_only=True, subset_by_index=[size - k, size - 1])
    return float(exact.sum()) + 4.0 * size * UNIT * float(np.abs(exact).max(initial=0.0))

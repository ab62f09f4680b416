r"""The second moments of a plan's displacements, and the sum of their largest eigenvalues.

.. math::
    V_\Pi = \sum_{ij} \pi_{ij} (x_i - y_j)(x_i - y_j)^\top
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, qr

from frot._base.arrays import UNIT
from frot.plans.feasible import marginal_error
from frot.plans.plan import Plan, n_entries
from frot.problem.bounds import marginal_doubt
from frot.relatives.pair import PointPair


class Leading(NamedTuple):
    """The sum of the k largest eigenvalues, a bound on it, and their vectors, (r, k)."""

    value: float
    bound: float
    vectors: np.ndarray


@dataclass(frozen=True, eq=False)
class Displacements:
    """Centred points in as few coordinates as they span, and what plans between them do.

    Examples
    --------
    >>> from frot.relatives.pair import check_pair
    >>> moments = Displacements.of(check_pair([[0.0, 0.0]], [[3.0, 4.0]], None, None))
    >>> plan = Plan(np.ones((1, 1)))
    >>> round(moments.leading(plan, 1).value, 9)
    25.0
    """

    pair: PointPair
    X: np.ndarray
    Y: np.ndarray
    basis: np.ndarray | None

    @classmethod
    def of(cls, pair: PointPair) -> Displacements:
        """Centre the points, and turn them where they are no more than their features."""
        X, Y = pair.X, pair.Y
        centre = (X.sum(axis=0) + Y.sum(axis=0)) / (len(X) + len(Y))
        X, Y = X - centre, Y - centre
        if len(X) + len(Y) > X.shape[1]:
            return cls(pair, X, Y, None)
        # All differences lie in the span of the centred points, of dimension n + m - 1 at most.
        factors: Any = qr(np.vstack([X, Y])[:-1].T, mode="economic", pivoting=True)
        basis, triangle, _ = factors
        heights = np.abs(np.diagonal(triangle))
        rank = max(1, int((heights > 4.0 * UNIT * heights[0]).sum()))
        basis = np.ascontiguousarray(basis[:, :rank])
        return cls(pair, X @ basis, Y @ basis, basis)

    @property
    def a(self) -> np.ndarray:
        """Weights of X."""
        return self.pair.a

    @property
    def b(self) -> np.ndarray:
        """Weights of Y."""
        return self.pair.b

    @property
    def features(self) -> int:
        """Number of coordinates."""
        return self.X.shape[1]

    @cached_property
    def squares(self) -> float:
        """Mean square of both sets of points."""
        x, y = (np.einsum("ik,ik->i", points, points) for points in (self.X, self.Y))
        return float(self.a @ x + self.b @ y)

    def back(self, directions: np.ndarray) -> np.ndarray:
        """Return directions, (r,) or (r, s), in the features that came in."""
        return directions if self.basis is None else self.basis @ directions

    def matrix(self, plan: Plan) -> np.ndarray:
        """Return V of a sparse plan, summed over differences, which lose no digits."""
        rows, cols, mass = plan.arcs()
        gaps = self.X[rows] - self.Y[cols]
        return (gaps.T * mass) @ gaps

    def leading(
        self, plan: Plan, k: int, matrix: np.ndarray | None = None, averaged: int = 0
    ) -> Leading:
        """Return the sum of the k largest eigenvalues of V.

        `matrix` is V where it is known, and `averaged` how often it and the plan were averaged.

        The bound adds what inexact marginals may cost in all directions together, and what the
        round-off of V and of its eigenvalues is at most: V is a sum of squares of differences, each
        relative to itself, of coordinates that are right to units of their own size.
        """
        V = self.matrix(plan) if matrix is None else matrix
        size = self.features
        values, vectors = eigh(V, subset_by_index=[size - k, size - 1])
        value = max(float(values.sum()), 0.0)
        total = float(np.trace(V))
        units = 16.0 + 4.0 * float(np.sqrt(size + n_entries(plan))) + 4.0 * averaged
        rounding = units * UNIT * (total + float(np.sqrt(total * self.squares)))
        problem = self.pair.problem
        error = marginal_error(plan, problem.a, problem.b)
        marginals = float(marginal_doubt(problem, np.array([total]), error)[0])
        return Leading(value, value + rounding + marginals, vectors)

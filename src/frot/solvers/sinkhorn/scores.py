r"""Blocks of rows of the scores :math:`g_j / \varepsilon - [M_\alpha]_{ij} / \varepsilon`.

Softmaxes along rows do not see what is added to a row, so a block of scores may leave it out: of
squared Euclidean costs only a product of matrices is left, which is as fast as a kernel gets.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Protocol

from frot.costs.geometry import Geometry
from frot.costs.points import PointGeometry
from frot.solvers.sinkhorn.terms import Terms

__all__ = ["Scores", "scores_at"]


class Scores(Protocol):
    """Blocks of rows at fixed weights."""

    @property
    def geometry(self) -> Geometry:
        """The costs."""
        ...

    def block(self, part: slice, bias: Any) -> Any:
        """Return bias_j - M_ij / eps + offset_i, (B, r, m), for a bias of shape (B, m)."""
        ...

    def reach(self) -> float:
        """Bound the size of scores without bias, by a look at the points alone."""
        ...

    def offset(self, part: slice) -> Any:
        """Return what was left out of the rows, (B, r), or zero."""
        ...

    def partial(self, part: slice, kernel: Any, left: Any, right: Any = None) -> Any:
        """Return what the rows ``left_i kernel_ij right_j`` of a plan add to the costs."""
        ...

    def total(self, partials: Any, rows: Any, cols: Any) -> Any:
        """Return phi, (B, L), from the sum of the partials and the plan's marginals."""
        ...


def scores_at(geometry: Geometry, terms: Terms, alpha: Any) -> Scores:
    """Return the scores of the costs mixed by alpha."""
    if isinstance(geometry, PointGeometry):
        return _PointScores(geometry, terms, alpha)
    return _CostScores(geometry, terms, alpha)


class _PointScores:
    """A product of scaled points, and norms."""

    def __init__(self, geometry: PointGeometry, terms: Terms, alpha: Any) -> None:
        self.geometry: PointGeometry = geometry
        self.weights = geometry.feature_weights(alpha)[:, None, :] / terms.eps[:, :, None]

    @cached_property
    def across(self) -> Any:
        """The columns: to scale them once is less work than to scale every block of rows."""
        return self.geometry.home.xp.matrix_transpose(self.geometry.Y * (2.0 * self.weights))

    def block(self, part: slice, bias: Any) -> Any:
        found = self.geometry.X[:, part, :] @ self.across
        found += (bias - self.y_norms)[:, None, :]
        return found

    @cached_property
    def x_norms(self) -> Any:
        return self._norms[0]

    @cached_property
    def y_norms(self) -> Any:
        return self._norms[1]

    @cached_property
    def _norms(self) -> tuple[Any, Any]:
        return self.geometry.norms(self.weights)

    def reach(self) -> float:
        # A product of points is no more than the mean of their squares.
        largest = self.geometry.home.xp.max
        return 2.0 * (float(largest(self.x_norms)) + float(largest(self.y_norms)))

    def offset(self, part: slice) -> Any:
        return self.x_norms[:, part]

    def partial(self, part: slice, kernel: Any, left: Any, right: Any = None) -> Any:
        xp = self.geometry.home.xp
        Y = self.geometry.Y if right is None else self.geometry.Y * right[:, :, None]
        X = self.geometry.X[:, part, :] * left[:, :, None]
        # A few rows times the kernel take half the time that the kernel times a few columns does.
        return xp.sum((xp.matrix_transpose(X) @ kernel) * xp.matrix_transpose(Y), axis=2)

    def total(self, partials: Any, rows: Any, cols: Any) -> Any:
        return self.geometry.from_moments(rows, cols, partials)


class _CostScores:
    """Any costs, mixed block by block."""

    def __init__(self, geometry: Geometry, terms: Terms, alpha: Any) -> None:
        self.geometry = geometry
        self.weights = alpha / terms.eps

    def block(self, part: slice, bias: Any) -> Any:
        return bias[:, None, :] - self.geometry.rows(part).mix(self.weights)

    def reach(self) -> float:
        return math.inf

    def offset(self, part: slice) -> Any:
        return 0.0

    def partial(self, part: slice, kernel: Any, left: Any, right: Any = None) -> Any:
        plan = kernel * left[:, :, None]
        if right is not None:
            plan *= right[:, None, :]
        return self.geometry.rows(part).inner(plan)

    def total(self, partials: Any, rows: Any, cols: Any) -> Any:
        return partials

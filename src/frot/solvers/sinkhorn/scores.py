r"""Blocks of rows of the scores :math:`g_j / \varepsilon - [M_\alpha]_{ij} / \varepsilon`.

Softmaxes along rows do not see what is added to a row, so a block of scores may leave it out: of
squared Euclidean costs only a product of matrices is left, which is as fast as a kernel gets.
"""

from __future__ import annotations

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
        xp = geometry.home.xp
        self.geometry: PointGeometry = geometry
        self.weights = geometry.feature_weights(alpha)[:, None, :] / terms.eps[:, :, None]
        # Scaling the columns once is less work than scaling every block of rows.
        self.across = xp.matrix_transpose(geometry.Y * (2.0 * self.weights))
        self.y_norms = self._norms(geometry.Y)

    def block(self, part: slice, bias: Any) -> Any:
        found = self.geometry.X[:, part, :] @ self.across
        found += (bias - self.y_norms)[:, None, :]
        return found

    @cached_property
    def x_norms(self) -> Any:
        return self._norms(self.geometry.X)

    def _norms(self, points: Any) -> Any:
        across = self.geometry.home.xp.matrix_transpose(self.weights)
        return ((points * points) @ across)[:, :, 0]

    def offset(self, part: slice) -> Any:
        return self.x_norms[:, part]

    def partial(self, part: slice, kernel: Any, left: Any, right: Any = None) -> Any:
        Y = self.geometry.Y if right is None else self.geometry.Y * right[:, :, None]
        X = self.geometry.X[:, part, :] * left[:, :, None]
        return self.geometry.home.xp.sum(X * (kernel @ Y), axis=1)

    def total(self, partials: Any, rows: Any, cols: Any) -> Any:
        return self.geometry.from_moments(rows, cols, partials)


class _CostScores:
    """Any costs, mixed block by block."""

    def __init__(self, geometry: Geometry, terms: Terms, alpha: Any) -> None:
        self.geometry = geometry
        self.weights = alpha / terms.eps

    def block(self, part: slice, bias: Any) -> Any:
        return bias[:, None, :] - self.geometry.rows(part).mix(self.weights)

    def offset(self, part: slice) -> Any:
        return 0.0

    def partial(self, part: slice, kernel: Any, left: Any, right: Any = None) -> Any:
        plan = kernel * left[:, :, None]
        if right is not None:
            plan *= right[:, None, :]
        return self.geometry.rows(part).inner(plan)

    def total(self, partials: Any, rows: Any, cols: Any) -> Any:
        return partials

r"""Row blocks of :math:`-M_\alpha / \varepsilon` plus a bias, and group costs from them.

What does not depend on the block is computed once a pass: on a device a block is small next to the
points. Scores leave out an offset of every row, which a softmax does not see.
"""

from __future__ import annotations

from typing import Any, Protocol

from frot._entropic._geometry import Geometry, PointGeometry
from frot._entropic._terms import Terms

__all__ = ["Scores", "scores_at"]


class Scores(Protocol):
    """Blocks of rows at fixed weights."""

    def block(self, part: slice, bias: Any) -> Any:
        """Return bias_j - M_ij / eps + offset_i, (B, r, m), for a bias of shape (B, m)."""
        ...

    def offset(self, part: slice) -> Any:
        """Return what was left out of the rows, (B, r)."""
        ...

    def partial(self, part: slice, plan: Any, weights: Any) -> Any:
        """Return what the rows ``weights[:, :, None] * plan`` add to the costs."""
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
        self.geometry = geometry
        self.eps = terms.eps[:, :, None]
        self.weights = geometry.feature_weights(alpha)[:, None, :] / self.eps
        self.across = xp.matrix_transpose(geometry.Y)
        self.y_norms = xp.sum(geometry.Y * geometry.Y * self.weights, axis=2)

    def block(self, part: slice, bias: Any) -> Any:
        found = (self.geometry.X[:, part, :] * (2.0 * self.weights)) @ self.across
        found += (bias - self.y_norms)[:, None, :]
        return found

    def offset(self, part: slice) -> Any:
        X = self.geometry.X[:, part, :]
        return self.geometry.home.xp.sum(X * X * self.weights, axis=2)

    def partial(self, part: slice, plan: Any, weights: Any) -> Any:
        X = self.geometry.X[:, part, :] * weights[:, :, None]
        return self.geometry.home.xp.sum(X * (plan @ self.geometry.Y), axis=1)

    def total(self, partials: Any, rows: Any, cols: Any) -> Any:
        return self.geometry.from_moments(rows, cols, partials)


class _CostScores:
    """Any costs, mixed block by block."""

    def __init__(self, geometry: Geometry, terms: Terms, alpha: Any) -> None:
        self.geometry, self.alpha = geometry, alpha
        self.eps = terms.eps[:, :, None]

    def block(self, part: slice, bias: Any) -> Any:
        found = self.geometry.rows(part).mix(self.alpha)
        found /= -self.eps
        found += bias[:, None, :]
        return found

    def offset(self, part: slice) -> Any:
        home = self.geometry.home
        batch, count = self.eps.shape[0], part.stop - part.start
        return home.xp.zeros((batch, count), dtype=home.dtype, device=home.device)

    def partial(self, part: slice, plan: Any, weights: Any) -> Any:
        return self.geometry.rows(part).inner(plan * weights[:, :, None])

    def total(self, partials: Any, rows: Any, cols: Any) -> Any:
        return partials

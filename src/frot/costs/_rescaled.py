"""Costs shifted and scaled group by group: what normalisation comes to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frot.costs.geometry import Geometry
from frot.costs.protocol import UNIT, Costs, Rounding
from frot.plans.plan import Plan

__all__ = ["RescaledCosts"]


@dataclass(frozen=True, eq=False)
class RescaledCosts(Costs):
    r"""Costs :math:`C'_l = s_l\,(C_l - r_l)` on top of any other kind.

    Examples
    --------
    >>> from frot.costs.stack import StackedCosts
    >>> costs = RescaledCosts(StackedCosts(np.array([[[4.0]]])), np.array([0.5]), np.array([1.0]))
    >>> costs.mix(np.array([1.0]))
    array([[1.5]])
    """

    base: Costs
    scale: np.ndarray
    shift: np.ndarray

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return self.base.shape

    @property
    def nonnegative(self) -> bool:
        """Only where nothing was subtracted."""
        return self.base.nonnegative and bool((self.shift <= 0.0).all())

    @property
    def forbidden(self) -> np.ndarray | None:
        """The base's forbidden arcs."""
        return self.base.forbidden

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return sum_l alpha_l C'_l."""
        weights = alpha * self.scale
        mixed = self.base.mix(weights)
        mixed -= weights @ self.shift
        return mixed

    def inner(self, plan: Plan) -> np.ndarray:
        """Return <plan, C'_l>."""
        return self.scale * (self.base.inner(plan) - self.shift * plan.sum())

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at the arcs, shape (groups, K)."""
        pick = slice(None) if groups is None else groups
        found = self.base.at(rows, cols, groups)
        return self.scale[pick, None] * (found - self.shift[pick, None])

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return phi of a b^T."""
        return self.scale * (self.base.independent(a, b) - self.shift * (a.sum() * b.sum()))

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the mean size of every group's cost before the shift, and the shift's."""
        return self.scale * (self.base.magnitudes(a, b) + np.abs(self.shift))

    def take(self, rows: np.ndarray, cols: np.ndarray) -> RescaledCosts:
        """Return the costs between some of the points."""
        return RescaledCosts(self.base.take(rows, cols), self.scale, self.shift)

    def geometry(self) -> Geometry:
        """The base's, scaled, where nothing is subtracted."""
        return super().geometry() if self.shift.any() else self.base.geometry().rescaled(self.scale)

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the base's least costs, shifted and scaled."""
        below = self.base.least(a, b)
        error = 8.0 * UNIT * (np.abs(below) + np.abs(self.shift))
        return self.scale * np.where(np.isfinite(below), below - self.shift - error, below)

    def least_potentials(
        self, alpha: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the base's, less what is subtracted."""
        weights = alpha * self.scale
        f, g = self.base.least_potentials(weights, a, b)
        return f - float(weights @ self.shift), g

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the base's error and that of one subtraction."""
        weights = alpha * self.scale
        base = self.base.rounding(weights)
        if not self.shift.any():
            return base._replace(relative=base.relative + 4.0 * UNIT)
        # What is left after a subtraction may be small, so errors relative to the base are not.
        reach = float(weights @ (self.base.peaks + np.abs(self.shift)))
        return Rounding(0.0, base.rows + (base.relative + 4.0 * UNIT) * reach, base.cols)

    def sharp(self, alpha: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray | None:
        """Return the base's sharper entries, where there are any and nothing is subtracted."""
        if self.shift.any():
            return None
        found = self.base.sharp(alpha * self.scale, rows, cols)
        return None if found is None else found * (1.0 - 4.0 * UNIT)

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the base's error and that of one subtraction."""
        before = phi / self.scale + self.shift
        error = self.base.doubt(before, plan) + 8.0 * UNIT * (np.abs(before) + np.abs(self.shift))
        return self.scale * error

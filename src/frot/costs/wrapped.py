"""Costs that wrap others: a part, rescaled, a dummy point on either side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from frot.costs.geometry import Geometry
from frot.costs.protocol import UNIT, Costs, Rounding, summation
from frot.plans.plan import Plan, is_sparse


@dataclass(frozen=True, eq=False)
class WrappedCosts(Costs):
    """Costs on top of others: what is not overridden is the base's."""

    base: Costs

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return self.base.shape

    @property
    def nonnegative(self) -> bool:
        """Whether no entry is known to be negative."""
        return self.base.nonnegative


@dataclass(frozen=True, eq=False)
class PartOfCosts(WrappedCosts):
    """Some rows and columns of costs that have no better way to be cut."""

    rows: np.ndarray
    cols: np.ndarray

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n', m')."""
        return (self.base.shape[0], len(self.rows), len(self.cols))

    @cached_property
    def peaks(self) -> np.ndarray:
        """Those of the whole."""
        return self.base.peaks

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return a part of the whole mix."""
        return self.base.mix(alpha)[np.ix_(self.rows, self.cols)]

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at the arcs."""
        return self.base.at(self.rows[rows], self.cols[cols], groups)

    def take(self, rows: np.ndarray, cols: np.ndarray) -> Costs:
        """Return a part of the same whole."""
        return PartOfCosts(self.base, self.rows[rows], self.cols[cols])

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Return the whole's bounds, of the points there are."""
        relative, rows, cols = self.base.rounding(alpha)
        return Rounding(
            relative,
            rows[self.rows] if np.ndim(rows) else rows,
            cols[self.cols] if np.ndim(cols) else cols,
        )

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Return the whole's bound of the same plan."""
        rows, cols, mass = plan.arcs()
        whole = self.base.shape[1:]
        return self.base.doubt(phi, Plan.from_arcs(self.rows[rows], self.cols[cols], mass, whole))


@dataclass(frozen=True, eq=False)
class RescaledCosts(WrappedCosts):
    r"""Costs :math:`C'_l = s_l\,(C_l - r_l)` on top of any other kind.

    Examples
    --------
    >>> from frot.costs import StackedCosts
    >>> costs = RescaledCosts(StackedCosts(np.array([[[4.0]]])), np.array([0.5]), np.array([1.0]))
    >>> costs.mix(np.array([1.0]))
    array([[1.5]])
    """

    scale: np.ndarray
    shift: np.ndarray

    @property
    def nonnegative(self) -> bool:
        """Only where nothing was subtracted."""
        return self.base.nonnegative and bool((self.shift <= 0.0).all())

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

    @cached_property
    def peaks(self) -> np.ndarray:
        """Bounds on the sizes of entries, before and after the shift."""
        return self.scale * (self.base.peaks + np.abs(self.shift))

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

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the base's error and that of one subtraction."""
        before = phi / self.scale + self.shift
        error = self.base.doubt(before, plan) + 8.0 * UNIT * (np.abs(before) + np.abs(self.shift))
        return self.scale * error


@dataclass(frozen=True, eq=False)
class PartialCosts(WrappedCosts):
    r"""Costs :math:`\begin{pmatrix} C_l & \tau_a \\ \tau_b & 0 \end{pmatrix}` in every group.

    Weights of groups sum to one, so that a price that is the same in all groups is paid once.

    Parameters
    ----------
    base : Costs
    tau_a, tau_b : float, optional
        Price of a unit of mass of the rows that goes to the dummy column, which is the last one,
        and of the columns that comes from the dummy row; None has no such point.

    Examples
    --------
    >>> from frot.costs import StackedCosts
    >>> PartialCosts(StackedCosts(np.array([[[5.0]]])), 1.0, 2.0).mix(np.ones(1))
    array([[5., 1.],
           [2., 0.]])
    """

    tau_a: float | None
    tau_b: float | None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n + 1, m + 1), or one less where a side has no dummy."""
        count, n, m = self.base.shape
        return (count, n + (self.tau_b is not None), m + (self.tau_a is not None))

    @cached_property
    def peaks(self) -> np.ndarray:
        """The largest of the base's and of the prices."""
        return np.maximum(self.base.peaks, max(self.tau_a or 0.0, self.tau_b or 0.0))

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the base's mix, with prices around it."""
        _, n, m = self.base.shape
        mixed, total = np.zeros(self.shape[1:]), float(alpha.sum())
        mixed[:n, :m] = self.base.mix(alpha)
        mixed[:n, m:] = total * (self.tau_a or 0.0)
        mixed[n:, :m] = total * (self.tau_b or 0.0)
        return mixed

    def prices(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Return what arcs cost in every group, (K,); nothing between true points."""
        _, n, m = self.base.shape
        out, made = (rows < n) & (cols >= m), (rows >= n) & (cols < m)
        return np.where(out, self.tau_a or 0.0, 0.0) + np.where(made, self.tau_b or 0.0, 0.0)

    def _true(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        _, n, m = self.base.shape
        return (rows < n) & (cols < m)

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at the arcs, shape (groups, K)."""
        rows, cols = np.asarray(rows), np.asarray(cols)
        count = self.shape[0] if groups is None else len(groups)
        found = np.tile(self.prices(rows, cols), (count, 1))
        true = self._true(rows, cols)
        found[:, true] = self.base.at(rows[true], cols[true], groups)
        return found

    def crop(self, plan: Plan) -> Plan:
        """Return what a plan does between the true points."""
        _, n, m = self.base.shape
        if not is_sparse(plan):
            return Plan(plan.dense()[:n, :m], copy=False)
        rows, cols, mass = plan.arcs()
        true = self._true(rows, cols)
        return Plan.from_arcs(rows[true], cols[true], mass[true], (n, m))

    def _paid(self, plan: Plan) -> float:
        """What a plan pays for the mass it leaves out."""
        rows, cols, mass = plan.arcs()
        return float(self.prices(rows, cols) @ mass)

    def inner(self, plan: Plan) -> np.ndarray:
        """Return the costs of the plan between true points, and the price of the rest."""
        return self.base.inner(self.crop(plan)) + self._paid(plan)

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return phi of a b^T."""
        return self._sized(self.base.independent, a, b)

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the mean size of every group's cost."""
        return self._sized(self.base.magnitudes, a, b)

    def _sized(
        self, of_base: Callable[..., np.ndarray], a: np.ndarray, b: np.ndarray
    ) -> np.ndarray:
        _, n, m = self.base.shape
        inside = of_base(a[:n], b[:m])
        out = (self.tau_a or 0.0) * a[:n].sum() * b[m:].sum()
        return inside + out + (self.tau_b or 0.0) * a[n:].sum() * b[:m].sum()

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the base's error, and that of a product with the sum of the weights."""
        base, (_, n, m) = self.base.rounding(alpha), self.base.shape
        unit = (len(alpha) + 2) * UNIT
        rows = np.concatenate([np.broadcast_to(base.rows, n), np.zeros(self.shape[1] - n)])
        cols = np.concatenate([np.broadcast_to(base.cols, m), np.zeros(self.shape[2] - m)])
        if self.nonnegative:
            return Rounding(max(base.relative, unit), rows, cols)
        rows[n:], cols[m:] = unit * (self.tau_b or 0.0), unit * (self.tau_a or 0.0)
        return Rounding(base.relative, rows, cols)

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the base's error, and that of the sum of what is paid."""
        paid = self._paid(plan)
        inside = self.base.doubt(phi - paid, self.crop(plan))
        return inside + summation(plan) * (paid + np.abs(phi))

"""Costs with a dummy point on either side, to which mass goes that is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from frot.costs.protocol import UNIT, Costs, Rounding, summation
from frot.plans.plan import Plan

__all__ = ["PartialCosts"]


@dataclass(frozen=True, eq=False)
class PartialCosts(Costs):
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
    >>> from frot.costs.stack import StackedCosts
    >>> PartialCosts(StackedCosts(np.array([[[5.0]]])), 1.0, 2.0).mix(np.ones(1))
    array([[5., 1.],
           [2., 0.]])
    """

    base: Costs
    tau_a: float | None
    tau_b: float | None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n + 1, m + 1), or one less where a side has no dummy."""
        count, n, m = self.base.shape
        return (count, n + (self.tau_b is not None), m + (self.tau_a is not None))

    @property
    def nonnegative(self) -> bool:
        """Prices are positive."""
        return self.base.nonnegative

    @property
    def forbidden(self) -> np.ndarray | None:
        """The base's forbidden arcs; points with no allowed arc are left out."""
        shut = self.base.forbidden
        if shut is None:
            return None
        whole = np.zeros(self.shape[1:], dtype=bool)
        whole[: shut.shape[0], : shut.shape[1]] = shut
        return whole

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
        if not plan.is_sparse:
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

    def sharp(self, alpha: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray | None:
        """Return the base's sharper entries, and prices, where the base has any."""
        true = self._true(rows, cols)
        found = self.prices(rows, cols) * (float(alpha.sum()) * (1.0 - 8.0 * UNIT))
        if true.any():
            inside = self.base.sharp(alpha, rows[true], cols[true])
            if inside is None:
                return None
            found[true] = inside
        return found

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the base's error, and that of the sum of what is paid."""
        paid = self._paid(plan)
        inside = self.base.doubt(phi - paid, self.crop(plan))
        return inside + summation(plan) * (paid + np.abs(phi))

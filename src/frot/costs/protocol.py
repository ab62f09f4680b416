"""The `Costs` protocol: what the library asks of group costs, and bounds of their rounding."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from frot._base.arrays import UNIT, Home
from frot.plans.plan import Plan, n_entries

if TYPE_CHECKING:
    from frot.costs.geometry import Geometry

# Temporaries are kept near the size of a core's cache: large enough for BLAS, small in memory.
BLOCK_BYTES = 4_000_000


class Rounding(NamedTuple):
    """Entry (i, j) of a mixed cost is right to ``relative * |entry| + rows[i] + cols[j]``.

    The part of a point is weighted in a bound on a plan's cost by the point's
    weight: a far point of little weight costs next to nothing. Numbers, or arrays of shape (n,)
    and (m,); of a batch (B,), (B, n) and (B, m). `relative` is zero unless no cost is negative.
    """

    relative: Any
    rows: Any = 0.0
    cols: Any = 0.0

    @property
    def absolute(self) -> float:
        """The largest ``rows[i] + cols[j]``."""
        return float(np.max(self.rows) + np.max(self.cols))

    @property
    def sums(self) -> np.ndarray:
        """``rows[i] + cols[j]``, of the shape (n, m) or of one that broadcasts to it."""
        return np.add.outer(np.atleast_1d(self.rows), np.atleast_1d(self.cols))


class Line(NamedTuple):
    """Points on a line, whose cost is |x - y|^p with p >= 1: transport is sorting."""

    x: np.ndarray
    y: np.ndarray
    p: float


def summation(plan: Plan) -> float:
    """Bound the relative error of a sum over a plan's entries, in whatever order it is taken.

    A sum of k terms of one sign errs by k - 1 times half a unit; some more cover several products
    a term.
    """
    return (8.0 + 0.5 * n_entries(plan)) * UNIT


class Costs(Protocol):
    """L cost matrices of shape (n, m), seen only through sums over groups or over entries.

    The objective depends on a plan through the L numbers ``inner(plan)`` and on the weights
    through the one matrix ``mix(alpha)``; nothing else has to know how costs are stored.

    A class of your own derives from this one and says `shape`, `mix` and `at`; the rest follows
    from these, and is there to be said again where more is known: that no cost is negative, how
    a sparse plan is summed, what every plan pays at least. Entries of ``mix`` and ``at`` count as
    exact: where they are not, widen `rounding` and `doubt`.

    Examples
    --------
    >>> import frot
    >>> class Ramp(frot.costs.Costs):
    ...     "Group l costs l + 1 times |i - j|."
    ...     shape, nonnegative = (2, 3, 3), True
    ...     def mix(self, alpha):
    ...         i = np.arange(3.0)
    ...         return (alpha @ [1.0, 2.0]) * np.abs(i[:, None] - i)
    ...     def at(self, rows, cols, groups=None):
    ...         found = np.outer([1.0, 2.0], np.abs(rows - cols))
    ...         return found if groups is None else found[groups]
    >>> a, b = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.5])
    >>> round(frot.Exact()(frot.Problem(Ramp(), a, b)).value, 12)
    3.0
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        ...

    @abstractmethod
    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return sum_l alpha_l C_l, shape (n, m), for any weights alpha >= 0; the caller's own."""
        ...

    @abstractmethod
    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return C_l at the arcs (rows[k], cols[k]), shape (number of groups, K)."""
        ...

    @property
    def nonnegative(self) -> bool:
        """Whether every entry of every cost is known to be >= 0."""
        return False

    @property
    def home(self) -> Home | None:
        """Where they are worked out, in the user's precision; None for NumPy on the host."""
        return None

    @property
    def on_host(self) -> bool:
        """Whether they are NumPy's, whose points without weight are cheap to leave out.

        Others look at the weights themselves in `independent` and `magnitudes`.
        """
        return self.home is None

    @property
    def line(self) -> Line | None:
        """The points on a line whose convex cost this is, where it is."""
        return None

    @cached_property
    def peaks(self) -> np.ndarray:
        """Largest size of an entry in each group, (L,)."""
        return np.array([float(np.abs(self.group(at)).max()) for at in range(self.shape[0])])

    def group(self, group: int) -> np.ndarray:
        """Return the costs of one group, (n, m)."""
        return self.mix(np.eye(1, self.shape[0], group)[0])

    def inner(self, plan: Plan) -> np.ndarray:
        """Return phi_l = <plan, C_l>, shape (L,); a sparse plan costs its arcs only."""
        rows, cols, mass = plan.arcs()
        total = np.zeros(self.shape[0])
        for part in blocks(len(mass), 16 * self.shape[0]):
            total += self.at(rows[part], cols[part]) @ mass[part]
        return total

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return phi of the product plan a b^T, shape (L,)."""
        return np.array([a @ (self.group(at) @ b) for at in range(self.shape[0])])

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the size of the costs of each group, (L,): their unit, zero if all are zero."""
        if self.nonnegative:
            return self.independent(a, b)
        return np.array([a @ (np.abs(self.group(at)) @ b) for at in range(self.shape[0])])

    def take(self, rows: np.ndarray, cols: np.ndarray) -> Costs:
        """Return the costs between some of the points."""
        # Not above: it is a kind of costs itself.
        from frot.costs.wrapped import PartOfCosts

        return PartOfCosts(self, np.asarray(rows), np.asarray(cols))

    def rescaled(self, scale: np.ndarray, shift: np.ndarray | None = None) -> Costs:
        """Return the costs ``scale_l * (C_l - shift_l)``."""
        from frot.costs.wrapped import RescaledCosts

        return RescaledCosts(self, scale, np.zeros(len(scale)) if shift is None else shift)

    def geometry(self) -> Geometry:
        """Return the costs as a batch of one, for sweeps in whatever library they live in."""
        from frot.costs.geometry import CostsGeometry

        return CostsGeometry(self)

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return what every plan pays at least in each group, (L,), from the points alone.

        Rough, but without a pass over n m entries: what is known when there is no time for one.
        """
        return np.full(self.shape[0], 0.0 if self.nonnegative else -np.inf)

    def least_potentials(
        self, alpha: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return f and g, (n,) and (m,), that prove ``alpha @ least(a, b)``."""
        return constant_potentials(alpha, self.least(a, b), a, b)

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Return bounds on the rounding errors of the entries of ``mix(alpha)``.

        Those of a sum over groups: relative where no term is negative.
        """
        terms = (np.count_nonzero(alpha) + 2) * UNIT
        if self.nonnegative:
            return Rounding(terms)
        return Rounding(0.0, terms * float(np.abs(alpha) @ self.peaks))

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Return bounds, (L,), on the rounding errors of ``phi = inner(plan)`` of a unit mass."""
        return summation(plan) * (np.abs(phi) if self.nonnegative else self.peaks)


def constant_potentials(alpha: Any, least: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Return the potentials that know nothing but the least cost of every group.

    Of one problem, (L,), (L,), (n,) and (m,), or of a batch, with one axis more.
    """
    level = (alpha[..., None, :] @ least[..., :, None])[..., 0]
    return level + 0.0 * u, 0.0 * v


def blocks(count: int, bytes_per_item: int, budget: int = BLOCK_BYTES) -> list[slice]:
    """Cut range(count) into slices whose temporaries stay within `budget` bytes.

    Examples
    --------
    >>> blocks(5, 8, budget=16)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, min(count, budget // max(1, bytes_per_item)))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]

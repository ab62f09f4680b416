"""Batches of group costs in any array library: mixed by weights, summed over plans.

Arrays have a leading axis of B problems of the same shape; one problem is a batch of one. This is
how sweeps see costs; how a `Problem` and exact solvers do, without a batch, with plans, on the
host, is `frot.costs.protocol.Costs`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.costs.protocol import Rounding

__all__ = ["Geometry", "stand_ins", "standing_in", "take_members", "unit_of"]


class Geometry(Protocol):
    """B times L cost matrices of shape (n, m)."""

    @property
    def home(self) -> Home:
        """Where the arrays live, and their precision."""
        ...

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(B, L, n, m)."""
        ...

    @property
    def nonnegative(self) -> bool:
        """Whether no cost is known to be negative."""
        ...

    def mix(self, alpha: Any) -> Any:
        """Return sum_l alpha_l C_l: (B, L) to (B, n, m)."""
        ...

    def inner(self, plan: Any) -> Any:
        """Return <plan, C_l>: (B, n, m) to (B, L)."""
        ...

    def product(self, u: Any, v: Any) -> Any:
        """Return <u v^T, C_l>: (B, n) and (B, m) to (B, L)."""
        ...

    def least(self, u: Any, v: Any) -> Any:
        """Return what every plan with the marginals u and v pays at least, (B, L), roughly."""
        ...

    def least_potentials(self, alpha: Any, u: Any, v: Any) -> tuple[Any, Any]:
        """Return f and g, (B, n) and (B, m), that prove `least` of the mixed cost, or nothing."""
        ...

    def rows(self, part: slice) -> Geometry:
        """The costs of some rows only."""
        ...

    def take(self, rows: Any, cols: Any) -> Geometry:
        """The costs between some points, (n',) and (m',) on the host; they may repeat."""
        ...

    def stand_in(self, rows: Any, cols: Any) -> Geometry:
        """The costs with points at the places of others, (n,) and (m,); itself if it need not."""
        ...

    def members(self, index: Any) -> Geometry:
        """Some problems of the batch only."""
        ...

    def stack(self) -> Any:
        """All costs, (B, L, n, m)."""
        ...

    def mix_error(self, alpha: Any) -> Rounding:
        """Bound the rounding of the entries of ``mix(alpha)``."""
        ...

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the rounding of ``phi = inner(plan)``, (B, L), of a plan with marginals u and v."""
        ...

    def double(self) -> Geometry:
        """The same costs in double precision."""
        ...

    def single(self) -> Geometry:
        """The same costs in single precision, where that is possible."""
        ...

    def sizes(self, u: Any, v: Any) -> Any:
        """Return ``<u v^T, |C_l|>``: (B, n) and (B, m) to (B, L)."""
        ...

    def rescaled(self, factor: Any) -> Geometry:
        """The costs times a factor each, (L,) on the host."""
        ...

    def at(self, rows: Any, cols: Any) -> Any:
        """Return the costs of the first problem at K arcs, (L, K)."""
        ...


def unit_of(home: Home) -> float:
    """One unit in the last place of a number near one."""
    return float(home.xp.finfo(home.dtype).eps)


def take_members(home: Home, points: Any, index: Any) -> Any:
    """Return ``points[b, index[b, i], :]``, (B, n', d), for an index (B, n') on the host.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    >>> take_members(Home.of(points), points, np.array([[1, 1], [0, 1]]))[:, :, 0]
    array([[2., 2.],
           [3., 4.]])
    """
    batch, count, width = points.shape
    flat = index + count * np.arange(batch)[:, None]
    found = home.xp.take(
        home.xp.reshape(points, (batch * count, width)), home.indices(flat.reshape(-1)), axis=0
    )
    return home.xp.reshape(found, (batch, index.shape[1], width))


def stand_ins(weights: Any) -> np.ndarray | None:
    """Return at whose place every point stands, (B, n); None where all stand at their own.

    A point that carries nothing must not move anything: not the centre of the others, nor the
    scale of a kernel, nor a bound on rounding. It takes the place of the heaviest of its side.

    Examples
    --------
    >>> stand_ins(np.array([[0.0, 0.25, 0.75]]))
    array([[2, 1, 2]])
    >>> stand_ins(np.array([[0.5, 0.5]])) is None
    True
    """
    host = to_numpy(weights)
    if (host > 0.0).all():
        return None
    everyone = np.broadcast_to(np.arange(host.shape[1]), host.shape)
    return np.where(host > 0.0, everyone, host.argmax(axis=1)[:, None])


def standing_in(geometry: Any, a: Any, b: Any) -> Any:
    """The costs of one problem with points of no weight where the heaviest ones are."""
    rows, cols = (stand_ins(weights) for weights in (a, b))
    if rows is None and cols is None:
        return geometry
    _, _, n, m = geometry.shape
    return geometry.stand_in(
        np.arange(n) if rows is None else rows[0], np.arange(m) if cols is None else cols[0]
    )

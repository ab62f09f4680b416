"""Costs of points that live in another array library, on whatever device they are on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._base.arrays import Home, to_numpy
from frot.costs.build import is_squared
from frot.costs.protocol import Rounding
from frot.groups.groups import Groups
from frot.plans.plan import Plan
from frot.solvers.sinkhorn.absent import standing_in
from frot.solvers.sinkhorn.build import points_geometry
from frot.solvers.sinkhorn.geometry import DeviceGeometry
from frot.solvers.sinkhorn.stack import StackGeometry

__all__ = ["DeviceCosts", "device_points", "device_stack", "on_accelerator", "stays"]


@dataclass(frozen=True, eq=False)
class DeviceCosts:
    """What a `Problem` asks of its costs, and the geometry that `Entropic` works on.

    Parameters
    ----------
    geometry : DeviceGeometry
        One problem, in double precision.
    home : Home
        Where the user's arrays live, and the precision to search in.
    """

    geometry: DeviceGeometry
    home: Home

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        _, count, n, m = self.geometry.shape
        return (count, n, m)

    @property
    def on_host(self) -> bool:
        """Not NumPy's, or not worked on by it."""
        return False

    @property
    def nonnegative(self) -> bool:
        """Whether no cost is known to be negative."""
        return self.geometry.nonnegative

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return phi of the product plan, on the host."""
        return to_numpy(self._present(a, b).product(*self._bring(a, b)))[0]

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the mean size of every group's costs, on the host."""
        return to_numpy(self._present(a, b).sizes(*self._bring(a, b)))[0]

    def _present(self, a: np.ndarray, b: np.ndarray) -> DeviceGeometry:
        """The costs with points of no weight where others are."""
        return standing_in(self.geometry, a[None], b[None])

    def rescaled(self, scale: np.ndarray) -> DeviceCosts:
        """The costs times a factor each."""
        return DeviceCosts(self.geometry.rescaled(scale), self.home)

    def _bring(self, *arrays: np.ndarray) -> list[Any]:
        """Arrays of the host as a batch of one, in double precision."""
        bring = self.home.double().bring
        return [bring(array[None]) for array in arrays]

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return the mixed cost, on the host."""
        return to_numpy(self.geometry.mix(*self._bring(alpha)))[0]

    def inner(self, plan: Plan) -> np.ndarray:
        """Return the costs of a plan, on the host."""
        if plan.is_sparse:
            rows, cols, mass = plan.arcs()
            return self.at(rows, cols) @ mass
        return to_numpy(self.geometry.inner(*self._bring(plan.dense())))[0]

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at a few arcs, on the host."""
        found = to_numpy(self.geometry.at(self.home.indices(rows), self.home.indices(cols)))
        return found if groups is None else found[groups]

    def take(self, rows: np.ndarray, cols: np.ndarray) -> DeviceCosts:
        """Return the costs between some of the points."""
        return DeviceCosts(self.geometry.take(rows, cols), self.home)

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return what every plan pays at least in each group, on the host."""
        return to_numpy(self.geometry.least(*self._bring(a, b)))[0]

    def least_potentials(
        self, alpha: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the potentials that prove `least`, on the host."""
        f, g = self.geometry.least_potentials(*self._bring(alpha, a, b))
        return to_numpy(f)[0], to_numpy(g)[0]

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the rounding of the mixed cost, on the host."""
        off = self.geometry.mix_error(*self._bring(alpha))
        rows, cols = to_numpy(off.rows)[0], to_numpy(off.cols)[0]
        return Rounding(float(to_numpy(off.relative)[0]), rows, cols)

    def sharp(self, alpha: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> None:
        """Nothing is known to be closer than `rounding`."""

    @property
    def line(self) -> None:
        """Not on the host."""
        return None

    @property
    def forbidden(self) -> None:
        """No arc is: stacks with infinite costs are solved on the host."""
        return None

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the rounding of a plan's costs, on the host."""
        marginals = (np.asarray(plan.sum(axis=axis)) for axis in (1, 0))
        return to_numpy(self.geometry.inner_error(*self._bring(phi, *marginals)))[0]


def device_points(
    X: Any,
    Y: Any,
    groups: Groups,
    metric: Any,
    home: Home,
    weights: tuple[np.ndarray, np.ndarray] | None = None,
) -> DeviceCosts:
    """Squared Euclidean or cosine costs of points; `weights` a and b say where their centre is."""
    both = None if weights is None else (weights[0][None], weights[1][None])
    geometry = points_geometry(X[None, ...], Y[None, ...], groups, metric, home, both)
    return DeviceCosts(geometry, home)


def device_stack(C: Any, home: Home) -> DeviceCosts:
    """Costs given as a stack of shape (L, n, m)."""
    return DeviceCosts(StackGeometry(home.xp.astype(C, home.xp.float64)[None, ...]), home)


def on_accelerator(home: Home | None) -> bool:
    """Whether arrays are on a device that solvers of the host cannot use."""
    return home is not None and not home.on_host


def stays(solver: Any, terms: Any, metric: Any = "sqeuclidean", p: float = 1.0) -> bool:
    """Whether such a problem is solved where its arrays are, rather than on the host.

    Only the entropic solver works in other libraries, for costs that are factored or given.
    """
    known = is_squared(metric, p) or (metric == "cosine" and p == 1.0)
    return bool(solver.any_library and known and terms.normalise != "regret")

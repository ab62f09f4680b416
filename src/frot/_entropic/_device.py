"""Costs of points that live in another array library, on whatever device they are on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._arrays import Home, to_numpy
from frot._costs._build import is_squared
from frot._entropic._geometry import DeviceGeometry, PointGeometry, StackGeometry
from frot._errors import InputError
from frot._groups import Groups
from frot._plan import Plan

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
    def nonnegative(self) -> bool:
        """Whether no cost is known to be negative."""
        return self.geometry.nonnegative

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return phi of the product plan, on the host."""
        bring = self.home.double().bring
        return to_numpy(self.geometry.product(bring(a[None]), bring(b[None])))[0]

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the mean size of every group's costs, on the host."""
        bring = self.home.double().bring
        return to_numpy(self.geometry.sizes(bring(a[None]), bring(b[None])))[0]

    def rescaled(self, scale: np.ndarray) -> DeviceCosts:
        """The costs times a factor each."""
        return DeviceCosts(self.geometry.rescaled(scale), self.home)

    def at(self, rows: np.ndarray, cols: np.ndarray, groups: Any = None) -> np.ndarray:
        """Return the costs at a few arcs, on the host."""
        return to_numpy(self.geometry.at(self.home.indices(rows), self.home.indices(cols)))

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
        return to_numpy(self.geometry.inner_error(self.home.double().bring(phi[None])))[0]


def device_points(
    X: Any, Y: Any, groups: Groups, metric: Any, home: Home, member: str = ""
) -> DeviceCosts:
    """Squared Euclidean or cosine costs of points, centred in double precision.

    Cosine costs are half the squared distances of vectors of unit length, group by group, so that
    a feature in two groups becomes two columns. Errors name the `member` of a batch.
    """
    xp = home.xp
    X, Y = xp.astype(X, xp.float64), xp.astype(Y, xp.float64)
    double = home.double()
    if metric == "cosine":
        flat = home.indices(groups.flat)
        sizes = np.diff(groups.offsets)
        owner = np.repeat(np.arange(len(groups)), sizes)
        ones = np.zeros((len(groups), len(owner)))
        ones[owner, np.arange(len(owner))] = 1.0
        W = double.bring(ones)
        X, Y = (
            _unit(xp, xp.take(points, flat, axis=1), W, name + member, groups)
            for points, name in ((X, "X"), (Y, "Y"))
        )
        return DeviceCosts(PointGeometry(X[None, ...], Y[None, ...], 0.5 * W), home)
    centre = (xp.sum(X, axis=0) + xp.sum(Y, axis=0)) / (X.shape[0] + Y.shape[0])
    X, Y = X - centre, Y - centre
    pays: Any = groups.membership()
    plain = pays.shape[0] == pays.shape[1] == len(pays.indices) and bool(
        (pays.indices == np.arange(len(pays.indices))).all()
    )
    W = None if plain else double.bring(pays.toarray())
    return DeviceCosts(PointGeometry(X[None, ...], Y[None, ...], W), home)


def _unit(xp: Any, points: Any, W: Any, name: str, groups: Groups) -> Any:
    """Scale every group of every point to unit length."""
    norms = xp.sqrt((points * points) @ xp.matrix_transpose(W))
    if not bool(xp.all(norms > 0.0)):
        row, group = np.argwhere(to_numpy(norms) == 0.0)[0]
        raise InputError(
            f"{name} row {row} is all zeros in group {groups.names[group]!r}, so it has no cosine; "
            "drop such points or use metric='sqeuclidean'"
        )
    return points / (norms @ W)


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
    at_home = getattr(solver, "any_library", False)
    return bool(at_home and known and terms.normalise != "regret")

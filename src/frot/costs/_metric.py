"""Any metric SciPy knows, or a callable, raised to a power; computed in chunks, never stacked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.errors import InputError, brief
from frot.costs.metrics import Mapped
from frot.costs.protocol import UNIT, Costs, Rounding, blocks
from frot.groups.groups import Groups
from frot.plans.plan import Plan

__all__ = ["MetricCosts"]

# A chunk of one group's costs; larger than the cache, since the metric itself is the work.
CHUNK_BYTES = 64_000_000


@dataclass(frozen=True, eq=False)
class MetricCosts(Costs):
    r"""Costs :math:`[C_l]_{ij} = d(x_i^{(l)}, y_j^{(l)})^p` recomputed whenever they are needed.

    These costs are not assumed to be positive, and their digits are taken as exact, unless `error`
    says how far they are off.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (m, d)
    groups : Groups
    metric : str or callable
        A name that `scipy.spatial.distance.cdist` takes, or ``f(u, v) -> float``.
    p : float
        The power.
    chunk_bytes : int
        Size of the block of one cost matrix that is held at a time.
    moments : tuple of dict, optional
        What "seuclidean" and "mahalanobis" need of all points of each group; computed if not given.
    error : arrays of shape (L, n) and (L, m), optional
        How far entry (i, j) may be from the cost it stands for: what its two points add.

    Examples
    --------
    >>> X, Y = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])
    >>> MetricCosts(X, Y, Groups.all(2), "euclidean").mix(np.array([1.0]))
    array([[5.]])
    """

    X: np.ndarray
    Y: np.ndarray
    groups: Groups
    metric: str | Callable[[np.ndarray, np.ndarray], float] = "euclidean"
    p: float = 1.0
    chunk_bytes: int = CHUNK_BYTES
    moments: tuple[dict[str, np.ndarray], ...] | None = None
    error: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of_mapped(cls, mapped: Mapped, names: tuple[str, ...], p: float) -> MetricCosts:
        r"""Powers of a cost that is a squared distance of mapped points.

        Coordinates are off by some units e of themselves, and so is the distance
        :math:`\delta` of two points, by e times their lengths: next to nothing, but all of it where
        they should be the same. Of the power that is

        .. math::
            |(\delta + e)^{2p} - \delta^{2p}| \le
            \begin{cases} e^{2p} & 2 p \le 1, \\ 2 p (\delta + e)^{2p - 1} e & 2 p > 1. \end{cases}

        Examples
        --------
        >>> from frot.costs.metrics import map_points
        >>> points = np.array([[1.0, 2.0], [2.0, 4.0]])
        >>> mapped = map_points("cosine", points, points, Groups.all(2))
        >>> costs = MetricCosts.of_mapped(mapped, ("all",), 0.5)
        >>> bool(costs.mix(np.ones(1)).max() < 1e-15)
        True
        """
        groups = mapped.groups(names)
        # All columns count alike, by the metric's scale.
        root = float(np.sqrt(mapped.membership.data[0]))
        X, Y = mapped.X * root, mapped.Y * root
        costs = cls(X, Y, groups, "sqeuclidean", p)
        lengths = [
            np.sqrt(np.add.reduceat(points[:, groups.flat] ** 2, groups.offsets[:-1], axis=1)).T
            for points in (X, Y)
        ]
        most = lengths[0].max(axis=1) + lengths[1].max(axis=1)
        # The root of the share, the product with it, and what is lost in differences and sums.
        units = (mapped.error + 3.0 + 0.5 * float(groups.sizes.max())) * UNIT
        power = 2.0 * p
        steep = power * (1.01 * most[:, None]) ** (power - 1.0) if power > 1.0 else 1.0
        rows, cols = (
            steep * (units * length) ** min(power, 1.0) + 4.0 * UNIT * most[:, None] ** power
            for length in lengths
        )
        return replace(costs, error=(rows, cols))

    def __post_init__(self) -> None:
        if self.moments is None:
            found = tuple(self._moments(features) for features in self.groups.indices)
            object.__setattr__(self, "moments", found)

    def _moments(self, features: np.ndarray) -> dict[str, np.ndarray]:
        """Variances that SciPy would otherwise take from whatever block it is shown."""
        if self.metric not in ("seuclidean", "mahalanobis"):
            return {}
        points = np.concatenate([self.X[:, features], self.Y[:, features]])
        if self.metric == "seuclidean":
            return {"V": points.var(axis=0, ddof=1)}
        try:
            return {"VI": np.linalg.inv(np.atleast_2d(np.cov(points.T))).T.copy()}
        except np.linalg.LinAlgError:
            raise InputError(
                "metric: 'mahalanobis' needs a covariance that can be inverted in every group; "
                "drop features that are constant or follow from others, or use 'seuclidean'"
            ) from None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return (len(self.groups), len(self.X), len(self.Y))

    def block(self, group: int, rows: Any = slice(None)) -> np.ndarray:
        """Return some rows of one group's cost matrix."""
        features = self.groups.indices[group]
        assert self.moments is not None
        X, Y = self.X[rows][:, features], self.Y[:, features]
        if callable(self.metric):
            distances = _by_callable(X, Y, self.metric)
        else:
            # Loads trees and hulls too: only those who need a distance pay for it.
            from scipy.spatial.distance import cdist

            distances = cdist(X, Y, self.metric, **self.moments[group])  # type: ignore[call-overload]
        return distances if self.p == 1.0 else distances**self.p

    def _row_blocks(self) -> list[slice]:
        return blocks(self.shape[1], 8 * self.shape[2], self.chunk_bytes)

    def _entries(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Yield one group's costs at the arcs at a time."""
        for group in groups.tolist():
            found = np.empty(len(rows))
            for part in self._row_blocks():
                inside = np.flatnonzero((rows >= part.start) & (rows < part.stop))
                if len(inside):
                    block = self.block(group, part)
                    found[inside] = block[rows[inside] - part.start, cols[inside]]
            yield found

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        """Return sum_l alpha_l C_l, one block of one group at a time."""
        mixed = np.zeros(self.shape[1:])
        for group in np.flatnonzero(alpha).tolist():
            for part in self._row_blocks():
                mixed[part] += alpha[group] * self.block(group, part)
        return mixed

    def inner(self, plan: Plan) -> np.ndarray:
        """Return <plan, C_l> for every group."""
        if plan.is_sparse:
            rows, cols, mass = plan.arcs()
            everything = np.arange(self.shape[0])
            return np.array([mass @ entries for entries in self._entries(rows, cols, everything)])
        dense = plan.dense()
        return np.array(
            [
                sum(np.vdot(dense[part], self.block(group, part)) for part in self._row_blocks())
                for group in range(self.shape[0])
            ]
        )

    def at(
        self, rows: np.ndarray, cols: np.ndarray, groups: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs at the arcs, shape (groups, K)."""
        wanted = np.arange(self.shape[0]) if groups is None else np.asarray(groups)
        return np.stack(list(self._entries(np.asarray(rows), np.asarray(cols), wanted)))

    def independent(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return phi of a b^T."""
        return np.array(
            [
                sum(a[part] @ (self.block(group, part) @ b) for part in self._row_blocks())
                for group in range(self.shape[0])
            ]
        )

    def magnitudes(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the mean size of every group's cost."""
        return np.array(
            [
                sum(a[part] @ (np.abs(self.block(group, part)) @ b) for part in self._row_blocks())
                for group in range(self.shape[0])
            ]
        )

    def take(self, rows: np.ndarray, cols: np.ndarray) -> MetricCosts:
        """Return the costs between some of the points."""
        return MetricCosts(
            self.X[rows],
            self.Y[cols],
            self.groups,
            self.metric,
            self.p,
            self.chunk_bytes,
            self.moments,
            self.error and (self.error[0][:, rows], self.error[1][:, cols]),
        )

    def rounding(self, alpha: np.ndarray) -> Rounding:
        """Bound the rounding of sums over groups, and what entries are off by."""
        relative, rows, cols = super().rounding(alpha)
        if self.error is None:
            return Rounding(relative, rows, cols)
        return Rounding(relative, rows + alpha @ self.error[0], cols + alpha @ self.error[1])

    def doubt(self, phi: np.ndarray, plan: Plan) -> np.ndarray:
        """Bound the error of sums over the plan, and of the entries themselves."""
        found = super().doubt(phi, plan)
        if self.error is None:
            return found
        return found + self.error[0] @ plan.sum(axis=1) + self.error[1] @ plan.sum(axis=0)

    @cached_property
    def peaks(self) -> np.ndarray:
        """Largest size of an entry in each group, (L,)."""
        return np.array(
            [
                max(float(np.abs(self.block(group, part)).max()) for part in self._row_blocks())
                for group in range(self.shape[0])
            ]
        )

    def least(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Distances are not negative up to rounding; those of a user's function are computed."""
        if not callable(self.metric):
            return np.full(self.shape[0], -8.0 * UNIT)
        return np.array(
            [
                min(float(self.block(group, part).min()) for part in self._row_blocks())
                for group in range(self.shape[0])
            ]
        )


def _by_callable(
    X: np.ndarray, Y: np.ndarray, metric: Callable[[np.ndarray, np.ndarray], float]
) -> np.ndarray:
    """Return the distances by a function of the user's, which may raise anything."""
    from scipy.spatial.distance import cdist

    try:
        return cdist(X, Y, metric)
    except (InputError, MemoryError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {brief(error, 200)}"
        raise InputError(f"metric: could not be computed ({reason})") from error

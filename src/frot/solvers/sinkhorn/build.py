"""From points to costs: by differences where they are few, factored where they are many."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from frot._base.arrays import Home, to_numpy
from frot._base.errors import InputError
from frot.groups.groups import Groups
from frot.solvers.sinkhorn._points import PointGeometry
from frot.solvers.sinkhorn.stack import StackGeometry, difference_stack

__all__ = ["points_geometry"]

# Up to so many differences of features costs are summed from them, which loses no digit of a small
# one, and kept.
DIFFERENCES_UP_TO = 1_000_000


def points_geometry(
    X: Any,
    Y: Any,
    groups: Groups,
    metric: Any,
    home: Home,
    weights: tuple[np.ndarray, np.ndarray] | None = None,
    named: bool = False,
) -> PointGeometry | StackGeometry:
    """Squared Euclidean or cosine costs of a batch of points, in double precision.

    Cosine costs are half the squared distances of vectors of unit length, group by group, so that
    a feature in two groups becomes two columns.

    Parameters
    ----------
    X, Y : arrays of shape (B, n, d) and (B, m, d)
    weights : pair of arrays of shape (B, n) and (B, m), optional
        Points count by them for their centre: one far away that weighs little must not move the
        others away from the origin.
    named : bool
        Whether errors should name the member of the batch.
    """
    xp = home.xp
    X, Y = xp.astype(X, xp.float64), xp.astype(Y, xp.float64)
    membership: Any = groups.membership()
    error = 0.0
    if metric == "cosine":
        membership = _owners(groups)
        flat, W = home.indices(groups.flat), home.double().bring(membership.toarray())
        # A norm is off by half a unit a feature, and its root and the quotient by two more.
        error = 0.25 * float(np.diff(groups.offsets).max()) + 2.0
        X, Y = (
            _unit(xp, xp.take(points, flat, axis=2), W, (name, named), groups, part)
            for points, name, part in zip((X, Y), "XY", weights or (None, None), strict=True)
        )
        membership = sparse.csr_array(0.5 * membership)
    batch, n, _ = X.shape
    if batch * n * Y.shape[1] * len(membership.indices) <= DIFFERENCES_UP_TO:
        return difference_stack(X, Y, membership, error)
    if metric != "cosine":
        centre, error = _centre(X, Y, weights, home.double()), 0.5
        X, Y = X - centre, Y - centre
    W = None if _is_identity(membership) else home.double().bring(membership.toarray())
    return PointGeometry(X, Y, W, error)


def _owners(groups: Groups) -> Any:
    """Return ones where a group owns a column, one for every feature of every group."""
    count = len(groups.flat)
    ones = (np.ones(count), np.arange(count), groups.offsets)
    return sparse.csr_array(ones, shape=(len(groups), count))


def _is_identity(membership: Any) -> bool:
    rows, columns = membership.shape
    found = membership.indices
    ones = rows == columns == len(found) and bool((found == np.arange(rows)).all())
    return ones and bool((membership.data == 1.0).all())


def _centre(X: Any, Y: Any, weights: Any, home: Home) -> Any:
    """Return the middle of both clouds' means, (B, 1, d)."""
    xp = home.xp
    if weights is None:
        return 0.5 * (xp.mean(X, axis=1, keepdims=True) + xp.mean(Y, axis=1, keepdims=True))
    a, b = (home.bring(part)[:, None, :] for part in weights)
    return 0.5 * (a @ X + b @ Y)


def _unit(
    xp: Any, points: Any, W: Any, name: tuple[str, bool], groups: Groups, weights: Any
) -> Any:
    """Scale every group of every point to unit length."""
    norms = xp.sqrt((points * points) @ xp.matrix_transpose(W))
    none = norms == 0.0
    if bool(xp.any(none)):
        host = to_numpy(none)
        # A point without weight needs no direction.
        host = host if weights is None else host & (weights > 0.0)[:, :, None]
        for member, row, group in np.argwhere(host):
            label = f"{name[0]}[{member}]" if name[1] else name[0]
            raise InputError(
                f"{label} row {row} is all zeros in group {groups.names[group]!r}, so it has no "
                "cosine; drop such points or use metric='sqeuclidean'"
            )
        norms = xp.where(none, xp.ones_like(norms), norms)
    return points / (norms @ W)

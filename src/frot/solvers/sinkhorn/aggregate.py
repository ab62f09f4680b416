r"""Clusters of points that move together: the slow part of Sinkhorn's sweeps, solved at once.

Between clusters that little mass connects, sweeps move potentials by next to nothing at a time.
With clusters R of rows and S of columns, and A the mass of the plan between them, the best
potentials that differ from f and g by a constant on each cluster are

.. math:: f_i + \varepsilon \log r_{R(i)}, \qquad g_j + \varepsilon \log s_{S(j)} ,

where :math:`r_k A_{kl} s_l` has the masses of the clusters as its marginals: a problem of
Sinkhorn's again, of some dozens of points. The dual value cannot fall by it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import Home, quiet, to_numpy
from frot.costs.geometry import Geometry
from frot.costs.points import PointGeometry
from frot.costs.protocol import blocks
from frot.solvers.sinkhorn.terms import BatchTerms

CLUSTERS = 64
# Points that centres are found from, and how often they move.
SAMPLE, MOVES = 4_096, 20
# Points that are assigned at a time.
AT_ONCE = 1 << 16
# Steps between clusters at most, each no longer than this, and how near to come.
STEPS, LONGEST, NEAR = 200, 30.0, 1e-10


class Clusters(NamedTuple):
    """The numbers of the clusters that rows (n,) and columns (m,) are in."""

    rows: Any
    cols: Any

    def one_hot(self, home: Home, side: Any) -> Any:
        """Return which points of a side are in which cluster, (points, clusters)."""
        eye = home.xp.eye(CLUSTERS, dtype=home.dtype, device=home.device)
        return home.xp.take(eye, side, axis=0)


def cluster_points(geometry: Geometry, terms: BatchTerms, alpha: Any) -> Clusters | None:
    """Return clusters of the points as the mixed cost sees them; None of costs without points."""
    if not isinstance(geometry, PointGeometry):
        return None
    home = terms.home
    root = home.xp.sqrt(geometry.feature_weights(alpha)[0, :])
    sides = geometry.X[0, :, :], geometry.Y[0, :, :]
    seen = [to_numpy(some(points) * root).astype(float) for points in sides]
    sample = np.concatenate(seen)
    if len(np.unique(sample, axis=0)) < CLUSTERS:
        return None
    # Loaded where it is used: few runs have as many points.
    from scipy.cluster.vq import kmeans2

    found, _ = kmeans2(sample, _spread_out(sample), iter=MOVES, minit="matrix")
    centres, root = home.bring(np.asarray(found)), home.xp.astype(root, home.dtype)
    return Clusters(*(_nearest(home, points, root, centres) for points in sides))


def _spread_out(points: np.ndarray) -> np.ndarray:
    """Draw centres, each the likelier the further it is from those before (k-means++).

    SciPy's own draw takes its generator by another name in every other version.
    """
    rng = np.random.default_rng(0)
    chosen = [points[rng.integers(len(points))]]
    apart = np.full(len(points), np.inf)
    while len(chosen) < CLUSTERS:
        apart = np.minimum(apart, ((points - chosen[-1]) ** 2).sum(axis=1))
        chosen.append(points[rng.choice(len(points), p=apart / apart.sum())])
    return np.array(chosen)


def some(points: Any) -> Any:
    """Return points evenly spread over the rows, (k, d)."""
    return points[:: max(1, points.shape[0] // (SAMPLE // 2)), :]


def _nearest(home: Home, points: Any, root: Any, centres: Any) -> Any:
    """Return the number of the closest centre, (n,)."""
    xp = home.xp
    half = 0.5 * xp.sum(centres * centres, axis=1)
    parts = [
        xp.argmax((points[part, :] * root) @ xp.matrix_transpose(centres) - half, axis=1)
        for part in blocks(points.shape[0], 1, AT_ONCE)
    ]
    return xp.concat(parts)


def cluster_scalings(masses: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return log s, (K,), of clusters with masses between them, (K, K), that should sum to a and b.

    Zero where a cluster has no column, or nothing reaches it.

    Examples
    --------
    >>> masses = np.array([[0.4, 0.1], [0.0, 0.5]])
    >>> s = np.exp(cluster_scalings(masses, np.array([0.5, 0.5]), np.array([0.3, 0.7])))
    >>> r = 0.5 / (masses @ s)
    >>> (r[:, None] * masses * s).sum(axis=0).round(6)
    array([0.3, 0.7])
    """
    rows, cols = (a > 0.0) & (masses.sum(axis=1) > 0.0), (b > 0.0) & (masses.sum(axis=0) > 0.0)
    found = np.zeros(len(b))
    with quiet():
        log_inner = np.log(masses[np.ix_(rows, cols)])
        found[cols] = _newton(log_inner, a[rows] / a[rows].sum(), b[cols] / b[cols].sum())
    return found


def _newton(log_masses: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    r"""Minimise :math:`\sum_k a_k \log \sum_l A_{kl} e^{t_l} - \langle b, t \rangle`, damped.

    Sweeps between clusters would be as slow as those between points.
    """
    t, damping = np.zeros(len(b)), 1e-3
    value, shares = _value(log_masses, a, b, t)
    for _ in range(STEPS):
        columns = a @ shares
        slope = columns - b
        if not np.isfinite(value) or np.abs(slope).sum() <= NEAR:
            break
        curved = np.diag(columns) - shares.T @ (a[:, None] * shares)
        curved[np.diag_indices(len(b))] += damping * columns + 1e-300
        step = np.linalg.lstsq(curved, -slope, rcond=1e-14)[0]
        ahead = t + step * min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
        lower, there = _value(log_masses, a, b, ahead)
        if lower <= value:
            t, value, shares, damping = ahead, lower, there, 0.1 * damping
        elif damping > 1e8:
            break
        else:
            damping *= 10.0
    return t


def _value(
    log_masses: np.ndarray, a: np.ndarray, b: np.ndarray, t: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return what is minimised, and how rows share their mass, (K, K)."""
    scores = log_masses + t
    level = scores.max(axis=1, keepdims=True)
    shares = np.exp(scores - level)
    total = shares.sum(axis=1, keepdims=True)
    return float(a @ (level + np.log(total))[:, 0] - b @ t), shares / total

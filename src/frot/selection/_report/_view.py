"""What the page shows of one comparison: the best features, patients in order, scaled values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import leaves_list, linkage

from frot._groups import Groups
from frot.selection._compare import Comparison

__all__ = ["View", "view_of"]

# Bars and lines of the pictures; more cannot be read.
TOP = 30
# Features behind the projection, at most.
PROJECTED = 500
# Trees of more samples take too long; these are ordered along their main axis instead.
MAX_TREE = 2_000


@dataclass(frozen=True, eq=False)
class View:
    """One comparison, ready to be drawn.

    Attributes
    ----------
    comparison : Comparison
    labels : pair of str
        Of the two classes.
    ids : pair of tuples of str
        Names of their samples.
    top : array of int, shape (t,)
        The best groups, best first; shapes (t,).
    top_names : tuple of str, length t
    score, shift, shape, misalignment, alpha : arrays of shape (t,)
        Of the best groups.
    values : pair of arrays of shapes (f, n) and (f, m)
        Scaled values of the features in `features`, of both classes.
    features : tuple of str, length f
        Features of the best groups, in their order.
    order : pair of arrays of int, of lengths n and m
        Similar samples of the first class next to each other, and those of the second next to
        whom they correspond to.
    coordinates : pair of arrays of shapes (n, 2) and (m, 2)
        Principal components of the selected features.
    explained : pair of float
        Shares of the variance.
    """

    comparison: Comparison
    labels: tuple[str, str]
    ids: tuple[tuple[str, ...], tuple[str, ...]]
    top: np.ndarray
    top_names: tuple[str, ...]
    score: np.ndarray
    values: tuple[np.ndarray, np.ndarray]
    features: tuple[str, ...]
    order: tuple[np.ndarray, np.ndarray]
    coordinates: tuple[np.ndarray, np.ndarray]
    explained: tuple[float, float]

    @property
    def destinations(self) -> np.ndarray:
        """Where each sample of the first class is mapped: the mean of its partners, (n, 2)."""
        plan = self.comparison.plan
        mass = np.maximum(np.asarray(plan.sum(axis=1)).ravel(), 1e-300)
        return np.asarray(plan @ self.coordinates[1]) / mass[:, None]


def score_of(comparison: Comparison, score: str) -> np.ndarray:
    """Return the scores of one comparison by their name, shape (L,); zero where none varies."""
    if score == "combined":
        found = comparison.combined
    elif score == "alpha":
        found = comparison.alpha
    else:
        found = getattr(comparison.parts, score)
    return np.where(comparison.constant, 0.0, found)


def view_of(
    comparison: Comparison,
    table: Any,
    groups: Groups,
    score: str,
    picks: int,
    names: Sequence[str],
    ids: Sequence[str],
) -> View:
    """Put together what is drawn of a comparison.

    Parameters
    ----------
    comparison : Comparison
    table : array or sparse array of shape (N, d)
    groups : Groups
    score : str
        What features are ranked by.
    picks : int
        How many groups are selected, for the projection.
    names : sequence of str, length d
        Of the features.
    ids : sequence of str, length N
        Of the samples.
    """
    scores = score_of(comparison, score)
    best = np.lexsort((-comparison.parts.phi, -scores))
    best = best[~comparison.constant[best]]
    top = best[:TOP]
    shown = _members(groups, comparison, top, TOP)
    wide = _members(groups, comparison, best[: max(picks, 2)], PROJECTED)
    values = _scaled(comparison, table, shown)
    coordinates, explained = _components(comparison, _scaled(comparison, table, wide))
    rows, cols = comparison.rows
    second = "rest" if comparison.second is None else str(comparison.second)
    return View(
        comparison=comparison,
        labels=(str(comparison.first), second),
        ids=(tuple(ids[int(i)] for i in rows), tuple(ids[int(j)] for j in cols)),
        top=top,
        top_names=tuple(groups.names[group] for group in top),
        score=scores[top],
        values=values,
        features=tuple(names[int(feature)] for feature in shown),
        order=_orders(comparison, values[0]),
        coordinates=coordinates,
        explained=explained,
    )


def _members(groups: Groups, comparison: Comparison, chosen: np.ndarray, limit: int) -> np.ndarray:
    """Return the features of the chosen groups that vary, those that cost most first in each."""
    found: dict[int, None] = {}
    for group in chosen:
        members = groups.indices[group]
        members = members[comparison.features.phi[members] > 0.0]
        for feature in members[np.argsort(-comparison.features.phi[members], kind="stable")]:
            found[int(feature)] = None
        if len(found) >= limit:
            break
    return np.array(list(found)[:limit], dtype=int)


def _scaled(
    comparison: Comparison, table: Any, features: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    block = table[:, features]
    dense = np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=float)
    dense = (dense - comparison.centre[features]) / comparison.scale[features]
    rows, cols = comparison.rows
    return dense[rows].T, dense[cols].T


def _orders(comparison: Comparison, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order the first class by similarity, and the second by whom its samples correspond to."""
    points = first.T
    count = len(points)
    if count < 3:
        order = np.arange(count)
    elif count <= MAX_TREE:
        order = leaves_list(linkage(points, "average", optimal_ordering=count <= 400))
    else:
        axis = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][0]
        order = np.argsort(points @ axis, kind="stable")
    place = np.empty(count)
    place[order] = np.arange(count)
    plan = comparison.plan
    mass = np.maximum(np.asarray(plan.sum(axis=0)).ravel(), 1e-300)
    partners = np.asarray(plan.T @ place) / mass
    return order, np.argsort(partners, kind="stable")


def _components(
    comparison: Comparison, values: tuple[np.ndarray, np.ndarray]
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[float, float]]:
    """Project both classes, counted alike, on their two main axes."""
    both = np.hstack(values).T
    plan = comparison.plan
    weight = np.concatenate(
        [np.asarray(plan.sum(axis=1)).ravel(), np.asarray(plan.sum(axis=0)).ravel()]
    )
    weight = weight / weight.sum()
    both = both - weight @ both
    _, size, axes = np.linalg.svd(np.sqrt(weight)[:, None] * both, full_matrices=False)
    # Signs of axes mean nothing; a fixed choice makes the same data give the same picture.
    sign = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    found = np.zeros((len(both), 2))
    kept = min(2, len(axes))
    found[:, :kept] = both @ (axes[:kept] * sign[:kept, None]).T
    share = np.zeros(2)
    share[:kept] = size[:kept] ** 2 / max(float((size**2).sum()), 1e-300)
    n = values[0].shape[1]
    return (found[:n], found[n:]), (float(share[0]), float(share[1]))

r"""The gate: which groups tell something that holds on both days, without labels.

Group l predicts the coordinates of another group k, its witness: the prediction :math:`z_i` of
cell i is by ridge regression of k on l, learnt from the cells of the *other* day. Where l and k
follow something that both days have in common, predictions agree with the coordinates :math:`x_i`
that the cell has in k; noise, or a nuisance of l alone, agrees no more than permuted predictions
do. With both centred,

.. math::
    z_{lk} = \sqrt{n - 1}\, \frac{\sum_i \langle z_i, x_i \rangle}
    {\sqrt{\operatorname{tr}(Z^\top Z\, X^\top X)}}

has mean zero and variance one under permutations, exactly. The smaller of both directions counts,
and a group has the z of its best witness.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.stats import norm

from frot.cells._blocks import Block

__all__ = ["agreement", "chance", "chance_of", "coefficients", "coherence", "looked_at"]

# Cells of a day that are looked at. Groups of weak signals pass with more of them, but so do those
# that have next to nothing in common.
LOOKED_AT = 1_000
# Groups that share more of the genes of the smaller one do not bear witness for each other: what
# they have in common may be the noise of those genes.
IN_COMMON = 0.2


def coherence(blocks: Sequence[Block], seed: int = 0) -> np.ndarray:
    """Return z of every group (rows) with every other as its witness, shape (L, L).

    Minus infinity where a group is no witness: for itself, and for one that it shares genes with.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cells, noise = rng.normal(size=(2, 300, 2)), rng.normal(size=(2, 300, 2))
    >>> def block(name, values):
    ...     noisy = values + 0.5 * rng.normal(size=values.shape)
    ...     return Block(name, *noisy, (name,), None, 1.0, 1.0, np.ones(1))
    >>> z = coherence([block("a", cells), block("b", cells), block("c", noise)])
    >>> z.max(axis=1) > 4.0
    array([ True,  True, False])
    """
    sides = looked_at(blocks, seed)
    taught = [coefficients(side) for side in sides]
    # Predictions for the cells of a day are by what the other one teaches.
    z = np.minimum(_agreements(sides[0], taught[1]), _agreements(sides[1], taught[0]))
    z[_share_genes(blocks)] = -np.inf
    return z


def chance_of(z: np.ndarray) -> np.ndarray:
    """Return the chance that any of all pairs of groups of noise has such z, shape (L, L)."""
    # Both ways between two groups tell next to the same.
    pairs = max(1.0, np.isfinite(z).sum() / 2.0)
    return np.minimum(1.0, pairs * norm.sf(z))


def chance(z: np.ndarray) -> np.ndarray:
    """Return the chance that noise has a witness of such z among all pairs of groups, shape (L,).

    Examples
    --------
    >>> none = -np.inf
    >>> chance(np.array([[none, 5.0], [1.0, none]])).round(3)
    array([0.   , 0.159])
    """
    return chance_of(z).min(axis=1)


def looked_at(blocks: Sequence[Block], seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the coordinates of some cells of both days, of each group, centred."""
    rng = np.random.default_rng(seed)
    sides = []
    for values in ([block.source for block in blocks], [block.target for block in blocks]):
        count = len(values[0])
        some = np.sort(rng.choice(count, min(count, LOOKED_AT), replace=False))
        sides.append([one[some] - one[some].mean(axis=0) for one in values])
    return sides[0], sides[1]


def coefficients(values: list[np.ndarray]) -> list[np.ndarray]:
    """Return how each group of k coordinates predicts all D coordinates of all groups, (k, D)."""
    every = np.hstack(values)
    found = []
    for one in values:
        gram = one.T @ one
        # As much as one more cell of the mean size in every direction; something, where a group is
        # the same in all cells of a day.
        gram += (np.trace(gram) / len(one) or 1.0) * np.eye(len(gram))
        found.append(np.linalg.solve(gram, one.T @ every))
    return found


def _agreements(here: list[np.ndarray], taught: list[np.ndarray]) -> np.ndarray:
    """Return z of predictions for the cells here, of groups for groups."""
    starts = np.cumsum([0, *(one.shape[1] for one in here)])
    found = np.empty((len(here), len(here)))
    for at, (own, learnt) in enumerate(zip(here, taught, strict=True)):
        predicted = own @ learnt
        found[at] = [
            agreement(predicted[:, begin:end], one)
            for one, (begin, end) in zip(here, pairwise(starts), strict=True)
        ]
    return found


def agreement(predicted: np.ndarray, points: np.ndarray) -> float:
    """Return how much predictions of shape (n, d) agree with points, in standard deviations.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(100, 2))
    >>> round(agreement(points, points), 1), round(agreement(points[::-1], points), 1)
    (13.9, -1.3)
    """
    predicted, points = predicted - predicted.mean(axis=0), points - points.mean(axis=0)
    spread = float(np.sum((predicted.T @ predicted) * (points.T @ points)))
    if spread <= 0.0:
        return 0.0
    return float(np.sum(predicted * points) * np.sqrt((len(points) - 1) / spread))


def _share_genes(blocks: Sequence[Block]) -> np.ndarray:
    genes = [set(block.genes) for block in blocks]
    return np.array(
        [[len(one & two) > IN_COMMON * min(len(one), len(two)) for two in genes] for one in genes]
    )

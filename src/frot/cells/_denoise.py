r"""Denoising: half of a group's cost is by what its witnesses confirm.

A plan is judged by distances within each group, and much of these is noise: of genes measured
once, or of a gene that goes its own way. The adversary would follow it, since nothing couples noise
well. What another group can be predicted from is no noise. Let :math:`B_l` have the coefficients
by which the coordinates of group l predict those of all its witnesses, as in the gate, learnt on
one day, and :math:`B_l'` the same of the other. Squared distances in l become

.. math::
    \tfrac12 \| x - y \|^2 + \tfrac1{2 c} (x - y)^\top M_l^{1/2} (x - y), \qquad
    M_l = \tfrac12 (B_l B_l'^\top + B_l' B_l^\top)_+

where c makes both parts of mean cost one half. :math:`M_l` is the distance of what x and y predict,
in which chance has no part on average, as both days must agree. Its root, half way to the identity,
is less led by how many witnesses say the same. The first part keeps what the group alone knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from frot.cells._blocks import Block, mean_cost
from frot.cells._gate import chance_of, coefficients, coherence, looked_at

__all__ = ["confirmed", "denoise"]

# Of a group's mean cost: distances as they are, whether or not others confirm them.
PLAIN = 0.5


def denoise(
    blocks: list[Block], weights: tuple[np.ndarray, np.ndarray], level: float
) -> list[Block]:
    """Return blocks in coordinates that have the distances of the module's formula.

    The blocks are those that passed the gate. Latent blocks are left as they are, and so is a group
    without a witness at this level. Coupling at random still costs one. Entries of the list are
    replaced one after the other: large sets of cells are in memory once, then.
    """
    if len(blocks) < 2 or any(block.loadings is None for block in blocks):
        return blocks
    for at, metric in enumerate(confirmed(blocks, level)):
        if metric is None:
            continue
        block, root = blocks[at], _root(metric)
        cost = mean_cost(block.source @ root, block.target @ root, weights)
        if not cost > 0.0:
            continue
        matrix = _root(PLAIN * np.eye(block.size) + (1.0 - PLAIN) / cost * metric)
        source, target = block.source @ matrix, block.target @ matrix
        blocks[at] = replace(block, source=source, target=target, filter=matrix)
    return blocks


def confirmed(blocks: Sequence[Block], level: float) -> list[np.ndarray | None]:
    r"""Return :math:`M_l^{1/2}` of each group, (k, k), or None for one without a witness.

    Parameters
    ----------
    blocks : sequence of Block
    level : float
        A witness is one that is predicted at this chance, Bonferroni over the pairs.

    Examples
    --------
    Groups of a signal and a coordinate of noise each: the signal is what the other one confirms.

    >>> rng = np.random.default_rng(0)
    >>> signal, noise = rng.normal(size=(2, 300, 1)), rng.normal(size=(2, 2, 300, 1))
    >>> def block(name, own):
    ...     values = np.concatenate([signal + 0.3 * rng.normal(size=signal.shape), own], axis=2)
    ...     return Block(name, *values, (name,), None, 1.0, 1.0, np.ones(2))
    >>> first, _ = confirmed([block("a", noise[0]), block("b", noise[1])], 0.01)
    >>> bool(first[1, 1] < 0.2 * first[0, 0])
    True
    """
    witness = chance_of(coherence(blocks)) <= level
    ends = np.cumsum([block.size for block in blocks])
    columns = [np.arange(end - block.size, end) for end, block in zip(ends, blocks, strict=True)]
    here, there = (coefficients(side) for side in looked_at(blocks))
    found: list[np.ndarray | None] = []
    for who, one, two in zip(witness, here, there, strict=True):
        if not who.any():
            found.append(None)
            continue
        told = np.concatenate([columns[at] for at in np.flatnonzero(who)])
        product = one[:, told] @ two[:, told].T
        found.append(_root((product + product.T) / 2.0))
    return found


def _root(matrix: np.ndarray) -> np.ndarray:
    """Return the symmetric square root of the positive part of a symmetric matrix."""
    powers, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(powers, 0.0))) @ vectors.T

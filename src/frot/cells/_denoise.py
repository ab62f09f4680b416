r"""Denoising: distances of a group count what its witnesses confirm.

A plan is judged by distances within each group, and much of these is noise: of genes measured
once, or of a gene that goes its own way. The adversary would follow it, since nothing couples noise
well. What another group can be predicted from is no noise. Let :math:`B_l` have the coefficients
by which the coordinates of group l predict those of all its witnesses, as in the gate, and
:math:`B_l'` the same of the other day. Distances in l become

.. math::
    d^2(x, y) = (x - y)^\top M_l^{1/2} (x - y), \qquad
    M_l = \tfrac12 (B_l B_l'^\top + B_l' B_l^\top)_+

up to the unit. :math:`M_l` alone would be the distance of what x and y predict, of which chance
has no part on average, as both days must agree; it forgets what few others see. The identity is the
distance without witnesses. The root is half way, the geometric mean of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from frot.cells._blocks import Block, mean_cost
from frot.cells._gate import chance_of, coefficients, coherence, looked_at

__all__ = ["denoise", "filters"]

# Of the largest eigenvalue of M: what is confirmed by less is kept at a thousandth of its distance
# squared, so that coordinates can be turned back into genes.
LEAST = 1e-6


def denoise(
    blocks: list[Block], weights: tuple[np.ndarray, np.ndarray], level: float
) -> list[Block]:
    """Return blocks in the coordinates that their witnesses confirm, coupling at random cost one.

    The blocks are those that passed the gate. Latent blocks are left as they are, and so is a group
    without a witness at this level. Entries of the list are replaced one after the other: large
    sets of cells are in memory once, then.
    """
    if len(blocks) < 2 or any(block.loadings is None for block in blocks):
        return blocks
    for at, matrix in enumerate(filters(blocks, level)):
        if matrix is None:
            continue
        block = blocks[at]
        source, target = block.source @ matrix, block.target @ matrix
        size = np.sqrt(mean_cost(source, target, weights))
        blocks[at] = replace(
            block, source=source / size, target=target / size, filter=matrix / size
        )
    return blocks


def filters(blocks: Sequence[Block], level: float) -> list[np.ndarray | None]:
    r"""Return :math:`M_l^{1/4}` of each group, (k, k) and positive definite, or None.

    Coordinates times it have the distances of the module's formula.

    Parameters
    ----------
    blocks : sequence of Block
    level : float
        A witness is one that is predicted at this chance, Bonferroni over the pairs.

    Examples
    --------
    Two groups of a signal and a coordinate of noise each; what the other confirms is kept.

    >>> rng = np.random.default_rng(0)
    >>> signal, noise = rng.normal(size=(2, 300, 1)), rng.normal(size=(2, 2, 300, 1))
    >>> def block(name, own):
    ...     values = np.concatenate([signal + 0.3 * rng.normal(size=signal.shape), own], axis=2)
    ...     return Block(name, *values, (name,), None, 1.0, 1.0, np.ones(2))
    >>> first, _ = filters([block("a", noise[0]), block("b", noise[1])], 0.01)
    >>> weight = np.diag(first @ first)
    >>> bool(weight[1] < 0.2 * weight[0])
    True
    """
    z = coherence(blocks)
    witness = chance_of(z) <= level
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
        powers, vectors = np.linalg.eigh((product + product.T) / 2.0)
        if not powers[-1] > 0.0:
            found.append(None)
            continue
        powers = np.maximum(powers, LEAST * powers[-1]) ** 0.25
        found.append((vectors * powers) @ vectors.T)
    return found

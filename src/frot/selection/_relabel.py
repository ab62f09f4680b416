"""Labels dealt out anew: who may change places, in which order, and which classes are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from frot.selection._inputs import Prepared
from frot.selection._tasks import generator_of

__all__ = ["compared_codes", "permuted_labels", "weighted_only"]


def weighted_only(prepared: Prepared, blocks: np.ndarray) -> tuple[Prepared, np.ndarray]:
    """Leave out samples of weight zero, which would carry labels away; blocks count from 0 then."""
    if prepared.weight is None or prepared.weight.all():
        return prepared, blocks
    kept = np.flatnonzero(prepared.weight)
    smaller = replace(
        prepared,
        table=prepared.table[kept],
        codes=prepared.codes[kept],
        weight=prepared.weight[kept],
    )
    return smaller, np.unique(blocks[kept], return_inverse=True)[1]


def permuted_labels(
    codes: np.ndarray, blocks: np.ndarray, seed: int, indices: Sequence[int]
) -> np.ndarray:
    """Return labels (B, N) permuted within blocks, each row given by the seed and its own number.

    Examples
    --------
    >>> codes, blocks = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    >>> labels = permuted_labels(codes, blocks, 0, range(5))
    >>> labels[:, :2].sum(axis=1).tolist()
    [1, 1, 1, 1, 1]
    >>> bool((labels[3] == permuted_labels(codes, blocks, 0, [3])[0]).all())
    True
    """
    members = [np.flatnonzero(blocks == number) for number in np.unique(blocks)]
    labels = np.tile(codes, (len(indices), 1))
    for row, index in zip(labels, indices, strict=True):
        rng = generator_of(seed, index)
        for several in members:
            row[several] = codes[rng.permutation(several)]
    return labels


def compared_codes(prepared: Prepared) -> list[tuple[int, int | None]]:
    """Return the classes that are compared, by code; None is every other sample."""
    contrasts, codes = prepared.contrasts(), prepared.codes
    pairs = []
    for one in contrasts:
        rest = len(contrasts) == 1 or one.second is None
        first, second = (int(codes[rows[0]]) for rows in one.rows)
        pairs.append((first, None if rest else second))
    return pairs

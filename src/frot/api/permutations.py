"""Labels permuted at random, within blocks where these are given, and p-values from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from frot._base.contract import refuse_masked
from frot._base.errors import InputError


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
        rng = np.random.default_rng([seed, index])
        for several in members:
            row[several] = codes[rng.permutation(several)]
    return labels


def check_blocks(block: Any, codes: np.ndarray) -> np.ndarray:
    """Return each sample's block as a number; one block for all if none are given.

    Examples
    --------
    >>> check_blocks(["x", "x", "y", "y"], np.array([0, 1, 0, 1]))
    array([0, 0, 1, 1])
    """
    if block is None:
        return np.zeros(len(codes), dtype=int)
    refuse_masked(block, "block")
    labels = np.asarray(block)
    if labels.shape != codes.shape:
        raise InputError(
            f"block: has shape {labels.shape}; give one block per row, shape {codes.shape}"
        )
    _, numbers = np.unique(labels, return_inverse=True)
    if not any(np.ptp(codes[numbers == number]) for number in range(numbers.max() + 1)):
        raise InputError(
            "block: every block holds a single class, so that no label can move; average the rows "
            "of a block first, and compare the averages without block"
        )
    return numbers


def permutation_p(observed: np.ndarray, null: np.ndarray) -> np.ndarray:
    r"""Return :math:`p_l = (1 + \#\{b : T_l^{(b)} \ge T_l\}) / (1 + B)`, shape (L,).

    The data as it is counts as one more permutation (Phipson and Smyth 2010), which makes the test
    exact: under the null hypothesis p is at most u with probability at most u.

    Examples
    --------
    >>> permutation_p(np.array([2.0, 0.5]), np.array([[1.0, 1.0], [0.0, 1.0], [1.5, 0.0]]))
    array([0.25, 0.75])
    """
    return (1.0 + (null >= observed).sum(axis=0)) / (1.0 + len(null))

"""What is compared with what: classes, the comparisons between them, and blocks of samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._base.contract import refuse_masked
from frot._base.errors import DataWarning, InputError, warn_caller


@dataclass(frozen=True, eq=False)
class Contrast:
    """Two sets of samples that are compared.

    Attributes
    ----------
    first, second : labels
        `second` is None where it is every other class.
    rows : array of intp, shape (n,)
        The samples of both sides, as rows of the table.
    is_first : array of bool, shape (n,)
        Which of them are in the first class.
    block : array of intp, shape (n,)
        The block of each, counted from 0.

    Examples
    --------
    >>> rows, zeros = np.arange(3), np.zeros(3, dtype=int)
    >>> Contrast("sick", None, rows, np.array([True, False, False]), zeros).name
    'sick vs rest'
    """

    first: Any
    second: Any | None
    rows: np.ndarray
    is_first: np.ndarray
    block: np.ndarray

    @property
    def labels(self) -> tuple[str, str]:
        """Both classes as text, the second one "rest" where it is every other class."""
        return str(self.first), "rest" if self.second is None else str(self.second)

    @property
    def name(self) -> str:
        """Such as "tumor vs normal"."""
        return " vs ".join(self.labels)

    @property
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of either side."""
        return self.rows[self.is_first], self.rows[~self.is_first]

    @property
    def sizes(self) -> tuple[int, int]:
        """How many samples are in either side."""
        first = int(self.is_first.sum())
        return first, len(self.rows) - first

    def of(self, table: Any) -> Any:
        """Return its rows of a table (N, d); the table itself where it compares all of them."""
        return table if len(self.rows) == table.shape[0] else table[self.rows]


def contrasts_of(
    codes: np.ndarray, classes: np.ndarray, block: np.ndarray, reference: int | None = None
) -> list[Contrast]:
    """List the comparisons: two classes, each of several against the rest, or each with one.

    Parameters
    ----------
    codes : array of int, shape (N,)
        Positions in `classes`.
    classes : array
    block : array of int, shape (N,)
    reference : int, optional
        Position of the class that the others are compared with.

    Examples
    --------
    >>> codes, block = np.array([0, 1, 2, 0, 1, 2]), np.zeros(6, dtype=int)
    >>> classes = np.array(["a", "b", "c"])
    >>> [contrast.name for contrast in contrasts_of(codes, classes, block)]
    ['a vs rest', 'b vs rest', 'c vs rest']
    >>> [contrast.name for contrast in contrasts_of(codes, classes, block, reference=1)]
    ['a vs b', 'c vs b']
    """
    sizes = np.bincount(codes, minlength=len(classes))
    if len(classes) < 2:
        raise InputError(f"y: has one class, {classes[0]!s}; give labels of two or more classes")
    if (sizes < 2).any():
        raise InputError(
            f"y: class {classes[np.argmin(sizes)]!s} has one sample, which has no spread; drop it, "
            "or merge it with another class"
        )
    if reference is not None:
        pairs: list[tuple[int, int | None]] = [
            (code, reference) for code in range(len(classes)) if code != reference
        ]
    elif len(classes) == 2:
        pairs = [(0, 1)]
    else:
        pairs = [(code, None) for code in range(len(classes))]
    return [contrast_of(codes, classes, block, first, second) for first, second in pairs]


def contrast_of(
    codes: np.ndarray, classes: np.ndarray, block: np.ndarray, first: int, second: int | None
) -> Contrast:
    """Compare a class with another, or with all others; refuse blocks that allow no comparison."""
    chosen = np.ones(len(codes), dtype=bool)
    if second is not None:
        chosen = (codes == first) | (codes == second)
    rows = np.flatnonzero(chosen)
    is_first = codes[rows] == first
    _, own_block = np.unique(block[rows], return_inverse=True)
    if not held_together(is_first, own_block).any():
        raise InputError(
            "block: every block holds a single class, so that what differs between classes cannot "
            "be told from what differs between blocks; if rows are cells of donors, average the "
            "cells of a donor first, X.groupby(donor).mean(), and compare donors without block"
        )
    other = None if second is None else classes[second]
    return Contrast(classes[first], other, rows, is_first, own_block)


def held_together(is_first: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Return which samples are in a block that holds samples of both sides, shape (n,).

    Examples
    --------
    >>> held_together(np.array([True, False, True]), np.array([0, 0, 1]))
    array([ True,  True, False])
    """
    first, all_ = np.bincount(block, is_first), np.bincount(block)
    return ((first > 0) & (first < all_))[block]


def read_blocks(block: Any, count: int) -> np.ndarray:
    """Return each sample's block as a number from 0; one block for all if none are given.

    Examples
    --------
    >>> read_blocks(["x", "y", "x"], 3)
    array([0, 1, 0])
    """
    if block is None:
        return np.zeros(count, dtype=int)
    refuse_masked(block, "block")
    labels = np.asarray(block)
    if labels.shape != (count,):
        raise InputError(
            f"block: has shape {labels.shape}; give one block per row, shape ({count},)"
        )
    gaps = np.array([label is None or label != label for label in labels.tolist()], dtype=bool)
    if gaps.any():
        raise InputError(
            f"block: {gaps.sum()} of {count} samples have none, the first in row "
            f"{gaps.argmax()}; drop these samples, or give each a block of its own"
        )
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError:
        raise InputError("block: holds labels of kinds that cannot be sorted; use text") from None


def warn_of_single_classes(contrasts: list[Contrast]) -> None:
    """Say how many samples are in blocks of one class, where they tell nothing of the classes."""
    for contrast in contrasts:
        alone = ~held_together(contrast.is_first, contrast.block)
        if alone.any():
            blocks = len(np.unique(contrast.block[alone]))
            warn_caller(
                f"block: {alone.sum()} of {len(alone)} samples of {contrast.name} are in "
                f"{blocks} block{'s' if blocks > 1 else ''} of one class: their labels cannot "
                "move, and they tell of the noise only",
                category=DataWarning,
            )

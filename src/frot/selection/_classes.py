"""Which classes are held against which."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError

__all__ = ["MULTICLASS", "Contrast", "contrasts_of"]

MULTICLASS = ("ovr", "ovo")


class Contrast(NamedTuple):
    """Two sets of samples; `second` is None where it is every other class."""

    first: Any
    second: Any | None
    rows: tuple[np.ndarray, np.ndarray]

    @property
    def name(self) -> str:
        """Such as "tumor vs normal"."""
        return f"{self.first} vs {'rest' if self.second is None else self.second}"


def contrasts_of(
    codes: np.ndarray, classes: np.ndarray, how: str, weight: np.ndarray | None = None
) -> list[Contrast]:
    """List the comparisons: one for two classes, else each against the rest or every pair.

    Parameters
    ----------
    codes : array of int, shape (N,)
        Position in `classes` of each sample's label.
    classes : array of shape (c,)
    how : {"ovr", "ovo"}
    weight : array of shape (N,), optional
        Samples of weight zero do not count.

    Examples
    --------
    >>> codes = np.array([0, 1, 2, 0, 1, 2])
    >>> [contrast.name for contrast in contrasts_of(codes, np.array(["a", "b", "c"]), "ovr")]
    ['a vs rest', 'b vs rest', 'c vs rest']
    """
    counted = np.ones(len(codes), dtype=bool) if weight is None else weight > 0.0
    sizes = np.bincount(codes[counted], minlength=len(classes))
    present = np.flatnonzero(sizes)
    if len(present) < 2:
        held = f" ({classes[present[0]]!s})" if len(present) else ""
        raise InputError(
            f"y: has {len(present)} class{held} with samples; give labels of two or more classes"
        )
    # A weighted sample may stand for many.
    if weight is None and (sizes[present] < 2).any():
        single = classes[present[np.argmin(sizes[present])]]
        raise InputError(
            f"y: class {single!s} has one sample, which has no spread; drop it, or merge it with "
            "another class"
        )
    rows = {code: np.flatnonzero((codes == code) & counted) for code in present}
    if len(present) == 2 or how == "ovo":
        return [
            Contrast(classes[one], classes[two], (rows[one], rows[two]))
            for one, two in combinations(present, 2)
        ]
    return [
        Contrast(classes[one], None, (rows[one], np.flatnonzero((codes != one) & counted)))
        for one in present
    ]

"""What an index of a plan picks: whole rows and columns, or entries one by one.

The answer is the same as NumPy's for an array of the plan's shape, but is known without one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from frot._base.arrays import is_foreign, to_numpy

__all__ = ["Picked", "host_key", "is_rows", "pick", "positions", "runs"]


class Picked(NamedTuple):
    """Row and column numbers; `cols` is None for all columns.

    With `crossed`, every row meets every column, and the result has the shape of `rows` and then
    that of `cols`. Otherwise both have one shape, and are read in pairs.
    """

    rows: np.ndarray
    cols: np.ndarray | None
    crossed: bool


def pick(key: Any, shape: tuple[int, int]) -> Picked:
    """Return which entries of a matrix an index picks.

    Examples
    --------
    >>> pick(np.s_[1:, 2], (3, 4))
    Picked(rows=array([1, 2]), cols=array(2), crossed=True)
    >>> pick(([0, 2], [3, 1]), (3, 4))
    Picked(rows=array([0, 2]), cols=array([3, 1]), crossed=False)
    """
    key = host_key(key)
    parts = key if isinstance(key, tuple) else (key,)
    plain = all(map(_is_plain, parts))
    if plain and len(parts) == 1:
        return Picked(positions(parts[0], shape[0]), None, crossed=True)
    if plain and len(parts) == 2 and any(isinstance(part, slice | int) for part in parts):
        rows, cols = (positions(part, size) for part, size in zip(parts, shape, strict=True))
        every = isinstance(parts[1], slice) and cols.shape == (shape[1],) and parts[1].step is None
        return Picked(rows, None if every else cols, crossed=True)
    # Matrices that say where each of their entries is take no memory, and know every rule.
    n, m = shape
    rows = np.broadcast_to(np.arange(n)[:, None], shape)[key]
    cols = np.broadcast_to(np.arange(m), shape)[key]
    return Picked(np.asarray(rows), np.asarray(cols), crossed=False)


def positions(index: Any, size: int) -> np.ndarray:
    """Return the numbers that an index picks out of 0, 1, ..., size - 1, counted from the front.

    Examples
    --------
    >>> positions([0, -1], 3), positions(slice(1, None), 3)
    (array([0, 2]), array([1, 2]))
    """
    return np.asarray(np.arange(size)[host_key(index)])


def host_key(key: Any) -> Any:
    """Return an index that NumPy takes: tensors and lists as its arrays."""
    if isinstance(key, tuple):
        return tuple(map(host_key, key))
    if is_foreign(key):
        return to_numpy(key)
    if isinstance(key, list):
        # An empty list is an array of floats to NumPy, except where it is an index.
        return np.asarray(key) if key else np.empty(0, dtype=np.intp)
    return int(key) if isinstance(key, np.integer) else key


def _is_plain(part: Any) -> bool:
    """Whether it picks along one axis: a number, a slice, a flat list or mask."""
    odd = part is None or part is Ellipsis or isinstance(part, bool | np.bool_)
    return not odd and getattr(part, "ndim", 0) < 2


def runs(index: np.ndarray, most: int) -> list[slice]:
    """Cut row numbers where they do not ascend by one, and after at most `most`.

    Examples
    --------
    >>> runs(np.array([4, 5, 6, 2]), 2)
    [slice(4, 6, None), slice(6, 7, None), slice(2, 3, None)]
    """
    ends = np.flatnonzero(np.diff(index) != 1) + 1
    return [
        slice(int(part[at]), int(part[min(at + most, len(part)) - 1]) + 1)
        for part in np.split(index, ends)
        for at in range(0, len(part), most)
    ]


def is_rows(axis: Any) -> bool:
    """Whether a sum or maximum is over each row; other axes than NumPy's two do not exist.

    Examples
    --------
    >>> is_rows(1), is_rows(-2)
    (True, False)
    """
    if axis not in (None, 0, 1, -1, -2):
        raise ValueError(f"axis {axis!r} of a plan, which has the axes 0 and 1")
    return axis in (1, -1)

"""NumPy under the names of the array API standard, which older NumPys lack, and faster.

A small problem is solved in some hundred calls, most of them reductions of a few numbers, which
NumPy's own functions take three times as long for as the loops behind them.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

globals().update({name: part for name, part in vars(np).items() if not name.startswith("_")})

concat = np.concatenate
permute_dims = np.transpose
cumulative_sum = np.cumsum
finfo = functools.cache(np.finfo)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return np.add.reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return np.maximum.reduce(x, axis=axis, keepdims=keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return np.minimum.reduce(x, axis=axis, keepdims=keepdims)


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return np.logical_and.reduce(x, axis=axis, keepdims=keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return np.logical_or.reduce(x, axis=axis, keepdims=keepdims)


def asarray(x: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    return np.array(x, dtype=dtype) if copy else np.asarray(x, dtype=dtype)


def arange(stop: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    return np.arange(stop, dtype=dtype)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return np.empty(shape, dtype)


def eye(n: int, /, *, dtype: Any = None, device: Any = None) -> Any:
    return np.eye(n, dtype=dtype)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return np.zeros(shape, dtype)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return np.ones(shape, dtype)


def full(shape: Any, value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return np.full(shape, value, dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    return np.zeros(x.shape, dtype or x.dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    found = np.empty(x.shape, dtype or x.dtype)
    found.fill(1)
    return found


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return x.astype(dtype, copy=copy)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    return np.clip(x, min, max).astype(x.dtype, copy=False)


def isdtype(dtype: Any, kind: str) -> bool:
    assert kind == "real floating"
    return dtype.kind == "f"


def matrix_transpose(x: Any, /) -> Any:
    return np.swapaxes(x, -1, -2)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False) -> Any:
    found = np.sort(x, axis=axis)
    return np.flip(found, axis=axis) if descending else found


def vecdot(x: Any, y: Any, /) -> Any:
    return (x[..., None, :] @ y[..., None])[..., 0, 0]

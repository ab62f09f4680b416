"""PyTorch under the names of the array API standard, which NumPy has too: see `_host`.

Where PyTorch has a function of the same name and meaning (it takes ``axis`` and ``keepdims`` as
NumPy does) it is that one.
"""

from __future__ import annotations

from typing import Any

import torch

permute_dims = torch.permute
cumulative_sum = torch.cumsum
max = torch.amax
min = torch.amin


def __getattr__(name: str) -> Any:
    return getattr(torch, name)


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return torch.all(x) if axis is None else torch.all(x, dim=axis, keepdim=keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    return torch.any(x) if axis is None else torch.any(x, dim=axis, keepdim=keepdims)


def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Any:
    return x.to(dtype, copy=copy)


def flip(x: Any, /, *, axis: int) -> Any:
    return torch.flip(x, (axis,))


def isdtype(dtype: Any, kind: str) -> bool:
    assert kind == "real floating"
    return dtype.is_floating_point


def matrix_transpose(x: Any, /) -> Any:
    return x.mT


def sort(x: Any, /, *, axis: int = -1, descending: bool = False) -> Any:
    return torch.sort(x, dim=axis, descending=descending).values


def take(x: Any, indices: Any, /, *, axis: int = 0) -> Any:
    return torch.index_select(x, axis, indices)


def vecdot(x: Any, y: Any, /) -> Any:
    return torch.linalg.vecdot(x, y)

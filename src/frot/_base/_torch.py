"""PyTorch under the names of the array API standard, which NumPy has too: see `arrays.NUMPY`.

Where PyTorch has a function of the same name and meaning (it takes ``axis`` and ``keepdims`` as
NumPy does) it is that one.
"""

from __future__ import annotations

from typing import Any

import torch


def _over(reduce: Any) -> Any:
    """Let a reduction whose axis is called ``dim`` take it as ``axis``."""

    def reduced(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
        return reduce(x) if axis is None else reduce(x, dim=axis, keepdim=keepdims)

    return reduced


def _sort(x: Any, /, *, axis: int = -1, descending: bool = False) -> Any:
    return torch.sort(x, dim=axis, descending=descending).values


def _ends(x: Any, /, *, axis: Any = None) -> Any:
    return torch.aminmax(x, dim=axis)


FUNCTIONS = {
    "all": _over(torch.all),
    "any": _over(torch.any),
    "astype": lambda x, dtype, copy=True: x.to(dtype, copy=copy),
    "cumulative_sum": torch.cumsum,
    "ends": _ends,
    "flip": lambda x, axis: torch.flip(x, (axis,)),
    "isdtype": lambda dtype, kind: dtype.is_floating_point,
    "logcumsumexp": lambda x, axis=-1: torch.logcumsumexp(x, axis),
    "matrix_transpose": lambda x: x.mT,
    "max": torch.amax,
    "min": torch.amin,
    "permute_dims": torch.permute,
    "sort": _sort,
    "take": lambda x, indices, axis=0: torch.index_select(x, axis, indices),
    "vecdot": torch.linalg.vecdot,
}
globals().update(FUNCTIONS)


def __getattr__(name: str) -> Any:
    return getattr(torch, name)

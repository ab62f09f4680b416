"""NumPy's arrays and PyTorch's tensors: where they are, and conversion there and back.

These two are worked on where they are, by one set of names (`namespace`). Arrays of other libraries
are read by NumPy if they are on the host, and by PyTorch if they are on a device (`adopt`).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from frot._base.errors import InputError, require

# An array of NumPy or a tensor of PyTorch. The two share no type, so that type checkers take any.
Array: TypeAlias = Any

# One unit in the last place of a number near one, and the smallest number of full precision.
UNIT, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


def _over(reduce: Any) -> Any:
    """Return a loop of NumPy's as a reduction over all axes, or over some."""

    def reduced(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        return reduce(x, axis=axis, dtype=dtype, keepdims=keepdims)

    return reduced


def _astype(x: np.ndarray, dtype: Any, /, *, copy: bool = True) -> np.ndarray:
    return x.astype(dtype, copy=copy)


def _asarray(x: Any, /, *, dtype: Any = None, device: Any = None, copy: bool = False) -> np.ndarray:
    return np.array(x, dtype=dtype) if copy else np.asarray(x, dtype=dtype)


def _clip(x: np.ndarray, /, least: Any = None, most: Any = None) -> np.ndarray:
    return np.clip(x, least, most).astype(x.dtype, copy=False)


def _ones_like(x: np.ndarray, /) -> np.ndarray:
    ones = np.empty(x.shape, x.dtype)
    ones.fill(1)
    return ones


def _sort(x: np.ndarray, /, *, axis: int = -1, descending: bool = False) -> np.ndarray:
    ascending = np.sort(x, axis=axis)
    return np.flip(ascending, axis=axis) if descending else ascending


# NumPy under the names of the array API standard, which NumPy 1 lacks. A small problem is solved in
# some hundred calls, most of them reductions of a few numbers, for which NumPy's own functions take
# three times as long as the loops behind them.
NUMPY = ModuleType("numpy under the names of the standard")
vars(NUMPY).update(
    {name: part for name, part in vars(np).items() if not name.startswith("_")}
    | {
        "all": _over(np.logical_and.reduce),
        "any": _over(np.logical_or.reduce),
        "arange": lambda stop, dtype=None, device=None: np.arange(stop, dtype=dtype),
        "asarray": _asarray,
        "astype": _astype,
        "clip": _clip,
        "concat": np.concatenate,
        "cumulative_sum": np.cumsum,
        "empty": lambda shape, dtype=None, device=None: np.empty(shape, dtype),
        "ends": lambda x, axis=None: (np.min(x, axis=axis), np.max(x, axis=axis)),
        "eye": lambda n, dtype=None, device=None: np.eye(n, dtype=dtype),
        "finfo": cache(np.finfo),
        "full": lambda shape, value, dtype=None, device=None: np.full(shape, value, dtype),
        "isdtype": lambda dtype, kind: dtype.kind == "f",
        "logcumsumexp": lambda x, axis=-1: np.logaddexp.accumulate(x, axis=axis),
        "matrix_transpose": lambda x: np.swapaxes(x, -1, -2),
        "max": _over(np.maximum.reduce),
        "min": _over(np.minimum.reduce),
        "ones": lambda shape, dtype=None, device=None: np.ones(shape, dtype),
        "ones_like": _ones_like,
        "permute_dims": np.transpose,
        "sort": _sort,
        "sum": _over(np.add.reduce),
        "vecdot": lambda x, y: (x[..., None, :] @ y[..., None])[..., 0, 0],
        "zeros": lambda shape, dtype=None, device=None: np.zeros(shape, dtype),
        "zeros_like": lambda x: np.zeros(x.shape, x.dtype),
    }
)


def namespace(array: Array) -> ModuleType:
    """Return the functions for an array: NumPy's or PyTorch's, under NumPy's names.

    Examples
    --------
    >>> namespace(np.zeros(2)) is NUMPY
    True
    """
    return _torch() if is_foreign(array) else NUMPY


def is_foreign(value: Any) -> bool:
    """Whether the value is a tensor of PyTorch."""
    # There are no tensors before PyTorch is loaded.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


@cache
def _torch() -> ModuleType:
    return importlib.import_module("frot._base._torch")


def adopt(value: Any, name: str) -> Any:
    """Return an array of another library as NumPy's, or as PyTorch's if it is on a device.

    All else (lists, frames) is returned as it is.
    """
    if isinstance(value, np.ndarray) or is_foreign(value):
        return value
    if is_traced(value):
        raise InputError(
            f"{name}: is traced, as within jax.jit or jax.grad, and has no numbers yet; call frot "
            "outside of them, with an array"
        )
    where = getattr(value, "__dlpack_device__", None)
    if where is None:
        return value
    # Memory of the host, in DLPack's numbers: plain, and pinned by CUDA or ROCm.
    if where()[0] in (1, 3, 11):
        return np.asarray(value)
    try:
        return require("torch", "torch").from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"{name}: is a {type(value).__name__} on a device that PyTorch cannot read ({error}); "
            "convert it to an array of NumPy or PyTorch"
        ) from None


def is_traced(value: Any) -> bool:
    """Whether the value stands for an array of JAX that is not there yet."""
    return any(kind.__name__ == "Tracer" for kind in type(value).__mro__)


def to_numpy(array: Array) -> np.ndarray:
    """Return the array as NumPy's, from whatever device it is on."""
    if isinstance(array, np.ndarray):
        return array
    return array.detach().cpu().numpy() if is_foreign(array) else np.asarray(array)


def read_only(array: Array) -> Array:
    """Return a view of a NumPy array that cannot be written to; other libraries have none."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def short_array(array: np.ndarray, most: int = 6) -> str:
    """Return an array as text of four digits, or its shape where it has more than `most` entries.

    Examples
    --------
    >>> short_array(np.array([0.5, 1.0 / 3.0])), short_array(np.zeros((4, 2)))
    ('[0.5, 0.3333]', 'array of shape (4, 2)')
    """
    if array.size > most:
        return f"array of shape {array.shape}"
    if array.ndim > 1:
        return f"[{', '.join(short_array(row, most) for row in array)}]"
    return f"[{', '.join(f'{value:.4g}' for value in array.tolist())}]"


def refuse_odd_tensor(array: Any, name: str) -> None:
    """Refuse tensors that are no plain arrays of numbers: without data, sparse, or ragged.

    Examples
    --------
    >>> import torch
    >>> refuse_odd_tensor(torch.eye(2).to_sparse(), "X")
    Traceback (most recent call last):
    ...
    frot.InputError: X: is a tensor of layout torch.sparse_coo; use X.to_dense()
    """
    if getattr(array, "is_meta", False):
        raise InputError(f"{name}: is a meta tensor, which holds no numbers; pass one that does")
    if getattr(array, "is_nested", False):
        raise InputError(f"{name}: is a nested tensor; pad it, or pass a list of tensors")
    layout = str(getattr(array, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise InputError(f"{name}: is a tensor of layout {layout}; use {name}.to_dense()")


def at_least(xp: ModuleType, array: Array, least: float) -> Array:
    """Return the larger of each entry and a number; entries have to be finite.

    For the few entries of a small problem a clip takes ten times as long.
    """
    return np.maximum(array, least) if xp is NUMPY else xp.maximum(array, 0.0 * array + least)


def safe_log(array: Array) -> Array:
    """Return the logarithm of numbers >= 0, of zero that of the smallest number there is."""
    xp = namespace(array)
    return xp.log(at_least(xp, array, float(xp.finfo(array.dtype).smallest_normal)))


@cache
def has_triton(oldest: tuple[int, int] = (3, 2)) -> bool:
    """Whether there is a Triton that can compile the kernels for CUDA devices."""
    if importlib.util.find_spec("triton") is None:
        return False
    # Imported here: slow to load, and rarely needed.
    from importlib import metadata

    try:
        parts = metadata.version("triton").split(".")
        return (int(parts[0]), int(parts[1])) >= oldest
    except (metadata.PackageNotFoundError, ValueError, IndexError):
        # Some systems have it under another name.
        return True


@contextmanager
def device_room(names: str, needed: float, way: str) -> Iterator[None]:
    """Say how many bytes are needed, and the way out, where a device's memory runs out.

    Examples
    --------
    >>> with device_room("X, Y", 4e9, "give fewer points"):
    ...     raise type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory.")
    Traceback (most recent call last):
    ...
    frot.InputError: X, Y: the device has too little memory left: 4.0 GB are needed; give fewer ...
    """
    try:
        yield
        return
    except RuntimeError as error:
        # By its name, which needs no PyTorch.
        if type(error).__name__ != "OutOfMemoryError":
            raise
    # Raised outside of the handler, so that memory held by the failed call is released.
    raise InputError(
        f"{names}: the device has too little memory left: {needed / 1e9:.1f} GB are needed; {way}"
    )


def quiet() -> Any:
    """NumPy's warnings off, for code that looks at what came out instead."""
    return np.errstate(all="ignore")


@dataclass(frozen=True)
class Home:
    """The library, device and precision of a user's arrays."""

    xp: ModuleType
    device: Any
    dtype: Any

    @classmethod
    def of(cls, array: Array) -> Home:
        """Where an array lives."""
        if is_foreign(array):
            return cls(_torch(), array.device, array.dtype)
        return _host_home(array.dtype)

    @cached_property
    def library(self) -> str:
        """The library's name, for messages."""
        return "numpy" if self.xp is NUMPY else "torch"

    @cached_property
    def on_host(self) -> bool:
        """Whether reading a number costs no wait for a device."""
        return "cpu" in str(self.device).lower()

    def __reduce__(self) -> tuple[Any, ...]:
        # Modules cannot be pickled, their names can.
        return _home_of, (self.library, self.device, self.dtype)

    def bring(self, array: Array, dtype: Any = None) -> Array:
        """Return numbers as an array that lives here, in this precision unless told otherwise."""
        dtype = dtype or self.dtype
        if type(array) is np.ndarray and self.library == "numpy":
            return np.asarray(array, dtype=dtype)
        if is_foreign(array):
            return self.xp.astype(array, dtype, copy=False)
        host = np.asarray(array)
        # PyTorch shares memory with NumPy where it can, and warns where that is read-only.
        if not host.flags.writeable and self.library != "numpy":
            host = host.copy()
        return self.xp.asarray(host, dtype=dtype, device=self.device)

    def indices(self, index: Array) -> Array:
        """Return whole numbers as an array that lives here."""
        return self.xp.asarray(np.array(index, dtype=np.int64), device=self.device)

    def double(self) -> Home:
        """The same place in double precision."""
        return self if self.dtype == self.xp.float64 else replace(self, dtype=self.xp.float64)


@cache
def _host_home(dtype: Any) -> Home:
    """NumPy's: small problems ask for it dozens of times."""
    return Home(NUMPY, "cpu", dtype)


def _home_of(library: str, device: Any, dtype: Any) -> Home:
    return Home(NUMPY if library == "numpy" else _torch(), device, dtype)


def find_home(**arguments: Any) -> Home | None:
    """Return where the arrays among the arguments live, None if that is NumPy.

    All of them have to live in one place: nothing is copied between devices behind one's back.
    """
    if not any(map(is_foreign, arguments.values())):
        return None
    arrays = {
        name: value
        for name, value in arguments.items()
        if is_foreign(value) or isinstance(value, np.ndarray | np.generic)
    }
    homes = {name: _home(name, value) for name, value in arrays.items()}
    (first, home), *others = homes.items()
    for name, other in others:
        for kind, mine, its, way in (
            ("arrays of ", home.library, other.library, "convert"),
            ("on ", home.device, other.device, "move"),
            ("", home.dtype, other.dtype, "convert"),
        ):
            if mine != its:
                raise InputError(
                    f"{first}, {name}: are {kind}{mine} and {its}; {way} one to the other"
                )
    return home


def _home(name: str, array: Any) -> Home:
    refuse_odd_tensor(array, name)
    home = Home.of(array)
    if home.dtype not in (home.xp.float32, home.xp.float64):
        raise InputError(
            f"{name}: is {home.dtype}; convert it to float32 or float64, the precisions that "
            "solvers have"
        )
    if getattr(array, "requires_grad", False):
        raise InputError(
            f"{name}: requires grad, but this function gives no gradients; use "
            f"frot.torch.FRWDLoss for a loss that does, or pass {name}.detach()"
        )
    return home


def unit_of(home: Home) -> float:
    """One unit in the last place of a number near one."""
    return float(home.xp.finfo(home.dtype).eps)


def summation(entries: int, unit: float = UNIT) -> float:
    """Bound the relative error of a sum over so many entries, in whatever order it is taken.

    A sum of k terms of one sign errs by k - 1 times half a unit; some more cover several products
    a term.
    """
    return (8.0 + 0.5 * entries) * unit


def blocks(count: int, bytes_per_item: int, budget: int = 4_000_000) -> list[slice]:
    """Cut range(count) into slices whose temporaries stay within `budget` bytes.

    They are kept near the size of a core's cache: large enough for BLAS, small in memory.

    Examples
    --------
    >>> blocks(5, 8, budget=16)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, min(count, budget // max(1, bytes_per_item)))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]

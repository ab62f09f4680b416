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
from typing import Any

import numpy as np

from frot._base import _host
from frot._base.errors import InputError, require

# Memory of the host, in DLPack's numbers for kinds of device: plain, and pinned by CUDA or ROCm.
HOST_MEMORY = (1, 3, 11)


def namespace(array: Any) -> Any:
    """Return the functions for an array: NumPy's or PyTorch's, under NumPy's names.

    Examples
    --------
    >>> namespace(np.zeros(2)).__name__
    'frot._base._host'
    """
    return _torch() if is_foreign(array) else _host


def is_foreign(value: Any) -> bool:
    """Whether the value is a tensor of PyTorch."""
    # Without the library loaded nobody can have made one.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


@cache
def _torch() -> Any:
    return importlib.import_module("frot._base._torch")


def adopt(value: Any, name: str) -> Any:
    """Return an array of another library as NumPy's, or as PyTorch's if it is on a device.

    All else (lists, frames) is returned as it is.
    """
    if isinstance(value, np.ndarray) or is_foreign(value):
        return value
    if is_traced(value):
        raise InputError(TRACED.format(name=name))
    where = getattr(value, "__dlpack_device__", None)
    if where is None:
        return value
    if where()[0] in HOST_MEMORY:
        return np.asarray(value)
    try:
        return require("torch", "torch").from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"{name}: is a {type(value).__name__} on a device that PyTorch cannot read ({error}); "
            "convert it to an array of NumPy or PyTorch"
        ) from None


TRACED = (
    "{name}: is traced, as within jax.jit or jax.grad, and has no numbers yet; call frot outside "
    "of them, with an array"
)


def is_traced(value: Any) -> bool:
    """Whether the value stands for an array of JAX that is not there yet."""
    return any(kind.__name__ == "Tracer" for kind in type(value).__mro__)


def to_numpy(array: Any) -> np.ndarray:
    """Return the array as NumPy's, from whatever device it is on."""
    if isinstance(array, np.ndarray):
        return array
    return array.detach().cpu().numpy() if is_foreign(array) else np.asarray(array)


def read_only(array: Any) -> Any:
    """Return a view of a NumPy array that cannot be written to; other libraries have none."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


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


def at_least(xp: Any, array: Any, least: float) -> Any:
    """Return the larger of each entry and a number; entries have to be finite.

    For the few entries of a small problem a clip takes ten times as long.
    """
    return np.maximum(array, least) if xp is _host else xp.maximum(array, 0.0 * array + least)


# One unit in the last place of a number near one, and the smallest number of full precision.
UNIT, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)
# The oldest Triton that knows all that the kernels use.
TRITON = (3, 2)


@cache
def has_triton() -> bool:
    """Whether there is a Triton that can compile the kernels for CUDA devices."""
    if importlib.util.find_spec("triton") is None:
        return False
    # Slow to load, and wanted by few.
    from importlib import metadata

    try:
        parts = metadata.version("triton").split(".")
        return (int(parts[0]), int(parts[1])) >= TRITON
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
    # Out here, so that what the failed call held is free.
    raise InputError(
        f"{names}: the device has too little memory left: {needed / 1e9:.1f} GB are needed; {way}"
    )


def quiet() -> Any:
    """NumPy's warnings off, for code that looks at what came out instead."""
    return np.errstate(all="ignore")


@dataclass(frozen=True)
class Home:
    """The library, device and precision of a user's arrays."""

    xp: Any
    device: Any
    dtype: Any

    @classmethod
    def of(cls, array: Any) -> Home:
        """Where an array lives."""
        if is_foreign(array):
            return cls(_torch(), array.device, array.dtype)
        return _host_home(array.dtype)

    @cached_property
    def library(self) -> str:
        """The library's name, for messages."""
        return "numpy" if self.xp is _host else "torch"

    @cached_property
    def on_host(self) -> bool:
        """Whether reading a number costs no wait for a device."""
        return "cpu" in str(self.device).lower()

    def __reduce__(self) -> tuple[Any, ...]:
        # Modules cannot be pickled, their names can.
        return _home_of, (self.xp.__name__, self.device, self.dtype)

    def bring(self, array: Any, dtype: Any = None) -> Any:
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

    def indices(self, index: Any) -> Any:
        """Return whole numbers as an array that lives here."""
        return self.xp.asarray(np.array(index, dtype=np.int64), device=self.device)

    def double(self) -> Home:
        """The same place in double precision."""
        return self if self.dtype == self.xp.float64 else replace(self, dtype=self.xp.float64)


@cache
def _host_home(dtype: Any) -> Home:
    """NumPy's: small problems ask for it dozens of times."""
    return Home(_host, "cpu", dtype)


def _home_of(library: str, device: Any, dtype: Any) -> Home:
    return Home(importlib.import_module(library), device, dtype)


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

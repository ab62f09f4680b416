"""Arrays of any array API library: which device they are on, and conversion there and back."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import array_api_compat
import numpy as np

from frot._base import _host
from frot._base.errors import InputError


def namespace(*arrays: Any) -> Any:
    """Return the array API namespace of the arrays.

    Examples
    --------
    >>> namespace(np.zeros(2)).__name__
    'array_api_compat.numpy'
    """
    return array_api_compat.array_namespace(*arrays)


def is_foreign(value: Any) -> bool:
    """Whether the value is an array of another library than NumPy."""
    if value is None or isinstance(value, np.ndarray | np.generic | list | tuple | float | int):
        return False
    return array_api_compat.is_array_api_obj(value)


def to_numpy(array: Any) -> np.ndarray:
    """Return the array as NumPy's, from whatever device it is on."""
    if isinstance(array, np.ndarray):
        return array
    if array_api_compat.is_torch_array(array):
        return array.detach().cpu().numpy()
    if array_api_compat.is_cupy_array(array):
        return array.get()
    return np.asarray(array)


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
        # PyTorch's and CuPy's have this name, JAX has one for all.
        if type(error).__name__ != "OutOfMemoryError" and "RESOURCE_EXHAUSTED" not in str(error):
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
        if type(array) is np.ndarray:
            return _host_home(array.dtype)
        return cls(namespace(array), array_api_compat.device(array), array.dtype)

    @cached_property
    def library(self) -> str:
        """The library's name, for messages."""
        return "numpy" if self.xp is _host else self.xp.__name__.removeprefix("array_api_compat.")

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
        name: value for name, value in arguments.items() if array_api_compat.is_array_api_obj(value)
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

"""NumPy and PyTorch say the same under one set of names, and what NumPy's own functions say."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import frot
from frot._base import _torch
from frot._base.arrays import NUMPY, Home

BOTH = [pytest.param(NUMPY, id="numpy"), pytest.param(_torch, id="torch")]
ARRAYS = [np.array([[1.0, -2.0, np.nan]]), np.arange(6, dtype="float32").reshape(2, 3)]


def given(xp: Any, array: np.ndarray) -> Any:
    return array if xp is NUMPY else torch.tensor(array)


def same(found: Any, expected: Any) -> None:
    """Values, shape and precision; the answer is a scalar in NumPy where it has no axes."""
    host = found.numpy() if isinstance(found, torch.Tensor) else np.asarray(found)
    assert host.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(host, expected)


@pytest.mark.parametrize("xp", BOTH)
@pytest.mark.parametrize("array", ARRAYS, ids=["double", "single"])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("name", ["sum", "max", "min", "all", "any"])
def test_reductions(xp: Any, name: str, array: np.ndarray, axis, keepdims: bool):
    if xp is _torch and axis is None:
        # PyTorch's own keeps no axes there, and nobody asks it to.
        keepdims = False
    array = array > 0.0 if name in ("all", "any") else array
    options = {} if axis is None else {"axis": axis, "keepdims": keepdims}
    if axis is None and keepdims:
        options = {"keepdims": True}
    same(getattr(xp, name)(given(xp, array), **options), getattr(np, name)(array, **options))


@pytest.mark.parametrize("xp", BOTH)
def test_reductions_over_several_axes(xp: Any):
    array = np.arange(24.0).reshape(2, 3, 4)
    same(xp.max(given(xp, array), axis=(1, 2)), array.max(axis=(1, 2)))
    same(xp.sum(given(xp, array), axis=(0, 2), dtype=xp.float64), array.sum(axis=(0, 2)))


U, V = np.arange(12.0).reshape(3, 4), np.arange(12.0, 24.0).reshape(3, 4)
CALLS: dict[str, Any] = {
    "concat": (lambda xp, u, v: xp.concat([u, v], axis=1), np.concatenate([U, V], axis=1)),
    "stack": (lambda xp, u, v: xp.stack([u, v], axis=1), np.stack([U, V], axis=1)),
    "take": (lambda xp, u, v: xp.take(u, Home.of(u).indices([2, 0]), axis=1), U[:, [2, 0]]),
    "permute_dims": (lambda xp, u, v: xp.permute_dims(u, (1, 0)), U.T),
    "matrix_transpose": (lambda xp, u, v: xp.matrix_transpose(xp.stack([u])), U.T[None]),
    "vecdot": (lambda xp, u, v: xp.vecdot(u, v), (U * V).sum(axis=1)),
    "vecdot with one": (lambda xp, u, v: xp.vecdot(u, v[:1, :]), U @ V[0]),
    "sort": (lambda xp, u, v: xp.sort(u, axis=1, descending=True), U[:, ::-1]),
    "cumulative_sum": (lambda xp, u, v: xp.cumulative_sum(u, axis=1), U.cumsum(axis=1)),
    "flip": (lambda xp, u, v: xp.flip(u, axis=1), U[:, ::-1]),
    "squeeze": (lambda xp, u, v: xp.squeeze(u[:1, :], axis=0), U[0]),
    "argmax": (lambda xp, u, v: xp.argmax(u, axis=0), U.argmax(axis=0)),
    "mean": (lambda xp, u, v: xp.mean(u, axis=1, keepdims=True), U.mean(axis=1, keepdims=True)),
    "clip": (lambda xp, u, v: xp.clip(u, 2.0, None), U.clip(2.0)),
    "clip by an array": (lambda xp, u, v: xp.clip(u, None, v - 14.0), np.minimum(U, V - 14.0)),
    "reshape": (lambda xp, u, v: xp.reshape(u, (2, -1)), U.reshape(2, -1)),
    "where": (lambda xp, u, v: xp.where(u > 3.0, v, 0.0), np.where(U > 3.0, V, 0.0)),
    "full_like": (lambda xp, u, v: xp.full_like(u, 2.0), np.full_like(U, 2.0)),
    "eye": (lambda xp, u, v: xp.eye(3, dtype=u.dtype, device=u.device), np.eye(3)),
    "arange": (lambda xp, u, v: xp.arange(3, dtype=u.dtype, device=u.device), np.arange(3.0)),
    "full": (lambda xp, u, v: xp.full((2,), 3.0, dtype=u.dtype), np.full(2, 3.0)),
    "single": (lambda xp, u, v: xp.astype(u, xp.float32), U.astype(np.float32)),
    "a copy": (lambda xp, u, v: xp.asarray(u, copy=True), U),
}


@pytest.mark.parametrize("xp", BOTH)
@pytest.mark.parametrize("name", CALLS)
def test_functions(xp: Any, name: str):
    call, expected = CALLS[name]
    if xp is NUMPY and not hasattr(U, "device"):
        pytest.skip("arrays of NumPy 1 have no device to ask for")
    u, v = given(xp, U.copy()), given(xp, V.copy())
    found = call(xp, u, v)
    same(found, expected)
    assert found is not u


@pytest.mark.parametrize("xp", BOTH)
def test_a_copy_is_made_where_it_is_asked_for(xp: Any):
    u = given(xp, U.copy())
    assert xp.astype(u, u.dtype, copy=False) is u
    for copy in (xp.astype(u, u.dtype), xp.asarray(u, copy=True)):
        copy[0, 0] = 7.0
        assert float(u[0, 0]) == 0.0


def test_every_name_that_frot_asks_for_is_in_both():
    source = Path(frot.__file__).parent
    names = set()
    for path in source.rglob("*.py"):
        names |= set(re.findall(r"\bxp\.([a-z_0-9]+)", path.read_text()))
    # Ufuncs of NumPy's that are called xp in no room, and PyTorch alone.
    names -= {"reduce", "accumulate"}
    assert len(names) > 40
    for name in sorted(names):
        assert hasattr(NUMPY, name), name
        assert hasattr(_torch, name), name


def test_the_host_is_numpys():
    for array, library in ((np.zeros(2), "numpy"), (torch.zeros(2), "torch")):
        home = Home.of(array)
        assert home.library == library
        assert pickle.loads(pickle.dumps(home)) == home

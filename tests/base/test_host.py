"""NumPy without wrappers says what it says with them."""

from __future__ import annotations

import pickle

import array_api_compat.numpy as compat
import numpy as np
import pytest

from frot._base import _host
from frot._base.arrays import Home

ARRAYS = [np.array([[1.0, -2.0, np.nan]]), np.arange(6, dtype="float32").reshape(2, 3)]


@pytest.mark.parametrize("array", ARRAYS, ids=["double", "single"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("name", ["sum", "max", "min", "all", "any"])
def test_reductions(name: str, array: np.ndarray, axis, keepdims: bool):
    array = array > 0.0 if name in ("all", "any") else array
    found, expected = (
        getattr(xp, name)(array, axis=axis, keepdims=keepdims) for xp in (_host, compat)
    )
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("array", ARRAYS, ids=["double", "single"])
def test_arrays_like_others(array: np.ndarray):
    for name, args in (
        ("zeros_like", ()),
        ("ones_like", ()),
        ("astype", (np.float64,)),
        ("clip", (-1.0, None)),
        ("clip", (None, np.full((1, 3), 2.0))),
    ):
        found, expected = (getattr(xp, name)(array, *args) for xp in (_host, compat))
        assert found.dtype == expected.dtype, name
        np.testing.assert_array_equal(found, expected)
        assert found is not array
    assert _host.astype(array, array.dtype, copy=False) is array


def test_the_host_is_numpys():
    home = Home.of(np.zeros(2))
    assert home.library == "numpy"
    assert pickle.loads(pickle.dumps(home)) == home

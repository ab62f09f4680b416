"""Files with bytes flipped, cut, or with members swapped, changed, renamed or left out."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

import frot


def damaged(path: Path, rng: np.random.Generator) -> bytes:
    """The file with bytes flipped, cut, or with members swapped, changed, renamed or left out."""
    content = bytearray(path.read_bytes())
    how = int(rng.integers(8))
    if how == 0:
        for place in rng.integers(len(content), size=int(rng.integers(1, 4))):
            content[place] ^= int(rng.integers(1, 256))
        return bytes(content)
    if how == 1:
        return bytes(content[: int(rng.integers(len(content)))])
    with np.load(path) as stored:
        arrays = dict(stored)
    first, second = rng.choice(list(arrays), 2, replace=False)
    array = arrays[first]
    if how == 2:
        arrays[first], arrays[second] = arrays[second], arrays[first]
    elif how == 3:
        del arrays[first]
    elif how == 4:
        arrays[first] = np.ones(
            array.shape, str(rng.choice(["U9", "float16", "complex128", "bool"]))
        )
    elif how == 5:
        arrays[first] = np.stack([array, array])
    elif how == 6:
        arrays["kind"] = np.array(rng.choice(["result", "match", "flow", "7"]))
    else:
        arrays[first] = np.array(rng.choice(np.array([-1.0, np.nan, 1e300])))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def check_damaged(whole: Path, folder: Path, count: int) -> None:
    """Check that damaged copies of what was saved are refused, or are read as it was."""
    expected, refused = frot.load(whole), 0
    with np.load(whole) as stored:
        arrays = dict(stored)
    for seed in range(count):
        broken = folder / "broken.npz"
        broken.write_bytes(damaged(whole, np.random.default_rng(seed)))
        try:
            again = frot.load(broken)
        except frot.InputError:
            refused += 1
            continue
        assert type(again) is type(expected)
        # What was hit is nothing that is read: a time stamp of the archive, or an equal value.
        again.save(folder / "again.npz")
        with np.load(folder / "again.npz") as stored:
            assert stored.files == list(arrays)
            for name, array in arrays.items():
                np.testing.assert_array_equal(stored[name], array)
    assert refused >= 0.8 * count

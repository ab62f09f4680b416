"""Weights of points from a file: one number a point."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from frot._errors import InputError
from frot._tables import read_table

__all__ = ["read_weights", "weights_call"]


def read_weights(path: Path) -> np.ndarray:
    r"""Read a single row or column of numbers from any file that holds a table.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "weights.csv"
    >>> _ = path.write_text("weight\n0.25\n0.75\n")
    >>> read_weights(path)
    array([0.25, 0.75])
    """
    if path.suffix.lower() == ".npy" and path.is_file():
        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"cannot read {path}: {error}") from None
    else:
        array = read_table(path).values
    if array.size != max(array.shape, default=0):
        raise InputError(f"{path} has shape {array.shape}; weights are one row or one column")
    return array.ravel()


def weights_call(path: Path) -> str:
    """Return the Python expression that reads the same weights.

    Examples
    --------
    >>> print(weights_call(Path("weights.npy")))
    numpy.load('weights.npy').ravel()
    """
    if path.suffix.lower() == ".npy":
        return f"numpy.load({str(path)!r}).ravel()"
    return f"frot.read_table({str(path)!r}).values.ravel()"

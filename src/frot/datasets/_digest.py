"""SHA-256 of files and of arrays, so that results are about the data they say they are about."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

__all__ = ["of_arrays", "of_file"]


def of_file(path: Path) -> str:
    """Return the digest of a file's bytes.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "empty"
    >>> _ = path.write_bytes(b"")
    >>> of_file(path)[:8]
    'e3b0c442'
    """
    # hashlib.file_digest is not in Python 3.10; none of the files is large.
    return hashlib.sha256(path.read_bytes()).hexdigest()


def of_arrays(X: NDArray[Any], y: NDArray[Any]) -> str:
    """Return the digest of values and labels, whoever wrote them into whichever container.

    Parameters
    ----------
    X : numpy.ndarray, shape (n, d)
        Taken as float32, which is what the conversions hold.
    y : numpy.ndarray of str, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.eye(2), np.array(["a", "b"])
    >>> of_arrays(X, y) == of_arrays(X.astype("f4"), y.astype("U9"))
    True
    """
    labels = "\n".join(str(label) for label in y.tolist())
    return hashlib.sha256(X.astype("<f4").tobytes() + labels.encode()).hexdigest()

"""Readers of the three kinds of files: .mat, .npz, and GSEA's .txt with .cls."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frot._base.tables import read_cells, read_text
from frot._errors import InputError

__all__ = ["Raw", "read_gsea", "read_mat", "read_npz"]


class Raw(NamedTuple):
    """What a file holds: values (n, d), labels (n,), and names of the d features."""

    X: NDArray[np.float64]
    y: NDArray
    names: tuple[str, ...]


def read_mat(path: Path) -> Raw:
    """Read X and Y of a MATLAB file; its features, without names, become x0, x1 and so on.

    Examples
    --------
    >>> import tempfile
    >>> from scipy.io import savemat
    >>> path = Path(tempfile.mkdtemp()) / "a.mat"
    >>> savemat(path, {"X": np.eye(2), "Y": [[1], [2]]})
    >>> read_mat(path).y, read_mat(path).names
    (array([1, 2]), ('x0', 'x1'))
    """
    from scipy.io import loadmat

    with _told(path, "a MATLAB file with arrays X and Y"):
        content = loadmat(path, variable_names=("X", "Y"))
        X = np.ascontiguousarray(content["X"], dtype=np.float64)
        y = np.asarray(content["Y"]).ravel().astype(np.int64)
        return Raw(X, y, tuple(f"x{column}" for column in range(X.shape[1])))


def read_npz(path: Path) -> Raw:
    """Read X, y and, where they are there, genes.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.npz"
    >>> np.savez(path, X=np.eye(2), y=["ill", "well"], genes=["TP53", "MYC"])
    >>> read_npz(path).names
    ('TP53', 'MYC')
    """
    # Opened here, since NumPy leaves a broken file open.
    with _told(path, "an .npz file with arrays X and y"), path.open("rb") as file:
        content = np.load(file, allow_pickle=False)
        X = np.ascontiguousarray(content["X"], dtype=np.float64)
        names = content["genes"] if "genes" in content else [f"x{i}" for i in range(X.shape[1])]
        return Raw(X, content["y"].astype(str), tuple(str(name) for name in names))


def read_gsea(values: Path, labels: Path) -> Raw:
    r"""Read a table of genes by samples (two columns of names first) and its .cls file.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("Gene\tNAME\ts1\ts2\nTP53\tp1\t1.0\t2.0\n")
    >>> _ = (folder / "a.cls").write_text("2 2 1\n# ALL AML\nALL AML\n")
    >>> raw = read_gsea(folder / "a.txt", folder / "a.cls")
    >>> raw.X.ravel().tolist(), raw.y.tolist(), raw.names
    ([1.0, 2.0], ['ALL', 'AML'], ('TP53',))
    """
    with _told(values, "a table of genes with two columns of names"):
        rows = [row for _, row in read_cells(read_text(values), "\t", values)[1:]]
        X = np.ascontiguousarray(np.array([row[2:] for row in rows], dtype=np.float64).T)
        names = tuple(row[0] for row in rows)
    with _told(labels, "a .cls file of three lines"):
        y = np.array(read_text(labels).splitlines()[2].split())
    return Raw(X, y, names)


@contextmanager
def _told(path: Path, kind: str) -> Iterator[None]:
    # scipy raises NotImplementedError for MATLAB's 7.3 and ValueError for what is no MATLAB file.
    troubles = (OSError, ValueError, KeyError, IndexError, NotImplementedError)
    try:
        yield
    except (*troubles, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"{path} cannot be read as {kind}: {error}") from None

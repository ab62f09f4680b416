"""Labelled samples on disk: a table of numbers, a class for each row, maybe blocks and names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from frot._errors import InputError, require
from frot._files import check_path
from frot._groups import Groups
from frot._names import quote_some
from frot._tables import read_table
from frot.selection._text_samples import Columns, read_text_columns

__all__ = ["Samples", "read_samples"]

TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
KNOWN = (*TEXT, ".npz", ".parquet", ".h5ad")


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of known classes.

    Attributes
    ----------
    X : array or sparse array of shape (N, d)
    y : array of shape (N,)
        Labels, as text.
    names : tuple of str, length d
        Of the features.
    ids : tuple of str, length N, or None
        Of the samples, where the file has them.
    block : array of shape (N,), or None
        What to permute within.
    ignored : tuple of str
        Columns that were left out because they hold text.
    path : pathlib.Path

    Examples
    --------
    >>> samples = Samples(np.eye(2), np.array(["a", "b"]), ("u", "v"), None, None, (), Path("x"))
    >>> samples.groups("each").names
    ('u', 'v')
    """

    X: Any
    y: np.ndarray
    names: tuple[str, ...]
    ids: tuple[str, ...] | None
    block: np.ndarray | None
    ignored: tuple[str, ...]
    path: Path

    @property
    def shape(self) -> tuple[int, int]:
        """(N, d)."""
        n, d = self.X.shape
        return n, d

    def groups(self, spec: Any = "each") -> Groups:
        """Read a description of groups, members being named as the features are."""
        return Groups.parse(spec, self.shape[1], self.names)


def read_samples(
    path: str | os.PathLike[str],
    label: str,
    *,
    block: str | None = None,
    ids: str | None = None,
    ignore: tuple[str, ...] | list[str] = (),
) -> Samples:
    r"""Read a table with a column of labels.

    In .csv and .tsv files (also with .gz) and in .parquet files the first row names the columns;
    columns of numbers are features. The first column of text is taken for the names of the
    samples, and other columns of text are left out; `ignored` lists them. Empty cells, NA and
    NaN are missing values. An .npz file holds the array ``X``, the labels and blocks as arrays
    of the names given, and ``genes`` or ``columns`` to name the features. Of an .h5ad file the
    table is ``X``, sparse if it is sparse there, and the labels are a column of ``obs``; it
    needs anndata.

    Parameters
    ----------
    path : path
    label : str
        Name of the column, or array, of classes.
    block : str, optional
        That of batches, donors...
    ids : str, optional
        That of the samples' names.
    ignore : sequence of str
        Columns that are no features.

    Returns
    -------
    Samples

    Raises
    ------
    InputError
        If the file, or a column, is not there or cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "samples.csv"
    >>> _ = path.write_text("patient,TP53,MYC,class\np1,1,2,tumor\np2,3,,normal\n")
    >>> samples = read_samples(path, "class")
    >>> samples.names, samples.ids, samples.y.tolist()
    (('TP53', 'MYC'), ('p1', 'p2'), ['tumor', 'normal'])
    >>> samples.X
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    path = check_path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])
    if kind == ".npy":
        raise InputError(
            f"{path} holds no labels; save an .npz file with the table as 'X' and the labels as "
            f"{label!r}"
        )
    if kind not in KNOWN:
        raise InputError(f"{path} has an unknown suffix {kind!r}; known are {', '.join(KNOWN)}")
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {reason}; give the path of a file")
    wanted = Columns(label, block, ids, tuple(ignore))
    if kind in TEXT:
        found = read_text_columns(path, "\t" if ".tsv" in kind else ",", wanted)
    elif kind == ".npz":
        found = _read_npz(path, wanted)
    else:
        found = _read_parquet(path, wanted) if kind == ".parquet" else _read_h5ad(path, wanted)
    X, special, names, ignored = found
    if X.shape[1] == 0:
        raise InputError(f"{path} has no column of numbers besides {label!r}; there is no feature")
    y = special["label"]
    assert y is not None
    missing = np.flatnonzero([text in ("", "nan", "None", "NA") for text in y.tolist()])
    if len(missing):
        raise InputError(
            f"{path}: {len(missing)} samples, the first in row {missing[0] + 1}, have no "
            f"{label!r}; label them or remove them"
        )
    row_names = special["ids"]
    return Samples(
        X,
        y,
        names,
        None if row_names is None else tuple(row_names.tolist()),
        special["block"],
        ignored,
        path,
    )


Found = tuple[Any, dict[str, np.ndarray | None], tuple[str, ...], tuple[str, ...]]


def _as_text(values: Any) -> np.ndarray:
    return np.array([str(value) for value in np.asarray(values).tolist()])


def _read_npz(path: Path, wanted: Columns) -> Found:
    table = read_table(path)
    n, d = table.shape
    special: dict[str, np.ndarray | None] = {"label": None, "block": None, "ids": None}
    with np.load(path, allow_pickle=False) as archive:
        vectors = [name for name in archive.files if archive[name].shape == (n,)]
        for what, name in wanted.special():
            if name not in vectors:
                raise InputError(wanted.absent(path, what, name, vectors))
            special[what] = _as_text(archive[name])
    if special["ids"] is None and table.ids is not None:
        special["ids"] = np.array(table.ids)
    names = table.columns or tuple(f"x{column}" for column in range(d))
    kept = [column for column in range(d) if names[column] not in wanted.ignore]
    X = table.values if len(kept) == d else table.values[:, kept]
    return X, special, tuple(names[column] for column in kept), ()


def _read_parquet(path: Path, wanted: Columns) -> Found:
    pandas, arrow = require("pandas", "tables"), require("pyarrow", "tables")
    try:
        frame = pandas.read_parquet(path)
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if not isinstance(frame.index, pandas.RangeIndex):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    special: dict[str, np.ndarray | None] = {"label": None, "block": None, "ids": None}
    for what, name in wanted.special():
        if name not in frame.columns:
            raise InputError(wanted.absent(path, what, name, list(frame.columns)))
        special[what] = _as_text(frame[name])
    apart = {name for _, name in wanted.special()} | set(wanted.ignore)
    is_number = pandas.api.types.is_numeric_dtype
    others = [name for name in frame.columns if name not in apart]
    text = [name for name in others if not is_number(frame[name].dtype)]
    if special["ids"] is None and text:
        special["ids"] = _as_text(frame[text.pop(0)])
    kept = [name for name in others if is_number(frame[name].dtype)]
    X = frame[kept].to_numpy(dtype=np.float64, na_value=np.nan)
    return X, special, tuple(kept), tuple(text)


def _read_h5ad(path: Path, wanted: Columns) -> Found:
    anndata = require("anndata", "anndata")
    try:
        adata = anndata.read_h5ad(path)
    except Exception as error:
        # h5py and anndata raise errors of many kinds for files that they cannot read.
        raise InputError(f"cannot read {path}: {' '.join(str(error).split())}") from None
    if adata.X is None:
        raise InputError(f"{path} has no X; write the table to X")
    special: dict[str, np.ndarray | None] = {"label": None, "block": None, "ids": None}
    for what, name in wanted.special():
        if name not in adata.obs:
            raise InputError(wanted.absent(path, what, name, list(map(str, adata.obs.columns))))
        special[what] = _as_text(adata.obs[name])
    if special["ids"] is None:
        special["ids"] = _as_text(adata.obs_names)
    names = tuple(map(str, adata.var_names))
    unknown = [name for name in wanted.ignore if name not in set(names)]
    if unknown:
        raise InputError(f"{path} has no gene {quote_some(unknown)} to ignore; check the name")
    kept = np.array([name not in wanted.ignore for name in names])
    X = adata.X if kept.all() else adata.X[:, np.flatnonzero(kept)]
    return X, special, tuple(np.array(names, dtype=object)[kept]), ()

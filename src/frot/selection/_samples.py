"""Labelled samples on disk: a table of numbers, a class for each row, maybe blocks and names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError, require
from frot._base.files import check_path
from frot._base.names import quote_some
from frot._base.tables import (
    delimiter_of,
    is_number,
    kind_of,
    read_cells,
    read_frame,
    read_table,
    read_text,
)
from frot.groups.groups import Groups

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
    layer: str | None = None,
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
    layer : str, optional
        Of an .h5ad file, the layer to read in the place of ``X``.

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
    kind = kind_of(path)
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
    if layer is not None and kind != ".h5ad":
        raise InputError(f"layer: {path} has none; leave layer out, which is for .h5ad files")
    wanted = Columns(label, block, ids, tuple(ignore), layer)
    readers = {".npz": _read_npz, ".parquet": _read_parquet, ".h5ad": _read_h5ad}
    X, special, names, ignored = readers.get(kind, read_text_columns)(path, wanted)
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
    named = None if special["ids"] is None else tuple(special["ids"].tolist())
    return Samples(X, y, names, named, special["block"], ignored, path)


Found = tuple[Any, dict[str, np.ndarray | None], tuple[str, ...], tuple[str, ...]]


def _as_text(values: Any) -> np.ndarray:
    return np.array([str(value) for value in np.asarray(values).tolist()])


def _read_npz(path: Path, wanted: Columns) -> Found:
    table = read_table(path)
    n, d = table.shape
    with np.load(path, allow_pickle=False) as archive:
        vectors = [name for name in archive.files if archive[name].shape == (n,)]
        special = wanted.take(path, vectors, archive.__getitem__)
    if special["ids"] is None and table.ids is not None:
        special["ids"] = np.array(table.ids)
    names = table.columns or tuple(f"x{column}" for column in range(d))
    kept = [column for column in range(d) if names[column] not in wanted.ignore]
    X = table.values if len(kept) == d else table.values[:, kept]
    return X, special, tuple(names[column] for column in kept), ()


def _read_parquet(path: Path, wanted: Columns) -> Found:
    frame, pandas = read_frame(path), require("pandas", "tables")
    if not isinstance(frame.index, pandas.RangeIndex):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    special = wanted.take(path, list(frame.columns), frame.__getitem__)
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
    if wanted.layer is not None and wanted.layer not in adata.layers:
        known = quote_some(list(adata.layers)) or "none"
        raise InputError(f"layer: {path} has no layer {wanted.layer!r}; it has {known}")
    table: Any = adata.X if wanted.layer is None else adata.layers[wanted.layer]
    if table is None:
        raise InputError(f"{path} has no X; write the table to X")
    special = wanted.take(path, list(map(str, adata.obs.columns)), adata.obs.__getitem__)
    if special["ids"] is None:
        special["ids"] = _as_text(adata.obs_names)
    names = tuple(map(str, adata.var_names))
    unknown = [name for name in wanted.ignore if name not in set(names)]
    if unknown:
        raise InputError(f"{path} has no gene {quote_some(unknown)} to ignore; check the name")
    kept = np.array([name not in wanted.ignore for name in names])
    X = table if kept.all() else table[:, np.flatnonzero(kept)]
    return X, special, tuple(np.array(names, dtype=object)[kept]), ()


# Cells that stand for a missing value.
MISSING = frozenset({"", "na", "nan", "null", "none", "n/a"})
# Rows that are looked at to tell whether a column holds text.
SAMPLE = 50


@dataclass(frozen=True)
class Columns:
    """Which columns are not features, by name.

    Examples
    --------
    >>> Columns("class", block="donor").special()
    [('label', 'class'), ('block', 'donor')]
    """

    label: str
    block: str | None = None
    ids: str | None = None
    ignore: tuple[str, ...] = ()
    layer: str | None = None

    def special(self) -> list[tuple[str, str]]:
        """Those with a meaning: what each is, and its name."""
        named = (("label", self.label), ("block", self.block), ("ids", self.ids))
        return [(what, name) for what, name in named if name is not None]

    def take(
        self, path: Path, present: Sequence[str], column: Callable[[str], Any]
    ) -> dict[str, np.ndarray | None]:
        """Read those as text, None for those not asked for; refuse what is not there."""
        found: dict[str, np.ndarray | None] = dict.fromkeys(("label", "block", "ids"))
        for what, name in self.special():
            if name not in present:
                raise InputError(self._absent(path, what, name, present))
            found[what] = _as_text(column(name))
        return found

    def _absent(self, path: Path, what: str, name: str, present: Sequence[str]) -> str:
        """Return the sentence for a column that is not there."""
        option = "id" if what == "ids" else what
        # Labels are more often the first or the last column than one of thousands of genes.
        some = list(present) if len(present) <= 8 else [*present[:4], *present[-4:]]
        more = "" if len(some) == len(present) else f" and {len(present) - len(some)} more"
        listed = ", ".join(repr(one) for one in some) + more if some else "none that could serve"
        return f"{option}: {path} has no column {name!r}; it has {listed}"


def read_text_columns(path: Path, wanted: Columns) -> Found:
    r"""Return the features, the special columns, the features' names and what was left out.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,kind,u,remark\np,a,1.5,fine\nq,b,2.5,odd\n")
    >>> X, special, names, ignored = read_text_columns(path, Columns("kind"))
    >>> X.tolist(), special["ids"].tolist(), names, ignored
    ([[1.5], [2.5]], ['p', 'q'], ('u',), ('remark',))
    """
    header, rows = _read_rows(path)
    apart: set[int] = set()

    def cells(name: str) -> np.ndarray:
        if header.count(name) > 1:
            raise InputError(f"{path} has two columns named {name!r}; rename one")
        apart.add(header.index(name))
        return np.array([row[header.index(name)].strip() for _, row in rows])

    special = wanted.take(path, header, cells)
    unknown = [name for name in wanted.ignore if name not in header]
    if unknown:
        raise InputError(f"{path} has no column {quote_some(unknown)} to ignore; check the name")
    ignored = set(wanted.ignore)
    apart |= {column for column, name in enumerate(header) if name in ignored}
    head = [row for _, row in rows[:SAMPLE]]
    text = [
        column
        for column in range(len(header))
        if column not in apart and (header[column] == "" or _is_text(row[column] for row in head))
    ]
    if special["ids"] is None and text:
        column = text.pop(0)
        special["ids"] = np.array([row[column].strip() for _, row in rows])
        apart.add(column)
    apart |= set(text)
    kept = [column for column in range(len(header)) if column not in apart]
    names = tuple(header[column] for column in kept)
    X = np.empty((len(rows), len(kept)))
    for position, (line, row) in enumerate(rows):
        X[position] = _numbers([row[column] for column in kept], path, line, names)
    return X, special, names, tuple(header[column] for column in text)


def _read_rows(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header, and every row with the number of its line."""
    rows = read_cells(read_text(path), delimiter_of(path), path)
    if len(rows) < 2:
        raise InputError(f"{path} holds no samples; it needs a header and a row for each sample")
    header = [cell.strip() for cell in rows.pop(0)[1]]
    if len(rows[0][1]) == len(header) + 1:
        header.insert(0, "")  # R leaves the cell above the row names out
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(
                f"{path}, line {line}: {len(row)} cells where there should be {len(header)}; "
                "every row needs as many cells as the header"
            )
    return header, rows


def _is_text(cells: Iterable[str]) -> bool:
    """Whether some cells are filled, and none of them with a number."""
    filled = [cell for cell in cells if cell.strip().lower() not in MISSING]
    return bool(filled) and not any(map(is_number, filled))


def _numbers(cells: list[str], path: Path, line: int, names: Sequence[str]) -> np.ndarray:
    try:
        return np.array(cells, dtype=float)
    except ValueError:
        pass
    values = np.full(len(cells), np.nan)
    for column, cell in enumerate(cells):
        if cell.strip().lower() in MISSING:
            continue
        if not is_number(cell):
            raise InputError(
                f"{path}, line {line}, column {names[column]!r}: {cell!r} is not a number; write "
                f"a number there, or leave the column out with --ignore {names[column]}"
            )
        values[column] = float(cell)
    return values

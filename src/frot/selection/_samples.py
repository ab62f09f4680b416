"""Labelled samples on disk: a table of numbers, classes, and blocks and names where given.

What is probably not meant is said: metadata among the features, raw counts, repeated names.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from frot._base.errors import InputError, brief, require
from frot._base.files import check_path
from frot._base.names import quote_some
from frot._base.text import check_kind, kind_of
from frot._base.validate import check_flag
from frot.groups.groups import Groups
from frot.selection._annotated import values_of
from frot.selection._doubts import largest_count, looks_like_metadata, mention, warn_of_names
from frot.selection._frames import (
    KNOWN,
    as_labels,
    has_numbers,
    numbers_of,
    read_frame,
)
from frot.selection._labels import Labels, absent

Names = str | Iterable[str]


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
        Batch, donor, patient...
    ignored : tuple of str
        Columns that were left out because they hold text.
    path : pathlib.Path
    metadata : tuple of str
        Columns of numbers that were left out because they look like metadata.

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
    metadata: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n, d = self.shape
        classes = quote_some(np.unique(self.y).tolist())
        return f"Samples({self.path.name}: {n} samples of {d} features, classes {classes})"

    @property
    def shape(self) -> tuple[int, int]:
        """(N, d)."""
        n, d = self.X.shape
        return n, d

    def to_frame(self) -> pd.DataFrame:
        """Return the features as pandas has them, so that a selector knows their names.

        Rows are named by `ids` where there are some; a sparse table stays sparse.

        Examples
        --------
        >>> y, names = np.array(["a", "b"]), ("u", "v")
        >>> samples = Samples(np.eye(2), y, names, None, None, (), Path("x"))
        >>> samples.to_frame().columns.tolist()
        ['u', 'v']
        """
        make: Any = pd.DataFrame
        if sparse.issparse(self.X):
            make = pd.DataFrame.sparse.from_spmatrix
        return make(self.X, index=self.ids, columns=self.names)

    def groups(self, spec: Any = "each") -> Groups:
        """Read a description of groups, members being named as the features are."""
        return Groups.parse(spec, self.shape[1], self.names)


def read_samples(
    path: str | os.PathLike[str],
    label: str,
    *,
    labels: str | os.PathLike[str] | None = None,
    block: str | None = None,
    ids: str | None = None,
    transpose: bool = False,
    drop: Names = (),
    keep: Names = (),
    log1p: bool = False,
    layer: str | None = None,
) -> Samples:
    r"""Read a table of samples, with their classes in a column or in another file.

    In text (.csv, .tsv, .txt, also with .gz), .xlsx and .parquet files the first row names the
    columns; columns of numbers are features. The first column of text is taken for the names of the
    samples, and other columns of text are left out; `ignored` lists them. Empty cells, NA and
    NaN are missing values. Semicolons, tabs and decimal commas are recognised. Of an .h5ad file the
    table is ``X``, sparse if it is sparse there, and the labels are a column of ``obs``; it needs
    anndata. A .gct file has genes in rows and needs no `transpose`. Excel files need openpyxl.

    Columns of numbers that look like metadata (age, batch, an id, the numbers 1 to N) are left out
    with a `frot.DataWarning`; `metadata` lists them. Repeated names, raw counts, and names that a
    spreadsheet made dates of are warned of, too.

    Parameters
    ----------
    path : path
    label : str
        Name of the column, or array, of classes.
    labels : path, optional
        A text or .xlsx file that has the column `label`, one row per sample; the column that holds
        the samples' names is found by what it holds, in any order. Samples that are in one
        of the files only are left out, with a `frot.DataWarning` that names them. A .cls file
        has the classes in the order of the samples.
    block : str, optional
        Column of batches, donors, ..., of either file.
    ids : str, optional
        That of the samples' names; of a transposed table, that of the features' names.
    transpose : bool
        Whether the table has a row for each feature, its name first, and a column for each sample.
    drop : str or sequence of str
        Columns (of a transposed table, rows) that are no features.
    keep : str or sequence of str
        Columns that are features though they look like metadata.
    log1p : bool
        Take log(1 + x) of a table of counts; refused for negative numbers. Fold changes are of
        the counts with ``FROTSelector(values="log1p")``.
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

    Genes in rows, and the classes in a file of their own:

    >>> genes, classes = path.with_name("genes.txt"), path.with_name("classes.csv")
    >>> _ = genes.write_text("gene\ts1\ts2\nTP53\t1,5\t3\nMYC\t2\t4\n")
    >>> _ = classes.write_text("sample;condition\ns2;normal\ns1;tumor\n")
    >>> samples = read_samples(genes, "condition", labels=classes, transpose=True)
    >>> samples.X.tolist(), samples.y.tolist()
    ([[1.5, 2.0], [3.0, 4.0]], ['tumor', 'normal'])
    """
    path = check_path(path)
    others = None if labels is None else Labels.read(check_path(labels, "labels"), label)
    transpose = check_flag(transpose, "transpose") or kind_of(path).startswith(".gct")
    dropped, kept = _listed(drop, "drop"), _listed(keep, "keep")
    special = {} if others is not None else {"label": label}
    if block is not None and (others is None or block not in others.columns):
        special["block"] = block
    if kind_of(path) == ".h5ad":
        table = _read_h5ad(path, special, layer, transpose)
    elif layer is not None:
        raise InputError(f"layer: {path} has none; leave layer out, which is for .h5ad files")
    else:
        check_kind(path, (*KNOWN, ".h5ad"))
        frame = read_frame(path, as_text=[*special.values(), *([ids] if ids else [])])
        if transpose:
            table = _read_transposed(frame, path, special, ids, dropped)
        else:
            table = _read_rows(frame, path, special, ids, dropped)
    for argument, names in (("drop", dropped), ("keep", kept)):
        if unknown := [name for name in names if name not in table.present]:
            raise InputError(
                f"{argument}: {path} has no column {quote_some(unknown)}; check the name"
            )
    if others is not None:
        rows = others.rows_of(table.ids, path, table.X.shape[0], table.present)
        if (rows < 0).any():
            table = table.of(rows >= 0)
            rows = rows[rows >= 0]
        table.special["label"] = others.columns[label][rows]
        if block is not None and block in others.columns:
            table.special["block"] = others.columns[block][rows]
    table, metadata = _features(table, dropped, kept, path, table.special.keys() | {label})
    missing = np.flatnonzero(pd.isna(table.special["label"]))
    if len(missing):
        raise InputError(
            f"{path}: {len(missing)} samples, the first in row {missing[0] + 1}, have no "
            f"{brief(label)}; label them or remove them"
        )
    logged = check_flag(log1p, "log1p")
    warn_of_names(table.names, str(path))
    values = table.X.data if sparse.issparse(table.X) else table.X
    if not logged and (largest := largest_count(values)):
        mention(
            f"{path} looks like raw counts (whole numbers up to {largest:,}); log1p=True ranks "
            "log(1 + x), in which the largest do not hide the others"
        )
    blocks = table.special.get("block")
    return Samples(
        X=apply_log1p(table.X, path) if logged else table.X,
        y=table.special["label"].astype(str),
        names=table.names,
        ids=None if table.ids is None else tuple(map(str, table.ids)),
        block=blocks,
        ignored=table.text,
        path=path,
        metadata=metadata,
    )


@dataclass
class _Table:
    """What a file holds: a table (N, d), dense or sparse, and what is no feature."""

    X: Any
    names: tuple[str, ...]
    ids: np.ndarray | None
    # "label" and "block", where the file has them, as text.
    special: dict[str, np.ndarray]
    # Names that there are, of features or not.
    present: set[str]
    # Columns that were left out because they hold text.
    text: tuple[str, ...] = ()
    # Whether the format keeps what is no feature apart.
    genes_only: bool = False

    def of(self, rows: np.ndarray) -> _Table:
        """Keep some of the samples."""
        special = {what: column[rows] for what, column in self.special.items()}
        ids = None if self.ids is None else self.ids[rows]
        return replace(self, X=self.X[np.flatnonzero(rows)], ids=ids, special=special)


def _listed(given: Any, argument: str) -> list[str]:
    try:
        names = [given] if isinstance(given, str) else list(given)
    except TypeError:
        names = [given]
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{argument}: {brief(given)} is not a list of names; pass some")
    return names


def _check_special(
    special: dict[str, str], present: Sequence[str], path: Path, kind: str = "column", fix: str = ""
) -> None:
    """Refuse a file that lacks a column, or row, with a meaning, or has it twice."""
    for what, name in special.items():
        count = list(present).count(name)
        if not count:
            raise InputError(absent(path, what, name, present).replace("column", kind) + fix)
        if count > 1:
            raise InputError(f"{path} has two {kind}s named {brief(name)}; rename one")


def _read_rows(
    frame: pd.DataFrame, path: Path, special: dict[str, str], ids: str | None, dropped: list[str]
) -> _Table:
    """Take a table with a row for each sample apart."""
    header = list(frame.columns)
    label = special.get("label")
    turned = label is not None and label not in header and label in map(str, frame.iloc[:, 0])
    fix = "; it has a row of that name: give transpose=True" if turned else ""
    _check_special(special | ({} if ids is None else {"id": ids}), header, path, fix=fix)
    places = {what: header.index(name) for what, name in special.items()}
    apart = set(places.values()) | ({header.index(ids)} if ids is not None else set())
    others = [
        index for index, name in enumerate(header) if index not in apart and name not in dropped
    ]
    named = ids
    X, numeric = numbers_of(frame.iloc[:, others], path)
    features = [others[index] for index in numeric]
    numbers = set(features)
    text = [index for index in others if index not in numbers or header[index] == ""]
    first = None if named is None else header.index(named)
    if first is None and (text or label is None):
        # Labels in another file are matched by the names of the samples, even if these are numbers.
        first = text[0] if text else min(others, default=None)
    chosen = [
        place for place, index in enumerate(features) if index != first and header[index] != ""
    ]
    return _Table(
        X=X[:, chosen],
        names=tuple(header[features[place]] for place in chosen),
        ids=None if first is None else as_labels(frame.iloc[:, first]),
        special={what: as_labels(frame.iloc[:, index]) for what, index in places.items()},
        present=set(header),
        text=tuple(header[index] for index in text if index != first),
    )


def _read_transposed(
    frame: pd.DataFrame, path: Path, special: dict[str, str], ids: str | None, dropped: list[str]
) -> _Table:
    """Take a table with a row for each feature apart, and labels maybe in rows of their own."""
    header = list(frame.columns)
    if ids is not None and ids not in header:
        raise InputError(absent(path, "id", ids, header))
    first = 0 if ids is None else header.index(ids)
    names = [str(name) for name in frame.iloc[:, first]]
    fix = "; it has a column of that name: leave transpose=True out"
    inside = any(name in header for name in special.values())
    _check_special(special, names, path, "row", fix if inside else "")
    others = [index for index, name in enumerate(header) if index != first and name not in dropped]
    samples = [
        index for index in others if header[index] != "" and has_numbers(frame.iloc[:, index])
    ]
    turned = frame.iloc[:, samples].T
    turned.columns = names
    special_columns = {what: as_labels(turned[name]) for what, name in special.items()}
    apart = {*special.values(), *dropped}
    kept = [index for index, name in enumerate(names) if name not in apart]
    X, numeric = numbers_of(turned.iloc[:, kept], path)
    features = [kept[index] for index in numeric]
    words = [names[index] for index in sorted(set(kept) - set(features))]
    return _Table(
        X=X,
        names=tuple(names[index] for index in features),
        ids=np.array([header[index] for index in samples], dtype=object),
        special=special_columns,
        present={*header, *names},
        text=(*words, *(header[index] for index in sorted(set(others) - set(samples)))),
    )


def _read_h5ad(path: Path, special: dict[str, str], layer: str | None, transpose: bool) -> _Table:
    anndata: Any = require("anndata", "anndata")
    check_kind(path, (".h5ad",))
    if transpose:
        raise InputError(f"transpose: {path} has its cells in rows; leave transpose=True out")
    try:
        adata = anndata.read_h5ad(path)
    except Exception as error:
        # h5py and anndata raise errors of many kinds for files that they cannot read.
        raise InputError(f"cannot read {path}: {brief(error, 200)}") from None
    table, names, _ = values_of(adata, layer, use_raw=False)
    _check_special(special, list(map(str, adata.obs.columns)), path)
    return _Table(
        X=table,
        names=tuple(map(str, names)),
        ids=np.array(list(map(str, adata.obs_names)), dtype=object),
        special={what: as_labels(adata.obs[name]) for what, name in special.items()},
        present=set(map(str, names)),
        genes_only=True,
    )


def _features(
    table: _Table, dropped: list[str], kept: list[str], path: Path, apart: Collection[str]
) -> tuple[_Table, tuple[str, ...]]:
    """Leave out what is not wanted, what looks like metadata, and what has no value at all."""
    names = table.names
    places = [index for index, name in enumerate(names) if name not in dropped]
    metadata: tuple[str, ...] = ()
    if not table.genes_only:
        odd = {
            index
            for index in places
            if names[index] not in kept and looks_like_metadata(names[index], table.X[:, index])
        }
        metadata = tuple(names[index] for index in sorted(odd))
        empty = set(np.flatnonzero(np.isnan(table.X).all(axis=0)).tolist()) - odd
        if empty and len(empty | odd) < len(places):
            named = quote_some([names[index] for index in sorted(empty)])
            has = "has" if len(empty) == 1 else "have"
            mention(f"{path}: {named} {has} no value in any sample; left out")
            odd |= empty
        places = [index for index in places if index not in odd]
    if metadata:
        first, look = brief(metadata[0]), "looks" if len(metadata) == 1 else "look"
        mention(
            f"{path}: {quote_some(metadata, 8)} {look} like metadata; left out of the ranking "
            f"(keep={first} ranks it, drop={first} leaves it out without this warning)"
        )
    if not places:
        raise InputError(
            f"{path} has no column of numbers besides {quote_some(sorted(apart))}; there is no "
            "feature"
        )
    if len(places) == len(names):
        return table, metadata
    return replace(
        table, X=table.X[:, places], names=tuple(names[index] for index in places)
    ), metadata


def apply_log1p(X: Any, path: Path) -> Any:
    """Return log(1 + x), sparse where X is sparse; refuses negative numbers.

    Examples
    --------
    >>> apply_log1p(np.array([[0.0, 99.0]]), Path("a.csv")).round(3)
    array([[0.   , 4.605]])
    """
    values = X.data if sparse.issparse(X) else X
    known = values[np.isfinite(values)]
    if known.size and known.min() < 0.0:
        raise InputError(
            f"log1p: {path} has negative numbers, the least {known.min():.6g}, and so is no table "
            "of counts; leave log1p=True out"
        )
    if known.size and known.max() < 25.0 and (known != np.floor(known)).any():
        mention(
            f"log1p: the largest number in {path} is {known.max():.4g}, as if logarithms were "
            "taken before; if they were, leave log1p=True out"
        )
    if sparse.issparse(X):
        return X.log1p()
    return np.log1p(X)

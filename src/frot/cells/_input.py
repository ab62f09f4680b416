"""Cells and their annotation: of an AnnData, plain arrays or files; the cells of each day."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from frot._base.annotated import natural, obs_column
from frot._base.errors import InputError, brief, require
from frot._base.files import check_path
from frot._base.names import first_repeated, quote_some
from frot._base.validate import frame_like


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells as plain arrays, with the attributes of an AnnData, for data that are in none.

    Parameters
    ----------
    X : array, sparse array or DataFrame of shape (N, d)
        Expression, normalised and log-transformed as for a principal component analysis.
    obs : mapping of str to arrays of shape (N,), or DataFrame
        What is known of each cell: its day, its type, its growth.
    var_names : sequence of str, length d, optional
        Genes; by default the names of a DataFrame's columns, or numbers.
    obs_names : sequence of str, length N, optional
        Names of the cells; numbers by default.
    obsm : mapping of str to arrays of shape (N, k)
        Latent coordinates, such as "X_pca".
    layers : mapping of str to tables of shape (N, d)
    uns, obsp : dict
        Where results are written to.

    Examples
    --------
    >>> cells = Cells([[1.0, 0.0], [0.0, 2.0]], {"day": [1, 2]}, ["GATA1", "SPI1"])
    >>> cells.X.shape, cells.obs_names
    ((2, 2), ('0', '1'))
    """

    X: Any
    obs: Any
    var_names: Any = None
    obs_names: Any = None
    obsm: Mapping[str, Any] = field(default_factory=dict)
    layers: Mapping[str, Any] = field(default_factory=dict)
    uns: dict[str, Any] = field(default_factory=dict)
    obsp: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values, columns = frame_like(self.X)
        values: Any = sparse.csr_array(values) if sparse.issparse(values) else np.asarray(values)
        if values.ndim != 2:
            raise InputError(f"X: has shape {values.shape}; give cells in rows, genes in columns")
        N, d = values.shape
        given = columns if self.var_names is None else self.var_names
        genes = tuple(map(str, range(d) if given is None else given))
        names = tuple(map(str, range(N) if self.obs_names is None else self.obs_names))
        if len(genes) != d or len(names) != N:
            raise InputError(
                f"var_names, obs_names: {len(genes)} and {len(names)} names for {d} genes and {N} "
                "cells"
            )
        if not hasattr(self.obs, "__getitem__") or not hasattr(self.obs, "__iter__"):
            raise InputError(f"obs: {brief(self.obs)} is not a table; give a DataFrame or mapping")
        for column in self.obs:
            if len(self.obs[column]) != N:
                raise InputError(
                    f"obs: column {brief(str(column))} has {len(self.obs[column])} entries for "
                    f"{N} cells"
                )
        for name, value in (("X", values), ("var_names", genes), ("obs_names", names)):
            object.__setattr__(self, name, value)


def as_cells(data: Any) -> Any:
    """Return what has an AnnData's attributes: an AnnData as it is, a pair (X, obs) as `Cells`.

    Examples
    --------
    >>> as_cells(([[1.0], [2.0]], {"day": [1, 2]})).var_names
    ('0',)
    """
    if isinstance(data, tuple) and len(data) == 2:
        return Cells(*data)
    missing = [name for name in ("X", "obs", "var_names", "obsm") if not hasattr(data, name)]
    if missing:
        raise InputError(
            f"adata: {brief(data)} has no {missing[0]}; give an AnnData, frot.cells.Cells, or "
            "(X, obs)"
        )
    return data


class Side(NamedTuple):
    """The cells of one day: what the day is called, and their rows in the table."""

    day: Any
    rows: np.ndarray
    names: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


class Days(NamedTuple):
    """All days in order, and the day of each cell as a number in that order; -1 for no day."""

    key: str
    order: tuple[Any, ...]
    codes: np.ndarray
    names: np.ndarray

    def side(self, day: Any, argument: str) -> Side:
        """Return the cells of a day, or say which days there are."""
        # 3, 3.0 and "3" are the same day.
        written = [_written(one) for one in self.order]
        if _written(day) not in written:
            raise InputError(
                f"{argument}: {self.key} has no {brief(day)}; it has {quote_some(written, 20)}"
            )
        at = written.index(_written(day))
        rows = np.flatnonzero(self.codes == at)
        return Side(self.order[at], rows, self.names[rows])


def read_days(data: Any, key: str) -> Days:
    """Return the days of cells: numbers and ordered categories in order, and day2 before day10.

    Examples
    --------
    >>> read_days(Cells(np.zeros((3, 1)), {"day": ["d10", "d2", "d10"]}), "day")[1:3]
    (('d2', 'd10'), array([1, 0, 1]))
    """
    column = obs_column(data, key, "key")
    categories = getattr(getattr(data.obs[key], "cat", None), "categories", None)
    known = np.array([one is not None and one == one for one in column.tolist()], dtype=bool)
    present = {one: None for one in column[known].tolist()}
    numbers = all(isinstance(one, int | float) for one in present)
    if categories is not None and getattr(data.obs[key].cat, "ordered", False):
        order = tuple(one for one in categories.tolist() if one in present)
    else:
        order = tuple(sorted(present, key=None if numbers else lambda one: natural(str(one))))
    if len(order) < 2:
        only = f"all cells are of {brief(order[0])}" if order else "no cell has a value"
        raise InputError(f"key: {brief(key)} needs at least two days; {only}")
    place = {one: at for at, one in enumerate(order)}
    codes = np.array([place.get(one, -1) for one in column.tolist()])
    names = getattr(data, "obs_names", None)
    names = np.arange(len(codes)) if names is None else names
    return Days(key, order, codes, np.asarray(names, dtype=object).astype(str))


def _written(day: Any) -> str:
    number = isinstance(day, float | np.floating) and float(day).is_integer()
    return str(int(day) if number else day)


SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def read_cells(
    path: str | os.PathLike[str],
    obs: str | os.PathLike[str] | None = None,
    *,
    columns: Sequence[str] = (),
) -> Any:
    r"""Read cells from an .h5ad file, or from .csv or .tsv tables.

    A table has a row for each cell, its name first, and a header. Columns of text and those named
    in `columns` are what is known of the cells; all others are genes.

    Parameters
    ----------
    path : path
        An .h5ad file (needs anndata), or a .csv, .tsv or .txt table, also with .gz (needs pandas).
    obs : path, optional
        Another table with what is known of each cell, matched by the cells' names, in any order.
    columns : sequence of str
        Columns of numbers in the table itself that are not genes, such as the day.

    Returns
    -------
    AnnData or Cells

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "cells.csv"
    >>> _ = path.write_text("cell,day,GATA1,type\nc1,3,0.5,stem\nc2,4,1.5,blood\n")
    >>> cells = read_cells(path, columns=["day"])
    >>> cells.var_names, cells.obs["day"].tolist()
    (('GATA1',), [3, 4])
    """
    path = check_path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    if path.suffix.lower() == ".h5ad":
        if obs is not None:
            raise InputError(f"obs: {path} has its own; leave obs out, it is for tables")
        require("anndata", "anndata")
        import anndata  # pyright: ignore[reportMissingImports]

        try:
            with warnings.catch_warnings():
                # They are about how the file was written, which a reader cannot change.
                warnings.simplefilter("ignore")
                return anndata.read_h5ad(path)
        except (OSError, KeyError, ValueError) as error:
            raise InputError(f"cannot read {path}: {error}") from None
    frame = _frame(path)
    numbers = [name for name in frame if frame[name].dtype.kind in "iufb"]
    genes = [name for name in numbers if name not in columns]
    if not genes:
        raise InputError(f"{path} has no column of numbers besides {quote_some(columns)}")
    known = frame.drop(columns=genes)
    if obs is not None:
        known = _matched(_frame(check_path(obs, "obs")), frame.index, path)
    values = frame[genes].to_numpy(dtype=float)
    return Cells(values, known, [str(gene) for gene in genes], [str(one) for one in frame.index])


def _frame(path: Path) -> Any:
    pandas = require("pandas", "tables")
    kinds = [suffix.lower() for suffix in path.suffixes]
    plain = kinds[:-1] if kinds[-1:] == [".gz"] else kinds
    if not plain or plain[-1] not in SEPARATORS:
        raise InputError(f"{path}: is not an .h5ad, .csv, .tsv or .txt file")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        frame = pandas.read_csv(path, sep=SEPARATORS[plain[-1]], index_col=0)
    except (ValueError, UnicodeDecodeError, OSError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if (twice := first_repeated([str(name) for name in frame.index])) is not None:
        raise InputError(
            f"{path}: two cells are called {brief(twice)}; the first column names the cells"
        )
    return frame


def _matched(known: Any, cells: Any, path: Path) -> Any:
    absent = [str(one) for one in np.asarray(cells) if one not in known.index]
    if absent:
        raise InputError(
            f"obs: has no row for {quote_some(absent)} of {path}; its first column names the cells"
        )
    return known.loc[list(cells)]

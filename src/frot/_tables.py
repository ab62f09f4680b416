"""Point clouds on disk, read for the command line."""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frot._errors import InputError, require
from frot._files import check_path
from frot._names import first_repeated, quote_some
from frot._text_tables import parse_text


@dataclass(frozen=True, eq=False)
class Table:
    """A point cloud read from a file: n points (rows) of d features (columns).

    Parameters
    ----------
    values : numpy.ndarray of float64, shape (n, d)
    columns : tuple of str, length d, or None
        Names of the features, where the file has them.
    ids : tuple of str, length n, or None
        Names of the points, where the file has them.
    path : pathlib.Path
        Where it came from.

    Examples
    --------
    >>> import pathlib
    >>> import numpy as np
    >>> from frot._tables import Table
    >>> Table(np.zeros((3, 2)), ("a", "b"), None, pathlib.Path("a.csv")).shape
    (3, 2)
    """

    values: NDArray[np.float64]
    columns: tuple[str, ...] | None
    ids: tuple[str, ...] | None
    path: Path

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        n, d = self.values.shape
        return n, d


def read_table(path: str | os.PathLike[str]) -> Table:
    r"""Read a point cloud from a .csv, .tsv (or either with .gz), .npy, .npz or .parquet file.

    In text, the first row is a header when at least half of its cells are not numbers, and the
    first column names the points when none of its first cells is a number, or when the header
    leaves it without a name. An .npz file holds the array ``X``, or only one matrix; arrays
    ``columns`` (or ``genes``) and ``ids`` name its columns and rows.

    Parameters
    ----------
    path : path

    Returns
    -------
    Table

    Raises
    ------
    InputError
        If the file is missing, of an unknown kind, empty, ragged, or holds a cell that is not a
        number; the message says where.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from frot._tables import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("height,weight\n1.8,75\n1.6,60\n")
    >>> table = read_table(path)
    >>> table.columns, table.values.tolist()
    (('height', 'weight'), [[1.8, 75.0], [1.6, 60.0]])
    """
    path = check_path(path)
    kind = _kind(path)
    if kind not in _READERS:
        known = ", ".join(_READERS)
        raise InputError(f"{path} has an unknown suffix {kind!r}; known are {known}")
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {reason}; give the path of a file")
    table = _READERS[kind](path)
    n, d = table.shape
    if n == 0 or d == 0:
        raise InputError(f"{path} holds {n} rows of {d} features; it needs one of each at least")
    for what, names, count in (("columns", table.columns, d), ("rows", table.ids, n)):
        if names is not None and len(names) != count:
            raise InputError(f"{path} has {len(names)} names for {count} {what}; give one for each")
    return table


def read_pair(
    path_a: str | os.PathLike[str], path_b: str | os.PathLike[str]
) -> tuple[Table, Table]:
    r"""Read two point clouds in the same features, the second's columns put in the first's order.

    Columns are matched by name when both files have names, and by position otherwise.

    Parameters
    ----------
    path_a, path_b : path

    Returns
    -------
    tuple of two Table
        Of the same number of columns.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from frot._tables import read_pair
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("u,v\n1,2\n")
    >>> _ = (folder / "b.csv").write_text("v,u\n4,3\n")
    >>> read_pair(folder / "a.csv", folder / "b.csv")[1].values.tolist()
    [[3.0, 4.0]]
    """
    path_a, path_b = check_path(path_a, "path_a"), check_path(path_b, "path_b")
    first, second = read_table(path_a), read_table(path_b)
    if first.columns is not None and second.columns is not None:
        return first, _reorder(second, first.columns, first.path)
    if first.shape[1] != second.shape[1]:
        raise InputError(
            f"{first.path} has {first.shape[1]} features and {second.path} has {second.shape[1]}; "
            "both need the same features"
        )
    return first, second


def frame_like(x: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Take the values and column names out of a DataFrame; pass anything else through.

    Parameters
    ----------
    x : object
        A DataFrame of pandas, polars or anything that has ``columns`` and ``to_numpy``.

    Returns
    -------
    values : object
        The frame's values as an array, shape (n, d); or `x` itself.
    columns : tuple of str or None

    Examples
    --------
    >>> import pandas
    >>> from frot._tables import frame_like
    >>> frame_like(pandas.DataFrame({"a": [1.0], "b": [2.0]}))
    (array([[1., 2.]]), ('a', 'b'))
    >>> frame_like([[1.0, 2.0]])
    ([[1.0, 2.0]], None)
    """
    # By shape, not by type: asking for the type would import libraries the user may not have.
    if hasattr(x, "columns") and callable(getattr(x, "to_numpy", None)):
        return x.to_numpy(), tuple(str(name) for name in x.columns)
    return x, None


def _reorder(table: Table, columns: tuple[str, ...], owner: Path) -> Table:
    if table.columns is None or table.columns == columns:
        return table
    for path, names in ((owner, columns), (table.path, table.columns)):
        if (twice := first_repeated(names)) is not None:
            raise InputError(
                f"{path} has two columns named {twice!r}, so that {owner} and {table.path} cannot "
                "be matched by name; rename one"
            )
    where = {name: position for position, name in enumerate(table.columns)}
    absent = [name for name in columns if name not in where]
    if absent:
        raise InputError(f"{table.path} lacks {quote_some(absent)}, which {owner} has")
    expected = set(columns)
    extra = [name for name in table.columns if name not in expected]
    if extra:
        raise InputError(f"{owner} lacks {quote_some(extra)}, which {table.path} has")
    order = [where[name] for name in columns]
    return Table(table.values[:, order], columns, table.ids, table.path)


# One reader for each kind of file


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def _read_text(path: Path) -> Table:
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    columns, ids, values = parse_text(text, "\t" if ".tsv" in _kind(path) else ",", str(path))
    return Table(values, columns, ids, path)


def _read_npy(path: Path) -> Table:
    with _numpy_errors(path):
        return Table(_as_matrix(np.load(path, allow_pickle=False), str(path)), None, None, path)


def _read_npz(path: Path) -> Table:
    with _numpy_errors(path), np.load(path, allow_pickle=False) as archive:
        named = {"columns", "genes", "ids"}
        others = [name for name in archive.files if name not in named]
        if "X" not in others and len(others) != 1:
            raise InputError(
                f"{path} holds the arrays {quote_some(others)}; name the point cloud 'X'"
            )
        key = "X" if "X" in others else others[0]
        values = _as_matrix(archive[key], f"array {key!r} of {path}")
        columns = next((_names(archive[k]) for k in ("columns", "genes") if k in archive), None)
        ids = _names(archive["ids"]) if "ids" in archive else None
    return Table(values, columns, ids, path)


@contextmanager
def _numpy_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        if "allow_pickle" in str(error) or "Object arrays" in str(error):
            raise InputError(
                f"{path} is not a file of plain numbers; Python objects are not read from files: "
                "save a numeric array"
            ) from None
        raise InputError(f"cannot read {path}: {error}") from None


def _as_matrix(array: NDArray[Any], what: str) -> NDArray[np.float64]:
    if array.ndim != 2:
        fix = "; reshape(-1, 1) makes points of one feature" if array.ndim == 1 else ""
        raise InputError(f"{what} has shape {array.shape}; it needs (points, features){fix}")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{what} holds {array.dtype}; it needs real numbers")
    return np.ascontiguousarray(array, dtype=np.float64)


def _names(array: NDArray[Any]) -> tuple[str, ...]:
    return tuple(str(name) for name in array.ravel().tolist())


def _read_parquet(path: Path) -> Table:
    pandas, arrow = require("pandas", "tables"), require("pyarrow", "tables")
    try:
        frame = pandas.read_parquet(path)
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    ids = None if isinstance(frame.index, pandas.RangeIndex) else _names(frame.index.to_numpy())
    is_number = pandas.api.types.is_numeric_dtype
    if frame.shape[1] > 1 and ids is None and not is_number(frame.dtypes.iloc[0]):
        ids = _names(frame.iloc[:, 0].to_numpy())
        frame = frame.iloc[:, 1:]
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if not is_number(dtype):
            raise InputError(f"{path}, column {name!r}: {dtype} is not a kind of number; remove it")
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return Table(values, tuple(str(name) for name in frame.columns), ids, path)


_READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": _read_text,
    ".tsv": _read_text,
    ".csv.gz": _read_text,
    ".tsv.gz": _read_text,
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_parquet,
}

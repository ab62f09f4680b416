"""Point clouds in files: text with any delimiter, Excel, Parquet and NumPy files.

Whether the first row is a header, and the first column names the points, is told from the numbers.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frot._base.contract import LARGEST_INTEGER, refuse_large_integers
from frot._base.dialect import dialect_of, is_number, with_point
from frot._base.errors import DataWarning, InputError, brief, require, warn_caller
from frot._base.files import check_path
from frot._base.names import first_repeated, quote_some
from frot._base.text import Row, check_kind, read_rows

TEXT = tuple(f"{kind}{gz}" for gz in ("", ".gz") for kind in (".csv", ".tsv", ".txt"))
KINDS = (*TEXT, ".xlsx", ".xlsm", ".npy", ".npz", ".parquet")


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
    >>> from frot import Table
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
    r"""Read a point cloud from a text, Excel, NumPy or Parquet file.

    All but NumPy's files are read by pandas. Text is .csv, .tsv or .txt, also with .gz; commas,
    tabs, semicolons and, in .txt files, spaces between cells are told apart, and decimal commas
    recognised. The first row is a header when at least half of its cells are not numbers, and the
    first column names the points when none of its first cells is a number, or when the header
    leaves it without a name. Of an .xlsx file the first sheet is read; it needs openpyxl. An .npz
    file holds the array ``X``, or only one matrix; arrays ``columns`` (or ``genes``) and ``ids``
    name its columns and rows.

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
        number, or a whole number beyond 2^53; the message says where.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from frot import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("height,weight\n1.8,75\n1.6,60\n")
    >>> table = read_table(path)
    >>> table.columns, table.values.tolist()
    (('height', 'weight'), [[1.8, 75.0], [1.6, 60.0]])
    """
    path = check_path(path)
    kind = check_kind(path, KINDS)
    if kind == ".npy":
        with numpy_errors(path):
            array = np.load(path, allow_pickle=False)
        table = Table(_as_matrix(array, str(path)), None, None, path)
    elif kind == ".npz":
        table = _read_npz(path)
    elif kind == ".parquet":
        table = _read_parquet(path)
    else:
        table = _read_text(path) if kind in TEXT else _read_sheet(path)
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
    >>> from frot import read_pair
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


def _reorder(table: Table, columns: tuple[str, ...], owner: Path) -> Table:
    if table.columns is None or table.columns == columns:
        return table
    for path, names in ((owner, columns), (table.path, table.columns)):
        if (twice := first_repeated(names)) is not None:
            raise InputError(
                f"{path} has two columns named {brief(twice)}, so that {owner} and {table.path} "
                "cannot be matched by name; rename one"
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


def _read_text(path: Path) -> Table:
    """Read points from text, with or without a header; pandas reads all but the first rows."""
    pandas: Any = require("pandas", "tables")
    delimiter, decimal = dialect_of(path)
    head = list(islice(read_rows(path, delimiter), 20))
    has_header, has_ids = _layout([list(map(with_point, row)) for _, row in head], path)
    names = head[0][1] if has_header else None
    if names is not None and any("\n" in name or "\r" in name for name in names):
        raise InputError(f"{path}: a column's name has a line break; write it in one line")
    body = islice(read_rows(path, delimiter), int(has_header), None)
    try:
        frame = pandas.read_csv(
            path,
            sep=r"\s+" if delimiter == " " else delimiter,
            decimal=decimal,
            header=None,
            skiprows=head[0][0] if has_header else 0,
            dtype={0: object} if has_ids else None,
            keep_default_na=False,
            na_values=[""],
            encoding="utf-8-sig",
            low_memory=False,
        )
    except (pandas.errors.ParserError, OSError, EOFError) as error:
        _check_cells(body, names, has_ids, path)
        raise InputError(f"cannot read {path}: {brief(error, 200)}") from None
    columns = [pandas.to_numeric(frame[name], errors="coerce") for name in frame.columns[has_ids:]]
    values = np.column_stack([column.to_numpy(float) for column in columns])
    # What is no number, is missing, or was rounded perhaps, is told from the text.
    if not (np.abs(values) < LARGEST_INTEGER).all() or len(names or ()) not in (0, frame.shape[1]):
        _check_cells(body, names, has_ids, path)
    ids = [str(name).strip() for name in frame[0]] if has_ids else None
    return _table(values, names, ids, path)


def first_sheet(path: Path) -> Any:
    """Return the cells of an Excel file's first sheet as a DataFrame, without empty lines."""
    pandas: Any = require("pandas", "tables")
    require("openpyxl", "tables")
    try:
        with pandas.ExcelFile(path, engine="openpyxl") as book:
            sheets = [str(name) for name in book.sheet_names]
            frame = pandas.read_excel(book, header=None, dtype=object)
    except Exception as error:
        # zipfile, XML parsers and openpyxl raise errors of many kinds for what is no workbook.
        raise InputError(f"cannot read {path}: {brief(error, 200)}") from None
    if len(sheets) > 1:
        warn_caller(
            f"{path} has {len(sheets)} sheets; the first, {brief(sheets[0])}, is read",
            category=DataWarning,
        )
    return frame.dropna(axis=0, how="all").dropna(axis=1, how="all")


def _read_sheet(path: Path) -> Table:
    """Read points from the first sheet of an Excel file; it may have empty rows and columns."""
    frame = first_sheet(path).fillna("")
    rows = [(line + 1, list(map(str, row))) for line, *row in frame.itertuples()]
    has_header, has_ids = _layout([row for _, row in rows], path)
    names, body = rows[0][1] if has_header else None, rows[has_header:]
    _check_cells(body, names, has_ids, path)
    values = np.array([row[has_ids:] for _, row in body], dtype=float)
    return _table(values, names, [row[0].strip() for _, row in body] if has_ids else None, path)


def _table(
    values: NDArray[np.float64], names: list[str] | None, ids: list[str] | None, path: Path
) -> Table:
    """Return a table; R leaves the cell above the names of rows out."""
    columns = None if names is None else tuple(name.strip() for name in names)
    if columns is not None and ids is not None and len(columns) > values.shape[1]:
        columns = columns[1:]
    return Table(values, columns, None if ids is None else tuple(ids), path)


def _check_cells(rows: Iterable[Row], names: list[str] | None, has_ids: bool, path: Path) -> None:
    """Refuse the first row of another width, or the first cell that is no number."""
    width = None if names is None else len(names)
    for count, (line, row) in enumerate(rows):
        if width is None or (count == 0 and has_ids and len(row) == width + 1):
            width = len(row)
        if len(row) != width:
            raise InputError(
                f"{path}, line {line}: {len(row)} cells where there should be {width}; "
                "every row needs as many cells as the first"
            )
        for column, cell in enumerate(map(with_point, row[has_ids:]), start=int(has_ids)):
            if is_number(cell) and float(cell) == float(cell):
                digits = cell.strip().lstrip("+-")
                if not digits.isdecimal() or int(digits) <= LARGEST_INTEGER:
                    continue
                what = f"{brief(cell)} is a whole number beyond 2^53, which a float does not hold"
            else:
                what = f"{brief(cell)} is not a number" if cell.strip() else "the cell is empty"
            shift = width - len(names or row)
            name = str(column + 1) if names is None else brief(names[column - shift].strip())
            raise InputError(f"{path}, line {line}, column {name}: {what}; write a number there")


def _layout(rows: list[list[str]], path: Path) -> tuple[bool, bool]:
    """Whether the first row is a header, and whether the first column names the points."""
    if not rows:
        raise InputError(f"{path} is empty; it needs a row for each point")
    first, rest = rows[0], rows[1:]
    if rest and len(first) > 1 and [cell.strip() for cell in first] == _numbered(len(first)):
        return True, False  # columns without names, as pandas numbers them
    if rest and first[0].strip() == "" and len(first) > 1:
        # pandas leaves the cell above the row names empty; unnamed columns are 0, 1, 2, …
        names = first[1:]
        if names == _numbered(len(names)) or _mostly_text(names):
            return True, True
    if rest and len(first) == len(rest[0]) - 1 and _mostly_text(first):
        return True, True  # R leaves that cell out
    body = rest or [first]
    has_ids = all(_is_word(row[0]) for row in body) and any(map(is_number, body[0][1:]))
    has_header = _mostly_text(first[1:] if has_ids else first)
    if has_header and not rest:
        raise InputError(f"{path} holds a header and no points; it needs a row for each point")
    return has_header, has_ids


def _numbered(count: int) -> list[str]:
    return [str(column) for column in range(count)]


def _is_word(cell: str) -> bool:
    return cell.strip() != "" and not is_number(cell)


def _mostly_text(cells: list[str]) -> bool:
    # Not "any": a typing error in the first row of numbers must not turn it into a header.
    return 2 * sum(map(_is_word, cells)) >= max(len(cells), 1)


def _read_parquet(path: Path) -> Table:
    """Read a frame; an index that is no mere count, or a first column of text, names the points."""
    pandas, arrow = require("pandas", "tables"), require("pyarrow", "tables")
    try:
        frame = pandas.read_parquet(path)
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    ids = None if isinstance(frame.index, pandas.RangeIndex) else frame.index
    is_text = [dtype.kind not in "biuf" for dtype in frame.dtypes]
    if ids is None and is_text[:1] == [True] and frame.shape[1] > 1:
        ids, frame, is_text = frame.iloc[:, 0], frame.iloc[:, 1:], is_text[1:]
    for name, text in zip(frame.columns, is_text, strict=True):
        if text:
            raise InputError(f"{path}, column {brief(str(name))}: holds no numbers; remove it")
        refuse_large_integers(frame[name].to_numpy(), f"{path}, column {brief(str(name))}")
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isnan(values).any():
        row, column = np.argwhere(np.isnan(values))[0].tolist()
        name = brief(str(frame.columns[column]))
        raise InputError(f"{path}, line {row + 1}, column {name}: the cell is empty")
    names = None if ids is None else tuple(str(name) for name in ids)
    return Table(values, tuple(str(name) for name in frame.columns), names, path)


def _read_npz(path: Path) -> Table:
    with numpy_errors(path), np.load(path, allow_pickle=False) as archive:
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
def numpy_errors(path: Path) -> Iterator[None]:
    """Turn what NumPy raises for a damaged file, or for one of Python objects, into a sentence."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, OSError, EOFError, MemoryError, zipfile.BadZipFile) as error:
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
    refuse_large_integers(array, what)
    return np.ascontiguousarray(array, dtype=np.float64)


def _names(array: NDArray[Any]) -> tuple[str, ...]:
    return tuple(str(name) for name in array.ravel().tolist())

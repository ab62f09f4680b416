"""The reader of tables: text, Excel, NumPy and Parquet files, and data frames.

Text comes with any delimiter, decimal commas, and as GCT files.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frot._base.errors import DataWarning, InputError, brief, require, warn_caller
from frot._base.files import check_path
from frot._base.names import first_repeated, quote_some

# What `read_rows` reads.
TEXT = tuple(f"{kind}{gz}" for gz in ("", ".gz") for kind in (".csv", ".tsv", ".txt", ".gct"))
SHEETS = (".xlsx", ".xlsm")

Row = tuple[int, list[str]]
Names = tuple[str, ...] | None
Parsed = tuple[Names, Names, NDArray[np.float64]]

# Rows that are looked at to tell whether the first column names the points.
_SAMPLE = 20


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

    Text is .csv, .tsv or .txt, also with .gz; commas, tabs, semicolons and, in .txt files, spaces
    between cells are told apart, and decimal commas recognised. The first row is a header when at
    least half of its cells are not numbers, and the first column names the points when none of
    its first cells is a number, or when the header leaves it without a name. Of an .xlsx file the
    first sheet is read; it needs openpyxl. An .npz file holds the array ``X``, or only one matrix;
    arrays ``columns`` (or ``genes``) and ``ids`` name its columns and rows.

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
    >>> from frot import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("height,weight\n1.8,75\n1.6,60\n")
    >>> table = read_table(path)
    >>> table.columns, table.values.tolist()
    (('height', 'weight'), [[1.8, 75.0], [1.6, 60.0]])
    """
    path = check_path(path)
    kind = kind_of(path)
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


def make_table(columns: dict[str, Any]) -> Any:
    """Return the columns as a DataFrame, or as they are where pandas is not installed."""
    if importlib.util.find_spec("pandas") is None:
        return columns
    import pandas as pd

    return pd.DataFrame(columns)


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


# One reader for each kind of file


def read_frame(path: Path) -> Any:
    """Return the pandas frame of a .parquet file."""
    pandas, arrow = require("pandas", "tables"), require("pyarrow", "tables")
    try:
        return pandas.read_parquet(path)
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _read_delimited(path: Path) -> Table:
    text = read_text(path)
    delimiter = delimiter_of(path, text)
    if has_decimal_commas(text, delimiter, path):
        return _read_sheet(path)
    columns, ids, values = parse_text(text, delimiter, str(path))
    return Table(values, columns, ids, path)


def _read_sheet(path: Path) -> Table:
    rows = list(read_rows(path))
    layout = _layout([row for _, row in rows[:_SAMPLE]], path)
    columns, ids, values = _parse_slow(rows, *layout, str(path))
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
    frame, pandas = read_frame(path), require("pandas", "tables")
    ids = None if isinstance(frame.index, pandas.RangeIndex) else _names(frame.index.to_numpy())
    is_number = pandas.api.types.is_numeric_dtype
    if frame.shape[1] > 1 and ids is None and not is_number(frame.dtypes.iloc[0]):
        ids = _names(frame.iloc[:, 0].to_numpy())
        frame = frame.iloc[:, 1:]
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if not is_number(dtype):
            raise InputError(
                f"{path}, column {brief(name)}: {dtype} is not a kind of number; remove it"
            )
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return Table(values, tuple(str(name) for name in frame.columns), ids, path)


_READERS: dict[str, Callable[[Path], Table]] = {
    **{kind: _read_delimited for kind in TEXT if not kind.startswith(".gct")},
    **{kind: _read_sheet for kind in SHEETS},
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_parquet,
}


def parse_text(text: str, delimiter: str, source: str) -> Parsed:
    r"""Read delimited text.

    Returns the header, if the first row is one, the first column, if it names the rows, and the
    values (n, d). `source` is what messages call the text.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    rows = (row for row in split_lines(lines, delimiter) if row)
    head = list(islice(rows, _SAMPLE))
    has_header, has_ids = _layout(head, source)
    try:
        return _parse_fast(lines, delimiter, has_header, has_ids)
    except ValueError:
        # The slow way reads quoted cells too, and says where a cell cannot be read.
        rows = list(read_cells(text, delimiter, source))
        return _parse_slow(rows, has_header, has_ids, source)


def _layout(head: list[list[str]], source: str | Path) -> tuple[bool, bool]:
    """Whether the first row is a header, and whether the first column names the points."""
    if not head:
        raise InputError(f"{source} is empty; it needs a row for each point")
    first, rest = head[0], head[1:]
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
    has_ids = all(_is_text(row[0]) for row in body) and any(map(is_number, body[0][1:]))
    has_header = _mostly_text(first[1:] if has_ids else first)
    if has_header and not rest:
        raise InputError(f"{source} holds a header and no points; it needs a row for each point")
    return has_header, has_ids


def _parse_fast(lines: list[str], delimiter: str, has_header: bool, has_ids: bool) -> Parsed:
    lines = [line for line in lines if line]
    header = next(split_lines(lines[:1], delimiter)) if has_header else None
    body = lines[1:] if has_header else lines
    if any('"' in line for line in body):
        raise ValueError("quoted cells need the csv module")
    ids = None
    if has_ids:
        parts = [line.partition(delimiter) for line in body]
        ids = tuple(name.strip() for name, _, _ in parts)
        body = [rest for _, _, rest in parts]
        if not all(body):
            raise ValueError("a row without numbers would be skipped")
    values = np.loadtxt(body, delimiter=delimiter, comments=None, ndmin=2, dtype=np.float64)
    if values.shape[0] != len(body):
        raise ValueError("a blank row was skipped")
    return _column_names(header, values.shape[1], has_ids), ids, values


def _parse_slow(
    rows: list[tuple[int, list[str]]], has_header: bool, has_ids: bool, source: str
) -> Parsed:
    header = rows.pop(0)[1] if has_header else None
    width = len(rows[0][1]) if header is None else len(header)
    if header is not None and has_ids and len(rows[0][1]) == width + 1:
        width += 1
    names = _column_names(header, width - has_ids, has_ids)
    values = np.empty((len(rows), width - has_ids))
    for position, (line, row) in enumerate(rows):
        if len(row) != width:
            raise InputError(
                f"{source}, line {line}: {len(row)} cells where there should be {width}; "
                "every row needs as many cells as the first"
            )
        for column, cell in enumerate(row[has_ids:]):
            try:
                values[position, column] = float(cell)
            except ValueError:
                name = column + has_ids + 1 if names is None else brief(names[column])
                what = f"{brief(cell)} is not a number" if cell.strip() else "the cell is empty"
                raise InputError(
                    f"{source}, line {line}, column {name}: {what}; write a number there"
                ) from None
    ids = tuple(row[0].strip() for _, row in rows) if has_ids else None
    return names, ids, values


def _column_names(header: list[str] | None, d: int, has_ids: bool) -> Names:
    if header is None:
        return None
    # The header may or may not have a cell above the names of the points.
    if not d <= len(header) <= d + has_ids:
        raise ValueError("the header does not fit the rows")
    return tuple(name.strip() for name in header[len(header) - d :])


def _numbered(count: int) -> list[str]:
    return [str(column) for column in range(count)]


def _is_text(cell: str) -> bool:
    return cell.strip() != "" and not is_number(cell)


def _mostly_text(cells: list[str]) -> bool:
    # Not "any": a typing error in the first row of numbers must not turn it into a header.
    return 2 * sum(map(_is_text, cells)) >= max(len(cells), 1)


# The cells of text files and of Excel sheets, as they come.


def kind_of(path: Path) -> str:
    """Return the suffix that says what a file is, with that of what is compressed before ``.gz``.

    Examples
    --------
    >>> kind_of(Path("a.b.CSV.gz"))
    '.csv.gz'
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def read_text(path: Path, errors: str = "strict") -> str:
    """Read a UTF-8 text file, with or without a byte-order mark, compressed if it ends in .gz."""
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            return file.read().decode("utf-8-sig", errors)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {why}") from None


def is_number(cell: str) -> bool:
    """Say whether a cell holds a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def split_lines(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Split lines into cells; a space stands for any run of spaces."""
    if delimiter != " ":
        return csv.reader(lines, delimiter=delimiter)
    return csv.reader((line.strip() for line in lines), delimiter=" ", skipinitialspace=True)


def read_cells(text: str, delimiter: str, source: str | Path) -> Iterator[Row]:
    r"""Yield the rows of delimited text with the numbers of their lines, empty lines left out.

    Examples
    --------
    >>> list(read_cells('a,"b, c"\n\n1,2\n', ",", "a.csv"))
    [(1, ['a', 'b, c']), (3, ['1', '2'])]
    """
    reader: Any = split_lines(io.StringIO(text, newline=""), delimiter)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"cannot read {source}, line {reader.line_num}: {error}") from None


def read_rows(path: Path) -> Iterator[Row]:
    r"""Yield the rows of a text file or of an Excel sheet, numbers with points, line by line.

    The preamble of a .gct file is left out, and so are its columns that describe rows.
    """
    kind = kind_of(path)
    if kind in SHEETS:
        return _sheet_rows(path)
    text = read_text(path)
    delimiter = delimiter_of(path, text)
    rows = read_cells(text, delimiter, path)
    if has_decimal_commas(text, delimiter, path):
        rows = ((line, with_points(row)) for line, row in rows)
    return _without_preamble(rows, path) if kind.startswith(".gct") else rows


# Rows and cells of each that are looked at to tell what is between them.
ROWS, CELLS = 6, 100
USUAL = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".gct": "\t"}


def delimiter_of(path: Path, text: str = "") -> str:
    r"""Return what stands between cells: what the suffix says unless the text says otherwise.

    It is what splits all of the first rows into the same number of cells, two at least, most of
    them numbers; " ", which is looked for in .txt files only, stands for any run of spaces.

    Examples
    --------
    >>> delimiter_of(Path("a.csv"), "u;v\n1,5;2,5\n"), delimiter_of(Path("a.tsv"))
    (';', '\t')
    """
    kind = kind_of(path).removesuffix(".gz")
    usual = USUAL.get(kind, ",")
    lines = [line for line in islice(io.StringIO(text), 50) if line.strip()][:ROWS]
    if not lines or kind == ".gct":
        return usual
    candidates = [usual, *(one for one in ",\t;" if one != usual), *" " * (kind == ".txt")]
    best = max(candidates, key=lambda one: _fits(lines, one))
    return best if _fits(lines, best)[0] >= 0.0 else usual


def _fits(lines: list[str], delimiter: str) -> tuple[float, int]:
    """How well a delimiter splits lines: the share of numbers, and the cells of the first row."""
    try:
        first, *others = split_lines(lines, delimiter)
    except csv.Error:
        return -1.0, 0
    # R leaves the cell above the names of rows out.
    width = len(others[0]) if others and len(others[0]) == len(first) + 1 else len(first)
    if width < 2 or any(len(row) != width for row in others):
        return -1.0, 0
    cells = [cell for row in others for cell in row[:CELLS]]
    if delimiter != ",":
        cells = with_points(cells)
    return sum(map(is_number, cells)) / max(len(cells), 1), 0 if delimiter == " " else len(first)


_COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")
# A cell in the text of a file: between delimiters, maybe quoted.
_CELL = r'(?:^|[;\t ])"?[+-]?\d*{}\d+(?:[eE][+-]?\d+)?(?="?(?:$|[;\t\r ]))'
_COMMA_CELL = re.compile(_CELL.format(","), re.MULTILINE)
_POINT_CELL = re.compile(_CELL.format(r"\."), re.MULTILINE)
# Not in groups of three digits: no separator of thousands.
_DECIMAL = re.compile(r"\d,(?:\d{1,2}(?!\d)|\d{4})|(?<!\d)0?,\d")


def with_points(cells: list[str]) -> list[str]:
    """Return cells with decimal commas as points, where there are some."""
    return [
        cell.replace(",", ".") if "," in cell and _COMMA.fullmatch(cell) else cell for cell in cells
    ]


def has_decimal_commas(text: str, delimiter: str, source: str | Path) -> bool:
    r"""Whether numbers have commas for points; refuses what could be read in two ways.

    Examples
    --------
    >>> has_decimal_commas("u;v\n1,5;2\n", ";", "a.csv")
    True
    >>> has_decimal_commas("u;v\n1,500;2\n", ";", "a.csv")
    Traceback (most recent call last):
    ...
    frot.InputError: a.csv: '1,500' may be 1.5 or 1500; write numbers with points, and ...
    """
    if delimiter == "," or "," not in text:
        return False
    found = _COMMA_CELL.search(text)
    if found is None:
        return False
    comma = _bare(found)
    if (point := _POINT_CELL.search(text)) is not None:
        raise InputError(
            f"{source} has numbers such as {brief(comma)} and such as {brief(_bare(point))}; write "
            "all of them with points"
        )
    if not any(_DECIMAL.search(one.group()) for one in _COMMA_CELL.finditer(text)):
        whole = comma.replace(",", "")
        raise InputError(
            f"{source}: {brief(comma)} may be {float(comma.replace(',', '.')):g} or {whole}; write "
            "numbers with points, and nothing between thousands"
        )
    return True


def _bare(found: re.Match[str]) -> str:
    return found.group().strip(';\t "')


def _without_preamble(rows: Iterator[Row], path: Path) -> Iterator[Row]:
    """Yield the table of a .gct file: after its version and its sizes, less the descriptions."""
    version, sizes = next(rows, (1, [""]))[1], next(rows, (2, []))[1]
    sizes = [int(cell) for cell in sizes if cell.strip().isdigit()]
    if not version[0].startswith("#1.") or len(sizes) not in (2, 4):
        raise InputError(f"{path} is no .gct file: it must start with #1.2 and a line of its sizes")
    described = sizes[2] if len(sizes) == 4 else 1
    for line, row in rows:
        yield line, [row[0], *row[1 + described :]]


def _sheet_rows(path: Path) -> Iterator[Row]:
    openpyxl = require("openpyxl", "tables")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:
        # zipfile, XML parsers and openpyxl raise errors of many kinds for what is no workbook.
        raise InputError(f"cannot read {path}: {brief(error, 200)}") from None
    try:
        sheet, *others = book.worksheets
        if others:
            warn_caller(
                f"{path} has {len(others) + 1} sheets; the first, {brief(sheet.title)}, is read",
                category=DataWarning,
            )
        rows = enumerate(sheet.iter_rows(values_only=True), start=1)
        filled = ((line, row) for line, row in rows if any(cell is not None for cell in row))
        first = next(filled, None)
        if first is None:
            return
        # Sheets have empty columns at the right, and some rows end early.
        width = max(place for place, cell in enumerate(first[1], start=1) if cell is not None)
        for line, row in chain([first], filled):
            cells = ["" if cell is None else str(cell) for cell in row]
            extra = [cell for cell in cells[width:] if cell]
            yield line, cells[:width] + [""] * (width - len(cells)) + extra
    finally:
        book.close()

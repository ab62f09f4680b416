"""The cells of text files, Excel sheets and Parquet files, read by pandas: numbers and text."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frot._base.contract import LARGEST_INTEGER
from frot._base.dialect import dialect_of, is_number, with_point
from frot._base.errors import DataWarning, InputError, brief, require, warn_caller
from frot._base.text import Row, kind_of, read_rows

if TYPE_CHECKING:
    import pandas

TEXT = tuple(f"{kind}{gz}" for gz in ("", ".gz") for kind in (".csv", ".tsv", ".txt", ".gct"))
SHEETS = (".xlsx", ".xlsm")
# Cells that stand for a missing value.
MISSING = frozenset({"", "na", "nan", "null", "none", "n/a", "<na>", "#n/a"})


def check_file(path: Path, known: Sequence[str]) -> None:
    """Refuse a file that is not there, or of a kind that cannot be read."""
    kind = kind_of(path)
    if kind not in known:
        raise InputError(
            f"{path} has an unknown suffix {brief(kind)}; known are {', '.join(known)}"
        )
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {reason}; give the path of a file")


@dataclass(frozen=True, eq=False)
class Cells:
    r"""The cells of a file, by column.

    Parameters
    ----------
    path : pathlib.Path
    names : list of str, or of int where the file has no header
    values : array of shape (n, d)
        Numbers, NaN where a cell is empty, and throughout a column in `words`.
    words : dict of int to list
        The cells of columns that hold something else than numbers, text as it is in the file.
    rows : sequence of int, length n
        Which row of a text file, or of a sheet, each row is.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("gene;s1;s2\nTP53;1,5;2\nMYC;;4\n")
    >>> cells = read_cells(path)
    >>> cells.names, cells.text(0).tolist(), cells.numbers([1, 2]).tolist()
    (['gene', 's1', 's2'], ['TP53', 'MYC'], [[1.5, 2.0], [nan, 4.0]])
    """

    path: Path
    names: list[Any]
    values: NDArray[np.float64]
    words: dict[int, list[Any]]
    rows: Sequence[int]

    def text(self, place: int) -> NDArray[np.str_]:
        """Return a column as text."""
        return as_text(self.words.get(place, self.values[:, place]))

    def holds_text(self, place: int) -> bool:
        """Whether some cells of a column are filled, and none of them with a number."""
        return place in self.words and holds_text(self.words[place])

    def numbers(self, places: Sequence[int], hint: str = "") -> NDArray[np.float64]:
        """Return columns as numbers, with NaN for missing values.

        Refuses the first cell that is no number, and whole numbers that a double does not hold.
        `hint` ends the message, with {} for the name of the column.
        """
        values = self.values[:, places]
        for column, place in enumerate(places):
            for row, cell in enumerate(self.words.get(place, ())):
                if fault := _fault(cell):
                    name, where = self.locate(row, place)
                    raise InputError(f"{where}: {fault}; write a number there{hint.format(name)}")
                if not is_missing(cell):
                    values[row, column] = float(cell)
        return values

    def keep(self, rows: Sequence[int]) -> Cells:
        """Return some of the rows."""
        words = {place: [cells[row] for row in rows] for place, cells in self.words.items()}
        lines = [self.rows[row] for row in rows]
        return replace(self, values=self.values[rows], words=words, rows=lines)

    def row(self, row: int) -> list[Any]:
        """Return the cells of a row."""
        cells = self.values[row].tolist()
        for place, column in self.words.items():
            cells[place] = column[row]
        return cells

    def locate(self, row: int, place: int) -> tuple[str, str]:
        """Return the name of a cell's column, and where the cell is by its line and that name."""
        line = self.rows[row]
        if kind_of(self.path) in TEXT:
            delimiter, _ = dialect_of(self.path)
            line, _ = next(islice(read_rows(self.path, delimiter), line, None))
        name = self.names[place]
        name = brief(name) if isinstance(name, str) else str(name + 1)
        return name, f"{self.path}, line {line}, column {name}"


def first_rows(path: Path, count: int) -> list[list[str]]:
    """Return the first rows of a text file or a sheet as text, numbers with points."""
    if kind_of(path) in SHEETS:
        return [row for _, row in _sheet_rows(path)[0][:count]]
    delimiter, decimal = dialect_of(path)
    rows = [row for _, row in islice(read_rows(path, delimiter), count)]
    return [list(map(with_point, row)) for row in rows] if decimal == "," else rows


def read_cells(path: Path, text: Collection[str] | None = (), has_header: bool = True) -> Cells:
    """Read a text file, the first sheet of an Excel file, or a Parquet file.

    The columns named in `text` are kept as text, where None is all, and so is the first column of a
    text file. The preamble of a .gct file is left out, and so are its columns that describe rows.
    """
    if kind_of(path) in SHEETS:
        return _read_sheet(path, has_header)
    if kind_of(path) == ".parquet":
        return _read_parquet(path, text)
    return _read_text(path, text, has_header)


def _read_text(path: Path, text: Collection[str] | None, has_header: bool) -> Cells:
    pandas: Any = require("pandas", "tables")
    delimiter, decimal = dialect_of(path)
    rows = read_rows(path, delimiter)
    is_gct = kind_of(path).startswith(".gct")
    described = _skip_preamble(rows, path) if is_gct else 0
    skipped, names = next(rows, (0, [])) if has_header else (0, [])
    if any("\n" in name or "\r" in name for name in names):
        raise InputError(f"{path}: a column's name has a line break; write it in one line")
    width = len(next(rows, (0, names))[1])
    if has_header and len(names) == width - 1:
        names = ["", *names]  # R leaves the cell above the row names out
    columns: list[Any] = [name.strip() for name in names] if has_header else [*range(width)]
    kept = [place for place, name in enumerate(columns) if text is None or name in text]
    options = _options_of_pandas(path, delimiter, decimal) | {"skiprows": skipped}
    # Rows before the first of the table.
    before = has_header + 2 * is_gct
    try:
        frame = pandas.read_csv(path, dtype=dict.fromkeys([0, *kept], object), **options)
        values, words = _split(frame)
        rounded = np.flatnonzero((np.abs(values) >= LARGEST_INTEGER).any(axis=0)).tolist()
        if rounded:
            # Whether they are whole numbers is told from their digits.
            frame = pandas.read_csv(path, dtype=object, usecols=rounded, **options)
            words |= {place: frame[place].tolist() for place in rounded}
    except pandas.errors.EmptyDataError:
        values, words = np.empty((0, len(columns))), {}
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except (pandas.errors.ParserError, OSError, EOFError, zlib.error) as error:
        _check_widths(path, delimiter, len(columns), before)
        raise InputError(f"cannot read {path}: {brief(error, 200)}") from None
    # pandas fills up rows that are too short with NaN.
    last: Iterable[Any] = words.get(len(columns) - 1, values[:, -1:].ravel())
    if values.shape[1] != len(columns) or any(cell != cell for cell in last):
        _check_widths(path, delimiter, len(columns), before)
    if decimal == ",":
        words = {place: [_decimal_point(cell, path) for cell in words[place]] for place in words}
    if described:
        left = [0, *range(1 + described, len(columns))]
        columns, values = [columns[place] for place in left], values[:, left]
        words = {left.index(place): cells for place, cells in words.items() if place in left}
    return Cells(path, columns, values, words, range(before, before + len(values)))


def _options_of_pandas(path: Path, delimiter: str, decimal: str) -> dict[str, Any]:
    """Return how pandas is to read a file: no header, empty cells alone missing, exact decimals."""
    options = {
        "sep": r"\s+" if delimiter == " " else delimiter,
        "decimal": decimal,
        "header": None,
        "keep_default_na": False,
        "na_values": [""],
        "encoding": "utf-8-sig",
        "compression": "gzip" if path.suffix.lower() == ".gz" else None,
        "low_memory": False,
    }
    if tuple(map(int, require("pandas", "tables").__version__.split(".")[:2])) < (3, 1):
        # Later ones read every decimal exactly.
        options["float_precision"] = "round_trip"
    return options


def _read_sheet(path: Path, has_header: bool) -> Cells:
    rows, sheets = _sheet_rows(path)
    if len(sheets) > 1:
        warn_caller(
            f"{path} has {len(sheets)} sheets; the first, {brief(sheets[0])}, is read",
            category=DataWarning,
        )
    names: list[Any] = [name.strip() for name in rows.pop(0)[1]] if has_header and rows else []
    columns = [list(column) for column in zip(*(row for _, row in rows), strict=True)]
    values = np.full((len(rows), len(columns)), np.nan)
    lines = [line for line, _ in rows]
    return Cells(path, names or [*range(len(columns))], values, dict(enumerate(columns)), lines)


def _read_parquet(path: Path, text: Collection[str] | None) -> Cells:
    """Read a frame; an index that is no mere count is its first column."""
    pandas, arrow = require("pandas", "tables"), require("pyarrow", "tables")
    try:
        frame = pandas.read_parquet(path)
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if not isinstance(frame.index, pandas.RangeIndex):
        names = [str(name) for name in frame.index]
        frame.insert(0, str(frame.index.name or "index"), names, allow_duplicates=True)
    columns = [str(name) for name in frame.columns]
    values, words = _split(frame, "biuf")
    for place, name in enumerate(columns):
        rounded = (np.abs(values[:, place]) >= LARGEST_INTEGER).any()
        if rounded or text is None or name in text:
            words[place] = frame.iloc[:, place].tolist()
    return Cells(path, columns, values, words, range(len(frame)))


def _split(
    frame: pandas.DataFrame, kinds: str = "iuf"
) -> tuple[NDArray[np.float64], dict[int, list[Any]]]:
    """Return the numbers of a frame, and the cells of columns that hold something else."""
    numeric = np.array([dtype.kind in kinds for dtype in frame.dtypes], dtype=bool)
    values = np.full(frame.shape, np.nan)
    values[:, numeric] = frame.loc[:, numeric].to_numpy(dtype=np.float64, na_value=np.nan)
    words = {int(place): frame.iloc[:, place].tolist() for place in np.flatnonzero(~numeric)}
    return values, words


def _decimal_point(cell: Any, path: Path) -> Any:
    """Return a cell of a file with decimal commas as it would be with points."""
    if not isinstance(cell, str):
        return cell
    if "." in cell and is_number(cell):
        raise InputError(
            f"{path} has numbers with commas and such as {brief(cell)}; write all with points"
        )
    return with_point(cell)


def _check_widths(path: Path, delimiter: str, width: int, before: int) -> None:
    """Refuse rows that have fewer or more cells than others."""
    for line, row in islice(read_rows(path, delimiter), before, None):
        if len(row) != width:
            raise InputError(
                f"{path}, line {line}: {len(row)} cells where there should be {width}; "
                "every row needs as many cells as the first"
            )


def _skip_preamble(rows: Iterator[Row], path: Path) -> int:
    """Skip the version and the sizes of a .gct file; return how many columns describe rows."""
    version, sizes = next(rows, (1, [""]))[1], next(rows, (2, []))[1]
    sizes = [int(cell) for cell in sizes if cell.strip().isdigit()]
    if not version[0].startswith("#1.") or len(sizes) not in (2, 4):
        raise InputError(f"{path} is no .gct file: it must start with #1.2 and a line of its sizes")
    return sizes[2] if len(sizes) == 4 else 1


def _sheet_rows(path: Path) -> tuple[list[Row], list[str]]:
    """Return the rows of an Excel file's first sheet as text, and the names of its sheets."""
    pandas: Any = require("pandas", "tables")
    require("openpyxl", "tables")
    try:
        with pandas.ExcelFile(path, engine="openpyxl") as book:
            sheets = [str(name) for name in book.sheet_names]
            frame = pandas.read_excel(book, header=None, dtype=object, na_filter=False)
    except Exception as error:
        # zipfile, XML parsers and openpyxl raise errors of many kinds for what is no workbook.
        raise InputError(f"cannot read {path}: {brief(error, 200)}") from None
    rows = [[str(cell) for cell in row] for row in frame.itertuples(index=False)]
    # Sheets have empty columns at the right, and some rows end early.
    first = next(filter(any, rows), [])
    width = max((place for place, cell in enumerate(first, start=1) if cell), default=0)
    for line, row in enumerate(rows, start=1):
        if any(row[width:]):
            raise InputError(
                f"{path}, line {line}: there are cells to the right of the first row's {width}; "
                "give every column a name"
            )
    return [(line, row[:width]) for line, row in enumerate(rows, start=1) if any(row)], sheets


def _fault(cell: Any) -> str:
    """Say why a cell is neither a number nor a missing value."""
    if is_missing(cell):
        return ""
    if not is_number(cell):
        return f"{brief(cell)} is not a number"
    digits = str(cell).strip().lstrip("+-")
    if digits.isdecimal() and int(digits) > LARGEST_INTEGER:
        return f"{brief(cell)} is a whole number beyond 2^53, which a float does not hold"
    return ""


def is_missing(cell: Any) -> bool:
    """Whether a cell stands for a missing value."""
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    return cell is None or (isinstance(cell, float) and cell != cell)


def holds_text(cells: Iterable[Any]) -> bool:
    """Whether some cells are filled, and none of them with a number.

    Examples
    --------
    >>> holds_text(["x", "", "NA"]), holds_text(["x", "1"]), holds_text(["", "NA"])
    (True, False, False)
    """
    filled = [cell for cell in cells if not is_missing(cell)]
    return bool(filled) and not any(map(is_number, filled))


def as_text(values: Any) -> NDArray[np.str_]:
    """Return values as an array of str, without blanks around them and with "" for NaN."""
    cells = np.asarray(values).tolist()
    missing = [isinstance(cell, float) and cell != cell for cell in cells]
    texts = ["" if gap else str(cell).strip() for cell, gap in zip(cells, missing, strict=True)]
    return np.array(texts, dtype=str)

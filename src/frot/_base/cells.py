"""Cells of tables as they come: any delimiter, decimal commas, Excel sheets, GCT files."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from frot._base.errors import DataWarning, InputError, brief, require, warn_caller

__all__ = [
    "SHEETS",
    "TEXT",
    "delimiter_of",
    "is_number",
    "kind_of",
    "read_cells",
    "read_rows",
    "read_text",
    "split_lines",
    "with_points",
]

# What `read_rows` reads.
TEXT = tuple(f"{kind}{gz}" for gz in ("", ".gz") for kind in (".csv", ".tsv", ".txt", ".gct"))
SHEETS = (".xlsx", ".xlsm")

Row = tuple[int, list[str]]


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
    """Read a UTF-8 text file, with or without a byte-order mark, compressed if it ends in .gz.

    Examples
    --------
    >>> read_text(Path("no such file"))
    Traceback (most recent call last):
    ...
    frot.InputError: cannot read no such file: No such file or directory
    """
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            return file.read().decode("utf-8-sig", errors)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {why}") from None


def is_number(cell: str) -> bool:
    """Say whether a cell holds a number.

    Examples
    --------
    >>> is_number(" 1e3"), is_number("many"), is_number("")
    (True, False, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return True


def split_lines(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Split lines into cells; a space stands for any run of spaces.

    Examples
    --------
    >>> list(split_lines(['a "b c"  d'], " "))
    [['a', 'b c', 'd']]
    """
    if delimiter != " ":
        return csv.reader(lines, delimiter=delimiter)
    return csv.reader((line.strip() for line in lines), delimiter=" ", skipinitialspace=True)


def read_cells(text: str, delimiter: str, source: str | Path) -> list[Row]:
    r"""Return the rows of delimited text with the numbers of their lines, empty lines left out.

    Examples
    --------
    >>> read_cells('a,"b, c"\n\n1,2\n', ",", "a.csv")
    [(1, ['a', 'b, c']), (3, ['1', '2'])]
    """
    return list(_numbered_rows(text, delimiter, source))


def _numbered_rows(text: str, delimiter: str, source: str | Path) -> Iterator[Row]:
    reader = split_lines(io.StringIO(text, newline=""), delimiter)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row  # pyright: ignore[reportAttributeAccessIssue]
    except csv.Error as error:
        line = reader.line_num  # pyright: ignore[reportAttributeAccessIssue]
        raise InputError(f"cannot read {source}, line {line}: {error}") from None


def read_rows(path: Path) -> Iterator[Row]:
    r"""Yield the rows of a text file or of an Excel sheet, numbers with points, line by line.

    The preamble of a .gct file is left out, and so are its columns that describe rows.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("gene;s1\nTP53;1,5\n")
    >>> list(read_rows(path))
    [(1, ['gene', 's1']), (2, ['TP53', '1.5'])]
    """
    kind = kind_of(path)
    if kind in SHEETS:
        return _read_sheet(path)
    text = read_text(path)
    delimiter = delimiter_of(path, text)
    rows = _numbered_rows(text, delimiter, path)
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
    """Return cells with decimal commas as points, where there are some.

    Examples
    --------
    >>> with_points(["1,5", "a,b", "2"])
    ['1.5', 'a,b', '2']
    """
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


def _read_sheet(path: Path) -> Iterator[Row]:
    openpyxl = require("openpyxl", "excel")
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

"""How a text file of numbers is written: what stands between its cells, and before decimals."""

from __future__ import annotations

import csv
import re
from itertools import islice
from pathlib import Path

from frot._base.errors import InputError, brief
from frot._base.text import kind_of, open_text, split_lines

_COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")
# Not in groups of three digits: no separator of thousands.
_DECIMAL = re.compile(r"\d,(?:\d{1,2}(?!\d)|\d{4})|(?<!\d)0?,\d")


def is_number(cell: object) -> bool:
    """Say whether a cell holds a number."""
    try:
        float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return not isinstance(cell, bool)


def dialect_of(path: Path, count: int = 50) -> tuple[str, str]:
    r"""Return what stands between cells, and what before decimals: a point or a comma.

    Between cells stands what the suffix says unless the text says otherwise: what splits all of the
    first rows into the same number of cells, two at least, most of them numbers. " ", which is
    looked for in .txt files only, stands for any run of spaces. `count` lines are looked at.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("u;v\n1,5;2,5\n")
    >>> dialect_of(path)
    (';', ',')
    """
    kind = kind_of(path).removesuffix(".gz")
    with open_text(path) as file:
        lines = list(islice((line for line in file if line.strip()), count))
    delimiter = "," if kind == ".csv" else "\t"
    if kind != ".gct":
        others = [other for other in ",\t;" if other != delimiter] + [" "] * (kind == ".txt")
        best = max([delimiter, *others], key=lambda candidate: _fit(lines[:6], candidate))
        delimiter = best if _fit(lines[:6], best)[0] >= 0.0 else delimiter
    return delimiter, "," if _has_decimal_commas(lines, delimiter, path) else "."


def with_point(cell: str) -> str:
    """Return a number with a decimal comma as one with a point, and all else as it is."""
    return cell.replace(",", ".") if "," in cell and _COMMA.fullmatch(cell) else cell


def _fit(lines: list[str], delimiter: str) -> tuple[float, int]:
    """How well a delimiter splits lines: the share of numbers, and the cells of the first row."""
    try:
        first, *others = split_lines(lines, delimiter)
    except (csv.Error, ValueError):
        return -1.0, 0
    # R leaves the cell above the names of rows out.
    width = len(others[0]) if others and len(others[0]) == len(first) + 1 else len(first)
    if width < 2 or any(len(row) != width for row in others):
        return -1.0, 0
    # A hundred cells of a row tell as much as 20,000.
    cells = [cell for row in others for cell in row[:100]]
    if delimiter != ",":
        cells = list(map(with_point, cells))
    return sum(map(is_number, cells)) / max(len(cells), 1), 0 if delimiter == " " else len(first)


def _has_decimal_commas(lines: list[str], delimiter: str, path: Path) -> bool:
    """Whether numbers have commas for points; refuses what could be read in two ways."""
    if delimiter == "," or not any("," in line for line in lines):
        return False
    cells = [cell.strip() for row in split_lines(lines, delimiter) for cell in row]
    commas = [cell for cell in cells if _COMMA.fullmatch(cell)]
    if not commas:
        return False
    comma = commas[0]
    if points := [cell for cell in cells if "." in cell and is_number(cell)]:
        raise InputError(
            f"{path} has numbers such as {brief(comma)} and such as {brief(points[0])}; write "
            "all of them with points"
        )
    if not any(map(_DECIMAL.search, commas)):
        raise InputError(
            f"{path}: {brief(comma)} may be {float(with_point(comma)):g} or "
            f"{comma.replace(',', '')}; write numbers with points, and nothing between thousands"
        )
    return True

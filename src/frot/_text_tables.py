"""Delimited text turned into numbers, with the header and the row names told apart from them."""

from __future__ import annotations

import csv
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from frot._errors import InputError

Names = tuple[str, ...] | None
Parsed = tuple[Names, Names, NDArray[np.float64]]

# Rows that are looked at to tell whether the first column names the points.
_SAMPLE = 20


def parse_text(text: str, delimiter: str, source: str) -> Parsed:
    r"""Read delimited text.

    Parameters
    ----------
    text : str
    delimiter : str
        Of one character.
    source : str
        What to call the text in messages.

    Returns
    -------
    columns : tuple of str or None
        The header, if the first row is one.
    ids : tuple of str or None
        The first column, if it names the rows.
    values : numpy.ndarray of float64, shape (n, d)

    Examples
    --------
    >>> from frot._text_tables import parse_text
    >>> parse_text("id,u,v\np1,1,2\np2,3,4\n", ",", "a.csv")
    (('u', 'v'), ('p1', 'p2'), array([[1., 2.], [3., 4.]]))
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    rows = (row for row in csv.reader(lines, delimiter=delimiter) if row)
    head = list(islice(rows, _SAMPLE))
    if not head:
        raise InputError(f"{source} is empty; it needs a row for each point")
    has_header, has_ids = _layout(head)
    if has_header and len(head) == 1:
        raise InputError(f"{source} holds a header and no points; it needs a row for each point")
    try:
        return _parse_fast(lines, delimiter, has_header, has_ids)
    except ValueError:
        # The slow way reads quoted cells too, and says where a cell cannot be read.
        return _parse_slow(lines, delimiter, has_header, has_ids, source)


def _layout(head: list[list[str]]) -> tuple[bool, bool]:
    """Whether the first row is a header, and whether the first column names the points."""
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
    has_ids = all(_is_text(row[0]) for row in body) and any(map(_is_number, body[0][1:]))
    return _mostly_text(first[1:] if has_ids else first), has_ids


def _parse_fast(lines: list[str], delimiter: str, has_header: bool, has_ids: bool) -> Parsed:
    lines = [line for line in lines if line]
    header = next(csv.reader(lines[:1], delimiter=delimiter)) if has_header else None
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
    lines: list[str], delimiter: str, has_header: bool, has_ids: bool, source: str
) -> Parsed:
    reader = csv.reader(lines, delimiter=delimiter)
    rows = [(reader.line_num, row) for row in reader if row]
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
                name = column + has_ids + 1 if names is None else repr(names[column])
                what = f"{cell!r} is not a number" if cell.strip() else "the cell is empty"
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


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbered(count: int) -> list[str]:
    return [str(column) for column in range(count)]


def _is_text(cell: str) -> bool:
    return cell.strip() != "" and not _is_number(cell)


def _mostly_text(cells: list[str]) -> bool:
    # Not "any": a typing error in the first row of numbers must not turn it into a header.
    return 2 * sum(map(_is_text, cells)) >= max(len(cells), 1)

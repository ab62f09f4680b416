"""Delimited text with a column of labels: features told apart from names and remarks."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from frot._errors import InputError
from frot._names import quote_some

__all__ = ["Columns", "read_text_columns"]

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

    def special(self) -> list[tuple[str, str]]:
        """Those with a meaning: what each is, and its name."""
        named = (("label", self.label), ("block", self.block), ("ids", self.ids))
        return [(what, name) for what, name in named if name is not None]

    def absent(self, path: Path, what: str, name: str, present: Sequence[str]) -> str:
        """Return the sentence for a column that is not there."""
        option = "id" if what == "ids" else what
        # Labels are more often the first or the last column than one of thousands of genes.
        some = list(present) if len(present) <= 8 else [*present[:4], *present[-4:]]
        more = "" if len(some) == len(present) else f" and {len(present) - len(some)} more"
        listed = ", ".join(repr(one) for one in some) + more if some else "none that could serve"
        return f"{option}: {path} has no column {name!r}; it has {listed}"


def read_text_columns(
    path: Path, delimiter: str, wanted: Columns
) -> tuple[np.ndarray, dict[str, np.ndarray | None], tuple[str, ...], tuple[str, ...]]:
    r"""Return the features, the special columns, the features' names and what was left out.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,kind,u,remark\np,a,1.5,fine\nq,b,2.5,odd\n")
    >>> X, special, names, ignored = read_text_columns(path, ",", Columns("kind"))
    >>> X.tolist(), special["ids"].tolist(), names, ignored
    ([[1.5], [2.5]], ['p', 'q'], ('u',), ('remark',))
    """
    header, rows = _read_rows(path, delimiter)
    special: dict[str, np.ndarray | None] = {"label": None, "block": None, "ids": None}
    apart: set[int] = set()
    for what, name in wanted.special():
        if name not in header:
            raise InputError(wanted.absent(path, what, name, header))
        if header.count(name) > 1:
            raise InputError(f"{path} has two columns named {name!r}; rename one")
        column = header.index(name)
        special[what] = np.array([row[column].strip() for _, row in rows])
        apart.add(column)
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
        cells = row if not apart else [row[column] for column in kept]
        X[position] = _numbers(cells, path, line, names)
    return X, special, names, tuple(header[column] for column in text)


def _read_rows(path: Path, delimiter: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header, and every row with the number of its line."""
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"cannot read {path}, line {reader.line_num}: {error}") from None
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
    return bool(filled) and not any(map(_is_number, filled))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(cells: list[str], path: Path, line: int, names: Sequence[str]) -> np.ndarray:
    try:
        return np.array(cells, dtype=float)
    except ValueError:
        pass
    values = np.full(len(cells), np.nan)
    for column, cell in enumerate(cells):
        if cell.strip().lower() in MISSING:
            continue
        if not _is_number(cell):
            raise InputError(
                f"{path}, line {line}, column {names[column]!r}: {cell!r} is not a number; write "
                f"a number there, or leave the column out with --ignore {names[column]}"
            )
        values[column] = float(cell)
    return values

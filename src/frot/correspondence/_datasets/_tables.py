"""Lists of pairs as comma-separated lines."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from frot._errors import InputError

__all__ = ["read_rows"]


def read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows below the heading with the numbers of their lines, empty ones left out."""
    try:
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            rows = csv.reader(file)
            next(rows, None)
            for row in rows:
                if any(cell.strip() for cell in row):
                    yield rows.line_num, row
    except csv.Error as error:
        raise InputError(f"{path} is no table of comma-separated values: {error}") from None

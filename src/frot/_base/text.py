"""Text files: UTF-8, compressed where the name ends in .gz, and the rows of delimited ones."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from frot._base.errors import InputError, brief

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


def check_kind(path: Path, known: Collection[str]) -> str:
    """Return what a file is; refuse one that is not there, or of a kind that is not known."""
    kind = kind_of(path)
    if kind not in known:
        raise InputError(
            f"{path} has an unknown suffix {brief(kind)}; known are {', '.join(known)}"
        )
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {reason}; give the path of a file")
    return kind


@contextmanager
def open_text(path: Path, errors: str = "strict") -> Iterator[TextIO]:
    """Open a UTF-8 text file, with or without a byte-order mark, compressed if it ends in .gz.

    What goes wrong while it is read is an `InputError`, too.
    """
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", errors=errors, newline="") as file:
            yield file
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {why}") from None


def read_text(path: Path) -> str:
    """Return what a text file holds."""
    with open_text(path) as file:
        return file.read()


def split_lines(lines: Iterable[str], delimiter: str) -> Any:
    """Return the reader of the csv module for lines; a space stands for any run of spaces."""
    if delimiter == " ":
        lines = (line.strip() for line in lines)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter == " ")


def read_rows(path: Path, delimiter: str, errors: str = "strict") -> Iterator[Row]:
    r"""Yield the rows of delimited text with the numbers of their lines, empty lines left out.

    A space as the delimiter stands for any run of spaces.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text('a,"b, c"\n\n1,2\n')
    >>> list(read_rows(path, ","))
    [(1, ['a', 'b, c']), (3, ['1', '2'])]
    """
    with open_text(path, errors) as file:
        reader = split_lines(file, delimiter)
        try:
            for row in reader:
                if len(row) > 1 or any(cell.strip() for cell in row):
                    yield reader.line_num, row
        except csv.Error as error:
            raise InputError(f"cannot read {path}, line {reader.line_num}: {error}") from None

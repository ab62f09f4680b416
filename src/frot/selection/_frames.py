"""Tables on disk as frames of pandas: text, Excel, Parquet; and columns of numbers among others."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from frot._base.dialect import dialect_of, with_point
from frot._base.errors import InputError, brief
from frot._base.tables import first_sheet
from frot._base.text import check_kind, kind_of, read_rows

TEXT = tuple(f"{kind}{gz}" for gz in ("", ".gz") for kind in (".csv", ".tsv", ".txt", ".gct"))
SHEETS = (".xlsx", ".xlsm")
KNOWN = (*TEXT, *SHEETS, ".parquet")


def read_frame(path: Path, as_text: Collection[str] | None = ()) -> pd.DataFrame:
    """Read a table; the columns named in `as_text`, of which None is all, are kept as text.

    Names of columns are as they are in the file, and may repeat. Empty cells, NA, NaN and #N/A are
    missing. The preamble of a .gct file, and its columns that describe rows, are left out.
    """
    kind = check_kind(path, KNOWN)
    try:
        if kind == ".parquet":
            frame = pd.read_parquet(path)
            if not isinstance(frame.index, pd.RangeIndex):
                frame.insert(0, str(frame.index.name or ""), frame.index, allow_duplicates=True)
            frame = frame.reset_index(drop=True)
        elif kind in SHEETS:
            frame = _read_sheet(path)
        else:
            frame = _read_text(path, as_text)
    except InputError:
        raise
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except Exception as error:
        # Readers of damaged files raise errors of many kinds.
        raise InputError(f"cannot read {path}: {brief(error, 200)}") from None
    frame.columns = [str(name).strip() for name in frame.columns]
    if not len(frame):
        raise InputError(f"{path} holds no samples; it needs a header and a row for each sample")
    return frame


def _read_text(path: Path, as_text: Collection[str] | None) -> pd.DataFrame:
    delimiter, decimal = dialect_of(path)
    rows = read_rows(path, delimiter)
    gct = kind_of(path).startswith(".gct")
    described = _skip_preamble(rows, path) if gct else 0
    line, names = next(rows, (0, []))
    width = len(next(rows, (0, names))[1])
    if len(names) == width - 1:
        names = ["", *names]  # R leaves the cell above the row names out
    if any("\n" in name or "\r" in name for name in names):
        raise InputError(f"{path}: a column's name has a line break; write it in one line")
    text = [index for index, name in enumerate(names) if as_text is None or name.strip() in as_text]
    frame = pd.read_csv(
        path,
        sep=r"\s+" if delimiter == " " else delimiter,
        decimal=decimal,
        header=None,
        skiprows=line,
        dtype=dict.fromkeys(text, str),
        encoding="utf-8-sig",
        low_memory=False,
    )
    if frame.shape[1] != len(names) or frame.iloc[:, -1].isna().any():
        # pandas fills rows that are too short with NaN.
        for number, row in read_rows(path, delimiter):
            if number > line and len(row) != len(names):
                raise InputError(
                    f"{path}, line {number}: {len(row)} cells where there should be {len(names)}; "
                    "every row needs as many cells as the first"
                )
    frame.columns = names
    if decimal == ",":
        for index in range(frame.shape[1]):
            if index not in text and not pd.api.types.is_numeric_dtype(frame.dtypes.iloc[index]):
                frame.isetitem(index, frame.iloc[:, index].map(_with_point))
    return frame.iloc[:, [0, *range(1 + described, len(names))]] if described else frame


def _with_point(cell: Any) -> Any:
    return with_point(cell) if isinstance(cell, str) else cell


def _skip_preamble(rows: Any, path: Path) -> int:
    """Skip the version and the sizes of a .gct file; return how many columns describe rows."""
    version, sizes = next(rows, (1, [""]))[1], next(rows, (2, []))[1]
    sizes = [int(cell) for cell in sizes if cell.strip().isdigit()]
    if not version[0].startswith("#1.") or len(sizes) not in (2, 4):
        raise InputError(f"{path} is no .gct file: it must start with #1.2 and a line of its sizes")
    return sizes[2] if len(sizes) == 4 else 1


def _read_sheet(path: Path) -> pd.DataFrame:
    frame = first_sheet(path)
    names = ["" if name != name else name for name in frame.iloc[0]] if len(frame) else []
    frame = frame.iloc[1:].reset_index(drop=True)
    frame.columns = names
    return frame


def as_labels(column: pd.Series) -> np.ndarray:
    """Return a column as text, NaN where it is missing; whole numbers without a point."""
    whole = pd.api.types.is_float_dtype(column.dtype) and (column.dropna() % 1 == 0).all()
    text = column.astype("Int64").astype(object) if whole else column.astype(object)
    return np.array([np.nan if pd.isna(cell) else str(cell) for cell in text], dtype=object)


def has_numbers(column: pd.Series) -> bool:
    """Whether some cell of a column is a number."""
    numbers: Any = pd.to_numeric(column, errors="coerce")
    return bool(numbers.notna().any())


def numbers_of(frame: pd.DataFrame, path: Path) -> tuple[np.ndarray, list[int]]:
    """Return the columns of numbers as an array (N, k), and their positions.

    A column is text where none of its cells is a number. One that has both is refused, with the
    first cell that is no number.
    """
    numeric = np.array([pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes], bool)
    numeric &= np.array([not pd.api.types.is_bool_dtype(dtype) for dtype in frame.dtypes], bool)
    values = np.full(frame.shape, np.nan)
    values[:, numeric] = frame.loc[:, numeric].to_numpy(float, na_value=np.nan)
    for index in np.flatnonzero(~numeric).tolist():
        column = frame.iloc[:, index]
        numbers: Any = pd.to_numeric(column, errors="coerce")
        wrong = np.flatnonzero(numbers.isna() & column.notna())
        if len(wrong) == int(column.notna().sum()) or pd.api.types.is_bool_dtype(column.dtype):
            continue
        if len(wrong):
            row, name = int(wrong[0]), brief(str(frame.columns[index]))
            sample = "" if isinstance(frame.index, pd.RangeIndex) else f" ({frame.index[row]})"
            raise InputError(
                f"{path}, row {row + 1}{sample}, column {name}: {brief(column.iloc[row])} is not a "
                f"number; write a number there, or leave it out with drop={name}"
            )
        values[:, index] = numbers
        numeric[index] = True
    places = np.flatnonzero(numeric).tolist()
    return np.ascontiguousarray(values[:, places]), places

"""Cells from files: an .h5ad file, or a table of expression with what is known of each cell."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError, brief, require
from frot._base.files import check_path
from frot._base.names import first_repeated, quote_some
from frot.cells._input import Cells

__all__ = ["read_cells"]

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def read_cells(
    path: str | os.PathLike[str],
    obs: str | os.PathLike[str] | None = None,
    *,
    columns: Sequence[str] = (),
) -> Any:
    r"""Read cells from an .h5ad file, or from .csv or .tsv tables.

    A table has a row for each cell, its name first, and a header. Columns of text and those named
    in `columns` are what is known of the cells; all others are genes.

    Parameters
    ----------
    path : path
        An .h5ad file (needs anndata), or a .csv, .tsv or .txt table, also with .gz (needs pandas).
    obs : path, optional
        Another table with what is known of each cell, matched by the cells' names, in any order.
    columns : sequence of str
        Columns of numbers in the table itself that are no genes, such as the day.

    Returns
    -------
    AnnData or Cells

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "cells.csv"
    >>> _ = path.write_text("cell,day,GATA1,type\nc1,3,0.5,stem\nc2,4,1.5,blood\n")
    >>> cells = read_cells(path, columns=["day"])
    >>> cells.var_names, cells.obs["day"].tolist()
    (('GATA1',), [3, 4])
    """
    path = check_path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    if path.suffix.lower() == ".h5ad":
        if obs is not None:
            raise InputError(f"obs: {path} has its own; leave obs out, which is for tables")
        require("anndata", "anndata")
        import anndata  # pyright: ignore[reportMissingImports]

        try:
            with warnings.catch_warnings():
                # Of how the file was written, about which a reader can do nothing.
                warnings.simplefilter("ignore")
                return anndata.read_h5ad(path)
        except (OSError, KeyError, ValueError) as error:
            raise InputError(f"cannot read {path}: {error}") from None
    frame = _frame(path)
    numbers = [name for name in frame if frame[name].dtype.kind in "iufb"]
    genes = [name for name in numbers if name not in columns]
    if not genes:
        raise InputError(f"{path} has no column of numbers besides {quote_some(columns)}")
    known = frame.drop(columns=genes)
    if obs is not None:
        known = _matched(_frame(check_path(obs, "obs")), frame.index, path)
    values = frame[genes].to_numpy(dtype=float)
    return Cells(values, known, [str(gene) for gene in genes], [str(one) for one in frame.index])


def _frame(path: Path) -> Any:
    pandas = require("pandas", "tables")
    kinds = [suffix.lower() for suffix in path.suffixes]
    plain = kinds[:-1] if kinds[-1:] == [".gz"] else kinds
    if not plain or plain[-1] not in SEPARATORS:
        raise InputError(f"{path}: is no .h5ad, .csv, .tsv or .txt file")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        frame = pandas.read_csv(path, sep=SEPARATORS[plain[-1]], index_col=0)
    except (ValueError, UnicodeDecodeError, OSError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if (twice := first_repeated([str(name) for name in frame.index])) is not None:
        raise InputError(f"{path}: two cells are called {brief(twice)}; names are first")
    return frame


def _matched(known: Any, cells: Any, path: Path) -> Any:
    absent = [str(one) for one in np.asarray(cells) if one not in known.index]
    if absent:
        raise InputError(
            f"obs: has no row for {quote_some(absent)} of {path}; its first column names the cells"
        )
    return known.loc[list(cells)]

"""Missing values: refused, imputed, or a reason to leave a feature out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["MISSING", "fill_missing"]

MISSING = ("error", "impute", "drop")


def fill_missing(table: Any, how: str) -> Any:
    """Return the table without NaN.

    ``how="impute"`` puts the mean of a feature's known values, over all classes, in the place of
    those that miss: that pulls the classes together and never makes a difference. "drop" makes
    every feature with a missing value constant, so that it scores zero.

    Examples
    --------
    >>> fill_missing(np.array([[1.0, 4.0], [np.nan, 5.0], [3.0, 6.0]]), "impute")
    array([[1., 4.],
           [2., 5.],
           [3., 6.]])
    """
    if how == "error":
        return table
    if sparse.issparse(table):
        return _fill_sparse(table, how)
    gaps = np.isnan(table)
    holed = gaps.any(axis=0)
    if not holed.any():
        return table
    table = table.copy()
    if how == "drop":
        table[:, holed] = 0.0
        return table
    with warnings.catch_warnings():
        # A feature that nobody has becomes NaN here, and constant below.
        warnings.simplefilter("ignore", RuntimeWarning)
        means = np.nan_to_num(np.nanmean(table[:, holed], axis=0))
    table[:, holed] = np.where(gaps[:, holed], means, table[:, holed])
    return table


def _fill_sparse(table: Any, how: str) -> Any:
    gaps = np.isnan(table.data)
    if not gaps.any():
        return table
    column = np.repeat(np.arange(table.shape[1]), np.diff(table.indptr))
    table = table.copy()
    if how == "drop":
        holed = np.zeros(table.shape[1], dtype=bool)
        holed[column[gaps]] = True
        table.data[holed[column]] = 0.0
        return table
    known = table.shape[0] - np.bincount(column[gaps], minlength=table.shape[1])
    table.data[gaps] = 0.0
    means = np.bincount(column, table.data, table.shape[1]) / np.maximum(known, 1)
    table.data[gaps] = means[column[gaps]]
    return table

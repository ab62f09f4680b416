"""Checks of what goes into a fit: table, labels, groups and options, before any work."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from frot._base.contract import refuse_masked, refuse_unfit_table
from frot._base.errors import DataWarning, InputError, brief, warn_caller
from frot._base.names import did_you_mean, distinct, quote_some
from frot._base.validate import check_choice, check_number
from frot.groups.groups import Groups
from frot.problem.options import Relative
from frot.selection._annotated import in_memory
from frot.selection._design import Contrast, contrasts_of, read_blocks, warn_of_single_classes
from frot.selection._doubts import (
    row_name,
    row_names,
    warn_of_alike_labels,
    warn_of_empty_features,
    warn_of_intensities,
    warn_of_repeated_samples,
)
from frot.selection._effects import VALUES, Moments, kind_of_values
from frot.selection._transport import SCALINGS, one_each

SCORES = ("moderated", "alpha")
MISSING = ("error", "impute", "drop")
CHOICES = {"score": SCORES, "scaling": SCALINGS, "missing": MISSING, "values": VALUES}


def check_labels(X: Any, y: Any) -> None:
    """Refuse tables outside the contract and labels that do not match the rows, or are missing.

    Warn of rows in another order.
    """
    refuse_unfit_table(X, "X")
    refuse_masked(y, "y")
    if all(hasattr(X, part) for part in ("X", "obs", "var")) and not hasattr(X, "columns"):
        raise InputError(
            f"X: is an {type(X).__name__}; use X.X, which may be sparse, or rank_genes(X, groupby)"
        )
    if y is None or not (hasattr(X, "shape") or hasattr(X, "__len__")):
        return
    rows = X.shape[0] if getattr(X, "shape", None) else len(X)
    shape = np.shape(y)
    if shape and shape[0] != rows:
        raise InputError(f"y: has {shape[0]} labels for the {rows} rows of X; give one per row")
    gaps = np.flatnonzero(_missing(y))
    if gaps.size:
        raise InputError(
            f"y: {gaps.size} of {rows} labels are missing, the first in row {gaps[0]}; drop these "
            "samples"
        )
    names: Any = getattr(X, "index", None)
    others: Any = getattr(y, "index", None)
    if not hasattr(names, "equals") or not hasattr(others, "equals") or names.equals(others):
        return
    if names.is_unique and others.is_unique and others.isin(names).all():
        warn_caller(
            "y: has the row names of X in another order, and is taken by position; use "
            "y.loc[X.index] if it is meant by name",
            category=DataWarning,
        )


def _missing(y: Any) -> np.ndarray:
    """Return which labels are None, NaN or pandas' NA."""
    if hasattr(y, "isna"):
        return np.asarray(y.isna()).ravel()
    labels = np.asarray(y)
    if labels.dtype.kind == "f":
        return np.isnan(labels).ravel()
    if labels.dtype.kind != "O":
        return np.zeros(labels.size, dtype=bool)
    return np.array([x is None or (isinstance(x, float) and x != x) for x in labels.ravel()])


def _where(X: Any, is_wrong: Callable[[np.ndarray], np.ndarray]) -> str:
    """Say how many entries of a table are wrong, and in which row and column the first is."""
    try:
        if sparse.issparse(X):
            entries = sparse.coo_array(X)
            hits = np.flatnonzero(is_wrong(entries.data))
            rows, columns = entries.row[hits], entries.col[hits]
            size = math.prod(X.shape)
        else:
            wrong = is_wrong(np.asarray(X, dtype=float))
            rows, columns = np.nonzero(wrong)
            size = wrong.size
    except (TypeError, ValueError):
        return ""
    if not len(rows):
        return ""
    first = int(np.lexsort((columns, rows))[0])
    row, column = int(rows[first]), int(columns[first])
    names = getattr(X, "columns", None)
    feature = column if names is None else brief(str(names[column]))
    where = row_name(row_names(X), row)
    return f", {len(rows):,} of {size:,}, the first in {where}, feature {feature}"


def _refusal(error: ValueError, X: Any) -> InputError:
    """Say what scikit-learn refused in a table, and the fix where one is known."""
    first = str(error).partition("\n")[0]
    if first == "Input X contains NaN.":
        # scikit-learn names estimators that take NaN, of which this is one.
        fix = "missing='impute' puts the mean of a feature there, missing='drop' leaves it out"
        return InputError(f"X: contains NaN{_where(X, np.isnan)}; {fix}")
    if first.startswith("Input X contains infinity"):
        where = _where(X, np.isinf)
        return InputError(f"X: contains infinity, or numbers too large{where}; replace them")
    if first.startswith("could not convert string to float"):
        text = [name for name in getattr(X, "columns", ()) if not _is_numbers(X[name])]
        where = f"columns {quote_some(text)} hold" if text else "holds"
        return InputError(f"X: {where} text; leave it out, or make numbers of it")
    return InputError(brief(error, 400))


def _is_numbers(column: Any) -> bool:
    try:
        np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        return False
    return True


def check_picks(number: Any, threshold: Any, groups: int, single: bool) -> int | None:
    """Return how many to select at most; None where only the threshold decides.

    Examples
    --------
    >>> check_picks(0.1, None, 50, single=True), check_picks(None, None, 9, single=True)
    (5, 4)
    """
    what = "features" if single else "groups"
    if threshold is not None:
        check_number(threshold, "threshold", least=-np.inf)
    if number is None:
        return None if threshold is not None else max(1, groups // 2)
    if isinstance(number, bool | np.bool_) or not isinstance(number, Real):
        raise InputError(
            f"n_features_to_select: {brief(number)} is neither a whole number nor a fraction; "
            f"give how many {what} to keep"
        )
    if not isinstance(number, Integral):
        if not 0.0 < float(number) <= 1.0:
            raise InputError(
                f"n_features_to_select: {number!r} is not a fraction in (0, 1]; for a count give a "
                "whole number"
            )
        return max(1, int(float(number) * groups))
    number = int(number)
    if number < 1:
        raise InputError(f"n_features_to_select: must be at least 1, got {number}")
    if number > groups:
        raise InputError(
            f"n_features_to_select: {number} {what} are asked for but there are {groups}; ask for "
            f"{groups} at most"
        )
    return number


def check_eta(eta: Any) -> float | str | Relative:
    """Return eta if it can be used: "auto", a number above zero, or a `frot.relative` share."""
    if isinstance(eta, Relative):
        check_number(eta.of(1.0), "eta", strict=True)
        return eta
    if isinstance(eta, str):
        if eta != "auto":
            raise InputError(f"eta: {brief(eta)} is neither 'auto' nor a number")
        return eta
    return check_number(eta, "eta", strict=True)


def check_plan(plan: Any, score: str) -> str | bool:
    """Return whether to make a plan; refuse to make none where the score is read off it."""
    if not isinstance(plan, bool | np.bool_) and not (isinstance(plan, str) and plan == "auto"):
        raise InputError(f"plan: {brief(plan)} is none of 'auto', True and False")
    if not plan and score == "alpha":
        raise InputError("plan: score='alpha' is read off the plan; leave plan out")
    return plan if isinstance(plan, str) else bool(plan)


def read_groups(spec: Any, n_features: int, names: np.ndarray | None) -> Groups:
    """Parse groups, and say what to do where they need the features' names."""
    try:
        return Groups.parse(spec, n_features, None if names is None else list(map(str, names)))
    except InputError as error:
        text = str(error).replace(
            "pass DataFrames, or feature_names", "pass X as a DataFrame with named columns"
        )
        raise InputError(text if text.startswith("group") else f"groups: {text}") from None


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """Checked inputs of a fit."""

    # Of shape (N, d), dense or in CSC order, without NaN.
    table: Any
    # Labels as positions in `classes`.
    codes: np.ndarray
    classes: np.ndarray
    # The block of each sample, counted from 0; all zero where there are none.
    block: np.ndarray
    contrasts: tuple[Contrast, ...]
    groups: Groups
    # Of the d features; x0, x1, ... where they have none.
    names: tuple[str, ...]
    # How many groups to select, where that is set.
    picks: int | None
    # What the numbers are, "auto" being settled.
    values: str
    score: str = "moderated"
    eta: str | float | Relative = "auto"
    scaling: str = "balanced"
    plan: str | bool = "auto"

    @property
    def single(self) -> bool:
        """Whether every feature is a group of its own."""
        return one_each(self.groups)

    @property
    def has_blocks(self) -> bool:
        """Whether there is more than one block."""
        return bool(self.block.any())

    @cached_property
    def moments(self) -> Moments:
        """Sizes, means and spreads of all classes and blocks: the table is read once."""
        return Moments.of(self.table, self.codes, len(self.classes), self.block)

    @cached_property
    def nonnegative(self) -> bool:
        """Whether no value is below zero."""
        values = self.table.data if sparse.issparse(self.table) else self.table
        return not values.size or float(values.min()) >= 0.0

    def sides(self, contrast: Contrast) -> tuple[list[int], list[int]]:
        """Return the codes of the classes on either side of a comparison."""
        first = np.flatnonzero(self.classes == contrast.first)
        if contrast.second is None:
            second = np.flatnonzero(self.classes != contrast.first)
        else:
            second = np.flatnonzero(self.classes == contrast.second)
        return first.tolist(), second.tolist()

    def dense(
        self, rows: np.ndarray, columns: Any, contrast: Contrast, adjusted: bool = True
    ) -> np.ndarray:
        """Return values of some samples and features, (n, k), without the effects of blocks."""
        part = self.table[rows][:, columns]
        values = np.array(part.toarray() if sparse.issparse(part) else part, dtype=float)
        if adjusted and self.has_blocks:
            values -= self.block_effects(contrast)[:, columns][self.block[rows]]
        return values

    def block_effects(self, contrast: Contrast) -> np.ndarray:
        """Return what each block adds to a value, (blocks, d), in the model of a comparison."""
        return self.moments.block_effects(*self.sides(contrast))


def prepare(
    selector: Any, X: Any, y: Any, block: Any = None, *, doubts: bool = True, needs_two: bool = True
) -> Prepared:
    """Check a selector's parameters and its data; sets what scikit-learn sets on the way.

    With `doubts` what is probably not meant is told; not where a fit has told it before. Without
    `needs_two` there may be any number of classes, and the comparisons are left to the caller.
    """
    params = selector.get_params()
    for name, known in CHOICES.items():
        check_choice(params[name], name, known)
    eta = check_eta(params["eta"])
    plan = check_plan(params["plan"], params["score"])
    check_labels(X, y)
    given, X = X, in_memory(X)
    columns = getattr(X, "columns", None)
    if columns is not None and hasattr(X, "set_axis") and not columns.is_unique:
        # scikit-learn wants names that differ: probes of one gene are TP53, TP53#2.
        X = X.set_axis(distinct(list(map(str, columns))), axis=1)
    try:
        X, y = validate_data(
            selector,
            X,
            y,
            accept_sparse="csc",
            dtype=(np.float64, np.float32),
            ensure_all_finite=True if params["missing"] == "error" else "allow-nan",
            ensure_min_samples=2,
        )
        check_classification_targets(y)
    except ValueError as error:
        raise _refusal(error, given) from None
    classes, codes = np.unique(y, return_inverse=True)
    if doubts:
        warn_of_alike_labels(classes)
        warn_of_repeated_samples(X, row_names(given), in_blocks=block is not None)
        warn_of_empty_features(X, None if columns is None else list(columns))
        warn_of_intensities(X)
    names = getattr(selector, "feature_names_in_", None)
    if names is not None and columns is not None:
        # As they were: a set that has TP53 has all of its probes.
        names = np.array(list(map(str, columns)), dtype=object)
    groups = read_groups(params["groups"], X.shape[1], names)
    picks = check_picks(
        params["n_features_to_select"], params["threshold"], len(groups), one_each(groups)
    )
    table = fill_missing(X, params["missing"])
    blocks = read_blocks(block, len(codes))
    contrasts: list[Contrast] = []
    if needs_two:
        contrasts = contrasts_of(codes, classes, blocks, _position(params["reference"], classes))
    if doubts:
        warn_of_single_classes(contrasts)
    return Prepared(
        table=table,
        codes=codes,
        classes=classes,
        block=blocks,
        contrasts=tuple(contrasts),
        groups=groups,
        names=tuple(f"x{column}" for column in range(X.shape[1]))
        if names is None
        else tuple(map(str, names)),
        picks=picks,
        values=kind_of_values(table) if params["values"] == "auto" else params["values"],
        score=params["score"],
        eta=eta,
        scaling=params["scaling"],
        plan=plan,
    )


def _position(reference: Any, classes: np.ndarray) -> int | None:
    """The position of a class that is named as in y, or as text."""
    if reference is None:
        return None
    for index, label in enumerate(classes.tolist()):
        if isinstance(reference, str) and reference == str(label):
            return index
        if isinstance(reference, int | float | np.generic) and reference == label:
            return index
    hint = did_you_mean(reference, classes.tolist()) if isinstance(reference, str) else ""
    raise InputError(
        f"reference: {brief(reference)} is not a class of y; the classes are "
        f"{quote_some(classes.tolist())}{hint}"
    )

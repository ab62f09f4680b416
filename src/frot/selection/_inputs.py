"""Checks of what goes into a fit: table, labels, weights, groups and options, before any work."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from frot._base.contract import refuse_masked, refuse_unfit_table
from frot._base.errors import DataWarning, InputError, brief, warn_caller
from frot._base.names import quote_some
from frot._base.validate import (
    check_callable,
    check_choice,
    check_count,
    check_flag,
    check_number,
    read_numbers,
)
from frot.groups.groups import Groups
from frot.problem.adversary import Simplex, SimplexFamily
from frot.problem.terms import Relative, eta_and_prior
from frot.selection._comparison import (
    MULTICLASS,
    OF_PLAN,
    ComparedTable,
    ComparisonSettings,
    Contrast,
    contrasts_of,
)
from frot.selection._costs import one_each
from frot.selection._effects import VALUES, kind_of_values
from frot.selection._frank_wolfe import Watch
from frot.selection._scaling import SCALINGS


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


def _where_nan(X: Any) -> str:
    """Say how many entries of a table are NaN and where the first is; nothing of a sparse one."""
    try:
        found = np.isnan(np.asarray(X, dtype=float))
    except (TypeError, ValueError):
        return ""
    if found.ndim != 2 or not found.any():
        return ""
    row, column = (int(at) for at in np.argwhere(found)[0])
    names = getattr(X, "columns", None)
    feature = column if names is None else brief(str(names[column]))
    return f", {int(found.sum())} of {found.size}, the first in row {row}, feature {feature}"


def _refusal(error: ValueError, X: Any) -> InputError:
    """Say what scikit-learn refused in a table, and the fix where one is known."""
    first = str(error).partition("\n")[0]
    if first == "Input X contains NaN.":
        # scikit-learn names estimators that take NaN, of which this is one.
        fix = "missing='impute' puts the mean of a feature there, missing='drop' leaves it out"
        return InputError(f"X: contains NaN{_where_nan(X)}; {fix}")
    if first.startswith("Input X contains infinity"):
        return InputError("X: contains infinity, or numbers too large; replace them")
    if first.startswith("could not convert string to float"):
        text = [name for name in getattr(X, "columns", ()) if not _is_numbers(X[name])]
        where = f"columns {quote_some(text)} hold" if text else "holds"
        return InputError(f"X: {where} text; leave it out, or make numbers of it")
    return InputError(str(error))


def _is_numbers(column: Any) -> bool:
    try:
        np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        return False
    return True


def check_sample_weight(sample_weight: Any, count: int) -> np.ndarray | None:
    """Return weights >= 0 of the samples, the largest being one; None stands for equal ones.

    Examples
    --------
    >>> check_sample_weight([1, 2], 2)
    array([0.5, 1. ])
    """
    if sample_weight is None:
        return None
    weight = read_numbers(sample_weight, "sample_weight")
    if weight.shape != (count,):
        raise InputError(
            f"sample_weight: has shape {weight.shape}; give one weight per row, shape ({count},)"
        )
    if not np.isfinite(weight).all() or (weight < 0.0).any():
        raise InputError("sample_weight: must be finite and >= 0; drop rows with weight zero")
    if not weight.any():
        raise InputError("sample_weight: all weights are zero; leave it out for equal weights")
    return weight / weight.max()


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


def check_weigher(
    adversary: Any, count: int, eta: float | str | Relative
) -> tuple[SimplexFamily, float | str | Relative]:
    """Return the weights that groups may have, and eta, which either may give."""
    found = Simplex() if adversary is None else adversary
    if not isinstance(found, SimplexFamily):
        raise InputError(
            f"adversary: FROTSelector does not take {brief(found)}; use frot.CappedSimplex(k)"
        )
    if found.log_prior is not None:
        raise InputError("adversary: FROTSelector takes no prior; leave log_prior out")
    found.check(count)
    if found.eta != 0.0:
        eta, _ = eta_and_prior(found, 0.0 if eta == "auto" else eta, None)
    return found.having(0.0, None), eta


def check_plan(plan: Any, score: str) -> str | bool:
    """Return whether to make a plan; refuse to make none where the score is read off it."""
    if not isinstance(plan, bool | np.bool_) and not (isinstance(plan, str) and plan == "auto"):
        raise InputError(f"plan: {brief(plan)} is none of 'auto', True and False")
    if not plan and score in OF_PLAN:
        raise InputError(
            f"plan: score={score!r} is read off the plan; leave plan out, or rank by "
            "'moderated', 't', 'shift' or 'shape'"
        )
    return plan if isinstance(plan, str) else bool(plan)


@lru_cache(maxsize=8)
def _unnamed(n_features: int) -> Groups:
    """Make up names for features once, not for every fit."""
    return Groups.each(n_features)


def read_groups(spec: Any, n_features: int, names: np.ndarray | None) -> Groups:
    """Parse groups, and say what to do where they need the features' names."""
    if names is None and (spec is None or (isinstance(spec, str) and spec == "each")):
        return _unnamed(n_features)
    try:
        return Groups.parse(spec, n_features, None if names is None else list(map(str, names)))
    except InputError as error:
        text = str(error).replace(
            "pass DataFrames, or feature_names", "pass X as a DataFrame with named columns"
        )
        raise InputError(text if text.startswith("group") else f"groups: {text}") from None


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


SCORES = ("moderated", "t", "shift", "shape", *OF_PLAN)
# "auto" is "set" for groups of features and "moderated" for single ones.
RANKINGS = ("auto", *SCORES, "set")
CHOICES = {
    "scaling": SCALINGS,
    "score": RANKINGS,
    "multiclass": MULTICLASS,
    "missing": MISSING,
    "group_cost": ("mean", "sum"),
    "values": VALUES,
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared(ComparedTable):
    """Checked inputs of a fit."""

    # Labels as positions in `classes`.
    codes: np.ndarray
    classes: np.ndarray
    # How many groups to select, where that is set.
    picks: int | None
    multiclass: str
    score: str
    # Of a fit; runs that are many have none.
    watch: Watch
    plan: str | bool
    # What the numbers are, "auto" being settled.
    values: str
    # The class, as a position in `classes`, that the others are compared with.
    reference: int | None = None

    def contrasts(self, codes: np.ndarray | None = None) -> list[Contrast]:
        """Return the comparisons, under the labels of the data or under others."""
        codes = self.codes if codes is None else codes
        return contrasts_of(codes, self.classes, self.multiclass, self.weight, self.reference)

    def compared_codes(self) -> list[tuple[int, int | None]]:
        """Return the classes that are compared, by code; None is every other sample."""
        contrasts = self.contrasts()
        pairs = []
        for one in contrasts:
            rest = len(contrasts) == 1 or one.second is None
            first, second = (int(self.codes[rows[0]]) for rows in one.rows)
            pairs.append((first, None if rest else second))
        return pairs

    def weighted_only(self, blocks: np.ndarray) -> tuple[Prepared, np.ndarray]:
        """Leave out samples of weight zero, which would carry labels away; blocks count from 0."""
        if self.weight is None or self.weight.all():
            return self, blocks
        kept = np.flatnonzero(self.weight)
        smaller = replace(
            self, table=self.table[kept], codes=self.codes[kept], weight=self.weight[kept]
        )
        return smaller, np.unique(blocks[kept], return_inverse=True)[1]


def prepare(selector: Any, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
    """Check a selector's parameters and its data; sets what scikit-learn sets on the way."""
    params = selector.get_params()
    for name, known in CHOICES.items():
        check_choice(params[name], name, known)
    eta = check_eta(params["eta"])
    tol = check_number(params["tol"], "tol", strict=True)
    max_iter = check_count(params["max_iter"], "max_iter")
    seconds = params["time_limit"]
    watch = Watch(
        None if seconds is None else check_number(seconds, "time_limit", strict=True),
        check_callable(params["callback"], "callback"),
        check_flag(params["progress"], "progress"),
    )
    plan = check_plan(params["plan"], params["score"])
    check_labels(X, y)
    given = X
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
    weight = check_sample_weight(sample_weight, X.shape[0])
    groups = read_groups(params["groups"], X.shape[1], getattr(selector, "feature_names_in_", None))
    single = one_each(groups)
    number, threshold = params["n_features_to_select"], params["threshold"]
    picks = check_picks(number, threshold, len(groups), single)
    score = params["score"]
    if score == "auto":
        score = "moderated" if single else "set"
    weights, eta = check_weigher(params["adversary"], len(groups), eta)
    table = fill_missing(X, params["missing"])
    return Prepared(
        table=table,
        codes=codes,
        classes=classes,
        weight=weight,
        groups=groups,
        picks=picks,
        multiclass=params["multiclass"],
        score=score,
        settings=ComparisonSettings(
            params["scaling"], eta, picks, params["group_cost"], tol, max_iter, weights
        ),
        watch=watch,
        plan=plan,
        values=kind_of_values(table) if params["values"] == "auto" else params["values"],
        reference=_class_number(params["reference"], classes),
    )


def _class_number(reference: Any, classes: np.ndarray) -> int | None:
    """The position of a class that is named as in y, or as text."""
    if reference is None:
        return None
    for at, one in enumerate(classes.tolist()):
        if isinstance(reference, str) and reference == str(one):
            return at
        if isinstance(reference, int | float | np.generic) and reference == one:
            return at
    raise InputError(
        f"reference: {brief(reference)} is not a class of y; the classes are "
        f"{quote_some(classes.tolist())}"
    )

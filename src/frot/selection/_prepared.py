"""From a selector and its data to what is compared: everything is checked before any work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from frot._base.validate import (
    check_callable,
    check_choice,
    check_count,
    check_flag,
    check_number,
)
from frot.groups.groups import Groups
from frot.selection._classes import MULTICLASS, Contrast, contrasts_of
from frot.selection._compare import Settings
from frot.selection._fit import Limits, Watch
from frot.selection._inputs import (
    check_eta,
    check_labels,
    check_picks,
    check_sample_weight,
    check_weigher,
    read_groups,
)
from frot.selection._missing import MISSING, fill_missing
from frot.selection._scaling import SCALINGS

__all__ = ["SCORES", "Prepared", "prepare"]

SCORES = ("combined", "alpha", "phi", "shift", "shape", "misalignment")
GROUP_COSTS = ("mean", "sum")


@dataclass(frozen=True, eq=False)
class Prepared:
    """Checked inputs of a fit.

    Attributes
    ----------
    table : array or CSC array of shape (N, d)
        Without NaN.
    codes : array of int, shape (N,)
        Labels as positions in `classes`.
    weight : array of shape (N,), or None for equal weights
    picks : int or None
        How many groups to select, where that is set.
    watch : Watch
        Of a fit; runs that are many have none.
    """

    table: Any
    codes: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None
    groups: Groups
    picks: int | None
    multiclass: str
    score: str
    settings: Settings
    watch: Watch

    def contrasts(self, codes: np.ndarray | None = None) -> list[Contrast]:
        """Return the comparisons, under the labels of the data or under others."""
        codes = self.codes if codes is None else codes
        return contrasts_of(codes, self.classes, self.multiclass, self.weight)


def prepare(selector: Any, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
    """Check a selector's parameters and its data; sets what scikit-learn sets on the way."""
    params = selector.get_params()
    check_choice(params["scaling"], "scaling", SCALINGS)
    check_choice(params["score"], "score", SCORES)
    check_choice(params["multiclass"], "multiclass", MULTICLASS)
    check_choice(params["missing"], "missing", MISSING)
    check_choice(params["group_cost"], "group_cost", GROUP_COSTS)
    eta = check_eta(params["eta"])
    tol = check_number(params["tol"], "tol", strict=True)
    max_iter = check_count(params["max_iter"], "max_iter")
    watch = _check_watch(params["time_limit"], params["callback"], params["progress"])
    check_labels(X, y)
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
    classes, codes = np.unique(y, return_inverse=True)
    weight = check_sample_weight(sample_weight, X.shape[0])
    groups = read_groups(params["groups"], X.shape[1], getattr(selector, "feature_names_in_", None))
    single = groups.in_order and len(groups) == X.shape[1]
    number, threshold = params["n_features_to_select"], params["threshold"]
    picks = check_picks(number, threshold, len(groups), single)
    limits = Limits(tol, max_iter)
    weights, eta = check_weigher(params["adversary"], len(groups), eta)
    return Prepared(
        table=fill_missing(X, params["missing"]),
        codes=codes,
        classes=classes,
        weight=weight,
        groups=groups,
        picks=picks,
        multiclass=params["multiclass"],
        score=params["score"],
        settings=Settings(params["scaling"], eta, picks, params["group_cost"], limits, weights),
        watch=watch,
    )


def _check_watch(time_limit: Any, callback: Any, progress: Any) -> Watch:
    """Return who watches a fit, and how long it may take."""
    if time_limit is not None:
        time_limit = check_number(time_limit, "time_limit", strict=True)
    callback = check_callable(callback, "callback")
    return Watch(time_limit, callback, check_flag(progress, "progress"))

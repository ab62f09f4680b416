"""What a user may pass to fit: checked once, with one sentence for each thing that is wrong."""

from __future__ import annotations

from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import numpy as np

from frot._base.errors import InputError, brief
from frot._base.numbers import read_numbers
from frot._base.validate import check_number
from frot.groups.groups import Groups
from frot.problem.adversary import Simplex, SimplexFamily, given_once
from frot.problem.amounts import Relative

__all__ = [
    "check_eta",
    "check_labels",
    "check_picks",
    "check_sample_weight",
    "check_weigher",
    "read_groups",
]


def check_labels(X: Any, y: Any) -> None:
    """Refuse labels that do not match the rows; what they hold is looked at later."""
    if y is None or not (hasattr(X, "shape") or hasattr(X, "__len__")):
        return
    rows = X.shape[0] if getattr(X, "shape", None) else len(X)
    shape = np.shape(y)
    if shape and shape[0] != rows:
        raise InputError(f"y: has {shape[0]} labels for the {rows} rows of X; give one label a row")


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
            f"sample_weight: has shape {weight.shape}; give one weight a row, shape ({count},)"
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
                f"n_features_to_select: {number!r} is no fraction in (0, 1]; for a count give a "
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
        eta, _ = given_once(found, 0.0 if eta == "auto" else eta, None)
    return found.having(0.0, None), eta


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
        text = str(error).replace("pass feature_names", "pass X as a DataFrame with named columns")
        raise InputError(text if text.startswith("group") else f"groups: {text}") from None

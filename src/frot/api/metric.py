"""When FRWD_p is a metric: what `distance` and `pairwise` refuse, with the reason."""

from __future__ import annotations

from typing import Any

from frot._base.errors import InputError, brief
from frot._base.validate import check_choice
from frot.costs import METRICS
from frot.groups.groups import Groups
from frot.problem.terms import NORMALISATIONS, Relative

FAILS = "is no metric, since the triangle inequality fails"
# What SciPy has that is no metric, and why. What else is in `METRICS` is a squared distance.
NO_METRICS = {
    "sqeuclidean": f"{FAILS}; use metric='euclidean' (with p=2 the same costs, and a root)",
    "cosine": f"{FAILS}, and vectors of one direction are at 0 whatever their lengths",
    "correlation": f"{FAILS}, and so do vectors that differ by a factor and an offset",
    "braycurtis": f"{FAILS}; use metric='cityblock'",
    "dice": f"{FAILS}; use metric='jaccard'",
    "yule": f"{FAILS}; use metric='jaccard'",
    "russellrao": "is no metric, since equal points are not at 0; use metric='jaccard'",
    "seuclidean": "divides by the variances of the pair itself, so that distances between "
    "different pairs are in other units; scale the features of all points alike, and use "
    "metric='euclidean'",
    "mahalanobis": "takes the covariance of the pair itself, so that distances between different "
    "pairs are in other units; whiten all points alike, and use metric='euclidean'",
}
NORMALISED = {
    "mean": "divides by costs of the pair itself, so that the triangle inequality fails",
    "regret": "subtracts what the pair costs at least, so that different clouds are at 0",
}


def refuse_normalised(how: Any) -> None:
    """Refuse to make groups comparable within each pair: others would be in other units.

    Examples
    --------
    >>> refuse_normalised("none")
    >>> refuse_normalised("mean")
    Traceback (most recent call last):
    ...
    frot.InputError: normalise: 'mean' divides by costs of the pair itself, so that the triangle ...
    """
    how = check_choice(how, "normalise", NORMALISATIONS)
    if how != "none":
        raise InputError(
            f"normalise: {how!r} {NORMALISED[how]}; leave it out for a distance (scale the "
            "features of all clouds alike instead), or use frot.solve for such a value"
        )


def refuse_shares(**amounts: Any) -> None:
    """Refuse `relative` amounts, single or in pairs: of another pair they are other numbers.

    Examples
    --------
    >>> import frot
    >>> refuse_shares(eta=0.1, tau=None)
    >>> refuse_shares(eps=frot.relative(0.02))
    Traceback (most recent call last):
    ...
    frot.InputError: eps: relative(0.02) is a share of each pair's own mean cost, so that...
    """
    for name, amount in amounts.items():
        for part in amount if isinstance(amount, list | tuple) else (amount,):
            if isinstance(part, Relative):
                raise InputError(
                    f"{name}: relative({part.share:g}) is a share of each pair's own mean cost, "
                    "so that entries would be values of different problems; pass one number for "
                    "all pairs (frot.solve says result.mean_cost), or use frot.solve, one by one"
                )


def refuse_no_metric(metric: Any, groups: Groups) -> None:
    """Refuse costs under which FRWD_p is no metric; a callable is taken at its word.

    Examples
    --------
    >>> refuse_no_metric("euclidean", Groups.all(2))
    >>> refuse_no_metric("cosine", Groups.all(2))
    Traceback (most recent call last):
    ...
    frot.InputError: metric: 'cosine' is no metric, since the triangle inequality fails, and vect...
    >>> refuse_no_metric("euclidean", Groups.parse([[0]], 2))
    Traceback (most recent call last):
    ...
    frot.InputError: groups: leave out 1 of 2 features, in which different sets of points may dif...
    """
    if isinstance(metric, str) and (metric in NO_METRICS or metric in METRICS):
        why = NO_METRICS.get(metric, f"{FAILS}: it is the square of a distance")
        raise InputError(f"metric: {brief(metric)} {why}; or use frot.solve for the value")
    if not groups.covers:
        out = groups.n_features - len(set(groups.flat.tolist()))
        raise InputError(
            f"groups: leave out {out} of {groups.n_features} features, in which different sets of "
            "points may differ and still be at 0; drop these features, or use frot.solve for the "
            "value"
        )

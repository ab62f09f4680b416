"""`distance`: FRWD_p, and what makes it no metric, which `pairwise` refuses too."""

from __future__ import annotations

from typing import Any

from frot._base.errors import InputError, brief
from frot._base.validate import (
    check_choice,
    check_metric,
    check_number,
    check_two_clouds,
    second_names,
)
from frot.api.solve import solve
from frot.costs import METRICS
from frot.groups.groups import Groups
from frot.problem.adversary import SimplexFamily
from frot.problem.options import NORMALISATIONS, Relative, amount_at, check_amount


@second_names
def distance(
    X: Any, Y: Any, groups: Any = None, *, p: float = 2.0, metric: Any = "euclidean", **options: Any
) -> float:
    r"""Return the feature-robust Wasserstein distance (the paper's proposition 1).

    .. math::
        \mathrm{FRWD}_p(\mu, \nu) = \Big( \min_\Pi \max_{\alpha \in \Sigma^L}
        \sum_{ij} \pi_{ij} \sum_l \alpha_l\, d(x_i^{(l)}, y_j^{(l)})^p \Big)^{1/p}

    It is a metric between weighted sets of points for every p >= 1 and every metric d, and with
    ``adversary=frot.CappedSimplex(k)`` as well: whatever the weights of groups are, the triangle
    inequality is Minkowski's, and a maximum preserves it. What makes it none is refused: costs d
    that are no metric (squared Euclidean, cosine), groups that leave features out, and scales that
    depend on the pair.

    Parameters
    ----------
    X, Y, groups :
        As in `solve`.
    p : float
        The order, at least 1.
    metric : str or callable
        The distance d within a group, a metric; a callable is taken at its word.
    **options :
        As in `solve`; eta, eps and normalise must be left out, since they make it no distance.

    Examples
    --------
    >>> import frot
    >>> frot.distance([[0.0, 0.0]], [[3.0, 4.0]], groups="each")
    4.0
    >>> frot.distance([[0.0, 0.0]], [[3.0, 4.0]], groups="all")
    5.0
    """
    p = check_number(p, "p", least=1.0)
    given = [(name, options[name]) for name in ("eta", "eps") if name in options]
    if any(amount_at(check_amount(amount, name)) != 0.0 for name, amount in given):
        raise InputError("eta, eps: a distance has neither; use frot.solve for regularised values")
    for name in ("tau", "mass"):
        if options.get(name) is not None:
            raise InputError(f"{name}: a distance keeps all mass; use frot.solve for such a value")
    weights = options.get("adversary")
    if isinstance(weights, SimplexFamily) and weights.eta != 0.0:
        raise InputError("adversary: a distance has no eta; use frot.solve for regularised values")
    if not isinstance(weights, SimplexFamily | None):
        raise InputError(
            "adversary: a distance needs weights of sum one, frot.CappedSimplex(k) or none; use "
            "frot.solve for other sets"
        )
    refuse_normalised(options.get("normalise", "none"))
    points, _, columns = check_two_clouds(X, Y)
    groups = Groups.parse(groups, points.shape[1], columns)
    refuse_no_metric(check_metric(metric, METRICS), groups)
    value = solve(X, Y, groups, p=p, metric=metric, **options).value
    return float(max(value, 0.0) ** (1.0 / p))


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

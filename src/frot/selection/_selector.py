"""`FROTSelector`: feature-robust optimal transport as a scikit-learn feature selector."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from frot._base.errors import InputError, brief
from frot._base.stopping import Interrupted
from frot.selection._comparison import Comparison, Parts, compare
from frot.selection._gene_sets import set_scores
from frot.selection._inputs import Prepared, prepare
from frot.solvers import Callback

__all__ = ["FROTSelector", "make_table", "unfitted"]


def make_table(columns: dict[str, np.ndarray]) -> Any:
    """Return the columns as a table.

    Examples
    --------
    >>> make_table({"feature": np.array(["a", "b"], dtype=object), "rank": np.array([1, 2])})
      feature  rank
    0       a     1
    1       b     2
    """
    if importlib.util.find_spec("pandas") is None:
        return columns
    import pandas as pd

    return pd.DataFrame(columns)


# Seconds of a comparison whose time is up before it begins.
NO_TIME = 1e-9


class _Parameter:
    """A constructor's parameter that is not an attribute for reading.

    To scikit-learn an attribute `score` is the method that tells how well an estimator predicts,
    and a selector has none. What the parameter is, `get_params` tells.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> str:
        raise AttributeError(
            f"FROTSelector has no {self.name} method; its parameter is get_params()[{self.name!r}]"
        )

    def __set__(self, instance: object, value: str) -> None:
        vars(instance)[self.name] = value


def _ranked(
    scores: np.ndarray, phi: np.ndarray, shift: np.ndarray, constant: np.ndarray
) -> np.ndarray:
    """Return positions by score, ties by cost and shift; those that do not vary come last."""
    keys = np.where(constant, np.inf, -scores)
    order = np.argsort(keys)
    sorted_keys = keys[order]
    if (sorted_keys[1:] > sorted_keys[:-1]).all():
        return order
    return np.lexsort((-shift, -phi, keys))


def _compare_all(prepared: Prepared) -> tuple[tuple[Comparison, ...], Interrupted | None]:
    """Hold class against class; the last answer may be one that Ctrl-C cut short."""
    contrasts, found = prepared.contrasts(), []
    watch, begin = prepared.watch, time.perf_counter()
    for turn, contrast in enumerate(contrasts):
        if prepared.watch.time_limit is not None:
            left = prepared.watch.time_limit - (time.perf_counter() - begin)
            # No time is no limit that a run could have.
            watch = replace(watch, time_limit=max(left / (len(contrasts) - turn), NO_TIME))
        given = prepared.table, contrast, prepared.groups, prepared.settings, prepared.weight
        try:
            found.append(compare(*given, watch))
        except Interrupted as stop:
            found.append(stop.result)
            if len(found) < len(contrasts):
                raise KeyboardInterrupt(
                    f"{turn} of {len(contrasts)} comparisons were done: the selector is not fitted"
                ) from None
            return tuple(found), stop
    return tuple(found), None


class FROTSelector(SelectorMixin, BaseEstimator):
    r"""Select the features, or groups of features, that tell classes apart.

    The samples of two classes are transported onto each other by the plan that is best against
    the worst weights on the features,

    .. math::
        \min_{\Pi \in U(a, b)} \max_{\alpha \in \Sigma^L} \sum_l \alpha_l \phi_l(\Pi)
        - \eta \sum_l \alpha_l \log \alpha_l,
        \qquad \phi_l(\Pi) = \sum_{ij} \pi_{ij} (x_{il} - y_{jl})^2,

    and the features are ranked by what they cost even so. Each cost is the sum of a squared shift
    of the mean, a change of shape, and misalignment with the plan.

    On expression data this ranking is about as accurate as that of the mean difference
    (``f_classif``), not more; what it adds are the plan, the groups and the parts.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        How many features, or groups, to keep: a count, or a fraction of them. None is half, or
        all that reach `threshold` if one is given.
    threshold : float, optional
        The least score to keep.
    groups : optional
        "each", one group a feature, or whatever `frot.Groups.parse` reads: a `frot.Groups`, a
        mapping from names to members, the path of a ``.gmt`` file... Groups are kept or left
        out whole; they may overlap.
    scaling : {"balanced", "paper", "none"}
        "balanced" centres each feature at the midpoint of the class means and scales it so that
        the mean squares of the two classes sum to 2. "paper" standardises over both classes
        pooled, where the larger class sets the scale.
    eta : "auto", float or `frot.relative`
        Entropy of the weights. "auto" is the eta at which the perplexity of alpha is three times
        the number to select, at most half of the groups, and never less than 1.5 % of the mean
        cost: where classes hardly differ, the best plan makes many costs equal, and no larger
        eta would give so small a perplexity.
    score : {"auto", "combined", "alpha", "phi", "shift", "shape", "misalignment", "set"}
        What to rank by. "auto" is "set" for groups of features, and "combined" where each is by
        itself. "set" is how far a group's members differ beyond what random groups of the same
        size and correlation do, in standard deviations of permuted labels: see `pathway_test`,
        which has p-values for it. "combined" is :math:`\phi_l + 4 r_l^2` with r the correlation of
        the feature with the class; both terms lie between 0 and 4, for balanced scaling. "alpha"
        is the paper's; "phi" gives the same order for two classes. Ranked by these alone, few
        features of weak signals are a little less accurate.
    multiclass : {"ovr", "ovo"}
        With three or more classes: each against the rest, or every pair. Scores are the means
        over the comparisons; `comparisons_` has each.
    missing : {"error", "impute", "drop"}
        What to do with NaN: refuse it, replace it by the feature's mean over all samples, or
        score the feature zero.
    group_cost : {"mean", "sum"}
        Whether a group costs the mean over its features or the sum. A plan cannot align many
        features at once, so that large groups cost more even as means: no reason to rank by it.
    tol : float
        Relative gap between the bounds at which to stop.
    max_iter : int
        Transport problems to solve at most, for each comparison; no fewer than 2.
    time_limit : float, optional
        Seconds, for solving; several comparisons get equal shares of what is left of it.
    callback : callable, optional
        Called with a `frot.Progress` after every transport problem, once there are bounds;
        returning True stops the comparison.
    progress : bool
        Show a progress bar for each comparison.
    adversary : frot.Simplex or frot.CappedSimplex, optional
        The weights that groups may have. With ``frot.CappedSimplex(k)`` no group has more than
        1/k of the weight, so that no few groups hide the others.

    Attributes
    ----------
    scores_ : array of shape (L,)
        Score of every feature (group). Zero for those that do not vary, which come last.
    ranking_ : array of int, shape (L,)
        Rank of every feature (group); 1 is the best.
    alpha_, phi_, shift_, shape_, misalignment_, combined_ : arrays of shape (L,)
        Weights, costs and their three parts, in scaled units, and the combined score; means over
        comparisons.
    plan_, result_, eta_ :
        `frot.Plan`, `frot.Result` (with ``lower`` and ``upper``) and eta. With three or more
        classes, tuples in the order of `comparisons_`.
    comparisons_ : tuple of Comparison
        What was held against what, with all of the above and the rows behind each plan.
    table_ : DataFrame, or dict of arrays where pandas is not installed
        feature, rank, score, shift, shape, misalignment, alpha, p, q, q_bh and p_max, best first;
        the last four are NaN until `permutation_test`, or `pathway_test` for two of them, was run.
    groups_ : frot.Groups
    groups_support_ : array of bool, shape (L,)
        Which groups are kept.
    n_iter_ : int
        Transport problems that were solved, in the longest comparison.
    classes_ : array
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> selector = FROTSelector(n_features_to_select=3).fit(X, y)
    >>> selector.get_feature_names_out().tolist()
    ['mean concave points', 'worst perimeter', 'worst concave points']
    >>> selector.result_.lower <= selector.result_.value <= selector.result_.upper
    True
    """

    score = _Parameter()
    n_features_in_: int
    feature_names_in_: np.ndarray
    # Of one comparison, or tuples of several.
    plan_: Any
    result_: Any
    eta_: Any

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        threshold: float | None = None,
        groups: Any = "each",
        scaling: str = "balanced",
        eta: Any = "auto",
        score: str = "auto",
        multiclass: str = "ovr",
        missing: str = "error",
        group_cost: str = "mean",
        tol: float = 1e-2,
        max_iter: int = 500,
        time_limit: float | None = None,
        callback: Callback | None = None,
        progress: bool = False,
        adversary: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.groups = groups
        self.scaling = scaling
        self.eta = eta
        self.score = score
        self.multiclass = multiclass
        self.missing = missing
        self.group_cost = group_cost
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.callback = callback
        self.progress = progress
        self.adversary = adversary

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` makes no difference."""
        return {name: vars(self)[name] for name in self._get_param_names()}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FROTSelector:
        """Compare the classes and rank the features.

        Parameters
        ----------
        X : array, sparse array or DataFrame of shape (N, d)
            Sparse tables are read a block of features at a time, never made dense whole.
        y : array of shape (N,)
            Labels of two or more classes, of two or more samples each.
        sample_weight : array of shape (N,), optional
            Weights of the samples within their classes; those of weight zero are left out.

        Returns
        -------
        FROTSelector
            Itself.

        Raises
        ------
        frot.Interrupted
            On Ctrl-C, once the selector is fitted with the best certified answer until then. With
            three or more classes the comparisons whose turn never came leave it unfitted, and the
            `KeyboardInterrupt` says so.
        """
        prepared = prepare(self, X, y, sample_weight)
        comparisons, interrupt = _compare_all(prepared)
        constant = np.logical_and.reduce([found.constant for found in comparisons])
        if constant.all():
            raise InputError(
                "X: no feature varies, so that nothing tells the classes apart; check the table"
            )
        self.classes_ = prepared.classes
        self.groups_ = prepared.groups
        self.comparisons_ = comparisons
        parts = Parts.mean([found.parts for found in comparisons])
        self.combined_ = np.mean([found.combined for found in comparisons], axis=0)
        self.alpha_ = np.mean([found.alpha for found in comparisons], axis=0)
        self.phi_, self.shift_ = parts.phi, parts.shift
        self.shape_, self.misalignment_ = parts.shape, parts.misalignment
        alone = len(comparisons) == 1
        self.result_ = comparisons[0].result if alone else tuple(c.result for c in comparisons)
        self.plan_ = comparisons[0].plan if alone else tuple(c.plan for c in comparisons)
        self.eta_ = comparisons[0].eta if alone else tuple(c.eta for c in comparisons)
        if prepared.score == "set":
            self.set_ = set_scores(prepared)
        self.scores_ = np.where(constant, 0.0, getattr(self, f"{prepared.score}_"))
        order = _ranked(self.scores_, self.phi_, self.shift_, constant)
        self.ranking_ = np.empty(len(order), dtype=int)
        self.ranking_[order] = np.arange(1, len(order) + 1)
        self.groups_support_ = np.ones(len(order), dtype=bool)
        if prepared.picks is not None:
            self.groups_support_ &= self.ranking_ <= prepared.picks
        if self.threshold is not None:
            self.groups_support_ &= self.scores_ >= self.threshold
        self.n_iter_ = max(found.result.iterations for found in comparisons)
        # Of an earlier fit.
        for found in ("permutation_", "pathways_"):
            vars(self).pop(found, None)
        if interrupt is not None:
            raise Interrupted(self) from interrupt
        return self

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Return which features are kept: a mask of shape (d,), or their positions."""
        return np.asarray(super().get_support(indices=indices))

    def permutation_test(self, X: Any, y: Any, **options: Any) -> Any:
        """Test the features by permuting labels, and put p and q into `table_`.

        Parameters
        ----------
        X, y :
            What the selector was fitted on.
        **options :
            As in `frot.selection.permutation_test`.

        Returns
        -------
        PermutationTest
            Also kept as `permutation_`.
        """
        from frot.selection._permutation import permutation_test

        check_is_fitted(self)
        test = permutation_test(X, y, selector=self, **options)
        if test.names != self.groups_.names:
            raise InputError("X: is not what the selector was fitted on; fit it again")
        self.permutation_ = test
        return test

    def pathway_test(self, X: Any, y: Any, **options: Any) -> Any:
        """Test the groups against two nulls, and put the competitive p and q into `table_`.

        Parameters
        ----------
        X, y :
            What the selector was fitted on.
        **options :
            As in `frot.selection.pathway_test`.

        Returns
        -------
        PathwayTest
            Also kept as `pathways_`.
        """
        from frot.selection._pathway_test import pathway_test

        check_is_fitted(self)
        sizes = {"min_size": 1, "max_size": self.n_features_in_}
        self.pathways_ = pathway_test(X, y, self.groups_, selector=self, **sizes, **options)
        return self.pathways_

    def _get_support_mask(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        for position in np.flatnonzero(self.groups_support_):
            mask[self.groups_.indices[position]] = True
        return mask

    @property
    def p_values(self) -> tuple[np.ndarray, np.ndarray]:
        """P- and q-values of the features (groups), NaN until they were tested."""
        check_is_fitted(self)
        tested = self._tested()
        return tested["p"], tested["q"]

    @property
    def table_(self) -> Any:
        """Features, or groups, by rank."""
        check_is_fitted(self)
        order = np.argsort(self.ranking_)
        columns = {
            "feature": np.array(self.groups_.names, dtype=object)[order],
            "rank": self.ranking_[order],
            "score": self.scores_[order],
            "shift": self.shift_[order],
            "shape": self.shape_[order],
            "misalignment": self.misalignment_[order],
            "alpha": self.alpha_[order],
            **{name: values[order] for name, values in self._tested().items()},
        }
        return make_table(columns)

    def _tested(self) -> dict[str, np.ndarray]:
        """What a test found, NaN until one was run."""
        unknown = np.full(len(self.scores_), np.nan)
        found: dict[str, np.ndarray] = {name: unknown for name in ("p", "q", "q_bh", "p_max")}
        sets, test = (getattr(self, name, None) for name in ("pathways_", "permutation_"))
        if sets is not None:
            found |= {"p": sets.p_competitive, "q": sets.q_competitive}
        elif test is not None:
            found = {name: getattr(test, name) for name in found}
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags


def unfitted(selector: FROTSelector | None = None) -> FROTSelector:
    """Return a new selector of the same parameters; the defaults for None.

    It is for runs that are many, in whatever process, and the same each time: nobody watches, and
    no clock runs.

    Examples
    --------
    >>> unfitted(FROTSelector(5)).get_params()["n_features_to_select"]
    5
    """
    if selector is None:
        return FROTSelector()
    if not isinstance(selector, FROTSelector):
        raise InputError(f"selector: {brief(selector)} is no FROTSelector; pass FROTSelector(...)")
    quiet = {"time_limit": None, "callback": None, "progress": False}
    return FROTSelector(**{**selector.get_params(), **quiet})

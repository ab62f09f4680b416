"""`FROTSelector`: feature-robust optimal transport as a scikit-learn feature selector."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from frot._base.errors import InputError, brief
from frot._base.stopping import Interrupted
from frot._base.tables import make_table
from frot.selection._comparison import (
    OF_PLAN,
    PAIRS,
    Comparison,
    Contrast,
    compare,
    sort_shapes,
    transport,
)
from frot.selection._effects import Moments
from frot.selection._inputs import SCORES, Prepared, prepare
from frot.selection._label_statistics import set_scores
from frot.solvers import Callback

if TYPE_CHECKING:
    from frot.selection._pathway_test import PathwayTest
    from frot.selection._permutation import PermutationTest

# Columns of tables: what costs are made of, and what a permutation test tells.
COSTS = ("shift", "shape", "misalignment", "alpha")
TESTED = ("p", "q", "q_bh", "p_max")
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


def _ranked(scores: np.ndarray, shift: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return positions by score, ties by the shift; those that do not vary come last."""
    keys = np.where(constant, np.inf, -scores)
    order = np.argsort(keys)
    sorted_keys = keys[order]
    if (sorted_keys[1:] > sorted_keys[:-1]).all():
        return order
    return np.lexsort((-shift, keys))


def _overall(name: str, each: list[np.ndarray]) -> np.ndarray:
    """Average scores over comparisons; of t the squares, so that a mark of one class counts."""
    if len(each) == 1:
        return each[0]
    if name in ("moderated", "t"):
        return np.sqrt(np.mean(np.square(each), axis=0))
    return np.mean(each, axis=0)


def compare_all(
    prepared: Prepared, contrasts: list[Contrast] | None = None, base: float | None = None
) -> tuple[tuple[Comparison, ...], Interrupted | None]:
    """Hold class against class, by default those of the labels.

    The table is read once for the effects of all comparisons, and then for one plan after the
    other. Where Ctrl-C ends the plans, the rest has none, and the interrupt is returned; without
    its plan a score that is read off it is none, and the interrupt is raised. `base` is that of
    logarithms in log1p tables.
    """
    contrasts = prepared.contrasts() if contrasts is None else contrasts
    codes, count = prepared.codes, len(prepared.classes)
    moments = Moments.of(prepared.table, codes, count, prepared.weight)
    found = []
    for contrast in contrasts:
        effects = moments.between(*_sides(contrast, prepared.classes, moments))
        how = {"values": prepared.values, "base": base}
        found.append(compare(prepared, contrast, effects=effects, **how))
    wanted = [place for place, one in enumerate(found) if _wants_plan(prepared, one)]
    if prepared.score == "shape":
        for place in set(range(len(found))) - set(wanted):
            found[place] = sort_shapes(found[place], prepared)
    watch, begin = prepared.watch, time.perf_counter()
    for turn, place in enumerate(wanted):
        if prepared.watch.time_limit is not None:
            left = prepared.watch.time_limit - (time.perf_counter() - begin)
            # No time is no limit that a run could have.
            watch = replace(watch, time_limit=max(left / (len(wanted) - turn), NO_TIME))
        try:
            found[place] = transport(found[place], prepared, watch, codes)
        except Interrupted as stop:
            found[place] = stop.result
            if turn + 1 < len(wanted) and prepared.score in OF_PLAN:
                raise KeyboardInterrupt(
                    f"{turn} of {len(wanted)} comparisons were done: the selector is not fitted"
                ) from None
            return tuple(found), stop
    return tuple(found), None


def _sides(
    contrast: Contrast, classes: np.ndarray, moments: Moments
) -> tuple[list[int], list[int]]:
    """Return the codes of the classes on either side."""
    first = np.flatnonzero(classes == contrast.first)
    if contrast.second is not None:
        return first.tolist(), np.flatnonzero(classes == contrast.second).tolist()
    others = (classes != contrast.first) & (moments.totals > 0.0)
    return first.tolist(), np.flatnonzero(others).tolist()


def _wants_plan(prepared: Prepared, one: Comparison) -> bool:
    if prepared.plan != "auto":
        return bool(prepared.plan)
    return one.sizes[0] * one.sizes[1] <= PAIRS or prepared.score in OF_PLAN


def _class_means(each: Sequence[Comparison]) -> dict[str, np.ndarray]:
    """Return the mean of every class, by the name of its column."""
    found: dict[str, np.ndarray] = {}
    for one in each:
        for label, mean in zip(one.labels, one.means, strict=True):
            # Everything but one class is a side of its own in a table of one comparison alone.
            if one.second is not None or label == one.labels[0] or len(each) == 1:
                found.setdefault(f"mean_{label}", mean)
    return found


class FROTSelector(SelectorMixin, BaseEstimator):
    r"""Select the features, or groups of features, that separate classes.

    The samples of two classes are transported onto each other by the plan that is best against
    the worst weights on the features,

    .. math::
        \min_{\Pi \in U(a, b)} \max_{\alpha \in \Sigma^L} \sum_l \alpha_l \phi_l(\Pi)
        - \eta \sum_l \alpha_l \log \alpha_l,
        \qquad \phi_l(\Pi) = \sum_{ij} \pi_{ij} (x_{il} - y_{jl})^2,

    Each cost is the sum of a squared shift of the mean, a change of shape, and misalignment with
    the plan. Features are ranked by a moderated t unless another score is asked for: scores of
    the plan find about as many of the features that differ among few samples, and fewer among
    many. What the plan adds is which sample corresponds to which, and the weights of groups.

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
    score : str
        What to rank by: "auto", "moderated", "t", "shift", "shape", "combined", "alpha", "phi",
        "misalignment" or "set". "auto" is "moderated" for single features and "set" for groups.
        "t" is :math:`|t|` of Welch's test, which does not assume equal variances, and
        "moderated" the same with the variance of each class drawn towards that of both, as if by
        ten more samples; of a group the root of the mean (or sum) of the squares. "set" is how far
        a group's members differ beyond what random groups of the same size and correlation do, in
        standard deviations of permuted labels: see `pathway_test`, which has p-values for it.
        "shift" is the squared difference of the means, in scaled units; "shape" what the
        Wasserstein distance of the feature has beyond that. These need no plan. "alpha", the
        paper's, and "phi", which gives the same order for two classes, are read off the plan, as
        are "misalignment" and "combined", :math:`\phi_l + 4 r_l^2` with r the correlation of the
        feature with the class.
    multiclass : {"ovr", "ovo"}
        With three or more classes: each against the rest, or every pair. Scores are means over
        the comparisons, root mean squares in the case of t; `tables_` and `comparisons_` have
        each.
    reference : label, optional
        A class of y, such as the controls. Every other class is compared with it, whatever
        `multiclass` is, and t and fold changes are positive where the other class is higher.
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
    plan : {"auto", True, False}
        Whether to find the plan, and with it alpha, phi, shape and misalignment, which are NaN
        without. "auto" does for up to 250,000 pairs of samples, and where `score` is read off the
        plan. Between more pairs than that it is a plan of samples drawn at random, classes in
        proportion and the seed fixed: ``comparisons_[0].about_plan`` says of how many. In a grid
        search False saves time, since the default score needs no plan.
    values : {"auto", "log2", "log1p", "linear"}
        What the numbers of the table are; fold changes depend on it, and nothing else does.
        "auto" takes whole numbers and numbers above 50 for linear, other sparse tables for log1p
        and other dense ones for log2.

    Attributes
    ----------
    scores_ : array of shape (L,)
        Score of every feature (group). Zero for those that do not vary, which come last.
    ranking_ : array of int, shape (L,)
        Rank of every feature (group); 1 is the best.
    moderated_, t_, shift_ : arrays of shape (L,)
        :math:`|t|`, moderated and Welch's, and the squared difference of the means, over all
        comparisons.
    alpha_, phi_, shape_, misalignment_, combined_ : arrays of shape (L,)
        Weights, costs and their parts, in scaled units, and the combined score; means over
        comparisons, NaN where there is no plan.
    plan_, result_, eta_ :
        `frot.Plan`, `frot.Result` (with ``lower`` and ``upper``) and eta; no such attributes
        where there is no plan. With three or more classes, tuples in the order of
        `comparisons_`.
    comparisons_ : tuple of Comparison
        The comparisons of classes, with all of the above, the signed effects and the rows behind
        each plan.
    table_ : DataFrame, or dict of arrays where pandas is not installed
        One row per feature (group), best first: feature, rank, score, signed_score, up_in (class
        in which it is higher), log2_fold_change and t (positive is higher in the first class),
        the mean of each class, shift, shape, misalignment, alpha, and p, q, q_bh and p_max, NaN
        until `permutation_test` (or `pathway_test`, for p and q) was run. With three or more
        classes the direction is that of the ``comparison`` with the largest moderated
        :math:`|t|`, named in a column of its own.
    tables_ : dict of such tables
        One for each comparison, by its name, such as "a vs rest".
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
    >>> selector.table_.loc[0, ["feature", "up_in"]].tolist()  # 0 is malignant
    ['worst concave points', '0']
    >>> selector.result_.lower <= selector.result_.value <= selector.result_.upper
    True
    """

    score = _Parameter()
    n_features_in_: int
    feature_names_in_: np.ndarray
    moderated_: np.ndarray
    t_: np.ndarray
    shift_: np.ndarray
    shape_: np.ndarray
    combined_: np.ndarray
    alpha_: np.ndarray
    phi_: np.ndarray
    misalignment_: np.ndarray

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
        plan: str | bool = "auto",
        values: str = "auto",
        reference: Any = None,
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
        self.plan = plan
        self.values = values
        self.reference = reference

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
            three or more classes the comparisons that were not reached have no plan; where the
            score is read off the plan they leave the selector unfitted, and the
            `KeyboardInterrupt` says so.
        """
        prepared = prepare(self, X, y, sample_weight)
        comparisons, interrupt = compare_all(prepared)
        constant = np.logical_and.reduce([found.constant for found in comparisons])
        if constant.all():
            raise InputError(
                "X: no feature varies, so that nothing tells the classes apart; check the table"
            )
        self.classes_ = prepared.classes
        self.groups_ = prepared.groups
        self.comparisons_ = comparisons
        for name in SCORES:
            setattr(self, f"{name}_", _overall(name, [one.statistic(name) for one in comparisons]))
        if prepared.score == "set":
            self.set_ = set_scores(prepared)
        self.scores_ = np.where(constant, 0.0, getattr(self, f"{prepared.score}_"))
        order = _ranked(self.scores_, self.shift_, constant)
        self.ranking_ = np.empty(len(order), dtype=int)
        self.ranking_[order] = np.arange(1, len(order) + 1)
        self.groups_support_ = np.ones(len(order), dtype=bool)
        if prepared.picks is not None:
            self.groups_support_ &= self.ranking_ <= prepared.picks
        if self.threshold is not None:
            self.groups_support_ &= self.scores_ >= self.threshold
        results = [found.result for found in comparisons if found.result is not None]
        self.n_iter_ = max((result.iterations for result in results), default=0)
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
    def plan_(self) -> Any:
        """The plan, or a tuple of plans."""
        return self._of_each("plan")

    @property
    def eta_(self) -> Any:
        """The eta that was used, or a tuple."""
        return self._of_each("eta")

    @property
    def result_(self) -> Any:
        """The `frot.Result`, or a tuple."""
        return self._of_each("solved")

    def _of_each(self, name: str) -> Any:
        check_is_fitted(self)
        each = tuple(getattr(one, name) for one in self.comparisons_)
        return each[0] if len(each) == 1 else each

    @property
    def p_values(self) -> tuple[np.ndarray, np.ndarray]:
        """P- and q-values of the features (groups), NaN until they were tested."""
        columns = self._tested()
        return columns["p"], columns["q"]

    @property
    def table_(self) -> Any:
        """Features, or groups, by rank."""
        check_is_fitted(self)
        each = self.comparisons_
        # The comparison in which a feature stands out most says what it marks.
        of = np.argmax([one.scores("moderated") for one in each], axis=0)
        place = np.arange(len(of))
        names = np.array([one.name for one in each], dtype=object)
        told = {} if len(each) == 1 else {"comparison": names[of]}
        told |= {
            name: np.array([getattr(one, name) for one in each])[of, place]
            for name in ("up_in", "log2_fold_change", "t")
        }
        costs = {name: getattr(self, f"{name}_") for name in COSTS}
        columns = told | _class_means(each) | costs | self._tested()
        return self._table(self.scores_, self.ranking_, columns)

    @property
    def tables_(self) -> dict[str, Any]:
        """One table for each comparison, by its name; features by their rank in it."""
        check_is_fitted(self)
        tables = {}
        for one in self.comparisons_:
            scores = one.scores(vars(self)["score"])
            ranking = np.empty(len(scores), dtype=int)
            ranking[_ranked(scores, one.shift, one.constant)] = np.arange(1, len(scores) + 1)
            names = ("up_in", "log2_fold_change", "t")
            columns = {name: getattr(one, name) for name in names} | _class_means([one])
            columns |= {name: one.statistic(name) for name in COSTS}
            tables[one.name] = self._table(scores, ranking, columns)
        return tables

    def _table(
        self, scores: np.ndarray, ranking: np.ndarray, columns: dict[str, np.ndarray]
    ) -> Any:
        """Put the columns in the order of the ranks, after the name, the rank and the score."""
        begin = {
            "feature": np.array(self.groups_.names, dtype=object),
            "rank": ranking,
            "score": scores,
            "signed_score": np.copysign(scores, np.nan_to_num(columns["t"])),
        }
        order = np.argsort(ranking)
        return make_table({name: column[order] for name, column in (begin | columns).items()})

    @property
    def tests(self) -> tuple[PathwayTest | None, PermutationTest | None]:
        """The pathway test and the permutation test of this fit; None for one that was not run."""
        return vars(self).get("pathways_"), vars(self).get("permutation_")

    def _tested(self) -> dict[str, np.ndarray]:
        """What a test found, NaN until one was run."""
        check_is_fitted(self)
        unknown = np.full(len(self.scores_), np.nan)
        found: dict[str, np.ndarray] = {name: unknown for name in TESTED}
        sets, test = self.tests
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


def column_names(selector: FROTSelector, d: int) -> list[str]:
    """Return the names of the features that a selector has seen; x0, x1, ... if they had none."""
    names = getattr(selector, "feature_names_in_", None)
    return [f"x{column}" for column in range(d)] if names is None else list(map(str, names))


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
        return FROTSelector(plan=False)
    if not isinstance(selector, FROTSelector):
        raise InputError(f"selector: {brief(selector)} is not a FROTSelector; pass one")
    params = selector.get_params()
    # Nobody looks at the plan of one of many.
    plan = params["plan"] if params["score"] in OF_PLAN else False
    quiet = {"time_limit": None, "callback": None, "progress": False, "plan": plan}
    return FROTSelector(**{**params, **quiet})

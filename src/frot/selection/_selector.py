"""`FROTSelector`: feature-robust optimal transport as a scikit-learn feature selector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from frot._base.errors import DataWarning, InputError, brief, warn_caller
from frot.problem.options import Relative
from frot.selection._comparison import Comparison, compare, wants_plan
from frot.selection._inputs import Prepared, prepare
from frot.selection._null import benjamini_hochberg

if TYPE_CHECKING:
    from frot.selection._pathway_test import PathwayTest
    from frot.selection._permutation import PermutationTest
    from frot.selection._shape_test import ShapeTest

# Columns of tables: what the costs of the plan are made of.
COSTS = ("shift", "shape", "misalignment", "alpha")


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


def compare_all(prepared: Prepared, base: float | None = None) -> tuple[Comparison, ...]:
    """Compare the classes, with plans where they are wanted; `base` is that of log1p tables."""
    comparisons = [compare(prepared, contrast, base) for contrast in prepared.contrasts]
    without = sum(int(np.isnan(comparison.log2_fold_change).sum()) for comparison in comparisons)
    if without and prepared.single:
        warn_caller(
            f"X: {without:,} fold changes are NaN, since the mean of a class is negative; take "
            "logarithms, or say that they are, values='log2'",
            category=DataWarning,
        )
    if prepared.single:
        warn_of_unlike_spreads(comparisons)
    return tuple(
        comparison.with_plan(prepared) if wants_plan(prepared, comparison.contrast) else comparison
        for comparison in comparisons
    )


def warn_of_unlike_spreads(comparisons: Sequence[Comparison]) -> None:
    """Say where p-values of t are far too small, since few samples vary more than many."""
    worst = max(comparisons, key=lambda comparison: comparison.effects.inflation)
    share = 2.0 * float(stats.norm.sf(1.96 / np.sqrt(worst.effects.inflation)))
    if share >= 0.1:
        few = worst.labels[int(worst.sizes[1] < worst.sizes[0])]
        warn_caller(
            f"X: {few} has fewer samples than the other side of {worst.name} and varies more, so "
            f"that some {share:.0%} of the features that do not differ have p <= .05; permutations "
            "do not suppose that classes vary alike",
            category=DataWarning,
        )


def ranked(scores: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return ranks from 1, the largest score first; those that do not vary come last."""
    order = np.argsort(np.where(constant, np.inf, -scores), kind="stable")
    ranking = np.empty(len(order), dtype=int)
    ranking[order] = np.arange(1, len(order) + 1)
    return ranking


class FROTSelector(SelectorMixin, BaseEstimator):
    r"""Select the features, or groups of features, that separate classes.

    Features are ranked by a moderated t: a linear model of each feature with the class and, where
    there are blocks, the block, whose variance is drawn towards that of all features (limma's,
    Smyth 2004). What the transport between the samples of two classes adds are the weights of the
    features or groups in the worst case, alpha, and the parts of each feature's cost: the plan

    .. math::
        \min_{\Pi \in U(a, b)} \max_{\alpha \in \Sigma^L} \sum_l \alpha_l \phi_l(\Pi)
        - \eta \sum_l \alpha_l \log \alpha_l,
        \qquad \phi_l(\Pi) = \sum_{ij} \pi_{ij} (x_{il} - y_{jl})^2,

    pays for a shift of the mean, a change of shape, and misalignment. ``score="alpha"`` ranks by
    alpha, as the paper does.

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
    score : {"moderated", "alpha"}
        What to rank by. "moderated" is :math:`|t|`, of several comparisons the root mean square.
        Of groups it is how far their members differ beyond what random groups of the same size and
        correlation do: see `pathway_test`, which has p-values for it. "alpha" is read off the
        plan, and the mean over comparisons.
    scaling : {"balanced", "paper"}
        Of the plan: "balanced" centres each feature at the midpoint of the class means and scales
        it so that the mean squares of the two classes sum to 2. "paper" standardises over both
        classes pooled, where the larger class sets the scale.
    eta : "auto", float or `frot.relative`
        Of the plan: the entropy of alpha. "auto" is the eta at which the perplexity of alpha is
        three times the number to select, at most half of the groups, and never less than 1.5 % of
        the mean cost.
    reference : label, optional
        A class of y, such as the controls. Every other class is compared with it, and t and fold
        changes are positive where the other class is higher. Without, three or more classes are
        compared each with the rest.
    missing : {"error", "impute", "drop"}
        What to do with NaN: refuse it, replace it by the feature's mean over all samples, or
        score the feature zero.
    plan : {"auto", True, False}
        Whether to find the plan, and with it alpha, shift, shape and misalignment, which are NaN
        without. "auto" does where no class has more than 500 samples, and for ``score="alpha"``;
        of larger classes it is a plan of 500 samples, drawn at random with a fixed seed. In a grid
        search False saves time.
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
    alpha_ : array of shape (L,)
        Weights in the plan, means over comparisons; NaN where there is no plan.
    plan_, result_, eta_ :
        `frot.Plan`, `frot.Result` (with ``lower`` and ``upper``) and eta; no such attributes
        where there is no plan. With three or more classes, tuples in the order of
        `comparisons_`.
    comparisons_ : tuple of Comparison
        The comparisons of classes, with the effects of all features and the rows behind each plan.
    table_ : DataFrame
        One row per feature (group), best first: feature, rank, score, up_in (class in which it is
        higher), log2_fold_change and t (positive is higher in the first class), p, q (of t, by
        Benjamini and Hochberg, or of the test that was run last: `permutation_test`, which adds
        p_max, or `pathway_test`, without which groups have none), the mean of each class, and
        shift, shape, misalignment and alpha. With three or more classes the direction is that of
        the ``comparison`` in which the feature is up most, so that ``up_in`` says what it marks
        (with a `reference`, differs most), and p is Bonferroni's over comparisons.
        `shape_test` adds the columns of spread and form.
    tables_ : dict of such tables
        One for each comparison, by its name, such as "a vs rest".
    block_ : array of shape (N,), or None
        The block of each sample, as given.
    groups_ : frot.Groups
    groups_support_ : array of bool, shape (L,)
        Which groups are kept.
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

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        threshold: float | None = None,
        groups: Any = "each",
        score: str = "moderated",
        scaling: str = "balanced",
        eta: str | float | Relative = "auto",
        reference: Any = None,
        missing: str = "error",
        plan: str | bool = "auto",
        values: str = "auto",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.groups = groups
        self.score = score
        self.scaling = scaling
        self.eta = eta
        self.reference = reference
        self.missing = missing
        self.plan = plan
        self.values = values

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` makes no difference."""
        return {name: vars(self)[name] for name in self._get_param_names()}

    def fit(self, X: Any, y: Any, block: Any = None) -> FROTSelector:
        """Compare the classes and rank the features.

        Parameters
        ----------
        X : array, sparse array or DataFrame of shape (N, d)
            Sparse tables are read a block of features at a time, never made dense whole.
        y : array of shape (N,)
            Labels of two or more classes, of two or more samples each.
        block : array of shape (N,), optional
            Batch, site, or patient of each sample: everything is adjusted for it, by a linear model
            with the block as covariate. A patient measured in both classes is a block of two. In
            pipelines it is routed as scikit-learn's metadata: ``set_fit_request(block=True)``.

        Returns
        -------
        FROTSelector
            Itself.
        """
        prepared = prepare(self, X, y, block)
        comparisons = compare_all(prepared)
        constant = np.logical_and.reduce([comparison.constant for comparison in comparisons])
        if constant.all():
            raise InputError(
                "X: no feature varies, so that nothing tells the classes apart; check the table"
            )
        self.classes_ = prepared.classes
        self.groups_ = prepared.groups
        self.block_ = None if block is None else np.asarray(block)
        self.comparisons_ = comparisons
        self.alpha_ = np.mean([comparison.alpha for comparison in comparisons], axis=0)
        if prepared.score == "alpha":
            scores = self.alpha_
        elif prepared.single:
            t = np.array([comparison.t for comparison in comparisons])
            scores = np.abs(t[0]) if len(t) == 1 else np.sqrt(np.mean(np.square(t), axis=0))
        else:
            from frot.selection._set_statistics import set_scores

            scores = set_scores(prepared)
        self.scores_ = np.where(constant, 0.0, scores)
        self.ranking_ = ranked(self.scores_, constant)
        self.groups_support_ = np.ones(len(scores), dtype=bool)
        if prepared.picks is not None:
            self.groups_support_ &= self.ranking_ <= prepared.picks
        if self.threshold is not None:
            self.groups_support_ &= self.scores_ >= self.threshold
        # Tests of an earlier fit.
        for test in ("permutation_", "pathways_", "shape_"):
            vars(self).pop(test, None)
        return self

    def _strength(self, comparison: Comparison) -> np.ndarray:
        """Return how much features stand out in a comparison: upwards, where it has a rest."""
        return comparison.t if comparison.second is None else np.abs(comparison.t)

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Return which features are kept: a mask of shape (d,), or their positions."""
        return np.asarray(super().get_support(indices=indices))

    def permutation_test(self, X: Any, y: Any, **options: Any) -> PermutationTest:
        """Test the features by permuting labels, and put p and q into `table_`.

        Parameters
        ----------
        X, y :
            What the selector was fitted on; the blocks are those of the fit.
        **options :
            As in `frot.selection.permutation_test`.

        Returns
        -------
        PermutationTest
            Also kept as `permutation_`.
        """
        from frot.selection._permutation import permutation_test

        test = permutation_test(X, y, selector=self, **self._with_block(options))
        if test.names != self.groups_.names:
            raise InputError("X: is not what the selector was fitted on; fit it again")
        self.permutation_ = test
        return test

    def pathway_test(self, X: Any, y: Any, **options: Any) -> PathwayTest:
        """Test the groups against two nulls, and put the competitive p and q into `table_`.

        Parameters
        ----------
        X, y :
            What the selector was fitted on; the blocks are those of the fit.
        **options :
            As in `frot.selection.pathway_test`.

        Returns
        -------
        PathwayTest
            Also kept as `pathways_`.
        """
        from frot.selection._pathway_test import pathway_test

        options = self._with_block(options)
        sizes = {"min_size": 1, "max_size": self.n_features_in_}
        self.pathways_ = pathway_test(X, y, self.groups_, selector=self, **sizes, **options)
        return self.pathways_

    def shape_test(self, X: Any, y: Any, **options: Any) -> ShapeTest:
        """Test for differences of spread and form, and put them into `table_`.

        Parameters
        ----------
        X, y :
            What the selector was fitted on; the blocks are those of the fit.
        **options :
            As in `frot.selection.shape_test`.

        Returns
        -------
        ShapeTest
            Also kept as `shape_`.
        """
        from frot.selection._shape_test import shape_test

        test = shape_test(X, y, selector=self, **self._with_block(options))
        if test.names != self.groups_.names:
            raise InputError("X: is not what the selector was fitted on; fit it again")
        self.shape_ = test
        return test

    def _with_block(self, options: dict[str, Any]) -> dict[str, Any]:
        check_is_fitted(self)
        return {"block": self.block_} | options

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
        each = tuple(getattr(comparison, name) for comparison in self.comparisons_)
        return each[0] if len(each) == 1 else each

    @property
    def single(self) -> bool:
        """Whether every feature is a group of its own."""
        check_is_fitted(self)
        return self.groups_.in_order and len(self.groups_) == self.n_features_in_

    @property
    def standing_out(self) -> np.ndarray:
        """The position of the comparison that says what each feature (group) marks, shape (L,)."""
        check_is_fitted(self)
        return np.argmax([self._strength(comparison) for comparison in self.comparisons_], axis=0)

    @property
    def p_values(self) -> tuple[np.ndarray, np.ndarray]:
        """P- and q-values of the features; of groups NaN until `pathway_test` was run."""
        sets, test = self.tests
        if sets is not None:
            return sets.p_competitive, sets.q_competitive
        if test is not None:
            return test.p, test.q
        if not self.single:
            unknown = np.full(len(self.scores_), np.nan)
            return unknown, unknown
        each = [comparison.effects.p for comparison in self.comparisons_]
        p = np.minimum(len(each) * np.min(each, axis=0), 1.0)
        return p, benjamini_hochberg(p)

    @property
    def table_(self) -> pd.DataFrame:
        """Features, or groups, by rank."""
        check_is_fitted(self)
        each, of = self.comparisons_, self.standing_out
        place = np.arange(len(of))
        columns: dict[str, Any] = {}
        if len(each) > 1:
            columns["comparison"] = np.array(
                [comparison.name for comparison in each], dtype=object
            )[of]
        for name in self._directions:
            columns[name] = np.array([getattr(comparison, name) for comparison in each])[of, place]
        columns["p"], columns["q"] = self.p_values
        _, test = self.tests
        if test is not None:
            columns["p_max"] = test.p_max
        columns |= _class_means(each)
        for name in COSTS[:3]:
            columns[name] = np.mean(
                [getattr(comparison.parts, name) for comparison in each], axis=0
            )
        columns["alpha"] = self.alpha_
        if "shape_" in vars(self):
            columns |= self.shape_.columns
        return self._table(self.scores_, self.ranking_, columns)

    @property
    def tables_(self) -> dict[str, pd.DataFrame]:
        """One table for each comparison, by its name; features by their rank in it."""
        check_is_fitted(self)
        tables = {}
        for comparison in self.comparisons_:
            by_alpha = vars(self)["score"] == "alpha"
            scores = np.where(
                comparison.constant,
                0.0,
                comparison.alpha if by_alpha else self._strength(comparison),
            )
            columns = {name: getattr(comparison, name) for name in self._directions}
            if self.single:
                columns |= {
                    "p": comparison.effects.p,
                    "q": benjamini_hochberg(comparison.effects.p),
                }
            columns |= _class_means([comparison])
            columns |= {name: getattr(comparison.parts, name) for name in COSTS[:3]}
            ranking = ranked(scores, comparison.constant)
            tables[comparison.name] = self._table(
                scores, ranking, columns | {"alpha": comparison.alpha}
            )
        return tables

    @property
    def _directions(self) -> tuple[str, ...]:
        # Members of a group go different ways: their mean fold change says nothing.
        return ("up_in", "log2_fold_change", "t") if self.single else ("up_in", "t")

    def _table(
        self, scores: np.ndarray, ranking: np.ndarray, columns: dict[str, Any]
    ) -> pd.DataFrame:
        """Put the columns in the order of the ranks, after the name, the rank and the score."""
        names = np.array(self.groups_.names, dtype=object)
        table = pd.DataFrame({"feature": names, "rank": ranking, "score": scores} | columns)
        return table.iloc[np.argsort(ranking)].reset_index(drop=True)

    @property
    def tests(self) -> tuple[PathwayTest | None, PermutationTest | None]:
        """The pathway test and the permutation test of this fit; None for one that was not run."""
        return vars(self).get("pathways_"), vars(self).get("permutation_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags


def _class_means(each: Sequence[Comparison]) -> dict[str, np.ndarray]:
    """Return the mean of every class, by the name of its column."""
    means: dict[str, np.ndarray] = {}
    for comparison in each:
        for label, mean in zip(comparison.labels, comparison.means, strict=True):
            # Everything but one class is a side of its own in a table of one comparison alone.
            if comparison.second is not None or label == comparison.labels[0] or len(each) == 1:
                means.setdefault(f"mean_{label}", mean)
    return means


def column_names(selector: FROTSelector, d: int) -> list[str]:
    """Return the names of the features that a selector has seen; x0, x1, ... if they had none."""
    names = getattr(selector, "feature_names_in_", None)
    return [f"x{column}" for column in range(d)] if names is None else list(map(str, names))


def is_fitted(selector: FROTSelector | None) -> bool:
    """Whether a selector has seen its data, and told what it doubts of them."""
    return hasattr(selector, "comparisons_")


def unfitted(selector: FROTSelector | None = None) -> FROTSelector:
    """Return a new selector of the same parameters; the defaults for None.

    Examples
    --------
    >>> unfitted(FROTSelector(5)).get_params()["n_features_to_select"]
    5
    """
    if selector is None:
        return FROTSelector()
    if not isinstance(selector, FROTSelector):
        raise InputError(f"selector: {brief(selector)} is not a FROTSelector; pass one")
    return FROTSelector(**selector.get_params())

"""Stability selection: how often a feature is selected from half of the samples."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from frot._base.errors import ConvergenceWarning, InputError
from frot._base.fingerprint import fingerprint
from frot._base.stopping import Interrupted
from frot._base.tables import make_table
from frot._base.validate import check_count, check_number
from frot.selection._inputs import Prepared, prepare
from frot.selection._permutation import describe
from frot.selection._selector import FROTSelector, unfitted
from frot.selection._tasks import check_run, run_chunks


@dataclass(frozen=True, eq=False)
class StabilitySelection:
    """How often each feature, or group, was selected.

    Attributes
    ----------
    names : tuple of str, length L
    frequency : array of shape (L,)
        The share of the fits that selected it.
    n_fits : int
        Two for every pair of halves.
    mean_selected : float
        Features, or groups, that a fit selected on average.
    """

    names: tuple[str, ...]
    frequency: np.ndarray
    n_fits: int
    mean_selected: float

    def __repr__(self) -> str:
        often = int(self.selected().sum())
        return (
            f"Stability selection of {len(self.names):,} features: {often} in 60 % of "
            f"{self.n_fits} fits or more, {self.mean_selected:g} in each"
        )

    def selected(self, threshold: float = 0.6) -> np.ndarray:
        """Return which ones were selected in a share `threshold` of the fits, or more."""
        return self.frequency >= threshold

    def expected_errors(self, threshold: float = 0.6) -> float:
        r"""Bound the expected number of wrong ones among `selected` (Meinshausen, Buhlmann).

        .. math::
            E(V) \le \frac{1}{2 \pi - 1} \frac{s^2}{L}, \qquad \pi > 1/2,

        with s selected a fit on average: a bound if those that do not differ are selected no
        more often than by guessing, and each as often as the other.
        """
        threshold = check_number(threshold, "threshold", least=0.5, strict=True)
        return float(self.mean_selected**2 / len(self.names) / (2.0 * threshold - 1.0))

    @property
    def table(self) -> Any:
        """Feature and frequency, the most often selected first."""
        order = np.argsort(-self.frequency, kind="stable")
        names = np.array(self.names, dtype=object)[order]
        return make_table({"feature": names, "frequency": self.frequency[order]})


def stability_selection(
    X: Any,
    y: Any,
    *,
    selector: FROTSelector | None = None,
    n_pairs: int = 50,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int | None = 0,
) -> StabilitySelection:
    """Count how often each feature is selected from random halves of the samples.

    The two halves of a pair have no sample in common (complementary pairs, after Shah and
    Samworth), and each has half of every class.

    Parameters
    ----------
    X : array, sparse array or DataFrame of shape (N, d)
    y : array of shape (N,)
        Four or more samples of each class.
    selector : FROTSelector, optional
        Whose parameters to use. By default one that keeps half of the features.
    n_pairs : int
        Pairs of halves; twice as many fits.
    sample_weight : array of shape (N,), optional
    n_jobs, progress, checkpoint, random_state :
        As in `permutation_test`.

    Returns
    -------
    StabilitySelection

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 10)), np.repeat(["a", "b"], 20)
    >>> X[y == "b", 3] += 2.0
    >>> found = stability_selection(X, y, selector=FROTSelector(1), n_pairs=5)
    >>> np.flatnonzero(found.selected()), found.n_fits
    (array([3]), 10)
    """
    count = check_count(n_pairs, "n_pairs")
    seed = check_run(n_jobs, progress, checkpoint, random_state)
    model = unfitted(selector)
    prepared = prepare(model, X, y, sample_weight)
    sizes = np.bincount(prepared.codes)
    if sizes.min() < 4:
        raise InputError(
            f"y: class {prepared.classes[sizes.argmin()]!s} has {sizes.min()} samples; halves need "
            "four or more of each class, so drop it or merge it with another"
        )
    # The data is checked and filled already, and the groups are read; classes are told by number.
    known = {
        "groups": prepared.groups,
        "n_features_to_select": prepared.picks,
        "reference": prepared.reference,
    }
    model = model.set_params(missing="error", **known)
    found = run_chunks(
        partial(_pairs, model, prepared, seed),
        count,
        n_jobs=n_jobs,
        progress=progress,
        what="pairs of halves",
        checkpoint=checkpoint,
        fingerprint=lambda: fingerprint(
            **describe(prepared), threshold=model.threshold, seed=seed, work="stability"
        ),
    )
    chosen = np.concatenate(found)
    return StabilitySelection(
        names=prepared.groups.names,
        frequency=chosen.mean(axis=0),
        n_fits=len(chosen),
        mean_selected=float(chosen.sum(axis=1).mean()),
    )


def _pairs(
    model: FROTSelector, prepared: Prepared, seed: int, indices: list[int]
) -> list[np.ndarray]:
    return [_pair(model, prepared, np.random.default_rng([seed, index])) for index in indices]


def _pair(model: FROTSelector, prepared: Prepared, rng: np.random.Generator) -> np.ndarray:
    """Return which groups each of the two halves selects, shape (2, L)."""
    halves: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for code in range(len(prepared.classes)):
        members = rng.permutation(np.flatnonzero(prepared.codes == code))
        half = len(members) // 2
        halves[0].append(members[:half])
        halves[1].append(members[half : 2 * half])
    chosen = []
    for half in halves:
        rows = np.sort(np.concatenate(half))
        weight = None if prepared.weight is None else prepared.weight[rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                fitted = unfitted(model).fit(prepared.table[rows], prepared.codes[rows], weight)
            except Interrupted:
                # One of many: what it had so far is no answer.
                raise KeyboardInterrupt from None
        chosen.append(fitted.groups_support_)
    return np.array(chosen)

"""Pathway test: which gene sets differ between classes, by themselves and beyond other genes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from frot._base.errors import InputError
from frot._base.validate import check_count, check_feature_names
from frot.api.permutations import permutation_p
from frot.api.tasks import check_run
from frot.groups.groups import Groups
from frot.selection._design import Contrast
from frot.selection._inputs import prepare
from frot.selection._null import pooled_rates
from frot.selection._permutation import LEVEL, SHOWN
from frot.selection._selector import FROTSelector, is_fitted, unfitted
from frot.selection._set_statistics import (
    Collapsed,
    SetStatistics,
    excess,
    leading_edge,
    set_statistics,
    standardise,
)


@dataclass(frozen=True, eq=False)
class PathwayTest:
    """Sets of features, tested against two nulls; arrays of shape (L,).

    Attributes
    ----------
    groups : frot.Groups
        The sets that were tested; ``groups.dropped`` has the names of those left out.
    score : array
        How far the set is above others of its size and correlation, in standard deviations of
        permuted labels. The ranking is by this.
    p_competitive, q_competitive : arrays
        Is the set more different than random sets of genes are? Correlation is kept.
    p_self_contained, q_self_contained : arrays
        Does anything in the set differ? Where much of the table differs, so does every set.
    contrast, up_in : tuples of str
        The comparison in which the set stands out most, and the class where it is higher:
        "mixed" where less than two thirds of what it has beyond noise goes one way.
    direction : array
        From 1, all of it up in the first class of the contrast, to -1.
    share_up, mean_z : arrays
        Share of the members that are higher in the first class; mean of their signed deviates.
    edges : tuple of arrays of intp
        Leading edges: the members that make the set differ, by column, the largest first.
    remarks : tuple of str
        Why a set has no leading edge; empty where it has one.
    feature_names : tuple of str, length d
        Of the features behind `edges`: genes, where probes were collapsed.
    n_permutations : int
    detectable : float
        By how many standard deviations all genes of a set of median size would have to differ, the
        same way, for it to have a competitive q of .05 in every second study like this one; NaN
        where so few permutations allow no such q.
    note : str
        How many features were collapsed into genes, and how; empty where none were.
    """

    groups: Groups
    score: np.ndarray
    p_competitive: np.ndarray
    q_competitive: np.ndarray
    p_self_contained: np.ndarray
    q_self_contained: np.ndarray
    contrast: tuple[str, ...]
    up_in: tuple[str, ...]
    direction: np.ndarray
    share_up: np.ndarray
    mean_z: np.ndarray
    edges: tuple[np.ndarray, ...]
    remarks: tuple[str, ...]
    feature_names: tuple[str, ...]
    n_permutations: int
    detectable: float
    note: str = ""

    def __repr__(self) -> str:
        shown = self.order[:SHOWN]
        width = max([7, *(len(self.names[index][:30]) for index in shown)])
        lines = [f"Pathway test of {len(self.names):,} sets: {self.n_permutations:,} permutations"]
        lines += [self.note] if self.note else []
        lines += [
            f"q <= 0.05: {int((self.q_competitive <= LEVEL).sum()):,} differ more than other genes "
            f"do (competitive), {int((self.q_self_contained <= LEVEL).sum()):,} differ "
            "(self-contained)",
            "set".ljust(width) + "   score  q_comp  q_self  up in",
        ]
        lines += [
            f"{self.names[index][:30]:<{width}}{self.score[index]:>8.3g}"
            f"{self.q_competitive[index]:>8.3g}{self.q_self_contained[index]:>8.3g}"
            f"  {self.up_in[index]}"
            for index in shown
        ]
        return "\n".join([*lines, *([self.power] if self.power else [])])

    @property
    def power(self) -> str:
        """What could have been seen, where no set differs more than others; else empty."""
        if (self.q_competitive <= LEVEL).any():
            return ""
        size = int(np.median(self.groups.sizes))
        tested = f"No set of {len(self.names):,} has a competitive q <= {LEVEL:g}"
        if np.isnan(self.detectable):
            return f"{tested}."
        return (
            f"{tested}: one of {size} genes would have in about every second such study, if all of "
            f"them differed by {self.detectable:.2f} standard deviations, the same way."
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Of the sets."""
        return self.groups.names

    @property
    def order(self) -> np.ndarray:
        """Positions of the sets, best first."""
        return np.argsort(-self.score, kind="stable")

    def leading_edge(self, name: str) -> list[str]:
        """Return the names of the features that make a set differ, the largest first."""
        if name not in self.names:
            raise InputError(f"name: {name!r} is not a set that was tested; `names` lists them")
        return [self.feature_names[column] for column in self.edges[self.names.index(name)]]

    def shared_edges(self) -> np.ndarray:
        """Return which share of each set's leading edge is in each other's, shape (L, L)."""
        inside = np.zeros((len(self.names), self.groups.n_features), dtype=np.float32)
        for row, columns in zip(inside, self.edges, strict=True):
            row[columns] = 1.0
        return inside @ inside.T / np.maximum(inside.sum(axis=1), 1.0)[:, None]

    def redundancy(self) -> list[tuple[str, float]]:
        """Return, for each set, the better one that has most of its leading edge, and the share.

        The name is empty where that is less than half.
        """
        shares, order = self.shared_edges(), self.order
        result = [("", 0.0)] * len(order)
        for rank in range(1, len(order)):
            better = shares[order[rank], order[:rank]]
            best = int(better.argmax())
            name = self.names[order[best]] if better[best] >= 0.5 else ""
            result[order[rank]] = (name, float(better[best]))
        return result

    @property
    def table(self) -> pd.DataFrame:
        """All of it, one row per set, best first."""
        order = self.order
        edges = [", ".join(self.leading_edge(name)) for name in self.names]
        like, shared = zip(*self.redundancy(), strict=True)
        columns = {
            "pathway": self.names,
            "score": self.score,
            "listed": self.groups.listed or self.groups.sizes,
            "size": self.groups.sizes,
            "coverage": self.groups.coverage,
            "contrast": self.contrast,
            "up_in": self.up_in,
            "direction": self.direction,
            "share_up": self.share_up,
            "mean_z": self.mean_z,
            "p_competitive": self.p_competitive,
            "q_competitive": self.q_competitive,
            "p_self_contained": self.p_self_contained,
            "q_self_contained": self.q_self_contained,
            "edge_size": [len(edge) for edge in self.edges],
            "leading_edge": edges,
            "remark": self.remarks,
            "redundant_with": like,
            "shared_edge": shared,
        }
        table = pd.DataFrame(columns).iloc[order].reset_index(drop=True)
        table.insert(0, "rank", np.arange(1, len(order) + 1))
        return table


def pathway_test(
    X: Any,
    y: Any,
    groups: Any = None,
    *,
    selector: FROTSelector | None = None,
    n_permutations: int = 1000,
    block: Any = None,
    collapse: str | None = "max",
    min_size: int | None = None,
    max_size: int | None = None,
    min_coverage: float = 0.0,
    feature_names: Any = None,
    progress: bool = False,
    random_state: int | None = 0,
) -> PathwayTest:
    r"""Test sets of features against two nulls, and say which way they go and by which members.

    With e the part of a feature's difference beyond one standard error, D a set's mean of it, and
    Z the same in units of all features (mean taken out, divided by the standard deviation; both
    ways, up or down, whichever stands out most),

    .. math::
        p_{\text{self-contained}} = \frac{1 + \#\{b : D^{(b)} \ge D\}}{1 + B}, \qquad
        p_{\text{competitive}} = \frac{1 + \#\{b : Z^{(b)} \ge Z\}}{1 + B}

    over B permutations of the labels, within blocks where given. Z is in standard deviations of
    permuted labels, which no size favours, and sets are ranked by it. q-values count, over all sets
    and permutations, what lies at a standardised statistic or beyond:
    :math:`q = \min_{t \le T} (V(t) + K(t)) / ((1 + B) K(t))` for V of the null and K observed.

    Parameters
    ----------
    X : array, sparse array or DataFrame of shape (N, d)
    y : array of shape (N,)
    groups : optional
        Whatever `frot.Groups.parse` reads, such as the path of a ``.gmt`` file; by default
        those of the selector. Features in no set count as the others that sets compete with.
    selector : FROTSelector, optional
        Whose `reference` and `missing` to use.
    n_permutations : int
        B.
    block : array of shape (N,), optional
        Batch, donor, patient...: labels are permuted within each block only, and what differs
        between blocks is neither signal nor noise.
    collapse : {"max", "mean", None}
        Several features of one name, such as the probes of a gene, count as one: that of the
        highest mean, or their mean. ``test.note`` says how many there were.
    min_size, max_size, min_coverage : optional
        As in `frot.Groups.limited`: 5, 500 and 0 for sets of a ``.gmt`` file.
    feature_names : sequence of str, length d, optional
        By default the columns of X.
    progress : bool
        Show a bar.
    random_state : int, optional

    Returns
    -------
    PathwayTest

    Notes
    -----
    Both tests are exact where no gene differs. The competitive one restandardises (Efron and
    Tibshirani 2007): it keeps the correlation of genes, which tests by random sets of genes do
    not, so that these find sets of correlated genes too often. Where many genes differ it errs on
    the safe side, since those that differ together are correlated under permuted labels too.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 200)), np.repeat(["sick", "well"], 20)
    >>> X[y == "sick", :5] += 1.5
    >>> sets = {"response": range(40), "other": range(40, 80), "rest": range(80, 200)}
    >>> test = pathway_test(X, y, sets, n_permutations=199)
    >>> test.names[test.order[0]], test.up_in[0], float(test.p_competitive[0])
    ('response', 'sick', 0.005)
    >>> sorted(test.leading_edge("response")[:5])
    ['x0', 'x1', 'x2', 'x3', 'x4']
    """
    count = check_count(n_permutations, "n_permutations", least=2)
    seed = check_run(None, progress, None, random_state)
    model = unfitted(selector).set_params(n_features_to_select=None, threshold=None)
    if groups is not None:
        model.set_params(groups=_named_groups(groups, X, feature_names))
    prepared = prepare(model, X, y, block, doubts=not is_fitted(selector))
    d = prepared.table.shape[1]
    names = check_feature_names(feature_names, d) or prepared.names
    genes = Collapsed.of(prepared.table, prepared.groups, names, collapse)
    limited = genes.groups.limited(min_size, max_size, min_coverage)
    contrasts = prepared.contrasts
    statistics = set_statistics(genes.table, contrasts, limited, count, seed, progress)
    competitive, alone = statistics.competitive, statistics.self_contained
    edges, remarks = _edges(statistics, limited)
    return PathwayTest(
        groups=limited,
        score=competitive[0].astype(float),
        p_competitive=permutation_p(competitive[0], competitive[1:]),
        q_competitive=_pooled_q(competitive),
        p_self_contained=permutation_p(alone[0], alone[1:]),
        q_self_contained=_pooled_q(standardise(alone)),
        **_directions(statistics, limited, contrasts),
        edges=edges,
        remarks=remarks,
        feature_names=genes.names,
        n_permutations=count,
        detectable=statistics.detectable,
        note=genes.note,
    )


def _named_groups(groups: Any, X: Any, names: Any) -> Any:
    """Read groups of features whose names are not the table's own."""
    shape = np.shape(X)
    if names is None or len(shape) != 2:
        return groups
    return Groups.parse(groups, shape[1], check_feature_names(names, shape[1]))


def _pooled_q(standard: np.ndarray) -> np.ndarray:
    """Return q-values from the null of all sets together: rows 1 to B of (B + 1, L)."""
    observed, null = standard[0], np.sort(standard[1:], axis=None)
    order = np.argsort(observed)
    beyond = null.size - np.searchsorted(null, observed[order])
    q = np.empty(len(observed))
    q[order] = pooled_rates(observed[order], beyond, len(standard) - 1)
    return q


def _directions(
    statistics: SetStatistics, groups: Groups, contrasts: Sequence[Contrast]
) -> dict[str, Any]:
    """Return where, and which way, each set differs most."""
    members = groups.membership()
    strength = excess(statistics.z)
    up = (members @ np.where(statistics.z > 0.0, strength, 0.0).T).T
    down = (members @ np.where(statistics.z < 0.0, strength, 0.0).T).T
    place = np.maximum(up, down).argmax(axis=0)
    chosen = place, np.arange(len(groups))
    direction = ((up - down) / np.maximum(up + down, np.finfo(float).tiny))[chosen]
    counts = np.maximum(members @ statistics.varying, 1.0)
    return {
        "contrast": tuple(contrasts[index].name for index in place),
        "up_in": tuple(
            _higher(contrasts[index], value) for index, value in zip(place, direction, strict=True)
        ),
        "direction": direction,
        "share_up": (members @ (statistics.z > 0.0).T).T[chosen] / counts,
        "mean_z": (members @ statistics.z.T).T[chosen] / counts,
    }


def _higher(contrast: Contrast, direction: float) -> str:
    # Two thirds of what a set has beyond noise must go one way for it to be up, or down.
    if abs(direction) < 1.0 / 3.0:
        return "mixed"
    if direction > 0.0:
        return str(contrast.first)
    return f"all but {contrast.first}" if contrast.second is None else str(contrast.second)


def _edges(
    statistics: SetStatistics, groups: Groups
) -> tuple[tuple[np.ndarray, ...], tuple[str, ...]]:
    """Return the leading edges, and why there is none."""
    values, varying = statistics.contributions, statistics.varying
    total, count = float(values.sum()), int(varying.sum())
    edges, remarks = [], []
    for members in groups.indices:
        members = members[varying[members]]
        others = count - len(members)
        ordinary = (total - float(values[members].sum())) / others if others else 0.0
        edges.append(leading_edge(values, members, ordinary))
        why = "differs no more than other genes do" if len(members) else "none of it varies"
        remarks.append("" if len(edges[-1]) else why)
    return tuple(edges), tuple(remarks)

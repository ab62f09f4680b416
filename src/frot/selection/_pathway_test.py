"""Pathway test: which gene sets differ between classes, by themselves and beyond other genes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot._base.errors import InputError
from frot._base.tables import make_table
from frot._base.validate import check_count, check_feature_names
from frot.groups.groups import Groups
from frot.selection._comparison import Contrast
from frot.selection._inputs import Prepared, prepare
from frot.selection._label_statistics import (
    SetStatistics,
    excess,
    leading_edge,
    set_statistics,
    standardise,
)
from frot.selection._permutation import SHOWN, check_blocks, permutation_p, pooled_rates
from frot.selection._selector import FROTSelector, column_names, unfitted
from frot.selection._tasks import check_run

# Two thirds of what a set has beyond noise must go one way for it to be up, or down.
ONE_WAY = 1.0 / 3.0
# Half of a leading edge in that of a better set makes a set redundant.
REDUNDANT = 0.5


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
    feature_names : tuple of str, length d
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
    feature_names: tuple[str, ...]
    n_permutations: int

    def __repr__(self) -> str:
        width = max([7, *(len(self.names[one][:30]) for one in self.order[:SHOWN])])
        lines = [
            f"Pathway test of {len(self.names):,} sets: {self.n_permutations:,} permutations",
            f"q <= 0.05: {int((self.q_competitive <= 0.05).sum()):,} differ more than other genes "
            f"do (competitive), {int((self.q_self_contained <= 0.05).sum()):,} differ "
            "(self-contained)",
            "set".ljust(width) + "   score  q_comp  q_self  up in",
        ]
        lines += [
            f"{self.names[one][:30]:<{width}}{self.score[one]:>8.3g}{self.q_competitive[one]:>8.3g}"
            f"{self.q_self_contained[one]:>8.3g}  {self.up_in[one]}"
            for one in self.order[:SHOWN]
        ]
        return "\n".join(lines)

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
        found = [("", 0.0)] * len(order)
        for rank in range(1, len(order)):
            better = shares[order[rank], order[:rank]]
            best = int(better.argmax())
            name = self.names[order[best]] if better[best] >= REDUNDANT else ""
            found[order[rank]] = (name, float(better[best]))
        return found

    @property
    def table(self) -> Any:
        """All of it, one row per set, best first."""
        order = self.order
        edges = [", ".join(self.leading_edge(name)) for name in self.names]
        like, shared = zip(*self.redundancy(), strict=True)
        columns = {
            "pathway": np.array(self.names, dtype=object),
            "score": self.score,
            "listed": np.array(self.groups.listed or self.groups.sizes),
            "size": self.groups.sizes,
            "coverage": self.groups.coverage,
            "contrast": np.array(self.contrast, dtype=object),
            "up_in": np.array(self.up_in, dtype=object),
            "direction": self.direction,
            "share_up": self.share_up,
            "mean_z": self.mean_z,
            "p_competitive": self.p_competitive,
            "q_competitive": self.q_competitive,
            "p_self_contained": self.p_self_contained,
            "q_self_contained": self.q_self_contained,
            "edge_size": np.array([len(edge) for edge in self.edges]),
            "leading_edge": np.array(edges, dtype=object),
            "redundant_with": np.array(like, dtype=object),
            "shared_edge": np.array(shared),
        }
        ranked = {name: values[order] for name, values in columns.items()}
        return make_table({"rank": np.arange(1, len(order) + 1), **ranked})


def pathway_test(
    X: Any,
    y: Any,
    groups: Any = None,
    *,
    selector: FROTSelector | None = None,
    n_permutations: int = 1000,
    block: Any = None,
    sample_weight: Any = None,
    min_size: int | None = None,
    max_size: int | None = None,
    min_coverage: float = 0.0,
    feature_names: Any = None,
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
        Whose `multiclass`, `missing`, and solver's parameters to use.
    n_permutations : int
        B.
    block : array of shape (N,), optional
        Batch, donor...: labels are permuted, and features centred, within each.
    sample_weight : array of shape (N,), optional
    min_size, max_size, min_coverage : optional
        As in `frot.Groups.limited`: 5, 500 and 0 for sets of a ``.gmt`` file.
    feature_names : sequence of str, length d, optional
        By default the columns of X.
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
    seed = check_run(None, False, None, random_state)
    model = unfitted(selector).set_params(n_features_to_select=None, threshold=None)
    if groups is not None:
        model.set_params(groups=_named_groups(groups, X, feature_names))
    prepared = prepare(model, X, y, sample_weight)
    limited = prepared.groups.limited(min_size, max_size, min_coverage)
    prepared = replace(prepared, groups=limited)
    names = _names(feature_names, model, prepared)
    blocks = check_blocks(block, prepared.codes)
    found = set_statistics(prepared, blocks, count, seed)
    competitive, alone = found.competitive, found.self_contained
    return PathwayTest(
        groups=prepared.groups,
        score=competitive[0].astype(float),
        p_competitive=permutation_p(competitive[0], competitive[1:]),
        q_competitive=_pooled_q(competitive),
        p_self_contained=permutation_p(alone[0], alone[1:]),
        q_self_contained=_pooled_q(standardise(alone)),
        **_directions(found, prepared.groups, prepared.contrasts()),
        edges=_edges(found, prepared.groups),
        feature_names=names,
        n_permutations=count,
    )


def _named_groups(groups: Any, X: Any, names: Any) -> Any:
    """Read groups of features whose names are not the table's own."""
    shape = np.shape(X)
    if names is None or len(shape) != 2:
        return groups
    return Groups.parse(groups, shape[1], check_feature_names(names, shape[1]))


def _names(given: Any, model: FROTSelector, prepared: Prepared) -> tuple[str, ...]:
    d = prepared.table.shape[1]
    named = check_feature_names(given, d)
    return tuple(column_names(model, d) if named is None else map(str, named))


def _pooled_q(standard: np.ndarray) -> np.ndarray:
    """Return q-values from the null of all sets together: rows 1 to B of (B + 1, L)."""
    observed, null = standard[0], np.sort(standard[1:], axis=None)
    order = np.argsort(observed)
    beyond = null.size - np.searchsorted(null, observed[order])
    q = np.empty(len(observed))
    q[order] = pooled_rates(observed[order], beyond, len(standard) - 1)
    return q


def _directions(found: SetStatistics, groups: Groups, contrasts: list[Contrast]) -> dict[str, Any]:
    """Return where, and which way, each set differs most."""
    members = groups.membership()
    strength = excess(found.z)
    up, down = (
        np.stack(
            [members @ np.where(side, one, 0.0) for one, side in zip(strength, sides, strict=True)]
        )
        for sides in (found.z > 0.0, found.z < 0.0)
    )
    place = np.maximum(up, down).argmax(axis=0)
    at = place, np.arange(len(groups))
    total = np.maximum(up + down, np.finfo(float).tiny)
    direction = ((up - down) / total)[at]
    counts = np.maximum(members @ found.varying, 1.0)
    share_up = (members @ (found.z > 0.0).T).T[at] / counts
    mean = (members @ found.z.T).T[at] / counts
    return {
        "contrast": tuple(contrasts[one].name for one in place),
        "up_in": tuple(
            _higher(contrasts[one], value) for one, value in zip(place, direction, strict=True)
        ),
        "direction": direction,
        "share_up": share_up,
        "mean_z": mean,
    }


def _higher(contrast: Contrast, direction: float) -> str:
    if abs(direction) < ONE_WAY:
        return "mixed"
    if direction > 0.0:
        return str(contrast.first)
    return f"all but {contrast.first}" if contrast.second is None else str(contrast.second)


def _edges(found: SetStatistics, groups: Groups) -> tuple[np.ndarray, ...]:
    values, varying = found.contributions, found.varying
    total, count = float(values.sum()), int(varying.sum())
    edges = []
    for members in groups.indices:
        members = members[varying[members]]
        others = count - len(members)
        ordinary = (total - float(values[members].sum())) / others if others else 0.0
        edges.append(leading_edge(values, members, ordinary))
    return tuple(edges)

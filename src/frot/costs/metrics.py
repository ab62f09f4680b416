r"""A registry of metrics whose costs factor over features.

Such a cost is a squared distance between mapped points,

.. math:: [C_l]_{ij} = s\, \| z_l(x_i) - z_l(y_j) \|^2 ,

so that a mixed cost is a product of matrices and no stack has to be formed. One class says what
`z` and `s` are; one line in `METRICS` gives it a name that all of frot takes: `frot.solve` on the
host and on devices, `frot.solve_batch`, `frot.pairwise`, `frot.torch.FRWDLoss`, the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from frot._base.arrays import Array, Home, namespace, quiet, to_numpy
from frot._base.errors import InputError
from frot.groups.groups import Groups


@dataclass(frozen=True, eq=False)
class Columns:
    """Which group each column belongs to: those of every group stand together.

    A feature that is in two groups is two columns.

    Examples
    --------
    >>> columns = Columns(Groups.parse([[0, 1], [1]], 2))
    >>> columns.sum(np.array([[1.0, 2.0, 4.0]]))
    array([[3., 4.]])
    >>> columns.spread(np.array([[3.0, 4.0]]))
    array([[3., 3., 4.]])
    """

    groups: Groups

    @cached_property
    def owners(self) -> np.ndarray:
        """The group of every column."""
        return np.repeat(np.arange(len(self.groups)), self.groups.sizes)

    def membership(self, copies: int = 1, scale: float = 1.0) -> sparse.csr_array:
        """What a group pays for a column, (L, D), where all columns come in so many copies."""
        count = len(self.owners)
        rows = np.tile(self.owners, copies)
        order = np.argsort(rows, kind="stable")
        offsets = copies * self.groups.offsets
        parts = (np.full(copies * count, scale), order, offsets)
        return sparse.csr_array(parts, shape=(len(self.groups), copies * count))

    def sum(self, values: Array) -> Array:
        """Sum columns, the last axis, group by group."""
        if isinstance(values, np.ndarray):
            return np.add.reduceat(values, self.groups.offsets[:-1], axis=-1)
        nothing = values.new_zeros(*values.shape[:-1], len(self.groups))
        return nothing.index_add(-1, Home.of(values).indices(self.owners), values)

    def spread(self, values: Array) -> Array:
        """Give all columns of a group its number."""
        home = Home.of(values)
        return home.xp.take(values, home.indices(self.owners), axis=values.ndim - 1)


class FactoredMetric:
    r"""A cost :math:`s\,\|z(x) - z(y)\|^2` of the features of a group.

    Derive from it, say what `embed` does, and put an instance into `METRICS`. The class as it
    stands is the squared Euclidean distance.

    Attributes
    ----------
    maps : bool
        Whether `embed` does anything. Points that are not mapped may be centred, and keep all
        their digits in differences.
    scale : float
        The factor s.
    complaint : str
        What is wrong with a point that has no image, for the message: "is all zeros".

    Examples
    --------
    Distributions over the features of a group, by Hellinger's distance squared:

    >>> import frot
    >>> class Hellinger(frot.costs.FactoredMetric):
    ...     maps, scale, complaint = True, 0.5, "has negative numbers"
    ...     def embed(self, points, columns):
    ...         xp = frot.costs.namespace(points)
    ...         return xp.sqrt(points / columns.spread(columns.sum(points)))
    ...     def outside(self, points, columns):
    ...         return columns.sum(abs(points) - points) > 0.0
    ...     def units(self, size):
    ...         return 0.25 * size + 2.0
    >>> frot.costs.METRICS["hellinger"] = Hellinger()
    >>> result = frot.solve([[1.0, 1.0]], [[1.0, 0.0]], groups="all", metric="hellinger")
    >>> round(result.value, 4)
    0.2929
    >>> del frot.costs.METRICS["hellinger"]
    """

    maps: bool = True
    scale: float = 1.0
    complaint: str = "has no image"

    def embed(self, points: Array, columns: Columns) -> Array:
        """Return z of the points, (..., D), in the library they are in.

        Parameters
        ----------
        points : array of shape (..., F)
            Double precision; the features of every group, one group after another.
        columns : Columns
            Which group a column belongs to: sums over groups, and back.

        Returns
        -------
        array of shape (..., D)
            D is F, or a multiple of it: then every F columns belong to the groups as the first do.
            Of a tensor that requires grad it has one: the loss needs nothing else.
        """
        return points

    def outside(self, points: Array, columns: Columns) -> Array:
        """Return which groups of which points have no image, (..., L); None if all have one."""
        return None

    def units(self, size: int) -> float:
        """Bound what coordinates of z are off by, for a group of so many features.

        In units in the last place of each. This goes into every proven interval.
        """
        return 0.0


class SquaredEuclidean(FactoredMetric):
    """The squared Euclidean distance: points as they are."""

    maps = False


class Cosine(FactoredMetric):
    r"""One minus the cosine: half the squared distance of vectors of unit length."""

    scale = 0.5
    complaint = "is all zeros"

    def embed(self, points: Array, columns: Columns) -> Array:
        """Scale every group to unit length."""
        xp = namespace(points)
        # The sum of sizes first, which keeps squares of tiny or huge numbers finite.
        points = points / columns.spread(columns.sum(xp.abs(points)))
        return points / columns.spread(xp.sqrt(columns.sum(points * points)))

    def outside(self, points: Array, columns: Columns) -> Array:
        """Zero has no direction."""
        return columns.sum(namespace(points).abs(points)) == 0.0

    def units(self, size: int) -> float:
        """A norm is off by a quarter of a unit a feature; its root and two quotients by more."""
        return 0.25 * size + 2.5


# The metrics by the names that users give: one line each.
METRICS: dict[str, FactoredMetric] = {
    "sqeuclidean": SquaredEuclidean(),
    "cosine": Cosine(),
}


class Mapped(NamedTuple):
    """Mapped points, (..., n, D) and (..., m, D), and what costs are made of.

    ``membership``, (L, D), is what a group pays for a column, and ``error`` what coordinates are
    off by, in units in the last place of each.
    """

    X: Array
    Y: Array
    membership: sparse.csr_array
    error: float

    def groups(self, names: tuple[str, ...]) -> Groups:
        """The columns of every group."""
        parts = np.split(self.membership.indices, self.membership.indptr[1:-1])
        return Groups.parse(dict(zip(names, parts, strict=True)), self.X.shape[-1], None)


def map_points(
    metric: str | FactoredMetric,
    X: Array,
    Y: Array,
    groups: Groups,
    weights: tuple[np.ndarray, np.ndarray] | None = None,
    names: tuple[str, str] = ("X", "Y"),
    member: bool = False,
) -> Mapped:
    """Map points of NumPy or PyTorch, one problem's or a batch's.

    Parameters
    ----------
    metric : str or FactoredMetric
        One of the registry, or its name.
    X, Y : arrays of shape (..., n, d) and (..., m, d)
    weights : arrays of shape (..., n) and (..., m), optional
        Points without weight need no image.
    names : pair of str
        What messages call the points.
    member : bool
        Whether these should name the member of the batch.

    Examples
    --------
    >>> X, Y = np.array([[3.0, 4.0]]), np.array([[0.0, 2.0]])
    >>> map_points("cosine", X, Y, Groups.all(2)).X
    array([[0.6, 0.8]])
    """
    metric = METRICS[metric] if isinstance(metric, str) else metric
    if not metric.maps:
        membership = groups.membership()
        if not groups.covers:
            used = np.unique(groups.flat)
            X, Y, membership = _pick(X, used), _pick(Y, used), sparse.csr_array(membership[:, used])
        return Mapped(X, Y, metric.scale * membership if metric.scale != 1.0 else membership, 0.0)
    columns = Columns(groups)
    X, Y = (
        _embed(metric, _pick(points, groups.flat), columns, present, name, member)
        for points, present, name in zip((X, Y), weights or (None, None), names, strict=True)
    )
    copies = X.shape[-1] // len(groups.flat)
    membership = columns.membership(copies, metric.scale)
    return Mapped(X, Y, membership, metric.units(int(groups.sizes.max())))


def _pick(points: Array, columns: np.ndarray) -> Array:
    if isinstance(points, np.ndarray):
        return points[..., columns]
    home = Home.of(points)
    return home.xp.take(points, home.indices(columns), axis=points.ndim - 1)


def _embed(
    metric: FactoredMetric, points: Array, columns: Columns, weights: Array, name: str, member: bool
) -> Array:
    """Map the points of one side; refuse those with weight that have no image."""
    xp = namespace(points)
    outside: Array = metric.outside(points, columns)
    bad = outside is not None and bool(xp.any(outside))
    if bad:
        host = to_numpy(outside)
        host = host if weights is None else host & (weights > 0.0)[..., None]
        for *batch, row, group in np.argwhere(host):
            label = f"{name}[{batch[0]}]" if member and batch else name
            raise InputError(
                f"{label} row {row} {metric.complaint} in group {columns.groups.names[group]!r}, "
                f"so it has no {_name(metric)}; drop such points or use metric='sqeuclidean'"
            )
    with quiet():
        images = metric.embed(points, columns)
    if bad:
        copies = images.shape[-1] // points.shape[-1]
        shut = xp.concat([columns.spread(outside)] * copies, axis=points.ndim - 1)
        images = xp.where(shut, xp.zeros_like(images), images)
    return images


def _name(metric: FactoredMetric) -> str:
    return next((name for name, known in METRICS.items() if known is metric), type(metric).__name__)

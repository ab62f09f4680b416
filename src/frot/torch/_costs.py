r"""The group costs of the loss: what solvers see of them, and how a plan differentiates them.

Each kind keeps the tensors that it is differentiated by, and returns, for a plan and weights that
are held fixed,

.. math:: \frac{\partial}{\partial \theta} \langle \Pi, \sum_l \alpha_l C_l(\theta) \rangle .

`SquaredCosts` are squared distances of points (of images of points, by metrics of the registry),
`DistanceCosts` distances, and `GivenCosts` a stack of matrices, whose derivative is
:math:`\alpha_l \Pi`: what made them is left to autograd.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from frot._base.arrays import Home, blocks
from frot.costs import MEMORY_BUDGET, METRICS, Batch, Costs, Distances, FactoredMetric, Stack
from frot.costs.build import points_costs
from frot.costs.distances import NORMS, norms
from frot.costs.points import stand_ins, take_members
from frot.groups.groups import Groups

if TYPE_CHECKING:
    from typing_extensions import Self

    from frot.torch._solved import Solved

# Weights and potentials of the last call are where the next one begins if points have moved by no
# more than this share of what they are apart, in squares: with new points they only mislead.
MOVED = 0.1

Masses = tuple[Tensor, Tensor]
Derivatives = list[Tensor | None]


@dataclass(frozen=True, eq=False)
class LossCosts(ABC):
    """L costs of a batch of B problems, and the tensors that they come from.

    Attributes
    ----------
    groups : Groups
        Of the costs; the features of points.
    """

    groups: Groups

    @property
    def kind(self) -> tuple[object, ...]:
        """What has to agree with other costs for the tensors to mean the same."""
        return (type(self), self.groups.flat.tobytes(), self.groups.offsets.tobytes())

    @property
    @abstractmethod
    def tensors(self) -> tuple[Tensor, ...]:
        """What they are differentiated by."""

    @abstractmethod
    def having(self, *tensors: Tensor) -> Self:
        """The same of other tensors."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """(B, n, m)."""

    @abstractmethod
    def symmetric(self, a: Tensor, b: Tensor) -> bool:
        """Whether the transposed problem is the same one."""

    @abstractmethod
    def mean(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the mean size of the costs over groups, (B,), to be differentiated."""

    @abstractmethod
    def to_costs(self, weights: tuple[np.ndarray, np.ndarray]) -> Costs:
        """The costs as solvers work on them, in double precision."""

    @abstractmethod
    def standing(self, rows: np.ndarray | None, cols: np.ndarray | None) -> Self:
        """The same with points at others' places, (B, n) and (B, m); None where they are."""

    @abstractmethod
    def near(self, last: LossCosts, weights: Masses, level: Tensor) -> bool:
        """Whether others of their kind differ by little, relative to the mean `level`, (B,)."""

    @abstractmethod
    def gradients(
        self, solved: Solved, masses: Masses, grad: Tensor, needs: tuple[bool, ...]
    ) -> Derivatives:
        """Return the derivatives by the tensors, each times that of its member's loss, (B,).

        `masses` are the marginals of the plans.
        """

    @property
    def home(self) -> Home:
        """Where the tensors are, in their precision."""
        return Home.of(self.tensors[0])

    def member(self, part: slice) -> Self:
        """Some members only."""
        return self.having(*(tensor[part] for tensor in self.tensors))

    def copied(self) -> Self:
        """The same on tensors of their own: an optimiser moves points where they are."""
        return self.having(*(tensor.detach().clone() for tensor in self.tensors))

    def detached(self) -> Self:
        """The same without a graph."""
        return self.having(*(tensor.detach() for tensor in self.tensors))

    def fits(self, last: LossCosts) -> bool:
        """Whether others are of the same kind, and their tensors of the same shapes."""
        return self.kind == last.kind and all(
            new.shape == old.shape and new.device == old.device
            for new, old in zip(self.tensors, last.tensors, strict=True)
        )

    def same(self, last: LossCosts) -> bool:
        """Whether others have the same numbers, too."""
        return self.fits(last) and all(
            new.dtype == old.dtype and torch.equal(new, old)
            for new, old in zip(self.tensors, last.tensors, strict=True)
        )

    def both_costs(self, weights: tuple[np.ndarray, np.ndarray]) -> tuple[Costs, Costs]:
        """The costs with points of no weight where others are; and as they are."""
        true = self.to_costs(weights)
        rows, cols = map(stand_ins, weights)
        if rows is None and cols is None:
            return true, true
        return self.standing(rows, cols).to_costs(weights), true


@dataclass(frozen=True, eq=False)
class PointCosts(LossCosts):
    """Costs between points x and y, of shape (B, n, d) and (B, m, d)."""

    x: Tensor
    y: Tensor

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.x, self.y

    def having(self, *tensors: Tensor) -> Self:
        return replace(self, x=tensors[0], y=tensors[1])

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.x), self.x.shape[1], self.y.shape[1]

    def symmetric(self, a: Tensor, b: Tensor) -> bool:
        return torch.equal(self.x, self.y) and torch.equal(a, b)

    def standing(self, rows: np.ndarray | None, cols: np.ndarray | None) -> Self:
        home = self.home
        x, y = (
            points if places is None else take_members(home, points, places)
            for points, places in ((self.x, rows), (self.y, cols))
        )
        return self.having(x, y)

    def near(self, last: LossCosts, weights: Masses, level: Tensor) -> bool:
        shares, moved = self._even_weights(level), torch.zeros_like(level)
        for new, old, w in zip(self.tensors, last.tensors, weights, strict=True):
            gaps = (new.double() - old.double()) ** 2
            moved = moved + ((w.double()[:, None, :] @ gaps)[:, 0] * shares).sum(1)
        return bool((moved <= MOVED * self._squared(level)).all())

    @staticmethod
    def _squared(level: Tensor) -> Tensor:
        """The mean square of distances whose costs are `level` on average."""
        return level

    def _even_weights(self, like: Tensor) -> Tensor:
        """Return what features weigh where all groups weigh the same, (1, d)."""
        count = len(self.groups)
        return feature_weights(like.new_full((1, count), 1.0 / count), self.groups)


class Images(FactoredMetric):
    """Squared distances of points that come mapped, each coordinate off by some units."""

    def __init__(self, off: float) -> None:
        self.off = off

    def units(self, size: int) -> float:
        """What the map has said."""
        return self.off


@dataclass(frozen=True, eq=False)
class SquaredCosts(PointCosts):
    """Squared distances of points that come as they are, or mapped (`Images`)."""

    metric: FactoredMetric = METRICS["sqeuclidean"]

    def mean(self, a: Tensor, b: Tensor) -> Tensor:
        a, b = a.double(), b.double()
        # Squares are expanded, which takes points near the origin. The mean is kept within the
        # range of the points, or rounding would tell copies of one point from their mean.
        fixed = self.x.detach().double()
        centre = a.detach()[:, None, :] @ fixed
        centre = centre.clamp(fixed.amin(1, keepdim=True), fixed.amax(1, keepdim=True))
        x, y = self.x.double() - centre, self.y.double() - centre
        mean_x, mean_y = (a[:, None, :] @ x)[:, 0], (b[:, None, :] @ y)[:, 0]
        squares = (a[:, None, :] @ x**2)[:, 0] * b.sum(1, keepdim=True)
        squares = squares + (b[:, None, :] @ y**2)[:, 0] * a.sum(1, keepdim=True)
        weights = self._even_weights(a)
        return ((squares - 2.0 * mean_x * mean_y) * weights).sum(1).clamp(min=0.0)

    def to_costs(self, weights: tuple[np.ndarray, np.ndarray]) -> Costs:
        return points_costs(self.x, self.y, self.groups, self.metric, weights)

    def gradients(
        self, solved: Solved, masses: Masses, grad: Tensor, needs: tuple[bool, ...]
    ) -> Derivatives:
        # Differences of points far from the origin would lose what single precision has.
        # By weight, so that a far point without any does not move the others away.
        shares = masses[0] / masses[0].sum(1, keepdim=True)
        centre = shares[:, None, :] @ self.x.double()
        x, y = self.x.double() - centre, self.y.double() - centre
        weights = 2.0 * grad[:, None, None] * feature_weights(solved.alpha, self.groups)[:, None, :]
        ahead, back = solved.products(x if needs[1] else None, y if needs[0] else None)
        by_x = None if ahead is None else weights * (masses[0][:, :, None] * x - ahead)
        by_y = None if back is None else weights * (masses[1][:, :, None] * y - back)
        return [by_x, by_y]


@dataclass(frozen=True, eq=False)
class DistanceCosts(PointCosts):
    """Distances of a name in `NORMS`: a stack where it fits, else computed when they are needed."""

    metric: str = "euclidean"

    @property
    def kind(self) -> tuple[object, ...]:
        return (*super().kind, self.metric)

    @staticmethod
    def _squared(level: Tensor) -> Tensor:
        return level**2

    @property
    def features(self) -> list[Tensor]:
        """The features of every group, as indices."""
        return list(map(self.home.indices, self.groups.indices))

    def distances(self, x: Tensor, y: Tensor, features: Tensor) -> Tensor:
        """Return distances of points, (B, n, d) and (B, m, d), in some features, (B, n, m)."""
        return norms(x[..., features], y[..., features], NORMS[self.metric])

    def mean(self, a: Tensor, b: Tensor) -> Tensor:
        (batch, n, m), features = self.shape, self.features
        x, y, a, b = self.x.double(), self.y.double(), a.double(), b.double()

        def total(x: Tensor, y: Tensor, a: Tensor, b: Tensor) -> Tensor:
            """Sum all groups' mean distances from some of the rows."""
            pieces = [self.distances(x, y, own) @ b[:, :, None] for own in features]
            return (a[:, None, :] @ torch.stack(pieces).sum(0))[:, 0, 0]

        parts = blocks(n, 8 * batch * m * len(features), 64_000_000)
        if len(parts) == 1:
            return total(x, y, a, b) / len(features)
        # Formed once more when they are differentiated: a block of rows is held at a time.
        sums = [
            checkpoint(total, x[:, part], y, a[:, part], b, use_reentrant=False) for part in parts
        ]
        return torch.stack(sums).sum(0) / len(features)

    def to_costs(self, weights: tuple[np.ndarray, np.ndarray]) -> Costs:
        pairs = zip(*(points.detach().double() for points in self.tensors), strict=True)
        members = [Distances(x, y, self.groups, self.metric) for x, y in pairs]
        costs = Batch(tuple(members))
        if 8 * prod(costs.shape) > MEMORY_BUDGET:
            return costs
        return Stack(costs.stack(), members[0].relative)

    def gradients(
        self, solved: Solved, masses: Masses, grad: Tensor, needs: tuple[bool, ...]
    ) -> Derivatives:
        weights = grad[:, None] * solved.alpha
        x, y = (points.detach().double() for points in self.tensors)
        by_x, by_y = (
            torch.zeros_like(side) if need else None
            for side, need in zip((x, y), needs, strict=True)
        )
        for part, block in solved.blocks():
            for group, own in enumerate(self.features):
                if not bool(weights[:, group].any()):
                    continue
                # One group's distances are held at a time.
                leaves = x[:, part].requires_grad_(needs[0]), y.requires_grad_(needs[1])
                with torch.enable_grad():
                    distances = self.distances(*leaves, own)
                plan = weights[:, group, None, None] * block
                wanted = [leaf for leaf, need in zip(leaves, needs, strict=True) if need]
                pulls = iter(torch.autograd.grad(distances, wanted, plan))
                if by_x is not None:
                    by_x[:, part] += next(pulls)
                if by_y is not None:
                    by_y += next(pulls)
        return [by_x, by_y]


@dataclass(frozen=True, eq=False)
class GivenCosts(LossCosts):
    """Costs that come as a stack C, (B, L, n, m), of any sign."""

    C: Tensor

    @classmethod
    def of(cls, C: Tensor) -> GivenCosts:
        """The groups have no features: each stands for itself."""
        return cls(Groups.each(C.shape[1]), C)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return (self.C,)

    def having(self, *tensors: Tensor) -> Self:
        return replace(self, C=tensors[0])

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.C), self.C.shape[2], self.C.shape[3]

    def symmetric(self, a: Tensor, b: Tensor) -> bool:
        return torch.equal(a, b) and torch.equal(self.C, self.C.mT)

    def mean(self, a: Tensor, b: Tensor) -> Tensor:
        sizes = torch.einsum("bi,blij,bj->bl", a.double(), self.C.double().abs(), b.double())
        return sizes.mean(1)

    def to_costs(self, weights: tuple[np.ndarray, np.ndarray]) -> Costs:
        return Stack(self.C.detach().double())

    def standing(self, rows: np.ndarray | None, cols: np.ndarray | None) -> Self:
        C = self.C
        for places, dim in ((rows, 2), (cols, 3)):
            if places is not None:
                shape = (len(C), 1, -1, 1) if dim == 2 else (len(C), 1, 1, -1)
                index = torch.as_tensor(places, device=C.device).view(shape)
                C = torch.take_along_dim(C, index, dim)
        return self.having(C)

    def near(self, last: LossCosts, weights: Masses, level: Tensor) -> bool:
        moved = self.having(self.C - last.tensors[0].to(self.C)).mean(*weights)
        return bool((moved <= MOVED**0.5 * level).all())

    def gradients(
        self, solved: Solved, masses: Masses, grad: Tensor, needs: tuple[bool, ...]
    ) -> Derivatives:
        plans = torch.cat([block for _, block in solved.blocks()], dim=1)
        return [(grad[:, None] * solved.alpha)[:, :, None, None] * plans[:, None]]


def feature_weights(alpha: Tensor, groups: Groups) -> Tensor:
    """Return what every feature weighs, (B, d), under weights of the groups, (B, L)."""
    sizes = torch.as_tensor(groups.offsets[1:] - groups.offsets[:-1], device=alpha.device)
    flat = torch.as_tensor(groups.flat.copy(), device=alpha.device)
    weights = alpha.new_zeros(alpha.shape[0], groups.n_features)
    return weights.index_add(1, flat, alpha.repeat_interleave(sizes, dim=1))

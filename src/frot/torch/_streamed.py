r"""Losses of two clouds by fused kernels: values and gradients without a matrix.

The three costs of a debiased loss are solved together (`clouds`), and the gradient by the points
comes from the plans' products with them, one pass over each:

.. math::
    \frac{\partial}{\partial x_i} = 2 a_i \big( w \circ (x_i - T x_i) - w' \circ (x_i - T' x_i)
    \big) , \qquad T x_i = \frac{\sum_j \pi_{ij} y_j}{\sum_j \pi_{ij}} ,

with w and T of x and y, w' and T' of x and itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frot._base.arrays import Array
from frot.groups.groups import Groups
from frot.solvers.entropic.clouds import (
    Clouds,
    CloudSearch,
    CloudSolution,
    Options,
    cloud_kernels,
    solve_clouds,
)
from frot.torch._envelope import envelope
from frot.torch._shared_ascent import SHARES


def streams(x: Tensor) -> bool:
    """Whether there are kernels for points like these."""
    return cloud_kernels(x) is not None


@lru_cache(maxsize=16)
def _member(flat: bytes, offsets: bytes, count: int, d: int, device: str) -> Any:
    """Return which features are in which group, (L, d), on the host and on a device."""
    numbers, ends = (np.frombuffer(part, dtype=np.int64) for part in (flat, offsets))
    table = np.zeros((count, d))
    table[np.repeat(np.arange(count), np.diff(ends)), numbers] = 1.0
    return table, torch.as_tensor(table, device=device)


def streamed_loss(
    points: tuple[Tensor, Tensor, Tensor, Tensor],
    amounts: tuple[Tensor | float, Tensor | float],
    groups: Groups,
    log_prior: Array,
    tol: float,
    max_iter: int,
    debias: bool,
    before: CloudSolution | None,
) -> tuple[Tensor | None, CloudSolution | None]:
    """Return the loss and what it comes from; None where the kernels do not get there.

    Parameters
    ----------
    points : tensors of shape (n, d), (m, d), (n,) and (m,)
        x, y, a and b.
    amounts : tensors of shape (), or numbers
        eta and eps.
    """
    x, y, a, b = (part.detach() for part in points)
    kernels = cloud_kernels(x)
    if kernels is None:
        return None, None
    eta, eps = (float(part.detach() if isinstance(part, Tensor) else part) for part in amounts)
    shape = (len(groups), x.shape[1])
    flat, offsets = (part.astype(np.int64).tobytes() for part in (groups.flat, groups.offsets))
    table, member = _member(flat, offsets, *shape, str(x.device))
    options = Options(eta, eps, table, member, tol, log_prior, debias, max_iter)
    # A cloud and itself have a loss of zero, which three searches would not find.
    if not options.suits or (debias and torch.equal(x, y) and torch.equal(a, b)):
        return None, None
    with torch.cuda.device_of(x):
        last = None if before is None else before.clouds
        solution = solve_clouds(Clouds(kernels, x, y, a, b, options, before=last), before)
    if solution is None:
        return None, None
    loss: Any = _Streamed.apply(*points, *amounts, *solution)
    return loss, solution[0]


class _Streamed(torch.autograd.Function):
    """The loss of what was found, and the envelope of its three problems."""

    @staticmethod
    def forward(
        ctx: Any, x, y, a, b, eta, eps, solution: CloudSolution, search: CloudSearch
    ) -> Tensor:
        ctx.solution, ctx.search = solution, search
        ctx.save_for_backward(x, y, a, b)
        return x.new_tensor(float(np.dot(SHARES[: len(solution.values)], solution.values)))

    @staticmethod
    @envelope
    def backward(ctx: Any, *grads: Any) -> list[Any]:  # pyright: ignore
        """Return the derivatives by all arguments."""
        x, _, a, b = ctx.saved_tensors
        grad, needs, result = grads[0].double(), ctx.needs_input_grad, [None] * 8
        solution: CloudSolution = ctx.solution
        search: CloudSearch = ctx.search
        clouds, options = solution.clouds, solution.clouds.options
        ends, d, count = clouds.ends, clouds.features, clouds.problems
        # With itself a cloud is on both sides, each for half.
        sides = tuple((side, side + 2)[: min(count, 2)] for side in (0, 1))
        wanted = {part for side in (0, 1) if needs[side] for part in sides[side]}
        plans = search.transport(wanted) if wanted else None
        weights = 2.0 * solution.alpha @ options.table
        for side, weight in ((0, a), (1, b)):
            if not needs[side]:
                continue
            assert plans is not None
            points, total = clouds.points[ends[side] : ends[side + 1], :d], None
            for part in sides[side]:
                own = slice(ends[part], ends[part + 1])
                scale = torch.as_tensor(weights[max(0, part - 1)], device=x.device).float()
                gap = (points - plans[1][own] / plans[0][own, None]) * scale
                total = gap if total is None else total.sub_(gap)
            assert total is not None
            result[side] = (total * (grad * weight.double()).float()[:, None]).to(x.dtype)
        for side in (0, 1):
            if needs[2 + side]:
                by = [solution.potentials[ends[part] : ends[part + 1]] for part in sides[side]]
                result[2 + side] = (grad * (by[0] if count == 1 else by[0] - by[1])).to(x.dtype)
        shares, alpha = np.array(SHARES[:count]), solution.alpha
        entropy = -(alpha * np.log(np.where(alpha > 0.0, alpha, 1.0))).sum(axis=1)
        if options.log_prior is not None:
            entropy = entropy + alpha @ options.log_prior
        if needs[4]:
            result[4] = grad * float(shares @ entropy)
        if needs[5]:
            # What the value has besides costs and entropy of alpha is eps times the divergence.
            phi = search.group_costs(set(range(count)))
            divergence = solution.values - options.eta * entropy - (alpha * phi).sum(axis=1)
            result[5] = grad * float(shares @ divergence) / options.eps
        return result

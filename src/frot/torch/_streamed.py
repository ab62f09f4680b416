r"""Losses of two clouds by fused kernels: values and gradients without a matrix.

The three costs of a debiased loss are solved together (`clouds`), and the gradient by the points
comes from the plans' products with them, one pass over each:

.. math::
    \frac{\partial}{\partial x_i} = 2 a_i \big( w \circ (x_i - T x_i) - w' \circ (x_i - T' x_i)
    \big) , \qquad T x_i = \frac{\sum_j \pi_{ij} y_j}{\sum_j \pi_{ij}} ,

with w and T of x and y, w' and T' of x and itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from frot.groups.groups import Groups
from frot.solvers.sinkhorn.clouds import (
    Clouds,
    Found,
    Options,
    Search,
    cloud_kernels,
    solve_clouds,
)
from frot.torch._once import Envelope

__all__ = ["streamed_loss"]

# What the loss has of each problem.
SHARES = np.array([1.0, -0.5, -0.5])


def streamed_loss(
    points: tuple[Tensor, Tensor, Tensor, Tensor],
    amounts: tuple[Tensor, Tensor],
    groups: Groups,
    log_prior: Any,
    tol: float,
    debias: bool,
    before: Found | None,
) -> tuple[Tensor | None, Found | None]:
    """Return the loss and what it comes from; None where the kernels do not get there.

    Parameters
    ----------
    points : tensors of shape (n, d), (m, d), (n,) and (m,)
        x, y, a and b.
    amounts : tensors of shape ()
        eta and eps.
    """
    x, y, a, b = (part.detach() for part in points)
    kernels = cloud_kernels(x)
    if kernels is None:
        return None, None
    eta, eps = torch.stack([part.detach() for part in amounts]).tolist()
    member = np.zeros((len(groups), x.shape[1]))
    sizes = np.diff(groups.offsets)
    member[np.repeat(np.arange(len(groups)), sizes), groups.flat] = 1.0
    table = torch.as_tensor(member, device=x.device)
    options = Options(eta, eps, table, tol, log_prior, debias)
    if not options.suits:
        return None, None
    # A cloud and itself have a loss of zero, which three searches would not find.
    if debias and torch.equal(x, y) and torch.equal(a, b):
        return None, None
    with torch.cuda.device_of(x):
        found = solve_clouds(Clouds(kernels, x, y, a, b, options), before)
    if found is None:
        return None, None
    loss: Any = _Streamed.apply(*points, *amounts, found)
    found.plans.clear()
    return loss, found


class _Streamed(Envelope):
    """The loss of what was found, and the envelope of its three problems."""

    @staticmethod
    def forward(ctx: Any, x, y, a, b, eta, eps, found: Found) -> Tensor:
        ctx.found, ctx.plans = found, list(found.plans)
        ctx.save_for_backward(x, y, a, b)
        value = float(SHARES[: len(found.values)] @ found.values)
        return x.new_tensor(value)

    @staticmethod
    def envelope(ctx: Any, grad: Tensor) -> list[Any]:
        """Return the derivatives by all arguments, plans and weights held fixed."""
        x, _, a, b = ctx.saved_tensors
        found: Found = ctx.found
        needs, result = ctx.needs_input_grad, [None] * 7
        clouds, options = found.clouds, found.clouds.options
        search = Search(clouds, found.alpha)
        search.state = found.state
        ends, d, count = clouds.ends, clouds.features, clouds.problems
        weights = torch.as_tensor(found.alpha, device=x.device) @ options.member
        weights = 2.0 * grad.double() * weights
        wanted = ({0, 2} if needs[0] else set()) | ({1, 3} if needs[1] else set())
        wanted = {at for at in wanted | ({0, 2, 3} if needs[5] else set()) if at < len(ends) - 1}
        plans = ctx.plans.pop() if ctx.plans else None
        missing = wanted if plans is None else wanted - {0, 2, 3}
        if missing:
            plans = search.transport(tuple(sorted(missing)), plans)
        # With itself a cloud is on both sides, each for half.
        for at, own in ((0, 2), (1, 3)):
            if not needs[at]:
                continue
            assert plans is not None
            points, total = clouds.points[ends[at] : ends[at + 1], :d], None
            for part in (at, own)[:count]:
                mine = slice(ends[part], ends[part + 1])
                gap = points - plans[1][mine] / plans[0][mine, None]
                gap *= weights[max(0, part - 1)].float()
                total = gap if total is None else total.sub_(gap)
            assert total is not None
            result[at] = (total * (a, b)[at].float()[:, None]).to(x.dtype)
        potentials = (search.state + search.norms) / search.unit
        for at, own in ((0, 2), (1, 3)):
            if needs[2 + at]:
                by = potentials[ends[at] : ends[at + 1]]
                if count > 1:
                    by = by - potentials[ends[own] : ends[own + 1]]
                result[2 + at] = (grad.double() * by).to(x.dtype)
        shares = SHARES[:count]
        if needs[4]:
            alpha = found.alpha
            entropy = -(alpha * np.log(np.where(alpha > 0.0, alpha, 1.0))).sum(axis=1)
            if options.log_prior is not None:
                entropy = entropy + alpha @ options.log_prior
            result[4] = grad.double() * float(shares @ entropy)
        if needs[5]:
            assert plans is not None
            phi = search.group_costs(*plans)
            divergence = search.linear() - (found.alpha * phi).sum(axis=1)
            result[5] = grad.double() * float(shares @ divergence) / options.eps
        return result

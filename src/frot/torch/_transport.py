r"""The value of a batch of problems in autograd: plans and weights are held fixed backward."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from frot.torch._costs import LossCosts
from frot.torch._envelope import envelope
from frot.torch._solved import Solved


class Amounts(NamedTuple):
    """The mean costs of the members, (B,), and what is in units of cost: eta, eps, prices of mass.

    Prices are infinite where mass is kept.
    """

    level: Tensor
    eta: Tensor
    eps: Tensor
    tau_a: Tensor
    tau_b: Tensor

    def members(self, part: slice) -> Amounts:
        """Those of some members only."""
        return Amounts(*(amount[part] for amount in self))

    def detached(self) -> Amounts:
        """The same without a graph."""
        return Amounts(*(amount.detach() for amount in self))


def value_of(
    costs: LossCosts, weights: tuple[Tensor, Tensor], amounts: Amounts, solved: Solved
) -> Tensor:
    """Return the values of the members, (B,), as a function of costs, weights and amounts.

    Parameters
    ----------
    costs : LossCosts
        With their graph.
    weights : tensors of shape (B, n) and (B, m)
    amounts : Amounts
    solved : Solved
        The answers.
    """
    value: Any = _Transport.apply(*costs.tensors, *weights, *amounts[1:], costs.detached(), solved)
    return value


class _Transport(torch.autograd.Function):
    """Values found by a solver forward, the envelope backward."""

    @staticmethod
    def forward(ctx: Any, *parts: Any) -> Tensor:
        *tensors, costs, solved = parts
        ctx.costs, ctx.solved = costs, solved
        ctx.save_for_backward(*tensors)
        # A copy: the value that is returned becomes part of a graph, the stored one must not.
        return solved.values.clone()

    @staticmethod
    @envelope
    def backward(ctx: Any, *grads: Any) -> list[Any]:  # pyright: ignore
        """Return the derivatives by all arguments."""
        *tensors, a, b, _, eps, tau_a, tau_b = ctx.saved_tensors
        needs, dtype = ctx.needs_input_grad, ctx.saved_tensors[-6].dtype
        solved: Solved = ctx.solved
        grad, a, b = grads[0].double(), a.double(), b.double()
        rows, cols = _MarginalSide.of(a, solved.f, tau_a), _MarginalSide.of(b, solved.g, tau_b)
        by_costs, rest = needs[: len(tensors)], needs[len(tensors) :]
        derivatives: list[Any] = [None] * len(tensors)
        if any(by_costs):
            costs: LossCosts = ctx.costs.having(*tensors)
            pulls = costs.gradients(solved, (rows.masses, cols.masses), grad, by_costs)
            derivatives = [None if pull is None else pull.to(tensors[0]) for pull in pulls]
        by: list[Any] = [None] * 8
        for index, side, other in ((0, rows, b), (1, cols, a)):
            if rest[index]:
                slope = side.by_weight(eps.double(), other) if solved.unbalanced else side.potential
                by[index] = (grad[:, None] * slope).to(dtype)
            if rest[4 + index]:
                by[4 + index] = grad * side.by_price()
        if rest[2]:
            by[2] = grad * solved.entropy
        if rest[3]:
            # What the value has besides costs and entropy of alpha is eps times the divergence.
            inner = (rows.masses * solved.f).sum(1) + (cols.masses * solved.g).sum(1)
            inner = inner - (solved.alpha * solved.phi).sum(1)
            by[3] = grad * inner / eps
            if solved.unbalanced:
                over = cols.masses.sum(1) - a.sum(1) * b.sum(1)
                by[3] = by[3] - grad * over
        return [*derivatives, *by]


class _MarginalSide(NamedTuple):
    """One side at the optimum: weights (B, n), potentials, the price of mass, and what is kept."""

    weights: Tensor
    potential: Tensor
    price: Tensor
    masses: Tensor

    @classmethod
    def of(cls, weights: Tensor, potential: Tensor, price: Tensor) -> _MarginalSide:
        """An infinite price keeps all."""
        shares = torch.exp(-potential / price[:, None].double())
        return cls(weights, potential, price[:, None].double(), weights * shares)

    def by_weight(self, eps: Tensor, other: Tensor) -> Tensor:
        """Return the derivative of the value by the weights, (B, n)."""
        priced, far = torch.isfinite(self.price), -self.potential / self.price
        price = torch.where(priced, self.price, 1.0)
        lost = torch.where(priced, -price * torch.expm1(far), self.potential)
        # The derivative of the KL term by the product a b^T is zero where all masses are one.
        return lost - eps[:, None] * (torch.exp(far) - other.sum(1, keepdim=True))

    def by_price(self) -> Tensor:
        """Return the derivative of the value by tau, (B,): the divergence of what is kept."""
        far = self.potential / self.price
        return (self.weights * (-torch.expm1(-far) - far * torch.exp(-far))).sum(1)

"""Problems of tensors, solved without a graph, and what gradients need of the answers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from frot._base.arrays import Array, blocks, to_numpy
from frot._base.contract import (
    GAP_SHARE,
    check_batch_range,
    check_cost_range,
    check_not_beyond,
    relative_gap,
)
from frot._base.errors import collect_warnings, warn_caller
from frot._base.validate import check_prior
from frot.api.batch import run_batch
from frot.api.batch_result import BatchResult
from frot.api.batch_work import BatchWork
from frot.costs import MEMORY_BUDGET
from frot.costs.protocol import Costs
from frot.groups.groups import Groups
from frot.problem.adversary import simplex_of
from frot.problem.problem import Marginals, Problem
from frot.problem.result import Result
from frot.solvers import Entropic, Start
from frot.solvers.entropic.ascent import GRADIENT_FACTOR, Aim
from frot.solvers.entropic.dense import dense_bytes
from frot.torch._costs import LossCosts

# Where nothing but the gap is known of a plan its gradient errs by the root of it, so that the gap
# is asked for to the square of `tol`, down to what double precision can prove.
NARROWEST = 1e-12
# What all weights get of one before they start anew: a weight of zero would never rise.
LIFT = 1e-5

Results = Sequence[Result]


@dataclass(frozen=True, eq=False)
class Solved:
    """The answers of a batch, as tensors in double precision on the points' device.

    Attributes
    ----------
    results : BatchResult or list of Result
    values, entropy : tensors of shape (B,)
        Dual values: errors of potentials and weights enter their squares only, where those of
        plans enter as they are. The second is alpha's, relative to the prior: the derivative by
        eta.
    alpha, phi : tensors of shape (B, L)
    f, g : tensors of shape (B, n) and (B, m)
        The derivatives by the weights, where mass is kept.
    unbalanced : bool
        Whether it need not be.
    """

    results: Sequence[Result]
    values: Tensor
    entropy: Tensor
    alpha: Tensor
    phi: Tensor
    f: Tensor
    g: Tensor
    unbalanced: bool = False

    @classmethod
    def of(
        cls, results: Sequence[Result], log_prior: Array, device: Any, unbalanced: bool = False
    ) -> Solved:
        """Collect what gradients need."""

        def bring(array: Array) -> Tensor:
            return torch.tensor(array, dtype=torch.float64, device=device)

        if isinstance(results, BatchResult):
            proof, (f, g) = results.proof, results.duals
            values = torch.minimum(proof.lower + proof.slack, proof.upper)
            alpha, phi = proof.alpha, proof.phi
        else:
            values = bring([result.lower for result in results])
            rows = [(result.alpha, result.phi, *result.potentials) for result in results]
            alpha, phi, f, g = (
                torch.stack(
                    [torch.as_tensor(part, dtype=values.dtype, device=device) for part in parts]
                )
                for parts in zip(*rows, strict=True)
            )
        entropy = -torch.special.xlogy(alpha, alpha).sum(1)
        if log_prior is not None:
            entropy = entropy + alpha @ bring(log_prior)
        return cls(results, values, entropy, alpha, phi, f, g, unbalanced)

    def products(self, x: Tensor | None, y: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Return the products of the plans and y, (B, n, d), and of x and the plans, (B, m, d).

        What is None has none.
        """
        if isinstance(self.results, BatchResult):
            return self.results.products(x, y)
        plans = [result.plan for result in self.results]
        ahead = back = None
        if y is not None:
            ahead = torch.stack([plan @ part for plan, part in zip(plans, y, strict=True)])
        if x is not None:
            back = torch.stack([plan.T @ part for plan, part in zip(plans, x, strict=True)])
        return ahead, back

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of rows of the plans, each of shape (B, r, m)."""
        if isinstance(self.results, BatchResult):
            yield from self.results.blocks()
            return
        n, m = self.f.shape[1], self.g.shape[1]
        for part in blocks(n, 8 * m * len(self.results), 64_000_000):
            rows = [torch.as_tensor(result.plan.rows(part)).to(self.f) for result in self.results]
            yield part, torch.stack(rows)


@dataclass(frozen=True, eq=False)
class BatchProblem:
    """The problems of a batch.

    Attributes
    ----------
    costs : LossCosts
        Detached.
    weights : tensors of shape (B, n) and (B, m)
    amounts : tensors of shape (B,)
        eta, eps and the mean cost.
    k : int
        No group weighs more than 1/k.
    symmetric : bool
        Whether the transposed problems are the same ones.
    tau : tensors of shape (B,), optional
        Prices of mass that need not be kept, infinite where it is.
    """

    costs: LossCosts
    weights: tuple[Tensor, Tensor]
    amounts: tuple[Tensor, Tensor, Tensor]
    prior: Any
    tol: float
    max_iter: int
    k: int = 1
    symmetric: bool = False
    tau: tuple[Tensor, Tensor] | None = None

    @property
    def groups(self) -> Groups:
        """The groups that the costs are of."""
        return self.costs.groups

    @property
    def fits_memory(self) -> bool:
        """Whether the kernel of a member does."""
        return dense_bytes(*self.costs.shape[1:]) <= MEMORY_BUDGET

    def copied(self) -> BatchProblem:
        """The same on tensors of its own: an optimiser moves points where they are."""
        a, b = self.weights
        return replace(self, costs=self.costs.copied(), weights=(a.clone(), b.clone()))

    @property
    def _settings(self) -> tuple[Any, ...]:
        log_prior = check_prior(self.prior, len(self.groups))
        known = None if log_prior is None else log_prior.tobytes()
        return (self.symmetric, self.tol, self.max_iter, self.k, known, self.groups.names)

    def fits(self, other: BatchProblem) -> bool:
        """Whether potentials and weights of the one have the shapes of the other's."""
        return self.costs.fits(other.costs)

    def same(self, other: BatchProblem) -> bool:
        """Whether the other asks for nothing else; its mean cost leads no search."""
        if not self.fits(other) or self._settings != other._settings:
            return False
        if (self.tau is None) != (other.tau is None) or not self.costs.same(other.costs):
            return False
        new, old = ((*each.weights, *each.amounts[:2], *(each.tau or ())) for each in (self, other))
        pairs = zip(new, old, strict=True)
        return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)

    def near(self, other: BatchProblem) -> bool:
        """Whether the costs of the other differ by little."""
        return self.fits(other) and self.costs.near(other.costs, self.weights, self.amounts[2])


def solve_members(asked: BatchProblem, before: tuple[BatchProblem, Solved] | None = None) -> Solved:
    """Solve the problems of a batch: together, or one by one where there is no room.

    Parameters
    ----------
    asked : BatchProblem
    before : pair, optional
        What was asked for and found last, to start from where it is near.
    """
    if before is not None and asked.same(before[0]):
        solved = before[1]
    else:
        solved = _solve(asked, _start(asked, before))
    _warn(solved.results, asked)
    return solved


def _start(asked: BatchProblem, before: tuple[BatchProblem, Solved] | None) -> Any:
    """Return weights and potentials to start from, or None."""
    if before is None or not asked.near(before[0]):
        return None
    results = before[1].results
    if not isinstance(results, BatchResult):
        return None
    alpha, g = (to_numpy(part) for part in (results.proof.alpha, results.proof.g))
    # A weight of zero would never rise again.
    alpha = (1.0 - LIFT) * alpha + LIFT / alpha.shape[1]
    return (alpha, g) if np.isfinite(g).all() else None


class BatchCosts(NamedTuple):
    """Costs of a batch where its points are, and its terms on the host.

    `costs` has points without weight where others are, `true` has them where they belong;
    `means` are the groups' mean costs, (B, L), and `weights`, `eta`, `eps` and `prices` those of
    the members.
    """

    costs: Costs
    true: Costs
    means: np.ndarray
    weights: tuple[np.ndarray, np.ndarray]
    eta: np.ndarray
    eps: np.ndarray
    prices: tuple[np.ndarray, np.ndarray]
    symmetric: bool


def batch_costs(asked: BatchProblem) -> BatchCosts:
    """Return the costs of a batch, refusing those outside the contract."""
    etas, epss, levels = (to_numpy(part) for part in asked.amounts)
    a, b = asked.weights
    shares = (unit_mass(a), unit_mass(b))
    weights, prices = _weights_and_prices(asked)
    costs, true = asked.costs.both_costs(shares)
    sizes = to_numpy(costs.sizes(*map(costs.home.bring, shares)))
    who = "x, y" if len(levels) == 1 else "x[{index}], y[{index}]"
    check_batch_range(levels, to_numpy(costs.peaks).max(axis=1), epss, who)
    for name, amounts in (("eta", etas), *(("tau", price) for price in prices)):
        check_not_beyond(name, amounts, levels, f"costs of {who}")
    return BatchCosts(costs, true, sizes, weights, etas, epss, prices, asked.symmetric)


def _weights_and_prices(asked: BatchProblem) -> tuple[Any, Any]:
    """Return weights of both sides, that sum to one where mass is kept, and its prices."""
    a, b = asked.weights
    if asked.tau is None:
        free = np.full(len(a), np.inf)
        return (unit_mass(a), unit_mass(b)), (free, free)
    weights = to_numpy(a).astype(float), to_numpy(b).astype(float)
    return weights, tuple(to_numpy(side).astype(float) for side in asked.tau)


def _solve(asked: BatchProblem, start: Any) -> Solved:
    groups, tol, home = asked.groups, asked.tol, asked.costs.home.double()
    log_prior = check_prior(asked.prior, len(groups))
    with collect_warnings():
        # The gap may be asked for far below `tol`; only what misses `tol` is worth a warning.
        results: Any
        if asked.fits_memory:
            costs = batch_costs(asked)
            gap = max((tol / GRADIENT_FACTOR) ** 2, NARROWEST)
            work = BatchWork(gap, asked.max_iter, None, time.perf_counter(), tol)
            results = run_batch(
                (costs.costs, costs.true), costs.weights, simplex_of(asked.k, 0.0, log_prior),
                (costs.eta, costs.eps), costs.means, groups, home, work,
                symmetric=asked.symmetric, start=start, tau=costs.prices,
            )  # fmt: skip
        else:
            results = [_alone(asked, index) for index in range(len(asked.weights[0]))]
    return Solved.of(results, log_prior, home.device, asked.tau is not None)


def unit_mass(weights: Tensor) -> np.ndarray:
    """Return weights on the host whose sums are one to double precision."""
    host = to_numpy(weights).astype(float)
    return host / host.sum(axis=1, keepdims=True)


def _alone(asked: BatchProblem, index: int) -> Result:
    """Solve one member."""
    gap = max(Aim.gap_for(asked.tol, len(asked.groups)), NARROWEST)
    result = Entropic(tol=gap, max_iter=asked.max_iter)(_problem(asked, index))
    # Brought home, though they are there, so that the plan shares nothing with the weights.
    return result.at(asked.costs.home.double())


def certified(asked: BatchProblem, index: int, alpha: np.ndarray, g: Tensor) -> Result:
    """Prove an interval no wider than `tol` from weights (L,) and potentials (m,) of one member."""
    with collect_warnings():
        start = Start(alpha=alpha, g=to_numpy(g))
        solver = Entropic(tol=asked.tol, max_iter=asked.max_iter)
        result = solver(_problem(asked, index), start)
    return result.at(asked.costs.home.double())


def _problem(asked: BatchProblem, index: int) -> Problem:
    """The problem of one member."""
    part, groups = slice(index, index + 1), asked.groups
    (a, b), prices = _weights_and_prices(asked)
    a, b = a[index], b[index]
    shares = (a / a.sum(), b / b.sum())
    eta, eps = (float(amount[index]) for amount in asked.amounts[:2])
    batch = asked.costs.member(part).to_costs((shares[0][None], shares[1][None]))
    costs, prior = batch.member(0), check_prior(asked.prior, len(groups))
    problem = Problem(
        costs, a, b, adversary=simplex_of(asked.k, eta, prior), eps=eps, names=groups.names,
        marginals=Marginals(float(prices[0][index]), float(prices[1][index])),
    )  # fmt: skip
    check_cost_range(problem.mean_cost, problem.largest_cost, "x, y: the costs")
    return problem


def _warn(results: Results, asked: BatchProblem) -> None:
    """Warn of the widest interval.

    That of a cloud with itself may be as wide as what it has is near zero: what counts is the cost
    between x and y.
    """
    whole = isinstance(results, BatchResult)
    gaps = np.array(results.gap if whole else [result.gap for result in results])
    levels = to_numpy(asked.amounts[2])
    for index in np.flatnonzero(gaps > asked.tol).tolist():
        result = results[index]
        shared = relative_gap(result.lower, result.upper, GAP_SHARE * float(levels[index]))
        gaps[index] = min(gaps[index], shared)
    worst = int(gaps.argmax())
    if gaps[worst] > asked.tol:
        which = f" of member {worst}" if len(gaps) > 1 else ""
        warn_caller(
            f"FRWDLoss: gap {gaps[worst]:.1e}{which} where {asked.tol:.1e} was asked for; "
            "gradients are rough. Raise eps or max_iter.",
            str(Path(torch.__file__).parent),
        )

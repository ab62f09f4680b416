"""Problems of tensors, solved without a graph, and what gradients need of the answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from frot._base.arrays import device_room, find_home, to_numpy
from frot._base.contract import check_batch_range, check_cost_range
from frot._base.errors import collect_warnings, warn_caller
from frot._base.validate import check_prior
from frot.api.batch import batch_geometry, run_batch
from frot.api.batch_result import BatchResult
from frot.api.batch_work import BatchWork
from frot.api.run import SolverRun
from frot.api.solve import solve
from frot.costs import MEMORY_BUDGET, METRICS, FactoredCosts, FactoredMetric, device_points
from frot.costs.geometry import Geometry
from frot.groups.groups import Groups
from frot.problem.adversary import simplex_of
from frot.problem.marginals import Marginals
from frot.problem.problem import Problem
from frot.problem.result import Result
from frot.solvers import Entropic, Exact, Start
from frot.solvers.sinkhorn.ascent import WEIGHTS, Aim
from frot.solvers.sinkhorn.dense import dense_bytes

# What costs are of points that come as they are.
SQUARED = METRICS["sqeuclidean"]
# Where nothing but the gap is known of a plan its gradient errs by the root of it, so that the gap
# is asked for to the square of `tol`, down to what double precision can prove.
NARROWEST = 1e-12
# Weights and potentials lead the way to others where points have moved by no more than this share
# of what they are apart, in squares.
MOVED = 0.1
# What all weights get of one before they start anew.
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
    soft : bool
        Whether it need not be.
    """

    results: Sequence[Result]
    values: Tensor
    entropy: Tensor
    alpha: Tensor
    phi: Tensor
    f: Tensor
    g: Tensor
    soft: bool = False

    @classmethod
    def of(
        cls, results: Sequence[Result], log_prior: Any, device: Any, soft: bool = False
    ) -> Solved:
        """Collect what gradients need."""

        def bring(array: Any) -> Tensor:
            return torch.tensor(array, dtype=torch.float64, device=device)

        if isinstance(results, BatchResult):
            proof, (f, g) = results.proof, results.duals
            values = torch.minimum(proof.lower + proof.slack, proof.upper)
            alpha, phi = proof.alpha, proof.phi
        else:
            values = bring([one.lower if one.eps > 0.0 else one.value for one in results])
            rows = [(one.alpha, one.phi, *one.potentials) for one in results]
            alpha, phi, f, g = (
                torch.stack(
                    [torch.as_tensor(part, dtype=values.dtype, device=device) for part in parts]
                )
                for parts in zip(*rows, strict=True)
            )
        entropy = -torch.special.xlogy(alpha, alpha).sum(1)
        if log_prior is not None:
            entropy = entropy + alpha @ bring(log_prior)
        return cls(results, values, entropy, alpha, phi, f, g, soft)

    def products(self, x: Tensor | None, y: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Return the products of the plans and y, (B, n, d), and of x and the plans, (B, m, d).

        What is None has none.
        """
        if isinstance(self.results, BatchResult):
            return self.results.products(x, y)
        plans = [one.plan for one in self.results]
        ahead = back = None
        if y is not None:
            ahead = torch.stack([plan @ part for plan, part in zip(plans, y, strict=True)])
        if x is not None:
            back = torch.stack([plan.T @ part for plan, part in zip(plans, x, strict=True)])
        return ahead, back


def feature_weights(alpha: Tensor, groups: Groups) -> Tensor:
    """Return what every feature weighs, (B, d), under weights of the groups, (B, L)."""
    sizes = torch.as_tensor(groups.offsets[1:] - groups.offsets[:-1], device=alpha.device)
    flat = torch.as_tensor(groups.flat.copy(), device=alpha.device)
    weights = alpha.new_zeros(alpha.shape[0], groups.n_features)
    return weights.index_add(1, flat, alpha.repeat_interleave(sizes, dim=1))


class Images(FactoredMetric):
    """Squared distances of points that come mapped, each coordinate off by some units."""

    def __init__(self, off: float) -> None:
        self.off = off

    def units(self, size: int) -> float:
        """What the map has said."""
        return self.off


@dataclass(frozen=True, eq=False)
class BatchProblem:
    """The problems of a batch.

    Attributes
    ----------
    points : tensors of shape (B, n, d), (B, m, d), (B, n) and (B, m)
        x, y, a and b, detached.
    amounts : tensors of shape (B,)
        eta, eps and the mean cost.
    k : int
        No group weighs more than 1/k.
    symmetric : bool
        Whether y is x and b is a.
    metric : FactoredMetric
        The costs of the points as they come: squared distances, of images or not.
    tau : tensors of shape (B,), optional
        Prices of mass that need not be kept, infinite where it is.
    """

    points: tuple[Tensor, Tensor, Tensor, Tensor]
    amounts: tuple[Tensor, Tensor, Tensor]
    groups: Groups
    prior: Any
    tol: float
    max_iter: int
    k: int = 1
    symmetric: bool = False
    metric: FactoredMetric = SQUARED
    tau: tuple[Tensor, Tensor] | None = None

    def copied(self) -> BatchProblem:
        """The same on tensors of its own: an optimiser moves points where they are."""
        x, y, a, b = self.points
        points = (x.clone(), y.clone(), a.clone(), b.clone())
        return replace(self, points=points)

    @property
    def _settings(self) -> tuple[Any, ...]:
        log_prior, groups = check_prior(self.prior, len(self.groups)), self.groups
        known = None if log_prior is None else log_prior.tobytes()
        parts = (groups.flat.tobytes(), groups.offsets.tobytes(), groups.names)
        return (self.symmetric, self.tol, self.max_iter, self.k, known, *parts)

    def fits(self, other: BatchProblem) -> bool:
        """Whether potentials and weights of the one have the shapes of the other's."""
        pairs = zip(self.points, other.points, strict=True)
        alike = all(a.shape == b.shape and a.device == b.device for a, b in pairs)
        return alike and len(self.groups) == len(other.groups)

    def same(self, other: BatchProblem) -> bool:
        """Whether the other asks for nothing else; its mean cost leads no search."""
        if not self.fits(other) or self._settings != other._settings:
            return False
        if (self.tau is None) != (other.tau is None):
            return False
        mine, theirs = (
            (*each.points, *each.amounts[:2], *(each.tau or ())) for each in (self, other)
        )
        pairs = zip(mine, theirs, strict=True)
        return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)

    def near(self, other: BatchProblem) -> bool:
        """Whether the points of the other have moved by little."""
        if not self.fits(other):
            return False
        count = len(self.groups)
        level = self.amounts[2]
        weights = feature_weights(level.new_full((1, count), 1.0 / count), self.groups)
        moved = torch.zeros_like(level)
        for at in (0, 1):
            gaps = (self.points[at].double() - other.points[at].double()) ** 2
            moved = moved + ((self.points[at + 2].double()[:, None, :] @ gaps)[:, 0] * weights).sum(
                1
            )
        return bool((moved <= MOVED * level).all())


def solve_members(asked: BatchProblem, before: tuple[BatchProblem, Solved] | None = None) -> Solved:
    """Solve the problems of a batch: together, or one by one where there is no eps or no room.

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
    _warn(solved.results, asked.tol)
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

    `geometry` has points without weight where others are, `true` has them where they belong;
    `means` are the groups' mean costs, (B, L), and `weights`, `eta`, `eps` and `prices` those of
    the members.
    """

    geometry: Geometry
    true: Geometry
    means: np.ndarray
    weights: tuple[np.ndarray, np.ndarray]
    eta: np.ndarray
    eps: np.ndarray
    prices: tuple[np.ndarray, np.ndarray]
    symmetric: bool


def batch_costs(asked: BatchProblem) -> BatchCosts:
    """Return the costs of a batch, refusing those outside the contract."""
    x, y, a, b = asked.points
    etas, epss, levels = (to_numpy(part) for part in asked.amounts)
    shares = (_unit_mass(a), _unit_mass(b))
    weights, prices = _weights_and_prices(asked)
    home = _double_home(x)
    geometry, true = batch_geometry(x, y, asked.groups, asked.metric, home, shares)
    means = to_numpy(geometry.product(*map(home.bring, shares)))
    who = "x, y" if len(levels) == 1 else "x[{index}], y[{index}]"
    check_batch_range(levels, to_numpy(geometry.peaks()).max(axis=1), epss, who)
    return BatchCosts(geometry, true, means, weights, etas, epss, prices, asked.symmetric)


def _weights_and_prices(asked: BatchProblem) -> tuple[Any, Any]:
    """Return weights of both sides, that sum to one where mass is kept, and its prices."""
    _, _, a, b = asked.points
    if asked.tau is None:
        free = np.full(len(a), np.inf)
        return (_unit_mass(a), _unit_mass(b)), (free, free)
    weights = to_numpy(a).astype(float), to_numpy(b).astype(float)
    return weights, tuple(to_numpy(side).astype(float) for side in asked.tau)


def _solve(asked: BatchProblem, start: Any) -> Solved:
    (x, y, _, _), groups, tol = asked.points, asked.groups, asked.tol
    log_prior = check_prior(asked.prior, len(groups))
    etas, epss = (to_numpy(part) for part in asked.amounts[:2])
    fits = dense_bytes(x.shape[1], y.shape[1]) <= MEMORY_BUDGET
    with collect_warnings():
        # The gap may be asked for far below `tol`; only what misses `tol` is worth a warning.
        results: Any
        if fits and (epss > 0.0).all():
            costs = batch_costs(asked)
            gap = max((tol / WEIGHTS) ** 2, NARROWEST)
            work = BatchWork(gap, asked.max_iter, None, time.perf_counter(), tol)
            results = run_batch(
                (costs.geometry, costs.true), costs.weights, simplex_of(asked.k, 0.0, log_prior),
                (etas, epss), costs.means, groups, find_home(x=x.double()), work,
                symmetric=asked.symmetric, start=start, tau=costs.prices,
            )  # fmt: skip
        else:
            weights, prices = _weights_and_prices(asked)
            results = [
                _alone(
                    (x[at], y[at], *(w[at] for w in weights)),
                    (etas[at], epss[at]),
                    Marginals(float(prices[0][at]), float(prices[1][at])),
                    asked,
                )
                for at in range(x.shape[0])
            ]
    return Solved.of(results, log_prior, x.device, asked.tau is not None)


def _unit_mass(weights: Tensor) -> np.ndarray:
    """Return weights on the host whose sums are one to double precision."""
    host = to_numpy(weights).astype(float)
    return host / host.sum(axis=1, keepdims=True)


def _alone(points: Any, amounts: Any, marginals: Marginals, asked: BatchProblem) -> Result:
    """Solve one member, from tensors x and y and arrays a and b."""
    (x, y, a, b), (eta, eps) = points, amounts
    groups, prior, tol = asked.groups, asked.prior, asked.tol
    if eps == 0.0 and asked.metric.maps:
        host = FactoredCosts.of(to_numpy(x), to_numpy(y), groups, asked.metric, (a, b))
        q = None if eta == 0.0 else check_prior(prior, len(groups))
        problem = Problem(
            host, a, b, adversary=simplex_of(asked.k, float(eta), q), names=groups.names,
            marginals=marginals,
        )  # fmt: skip
        check_cost_range(problem.mean_cost, problem.largest_cost, "x, y: the costs")
        solver = Exact(tol=max((tol / WEIGHTS) ** 2, NARROWEST))
        return SolverRun(solver)(problem).at(find_home(x=x.double()))
    if eps == 0.0:
        # On the host, since no solver without eps is anywhere else.
        a, b = (torch.as_tensor(part, device=x.device) for part in (a, b))
        # A share of no cost at all leaves no eta, and then a prior says nothing.
        q = None if prior is None or eta == 0.0 else torch.as_tensor(np.array(to_numpy(prior)))
        limits = {
            "eta": float(eta),
            "eps": 0.0,
            "prior": q,
            "adversary": simplex_of(asked.k, 0.0, None),
            "tol": max((tol / WEIGHTS) ** 2, NARROWEST),
            "tau": None if marginals.kept else (marginals.tau_a, marginals.tau_b),
        }
        return solve(x.double(), y.double(), groups, a=a, b=b, **limits)
    problem = _entropic_problem(points, amounts, marginals, asked)
    gap = max(Aim.gap_for(tol, len(groups)), NARROWEST)
    # Brought home, though they are there, so that the plan shares nothing with the weights.
    return Entropic(tol=gap, max_iter=asked.max_iter)(problem).at(_double_home(x))


def certified(asked: BatchProblem, alpha: np.ndarray, g: Tensor) -> Result:
    """Prove an interval no wider than `tol` from weights (L,) and potentials (m,) of one member."""
    x, y, a, b = (part[0] for part in asked.points)
    amounts = [to_numpy(part)[0] for part in asked.amounts[:2]]
    points = (x, y, _unit_mass(a[None])[0], _unit_mass(b[None])[0])
    problem = _entropic_problem(points, amounts, Marginals(), asked)
    with collect_warnings():
        start = Start(alpha=alpha, g=to_numpy(g))
        found = Entropic(tol=asked.tol, max_iter=asked.max_iter)(problem, start)
    return found.at(_double_home(x))


def _double_home(x: Tensor) -> Any:
    home = find_home(x=x)
    assert home is not None
    return home.double()


def _entropic_problem(
    points: Any, amounts: Any, marginals: Marginals, asked: BatchProblem
) -> Problem:
    """The problem of one member where its points are."""
    (x, y, a, b), (eta, eps), groups = points, amounts, asked.groups
    shares = (a, b) if marginals.kept else (a / a.sum(), b / b.sum())
    costs: Any = device_points(x, y, groups, asked.metric, find_home(x=x), shares)
    adversary = simplex_of(asked.k, float(eta), check_prior(asked.prior, len(groups)))
    problem = Problem(costs, a, b, adversary=adversary, eps=float(eps), names=groups.names)
    check_cost_range(problem.mean_cost, problem.largest_cost, "x, y: the costs")
    return problem.having(marginals=marginals)


def _warn(results: Sequence[Result], tol: float) -> None:
    gaps = results.gap if isinstance(results, BatchResult) else [one.gap for one in results]
    worst = max(range(len(gaps)), key=lambda at: gaps[at])
    one = results[worst]
    if one.gap > tol:
        which = f" of member {worst}" if len(gaps) > 1 else ""
        warn_caller(
            f"FRWDLoss: gap {one.gap:.1e}{which} where {tol:.1e} was asked for; gradients are "
            "rough. Raise eps or max_iter.",
            str(Path(torch.__file__).parent),
        )


class Envelope(torch.autograd.Function):
    """Values found by a solver forward; backward what `envelope` returns, once."""

    @classmethod
    def backward(cls, ctx: Any, *grads: Any) -> Any:  # pyright: ignore
        x = ctx.saved_tensors[0]
        # Products of plans and points, once more as large as these, and blocks of the plans.
        room = device_room("x, y", 16.0 * x.numel() + 1e9, "pass fewer points")
        with torch.no_grad(), torch.autocast(grads[0].device.type, enabled=False), room:
            found = cls.envelope(ctx, *grads)
        if torch.is_grad_enabled():
            # Asked to be differentiated again: constants would pass for zero derivatives.
            used = (*grads, *ctx.saved_tensors)
            found = [
                None if part is None else _FirstDerivative.apply(part, *used) for part in found
            ]
        return tuple(found)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise RuntimeError(
            "FRWDLoss has no derivatives in forward mode; use loss(x, y).backward(), or "
            "torch.autograd.grad"
        )

    @staticmethod
    def envelope(ctx: Any, *grads: Any) -> list[Any]:
        """Return the derivatives by all arguments, plan and weights held fixed."""
        raise NotImplementedError


class _FirstDerivative(torch.autograd.Function):
    """A derivative that has none of its own."""

    @staticmethod
    def forward(ctx: Any, found: Tensor, *used: Tensor) -> Tensor:
        return found.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "FRWDLoss has first derivatives only: its gradient holds plan and weights fixed, and "
            "how these move is not known"
        )

"""Problems of tensors, solved without a graph, and what gradients need of the answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frot._adversary import Simplex
from frot._arrays import find_home, to_numpy
from frot._batch import run_batch
from frot._batch_input import batch_geometry
from frot._batch_result import BatchResult
from frot._batch_work import BatchWork
from frot._costs import MEMORY_BUDGET
from frot._entropic._dense import dense_bytes
from frot._entropic._device import device_points
from frot._errors import hearing, warn_caller
from frot._groups import Groups
from frot._problem import Problem
from frot._result import Result
from frot._solve import solve
from frot._solvers import Entropic
from frot._validate import check_prior

__all__ = ["Solved", "feature_weights", "solve_members"]

# Gradients err by the root of the gap, so that the gap is asked for to the square of `tol`, down to
# what double precision can prove.
NARROWEST = 1e-12


@dataclass(frozen=True, eq=False)
class Solved:
    """The answers of a batch, as tensors in double precision on the points' device.

    Attributes
    ----------
    results : BatchResult or list of Result
    values, entropy : tensors of shape (B,)
        The second is that of alpha, relative to the prior: the derivative by eta.
    alpha, phi : tensors of shape (B, L)
    f, g : tensors of shape (B, n) and (B, m)
        The derivatives by the weights.
    """

    results: Sequence[Result]
    values: Tensor
    entropy: Tensor
    alpha: Tensor
    phi: Tensor
    f: Tensor
    g: Tensor

    @classmethod
    def of(cls, results: Sequence[Result], log_prior: Any, device: Any) -> Solved:
        """Collect what gradients need."""

        def bring(array: Any) -> Tensor:
            return torch.as_tensor(array, dtype=torch.float64, device=device)

        if isinstance(results, BatchResult):
            proof, (f, g) = results.proof, results.duals
            values, alpha, phi = bring(results.value), proof.alpha, proof.phi
        else:
            values = bring([one.value for one in results])
            pairs = [one.potentials for one in results]
            alpha, phi, f, g = (
                torch.stack([bring(part) for part in parts])
                for parts in (
                    [one.alpha for one in results],
                    [one.phi for one in results],
                    [pair[0] for pair in pairs],
                    [pair[1] for pair in pairs],
                )
            )
        entropy = -torch.special.xlogy(alpha, alpha).sum(1)
        if log_prior is not None:
            entropy = entropy + alpha @ bring(log_prior)
        return cls(results, values, entropy, alpha, phi, f, g)

    def ahead(self, y: Tensor) -> Tensor:
        """Return the products of the plans and y, (B, n, d)."""
        if isinstance(self.results, BatchResult):
            return self.results.plans() @ y
        return torch.stack([one.plan @ part for one, part in zip(self.results, y, strict=True)])

    def back(self, x: Tensor) -> Tensor:
        """Return the products of the transposed plans and x, (B, m, d)."""
        if isinstance(self.results, BatchResult):
            return self.results.plans().mT @ x
        return torch.stack([one.plan.T @ part for one, part in zip(self.results, x, strict=True)])


def feature_weights(alpha: Tensor, groups: Groups) -> Tensor:
    """Return what every feature weighs, (B, d), under weights of the groups, (B, L)."""
    sizes = torch.as_tensor(groups.offsets[1:] - groups.offsets[:-1], device=alpha.device)
    flat = torch.as_tensor(groups.flat.copy(), device=alpha.device)
    member: Any = groups.membership()
    weights = alpha.new_zeros(alpha.shape[0], member.shape[1])
    return weights.index_add(1, flat, alpha.repeat_interleave(sizes, dim=1))


def solve_members(
    points: tuple[Tensor, Tensor, Tensor, Tensor],
    amounts: tuple[Tensor, Tensor, Tensor],
    groups: Groups,
    prior: Any,
    tol: float,
    max_iter: int,
) -> Solved:
    """Solve the problems of a batch: together, or one by one where there is no eps or no room.

    Parameters
    ----------
    points : tensors of shape (B, n, d), (B, m, d), (B, n) and (B, m)
        x, y, a and b, detached.
    amounts : tensors of shape (B,)
        eta, eps and the mean cost.
    """
    x, y, a, b = points
    log_prior = check_prior(prior, len(groups))
    etas, epss, _ = (to_numpy(part) for part in amounts)
    weights = (_unit_mass(a), _unit_mass(b))
    fits = dense_bytes(x.shape[1], y.shape[1]) <= MEMORY_BUDGET
    with hearing():
        # The gap is asked for far below `tol`; only what misses `tol` itself is worth a warning.
        results: Any
        if fits and (epss > 0.0).all():
            home = find_home(x=x.double())
            assert home is not None
            geometries = batch_geometry(x, y, groups, "sqeuclidean", home, weights)
            bring = home.double().bring
            means = to_numpy(geometries[0].product(*map(bring, weights)))
            work = BatchWork(max(tol**2, NARROWEST), max_iter, None, time.perf_counter())
            adversary = Simplex(0.0, log_prior)
            results = run_batch(
                geometries, weights, adversary, (etas, epss), means, groups, home, work
            )
        else:
            results = [
                _alone((x[at], y[at], *(w[at] for w in weights)), (etas[at], epss[at]), groups,
                       prior, tol, max_iter)
                for at in range(x.shape[0])
            ]  # fmt: skip
    _warn(results, tol)
    return Solved.of(results, log_prior, x.device)


def _unit_mass(weights: Tensor) -> np.ndarray:
    """Return weights on the host whose sums are one to double precision."""
    host = to_numpy(weights).astype(float)
    return host / host.sum(axis=1, keepdims=True)


def _alone(
    points: Any, amounts: Any, groups: Groups, prior: Any, tol: float, max_iter: int
) -> Result:
    """Solve one member, from tensors x and y and arrays a and b."""
    (x, y, a, b), (eta, eps) = points, amounts
    if eps == 0.0:
        # On the host, since no solver without eps is anywhere else.
        a, b = (torch.as_tensor(part, device=x.device) for part in (a, b))
        # A share of no cost at all leaves no eta, and then a prior says nothing.
        q = prior if eta > 0.0 else None
        asked = {"eta": float(eta), "eps": 0.0, "prior": q, "tol": max(tol**2, NARROWEST)}
        return solve(x.double(), y.double(), groups, a=a, b=b, **asked)
    home = find_home(x=x)
    assert home is not None
    costs: Any = device_points(x, y, groups, "sqeuclidean", home, (a, b))
    adversary = Simplex(float(eta), check_prior(prior, len(groups)))
    problem = Problem(costs, a, b, adversary=adversary, eps=float(eps), names=groups.names)
    # Brought home, though they are there, so that the plan shares nothing with the weights.
    return Entropic(tol=tol, max_iter=max_iter)(problem).at(home.double())


def _warn(results: Sequence[Result], tol: float) -> None:
    gaps = results.gap if isinstance(results, BatchResult) else [one.gap for one in results]
    worst = max(range(len(gaps)), key=lambda at: gaps[at])
    one = results[worst]
    # An optimum of zero cannot be had to a relative tolerance.
    nothing = NARROWEST * max(one.mean_cost, one.eta, one.eps)
    if one.gap > tol and one.upper - one.lower > nothing:
        which = f" of member {worst}" if len(gaps) > 1 else ""
        warn_caller(
            f"FRWDLoss: gap {one.gap:.1e}{which} where {tol:.1e} was asked for; gradients are "
            "rough. Raise eps or max_iter.",
            str(Path(torch.__file__).parent),
        )

r"""The debiased loss with several groups: a divergence whose three terms share their weights.

.. math::
    D(x, y) = \max_\alpha\; S_\alpha(x, y) - \eta\,\mathrm{KL}(\alpha | q), \qquad
    S_\alpha(x, y) = W_\alpha(x, y) - \tfrac12 W_\alpha(x, x) - \tfrac12 W_\alpha(y, y) ,

with :math:`W_\alpha` the entropic cost of the mixed cost :math:`\sum_l \alpha_l C_l`. The gradient
in the weights is that of the debiased group costs,
:math:`\phi = \phi^{xy} - \tfrac12 \phi^{xx} - \tfrac12 \phi^{yy}`. The objective is not concave:
mirror steps go up from q, or from the last call's weights if these are better, and never down, so
that :math:`D \ge S_q \ge 0` (`_shared_ascent.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from frot._base.errors import collect_warnings, warn_caller
from frot._base.validate import check_prior
from frot.costs.protocol import Costs
from frot.groups.groups import Groups
from frot.problem.adversary import simplex_of
from frot.solvers.entropic.ascent import GRADIENT_FACTOR
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.engine import Engine
from frot.solvers.entropic.entropic import SINGLE_TO
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.kernel import Gibbs, potentials_at
from frot.solvers.entropic.point import Point
from frot.solvers.entropic.stream import StreamEngine
from frot.torch._costs import GivenCosts
from frot.torch._shared_ascent import SharedAscent, Start
from frot.torch._solved import (
    BatchProblem,
    Results,
    Solved,
    batch_costs,
    solve_members,
    unit_mass,
)

Three = tuple[BatchProblem, BatchProblem, BatchProblem]


@dataclass(frozen=True, eq=False)
class SolvedAt(Solved):
    """One of the three terms at the shared weights; `gibbs` is its plan."""

    gibbs: Gibbs | None = None

    def products(self, x: Tensor | None, y: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Return the products of the plans and y, (B, n, d), and of x and the plans, (B, m, d)."""
        assert self.gibbs is not None
        ahead: list[Tensor] = []
        back: Tensor | None = None
        for part, block in self.gibbs.batches(self.gibbs.parts):
            if y is not None:
                ahead.append(block @ y)
            if x is not None:
                product = block.mT @ x[:, part]
                back = product if back is None else back + product
        return torch.cat(ahead, dim=1) if ahead else None, back

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of rows of the plans, each of shape (B, r, m)."""
        assert self.gibbs is not None
        return self.gibbs.batches(self.gibbs.parts)


@dataclass(frozen=True, eq=False)
class Divergence:
    """What was found for a batch.

    Attributes
    ----------
    alpha : tensor of shape (B, L)
        The shared weights.
    kl : tensor of shape (B,)
        Their divergence from the prior.
    terms : tuple of three SolvedAt
    step : tensor of shape (B, 1)
        Length of the last mirror step on the weights.
    off : tensor of shape (B,)
        Relative error of the gradient by the points, estimated.
    steps : int
    """

    alpha: Tensor
    kl: Tensor
    terms: tuple[SolvedAt, SolvedAt, SolvedAt]
    step: Tensor
    off: Tensor
    steps: int

    @property
    def start(self) -> Start:
        """Where the next call begins."""
        potentials = []
        for term in self.terms:
            assert term.gibbs is not None
            potentials.append(term.gibbs.g)
        return Start(self.alpha, self.step, potentials)


def solve_divergence(asked: Three, before: tuple[Three, Divergence] | None = None) -> Divergence:
    """Find the weights that the three terms share, and what these cost there.

    Parameters
    ----------
    asked : three of BatchProblem
        Of x and y, x and x, y and y, with eps > 0.
    before : pair, optional
        What was asked for and found last, to start from where it is near.
    """
    pairs = [] if before is None else list(zip(asked, before[0], strict=True))
    if before is not None and all(new.same(old) for new, old in pairs):
        solution = before[1]
    else:
        near = before is not None and all(new.near(old) for new, old in pairs)
        with collect_warnings():
            solution = _solve(asked, before[1] if near and before is not None else None)
    worst, tol = int(solution.off.argmax()), asked[0].tol
    if float(solution.off[worst]) > tol:
        which = f" of member {worst}" if len(solution.off) > 1 else ""
        warn_caller(
            f"FRWDLoss: the gradient{which} is off by about {float(solution.off[worst]):.1e} where "
            f"{tol:.1e} was asked for. Raise eps or max_iter.",
            str(Path(torch.__file__).parent),
        )
    return solution


def certified_at(asked: BatchProblem, alpha: Tensor) -> Results:
    """Prove intervals of the costs between x and y at weights (B, L), mixed into one matrix."""
    _, eps, level = asked.amounts
    a, b = map(unit_mass, asked.weights)
    matrices = asked.costs.to_costs((a, b)).mix(alpha)
    costs = GivenCosts(Groups.from_sizes([1], names=["mixed"]), matrices[:, None])
    amounts = torch.zeros_like(eps), eps, level
    mixed = replace(asked, costs=costs, amounts=amounts, prior=None, k=1)
    return solve_members(mixed).results


def _solve(asked: Three, before: Divergence | None) -> Divergence:
    first, costs = asked[0], [batch_costs(part) for part in asked]
    home = costs[0].costs.home
    adversary = simplex_of(first.k, 0.0, check_prior(first.prior, len(first.groups)))
    weights = EntropicProblem.of(
        home, *costs[0].weights, adversary, costs[0].eps, costs[0].means, costs[0].eta,
    )  # fmt: skip
    single = first.costs.home.dtype == torch.float32 or first.tol / GRADIENT_FACTOR >= SINGLE_TO
    # Without eta regrets are differences of group costs, which take all digits.
    single = single and weights.smooth
    engines = []
    for part, cost in zip(asked, costs, strict=True):
        # Weights are given: their entropy is added once, not by each of the three terms.
        problem = EntropicProblem.of(
            home, *cost.weights, simplex_of(first.k, 0.0, None), cost.eps, cost.means,
            symmetric=cost.symmetric, tau=cost.prices,
        )  # fmt: skip
        search = cost.costs.single() if single and problem.single_safe else cost.costs
        kind = DenseEngine if part.fits_memory else StreamEngine
        engines.append(kind(search, problem.to(search.home), cost.costs))
    ascent = SharedAscent(engines, weights, first.tol)
    ascent.start(None if before is None else before.start)
    ascent.run(first.max_iter)
    ascent.engines = [engine.double() for engine in engines]
    ascent.look_again()
    ascent.run(first.max_iter - ascent.steps)
    state = ascent.state
    between, of_x, of_y = (
        _term(engine, cost.true, point, first.tau is not None)
        for engine, cost, point in zip(ascent.engines, costs, state.points, strict=True)
    )
    kl = torch.special.xlogy(state.alpha, state.alpha / weights.prior).sum(1)
    terms = (between, of_x, of_y)
    step = ascent.step if ascent.mirror_step is None else ascent.mirror_step
    terms = (between, of_x, of_y)
    return Divergence(state.alpha, kl, terms, step, ascent.off(), ascent.steps)


def _term(engine: Engine, true: Costs, point: Point, unbalanced: bool) -> SolvedAt:
    """Collect what gradients need of one term, in double precision."""
    f, g = point.f, point.g
    if true is not engine.costs:
        f, g = potentials_at(true, engine.problem, point.alpha, f, g)
    crowd = engine.costs.shape[0]
    gibbs = Gibbs(
        engine.costs, engine.problem, point.alpha, point.g, torch.ones_like(point.g), crowd
    )
    nothing = torch.zeros_like(point.dual)
    return SolvedAt((), point.dual, nothing, point.alpha, point.phi, f, g, unbalanced, gibbs)

"""`Entropic`: ascent on the weights with warm Sinkhorn sweeps in between, and its proofs.

`Entropic.offers` is the algorithm, `EntropicRun` what it works on: the engine for a problem, and
the way from its points to bounds and plans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frot._base.arrays import Array
from frot._base.errors import InputError
from frot._base.stopping import DeadlineError
from frot.costs.protocol import Costs
from frot.plans.lazy import LazyPlan
from frot.problem.bounds import Lower, Upper, mostly_rounding
from frot.problem.problem import Problem
from frot.problem.result import Result
from frot.solvers.drive import Offer, Solver, Start
from frot.solvers.entropic._fused import FusedEngine
from frot.solvers.entropic.ascent import Ascent
from frot.solvers.entropic.certificate import Certificate, certify, certify_start, proving
from frot.solvers.entropic.dense import DIRECT_FROM, DenseEngine, dense_bytes
from frot.solvers.entropic.engine import Engine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.kernel import Gibbs
from frot.solvers.entropic.point import distances
from frot.solvers.entropic.stream import StreamEngine

# For tolerances below this the search runs in double precision from the start.
SINGLE_TO = 2e-5


@dataclass(frozen=True)
class Entropic(Solver):
    r"""Solve the problem with entropy on the plan as well.

    .. math::
        \min_{\Pi \in U(a, b)} G_\eta(\phi(\Pi)) + \varepsilon\,\mathrm{KL}(\Pi | a b^\top)

    Its dual is jointly concave in the potentials and the weights,

    .. math::
        \langle f, a \rangle + \langle g, b \rangle - \varepsilon \sum_{ij} a_i b_j
        \big( e^{(f_i + g_j - [M_\alpha]_{ij}) / \varepsilon} - 1 \big)
        - \eta \sum_l \alpha_l \log \alpha_l ,

    and its gradient in the weights is :math:`\phi - \eta (\log \alpha + 1)`. Sinkhorn sweeps keep
    the potentials optimal, and mirror steps raise the weights, with a step length that adapts:

    .. math:: \alpha \propto (\alpha\, e^{\tau \phi})^{1 / (1 + \tau \eta)}

    With few groups (at most 100) and up to 1,500 points, joint Newton steps on potentials and
    weights finish the work, so that a tolerance of 1e-9 costs little more than one of 1e-4.

    Points may be NumPy arrays or PyTorch tensors on any device; kernels
    that do not fit the memory budget are streamed in blocks of rows, on CUDA by fused
    kernels where Triton is installed.

    ``result.lower`` and ``result.upper`` hold the optimum of this problem,
    ``result.unregularised`` that of the problem without eps.

    Parameters
    ----------
    tol : float
        Relative duality gap at which to stop.
    max_iter : int
        Steps on the weights at most.
    time_limit : float, optional
        Seconds.

    Examples
    --------
    >>> import frot
    >>> X, Y = [[0.0, 0.0], [1.0, 1.0]], [[1.0, 3.0], [0.0, 2.0]]
    >>> res = frot.solve(X, Y, eta=0.1, eps=0.1, solver=frot.Entropic())
    >>> round(res.value, 3), res.gap <= 1e-4
    (4.069, True)
    >>> res.unregularised[0] <= 4.0 <= res.unregularised[1]
    True
    """

    tol: float = 1e-4
    max_iter: int = 2_000
    time_limit: float | None = None

    def check(self, shape: tuple[int, ...], eta: float, eps: float) -> None:
        """Refuse what this solver cannot do."""
        if not eps > 0.0:
            raise InputError("eps: Entropic needs eps > 0; pass eps=... or use solver='exact'")

    @property
    def penalties(self) -> frozenset[str]:
        """Supports the penalty "kl"."""
        return frozenset({"kl"})

    @property
    def any_library(self) -> bool:
        """Tensors are used on their device."""
        return True

    def before_any(self, problem: Problem) -> Offer:
        """Bounds of equal weights and g = 0."""
        run = EntropicRun(problem, self.tol)
        proof = certify_start(run.engine)
        return Offer(run.upper(proof), run.lower(proof))

    def complete(self, problem: Problem, result: Result) -> Result:
        """The result knows its costs, for whoever asks about the problem without eps."""
        return replace(result, problem=problem)

    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Ascend in single precision, where that is of use, then in double, and prove bounds.

        A point is proven if it may be within the tolerance, and one in twenty others; so are the
        last one, and the first of a long run, since that may be stopped any time.
        """
        run = EntropicRun(problem, self.tol)
        ascent = Ascent(run.engine, *run.start(start.alpha, start.g), self.tol)
        steps = unproven = idle = 0
        narrowest = np.inf
        while True:
            try:
                rising = ascent.advance()
            except DeadlineError:
                if ascent.point is not None:
                    yield Offer(*run.prove(ascent))
                raise
            steps, unproven = steps + 1, unproven + 1
            gap = float(distances(ascent.engine.problem, ascent.point)[0])
            early = steps == 1 and run.streams and gap > 30.0 * self.tol
            due = unproven >= 20 or steps == self.max_iter
            offer, rounded = Offer(), False
            if gap <= self.tol or early or due or not rising:
                upper, lower = run.prove(ascent)
                offer, unproven = Offer(upper, lower), 0
                width = upper.bound - lower.bound
                rounded = mostly_rounding(upper, lower)
                idle = 0 if width < 0.9 * narrowest else idle + 1
                narrowest = min(narrowest, width)
            yield offer
            at_its_end = rounded or not rising
            if ascent.single:
                # Three certificates in a row that bring nothing, or no more mass in wrong columns
                # than rounding moves: without the latter 10 of 81 hard problems stall instead of 9.
                at_its_end = at_its_end or idle >= 3
                if at_its_end or float(ascent.point.error[0]) <= 3e-6:
                    ascent, idle, narrowest = run.in_double(ascent), 0, np.inf
            elif at_its_end:
                return


class EntropicRun:
    """One entropic problem and the engine for it.

    Matrices that fit the problem's memory budget are kept; beyond it the kernel is streamed, by
    fused kernels where the points are on a CUDA device and Triton is installed.
    """

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        _, n, m = problem.shape
        costs = problem.costs.batch()
        batch = EntropicProblem.of(
            costs.home.double(), problem.a[None], problem.b[None], problem.adversary,
            problem.eps, problem.sizes[None],
            tau=(problem.marginals.tau_a, problem.marginals.tau_b),
        )  # fmt: skip
        self.streams = dense_bytes(n, m) > problem.memory_budget
        self.one_kernel = not self.streams and _one_kernel(batch)
        self.engine: Engine = self._engine(costs, batch)

    def _engine(self, costs: Costs, batch: EntropicProblem) -> Engine:
        """Return the engine to search with, from costs and a problem in double precision."""
        if self.streams and self.tol >= SINGLE_TO:
            fused = FusedEngine.of(costs, batch, self.tol)
            if fused is not None:
                return fused
        precise = self.one_kernel or not batch.single_safe
        search = costs if precise else _search(costs, self.tol)
        kind = StreamEngine if self.streams else DenseEngine
        return kind(search, batch.to(search.home), costs)

    def start(self, alpha: np.ndarray | None, g: Array) -> tuple[Any, Any]:
        """Return the first weights, and the potential g where one is known or can be had."""
        home = self.engine.problem.home
        count = self.problem.shape[0]
        first = np.full(count, 1.0 / count) if alpha is None else alpha
        first = home.bring(first[None])
        if g is not None and np.isfinite(g).all():
            return first, home.bring(g[None])
        return self.engine.first_weights(first) if alpha is None else (first, None)

    def in_double(self, ascent: Ascent) -> Ascent:
        """Go on in double precision from where an ascent in single precision is."""
        precise = self.engine.double()
        home = precise.problem.home
        alpha = home.xp.astype(ascent.point.alpha, home.dtype)
        g = home.xp.astype(ascent.point.g, home.dtype)
        usable = bool(home.xp.all(home.xp.isfinite(g)))
        alpha = alpha / home.xp.sum(alpha, axis=1, keepdims=True)
        return Ascent(precise, alpha, g if usable else None, self.tol)

    def prove(self, ascent: Ascent) -> tuple[Upper, Lower]:
        """Prove bounds from where an ascent is, which is done even if time is up."""
        # With a small eps rounding would tell the plan that is proven from the one handed out.
        kept = ascent.point if self.one_kernel else None
        assert isinstance(ascent.engine, Engine)
        proof = certify(ascent.engine, ascent.point.alpha, ascent.point.g, kept)
        return self.upper(proof), self.lower(proof)

    def plan(self, proof: Certificate) -> LazyPlan:
        """The plan that proves the upper bound."""
        precise = self.engine.double()
        gibbs = Gibbs(precise.costs, precise.problem, proof.alpha, proof.g, proof.thin)
        ranks = []
        if bool(precise.problem.home.xp.any(proof.left > 0.0)):
            ranks = [(proof.left[0, :], proof.right[0, :])]
        return LazyPlan([(float(proof.weight[0]), gibbs)], ranks)

    def upper(self, proof: Certificate) -> Upper:
        """The objective of the plan, as far as the proof has summed it."""
        value = float(proof.value[0])
        return Upper(float(proof.upper[0]), value, self.plan(proof), proof.phi[0, :])

    def lower(self, proof: Certificate) -> Lower:
        """The dual value, and the potentials that have it."""
        f, g = proving(self.engine.double(), proof.f, proof.g)
        slack = float(proof.slack[0])
        return Lower(float(proof.lower[0]), proof.alpha[0, :], f[0, :], g[0, :], slack)


def _one_kernel(batch: EntropicProblem) -> bool:
    """Whether a kernel of the host in double precision is best for the search as well.

    One that few sweeps are made on takes less time than two.
    """
    if batch.sizes.shape[1] > 1 or batch.unbalanced or batch.uneven or not batch.home.on_host:
        return False
    share = float(batch.eps[0, 0]) / float(batch.scale[0, 0])
    few = batch.a.shape[1] * batch.b.shape[1] <= 40_000
    # With one group and an eps of such a share of the scale of costs sweeps are few.
    return share >= 0.3 or (few and share >= DIRECT_FROM)


def _search(costs: Costs, tol: float) -> Costs:
    """The costs to search on: single precision where the user's is, or where it pays."""
    if tol < SINGLE_TO or not (costs.home.on_host or costs.given == costs.home.xp.float32):
        return costs
    # On a CPU exponentials are four times as fast in single precision.
    return costs.single()

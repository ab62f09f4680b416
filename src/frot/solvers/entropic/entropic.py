"""Entropic: ascent on the weights with warm Sinkhorn sweeps in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from frot._base.errors import InputError
from frot._base.stopping import DeadlineError
from frot.problem.bounds import is_rounding
from frot.problem.problem import Problem
from frot.problem.result import Result
from frot.solvers.drive import NOTHING_NEW, Driven, Offer
from frot.solvers.sinkhorn.ascent import Ascent
from frot.solvers.sinkhorn.engine import distances
from frot.solvers.sinkhorn.run import EntropicRun
from frot.solvers.start import Start

# Points that may be within the tolerance are certified, and one in so many others.
PROVE_EVERY = 20
# A gap of this many tolerances is a step or two from the end.
NEAR = 30.0
# Certificates in a row that bring nothing before single precision is given up, and misplaced mass
# that is not more than its rounding: without the latter 10 of 81 hard problems stall instead of 9.
SINGLE_PATIENCE = 3
SINGLE_ERROR = 3e-6


@dataclass(frozen=True)
class Entropic(Driven):
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
        """Bounds that count the entropy: those of the product plan."""
        return Offer(*EntropicRun(problem, self.tol).product())

    def complete(self, problem: Problem, result: Result) -> Result:
        """The result knows its costs, for whoever asks about the problem without eps."""
        return replace(result, problem=problem)

    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Ascend in single precision, where that is of use, then in double, and prove bounds.

        A point is proven if it may be within the tolerance, and one in `PROVE_EVERY` others; so are
        the last one, and the first of a long run, since that may be stopped any time.
        """
        run = EntropicRun(problem, self.tol)
        ascent = Ascent(run.engine, *run.start(start.alpha, start.g), self.tol)
        steps = unproven = idle = 0
        narrowest = np.inf
        while True:
            try:
                rising = ascent.advance()
            except DeadlineError:
                if ascent.at is not None:
                    yield Offer(*run.prove(ascent))
                raise
            steps, unproven = steps + 1, unproven + 1
            gap = float(distances(ascent.engine.terms, ascent.at)[0])
            early = steps == 1 and run.streams and gap > NEAR * self.tol
            due = unproven >= PROVE_EVERY or steps == self.max_iter
            offer, rounded = NOTHING_NEW, False
            if gap <= self.tol or early or due or not rising:
                upper, lower = run.prove(ascent)
                offer, unproven = Offer(upper, lower), 0
                width = upper.bound - lower.bound
                rounded = is_rounding(width, upper.bound - upper.value + lower.slack)
                idle = 0 if width < 0.9 * narrowest else idle + 1
                narrowest = min(narrowest, width)
            yield offer
            at_its_end = rounded or not rising
            if ascent.single:
                # What is still missing, single precision may not see.
                at_its_end = at_its_end or idle >= SINGLE_PATIENCE
                if at_its_end or float(ascent.at.error[0]) <= SINGLE_ERROR:
                    ascent, idle, narrowest = run.in_double(ascent), 0, np.inf
            elif at_its_end:
                return

"""Entropic: ascent on the weights with warm Sinkhorn sweeps in between."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._entropic._ascent import ascend
from frot._entropic._engine import Engine, Point, distances
from frot._entropic._run import EntropicRun
from frot._errors import InputError
from frot._problem import Problem
from frot._solvers._drive import Driven, Offer
from frot._solvers._start import Start

__all__ = ["Entropic"]

# Points that may be within the tolerance are certified, and one in so many others.
PROVE_EVERY = 20
# A gap of this many tolerances is a step or two from the end.
NEAR = 30.0
# Certificates in a row that bring nothing before single precision is given up.
SINGLE_PATIENCE = 3


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

    Points may be NumPy arrays or those of any library with the array API, on any device; kernels
    that do not fit the memory budget are streamed in blocks of rows, on CUDA by flash-sinkhorn
    where it is installed.

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
    def takes_zero_weights(self) -> bool:
        """Points without weight get the potentials that the others leave them."""
        return True

    @property
    def any_library(self) -> bool:
        """Arrays of other libraries are worked on where they are."""
        return True

    def offers(self, problem: Problem, start: Start) -> Iterator[Offer]:
        """Climb, and prove an interval whenever it may be within the tolerance."""
        run = EntropicRun(problem, self.tol)
        engine = run.engine
        at = yield from self._climb(run, engine, *run.start(start.alpha, start.g))
        precise = engine.double()
        if at is not None and precise is not engine:
            # Single precision led as far as it could: go on from there in double.
            home = precise.terms.home
            alpha, g = home.xp.astype(at.alpha, home.dtype), home.xp.astype(at.g, home.dtype)
            if bool(home.xp.all(home.xp.isfinite(g))):
                alpha = alpha / home.xp.sum(alpha, axis=1, keepdims=True)
                yield from self._climb(run, precise, alpha, g)

    def before_any(self, problem: Problem) -> Offer:
        """Equal weights and one pass over the rows: an upper bound has to count the entropy too."""
        run = EntropicRun(problem, self.tol)
        engine = run.engine.double()
        alpha = engine.terms.home.bring(np.full((1, problem.shape[0]), 1.0 / problem.shape[0]))
        g = engine.terms.home.xp.zeros_like(engine.terms.b)
        return Offer(*run.certify(engine.sweep(alpha, g, float("inf"))))

    @property
    def _unhurried(self) -> bool:
        return self.time_limit is None and self.max_iter > PROVE_EVERY

    def _climb(
        self, run: EntropicRun, engine: Engine, alpha: Any, g: Any
    ) -> Generator[Offer, None, Point | None]:
        """Climb with one engine; return where it can get no further, None if nobody can.

        The first point is certified whatever it is worth, since the run may be stopped any time;
        unless that takes long, nothing but Ctrl-C can stop it soon, and the end is near anyway.
        """
        xp = engine.terms.home.xp
        since, best, idle, at = PROVE_EVERY, np.inf, 0, None
        for at in ascend(engine, alpha, g, self.tol):
            gap = float(distances(engine.terms, at)[0])
            if since == PROVE_EVERY and run.streams and self._unhurried and gap <= NEAR * self.tol:
                since = 0
            since += 1
            if gap > self.tol and since < PROVE_EVERY:
                yield Offer()
                continue
            upper, lower = run.certify(at)
            since, width = 0, upper.bound - lower.bound
            yield Offer(upper, lower)
            if width <= 4.0 * (upper.bound - upper.value + lower.slack):
                return None
            idle, best = (0, width) if width < 0.9 * best else (idle + 1, best)
            if idle >= SINGLE_PATIENCE and engine.double() is not engine:
                return at
        if at is not None and bool(xp.all(xp.isfinite(at.dual))):
            yield Offer(*run.certify(at))
        return at

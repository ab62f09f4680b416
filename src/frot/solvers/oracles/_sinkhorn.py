"""Entropic transport by Sinkhorn's algorithm in scalings that are absorbed into potentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from frot._base.arrays import Home, to_numpy
from frot._base.validate import check_count, check_number
from frot.costs.stack import StackGeometry
from frot.plans.plan import Plan
from frot.problem.adversary import Simplex
from frot.solvers.oracles._protocol import Transport
from frot.solvers.sinkhorn.dense import DenseEngine
from frot.solvers.sinkhorn.engine import Point
from frot.solvers.sinkhorn.newton import Trust, newton_path, newton_step
from frot.solvers.sinkhorn.terms import BatchTerms

# Sweeps before Newton's method is tried on what is left, and steps of it.
SWEEPS_FIRST = 1_000
NEWTON_STEPS = 100


@dataclass(frozen=True)
class Sinkhorn:
    r"""Solve :math:`\min_\Pi \langle \Pi, M \rangle + \varepsilon\,\mathrm{KL}(\Pi | a b^\top)`.

    The paper's algorithm 1 on the kernel :math:`e^{(f \oplus g - M)/\varepsilon}`, whose
    potentials take over whatever the scalings cannot hold, so that small eps neither underflow
    nor lose mass; over-relaxed, and in double precision finished by Newton steps where sweeps are
    slow and the matrix is small. M may be NumPy's or PyTorch's, float32 or float64. The test is
    on the marginals themselves, :math:`\|\Pi^\top 1 - b\|_1 \le tol` with the rows exact.

    As an oracle of `FrankWolfe` it is an inexact one: eps is its own and no part of the problem, of
    which an interval is proven for eps = 0. For the problem with eps use `Entropic`.

    Parameters
    ----------
    eps : float
        Entropy of the plan, in units of cost, above zero.
    tol : float
        Mass that may be in the wrong column.
    max_iter : int
        Sweeps at most, over all eps on the way.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.array([0.5, 0.5])
    >>> plan = Sinkhorn(eps=1e-3)(np.array([[0.0, 1.0], [1.0, 0.0]]), half, half).plan
    >>> np.asarray(plan).round(6)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    eps: float
    tol: float = 1e-6
    max_iter: int = 10_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", check_number(self.eps, "eps", strict=True))
        object.__setattr__(self, "tol", check_number(self.tol, "tol", strict=True))
        object.__setattr__(self, "max_iter", check_count(self.max_iter, "max_iter"))

    @property
    def keeps_potentials(self) -> bool:
        """Sweeps on potentials suffice, unless a subclass overrides the call."""
        return type(self).__call__ is Sinkhorn.__call__

    def __call__(
        self,
        M: Any,
        a: Any,
        b: Any,
        start: Any = None,
    ) -> Transport:
        """Return the entropic plan and its potentials."""
        engine = self._engine(M, a, b, self.eps)
        terms = engine.terms
        home, left = terms.home, min(self.max_iter, SWEEPS_FIRST)
        one = home.xp.ones((1, 1), dtype=home.dtype, device=home.device)
        if start is None:
            at = engine.start(one, self.tol, left)
        else:
            # A warm start is worth more than coming down from a large eps.
            at = engine.sweep(one, home.bring(start)[None, ...], self.tol, left)
        at = self._finish(engine, at)
        converged = bool(to_numpy(at.error)[0] <= self.tol)
        # In the kernel's place: nobody needs that any more.
        plan = at.kernel
        plan *= at.left[:, :, None]
        plan *= at.right[:, None, :]
        # Newton steps leave rows off by what they have not converged; a last scaling does not.
        rows = home.xp.sum(plan, axis=2)
        share = home.xp.where(rows > 0.0, terms.a / home.xp.where(rows > 0.0, rows, 1.0), 1.0)
        plan *= share[:, :, None]
        f, g = at.f + self.eps * home.xp.log(home.xp.where(share > 0.0, share, 1.0)), at.g
        return Transport(Plan(to_numpy(plan)[0], copy=False), f[0, ...], g[0, ...], converged)

    @staticmethod
    def _engine(M: Any, a: Any, b: Any, eps: float) -> DenseEngine:
        home, rows, cols = Home.of(M), to_numpy(a)[None, ...], to_numpy(b)[None, ...]
        geometry = StackGeometry(M[None, None, ...])
        C = geometry.C if geometry.nonnegative else home.xp.abs(geometry.C)
        sizes = to_numpy(home.xp.mean(C))[None, None]
        terms = BatchTerms.of(home, rows, cols, Simplex(), eps, sizes)
        return DenseEngine(geometry, terms)

    def _finish(self, engine: DenseEngine, at: Point) -> Point:
        """Go on where the first sweeps did not do: by Newton steps first if they are cheap."""
        left = self.max_iter - at.work
        xp = engine.terms.home.xp
        if left > 0 and not bool(xp.all(at.error <= self.tol)):
            at, steps = _newton(engine, at, self.tol, left)
            left -= steps
        if left > 0 and not bool(xp.all(at.error <= self.tol)):
            at = engine.sweep(at.alpha, at.g, self.tol, left)
        return at


def _newton(engine: DenseEngine, at: Point, tol: float, limit: int) -> tuple[Point, int]:
    """Newton steps on the potentials, coming down to eps: at a small one they are short."""
    terms = engine.terms
    home, steps = terms.home, 0
    if not engine.newton_pays or home.dtype != home.xp.float64:
        return at, 0
    at, trust = newton_path(engine, at), Trust.begin(terms)
    while steps < min(limit, NEWTON_STEPS) and not bool(home.xp.all(at.error <= tol)):
        at, trust = newton_step(engine, at, trust)
        steps += 1
    return at, steps

"""Entropic transport by Sinkhorn's algorithm (Cuturi 2013).

In scalings that are absorbed into potentials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from frot._base.arrays import Array, Home, to_numpy
from frot._base.validate import check_count, check_number
from frot.costs.stack import Stack
from frot.plans.plan import Plan
from frot.problem.adversary import Simplex
from frot.solvers.entropic.dense import DenseEngine
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.oracles._protocol import Transport


@dataclass(frozen=True)
class Sinkhorn:
    r"""Solve :math:`\min_\Pi \langle \Pi, M \rangle + \varepsilon\,\mathrm{KL}(\Pi | a b^\top)`.

    The paper's algorithm 1 on the kernel :math:`e^{(f \oplus g - M)/\varepsilon}`, whose
    potentials take over whatever the scalings cannot hold, so that small eps neither underflow
    nor lose mass, and with momentum. M may be NumPy's or PyTorch's, float32 or float64. The test is
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
        M: Array,
        a: Array,
        b: Array,
        start: Any = None,
    ) -> Transport:
        """Return the entropic plan and its potentials."""
        engine = self._engine(M, a, b, self.eps)
        home = engine.problem.home
        alpha = home.xp.ones((1, 1), dtype=home.dtype, device=home.device)
        if start is None:
            point = engine.start(alpha, self.tol, self.max_iter)
        else:
            # With a warm start the sweeps begin at the final eps.
            point = engine.sweep(alpha, home.bring(start)[None, ...], self.tol, self.max_iter)
        converged = bool(to_numpy(point.error)[0] <= self.tol)
        # Written into the kernel's memory, which is not needed afterwards.
        plan = point.kernel
        plan *= point.left[:, :, None]
        plan *= point.right[:, None, :]
        f, g = point.f, point.g
        return Transport(Plan(to_numpy(plan)[0], copy=False), f[0, ...], g[0, ...], converged)

    @staticmethod
    def _engine(M: Array, a: Array, b: Array, eps: float) -> DenseEngine:
        home, rows, cols = Home.of(M), to_numpy(a)[None, ...], to_numpy(b)[None, ...]
        costs = Stack(M[None, None, ...])
        C = costs.C if costs.nonnegative else home.xp.abs(costs.C)
        sizes = to_numpy(home.xp.mean(C))[None, None]
        problem = EntropicProblem.of(home, rows, cols, Simplex(), eps, sizes)
        return DenseEngine(costs, problem)

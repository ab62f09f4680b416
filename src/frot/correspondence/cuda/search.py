r"""The search for the best plan against all mixes of layers, on a stack of cosines on a device.

With rows exact, the plan of the weights alpha and the potential g is
:math:`\pi_{ij} = a_i u_i K_{ij} v_j b_j`, where

.. math:: \log K_{ij} = \frac{g_j + 2 \sum_l \alpha_l \cos_l(i, j)}{\varepsilon} - c_i , \qquad
          f_i = 2 + \varepsilon (\log u_i - c_i), \qquad
          g \leftarrow g + \varepsilon \log v .

Kernels and cosines are in half precision: the values that the search compares are estimates, and
prove nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from frot._base.stopping import check_deadline
from frot.solvers.sinkhorn.ascent import Ascent
from frot.solvers.sinkhorn.engine import Point, distances, make_point
from frot.solvers.sinkhorn.terms import Terms

if TYPE_CHECKING:
    from frot.correspondence.cuda.pair import PairSteps

__all__ = ["StackEngine", "search"]

# Sweeps between two looks at the columns, and in all, for one choice of weights.
LOOK, MOST_SWEEPS = 4, 160
# Choices of weights before the search is given up.
MOST_WEIGHTS = 60
# The share of the gap asked for that an estimate has to reach.
SAFE = 0.5


@dataclass(frozen=True, eq=False)
class StackEngine:
    """Sweeps at given weights on the buffers of one pair.

    Terms, weights and potentials are on the host in double precision: a sum over cells takes a
    processor less time than it takes to launch one on a device.
    """

    work: PairSteps
    terms: Terms

    @property
    def patience(self) -> float:
        """A sweep takes a tenth of what new weights do."""
        return 0.2

    @property
    def noise(self) -> float:
        """Single precision, on average over the cells."""
        return 1e-6

    def start(self, alpha: Any, closeness: Any = 1e-2) -> Point:
        """Potentials for the weights, from nothing."""
        return self.sweep(alpha, np.zeros_like(self.terms.b), closeness)

    def sweep(self, alpha: Any, g: Any, closeness: Any, limit: int | None = None) -> Point:
        """Potentials for the weights, from the potential g."""
        work, terms, kernels = self.work, self.terms, self.work.work
        (n, m), eps = work.shape, work.eps
        K, u, v = work.K[0], work.u[0], work.v[0]
        work.alpha.copy_(torch.from_numpy(alpha[0, work.order]))
        work.h[:m].copy_(torch.from_numpy(g[0] / eps))
        v.fill_(1.0)
        kernels.absorb(work.stack, work.alpha, work.h, work.b, 2.0 / eps, K, work.levels)
        count, limit = 0, MOST_SWEEPS if limit is None else limit
        while True:
            check_deadline()
            for update in min(LOOK, limit - count) * (True,) + (False,):
                kernels.sweep(K, work.a, work.b, u, v, work.totals, work.errors[0], update)
            count += min(LOOK, limit - count)
            error = float(work.errors[0].sum())
            if count >= limit or error <= float(np.max(closeness)):
                break
        kernels.weigh(
            work.stack, K, work.a, work.b, u, v,
            work.phi, work.log_prior, work.alpha, 1.0, work.eta,
        )  # fmt: skip
        parts = [u[:n].log() - work.levels[:n], v[:m].log(), v[:m] * work.totals[:m], work.phi]
        found = torch.cat(parts).cpu().numpy().astype(float)
        logs, moved, columns, known = np.split(found, np.cumsum([n, m, m]))
        phi = np.empty((1, len(known)))
        phi[0, work.order] = known
        columns = np.where(terms.b[0] > 0.0, columns, 1.0)
        f, ahead = 2.0 + eps * logs, g + eps * moved
        return make_point(
            terms, alpha, f[None], ahead, phi, columns[None], np.array([error]), work=count
        )

    def double(self) -> StackEngine:
        """Itself: there is no other stack."""
        return self


def search(work: PairSteps, terms: Terms, alpha: Any, tol: float) -> Point | None:
    """Return weights and potentials whose estimated gap is half of `tol`, None where that fails.

    The kernel and the scalings in the buffers are those of the point.
    """
    engine = StackEngine(work, terms)
    for count, at in enumerate(Ascent(engine, alpha, tol=tol)):
        if distances(terms, at)[0] <= SAFE * tol:
            return engine.sweep(at.alpha, at.g, np.inf, limit=0)
        if count == MOST_WEIGHTS:
            break
    return None

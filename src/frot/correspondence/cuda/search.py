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

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from frot._base.stopping import check_deadline
from frot.correspondence.cuda.steps import LOOK, PairSteps
from frot.solvers.sinkhorn.ascent import Ascent
from frot.solvers.sinkhorn.engine import Point, distances, make_point
from frot.solvers.sinkhorn.terms import Terms

__all__ = ["StackEngine", "search"]

# Sweeps for one choice of weights at most.
MOST_SWEEPS = 160
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
    # Weights and potential of the kernel and the scalings in the buffers.
    _left: dict[str, Any] = field(default_factory=dict, repr=False)

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
        work, terms = self.work, self.terms
        (n, m), eps = work.shape, work.eps
        self._put(alpha, g)
        limit, error, count = MOST_SWEEPS if limit is None else limit, np.inf, 0
        while error > float(np.max(closeness)) and count < limit:
            check_deadline()
            (work.go_on if count else work.begin)()
            count += LOOK
            error = float(work.off)
        work.look()
        found = work.seen.cpu().numpy().astype(float)
        logs, moved, columns, known = np.split(found, np.cumsum([n, m, m]))
        phi = np.empty((1, len(known)))
        phi[0, work.order] = known
        columns = np.where(terms.b[0] > 0.0, columns, 1.0)
        f, ahead = 2.0 + eps * logs, g + eps * moved
        self._left.update(alpha=alpha, g=ahead)
        return make_point(
            terms, alpha, f[None], ahead, phi, columns[None], np.array([error]), work=count
        )

    def settle(self, at: Point) -> None:
        """Leave the kernel and the scalings of a point in the buffers, rows exact."""
        if all(np.array_equal(getattr(at, name), left) for name, left in self._left.items()):
            return
        self._put(at.alpha, at.g)
        self.work.absorb()
        self.work.sweep(update=False)

    def _put(self, alpha: Any, g: Any) -> None:
        """Write weights and a potential where the kernel is formed from them."""
        work = self.work
        work.alpha.copy_(torch.from_numpy(alpha[0, work.order]))
        work.h[: work.shape[1]].copy_(torch.from_numpy(g[0] / work.eps))

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
            engine.settle(at)
            return at
        if count == MOST_WEIGHTS:
            break
    return None

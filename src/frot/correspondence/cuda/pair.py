"""One pair of images after another on a device: the paper's plan, or a search for the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
import torch

from frot._base.arrays import Home
from frot._base.stopping import check_deadline
from frot._base.validate import check_prior, check_weights
from frot.correspondence._features import FeatureMap
from frot.correspondence._layer_costs import check_maps
from frot.correspondence._transport import LayerPlan, check_steps
from frot.correspondence.cuda._operands import Operands, make_groups
from frot.correspondence.cuda.steps import LOOK, PairSteps
from frot.problem.adversary import Simplex
from frot.solvers.sinkhorn.ascent import Ascent
from frot.solvers.sinkhorn.engine import Point, distances, make_point
from frot.solvers.sinkhorn.terms import BatchTerms

__all__ = ["PairPlanner", "StackEngine", "cosine_factors", "search"]


def cosine_factors(
    source: Sequence[FeatureMap],
    target: Sequence[FeatureMap],
    grid_of: int,
    device: Any,
    dtype: torch.dtype,
) -> Iterator[tuple[tuple[int, ...], torch.Tensor, torch.Tensor]]:
    """Yield layers alike with the two factors of their cosines, padded, in any precision."""
    shapes = [[tuple(one.values.shape) for one in maps] for maps in (source, target)]
    (_, h, w), (_, H, W) = (side[grid_of] for side in shapes)
    for group in make_groups(*shapes):
        F, G = (
            torch.stack([torch.as_tensor(maps[k].values, device=device) for k in group.layers])
            for maps in (source, target)
        )
        X, Y = Operands(group, (h, w), (H, W), device, dtype)(F.to(dtype), G.to(dtype))
        yield group.layers, X, Y


# Sweeps a step, or for one choice of weights, at most.
MOST_SWEEPS = 160
# Pairs of the same shapes in a row before their launches are put into a graph, which takes longer
# than a few pairs do.
CAPTURED_AFTER = 3


@dataclass
class PairPlanner:
    """The plan of one pair after another, on a CUDA device (or any other, more slowly).

    Buffers are kept for pairs of the same shapes, and where these keep coming, as in a video,
    launches are replayed as CUDA graphs. Where the sweeps do not bring the columns within `tol`
    there are more of them; where half precision cannot, there is no plan.

    Parameters
    ----------
    eta, eps : float
        Both > 0.
    steps : int
        T; without any, weights are looked for until the gap is closed.
    tol : float
        L1 error of the plan's columns; without steps, the relative gap, which is estimated.
    sweeps : int
        Sinkhorn's sweeps in each step at first.
    device : str or torch device
    kernels : {"triton", "torch"}, optional
        Triton's where there are any, if left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> maps = [FeatureMap(str(h), rng.normal(size=(64, h, h)), 16 / h, 1) for h in (4, 2)]
    >>> found = PairPlanner(device="cpu")(maps, maps)
    >>> found.plan.argmax(dim=1).tolist() == list(range(16)), found.error <= 1e-3
    (True, True)
    """

    eta: float = 0.3
    eps: float = 0.1
    steps: int = 3
    tol: float = 1e-3
    sweeps: int = 10
    device: Any = "cuda"
    kernels: str | None = None
    _kept: Any = field(default=None, init=False, repr=False)
    _times: int = field(default=0, init=False, repr=False)
    _lock: Any = field(default_factory=Lock, init=False, repr=False)

    def __call__(
        self,
        source: Sequence[FeatureMap],
        target: Sequence[FeatureMap],
        a: Any = None,
        b: Any = None,
        prior: Any = None,
        grid_of: int = 0,
    ) -> LayerPlan | None:
        """Return the plan; its matrix stays on the device, and is the caller's to keep.

        `grid_of` is the layer whose cells are matched. None where half precision cannot do what
        was asked for.
        """
        check_maps(source, target, grid_of)
        check_steps(self.eta, self.eps, self.steps or 1)
        n, m = source[grid_of].grid.count, target[grid_of].grid.count
        weights = check_weights(a, n, "a", True), check_weights(b, m, "b", True)
        log_prior = check_prior(prior, len(source))
        # Threads share the buffers.
        with self._lock:
            work = self._steps(source, target, grid_of)
            return self._planned(work, source, target, weights, log_prior)

    def _planned(
        self,
        work: PairSteps,
        source: Sequence[FeatureMap],
        target: Sequence[FeatureMap],
        weights: tuple[np.ndarray, np.ndarray],
        log_prior: np.ndarray | None,
    ) -> LayerPlan | None:
        n, m = work.shape
        work.put([one.values for one in source], [one.values for one in target])
        work.a[:n] = torch.as_tensor(weights[0])
        work.b[:m] = torch.as_tensor(weights[1])
        known = np.zeros(len(source)) if log_prior is None else log_prior
        work.log_prior[:] = torch.as_tensor(known[work.order])
        if not self.steps:
            return self._searched(work, weights, Simplex(self.eta, log_prior))
        work.run()
        used, error = work.sweeps, work.error
        while not error <= self.tol and used < MOST_SWEEPS:
            used *= 4
            work.take_steps(used, afresh=True)
            error = work.error
        if not error <= self.tol:
            return None
        back = np.argsort(work.order)
        alpha, phi = (x.double().cpu().numpy()[back] for x in (work.alpha, work.phi))
        return LayerPlan(work.plan.clone(), alpha, phi, error, used * self.steps)

    def _searched(
        self, work: PairSteps, weights: tuple[np.ndarray, np.ndarray], adversary: Simplex
    ) -> LayerPlan | None:
        """The plan whose gap is closed, as far as can be seen."""
        work.play(work.cosines)
        sizes = work.phi.double().cpu().numpy()[np.argsort(work.order)]
        home, (a, b) = Home.of(sizes), weights
        terms = BatchTerms.of(home, a[None], b[None], adversary, self.eps, sizes[None])
        at = search(work, terms, adversary.best(sizes)[1][None], self.tol)
        if at is None:
            return None
        plan = torch.empty_like(work.plan)
        work.work.blend(work.K, work.a, work.b, work.u, work.v, plan)
        return LayerPlan(plan, at.alpha[0], at.phi[0], float(at.error[0]), at.work, at.g[0])

    def _steps(
        self, source: Sequence[FeatureMap], target: Sequence[FeatureMap], grid_of: int
    ) -> PairSteps:
        """Return the buffers for maps of these shapes, captured once they keep coming."""
        shapes = [[tuple(one.values.shape) for one in maps] for maps in (source, target)]
        terms = (self.eta, self.eps, self.steps, self.sweeps, grid_of, self.kernels)
        key = (shapes, terms, str(self.device))
        if self._kept is None or self._kept[0] != key:
            # The old buffers go first: two sets may not fit.
            self._kept, self._times = None, 0
            work = PairSteps(
                *shapes, eta=self.eta, eps=self.eps, steps=self.steps or 1, sweeps=self.sweeps,
                grid_of=grid_of, device=self.device, kernels=self.kernels,
            )  # fmt: skip
            self._kept = (key, work)
            return work
        work = self._kept[1]
        self._times += 1
        if self._times >= CAPTURED_AFTER:
            if self.steps:
                work.capture()
            else:
                work.capture_search()
        return work

    def __getstate__(self) -> dict[str, Any]:
        # Buffers stay where they are.
        return {**self.__dict__, "_kept": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())


# Choices of weights before the search is given up.
MOST_WEIGHTS = 60
# The share of the gap asked for that an estimate has to reach.
SAFE = 0.5


@dataclass(frozen=True, eq=False)
class StackEngine:
    r"""Sweeps at given weights on the buffers of one pair, for the search for the best weights.

    With rows exact, the plan of the weights alpha and the potential g is
    :math:`\pi_{ij} = a_i u_i K_{ij} v_j b_j`, where

    .. math:: \log K_{ij} = \frac{g_j + 2 \sum_l \alpha_l \cos_l(i, j)}{\varepsilon} - c_i , \qquad
              f_i = 2 + \varepsilon (\log u_i - c_i), \qquad
              g \leftarrow g + \varepsilon \log v .

    Kernels and cosines are in half precision: the values that the search compares are estimates,
    and prove nothing.

    Terms, weights and potentials are on the host in double precision: a sum over cells takes a
    processor less time than it takes to launch one on a device.
    """

    work: PairSteps
    terms: BatchTerms
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
            work.play(work.go_on if count else work.begin)
            count += LOOK
            error = float(work.off)
        work.play(work.look)
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


def search(work: PairSteps, terms: BatchTerms, alpha: Any, tol: float) -> Point | None:
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

"""One pair of images after another on a device: from coarse maps to the paper's plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from frot._base.arrays import Home, has_triton
from frot._base.errors import InputError
from frot._base.validate import check_prior, check_weights
from frot.correspondence._features import FeatureMap
from frot.correspondence._layer_costs import check_maps
from frot.correspondence._transport import LayerPlan, check_steps, paper_shares, paper_steps
from frot.correspondence.cuda import _plain
from frot.correspondence.cuda._operands import Operands, SideStream, make_groups, padded
from frot.correspondence.cuda.search import search
from frot.problem.adversary import Simplex
from frot.solvers.sinkhorn.terms import Terms

__all__ = ["PairPlanner", "PairSteps", "cosine_factors"]


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


# Cosines of a pair from which on a device has work for two streams.
MANY = 100_000_000


class PairSteps:
    r"""The paper's three steps on a stack of cosines in half precision.

    Everything is written to buffers that are allocated once, by a fixed sequence of launches, so
    that `capture` can put it into a CUDA graph; `run` replays that, or launches one by one.

    Parameters
    ----------
    source, target : sequences of tuples
        Shapes (channels, h, w) of the layers' maps.
    eta, eps, steps, sweeps, grid_of, device, kernels :
        As of `PairPlanner`.

    Attributes
    ----------
    maps : list of pairs of tensors
        Where the maps go, by group: (layers, channels, h, w) of either image.
    a, b, log_prior : tensors
        Padded weights of the cells, and log q; uniform until they are written.
    plan, phi, alpha, errors : tensors
        What comes out: (n, m), (L,) in the order of `order`, and the L1 errors of the columns of
        every step, (steps, blocks of columns).
    """

    def __init__(
        self,
        source: Sequence[tuple[int, ...]],
        target: Sequence[tuple[int, ...]],
        *,
        eta: float = 0.3,
        eps: float = 0.1,
        steps: int = 3,
        sweeps: int = 10,
        grid_of: int = 0,
        device: Any = "cuda",
        kernels: str | None = None,
        dtype: torch.dtype | None = None,
        last_phi: bool = True,
    ) -> None:
        self.device = torch.device(device)
        cuda = self.device.type == "cuda"
        if kernels is None:
            kernels = "triton" if cuda and has_triton() else "torch"
        if kernels not in ("triton", "torch"):
            raise InputError(f"kernels: is {kernels!r}; use 'triton' or 'torch'")
        self.eta, self.eps, self.steps, self.sweeps = eta, eps, steps, sweeps
        self.last_phi = last_phi
        self.dtype = dtype or (torch.float16 if cuda else torch.float32)
        (_, h, w), (_, H, W) = source[grid_of], target[grid_of]
        ends = (h, w), (H, W)
        self.shape = ends[0][0] * ends[0][1], ends[1][0] * ends[1][1]
        self.groups = make_groups(source, target)
        self.order = [layer for group in self.groups for layer in group.layers]
        if kernels == "triton":
            from frot.correspondence.cuda import _triton as module
        else:
            module = _plain
        # The largest group has a stream of its own; more streams would take more workspaces.
        largest = max(group.size for group in self.groups)
        alone = self.shape[0] * self.shape[1] * len(source) < MANY
        pair = [(SideStream(self.device, alone), SideStream(self.device, alone)) for _ in range(2)]
        lanes = [pair[group.size < largest] for group in self.groups]
        self.streams = [stream for stream, _ in lanes]
        self.operands = [
            Operands(group, ends[0], ends[1], self.device, self.dtype, module, side_stream)
            for group, (_, side_stream) in zip(self.groups, lanes, strict=True)
        ]
        count = len(source)
        n, m = self.shape
        rows, cols = padded(n), padded(m)
        self.maps = [
            tuple(
                self._room(len(group.layers), group.channels, *size)
                for size in (group.source, group.target)
            )
            for group in self.groups
        ]
        self.a, self.b = self._room(rows), self._room(cols)
        self.a[:n], self.b[:m] = 1.0 / n, 1.0 / m
        self.log_prior, self.alpha, self.phi, self.first = (self._room(count) for _ in range(4))
        # Products and kernels are written whole, padding included.
        self.stack, self.K = (
            torch.empty((k, rows, cols), dtype=self.dtype, device=self.device)
            for k in (count, steps)
        )
        self.u, self.v = self._room(steps, rows), self._room(steps, cols)
        self.h, self.totals, self.levels = self._room(cols), self._room(cols), self._room(rows)
        self.plan = self._room(n, m)
        self.work: Any = module.Steps((count, rows, cols), self.device)
        self.errors = self._room(steps, self.work.error_blocks)
        self.graph: Any = None

    def _room(self, *size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.zeros(size, dtype=dtype, device=self.device)

    def put(self, source: Sequence[Any], target: Sequence[Any]) -> None:
        """Copy maps (channels, h, w) of all layers, arrays or tensors, to where they are used."""
        for group, (F, G) in zip(self.groups, self.maps, strict=True):
            for slot, layer in enumerate(group.layers):
                F[slot].copy_(torch.as_tensor(source[layer]))
                G[slot].copy_(torch.as_tensor(target[layer]))

    def cosines(self) -> None:
        """Fill the stack, and phi of the product plan; the largest group waits for no other."""
        first = 0
        for stream, make, (F, G) in zip(self.streams, self.operands, self.maps, strict=True):
            part = slice(first, first + len(F))
            with stream.launching():
                self._group(make, F, G, part)
            first = part.stop
        for stream in set(self.streams):
            stream.join()

    def _group(self, make: Operands, F: Any, G: Any, part: slice) -> None:
        """Multiply the factors, and the means of the factors."""
        X, Y = make(F, G)
        with make.side_stream.launching():
            # Weights of cells are small numbers for half precision.
            left = torch.matmul((self.a * len(self.a)).to(X.dtype), X).float() / len(self.a)
            right = torch.matmul((self.b * len(self.b)).to(Y.dtype), Y).float() / len(self.b)
            self.phi[part] = 2.0 - 2.0 * (left * right).sum(dim=1)
        torch.bmm(X, Y.mT, out=self.stack[part])
        make.side_stream.join()

    def take_steps(self, sweeps: int | None = None, afresh: bool = False) -> None:
        """Take the steps on the stack from the phi of the product plan.

        `afresh` takes them once more, where phi has moved on.
        """
        sweeps = self.sweeps if sweeps is None else sweeps
        work, factor = self.work, 2.0 / self.eps
        if afresh:
            self.phi.copy_(self.first)
        else:
            self.first.copy_(self.phi)
        self.alpha.copy_(torch.softmax(self.phi / self.eta + self.log_prior, dim=0))
        self.h.zero_()
        self.v.fill_(1.0)

        def vertex(step: int) -> int:
            K, u, v = self.K[step], self.u[step], self.v[step]
            work.absorb(self.stack, self.alpha, self.h, self.b, factor, K, self.levels)
            # Rows exact at the end.
            for update in sweeps * (True,) + (False,):
                work.sweep(K, self.a, self.b, u, v, self.totals, self.errors[step], update)
            if step + 1 < self.steps:
                self.h += v.log()
            return step

        def move(step: int, gamma: float) -> None:
            if step + 1 < self.steps or self.last_phi:
                work.weigh(
                    self.stack, self.K[step], self.a, self.b, self.u[step], self.v[step],
                    self.phi, self.log_prior, self.alpha, gamma, self.eta,
                )  # fmt: skip

        paper_steps(self.steps, vertex, move)
        work.blend(self.K, self.a, self.b, self.u, self.v, self.plan)

    @property
    def error(self) -> float:
        """A bound on the plan's mass in wrong columns, from the errors of the steps."""
        each = self.errors.sum(dim=1).tolist()
        return sum(x * found for x, found in zip(paper_shares(self.steps), each, strict=True))

    def launch(self) -> None:
        """Everything from maps to plan, launched one by one."""
        self.cosines()
        self.take_steps()

    def capture(self) -> None:
        """Put everything into one CUDA graph, which `run` then replays."""
        side = torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            for _ in range(2):
                self.launch()
        torch.cuda.current_stream(self.device).wait_stream(side)
        torch.cuda.synchronize(self.device)
        # What the launches above have used cannot be used by the graph, which has its own.
        torch.cuda.empty_cache()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.launch()

    def run(self) -> None:
        """Fill `plan`, `phi`, `alpha` and `errors` from `maps`, `a`, `b` and `log_prior`."""
        if self.graph is None:
            self.launch()
        else:
            self.graph.replay()


# Sweeps a step at most before single precision has to do it.
MOST_SWEEPS = 160
# Pairs of the same shapes in a row before their launches are put into a graph, which takes longer
# than a few pairs do.
CAPTURED_AFTER = 3


@dataclass
class PairPlanner:
    """The plan of one pair after another, on a CUDA device (or any other, more slowly).

    Buffers are kept for pairs of the same shapes, and where these keep coming the paper's steps are
    replayed as one CUDA graph. Where the sweeps do not bring the columns within `tol` there are
    more of them; where half precision cannot, there is no plan.

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
        work = self._steps(source, target, grid_of)
        n, m = work.shape
        weights = check_weights(a, n, "a", True), check_weights(b, m, "b", True)
        log_prior = check_prior(prior, len(source))
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
        work.cosines()
        sizes = work.phi.double().cpu().numpy()[np.argsort(work.order)]
        home, (a, b) = Home.of(sizes), weights
        terms = Terms.of(home, a[None], b[None], adversary, self.eps, sizes[None])
        at = search(work, terms, adversary.best(sizes)[1][None], self.tol)
        if at is None:
            return None
        plan = torch.empty_like(work.plan)
        work.work.blend(work.K, work.a, work.b, work.u, work.v, plan)
        return LayerPlan(plan, at.alpha[0], at.phi[0], float(at.error[0]), at.work)

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
        often = self.steps and self._times >= CAPTURED_AFTER
        if often and work.graph is None and work.device.type == "cuda":
            work.capture()
        return work

    def __getstate__(self) -> dict[str, Any]:
        # Buffers stay where they are.
        return {**self.__dict__, "_kept": None}

"""One pair of images after another on a device: the paper's plan, or a search for the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
import torch

from frot._base.arrays import Home, device_room, has_triton
from frot._base.errors import InputError
from frot._base.stopping import check_deadline
from frot._base.validate import check_choice, check_prior, check_weights
from frot.correspondence._device import free_room, needed_room
from frot.correspondence._features import FeatureMap
from frot.correspondence._layer_costs import check_maps
from frot.correspondence._transport import LayerPlan, check_steps, paper_gammas, paper_shares
from frot.correspondence.cuda import _plain
from frot.correspondence.cuda.cosines import (
    KEPT,
    Buffers,
    CosineOperands,
    Cosines,
    Layout,
    SideStream,
    Stack,
)
from frot.problem.adversary import Simplex
from frot.solvers.sinkhorn.ascent import Ascent
from frot.solvers.sinkhorn.engine import Point, distances, make_point
from frot.solvers.sinkhorn.terms import BatchTerms

# Sweeps of a search between two looks at the columns.
LOOK = 4
# Cosines of a pair from which on a device has work for two streams.
MANY = 100_000_000


class PairSteps:
    r"""The paper's steps on cosines in half precision, and the parts of a search.

    Everything is written to buffers that are allocated once, by a fixed sequence of launches, so
    that `capture` can put it into a CUDA graph; `run` replays that, or launches one by one.

    Parameters
    ----------
    source, target : sequences of tuples
        Shapes (channels, h, w) of the layers' maps.
    eta, eps, steps, sweeps, grid_of, device, kernels :
        As of `PairPlanner`; without steps there is no room for a plan.
    keep : {"stack", "factors"}
        What is kept of the cosines.

    Attributes
    ----------
    maps : list of pairs of tensors
        Where the maps go, by group: (layers, channels, h, w) of either image.
    a, b, log_prior : tensors
        Padded weights of the cells, and log q; uniform until they are written.
    plan, phi, alpha, errors : tensors
        What comes out: (n, m), (L,) in the order of `order`, and the L1 errors of the columns of
        every step, (steps, blocks of columns).
    room : int
        Bytes of all buffers; launches take more for as long as they run.
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
        keep: str = "stack",
    ) -> None:
        self.device = torch.device(device)
        cuda = self.device.type == "cuda"
        if kernels is None:
            kernels = "triton" if cuda and has_triton() else "torch"
        if kernels not in ("triton", "torch"):
            raise InputError(f"kernels: is {kernels!r}; use 'triton' or 'torch'")
        self.eta, self.eps, self.steps, self.sweeps = eta, eps, steps, sweeps
        # Whether phi of the plan that comes out is wanted.
        self.last_phi = True
        self.layout = layout = Layout.of(source, target, grid_of, dtype or working_dtype(device))
        self.shape, self.order = layout.shape, layout.order
        if kernels == "triton":
            from frot.correspondence.cuda import _triton as module
        else:
            module = _plain
        # The largest group has a stream of its own; more streams would take more workspaces.
        largest = max(group.size for group in layout.groups)
        alone = self.shape[0] * self.shape[1] * len(source) < MANY
        pair = [(SideStream(self.device, alone), SideStream(self.device, alone)) for _ in range(2)]
        lanes = [pair[group.size < largest] for group in layout.groups]
        self.streams = [stream for stream, _ in lanes]
        self.operands = [
            CosineOperands(
                group, layout.source, layout.target, self.device, layout.dtype, module, side_stream
            )
            for group, (_, side_stream) in zip(layout.groups, lanes, strict=True)
        ]
        count, (n, m) = len(source), self.shape
        rows, cols = layout.rows, layout.cols
        buffers = Buffers(self.device)
        self.maps = [
            tuple(
                buffers.zeros(len(group.layers), group.channels, *size)
                for size in (group.source, group.target)
            )
            for group in layout.groups
        ]
        self.a, self.b = buffers.zeros(rows), buffers.zeros(cols)
        self.a[:n], self.b[:m] = 1.0 / n, 1.0 / m
        self.log_prior, self.alpha, self.phi, self.first, self.answer = (
            buffers.zeros(count) for _ in range(5)
        )
        # Written whole, padding included; the steps use it one after another.
        self.K = buffers.empty(rows, cols, dtype=layout.dtype)
        self.u, self.v = buffers.zeros(rows), buffers.zeros(cols)
        self.h, self.totals = buffers.zeros(cols), buffers.zeros(cols)
        self.levels = buffers.zeros(rows)
        self.plan = buffers.zeros(n, m) if steps else buffers.zeros(0, 0)
        self.work: Any = module.Steps((count, rows, cols), buffers)
        self.kept: Cosines = KEPT[keep](layout, buffers, self.work)
        self.errors = buffers.zeros(max(steps, 1), self.work.error_blocks)
        self.seen, self.off = buffers.zeros(n + 2 * m + count), buffers.zeros(1)
        self.room = buffers.bytes
        self._graphs: dict[str, Any] = {}

    def put(self, source: Sequence[Any], target: Sequence[Any]) -> None:
        """Copy maps (channels, h, w) of all layers, arrays or tensors, to where they are used."""
        rooms, given = [], []
        for group, both in zip(self.layout.groups, self.maps, strict=True):
            for room, maps in zip(both, (source, target), strict=True):
                rooms += list(room.unbind())
                given += [
                    torch.as_tensor(maps[layer], device=self.device) for layer in group.layers
                ]
        # One launch for all.
        torch._foreach_copy_(rooms, given)  # pyright: ignore[reportPrivateImportUsage]

    def cosines(self) -> None:
        """Keep the cosines, and phi of the product plan; the largest group waits for no other."""
        for number, stream in enumerate(self.streams):
            with stream.launching():
                self._group(number)
        for stream in set(self.streams):
            stream.join()

    def _group(self, number: int) -> None:
        """Make the factors of a group, the means of these, and what is kept."""
        make, part = self.operands[number], slice(*self.layout.first[number : number + 2])
        F, G = self.maps[number]
        X, Y = make(F, G, self.kept.places(number))
        with make.side_stream.launching():
            # Weights of cells are small numbers for half precision.
            left = torch.matmul((self.a * len(self.a)).to(X.dtype), X).float() / len(self.a)
            right = torch.matmul((self.b * len(self.b)).to(Y.dtype), Y).float() / len(self.b)
            self.phi[part] = 2.0 - 2.0 * (left * right).sum(dim=1)
        self.kept.fill(number, X, Y)
        make.side_stream.join()

    def take_steps(self, sweeps: int | None = None, afresh: bool = False) -> None:
        """Take the steps from the phi of the product plan.

        `afresh` takes them once more, where phi has moved on.
        """
        sweeps = self.sweeps if sweeps is None else sweeps
        if afresh:
            self.phi.copy_(self.first)
        else:
            self.first.copy_(self.phi)
        self.alpha.copy_(torch.softmax(self.phi / self.eta + self.log_prior, dim=0))
        self.h.zero_()
        terms = zip(paper_gammas(self.steps), paper_shares(self.steps), strict=True)
        for step, (gamma, share) in enumerate(terms):
            self.absorb()
            # Rows exact at the end.
            for update in sweeps * (True,) + (False,):
                self.sweep(step, update)
            self.blend(self.plan, share, add=step > 0)
            if step + 1 < self.steps:
                self.h += self.v.log()
            if step + 1 < self.steps or self.last_phi:
                self._weigh(gamma, self.alpha)

    @property
    def error(self) -> float:
        """A bound on the plan's mass in wrong columns, from the errors of the steps."""
        each = self.errors.sum(dim=1).tolist()
        return sum(x * found for x, found in zip(paper_shares(self.steps), each, strict=True))

    def launch(self) -> None:
        """Everything from maps to plan, launched one by one."""
        self.cosines()
        self.take_steps()

    def begin(self) -> None:
        """Form the kernel of `alpha` and `h`, and sweep."""
        self.absorb()
        self.go_on()

    def absorb(self) -> None:
        """Form the kernel of `alpha` and `h`, not scaled yet."""
        self.v.fill_(1.0)
        self.kept.absorb(self.alpha, self.h, self.b, 2.0 / self.eps, self.K, self.levels)

    def sweep(self, step: int = 0, update: bool = True) -> None:
        """Make rows of the kernel right, and, to update, columns; look at these before."""
        self.work.sweep(
            self.K, self.a, self.b, self.u, self.v, self.totals, self.errors[step], update
        )

    def blend(self, plan: torch.Tensor, share: float = 1.0, add: bool = False) -> None:
        """Write a share of the kernel's plan, or add it."""
        self.work.blend(self.K, self.a, self.b, self.u, self.v, plan, share, add)

    def _weigh(self, gamma: float, answer: torch.Tensor) -> None:
        """Move phi to that of the kernel's plan by gamma, and answer it."""
        self.kept.add_up(self.K, self.a, self.b, self.u, self.v)
        self.work.answer(self.phi, self.log_prior, answer, gamma, self.eta)

    def go_on(self) -> None:
        """Some sweeps on the kernel; how much mass is in wrong columns after them goes to `off`."""
        for update in LOOK * (True,) + (False,):
            self.sweep(update=update)
        torch.sum(self.errors[:1], dim=1, out=self.off)

    def look(self) -> None:
        """What a search looks at goes to `seen`, one after another.

        Those are log u - levels, (n,), log v and the columns over b, (m,), and phi.
        """
        (n, m), u, v = self.shape, self.u, self.v
        self._weigh(1.0, self.answer)
        logs, over = u[:n].log() - self.levels[:n], v[:m] * self.totals[:m]
        torch.cat([logs, v[:m].log(), over, self.phi], out=self.seen)

    def run(self) -> None:
        """Fill `plan`, `phi`, `alpha` and `errors` from `maps`, `a`, `b` and `log_prior`."""
        self.play(self.launch)

    def capture(self) -> None:
        """Put everything that `run` launches into a CUDA graph, which it replays from then on."""
        self._capture(self.launch)

    def capture_search(self) -> None:
        """The same for the parts of a search."""
        for launch in (self.cosines, self.begin, self.go_on, self.look):
            self._capture(launch)

    def play(self, launch: Callable[[], None]) -> None:
        """Launch one by one what a method of this does, or replay it where it was captured."""
        graph = self._graphs.get(launch.__name__)
        if graph is None:
            launch()
        else:
            graph.replay()

    def _capture(self, launch: Callable[[], None]) -> None:
        """Put launches into one graph; what is in the buffers is lost."""
        if launch.__name__ in self._graphs or self.device.type != "cuda":
            return
        side = torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            for _ in range(2):
                launch()
        torch.cuda.current_stream(self.device).wait_stream(side)
        torch.cuda.synchronize(self.device)
        # What the launches above have used cannot be used by the graph, which has its own.
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch()
        self._graphs[launch.__name__] = graph


def working_dtype(device: Any) -> torch.dtype:
    """Return the precision of cosines: half where that is fast."""
    return torch.float16 if torch.device(device).type == "cuda" else torch.float32


# Sweeps a step, or for one choice of weights, at most.
MOST_SWEEPS = 160
# Pairs of the same shapes in a row before their launches are put into a graph, which takes longer
# than a few pairs do.
CAPTURED_AFTER = 3


# A stack may take so many bytes. At the paper's size, where it takes 1.25 GB, a prototype was as
# fast by products of the factors; both take longer by the number of pairs of cells, so that more
# room would buy no time.
STACK_BYTES = 2_000_000_000


def choose_form(layout: Layout, device: Any) -> str:
    """Return what is to be kept of the cosines: a stack where it leaves room for what comes after.

    Examples
    --------
    >>> shapes = [[(64, side, side)] for side in (60, 200)]
    >>> [choose_form(Layout.of(one, one, 0, torch.float16), "cpu") for one in shapes]
    ['stack', 'factors']
    """
    left = free_room(device) - needed_room(*layout.shape)
    return "stack" if Stack.room(layout) <= min(STACK_BYTES, left) else "factors"


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
    keep : {"stack", "factors"}, optional
        What is kept of the cosines: all of them, or the factors whose products they are. If left
        out, all, where these take no more than 2 GB and leave room for the rest of matching.

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
    keep: str | None = None
    _key: Any = field(default=None, init=False, repr=False)
    _kept: str = field(default="", init=False, repr=False)
    _work: Any = field(default=None, init=False, repr=False)
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
        if self.keep is not None:
            check_choice(self.keep, "keep", tuple(KEPT))
        shapes = [[tuple(one.values.shape) for one in maps] for maps in (source, target)]
        layout = Layout.of(shapes[0], shapes[1], grid_of, working_dtype(self.device))
        # Threads share the buffers.
        with self._lock:
            form = self._form(layout)
            needed = needed_room(n, m) + KEPT[form].room(layout)
            with device_room("side", needed, "use a smaller side or a larger stride"):
                work = self._steps(shapes, grid_of, form)
                return self._planned(work, source, target, weights, log_prior)

    def _form(self, layout: Layout) -> str:
        """What is kept of the cosines; buffers of other pairs go first, two sets may not fit."""
        terms = (self.eta, self.eps, self.steps, self.sweeps, self.kernels, self.keep)
        key = (layout, terms, str(self.device))
        if self._key != key:
            self._key, self._work, self._times = key, None, 0
            self._kept = self.keep or choose_form(layout, self.device)
        return self._kept

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
        plan = torch.empty(work.shape, device=work.device)
        work.blend(plan)
        return LayerPlan(plan, at.alpha[0], at.phi[0], float(at.error[0]), at.work, at.g[0])

    def _steps(self, shapes: Sequence[Any], grid_of: int, form: str) -> PairSteps:
        """Return the buffers for maps of these shapes, captured once they keep coming."""
        if self._work is None:
            self._work = PairSteps(
                *shapes, eta=self.eta, eps=self.eps, steps=self.steps, sweeps=self.sweeps,
                grid_of=grid_of, device=self.device, kernels=self.kernels, keep=form,
            )  # fmt: skip
            return self._work
        self._times += 1
        if self._times >= CAPTURED_AFTER:
            if self.steps:
                self._work.capture()
            else:
                self._work.capture_search()
        return self._work

    def __getstate__(self) -> dict[str, Any]:
        # Buffers stay where they are.
        return {**self.__dict__, "_key": None, "_work": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())


# Choices of weights before the search is given up.
MOST_WEIGHTS = 60
# The share of the gap asked for that an estimate has to reach.
SAFE = 0.5


@dataclass(frozen=True, eq=False)
class PairEngine:
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

    @property
    def newton_pays(self) -> bool:
        """Not in half precision."""
        return False

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

    def double(self) -> PairEngine:
        """Itself: there is no other stack."""
        return self


def search(work: PairSteps, terms: BatchTerms, alpha: Any, tol: float) -> Point | None:
    """Return weights and potentials whose estimated gap is half of `tol`, None where that fails.

    The kernel and the scalings in the buffers are those of the point.
    """
    engine = PairEngine(work, terms)
    for count, at in enumerate(Ascent(engine, alpha, tol=tol)):
        if distances(terms, at)[0] <= SAFE * tol:
            engine.settle(at)
            return at
        if count == MOST_WEIGHTS:
            break
    return None

"""The launches of one pair on a device, from maps to plan, on buffers that are allocated once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from frot._base.arrays import has_triton
from frot._base.errors import InputError
from frot.correspondence._transport import paper_gammas, paper_shares
from frot.correspondence.cuda import _plain
from frot.correspondence.cuda._operands import Operands, SideStream, make_groups, padded

__all__ = ["LOOK", "PairSteps"]

# Sweeps of a search between two looks at the columns.
LOOK = 4
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
        self.dtype = dtype or (torch.float16 if cuda else torch.float32)
        (_, h, w), (_, H, W) = source[grid_of], target[grid_of]
        self.shape = h * w, H * W
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
            Operands(group, (h, w), (H, W), self.device, self.dtype, module, side_stream)
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
        self.log_prior, self.alpha, self.phi, self.first, self.answer = (
            self._room(count) for _ in range(5)
        )
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
        self.seen, self.off = self._room(n + 2 * m + count), self._room(1)
        self._graphs: dict[str, Any] = {}

    def _room(self, *size: int) -> torch.Tensor:
        return torch.zeros(size, dtype=torch.float32, device=self.device)

    def put(self, source: Sequence[Any], target: Sequence[Any]) -> None:
        """Copy maps (channels, h, w) of all layers, arrays or tensors, to where they are used."""
        rooms, given = [], []
        for group, both in zip(self.groups, self.maps, strict=True):
            for room, maps in zip(both, (source, target), strict=True):
                rooms += list(room.unbind())
                given += [
                    torch.as_tensor(maps[layer], device=self.device) for layer in group.layers
                ]
        # One launch for all.
        torch._foreach_copy_(rooms, given)  # pyright: ignore[reportPrivateImportUsage]

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
        if afresh:
            self.phi.copy_(self.first)
        else:
            self.first.copy_(self.phi)
        self.alpha.copy_(torch.softmax(self.phi / self.eta + self.log_prior, dim=0))
        self.h.zero_()
        for step, gamma in enumerate(paper_gammas(self.steps)):
            self.absorb(step)
            # Rows exact at the end.
            for update in sweeps * (True,) + (False,):
                self.sweep(step, update)
            if step + 1 < self.steps:
                self.h += self.v[step].log()
            if step + 1 < self.steps or self.last_phi:
                self._weigh(step, gamma, self.alpha)
        self.work.blend(self.K, self.a, self.b, self.u, self.v, self.plan)

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

    def absorb(self, step: int = 0) -> None:
        """Form the kernel of `alpha` and `h`, not scaled yet."""
        self.v[step].fill_(1.0)
        self.work.absorb(
            self.stack, self.alpha, self.h, self.b, 2.0 / self.eps, self.K[step], self.levels
        )

    def sweep(self, step: int = 0, update: bool = True) -> None:
        """Make rows of the kernel right, and, to update, columns; look at these before."""
        self.work.sweep(
            self.K[step], self.a, self.b, self.u[step], self.v[step],
            self.totals, self.errors[step], update,
        )  # fmt: skip

    def _weigh(self, step: int, gamma: float, answer: torch.Tensor) -> None:
        """Move phi to that of the kernel's plan by gamma, and answer it."""
        self.work.weigh(
            self.stack, self.K[step], self.a, self.b, self.u[step], self.v[step],
            self.phi, self.log_prior, answer, gamma, self.eta,
        )  # fmt: skip

    def go_on(self) -> None:
        """Some sweeps on the kernel; how much mass is in wrong columns after them goes to `off`."""
        for update in LOOK * (True,) + (False,):
            self.sweep(0, update)
        torch.sum(self.errors[:1], dim=1, out=self.off)

    def look(self) -> None:
        """What a search looks at goes to `seen`, one after another.

        Those are log u - levels, (n,), log v and the columns over b, (m,), and phi.
        """
        (n, m), u, v = self.shape, self.u[0], self.v[0]
        self._weigh(0, 1.0, self.answer)
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

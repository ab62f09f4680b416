"""One pair on a CUDA device: times by graph replay, the stacked algorithm as it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from _common import table  # isort: skip  (sets the number of threads)

import torch
from torch.nn import functional

from frot.correspondence._features import FeatureMap
from frot.correspondence.cuda.pair import PairSteps

__all__ = ["on_a_device"]

Maps = list[torch.Tensor]


def replayed(work: Callable[[], object], repeats: int = 30) -> float:
    """Return the median time of `work` in milliseconds, captured once and replayed."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[repeats // 2]


def stacked(source: Maps, target: Maps, dtype: torch.dtype) -> torch.Tensor:
    """Interpolate every channel, normalise, multiply."""

    def vectors(maps: Maps) -> Maps:
        size = list(maps[0].shape[1:])
        return [
            functional.normalize(
                functional.interpolate(
                    one[None].to(dtype), size, mode="bilinear", align_corners=True
                )[0].flatten(1),
                dim=0,
            )
            for one in maps
        ]

    pairs = zip(vectors(source), vectors(target), strict=True)
    return torch.stack([2.0 - 2.0 * x.T @ y for x, y in pairs])


def frank_wolfe(
    C: torch.Tensor, eta: float, eps: float, steps: int, sweeps: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The paper's algorithm on the stack; return plan and phi."""
    _, n, m = C.shape
    plan = torch.full((n, m), 1.0 / (n * m), dtype=C.dtype, device=C.device)
    phi = torch.einsum("lij,ij->l", C, plan)
    v = torch.ones(m, dtype=C.dtype, device=C.device)
    for step in range(steps):
        kernel = torch.exp(-torch.einsum("l,lij->ij", torch.softmax(phi / eta, 0), C) / eps)
        for _ in range(sweeps):
            u = (1.0 / n) / (kernel @ v)
            v = (1.0 / m) / (u @ kernel)
        u = (1.0 / n) / (kernel @ v)
        gamma = 2.0 / (2.0 + step)
        plan = (1.0 - gamma) * plan + gamma * u[:, None] * kernel * v
        phi = torch.einsum("lij,ij->l", C, plan)
    return plan, phi


def on_a_device(
    source: Sequence[FeatureMap], target: Sequence[FeatureMap], eta: float, eps: float, steps: int
) -> None:
    """Print times, memory, and the distance from the same in double precision.

    Cosines are kept as a stack, and as factors.
    """
    left, right = ([torch.tensor(one.values).cuda() for one in maps] for maps in (source, target))
    shapes = [[tuple(one.shape) for one in maps] for maps in (left, right)]
    truth, phi = frank_wolfe(stacked(left, right, torch.float64), eta, eps, steps, sweeps=300)
    rows = []
    for keep in ("stack", "factors"):
        for sweeps in (10, 15, 20):
            # Libraries keep their workspaces: every figure has them.
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()
            before, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
            torch.cuda.reset_peak_memory_stats()
            work = PairSteps(*shapes, eta=eta, eps=eps, steps=steps, sweeps=sweeps, keep=keep)
            work.put(left, right)
            work.capture()
            work.plan.fill_(torch.nan)
            work.run()
            peak = (torch.cuda.max_memory_allocated() - before) / 1e9
            held = (torch.cuda.max_memory_reserved() - reserved) / 1e9
            plan, order = work.plan.clone(), work.order
            columns = float((plan.sum(dim=0) - 1.0 / plan.shape[1]).abs().sum())
            same = float((plan.argmax(dim=1) == truth.argmax(dim=1)).float().mean())
            away = float((plan - truth).abs().sum()), float((work.phi - phi[order]).abs().max())
            parts = (work.launch, work.cosines, work.take_steps, work.absorb, work.look)
            times = [replayed(part) for part in parts]
            work.last_phi = False
            times.insert(1, replayed(work.launch))
            rows.append(
                [keep, sweeps, *(f"{time:.2f}" for time in times), f"{work.room / 1e9:.2f}",
                 f"{peak:.2f}", f"{held:.2f}", f"{columns:.1e}", *(f"{x:.1e}" for x in away),
                 f"{same:.2%}"]
            )  # fmt: skip
            del work, plan
    table(
        ["kept", "sweeps", "ms", "without last phi", "cosines", "steps", "mix", "phi", "buffers GB",
         "peak GB", "reserved GB", "columns off", "plan off", "phi off", "same best match"],
        rows,
    )  # fmt: skip
    del truth
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    time = replayed(
        lambda: frank_wolfe(stacked(left, right, torch.float32), eta, eps, steps, sweeps=1), 9
    )
    peak = (torch.cuda.max_memory_allocated() - before) / 1e9
    print(f"stacked, single precision, one sweep a step: {time:.1f} ms, peak {peak:.2f} GB")

"""One pair on a CUDA device: times by graph replay, the stacked algorithm as it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.nn import functional

from frot.correspondence._cuda._pair import PairSteps
from frot.correspondence._feature_map import FeatureMap

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
    """Print times, memory, and the distance from the same in double precision."""
    left, right = ([torch.tensor(one.values).cuda() for one in maps] for maps in (source, target))
    truth, phi = frank_wolfe(stacked(left, right, torch.float64), eta, eps, steps, sweeps=300)
    shapes = [[tuple(one.shape) for one in maps] for maps in (left, right)]

    def measured(work: Callable[[], object]) -> tuple[float, float]:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        time = replayed(work, 9)
        return time, (torch.cuda.max_memory_allocated() - before) / 1e9

    time, peak = measured(
        lambda: frank_wolfe(stacked(left, right, torch.float32), eta, eps, steps, sweeps=1)
    )
    print(f"stacked, single precision, one sweep a step: {time:.1f} ms, {peak:.2f} GB")
    for sweeps in (10, 15, 20):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work = PairSteps(*shapes, eta=eta, eps=eps, steps=steps, sweeps=sweeps)
        work.put(left, right)
        parts = [replayed(part) for part in (work.cosines, work.take_steps, work.launch)]
        work.capture()
        work.plan.fill_(torch.nan)
        work.run()
        peak = (torch.cuda.max_memory_allocated() - before) / 1e9
        columns = float((work.plan.sum(dim=0) - 1.0 / work.shape[1]).abs().sum())
        same = float((work.plan.argmax(dim=1) == truth.argmax(dim=1)).float().mean())
        print(
            f"{sweeps} sweeps a step: {parts[2]:.2f} ms (cosines {parts[0]:.2f}, steps "
            f"{parts[1]:.2f}), {peak:.2f} GB, columns {columns:.1e} off; plan "
            f"{float((work.plan - truth).abs().sum()):.1e} in L1 and phi "
            f"{float((work.phi - phi[work.order]).abs().max()):.1e} from double precision, same "
            f"best match in {same:.2%}"
        )
        del work

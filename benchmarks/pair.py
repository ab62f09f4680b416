"""One pair of images, from the maps of 34 layers to a proven plan, against the plain stack.

    python benchmarks/pair.py [--shrink 1] [--device cuda]

n = m = 4,275 cells, 32,576 channels. "plain stack" is the paper's algorithm 2 as it is usually
written, without a proof: every channel interpolated, every cost stacked, three Frank-Wolfe steps of
eta = .3 and eps = .1. Ours are `frot.solve_costs` with the proof: the same steps on the same costs,
as the preset "frot-paper" takes them, from products between the layers' own cells; and the optimum
at the matcher's default of eta = .6 on the layers' own grids. One thread; peaks of memory are
those of fresh processes, over the maps. On a device without the plain stack, by its own clock.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from _common import fastest, peak_memory, table  # isort: skip  (sets the number of threads)

import numpy as np
import torch

import frot
from _pair_plain import plain_plan, plain_stack, synthetic_maps
from frot.correspondence import LayerPair

STEPS, TOL = 3, 1e-3
WAYS: dict[str, dict[str, Any]] = {
    "three steps": {
        "eta": 0.3,
        "solver": frot.FrankWolfe(
            frot.Sinkhorn(eps=0.1, tol=TOL), step="paper", tol=0.0, max_iter=STEPS
        ),
    },
    "optimum": {"eta": 0.6, "eps": 0.1, "tol": TOL},
}


def plain(pair: Any) -> Any:
    """The peer: from maps to a plan."""
    torch.set_num_threads(1)
    return plain_plan(plain_stack(*pair), 0.3, 0.1, STEPS, TOL)


def ours(pair: Any, way: str, device: str | None = None) -> tuple[frot.Result, Any]:
    """Ours: from maps to a proven plan."""
    torch.set_num_threads(1)
    source, target = pair
    layers = LayerPair(tuple(source), tuple(target), 0, device)
    costs = layers.paper_costs if way == "three steps" else layers.costs
    result = frot.solve_costs(costs, **WAYS[way])
    return result, result.plan.dense()


def three_steps(pair: Any) -> Any:
    return ours(pair, "three steps")


def optimum(pair: Any) -> Any:
    return ours(pair, "optimum")


def on_the_host(shrink: int) -> None:
    """Print times, peaks, and how far the answers are apart."""
    pair = synthetic_maps(shrink)
    seconds, (plan, phi, _, _) = fastest(lambda: plain(pair), repeats=1)
    peak = peak_memory(synthetic_maps, plain, shrink)
    rows = [["plain stack, three steps", f"{seconds:.2f}", f"{peak / 1e6:.0f}", "not proven"]]
    apart = ""
    print(f"n = {plan.shape[0]}, m = {plan.shape[1]}, L = {len(phi)}")
    for way, work in (("three steps", three_steps), ("optimum", optimum)):
        seconds, (result, found) = fastest(lambda work=work: work(pair), repeats=1)
        peak = peak_memory(synthetic_maps, work, shrink)
        rows.append([way, f"{seconds:.2f}", f"{peak / 1e6:.0f}", f"gap {result.gap:.1e}"])
        if way == "three steps":
            same = float((plan.argmax(axis=1) == found.argmax(axis=1)).mean())
            apart = (
                f"plans {np.abs(plan - found).sum():.1e} apart in L1, same best match {same:.1%}"
            )
    table(["", "s", "peak MB", ""], rows)
    print(apart)


def on_a_device(shrink: int, device: str) -> None:
    """Print times and peaks on a device."""
    pair = [
        [frot.correspondence.FeatureMap(x.name, torch.tensor(x.values, device=device), x.stride, 11)
         for x in maps]
        for maps in synthetic_maps(shrink)
    ]  # fmt: skip
    rows, result = [], None
    for way in WAYS:
        times = []
        for _ in range(5):
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            begin = time.perf_counter()
            result, _ = ours(pair, way, device)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        peak = torch.cuda.max_memory_allocated() / 1e9
        assert result is not None
        rows.append([way, f"{1e3 * min(times):.1f} ms", f"{peak:.2f} GB", f"gap {result.gap:.1e}"])
    table(["", "time", "peak", ""], rows)


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shrink", type=int, default=1, help="divides channels and grids")
    parser.add_argument("--device", help="such as cuda; the host if left out")
    options = parser.parse_args()
    if options.device is None:
        on_the_host(options.shrink)
    else:
        on_a_device(options.shrink, options.device)


if __name__ == "__main__":
    main()

"""One pair of images, from the maps of 34 layers to the paper's plan, against the plain stack.

    python benchmarks/pair.py [--eta 0.3] [--eps 0.1] [--certified] [--shrink 1] [--cuda]

Same process, one thread, n = m = 4,275 cells, 32,576 channels, three Frank-Wolfe steps, every
vertex swept to the same error of its columns. Peaks of memory are those of fresh processes, over
the maps. With ``--cuda`` the same on a CUDA device, by graph replay, with cosines kept as a stack
and as factors.
"""

from __future__ import annotations

import argparse
from typing import Any

from _common import fastest, peak_memory, table  # isort: skip  (sets the number of threads)

import numpy as np
import torch

from _pair_device import on_a_device
from _pair_plain import plain_plan, plain_stack, synthetic_maps
from frot.correspondence._layer_costs import layer_costs
from frot.correspondence._transport import LayerPlan, paper_plan, solve_layers

STEPS, TOL = 3, 1e-3


def plain(pair: Any, eta: float = 0.3, eps: float = 0.1) -> Any:
    """The peer: from maps to a plan."""
    torch.set_num_threads(1)
    return plain_plan(plain_stack(*pair), eta, eps, STEPS, TOL)


def ours(pair: Any, eta: float = 0.3, eps: float = 0.1) -> LayerPlan:
    """Ours: from maps to a plan."""
    return paper_plan(layer_costs(*pair), eta=eta, eps=eps, steps=STEPS, tol=TOL)


def on_the_host(shrink: int, eta: float, eps: float, certified: bool) -> None:
    """Print times, peaks and ratios, and how far the answers are apart."""
    torch.set_num_threads(1)
    pair = synthetic_maps(shrink)
    peer_time, (plan, phi, error, sweeps) = fastest(lambda: plain(pair, eta, eps), repeats=1)
    costs_time, costs = fastest(lambda: layer_costs(*pair))
    plan_time, found = fastest(lambda: paper_plan(costs, eta=eta, eps=eps, steps=STEPS, tol=TOL))
    our_time = costs_time + plan_time
    peaks = [peak_memory(synthetic_maps, work, shrink) for work in (plain, ours)]
    n, m = plan.shape
    print(f"n = {n}, m = {m}, L = {len(phi)}, {sum(one.channels for one in pair[0])} channels")
    table(
        ["", "s", "peak MB", "sweeps", "column error"],
        [
            ["plain stack", f"{peer_time:.2f}", f"{peaks[0] / 1e6:.0f}", sweeps, f"{error:.1e}"],
            ["coarse grids", f"{our_time:.2f}", f"{peaks[1] / 1e6:.0f}", found.sweeps,
             f"{found.error:.1e}"],
        ],
    )  # fmt: skip
    print(f"of ours {costs_time:.2f} s are the costs and {plan_time:.2f} s the steps")
    print(f"ratios: time {peer_time / our_time:.1f}x, memory {peaks[0] / peaks[1]:.1f}x")
    same = float((plan.argmax(axis=1) == found.plan.argmax(axis=1)).mean())
    print(f"plans {np.abs(plan - found.plan).sum():.1e} apart in L1, phi "
          f"{np.abs(phi - found.phi).max():.1e}, same best match in {same:.2%}")  # fmt: skip
    if certified:
        seconds, proven = fastest(lambda: solve_layers(costs, eta=eta, eps=eps), repeats=1)
        print(
            f"certified optimum: {seconds:.1f} s, {proven.iterations} steps, gap {proven.gap:.1e}"
        )


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--eta", type=float, default=0.3)
    parser.add_argument("--eps", type=float, default=0.1)
    parser.add_argument("--shrink", type=int, default=1, help="divides channels and grids")
    parser.add_argument("--certified", action="store_true", help="the optimum with its interval")
    parser.add_argument("--cuda", action="store_true", help="on a CUDA device instead")
    options = parser.parse_args()
    if options.cuda:
        on_a_device(*synthetic_maps(options.shrink), options.eta, options.eps, STEPS)
        return
    on_the_host(options.shrink, options.eta, options.eps, options.certified)


if __name__ == "__main__":
    main()

"""Couplings of cells: what keeps nuisance pathways out, and what a coupling takes.

    python benchmarks/cells.py [--quick] [--only fates speed memory device]

"fates" is the share of the mass that goes to the right fate, in percent, for simulated cells of
which some pathways are nuisance (`frot.cells.simulate`), each with its standard error: transport on
all genes, feature-robust transport without a gate, means weighted by coherence to the fourth power
and a gate at z > 4 (both by a statistic of neighbours in all other groups, against permutations),
`frot.cells.couple` without denoising and as it comes, and transport on the true pathways. "speed"
is one coupling of 50 pathways, of which half are noise, in processor time of one thread; "memory"
the same, streamed, and the most that the process takes; "device" couplings of up to 50,000 x 50,000
cells on a CUDA device, where there is one.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

from _common import fastest, peak_memory, table  # isort: skip  (sets the number of threads)

import numpy as np
from scipy.spatial.distance import cdist

import frot
from frot.cells import Simulation, couple, simulate

NUISANCE = ((0.5, False), (0.75, False), (0.9, False), (0.5, True), (0.75, True))
EPS = frot.relative(0.02)
PERMUTATIONS, NEIGHBOURS = 30, 10


def coherence(cells: Simulation) -> tuple[np.ndarray, np.ndarray]:
    """Return z and 1 - ratio of each group against the sum of all others, the smaller way."""
    rng = np.random.default_rng(0)
    X, Y = cells.pair()
    parts = [(X[:, genes], Y[:, genes]) for genes in cells.groups.indices]
    costs = [cdist(x, y, "sqeuclidean") for x, y in parts]
    within = [
        [cdist(side, side, "sqeuclidean") / cost.mean() for side in part]
        for part, cost in zip(parts, costs, strict=True)
    ]
    total = [sum(one[side] for one in within) for side in (0, 1)]
    found = []
    for own, cost in zip(within, costs, strict=True):
        ways = []
        for here, matches in ((0, cost.argmin(axis=1)), (1, cost.argmin(axis=0))):
            around = total[here] - own[here]
            np.fill_diagonal(around, np.inf)
            near = np.argpartition(around, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
            apart = np.sqrt(np.maximum(total[1 - here] - own[1 - here], 0.0))
            null = [_spread(apart, rng.permutation(matches), near) for _ in range(PERMUTATIONS)]
            value = _spread(apart, matches, near)
            ways.append(((np.mean(null) - value) / np.std(null), 1.0 - value / np.mean(null)))
        found.append(np.min(ways, axis=0))
    z, share = np.array(found).T
    return z, np.maximum(share, 1e-6)


def _spread(apart: np.ndarray, matches: np.ndarray, near: np.ndarray) -> float:
    return float(apart[matches[:, None], matches[near]].mean())


def plain(cells: Simulation, weights: np.ndarray) -> Any:
    """Transport by a weighted mean of the groups."""
    column = np.sqrt(weights) @ cells.groups.membership()
    X, Y = (side * column for side in cells.pair())
    return frot.solve(X, Y, "all", eps=EPS).plan


def methods(cells: Simulation) -> dict[str, Callable[[], Any]]:
    """Return plans by name."""
    data, groups = (cells.X, {"day": cells.day}), cells.groups
    true = np.array([name in cells.signal for name in groups.names])
    z, share = coherence(cells)
    passed = z > 4.0 if (z > 4.0).any() else np.ones(len(z), dtype=bool)
    return {
        "all genes": lambda: plain(cells, np.ones(len(groups))),
        "no gate": lambda: couple(data, groups=groups, gate=None).result.plan,
        "weights": lambda: plain(cells, share**4),
        "gate z > 4": lambda: couple(data, groups=groups.subset(passed), gate=None).result.plan,
        "not denoised": lambda: couple(data, groups=groups, denoise=False).result.plan,
        "couple": lambda: couple(data, groups=groups).result.plan,
        "true pathways": lambda: plain(cells, true.astype(float)),
    }


def fates(quick: bool) -> None:
    """Mass on the right fate."""
    rows: dict[str, list[str]] = {}
    for counts in (False, True):
        for noise, shared in NUISANCE:
            found: dict[str, list[float]] = {}
            for seed in range(2 if quick else 20):
                cells = simulate(noise=noise, shared=shared, counts=counts, seed=seed)
                for name, plan in methods(cells).items():
                    found.setdefault(name, []).append(100.0 * cells.kept_fate(plan()))
            for name, values in found.items():
                error = np.std(values, ddof=1) / np.sqrt(len(values))
                rows.setdefault(name, [name]).append(f"{np.mean(values):.1f} ± {error:.1f}")
        heads = [f"{'shared' if shared else 'own'} {noise:.0%}" for noise, shared in NUISANCE]
        print("counts" if counts else "expression")
        table(["", *heads], list(rows.values()))
        rows.clear()


def many(n: int, groups: int = 50, genes: int = 40) -> tuple[tuple[Any, Any], dict[str, range]]:
    """Return cells of two days and pathways, half of them noise."""
    rng = np.random.default_rng(0)
    half = groups // 2
    fate = rng.integers(4, size=2 * n)
    state = 2.0 * np.eye(4)[fate] + 0.6 * rng.standard_normal((2 * n, 4))
    state[n:] += 0.5
    blocks = []
    for at in range(groups):
        latent = state if at < half else 1.5 * rng.standard_normal((2 * n, 3))
        block = latent @ rng.standard_normal((latent.shape[1], genes))
        blocks.append((block + 1.5 * rng.standard_normal(block.shape)).astype(np.float32))
    obs = {"day": np.repeat([0, 1], n), "fate": fate}
    return (np.hstack(blocks), obs), {
        f"pathway{at}": range(genes * at, genes * (at + 1)) for at in range(groups)
    }


def speed(quick: bool) -> None:
    """Processor time of one coupling."""
    n = 500 if quick else 5_000
    data, groups = many(n)
    rows = []
    for eps in (0.02, 0.0):
        seconds, found = fastest(lambda eps=eps: couple(data, groups=groups, eps=eps), 1)
        # The clock of the solver is one on the wall; with one thread and an idle machine the same.
        own = f"{found.result.time:.1f}"
        rows.append([str(n), str(eps), f"{seconds:.1f}", own, f"{found.result.gap:.0e}"])
    table(["cells", "eps", "seconds", "of these the solver", "gap"], rows)


def _streamed(made: tuple[Any, Any]) -> None:
    data, groups = made
    found = couple(data, groups=groups, memory_budget=3e8)
    found.transition_matrix("fate")


def memory(quick: bool) -> None:
    """What a streamed coupling takes beyond its table."""
    n = 1_000 if quick else 10_000
    print(f"{n} x {n} cells, streamed: {peak_memory(many, _streamed, n) / 1e9:.2f} GB", flush=True)


def device(quick: bool) -> None:
    """Seconds on the wall and memory of couplings on a CUDA device, from table to matrix."""
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device here; nothing to measure")
        return
    rows = []
    for n in (500, 500) if quick else (5_000, 5_000, 20_000, 50_000):
        data, groups = many(n)
        torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        found = couple(data, groups=groups, device="cuda")
        seconds = time.perf_counter() - begin
        peak = torch.cuda.max_memory_allocated() / 1e9
        begin = time.perf_counter()
        found.transition_matrix("fate")
        read = time.perf_counter() - begin
        times = [f"{one:.1f}" for one in (seconds, found.result.time, read)]
        rows.append([str(n), *times, f"{found.result.gap:.0e}", f"{peak:.2f} GB"])
    print(torch.cuda.get_device_name())
    head = ["cells", "seconds", "of these the solver", "transition matrix", "gap", "peak"]
    table(head, rows)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=("fates", "speed", "memory", "device"))
    asked = parser.parse_args()
    warnings.simplefilter("ignore", frot.DataWarning)
    every = (("fates", fates), ("speed", speed), ("memory", memory), ("device", device))
    for name, measure in every:
        if asked.only is None or name in asked.only:
            measure(asked.quick)


if __name__ == "__main__":
    main()

"""Couplings of simulated cells beside moscot's own: mass on the right fate, and seconds.

    python benchmarks/cells_moscot.py [--seeds 5]

Needs moscot, in an environment of its own (`pip install moscot` and frot): its libraries do not go
with those of the other benchmarks. moscot couples 30 principal components of all genes, with the
same eps; `frot reproduce cells` has the same by frot's solver, and all other methods.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from functools import partial

import numpy as np

import frot.cells
from frot.cli.reproduce.cells import METHODS, SETTINGS, Drawn, Setting, scores

SHOWN = [
    "tree, 0 %", "tree, 50 %", "tree, 75 %", "tree, 90 %", "tree, shared, 75 %", "network, 75 %",
    "network, counts, 50 %", "tree, growth 4, 50 %",
]  # fmt: skip
FROT = ("OT, 30 components", "couple", "couple, tau")


def moscot_plan(drawn: Drawn, tau_b: float = 1.0) -> np.ndarray:
    """Couple by moscot's TemporalProblem."""
    import anndata  # pyright: ignore[reportMissingImports]
    from moscot.problems.time import TemporalProblem  # pyright: ignore[reportMissingImports]

    points = np.vstack(drawn.components()).astype(np.float32)
    adata = anndata.AnnData(points)
    adata.obs["day"] = drawn.day.astype(float)
    adata.obsm["X_pca"] = points
    problem = TemporalProblem(adata)
    problem = problem.prepare(time_key="day", joint_attr="X_pca")
    problem = problem.solve(epsilon=0.02, tau_b=tau_b, scale_cost="mean", max_iterations=20_000)
    return np.asarray(problem[(0.0, 1.0)].solution.transport_matrix)


PEERS = {"moscot": moscot_plan, "moscot, tau_b .98": partial(moscot_plan, tau_b=0.98)}


def measure(setting: Setting, seed: int) -> dict[str, tuple[float, float]]:
    """Return mass on the right fate and processor seconds, by method."""
    drawn, done, found = setting.draw(seed), {}, {}
    first, second = (drawn.fate[drawn.day == d] for d in (0, 1))
    runs = {name: partial(METHODS[name], drawn, done) for name in FROT}
    for name, run in (runs | {name: partial(peer, drawn) for name, peer in PEERS.items()}).items():
        begin = time.process_time()
        plan = run()
        found[name] = scores(plan, first, second)[0], time.process_time() - begin
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    names = (*FROT, *PEERS)
    print(f"frot {frot.__version__}, {seeds} draws of 250 cells a day: percent (seconds)")
    print("| " + " | ".join(("setting", *names)) + " |")
    print("|" + "---|" * (len(names) + 1))
    for setting in (one for one in SETTINGS if one.name in SHOWN):
        runs = [measure(setting, seed) for seed in range(seeds)]
        cells = []
        for name in names:
            mass, seconds = np.array([run[name] for run in runs]).T
            # The first run of a library compiles.
            cells.append(f"{100 * mass.mean():.1f} ({seconds[1:].min():.2f})")
        print(f"| {setting.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

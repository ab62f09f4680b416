"""The entropic solvers against generalised conditional gradient, POT and OTT-JAX.

    python benchmarks/entropic.py [--quick] [--only minmax ott pot batch]

Same process, one thread, the same problems and the same accuracy; processor time, the least of
several runs.
"""

from __future__ import annotations

import argparse

from _common import table  # noqa: F401  isort: skip  (sets the number of threads)

from _entropic_batch import batch
from _entropic_minmax import minmax
from _entropic_sinkhorn import against_ott, against_pot

PARTS = {
    "minmax": ("Min-max with entropy on the plan, n = 500, L = 34, to a gap of 1e-4", minmax),
    "ott": ("Sinkhorn at fixed weights against OTT-JAX, marginals to 1e-6", against_ott),
    "pot": ("Sinkhorn on one cost against POT, marginals to 1e-6", against_pot),
    "batch": ("Many small problems: solve_batch against a loop over solve", batch),
}


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller problems, fewer of them")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    for name in arguments.only:
        title, run = PARTS[name]
        print(f"# {title}\n", flush=True)
        run(arguments.quick)
        print(flush=True)


if __name__ == "__main__":
    main()

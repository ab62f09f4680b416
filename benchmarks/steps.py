"""Oracle calls and time to a gap of 1e-2, 1e-4 and 1e-6 for the three step rules.

    python benchmarks/steps.py [--limit 2000]

Frank-Wolfe with the network simplex inside, on the same problem for all three.
"""

from __future__ import annotations

import argparse
import warnings

from _common import table  # isort: skip  (sets the number of threads)

import numpy as np

import frot

PROBLEMS = ((100, 4), (300, 34))
ETAS = (0.5, 0.05)
GAPS = (1e-2, 1e-4, 1e-6)


def main() -> None:
    """Print a row for every problem and rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=2000, help="oracle calls at most")
    limit = parser.parse_args().limit
    rows = []
    for n, groups in PROBLEMS:
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(2, n, 3 * groups))
        # A first solve loads libraries, which is nobody's time.
        frot.solve(X[:9], Y[:9], groups=[3] * groups, eta=1.0, solver=frot.FrankWolfe())
        mean_cost = frot.solve(X, Y, groups=[3] * groups).mean_cost
        for share in ETAS:
            for rule in ("paper", "line_search", "fully_corrective"):
                solver = frot.FrankWolfe(step=rule, tol=GAPS[-1], max_iter=limit)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", frot.ConvergenceWarning)
                    result = frot.solve(
                        X, Y, groups=[3] * groups, eta=share * mean_cost, solver=solver
                    )
                cells = []
                for goal in GAPS:
                    met = [at for at in result.history if at.gap <= goal]
                    cells += (
                        [str(met[0].iteration), f"{met[0].elapsed:.2f}"]
                        if met
                        else [f">{limit}", f">{result.time:.0f}"]
                    )
                rows.append([str(n), str(groups), f"{share:g}", rule, *cells])
                print("  ".join(rows[-1]), flush=True)
    print()
    header = ["n=m", "L", "eta/mean cost", "step"]
    for goal in GAPS:
        header += [f"calls {goal:.0e}", "s"]
    table(header, rows)


if __name__ == "__main__":
    main()

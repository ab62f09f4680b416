"""Oracle calls and time to a gap for three step rules of Frank-Wolfe: the paper's is the peer.

    python benchmarks/steps.py [--limit 2000]

The network simplex inside, on the same problems, to gaps that every rule proves; seconds by the
clock. The ratio is of oracle calls, which cost the same in all three.
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
RULES = ("paper", "line_search", "fully_corrective")


def calls_to_gaps(result: frot.Result) -> list[tuple[int, float] | None]:
    """Return calls and seconds to each gap; None where it was not reached."""
    reached = []
    for goal in GAPS:
        progress = [one for one in result.history if one.gap <= goal]
        reached.append((progress[0].iteration, progress[0].elapsed) if progress else None)
    return reached


def main() -> None:
    """Print a row for every problem and rule."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--limit", type=int, default=2000, help="oracle calls at most")
    limit = parser.parse_args().limit
    rows = []
    for n, count in PROBLEMS:
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(2, n, 3 * count))
        groups = [3] * count
        # A first solve loads libraries, which is nobody's time.
        frot.solve(X[:9], Y[:9], groups=groups, eta=1.0, solver=frot.FrankWolfe())
        for share in ETAS:
            peer: list[tuple[int, float] | None] = []
            for rule in RULES:
                solver = frot.FrankWolfe(step=rule, tol=GAPS[-1], max_iter=limit)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", frot.ConvergenceWarning)
                    result = frot.solve(X, Y, groups, eta=frot.relative(share), solver=solver)
                reached = calls_to_gaps(result)
                peer = peer or reached
                cells = []
                for mine, theirs in zip(reached, peer, strict=True):
                    if mine is None:
                        cells += [f"> {limit}", "", ""]
                        continue
                    more = "" if theirs is not None else "> "
                    ratio = (limit if theirs is None else theirs[0]) / max(mine[0], 1)
                    cells += [str(mine[0]), f"{mine[1]:.2f}", f"{more}{ratio:.1f}x"]
                rows.append([str(n), str(count), f"{share:g}", rule, *cells])
    header = ["n=m", "L", "eta/mean cost", "step"]
    for goal in GAPS:
        header += [f"calls to {goal:.0e}", "s", "paper / this"]
    table(header, rows)


if __name__ == "__main__":
    main()

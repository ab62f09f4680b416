"""Many small problems at once against a loop over them."""

from __future__ import annotations

from _common import fastest, table  # isort: skip  (sets the number of threads)

import numpy as np

import frot

__all__ = ["batch"]

COUNT, POINTS, FEATURES, GROUPS = 64, 64, 32, 8
ETA, TOL = 0.05, 1e-4
SHARES = (0.1, 0.05, 0.01)


def batch(quick: bool = False) -> None:
    """Print `solve_batch`, a loop over `solve`, and the ratio, and the widest gap of each."""
    count = COUNT // 4 if quick else COUNT
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, count, POINTS, FEATURES))
    width = FEATURES // GROUPS
    Y[:, :, :width] += 0.75
    groups = [width] * GROUPS
    # A first solve loads libraries, which is nobody's time.
    mean_cost = frot.solve(X[0], Y[0], groups=groups, eta=1.0, eps=1.0).mean_cost
    rows = []
    for share in SHARES:
        eta, eps = ETA * mean_cost, share * mean_cost

        def loop(eta: float = eta, eps: float = eps) -> list[frot.Result]:
            pairs = zip(X, Y, strict=True)
            return [frot.solve(x, y, groups, eta=eta, eps=eps, tol=TOL) for x, y in pairs]

        loop_time, alone = fastest(loop)
        batch_time, results = fastest(
            lambda eta=eta, eps=eps: frot.solve_batch(X, Y, groups, eta=eta, eps=eps, tol=TOL)
        )
        cells = [f"{loop_time:.3f}", f"{batch_time:.3f}", f"{loop_time / batch_time:.1f}x"]
        rows.append([str(count), f"{share:g}", *cells, _widest(alone), _widest(list(results))])
    table(["problems", "eps/mean", "loop s", "batch s", "ratio", "loop gap", "batch gap"], rows)


def _widest(results: list[frot.Result]) -> str:
    return f"{max(result.gap for result in results):.0e}"

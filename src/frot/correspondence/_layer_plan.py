r"""The paper's plan in as little time and memory as it takes, without a certificate.

Frank-Wolfe from :math:`\Pi^{(0)} = a b^\top` with :math:`\gamma_t = 2 / (2 + t)`, every vertex by
Sinkhorn's sweeps on one kernel that is formed in place of the mixed cost, potentials warm from
step to step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._base.arrays import Home, quiet, to_numpy
from frot._base.errors import InputError
from frot._base.validate import check_number, check_prior, check_weights
from frot.correspondence._grid_geometry import GridGeometry
from frot.problem.adversary import Simplex

__all__ = ["LayerPlan", "check_steps", "paper_plan"]

# Rows that are worked on at a time, in bytes: they stay in a core's cache.
BLOCK_BYTES = 2_000_000


@dataclass(frozen=True, eq=False)
class LayerPlan:
    """What the paper's steps end with.

    Attributes
    ----------
    plan : array of shape (n, m)
        Single precision, where the costs are. Rows are right to rounding.
    alpha, phi : arrays of shape (L,)
        The last weights' answer to the plan, and its costs, on the host.
    error : float
        Mass in wrong columns, of the worst of the steps.
    sweeps : int
        Sweeps of Sinkhorn's, over all steps.
    """

    plan: Any
    alpha: np.ndarray
    phi: np.ndarray
    error: float
    sweeps: int


def paper_plan(
    costs: GridGeometry,
    a: Any = None,
    b: Any = None,
    *,
    eta: float = 0.3,
    eps: float = 0.1,
    prior: Any = None,
    steps: int = 3,
    tol: float = 1e-3,
    max_sweeps: int = 1_000,
) -> LayerPlan:
    """Take the paper's steps, each vertex swept until no more than `tol` is in wrong columns.

    `solve_layers` with `paper_solver` takes the same steps and proves an interval; this is for
    many pairs.

    Parameters
    ----------
    costs : GridGeometry
    a, b : arrays of shape (n,) and (m,), optional
        Weights of the cells, some of which may be zero; divided by their sums.
    eta, eps : float
        Both > 0.
    prior : array of shape (L,), optional
    steps : int
        T.
    tol : float
        L1 error of the columns.
    max_sweeps : int
        Sweeps a step at most.

    Examples
    --------
    >>> from frot.correspondence._feature_map import FeatureMap
    >>> from frot.correspondence._grid_costs import layer_costs
    >>> rng = np.random.default_rng(0)
    >>> maps = [FeatureMap(str(h), rng.normal(size=(64, h, h)), 16 / h, 1) for h in (4, 2)]
    >>> found = paper_plan(layer_costs(maps, maps))
    >>> found.plan.argmax(axis=1).tolist() == list(range(16)), found.error <= 1e-3
    (True, True)
    """
    _, count, n, m = costs.shape
    weights = [check_weights(x, k, name, True) for x, k, name in ((a, n, "a"), (b, m, "b"))]
    check_steps(eta, eps, steps)
    adversary = Simplex(eta, check_prior(prior, count))
    home = costs.home
    left, right = (home.bring(x) for x in weights)
    phi = to_numpy(costs.product(left[None, :], right[None, :]))[0].astype(float)
    plan, g, worst, sweeps = None, home.xp.zeros_like(right), 0.0, 0
    for step in range(steps):
        _, alpha = adversary.best(phi)
        kernel = costs.mix(home.bring(alpha[None, :]))[0, ...]
        g, error, used = _vertex(kernel, left, right, eps, g, tol, max_sweeps, home)
        gamma = 2.0 / (2.0 + step)
        phi = (1.0 - gamma) * phi + gamma * to_numpy(costs.inner(kernel[None, ...]))[0]
        if plan is None:
            plan = kernel
        else:
            for part in _blocks(home, kernel):
                plan[part, :] *= 1.0 - gamma
                plan[part, :] += gamma * kernel[part, :]
        worst, sweeps = max(worst, error), sweeps + used
        del kernel
    return LayerPlan(plan, adversary.best(phi)[1], phi, worst, sweeps)


def check_steps(eta: Any, eps: Any, steps: Any) -> None:
    """Refuse what the paper's steps cannot do."""
    check_number(eta, "eta", strict=True)
    check_number(eps, "eps", strict=True)
    if steps < 1:
        raise InputError(f"steps: must be >= 1, got {steps!r}")


def _blocks(home: Home, matrix: Any) -> Iterator[slice]:
    """Cut rows: small blocks on the host, all at once where a launch costs more than memory."""
    n, m = matrix.shape
    step = max(1, BLOCK_BYTES // (4 * m)) if home.on_host else n
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _vertex(
    M: Any, a: Any, b: Any, eps: float, g: Any, tol: float, limit: int, home: Home
) -> tuple[Any, float, int]:
    """Turn the mixed cost into its entropic plan, in place; return g, the error and the sweeps."""
    xp = home.xp
    on = b > 0.0
    bias = xp.where(on, g / eps, -xp.inf)[None, :]
    for part in _blocks(home, M):
        block = M[part, :]
        block *= -1.0 / eps
        block += bias
        block -= xp.max(block, axis=1)[:, None]
        with quiet():
            M[part, :] = xp.exp(block)
    v, sweeps = xp.ones_like(b), 0
    while True:
        with quiet():
            u = 1.0 / (M @ (b * v))
            columns = xp.where(on, (a * u) @ M, xp.ones_like(b))
        error = float(xp.sum(b * xp.abs(v * columns - 1.0)))
        if error <= tol or sweeps == limit or not np.isfinite(error):
            break
        v, sweeps = 1.0 / columns, sweeps + 1
    rows, cols = a * u, b * v
    for part in _blocks(home, M):
        M[part, :] *= rows[part][:, None]
        M[part, :] *= cols[None, :]
    return g + eps * xp.log(v), error, sweeps

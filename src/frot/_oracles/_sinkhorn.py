"""Entropic transport by Sinkhorn's algorithm in scalings that are absorbed into potentials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frot._errors import InputError
from frot._oracles._protocol import Transport
from frot._plan import Plan

__all__ = ["Sinkhorn"]

# Scalings beyond this are folded into the potentials, and the kernel is formed anew.
ABSORB_AT = 1e60
# Smaller eps are reached from larger ones by this factor.
EPS_FACTOR = 4.0


@dataclass(frozen=True)
class Sinkhorn:
    r"""Solve :math:`\min_\Pi \langle \Pi, M \rangle + \varepsilon\,\mathrm{KL}(\Pi | a b^\top)`.

    The paper's algorithm 1 on the kernel :math:`e^{(f \oplus g - M)/\varepsilon}`, whose
    potentials take over whatever the scalings cannot hold, so that small eps neither underflow
    nor lose mass. The test is on the marginals themselves, :math:`\|\Pi^\top 1 - b\|_1 \le tol`
    with the rows exact.

    Parameters
    ----------
    tol : float
        Mass that may be in the wrong column.
    max_iter : int
        Sweeps at most, over all eps on the way.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> plan = Sinkhorn()(np.array([[0.0, 1.0], [1.0, 0.0]]), half, half, eps=1e-3).plan
    >>> np.asarray(plan).round(6)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    tol: float = 1e-6
    max_iter: int = 10_000

    def __post_init__(self) -> None:
        if not self.tol > 0.0:
            raise InputError(f"tol: must be > 0, got {self.tol!r}")
        if self.max_iter < 1:
            raise InputError(f"max_iter: must be >= 1, got {self.max_iter!r}")

    @property
    def entropic(self) -> bool:
        """Needs eps > 0."""
        return True

    def __call__(
        self,
        M: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        eps: float = 0.0,
        start: np.ndarray | None = None,
    ) -> Transport:
        """Return the entropic plan and its potentials."""
        if not eps > 0.0:
            raise InputError("eps: Sinkhorn needs eps > 0; pass eps=... or use NetworkSimplex()")
        g = np.zeros(len(b)) if start is None else start
        spread = float(M.max() - M.min())
        # A warm start is worth more than coming down from a large eps.
        level = eps if start is not None else max(eps, spread / EPS_FACTOR)
        sweeps = 0
        while True:
            tol = self.tol if level == eps else max(self.tol, 1e-2)
            f, g, kernel, used, error = _scale(M, a, b, level, g, tol, self.max_iter - sweeps)
            sweeps += used
            if level == eps or sweeps >= self.max_iter:
                break
            level = max(eps, level / EPS_FACTOR)
        if level != eps:
            f, g, kernel, _, error = _scale(M, a, b, eps, g, self.tol, 1)
        return Transport(Plan(kernel), f, g, bool(error <= self.tol))


def _scale(
    M: np.ndarray, a: np.ndarray, b: np.ndarray, eps: float, g: np.ndarray, tol: float, limit: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, float]:
    """Sweep at one eps until the columns are within `tol`; rows are exact at the end."""
    f, g, kernel = _kernel(M, a, b, eps, g)
    u, v = np.ones(len(a)), np.ones(len(b))
    error, sweep = np.inf, 0
    with np.errstate(all="ignore"):
        while True:
            columns = kernel.T @ (a * u)
            error = float(b @ np.abs(v * columns - 1.0))
            if error <= tol or sweep >= limit:
                break
            v = 1.0 / columns
            u = 1.0 / (kernel @ (b * v))
            sweep += 1
            top = max(u.max(), v.max())
            if not (top < ABSORB_AT and min(u.min(), v.min()) > 1.0 / ABSORB_AT):
                if np.isfinite(u).all() and (u > 0.0).all():
                    f = f + eps * np.log(u)
                f, g, kernel = _kernel(M, a, b, eps, _log_columns(M, a, eps, f))
                u, v = np.ones(len(a)), np.ones(len(b))
        kernel *= (a * u)[:, None]
        kernel *= b * v
        f, g = f + eps * np.log(u), g + eps * np.log(v)
    return f, g, kernel, sweep, error


def _kernel(
    M: np.ndarray, a: np.ndarray, b: np.ndarray, eps: float, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One row update in the log domain, then the kernel it makes: its rows sum to one under b."""
    kernel = (g - M) / eps
    top = kernel.max(axis=1)
    kernel -= top[:, None]
    with np.errstate(under="ignore"):
        np.exp(kernel, out=kernel)
        rows = kernel @ b
        kernel /= rows[:, None]
    return -eps * (top + np.log(rows)), g, kernel


def _log_columns(M: np.ndarray, a: np.ndarray, eps: float, f: np.ndarray) -> np.ndarray:
    """Return the column update g of the potential f in the log domain."""
    score = (f[:, None] - M) / eps
    top = score.max(axis=0)
    with np.errstate(under="ignore"):
        return -eps * (top + np.log(a @ np.exp(score - top)))

r"""Sinkhorn's sweeps on stored kernels: scalings absorbed into potentials, over-relaxed.

The kernel :math:`K = e^{(f \oplus g - M)/\varepsilon}` is formed once; a sweep is then two products
with it,

.. math::
    v \leftarrow v^{1-\omega} \big( 1 / K^\top (a \circ u) \big)^\omega, \qquad
    u \leftarrow u^{1-\omega} \big( 1 / K (b \circ v) \big)^\omega .

Plain sweeps (omega = 1) contract the error by some rate r; once r is known,
:math:`\omega = 2 / (1 + \sqrt{1 - r})` contracts it by about the square root of the sweeps needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from frot._arrays import Home, quiet

__all__ = ["Relaxation", "Scaling", "log_columns", "settle", "sweep_to"]

# The rate is read over this many sweeps, and omega is trusted up to this.
WINDOW = 10
LARGEST_OMEGA = 1.99
BACK = 0.9
# An eps below the first share of the spread of costs is reached from the second share of it by
# this factor, each solved no better than roughly. Above, forming kernels costs more than it saves.
DIRECT_FROM, FIRST_EPS, EPS_FACTOR = 1 / 200, 1 / 64, 4.0
ROUGH = 1e-2


class Scaling(NamedTuple):
    """Potentials, the plan they make (rows exact), its columns over b, sweeps, misplaced mass."""

    f: Any
    g: Any
    plan: Any
    columns: Any
    sweeps: int
    error: Any


class Relaxation:
    r"""Chooses omega, one a problem, from the errors it is shown.

    Under omega the error contracts by :math:`\lambda` with
    :math:`(\lambda + \omega - 1)^2 = \lambda \omega^2 r`, r being the rate of plain sweeps, so that
    what is seen tells r, and r the best omega. Where errors grow, omega was too large: it is
    lowered, and stays below.
    """

    def __init__(self, home: Home, batch: int) -> None:
        self.home = home
        self.active = False
        self._sweeps = 0
        self._last: Any = None
        self.omega = home.xp.ones((batch,), dtype=home.dtype, device=home.device)
        self._cap = LARGEST_OMEGA * self.omega

    def forget(self) -> None:
        """Start reading the rate anew, since what went before tells nothing any more."""
        self._last = None

    def update(self, error: Any, sweeps: int) -> None:
        """Look at the error (B,) after so many sweeps."""
        if sweeps < self._sweeps + WINDOW:
            return
        xp, last, omega = self.home.xp, self._last, self.omega
        if last is not None:
            with quiet():
                seen = (error / last) ** (1.0 / (sweeps - self._sweeps))
                plain = (seen + omega - 1.0) ** 2 / (seen * omega**2)
            root = xp.sqrt(xp.clip(1.0 - plain, 0.0, 1.0))
            better = 2.0 / (1.0 + root)
            # Fast as it is, or not in the linear regime yet: leave those alone.
            slow = (seen > 0.5) & (seen < 1.0)
            grew = (omega > 1.0) & ~(error < last)
            self._cap = xp.where(grew, 1.0 + BACK * (omega - 1.0), self._cap)
            chosen = xp.where(slow & (better > omega), better, omega)
            self.omega = xp.minimum(chosen, self._cap)
            self.active = True
        self._last, self._sweeps = error, sweeps


def sweep_to(
    M: Any, a: Any, b: Any, eps: Any, g: Any, tol: Any, limit: int, home: Home | None = None
) -> Scaling:
    """Sweep from the potential g until no more than `tol` of the mass is in wrong columns.

    Parameters
    ----------
    M : array of shape (B, n, m)
    a, b, g : arrays of shape (B, n), (B, m) and (B, m)
    eps : array of shape (B, 1)

    Examples
    --------
    >>> import numpy as np
    >>> half = np.array([[0.5, 0.5]])
    >>> M = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    >>> one = np.ones((1, 1))
    >>> found = sweep_to(M, half, half, one, np.zeros((1, 2)), tol=1e-9, limit=100)
    >>> found.plan.sum(axis=1), float(found.error[0]) <= 1e-9
    (array([[0.5, 0.5]]), True)
    """
    home = home or Home.of(M)
    xp = home.xp
    bound = float(xp.finfo(home.dtype).max) ** 0.2
    first, on = g, b > 0.0
    f, kernel, u = _kernel(xp, M, b, eps, g)
    v = xp.ones_like(b)
    relaxation = Relaxation(home, M.shape[0])
    sweeps = 0
    exact: Any = u
    with quiet():
        masses = columns = _transposed(kernel, a * u)
        error = xp.sum(b * xp.abs(columns - 1.0), axis=1)
        while sweeps < limit and not bool(xp.all(error <= tol)):
            # Plain sweeps are few at first; looking makes the host wait for a device.
            every = 1 if home.on_host and sweeps < WINDOW else WINDOW
            for _ in range(min(every, limit - sweeps)):
                if relaxation.active:
                    omega = relaxation.omega[:, None]
                    v = v * (1.0 / (v * columns)) ** omega
                    u = u * (1.0 / (u * _times(kernel, b * v))) ** omega
                else:
                    v = 1.0 / columns
                    u = 1.0 / _times(kernel, b * v)
                columns = _transposed(kernel, a * u)
                sweeps += 1
            if not (_within(xp, u, bound) and _within(xp, v, bound)):
                usable = xp.isfinite(u) & (u > 0.0)
                f = f + eps * xp.where(usable, xp.log(xp.where(usable, u, 1.0)), 0.0)
                g = log_columns(xp, M, a, eps, f)
                f, kernel, u = _kernel(xp, M, b, eps, g)
                v = xp.ones_like(b)
                columns = _transposed(kernel, a * u)
                relaxation.forget()
            exact, masses = u, columns
            if relaxation.active:
                # Over-relaxed rows are not exact: only the error of exact ones counts.
                exact = 1.0 / _times(kernel, b * v)
                masses = _transposed(kernel, a * exact)
            error = xp.sum(b * xp.abs(v * masses - 1.0), axis=1)
            relaxation.update(error, sweeps)
        if relaxation.active:
            u, columns = exact, masses
        kernel *= (a * u)[:, :, None]
        kernel *= (b * v)[:, None, :]
        f, g = f + eps * xp.log(u), g + eps * xp.log(v)
    # Columns without weight are right whatever their potential is.
    columns = xp.where(on, v * columns, xp.ones_like(v))
    return Scaling(f, xp.where(on, g, first), kernel, columns, sweeps, error)


def settle(
    M: Any, a: Any, b: Any, eps: Any, tol: float, limit: int, home: Home | None = None
) -> Scaling:
    """Sweep from nothing, coming down from a large eps.

    Every problem of a batch has its own eps and comes down to it.
    """
    home = home or Home.of(M)
    xp = home.xp
    spread = (xp.max(M, axis=(1, 2)) - xp.min(M, axis=(1, 2)))[:, None]
    level = xp.where(eps >= DIRECT_FROM * spread, eps, xp.maximum(eps, FIRST_EPS * spread))
    g, left = xp.zeros_like(b), limit
    while left > 0 and bool(xp.any(level > eps)):
        found = sweep_to(M, a, b, level, g, max(tol, ROUGH), left, home)
        g, left = found.g, left - found.sweeps
        level = xp.maximum(eps, level / EPS_FACTOR)
    return sweep_to(M, a, b, eps, g, tol, max(left, 1), home)


def _times(kernel: Any, vector: Any) -> Any:
    return (kernel @ vector[:, :, None])[:, :, 0]


def _transposed(kernel: Any, vector: Any) -> Any:
    return (vector[:, None, :] @ kernel)[:, 0, :]


def _within(xp: Any, scaling: Any, bound: float) -> bool:
    inside = (scaling < bound) & (scaling > 1.0 / bound)
    return bool(xp.all(inside))


def _kernel(xp: Any, M: Any, b: Any, eps: Any, g: Any) -> tuple[Any, Any, Any]:
    """One row update in the log domain: f, the kernel it makes, and the scaling u of its rows.

    Columns without weight must not set the scale of the others: ones stand in for them.
    """
    on = b > 0.0
    full = bool(xp.all(on))
    kernel = (g if full else xp.where(on, g, -xp.inf))[:, None, :] - M
    kernel /= eps[:, :, None]
    top = xp.max(kernel, axis=2)
    kernel -= top[:, :, None]
    with quiet():
        kernel = xp.exp(kernel)
        rows = _times(kernel, b)
        if full:
            # The scaling of the rows is a vector; dividing by it would be a pass over the matrix.
            return -eps * top, kernel, 1.0 / rows
        kernel /= rows[:, :, None]
        kernel = xp.where(on[:, None, :], kernel, xp.ones_like(kernel))
        return -eps * (top + xp.log(rows)), kernel, xp.ones_like(rows)


def log_columns(xp: Any, M: Any, a: Any, eps: Any, f: Any) -> Any:
    """Return the column update g of the potential f in the log domain."""
    score = (xp.where(a > 0.0, f, -xp.inf)[:, :, None] - M) / eps[:, :, None]
    top = xp.max(score, axis=1)
    with quiet():
        return -eps * (top + xp.log(_transposed(xp.exp(score - top[:, None, :]), a)))

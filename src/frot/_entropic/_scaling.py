r"""Sinkhorn's sweeps on stored kernels: scalings absorbed into potentials, over-relaxed.

The kernel :math:`K = e^{(f \oplus g - M)/\varepsilon}` is formed once; a sweep is then two products
with it,

.. math::
    v \leftarrow v^{1-\omega} \big( 1 / K^\top (a \circ u) \big)^\omega, \qquad
    u \leftarrow u^{1-\omega} \big( 1 / K (b \circ v) \big)^\omega .

Plain sweeps (omega = 1) contract the error by some rate r; once r is known,
:math:`\omega = 2 / (1 + \sqrt{1 - r})` contracts it by about the square root of the sweeps needed.

Where both sides are the same points f = g, and the mean of a potential and its update,

.. math:: g \leftarrow \tfrac12 (g + f), \qquad f = -\varepsilon \log K_0 (b\, e^{g/\varepsilon}),

halves every error at least, whatever eps is: with :math:`\lambda \in [0, 1]` an eigenvalue of the
plan's Markov kernel, an error along its eigenvector is multiplied by :math:`(1 - \lambda) / 2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from frot._arrays import Home, quiet
from frot._deadline import check_deadline
from frot._entropic._forming import column_potentials
from frot._entropic._scores import Scores
from frot._entropic._terms import Terms

__all__ = ["Relaxation", "Scaling", "sweep_to"]

# The rate is read over this many sweeps, and omega is trusted up to this.
WINDOW = 10
LARGEST_OMEGA = 1.99
BACK = 0.9
# Steps of a symmetric problem between two looks at its error.
HALVINGS = 4
# Exponents of light columns that are nearer than the others are cut off here.
HIGHEST, HIGHEST_SINGLE = 500.0, 60.0


class Scaling(NamedTuple):
    """Potentials of a plan with exact rows, ``left_i kernel_ij right_j``, and what it lacks.

    `columns` are the plan's over b, `error` is the mass in wrong columns.
    """

    f: Any
    g: Any
    kernel: Any
    left: Any
    right: Any
    columns: Any
    sweeps: int
    error: Any

    @property
    def plan(self) -> Any:
        """The plan, (B, n, m)."""
        return self.left[:, :, None] * self.kernel * self.right[:, None, :]


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
    scores: Scores, terms: Terms, g: Any, tol: Any, limit: int, parts: Sequence[slice]
) -> Scaling:
    """Sweep from the potential g until no more than `tol` of the mass is in wrong columns.

    Parameters
    ----------
    scores : Scores
    terms : Terms
    g : array of shape (B, m)
    tol : float or array of shape (B,)
    limit : int
        Sweeps at most.
    parts : list of slice
        Blocks of rows to form the kernel in.

    Examples
    --------
    >>> import numpy as np
    >>> from frot import Simplex
    >>> from frot._entropic._scores import scores_at
    >>> from frot._entropic._stack import StackGeometry
    >>> half, one = np.array([[0.5, 0.5]]), np.ones((1, 1))
    >>> terms = Terms.of(Home.of(half), half, half, Simplex(), 1.0, one)
    >>> costs = StackGeometry(np.array([[[[0.0, 1.0], [1.0, 0.0]]]]))
    >>> scores = scores_at(costs, terms, one)
    >>> found = sweep_to(scores, terms, np.zeros((1, 2)), 1e-9, 100, [slice(0, 2)])
    >>> found.plan.sum(axis=1), float(found.error[0]) <= 1e-9
    (array([[0.5, 0.5]]), True)
    """
    with quiet():
        return _Sweeps(scores, terms, g, parts).run(tol, limit)


class _Sweeps:
    """A kernel formed at a potential g, and scalings u and v of its rows and columns."""

    def __init__(self, scores: Scores, terms: Terms, g: Any, parts: Sequence[slice]) -> None:
        self.scores, self.terms, self.parts = scores, terms, parts
        self.relaxation = Relaxation(terms.home, terms.a.shape[0])
        self.bound = float(terms.home.xp.finfo(terms.home.dtype).max) ** 0.2
        self.form(g)

    def form(self, g: Any) -> None:
        """Form the kernel at g, and update the rows."""
        xp, terms = self.terms.home.xp, self.terms
        self.g = g
        self.f, self.kernel = _keep(self.scores, terms, g, self.parts)
        self.v = xp.ones_like(g)
        self.u = 1.0 / _times(self.kernel, terms.b)
        self.columns = _transposed(self.kernel, terms.a * self.u)
        if terms.symmetric:
            self.ratio = xp.exp((self.f - g) / terms.eps)

    def run(self, tol: Any, limit: int) -> Scaling:
        """Sweep until the columns are right, or as often as is allowed."""
        terms, home = self.terms, self.terms.home
        xp, sweeps = home.xp, 0
        u, columns, error = self.look()
        # What is not a number will not become one.
        while sweeps < limit and bool(xp.any(error > tol)):
            check_deadline()
            # Plain sweeps are few at first; looking makes the host wait for a device.
            every = 1 if home.on_host and sweeps < WINDOW else WINDOW
            if terms.symmetric:
                every = HALVINGS
            every = min(every, limit - sweeps)
            for _ in range(every):
                self.sweep()
            sweeps += every
            self.absorb()
            u, columns, error = self.look()
            if not terms.symmetric:
                self.relaxation.update(error, sweeps)
        return Scaling(
            self.f + terms.eps * xp.log(u), self.g + terms.eps * xp.log(self.v), self.kernel,
            terms.a * u, terms.b * self.v, columns * self.v, sweeps, error,
        )  # fmt: skip

    def sweep(self) -> None:
        """Update both scalings once."""
        terms, kernel = self.terms, self.kernel
        if terms.symmetric:
            self.v = terms.home.xp.sqrt(self.v * self.u * self.ratio)
            self.u = 1.0 / _times(kernel, terms.b * self.v)
            return
        if self.relaxation.active:
            omega = self.relaxation.omega[:, None]
            self.v = self.v * (1.0 / (self.v * self.columns)) ** omega
            self.u = self.u * (1.0 / (self.u * _times(kernel, terms.b * self.v))) ** omega
        else:
            self.v = 1.0 / self.columns
            self.u = 1.0 / _times(kernel, terms.b * self.v)
        self.columns = _transposed(kernel, terms.a * self.u)

    def look(self) -> tuple[Any, Any, Any]:
        """Return exact rows, their columns (over b, without v), and the mass in wrong ones.

        Over-relaxed rows are not exact: only the error of exact ones counts.
        """
        terms, u, columns = self.terms, self.u, self.columns
        xp = terms.home.xp
        if self.relaxation.active:
            u = 1.0 / _times(self.kernel, terms.b * self.v)
        if self.relaxation.active or terms.symmetric:
            columns = _transposed(self.kernel, terms.a * u)
        return u, columns, xp.sum(terms.b * xp.abs(self.v * columns - 1.0), axis=1)

    def absorb(self) -> None:
        """Form the kernel anew where scalings leave the range of the precision."""
        xp, terms = self.terms.home.xp, self.terms
        if _within(xp, self.u, self.bound) and _within(xp, self.v, self.bound):
            return
        usable = xp.isfinite(self.u) & (self.u > 0.0)
        one = xp.ones_like(self.u)
        f = self.f + terms.eps * xp.log(xp.where(usable, self.u, one))
        self.form(column_potentials(self.scores, terms, f, self.parts))
        self.relaxation.forget()


def _keep(scores: Scores, terms: Terms, g: Any, parts: Sequence[slice]) -> tuple[Any, Any]:
    """Form the kernel of g whole: f (B, n) and ``e^((f_i + g_j - M_ij) / eps)``, (B, n, m).

    The largest entry of a row is one; with uneven weights that of b times the row, since a light
    column that is nearer than the others must not make all of these vanish.
    """
    home = terms.home
    xp, bias, blocks, potentials = home.xp, g / terms.eps, [], []
    highest = HIGHEST if home.dtype == xp.float64 else HIGHEST_SINGLE
    for part in parts:
        check_deadline()
        block = scores.block(part, bias)
        level = block + terms.log_b[:, None, :] if terms.uneven else block
        top = xp.max(level, axis=2)
        block -= top[:, :, None]
        if terms.uneven:
            block = xp.where(block < highest, block, xp.full_like(block, highest))
        blocks.append(xp.exp(block))
        potentials.append(terms.eps * (scores.offset(part) - top))
    if len(blocks) == 1:
        return potentials[0], blocks[0]
    return xp.concat(potentials, axis=1), xp.concat(blocks, axis=1)


def _times(kernel: Any, vector: Any) -> Any:
    return (kernel @ vector[:, :, None])[:, :, 0]


def _transposed(kernel: Any, vector: Any) -> Any:
    return (vector[:, None, :] @ kernel)[:, 0, :]


def _within(xp: Any, scaling: Any, bound: float) -> bool:
    inside = (scaling < bound) & (scaling > 1.0 / bound)
    return bool(xp.all(inside))

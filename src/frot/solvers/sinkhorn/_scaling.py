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

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from frot._base.arrays import Home, at_least, quiet
from frot._base.stopping import check_deadline
from frot.solvers.sinkhorn.kernel import JoinedRows, Scores, column_potentials, exp_of
from frot.solvers.sinkhorn.terms import BatchTerms

# The rate is read over this many sweeps at least, and omega is trusted up to this; over-relaxed
# sweeps are looked at so often.
WINDOW = 4
LOOK = 8
LARGEST_OMEGA = 1.99
BACK = 0.9
# Sweeps that take as long as a kernel does to be formed, roughly.
FORMING = 16
# Steps of a symmetric problem between two looks at its error.
HALVINGS = 4
# Exponents of light columns that are nearer than the others are cut off here.
HIGHEST, HIGHEST_SINGLE = 500.0, 60.0
# Scalings beyond these are absorbed into potentials.
BOUND, BOUND_SINGLE = 1e60, 1e15
# Kernels of scores up to this are well within these bounds, and so are squares of their entries.
SMALL = 20.0
# What points without weight weigh in sweeps.
LIFTED = 1e-30


class Scaling(NamedTuple):
    """Potentials of a plan with exact rows, ``left_i kernel_ij right_j``, and what it lacks.

    `columns` are the plan's over b, `error` is the mass in wrong columns, `sweeps` what it took,
    `base` the potential of the columns that the kernel was formed at.
    """

    f: Any
    g: Any
    kernel: Any
    left: Any
    right: Any
    columns: Any
    sweeps: int
    error: Any
    base: Any

    @property
    def plan(self) -> Any:
        """The plan, (B, n, m)."""
        return self.left[:, :, None] * self.kernel * self.right[:, None, :]


class Relaxation:
    r"""Chooses omega, one per problem, from the errors it is shown.

    Under omega the error contracts by :math:`\lambda` with
    :math:`(\lambda + \omega - 1)^2 = \lambda \omega^2 r`, r being the rate of plain sweeps, so that
    what is seen tells r, and r the best omega. Where errors grow, omega was too large: it is
    lowered, and stays below.
    """

    def __init__(self, home: Home, like: Any) -> None:
        self.home = home
        self.active = False
        self._sweeps = 0
        self._last: Any = None
        # Of one problem on the host all of it is numbers, which cost next to nothing.
        self.alone = like.ndim == 0 and home.on_host
        self.omega: Any = 1.0 if self.alone else home.xp.ones_like(like)
        self._cap: Any = LARGEST_OMEGA * self.omega
        self._seen: Any = None

    @property
    def power(self) -> Any:
        """Omega, for arrays of points."""
        return self.omega if self.alone else self.omega[..., None]

    def ahead(self, error: Any, sweeps: int, tol: Any) -> int:
        """Return how many sweeps to make before the next look.

        Of one problem so many as take it to `tol` if the rate stays what it was, but no more than
        until omega is chosen. To look is free while sweeps are plain, but a device has to wait.
        """
        if not self.alone:
            return 1 if self.home.on_host and not self.active else LOOK
        last, self._seen = self._seen, (error, sweeps)
        most = LOOK if self.active else max(self._sweeps + WINDOW - sweeps, 1)
        if last is None or not 0.0 < tol < error < last[0]:
            return most if self.active else 1
        rate = math.log(error / last[0]) / (sweeps - last[1])
        return min(most, math.ceil(math.log(tol / error) / rate))

    def forget(self) -> None:
        """Start reading the rate anew, since what went before tells nothing any more."""
        self._last = self._seen = None

    def due(self, sweeps: int) -> bool:
        """Whether enough sweeps have been made since the last look."""
        return sweeps >= self._sweeps + WINDOW

    def update(self, error: Any, sweeps: int) -> None:
        """Look at the error (B,) after so many sweeps."""
        if not self.due(sweeps):
            return
        if self.alone and not 0.0 < error < math.inf:
            self.forget()
            return
        last, omega = self._last, self.omega
        if last is not None:
            with quiet():
                seen = (error / last) ** (1.0 / (sweeps - self._sweeps))
                plain = (seen + omega - 1.0) ** 2 / (seen * omega**2)
                root = self._pick(plain < 1.0, 1.0 - plain, 0.0 * omega) ** 0.5
            better = 2.0 / (1.0 + root)
            # Fast as it is, or not in the linear regime yet: leave those alone.
            slow = (seen > 0.5) & (seen < 1.0)
            # What is not a number has not fallen; `~` is deprecated for Python's own bools.
            grew = (omega > 1.0) & ((error < last) ^ True)
            self._cap = self._pick(grew, 1.0 + BACK * (omega - 1.0), self._cap)
            chosen = self._pick(slow & (better > omega), better, omega)
            self.omega = self._pick(chosen < self._cap, chosen, self._cap)
            self.active = True
        self._last, self._sweeps = error, sweeps

    def _pick(self, where: Any, yes: Any, no: Any) -> Any:
        if self.alone:
            return yes if where else no
        return self.home.xp.where(where, yes, no)


class Near(NamedTuple):
    """How closely to sweep where the value tells: mass in wrong columns over |dual| / scale."""

    share: float
    least: float

    def of(self, terms: BatchTerms, dual: Any) -> Any:
        """Return the mass that may be in wrong columns, (B,)."""
        xp = terms.home.xp
        return at_least(xp, self.share * xp.abs(dual) / terms.scale[:, 0], self.least)


def sweep_to(
    scores: Scores, terms: BatchTerms, g: Any, tol: Any, limit: int, parts: Sequence[slice]
) -> Scaling:
    """Sweep from the potential g until no more than `tol` of the mass is in wrong columns.

    Parameters
    ----------
    scores : Scores
    terms : BatchTerms
    g : array of shape (B, m)
    tol : float, array of shape (B,) or Near
    limit : int
        Sweeps at most.
    parts : list of slice
        Blocks of rows to form the kernel in.

    Examples
    --------
    >>> import numpy as np
    >>> from frot import Simplex
    >>> from frot.solvers.sinkhorn.kernel import scores_at
    >>> from frot.costs.stack import StackGeometry
    >>> half, one = np.array([[0.5, 0.5]]), np.ones((1, 1))
    >>> terms = BatchTerms.of(Home.of(half), half, half, Simplex(), 1.0, one)
    >>> costs = StackGeometry(np.array([[[[0.0, 1.0], [1.0, 0.0]]]]))
    >>> scores = scores_at(costs, terms, one)
    >>> found = sweep_to(scores, terms, np.zeros((1, 2)), 1e-9, 100, [slice(0, 2)])
    >>> found.plan.sum(axis=1), float(found.error[0]) <= 1e-9
    (array([[0.5, 0.5]]), True)
    """
    with quiet():
        kind = _SoftSweeps if terms.soft else _Sweeps
        return kind(scores, terms, g, parts).run(tol, limit)


class _Sweeps:
    r"""A kernel formed at a potential g, and the masses on top of it.

    The plan is ``x_i kernel_ij y_j`` with x = a u and y = b v, so that a sweep is two products and
    two quotients: :math:`y = b / K^\top x` and :math:`x = a / K y`. A batch of one has no batch
    axis in here: small problems are bound by the number of operations, not by their size.
    """

    def __init__(self, scores: Scores, terms: BatchTerms, g: Any, parts: Sequence[slice]) -> None:
        self.scores, self.terms, self.parts = scores, terms, parts
        self.alone = terms.a.shape[0] == 1
        self.eps = self.inside(terms.eps)
        self.relaxation = Relaxation(terms.home, self.inside(terms.eps[:, 0]))
        # A kernel has lost what is below its smallest number: next to nothing, times this.
        self.bound = BOUND if terms.home.dtype == terms.home.xp.float64 else BOUND_SINGLE
        # Points without weight have next to none here, and so a potential like any other.
        self.a, self.b = (self.inside(_lifted(terms, side)) for side in (terms.a, terms.b))
        # Sums as products: a small problem waits for calls, and these are the shortest.
        self.ones = terms.home.xp.ones_like(terms.b[0, :])
        self.ones_of_rows = terms.home.xp.ones_like(terms.a[0, :])
        self.form(self.inside(g))

    def inside(self, array: Any) -> Any:
        """Drop the batch axis of a batch of one."""
        return array[0, ...] if self.alone else array

    def outside(self, array: Any) -> Any:
        """Put it back."""
        return array[None, ...] if self.alone else array

    def form(self, g: Any) -> None:
        """Form the kernel at g, and update the rows."""
        self.g = g
        found = _keep(self.scores, self.terms, self.outside(g), self.parts)
        self.f, self.kernel = (self.inside(part) for part in found)
        self.y = self.b
        self.x = self.a / self.times(self.y)
        self.columns = self.transposed(self.x)
        if self.terms.symmetric:
            self.ratio = self.terms.home.xp.exp((self.f - g) / self.eps)

    def times(self, vector: Any) -> Any:
        """Return the products of the kernel and a vector of the columns."""
        if self.alone:
            return self.kernel @ vector
        return (self.kernel @ vector[:, :, None])[:, :, 0]

    def transposed(self, vector: Any) -> Any:
        """Return the products of a vector of the rows and the kernel."""
        if self.alone:
            return vector @ self.kernel
        return (vector[:, None, :] @ self.kernel)[:, 0, :]

    def run(self, tol: Any, limit: int) -> Scaling:
        """Sweep until the columns are right, or as often as is allowed.

        Kernels that are formed on the way count as so many sweeps: potentials of far points may be
        so many eps away that each look finds scalings out of range.
        """
        sweeps = formed = checked = 0
        if not isinstance(tol, float | Near):
            tol = self.number(self.inside(tol))
        x, columns, error = self.look()
        while sweeps + formed < limit and not self.near(x, error, tol):
            check_deadline()
            every = min(self.every(error, sweeps), limit - sweeps - formed)
            for _ in range(every):
                self.sweep()
            sweeps += every
            x, columns, error = self.look()
            # A look now and then is enough, unless nothing is left to look at.
            if sweeps >= checked + LOOK or not self.holds(error >= 0.0):
                checked = sweeps
                if self.absorb():
                    formed += FORMING
                    x, columns, error = self.look()
                if self.holds(error != error):
                    break
            if not self.terms.symmetric and self.relaxation.due(sweeps):
                self.relaxation.update(error, sweeps)
        at = self.potentials(x)
        if not self.in_range(*at) and self.absorb():
            x, columns, error = self.look()
            at = self.potentials(x)
        return self.found(at, x, columns, error, sweeps + formed)

    def number(self, array: Any) -> Any:
        """A number of Python's where that costs no wait: hundreds of looks at it are cheaper."""
        return float(array) if self.alone and self.terms.home.on_host else array

    def holds(self, found: Any) -> bool:
        """Whether something is so for all members."""
        return found if isinstance(found, bool) else bool(self.terms.home.xp.all(found))

    def in_range(self, f: Any, g: Any) -> bool:
        """Whether masses are numbers over their weights still: right columns alone do not tell."""
        size = self.number(abs(f) @ self.ones_of_rows + abs(g) @ self.ones)
        return self.holds(size < float("inf"))

    def found(self, at: tuple[Any, Any], x: Any, columns: Any, error: Any, sweeps: int) -> Scaling:
        """Put together what the sweeps came to, with potentials `at` its end."""
        terms, (f, g) = self.terms, at
        left, right = (
            _only(weights, self.outside(lifted), self.outside(masses))
            for weights, lifted, masses in ((terms.a, self.a, x), (terms.b, self.b, self.y))
        )
        columns = columns * self.y / self.b
        error = error + 0.0 * self.eps[..., 0]
        f, g, kernel, columns, error, base = map(
            self.outside, (f, g, self.kernel, columns, error, self.g)
        )
        return Scaling(f, g, kernel, left, right, columns, sweeps, error, base)

    def every(self, error: Any, sweeps: int) -> int:
        """Sweeps until the next look."""
        return HALVINGS if self.terms.symmetric else self.relaxation.ahead(error, sweeps, self.aim)

    def near(self, x: Any, error: Any, tol: Any) -> bool:
        """Whether all members are as close as was asked; those that are not numbers never are.

        What was asked is kept as `aim`, for one to know how far it is.
        """
        self.aim = tol.share if isinstance(tol, Near) else tol
        if isinstance(tol, Near):
            if not self.holds(error <= 2.0 * tol.share):
                return False
            self.aim = self.number(self.inside(tol.of(self.terms, self.outside(self.dual(x)))))
        return self.holds(error <= self.aim)

    def dual(self, x: Any) -> Any:
        """Return what potentials add to the dual value."""
        f, g = self.potentials(x)
        dot = self.terms.home.xp.vecdot
        return dot(self.a, f) + dot(self.b, g)

    def potentials(self, x: Any) -> tuple[Any, Any]:
        """Return f and g that the masses x and y stand for."""
        xp = self.terms.home.xp
        return self.f + self.eps * xp.log(x / self.a), self.g + self.eps * xp.log(self.y / self.b)

    def sweep(self) -> None:
        """Update both sides once."""
        if self.terms.symmetric:
            self.y = self.terms.home.xp.sqrt(self.y * self.x * self.ratio)
            self.x = self.a / self.times(self.y)
            return
        if self.relaxation.active:
            omega = self.relaxation.power
            self.y = self.y * (self.b / (self.y * self.columns)) ** omega
            self.x = self.x * (self.a / (self.x * self.times(self.y))) ** omega
        else:
            self.y = self.b / self.columns
            self.x = self.a / self.times(self.y)
        self.columns = self.transposed(self.x)

    def look(self) -> tuple[Any, Any, Any]:
        """Return exact rows, their columns over y, and the mass in wrong ones.

        Over-relaxed rows are not exact: only the error of exact ones counts.
        """
        x, columns = self.x, self.columns
        if self.relaxation.active:
            x = self.a / self.times(self.y)
        if self.relaxation.active or self.terms.symmetric:
            columns = self.transposed(x)
        off = self.terms.home.xp.abs(self.y * columns - self.b)
        return x, columns, self.number(off @ self.ones)

    def scalings(self) -> tuple[Any, Any]:
        """Return what masses are over their weights, row by row and column by column."""
        return self.x / self.a, self.y / self.b

    def absorb(self) -> bool:
        """Form the kernel anew where scalings leave the range of the precision."""
        xp, terms = self.terms.home.xp, self.terms
        u, v = self.scalings()
        # Each summand is positive: none is beyond the bound if their sum is not.
        sizes = (u + 1.0 / u) @ self.ones_of_rows + (v + 1.0 / v) @ self.ones
        if self.holds(self.number(sizes) <= self.bound):
            return False
        usable = xp.isfinite(u) & (u > 0.0)
        f = self.f + self.eps * xp.log(xp.where(usable, u, xp.ones_like(u)))
        g = column_potentials(self.scores, terms, self.outside(f), self.parts)
        self.form(self.inside(g))
        self.relaxation.forget()
        return True


class _SoftSweeps(_Sweeps):
    r"""The same where mass may go: damped, and shifted to where both sides keep as much.

    The kernel is formed at g and at :math:`f_0 = \kappa\, T g`, with :math:`T g` what would keep
    all rows, and has :math:`K b = r_0`, which are numbers whatever rows keep: the plan is
    :math:`s_i u_i K_{ij} y_j` with :math:`s = a\, e^{-f_0 / \tau_a} / r_0`, and

    .. math::
        u = (r / K y)^{\kappa_a}, \qquad
        y = b\, \big( e^{-g / \tau_b} / K^\top (s \circ u) \big)^{\kappa_b} ,

    with r = r_0 at first. A translation of f by :math:`\lambda` and of g by :math:`-\lambda`
    changes no plan, but what is asked of it: r by :math:`e^{-\lambda / \tau_a}`. `x` is u here.
    """

    def __init__(self, scores: Scores, terms: BatchTerms, g: Any, parts: Sequence[slice]) -> None:
        self.alone = terms.a.shape[0] == 1
        one = terms.home.xp.ones_like(terms.eps)
        (self.kappa_a, self.inverse_a), (self.kappa_b, self.inverse_b) = (
            (self.inside(one), self.inside(0.0 * one))
            if side is None
            else (self.inside(side.damping(terms.eps)), self.inside(1.0 / side.tau))
            for side in (terms.rows, terms.cols)
        )
        super().__init__(scores, terms, g, parts)

    def form(self, g: Any) -> None:
        """Form the kernel at g, and update the rows."""
        xp = self.terms.home.xp
        # A constant costs digits: the kernel does not depend on it.
        level = xp.sum(self.b * g, axis=-1, keepdims=True) / xp.sum(self.b, axis=-1, keepdims=True)
        found = _keep(self.scores, self.terms, self.outside(g - level), self.parts)
        raw, self.kernel = (self.inside(part) for part in found)
        self.y, self.level = self.b, self.times(self.b)
        self.g, self.f = g, self.kappa_a * (raw - level - self.eps * xp.log(self.level))
        self.s = self.a * xp.exp(-self.f * self.inverse_a) / self.level
        self.kept_b = self.b * xp.exp(-self.g * self.inverse_b)
        self.x = xp.ones_like(self.a)
        self.columns = self.transposed(self.s)
        self.translate()

    def translate(self) -> None:
        """Shift f and g to where both sides keep as much mass."""
        xp = self.terms.home.xp
        kept_a = xp.sum(self.a * xp.exp(-self.rows_at() * self.inverse_a), axis=-1, keepdims=True)
        kept_b = xp.sum(self.wanted(), axis=-1, keepdims=True)
        by = xp.log(kept_a / kept_b) / (self.inverse_a + self.inverse_b)
        by = xp.where(xp.isfinite(by), by, xp.zeros_like(by))
        self.f, self.g = self.f + by, self.g - by
        self.level = self.level * xp.exp(-by * self.inverse_a)
        self.kept_b = self.kept_b * xp.exp(by * self.inverse_b)

    def rows_at(self) -> Any:
        """The potentials of the rows."""
        return self.f + self.eps * self.terms.home.xp.log(self.x)

    def wanted(self) -> Any:
        """Return what columns should weigh, as the potentials are."""
        return self.kept_b * (self.y / self.b) ** (-self.eps * self.inverse_b)

    def sweep(self) -> None:
        """Update both sides once, each followed by a shift."""
        xp = self.terms.home.xp
        power = self.kappa_b
        if self.relaxation.active:
            power = power * self.relaxation.power
        off = self.wanted() / (self.y * self.columns)
        # What keeps less than the smallest number has the potential that it was formed with.
        self.y = self.y * xp.where(self.kept_b > 0.0, off, xp.ones_like(off)) ** power
        ahead = (self.level / self.times(self.y)) ** self.kappa_a
        if self.relaxation.active:
            ahead = self.x * (ahead / self.x) ** self.relaxation.power
        self.x = ahead
        self.columns = self.transposed(self.s * self.x)
        self.translate()

    def look(self) -> tuple[Any, Any, Any]:
        """Return right rows, their columns over y, and the share of the mass in wrong ones."""
        x = (self.level / self.times(self.y)) ** self.kappa_a
        columns, wanted = self.transposed(self.s * x), self.wanted()
        off = self.terms.home.xp.abs(self.y * columns - wanted)
        return x, columns, self.number((off @ self.ones) / (wanted @ self.ones))

    def dual(self, x: Any) -> Any:
        """Return what potentials add to the dual value."""
        f, g = self.potentials(x)
        return self.inside(self.terms.linear(self.outside(f), self.outside(g)))

    def potentials(self, x: Any) -> tuple[Any, Any]:
        """Return f and g that the scalings stand for."""
        xp = self.terms.home.xp
        return self.f + self.eps * xp.log(x), self.g + self.eps * xp.log(self.y / self.b)

    def found(self, at: tuple[Any, Any], x: Any, columns: Any, error: Any, sweeps: int) -> Scaling:
        """Put together what the sweeps came to, with potentials `at` its end."""
        found = super().found(at, x, columns, error, sweeps)
        left = _only(self.terms.a, self.outside(self.a), self.outside(self.s * x))
        return found._replace(left=left)

    def scalings(self) -> tuple[Any, Any]:
        """Return what potentials are above those that the kernel was formed with."""
        return self.x, self.y / self.b


def _only(weights: Any, lifted: Any, masses: Any) -> Any:
    """Take back what points without weight were lent."""
    return masses if lifted is weights else masses * (weights / lifted)


def _lifted(terms: BatchTerms, weights: Any) -> Any:
    xp = terms.home.xp
    if bool(xp.all(weights > 0.0)):
        return weights
    return xp.where(weights > 0.0, weights, xp.full_like(weights, LIFTED))


def _exp_normal(home: Home, scores: Any) -> Any:
    """Return the exponentials of scores that are used up, subnormal ones set to zero on the host.

    They are below 1e-38 of the largest, and many processors take fifty times as long to multiply
    by them: with a twelfth of them a product of 500 x 500 takes 900 microseconds instead of 16.
    """
    xp = home.xp
    least = float(xp.finfo(home.dtype).smallest_normal)
    small = home.on_host and not float(xp.min(scores)) > math.log(least)
    kernel = exp_of(scores)
    if small:
        kernel *= xp.astype(kernel >= least, home.dtype)
    return kernel


def _reach(scores: Scores, xp: Any, bias: Any) -> float:
    """Bound the size of scores."""
    reach = scores.reach()
    return reach if math.isinf(reach) else reach + float(xp.max(xp.abs(bias)))


def _keep(scores: Scores, terms: BatchTerms, g: Any, parts: Sequence[slice]) -> tuple[Any, Any]:
    """Form the kernel of g whole: f (B, n) and ``e^((f_i + g_j - M_ij) / eps)``, (B, n, m).

    The largest entry of a row is one; with uneven weights that of b times the row, since a light
    column that is nearer than the others must not make all of these vanish. Where all scores are
    known to be small, they are taken as they are.
    """
    home = terms.home
    xp, bias, potentials = home.xp, g / terms.eps, []
    highest = HIGHEST if home.dtype == xp.float64 else HIGHEST_SINGLE
    small = home.on_host and not terms.uneven and _reach(scores, xp, bias) <= SMALL
    kernel = JoinedRows(home, (*terms.a.shape, terms.b.shape[1]), parts)
    for part in parts:
        check_deadline()
        block = scores.block(part, bias)
        if small:
            kernel.add(part, exp_of(block))
            potentials.append(terms.eps * scores.offset(part) + 0.0 * terms.a[:, part])
            continue
        level = block + terms.log_b[:, None, :] if terms.uneven else block
        top = xp.max(level, axis=2)
        block -= top[:, :, None]
        if terms.uneven:
            block = xp.where(block < highest, block, xp.full_like(block, highest))
        kernel.add(part, _exp_normal(home, block))
        potentials.append(terms.eps * (scores.offset(part) - top))
    return xp.concat(potentials, axis=1), kernel.whole()

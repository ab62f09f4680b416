r"""`DenseEngine`: kernels that are kept, and Sinkhorn's sweeps on them.

Scalings are absorbed into potentials where they grow.

Absorption is that of Schmitzer 2019.

The kernel :math:`K = e^{(f \oplus g - M)/\varepsilon}` is formed once; a sweep is then two products
with it. The plan is :math:`x_i K_{ij} y_j` with x = a u and y = b v, and a plain sweep is
:math:`y \leftarrow b / K^\top x`, :math:`x \leftarrow a / K y`. With momentum (see `momentum`),

.. math::
    y \leftarrow y \Big( \frac{b}{y \circ K^\top x} \Big)^{(1 + q)^2}
                   \Big( \frac{y}{y_{-1}} \Big)^{q^2}, \qquad x \leftarrow a / K y .

Where both sides are the same points f = g, and the mean of a potential and its update,

.. math:: g \leftarrow \tfrac12 (g + f), \qquad f = -\varepsilon \log K_0 (b\, e^{g/\varepsilon}),

halves every error at least, whatever eps is: with :math:`\lambda \in [0, 1]` an eigenvalue of the
plan's Markov kernel, an error along its eigenvector is multiplied by :math:`(1 - \lambda) / 2`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import ClassVar

from frot._base.arrays import Array, Home, quiet
from frot.costs.protocol import Costs
from frot.solvers.entropic.engine import LOOK, Closeness, Engine, Momentum, Sweeps, sweep_to
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.kernel import (
    BlockPasses,
    JoinedRows,
    Scores,
    column_potentials,
    exp_of,
    row_blocks,
    scores_at,
)
from frot.solvers.entropic.point import Point, make_point


class KernelSweeps(Sweeps):
    """A kernel formed at a potential g, and the masses x and y on top of it; rows are exact.

    A batch of one has no batch axis in here: small problems are bound by the number of operations,
    not by their size.
    """

    def __init__(
        self,
        costs: Costs,
        problem: EntropicProblem,
        alpha: Array,
        g: Array,
        parts: Sequence[slice],
    ) -> None:
        self.costs, self.problem, self.alpha, self.parts = costs, problem, alpha, parts
        home = problem.home
        self.scores: Scores = scores_at(costs, problem, alpha)
        self.alone = problem.a.shape[0] == 1
        self.eps = self.inside(problem.eps)
        self.momentum = None
        if not problem.symmetric:
            numbers, like = self.alone and home.on_host, self.inside(problem.scale)[..., 0]
            self.momentum = Momentum() if numbers else Momentum(home.xp, like)
        # Scalings beyond this are absorbed into potentials: a kernel has lost what is below its
        # smallest number, next to nothing times this.
        self.bound = 1e60 if home.dtype == home.xp.float64 else 1e15
        # Points without weight get a tiny one, so that their potentials are defined.
        a, b = _lifted(problem, problem.a), _lifted(problem, problem.b)
        self.lent_rows, self.lent_cols = a is not problem.a, b is not problem.b
        self.a, self.b = self.inside(a), self.inside(b)
        # Sums as products: a small problem waits for calls, and these are the shortest.
        self.ones = home.xp.ones_like(problem.b[0, :])
        self.ones_of_rows = home.xp.ones_like(problem.a[0, :])
        # Sweeps before scalings were last looked at.
        self.checked = 0
        with quiet():
            self.form(self.inside(g))

    def inside(self, array: Array) -> Array:
        """Drop the batch axis of a batch of one."""
        return array[0, ...] if self.alone else array

    def outside(self, array: Array) -> Array:
        """Put it back."""
        return array[None, ...] if self.alone else array

    def form(self, g: Array) -> None:
        """Form the kernel at g, and update the rows."""
        self.g = g
        f, kernel = _form(self.scores, self.problem, self.outside(g), self.parts)
        self.f, self.kernel = self.inside(f), self.inside(kernel)
        self.y = self.last = self.b
        self.x = self.a / self.times(self.y)
        self.columns: Array = self.transposed(self.x)
        if self.problem.symmetric:
            self.ratio = self.problem.home.xp.exp((self.f - g) / self.eps)

    def times(self, vector: Array) -> Array:
        """Return the products of the kernel and a vector of the columns."""
        if self.alone:
            return self.kernel @ vector
        return (self.kernel @ vector[:, :, None])[:, :, 0]

    def transposed(self, vector: Array) -> Array:
        """Return the products of a vector of the rows and the kernel."""
        if self.alone:
            return vector @ self.kernel
        return (vector[:, None, :] @ self.kernel)[:, 0, :]

    def sweep(self) -> None:
        """Move the columns, and make the rows right for them."""
        if self.problem.symmetric:
            # Columns are summed where they are looked at.
            self.y = self.problem.home.xp.sqrt(self.y * self.x * self.ratio)
            self.x, self.columns = self.a / self.times(self.y), None
            return
        if self.momentum is not None and self.momentum.active:
            stride, inertia = self.momentum.weights
            ratio = (self.b / (self.y * self.columns)) ** stride
            moved = self.y * ratio * (self.y / self.last) ** inertia
            self.last, self.y = self.y, moved
        else:
            self.last, self.y = self.y, self.b / self.columns
        self.x = self.a / self.times(self.y)
        self.columns = self.transposed(self.x)

    def error(self) -> Array:
        """Return the mass in wrong columns."""
        if self.columns is None:
            self.columns = self.transposed(self.x)
        off = self.problem.home.xp.abs(self.y * self.columns - self.b)
        return self.number(off @ self.ones)

    def number(self, array: Array) -> Array:
        """A number of Python's where that costs no wait: hundreds of looks at it are cheaper."""
        if not self.alone:
            return array
        if getattr(array, "ndim", 0):
            array = array[0]
        return float(array) if self.problem.home.on_host else array

    def dual(self) -> Array:
        """Return what potentials add to the dual value."""
        f, g = self.potentials()
        return self.inside(self.problem.linear(self.outside(f), self.outside(g)))

    def potentials(self) -> tuple[Array, Array]:
        """Return f and g that the masses x and y stand for."""
        xp = self.problem.home.xp
        return (
            self.f + self.eps * xp.log(self.x / self.a),
            self.g + self.eps * xp.log(self.y / self.b),
        )

    def until_look(self, error: Array, sweeps: int, tol: Array) -> int:
        """Return how many sweeps to make before the next look.

        To look is next to free, but a device has to wait for it.
        """
        if self.momentum is None:
            # An error is halved at least.
            return 4
        if self.momentum.xp is None:
            return self.momentum.sweeps_ahead(error, sweeps, tol)
        return 1 if self.problem.home.on_host and not self.momentum.active else LOOK

    def renew(self, error: Array, usable: bool, sweeps: int) -> int:
        """Form the kernel anew where scalings leave the range of the precision.

        That counts as sweeps, of which some sixteen take as long: potentials of far points may be
        so many eps away that each look finds scalings out of range. A look now and then is enough,
        unless there is nothing left to see.
        """
        if usable and sweeps < self.checked + LOOK:
            return 0
        self.checked = sweeps
        return 16 if self.absorb() else 0

    def absorb(self) -> bool:
        """Take scalings into the potentials if they are large, and form the kernel there."""
        xp, problem = self.problem.home.xp, self.problem
        u, v = self.scalings()
        # Each summand is positive: none is beyond the bound if their sum is not.
        sizes = (u + 1.0 / u) @ self.ones_of_rows + (v + 1.0 / v) @ self.ones
        if self.holds(self.number(sizes) <= self.bound):
            return False
        usable = xp.isfinite(u) & (u > 0.0)
        f = self.f + self.eps * xp.log(xp.where(usable, u, xp.ones_like(u)))
        g = column_potentials(self.scores, problem, self.outside(f), self.parts)
        self.form(self.inside(g))
        if self.momentum is not None:
            self.momentum.slow_down()
        return True

    def scalings(self) -> tuple[Array, Array]:
        """Return what masses are over their weights, row by row and column by column."""
        return self.x / self.a, self.y / self.b

    def exact_rows(self, y: Array) -> Array:
        """Return the x that makes rows right for other columns."""
        return self.a / self.times(y)

    def left(self) -> Array:
        """Return what rows of the kernel are times in the plan."""
        return self.x

    def settle(self) -> tuple[Array, Array]:
        """Return the potentials, of a kernel formed anew where they are no numbers."""
        with quiet():
            f, g = self.potentials()
            size = self.number(abs(f) @ self.ones_of_rows + abs(g) @ self.ones)
            # Right columns alone do not tell whether masses are numbers over their weights.
            if not self.holds(size < float("inf")) and self.absorb():
                f, g = self.potentials()
        return f, g

    def point(self, work: int) -> Point:
        """Return where the sweeps have got to, with its plan."""
        problem = self.problem
        # Scalings that ran out of range make group costs that are no numbers: looked for later.
        with quiet():
            f, g = self.settle()
            right = self.y
            if self.lent_cols:
                # Rows are right without what columns of no weight were lent, too.
                right = self.y * self.inside(problem.b) / self.b
                self.x = self.exact_rows(right)
                self.columns = self.transposed(self.left())
                f, _ = self.potentials()
            left = self.left() * self.inside(problem.a) / self.a if self.lent_rows else self.left()
            error = self.error() + 0.0 * self.eps[..., 0]
            columns = self.columns * self.y / self.b
            f, g, columns, error, left, right, kernel, base = map(
                self.outside, (f, g, columns, error, left, right, self.kernel, self.g)
            )
            phi = problem.home.xp.zeros_like(self.alpha)
            if self.costs.shape[1] > 1:
                every = slice(0, problem.a.shape[1])
                partial = self.scores.partial(every, kernel, left, right)
                phi = self.scores.total(partial, problem.row_masses(f), problem.b * columns)
            return make_point(
                problem, self.alpha, f, g, phi, columns, error, work=work,
                kernel=kernel, left=left, right=right, base=base,
            )  # fmt: skip


class UnbalancedSweeps(KernelSweeps):
    r"""The same where mass may go: damped, and shifted to where both sides keep as much.

    The kernel is formed at g and at :math:`f_0 = \kappa\, T g`, with :math:`T g` what would keep
    all rows, and has :math:`K b = r_0`, which are numbers whatever rows keep: the plan is
    :math:`s_i x_i K_{ij} y_j` with :math:`s = a\, e^{-f_0 / \tau_a} / r_0`, and a plain sweep is

    .. math::
        y \leftarrow y \Big( \frac{b' (y / b)^{-\varepsilon / \tau_b}}
                                  {y \circ K^\top (s \circ x)} \Big)^{\kappa_b}, \qquad
        x \leftarrow (r / K y)^{\kappa_a} ,

    with :math:`b' = b\, e^{-g / \tau_b}` and r = r_0 at first. A translation of f by
    :math:`\lambda` and of g by :math:`-\lambda` changes no plan, but what is asked of it: r by
    :math:`e^{-\lambda / \tau_a}`, and so x by that to the power of kappa.
    """

    def __init__(
        self,
        costs: Costs,
        problem: EntropicProblem,
        alpha: Array,
        g: Array,
        parts: Sequence[slice],
    ) -> None:
        self.alone = problem.a.shape[0] == 1
        ones = problem.home.xp.ones_like(problem.eps)
        # A price may be beyond single precision.
        with quiet():
            (self.kappa_a, self.inverse_a), (self.kappa_b, self.inverse_b) = (
                (self.inside(ones), self.inside(0.0 * ones))
                if side is None
                else (self.inside(side.damping(problem.eps)), self.inside(1.0 / side.tau))
                for side in (problem.rows, problem.cols)
            )
        super().__init__(costs, problem, alpha, g, parts)

    def form(self, g: Array) -> None:
        """Form the kernel at g, and update the rows."""
        xp = self.problem.home.xp
        # A constant costs digits: the kernel does not depend on it.
        level = xp.sum(self.b * g, axis=-1, keepdims=True) / xp.sum(self.b, axis=-1, keepdims=True)
        raw, kernel = _form(self.scores, self.problem, self.outside(g - level), self.parts)
        self.kernel = self.inside(kernel)
        self.y = self.last = self.b
        self.level = self.times(self.b)
        raw = self.inside(raw) - level - self.eps * xp.log(self.level)
        self.g, self.f = g, self.kappa_a * raw
        self.s = self.a * xp.exp(-self.f * self.inverse_a) / self.level
        self.kept_b = self.b * xp.exp(-self.g * self.inverse_b)
        self.x = xp.ones_like(self.a)
        self.columns = self.transposed(self.s)
        self.translate()

    def translate(self) -> None:
        """Shift f and g to where both sides keep as much mass, and make rows right again."""
        xp = self.problem.home.xp
        rows = self.f + self.eps * xp.log(self.x)
        kept_a = xp.sum(self.a * xp.exp(-rows * self.inverse_a), axis=-1, keepdims=True)
        kept_b = xp.sum(self.wanted(), axis=-1, keepdims=True)
        shift = xp.log(kept_a / kept_b) / (self.inverse_a + self.inverse_b)
        shift = xp.where(xp.isfinite(shift), shift, xp.zeros_like(shift))
        self.f, self.g = self.f + shift, self.g - shift
        share = xp.exp(-shift * self.inverse_a)
        self.level = self.level * share
        self.kept_b = self.kept_b * xp.exp(shift * self.inverse_b)
        share = share**self.kappa_a
        self.x, self.columns = self.x * share, self.columns * share

    def wanted(self) -> Array:
        """Return what columns should weigh, as the potentials are."""
        return self.kept_b * (self.y / self.b) ** (-self.eps * self.inverse_b)

    def sweep(self) -> None:
        """Move the columns, make the rows right for them, and shift both."""
        xp, momentum = self.problem.home.xp, self.momentum
        off = self.wanted() / (self.y * self.columns)
        # What keeps less than the smallest number has the potential that it was formed with.
        off = xp.where(self.kept_b > 0.0, off, xp.ones_like(off))
        power, last = self.kappa_b, self.last
        self.last = self.y
        if momentum is not None and momentum.active:
            stride, inertia = momentum.weights
            self.y = self.y * off ** (power * stride) * (self.y / last) ** inertia
        else:
            self.y = self.y * off**power
        self.x = self.exact_rows(self.y)
        self.columns = self.transposed(self.s * self.x)
        self.translate()

    def error(self) -> Array:
        """Return the share of the mass in wrong columns."""
        wanted = self.wanted()
        off = self.problem.home.xp.abs(self.y * self.columns - wanted)
        return self.number((off @ self.ones) / (wanted @ self.ones))

    def potentials(self) -> tuple[Array, Array]:
        """Return f and g that the scalings stand for."""
        xp = self.problem.home.xp
        return self.f + self.eps * xp.log(self.x), self.g + self.eps * xp.log(self.y / self.b)

    def scalings(self) -> tuple[Array, Array]:
        """Return what potentials are above those that the kernel was formed with."""
        return self.x, self.y / self.b

    def exact_rows(self, y: Array) -> Array:
        """Return the x that makes rows right for other columns."""
        return (self.level / self.times(y)) ** self.kappa_a

    def left(self) -> Array:
        """Return what rows of the kernel are times in the plan."""
        return self.s * self.x


def _lifted(problem: EntropicProblem, weights: Array) -> Array:
    xp = problem.home.xp
    if bool(xp.all(weights > 0.0)):
        return weights
    return xp.where(weights > 0.0, weights, xp.full_like(weights, 1e-30))


def _exp_normal(home: Home, scores: Array) -> Array:
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


def _reach(scores: Scores, xp: ModuleType, bias: Array) -> float:
    """Bound the size of scores."""
    reach = scores.reach()
    return reach if math.isinf(reach) else reach + float(xp.max(xp.abs(bias)))


def _form(
    scores: Scores, problem: EntropicProblem, g: Array, parts: Sequence[slice]
) -> tuple[Array, Array]:
    """Form the kernel of g whole: f (B, n) and ``e^((f_i + g_j - M_ij) / eps)``, (B, n, m).

    The largest entry of a row is one; with uneven weights that of b times the row, since a light
    column that is nearer than the others must not make all of these vanish. Where all scores are
    known to be small, they are taken as they are.
    """
    home = problem.home
    xp, bias, potentials = home.xp, g / problem.eps, []
    # Exponents of light columns that are nearer than the others are cut off here.
    highest = 500.0 if home.dtype == xp.float64 else 60.0
    # Well within what scalings are absorbed at, and so are squares of the kernel's entries.
    small = home.on_host and not problem.uneven and _reach(scores, xp, bias) <= 20.0
    kernel = JoinedRows(home, (*problem.a.shape, problem.b.shape[1]), parts)
    for part in parts:
        block = scores.block(part, bias)
        if small:
            kernel.add(part, exp_of(block))
            potentials.append(problem.eps * scores.offset(part) + 0.0 * problem.a[:, part])
            continue
        level = block + problem.log_b[:, None, :] if problem.uneven else block
        top = xp.max(level, axis=2)
        block -= top[:, :, None]
        if problem.uneven:
            block = xp.where(block < highest, block, xp.full_like(block, highest))
        kernel.add(part, _exp_normal(home, block))
        potentials.append(problem.eps * (scores.offset(part) - top))
    return xp.concat(potentials, axis=1), kernel.whole()


def kernel_sweeps(
    costs: Costs, problem: EntropicProblem, alpha: Array, g: Array, parts: Sequence[slice]
) -> KernelSweeps:
    """Form the kernel of weights (B, L) and potentials (B, m), in blocks of rows."""
    kind = UnbalancedSweeps if problem.unbalanced else KernelSweeps
    return kind(costs, problem, alpha, g, parts)


# An eps of this share of the problem's scale needs no other on its way: of 48 problems, 1 / 10
# takes 1 % more work and 1 / 80 1 % less.
DIRECT_FROM = 1 / 25


def dense_bytes(n: int, m: int) -> int:
    """Return what one problem of n by m points takes with its kernel kept: five matrices.

    Examples
    --------
    >>> dense_bytes(1000, 1000)
    40000000
    """
    return 5 * 8 * n * m


def stream_bytes(n: int, m: int, d: int) -> int:
    """Return about what one problem of n by m points of d features takes with its kernel streamed.

    Blocks, and every coordinate in both precisions, as was seen on a device.

    Examples
    --------
    >>> stream_bytes(100_000, 100_000, 64)
    804800000
    """
    return 600_000_000 + 16 * (n + m) * d


@dataclass(frozen=True, eq=False)
class DenseEngine(Engine):
    """Kernels as matrices.

    `crowd` is the number of members that these were once among, zero if they are all.
    """

    crowd: int = 0

    # Sweeps on a kernel that is kept cost little; 0.15 and 0.2 take as long over 66 problems.
    patience: ClassVar[float] = 0.1
    most_sweeps: ClassVar[int] = 2_000

    @property
    def newton_pays(self) -> bool:
        """Whether a Newton step costs less than the mirror steps and sweeps it saves."""
        batch, count, n, m = self.costs.shape
        return count <= 100 and m + count <= 1_500 and 16 * batch * count * n * m <= 1_500_000_000

    def passes(self, alpha: Array) -> BlockPasses:
        """Passes that keep the plan."""
        return BlockPasses(self.costs, self.problem, alpha, self.parts, keeps=True)

    def start(self, alpha: Array, closeness: Array | Closeness = 1e-2, limit: int = 200) -> Point:
        """Come down from a large eps; every problem of a batch has its own and comes down to it."""
        xp, problem = self.problem.home.xp, self.problem
        eps, scale = problem.eps, problem.scale
        # From an eighth, by quarters: from a third 48 problems take 3 % less work, from a
        # sixteenth 4 % less.
        level = xp.where(eps >= DIRECT_FROM * scale, eps, xp.maximum(eps, 0.125 * scale))
        g, left = xp.zeros_like(problem.b), limit
        while left > 0 and bool(xp.any(level > eps)):
            state = self.begin(alpha, g, replace(problem, eps=level))
            # Intermediate values of eps are solved roughly.
            left -= sweep_to(state, 1e-2, left)
            g = state.outside(state.settle()[1])
            # A kernel for the last bit of the way costs a small problem 8 % and saves nothing.
            level = xp.where(level < 8.0 * eps, eps, 0.25 * level)
        return self.sweep(alpha, g, closeness, max(left, 1))

    def begin(self, alpha: Array, g: Array, problem: EntropicProblem | None = None) -> KernelSweeps:
        """Form the kernel at g; with another `problem`, of another eps."""
        return kernel_sweeps(self.costs, problem or self.problem, alpha, g, self._parts)

    @property
    def parts(self) -> list[slice]:
        """Blocks of rows that kernels are formed in."""
        return self._parts

    @cached_property
    def _parts(self) -> list[slice]:
        return row_blocks(self.costs, self.crowd)

    @cached_property
    def stack(self) -> Array:
        """All costs at once, (B, L, n, m), for second derivatives, in the precision of sums."""
        home = self.costs.home
        return home.xp.astype(self.costs.stack(), home.dtype, copy=False)

    def members(self, index: Array) -> DenseEngine:
        """Some problems of the batch only."""
        exact = None if self.exact is None else self.exact.members(index)
        crowd = self.crowd or self.costs.shape[0]
        return DenseEngine(self.costs.members(index), self.problem.members(index), exact, crowd)

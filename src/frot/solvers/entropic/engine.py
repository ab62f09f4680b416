r"""The engine of an ascent on the weights: Sinkhorn's sweeps at given weights, in one loop.

An engine says how a kernel is kept: `begin` makes the first pass, and what it returns, `Sweeps`,
makes one pass after the other. `sweep_to` is the loop over them, whatever they are.

**Momentum** is Chebyshev's scheme, with the rate read from the errors. Sweeps
:math:`g \leftarrow T g` contract the error by some rate r, and near the optimum T is linear
with a spectrum in [0, r]. The second-order scheme

.. math::
    g_{k+1} = g_k + (1 + q)^2 (T g_k - g_k) + q^2 (g_k - g_{k-1}), \qquad
    q = \frac{1 - \sqrt{1 - r}}{1 + \sqrt{1 - r}}

contracts it by q: about the square root of the sweeps is needed. Under it an error that is seen to
contract by :math:`\mu` belongs to :math:`r = (\mu + q)^2 / (\mu (1 + q)^2)`, so that errors tell
r, and r the best q, whatever q is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from frot._base.arrays import Array, at_least, quiet, unit_of
from frot._base.stopping import check_deadline
from frot.costs.protocol import Costs
from frot.solvers.entropic.entropic_problem import EntropicProblem
from frot.solvers.entropic.kernel import Passes, row_blocks
from frot.solvers.entropic.point import Point

if TYPE_CHECKING:
    from typing_extensions import Self

# Sweeps between two looks at the error once there is momentum: 4 take 4 % less work over 48
# problems, 16 take 6 % more, but a device waits for each.
LOOK = 8


class Momentum:
    """Chooses q from the errors it is shown: one number, or one for every member of a batch.

    Where errors grow q was too large: it is lowered, and stays below.

    Parameters
    ----------
    xp : namespace, optional
        Of the arrays of a batch; None for one problem, whose errors are Python's numbers.
    like : array of shape (B,), optional
        What q is like.
    q : float
        Of one problem, where something is known of it.
    window : int
        Sweeps that the rate is read over.

    Attributes
    ----------
    active : bool
        Whether q has been chosen.
    weights : pair of arrays
        What the step T g - g and the last move are taken times, for arrays of points.
    """

    def __init__(
        self, xp: ModuleType | None = None, like: Array = None, q: float = 0.0, window: int = 4
    ) -> None:
        self.xp, self.window = xp, window
        self.q: Array = q if xp is None else xp.zeros_like(like)
        self.active = q > 0.0
        self.weights = self._weights()
        # The largest q, for a rate of 1 - 2.5e-5; 0.9 changes work by 2 %.
        self._most: Array = 0.99 + 0.0 * self.q
        self._sweeps = 0
        # Errors, and the sweeps before them, that q was last chosen by and that were last seen.
        self._last: Array = None
        self._seen: Array = None

    def ahead(self, g: Array, step: Array, previous: Array) -> Array:
        """Return the next potential."""
        if not self.active:
            return g + step
        stride, inertia = self.weights
        return g + stride * step + inertia * (g - previous)

    def sweeps_ahead(self, error: float, sweeps: int, tol: float) -> int:
        """Return how many sweeps of one problem to make before the next look.

        So many as take it to `tol` if the rate stays what it was, but no more than until q is
        chosen.
        """
        last, self._seen = self._seen, (error, sweeps)
        most = LOOK if self.active else max(self._sweeps + self.window - sweeps, 1)
        if last is None or not 0.0 < tol < error < last[0]:
            return most if self.active else 1
        rate = math.log(error / last[0]) / (sweeps - last[1])
        return min(most, math.ceil(math.log(tol / error) / rate))

    def begin(self, error: Array, sweeps: int) -> None:
        """Read the rate from here on."""
        self._last, self._sweeps = error, sweeps

    def forget(self) -> None:
        """Start reading the rate anew, since what went before tells nothing any more."""
        self._last = self._seen = None

    def slow_down(self) -> None:
        """Go on plainly, and with a smaller q if rates ask for one again: steps went too far."""
        self._most = self._pick(self.q > 0.0, 0.9 * self.q, self._most)
        self.q, self.active = 0.0 * self.q, False
        self.forget()

    def update(self, error: Array, sweeps: int) -> None:
        """Look at the error after so many sweeps."""
        if sweeps < self._sweeps + self.window:
            return
        if self.xp is None and not 0.0 < error < math.inf:
            self.forget()
            return
        last, q = self._last, self.q
        if last is not None:
            with quiet():
                seen = (error / last) ** (1.0 / (sweeps - self._sweeps))
                rate = (seen + q) ** 2 / (seen * (1.0 + q) ** 2)
                root = self._pick(rate < 1.0, 1.0 - rate, 0.0 * q) ** 0.5
            better = (1.0 - root) / (1.0 + root)
            # No momentum for members that contract fast, or not linearly yet.
            slow = (seen > 0.5) & (seen < 1.0)
            # What is not a number has not fallen; `~` is deprecated for Python's own bools.
            grew = (q > 0.0) & ((error < last) ^ True)
            # 0.7 or 0.97 in place of the 0.9 change work by 2 %.
            self._most = self._pick(grew, 0.9 * q, self._most)
            chosen = self._pick(slow & (better > q), better, q)
            self.q = self._pick(chosen < self._most, chosen, self._most)
            self.active, self.weights = True, self._weights()
        self._last, self._sweeps = error, sweeps

    def _weights(self) -> tuple[Array, Array]:
        q = self.q if self.xp is None else self.q[..., None]
        return (1.0 + q) * (1.0 + q), q * q

    def _pick(self, where: Array, yes: Array, no: Array) -> Array:
        if self.xp is None:
            return yes if where else no
        return self.xp.where(where, yes, no)


class Closeness(NamedTuple):
    """How closely to sweep where the value tells: mass in wrong columns over |dual| / scale."""

    share: float
    least: float

    def of(self, problem: EntropicProblem, dual: Array) -> Array:
        """Return the mass that may be in wrong columns, (B,)."""
        xp = problem.home.xp
        return at_least(xp, self.share * xp.abs(dual) / problem.scale[:, 0], self.least)


class Sweeps(ABC):
    """Potentials at given weights: g, and the f that makes rows of the plan exact for it.

    Attributes
    ----------
    problem : EntropicProblem
    momentum : Momentum, optional
        None where sweeps need none.
    """

    problem: EntropicProblem
    momentum: Momentum | None

    @abstractmethod
    def sweep(self) -> None:
        """Move g, and make one pass over the kernel: rows, then columns."""

    @abstractmethod
    def error(self) -> Array:
        """Return the mass in wrong columns: (B,), or of one problem a number where that is free."""

    @abstractmethod
    def dual(self) -> Array:
        """Return what potentials add to the dual value, in the shape of the error."""

    def number(self, array: Array) -> Array:
        """Return what is asked of errors in their shape."""
        return array

    def holds(self, truth: Array) -> bool:
        """Whether something is so for all members."""
        return truth if isinstance(truth, bool) else bool(self.problem.home.xp.all(truth))

    def until_look(self, error: Array, sweeps: int, tol: Array) -> int:
        """Return how many sweeps to make before the error is looked at again."""
        return 1

    def renew(self, error: Array, usable: bool, sweeps: int) -> int:
        """Do what sweeps cannot, if it is time to; return how many sweeps that took as long as.

        Errors are `usable` if they are numbers.
        """
        return 0

    @abstractmethod
    def point(self, work: int) -> Point:
        """Return where the sweeps have got to, after so much work."""


def sweep_to(state: Sweeps, tol: Array | Closeness, limit: int) -> int:
    """Sweep until no more than `tol` of the mass is in wrong columns; return what it took.

    Parameters
    ----------
    state : Sweeps
    tol : float, array of shape (B,) or Closeness
    limit : int
        Sweeps at most, and what takes as long.

    Examples
    --------
    >>> import numpy as np
    >>> from frot import Simplex
    >>> from frot._base.arrays import Home
    >>> from frot.costs.stack import Stack
    >>> from frot.solvers.entropic.dense import kernel_sweeps
    >>> half, one = np.array([[0.5, 0.5]]), np.ones((1, 1))
    >>> problem = EntropicProblem.of(Home.of(half), half, half, Simplex(), 1.0, one)
    >>> costs = Stack(np.array([[[[0.0, 1.0], [1.0, 0.0]]]]))
    >>> state = kernel_sweeps(costs, problem, one, np.zeros((1, 2)), [slice(0, 2)])
    >>> work = sweep_to(state, 1e-9, 100)
    >>> state.point(work).plan.sum(axis=1), state.error() <= 1e-9
    (array([[0.5, 0.5]]), True)
    """
    with quiet():
        return _sweep_to(state, tol, limit)


def _sweep_to(state: Sweeps, tol: Array | Closeness, limit: int) -> int:
    sweeps = renewed = 0
    error = state.error()
    while sweeps + renewed < limit:
        aim = _aim(state, tol, error)
        if state.holds(error <= aim):
            break
        # The deadline is checked here and between the blocks of a streamed pass.
        check_deadline()
        count = min(state.until_look(error, sweeps, aim), limit - sweeps - renewed)
        for _ in range(count):
            state.sweep()
        sweeps += count
        error = state.error()
        usable = state.holds(error >= 0.0)
        work = state.renew(error, usable, sweeps)
        if work:
            renewed += work
            error = state.error()
        if not usable and state.holds(error != error):
            break
        if state.momentum is not None:
            state.momentum.update(error, sweeps)
    return sweeps + renewed


def _aim(state: Sweeps, tol: Array | Closeness, error: Array) -> Array:
    """Return the mass that may be in wrong columns, in the shape of the error."""
    if not isinstance(tol, Closeness):
        return state.number(tol)
    # |dual| is at most about the scale: far from the goal it need not be computed.
    if not state.holds(error <= 2.0 * tol.share):
        return tol.share
    return state.number(tol.of(state.problem, state.dual()))


@dataclass(frozen=True, eq=False)
class Engine(ABC):
    """Sinkhorn at given weights, and passes of proofs: for one way of keeping the kernel.

    Attributes
    ----------
    costs : Costs
        Of the search.
    problem : EntropicProblem
        What the problem is besides its costs.
    exact : Costs, optional
        The costs in double precision, where those of the search are not.
    patience : float
        Mass in wrong columns to sweep to, over the gap: small where sweeps are cheap.
    most_sweeps : int
        Sweeps between two steps on the weights, at most.
    """

    costs: Costs
    problem: EntropicProblem
    exact: Costs | None = None

    patience: ClassVar[float]
    most_sweeps: ClassVar[int]

    @property
    def noise(self) -> float:
        """What dual values are off by, of themselves: some units in the last place."""
        return 8.0 * unit_of(self.problem.home)

    @property
    def newton_pays(self) -> bool:
        """Whether joint Newton steps cost little; they take a kernel that is kept."""
        return False

    @abstractmethod
    def start(self, alpha: Array, closeness: Array | Closeness = 1e-2) -> Point:
        """Potentials for the weights, from nothing."""

    @abstractmethod
    def begin(self, alpha: Array, g: Array) -> Sweeps:
        """Sweeps at the weights, from the potential g."""

    def sweep(
        self, alpha: Array, g: Array, closeness: Array | Closeness, limit: int | None = None
    ) -> Point:
        """Potentials for the weights, from the potential g."""
        state = self.begin(alpha, g)
        work = sweep_to(state, closeness, self.most_sweeps if limit is None else limit)
        return state.point(work)

    @property
    def parts(self) -> list[slice]:
        """Blocks of rows that kernels are formed in."""
        return row_blocks(self.costs)

    def first_weights(self, alpha: Array) -> tuple[Array, Array]:
        """Better weights than these to start from, and potentials g where they come with them."""
        return alpha, None

    @abstractmethod
    def passes(self, alpha: Array) -> Passes:
        """The passes that a proof at these weights takes."""

    @property
    def prover(self) -> Engine:
        """The engine that proofs are left to; its problem is in double precision."""
        return self.double()

    def double(self) -> Self:
        """The same in double precision, on the costs as they were given."""
        return self if self.problem.home.dtype == self.problem.home.xp.float64 else self._doubled

    @cached_property
    def _doubled(self) -> Self:
        costs = self.exact or self.costs.double()
        return replace(self, costs=costs, problem=self.problem.to(costs.home), exact=None)

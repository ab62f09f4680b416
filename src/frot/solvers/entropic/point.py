r"""`Point`: weights, potentials and the two values that follow from them.

With rows exact, potentials (f, g) and weights alpha make the plan
:math:`\pi_{ij} = a_i b_j e^{(f_i + g_j - [M_\alpha]_{ij})/\varepsilon}`, whose columns are
:math:`b_j c_j`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import ModuleType
from typing import Any

from frot._base.arrays import Array, quiet
from frot.solvers.entropic.entropic_problem import EntropicProblem


@dataclass(frozen=True, eq=False)
class Point:
    """Weights, potentials and what follows from them, for a batch of B problems.

    Attributes
    ----------
    alpha, f, g, phi : arrays of shape (B, L), (B, n), (B, m) and (B, L)
        With one group phi is left out (zero): nothing depends on it.
    columns : array of shape (B, m)
        Column sums of the plan over b: all ones where the potentials are optimal.
    error : array of shape (B,)
        Mass in wrong columns.
    dual, primal : arrays of shape (B,)
        The dual value, and the objective of the plan as if its columns were right.
    work : int
        Sweeps it took.
    kernel, left, right : arrays of shape (B, n, m), (B, n) and (B, m), optional
        The plan, ``left_i kernel_ij right_j``, where the engine keeps it.
    base : array of shape (B, m), optional
        The potential g that its kernel was formed at.
    """

    alpha: Array
    f: Array
    g: Array
    phi: Array
    columns: Array
    error: Array
    dual: Array
    primal: Array
    work: int = 0
    kernel: Array = None
    left: Array = None
    right: Array = None
    base: Array = None

    @property
    def plan(self) -> Array:
        """The plan, (B, n, m), of an engine that keeps its kernel."""
        return self.left[:, :, None] * self.kernel * self.right[:, None, :]


def make_point(
    problem: EntropicProblem, alpha: Array, f: Array, g: Array, phi: Array, columns: Array,
    error: Array, **kept: Any,
) -> Point:  # fmt: skip
    r"""Add the two values to weights and potentials.

    The entropy of the plan itself is :math:`\langle \Pi, f \oplus g - M_\alpha \rangle`.
    """
    xp = problem.home.xp
    # A search that ran out of range has values that are no numbers, which is looked for.
    with quiet():
        rows, cols = problem.row_masses(f), problem.b * columns
        over = problem.eps[:, 0] * (xp.sum(cols, axis=1) - problem.product_mass)
        entropy = xp.vecdot(rows, f) + xp.vecdot(cols, g) - xp.vecdot(alpha, phi)
        dual = problem.linear(f, g) + problem.adversary.reward(alpha) - over
        primal = problem.adversary.value(phi) + entropy
        if problem.unbalanced:
            # Any plan is one: the objective is that of this plan.
            primal = primal - over + problem.price(rows, cols)
    return Point(alpha, f, g, phi, columns, error, dual, primal, **kept)


def select(xp: ModuleType, chosen: Array, yes: Point, no: Point) -> Point:
    """Return, member by member, the one point or the other."""
    if bool(xp.all(chosen)):
        return yes
    if not bool(xp.any(chosen)):
        return replace(no, work=yes.work)
    parts = {}
    for field in fields(Point):
        first, second = getattr(yes, field.name), getattr(no, field.name)
        if field.name == "work" or first is None:
            parts[field.name] = first
            continue
        where = xp.reshape(chosen, (-1,) + (1,) * (first.ndim - 1))
        parts[field.name] = xp.where(where, first, second)
    return Point(**parts)


def take(xp: ModuleType, index: Array, point: Point) -> Point:
    """Return the point of some members only."""
    parts = {}
    for field in fields(Point):
        part = getattr(point, field.name)
        alone = field.name == "work" or part is None
        parts[field.name] = part if alone else xp.take(part, index, axis=0)
    return Point(**parts)


def gaps(xp: ModuleType, point: Point) -> Array:
    """Return the relative gaps, (B,); where both values are zero there is none."""
    with quiet():
        return _relative(xp, point, point.primal - point.dual)


def _relative(xp: ModuleType, point: Point, width: Array) -> Array:
    """Return a width over the values' size; what is no number is infinitely wide."""
    size = xp.maximum(xp.abs(point.primal), xp.abs(point.dual))
    result = width / xp.where(size > 0.0, size, xp.ones_like(size))
    return xp.where(xp.isnan(result), xp.zeros_like(result) + xp.inf, result)


def distances(problem: EntropicProblem, point: Point) -> Array:
    """Return how wide proven intervals would be about, relative to the values, (B,).

    Mass in wrong columns has to be moved, which costs about as much as costs are; where marginals
    need not be kept, it may stay.
    """
    xp = problem.home.xp
    with quiet():
        width = xp.abs(point.primal - point.dual)
        if not problem.unbalanced:
            width = width + 0.5 * problem.scale[:, 0] * point.error
        return _relative(xp, point, width)


def regrets(problem: EntropicProblem, point: Point) -> Array:
    """Return what the best answer to the plan's costs earns more than alpha, over the value, (B,).

    Unlike the gap it does not see columns that are wrong.
    """
    xp = problem.home.xp
    with quiet():
        more = (
            problem.adversary.value(point.phi)
            - xp.vecdot(point.alpha, point.phi)
            - problem.adversary.reward(point.alpha)
        )
        return _relative(xp, point, more)

r"""The `Engine` of an ascent on the weights: potentials for given weights, and what they prove.

With rows exact, potentials (f, g) and weights alpha make the plan
:math:`\pi_{ij} = a_i b_j e^{(f_i + g_j - [M_\alpha]_{ij})/\varepsilon}`, whose columns are
:math:`b_j c_j`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from frot._base.arrays import quiet
from frot.costs.geometry import Geometry, unit_of
from frot.costs.protocol import Rounding
from frot.solvers.sinkhorn.kernel import (
    RowBlock,
    Scores,
    form_rows,
    row_blocks,
    scores_at,
)
from frot.solvers.sinkhorn.terms import BatchTerms

if TYPE_CHECKING:
    from typing_extensions import Self


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

    alpha: Any
    f: Any
    g: Any
    phi: Any
    columns: Any
    error: Any
    dual: Any
    primal: Any
    work: int = 0
    kernel: Any = None
    left: Any = None
    right: Any = None
    base: Any = None

    @property
    def plan(self) -> Any:
        """The plan, (B, n, m), of an engine that keeps its kernel."""
        return self.left[:, :, None] * self.kernel * self.right[:, None, :]


class FirstPass(NamedTuple):
    """What is known once the plan has been formed.

    Attributes
    ----------
    g, f : arrays of shape (B, m) and (B, n)
        Potentials; rows are exact.
    masses : array of shape (B, m)
        What the columns weigh.
    kept : list of RowBlock
        The plan over a, where there is room for it, but for a factor of its columns.
    across : array of shape (B, m), optional
        That factor, where it is not one.
    """

    g: Any
    f: Any
    masses: Any
    kept: list[RowBlock]
    across: Any = None

    def columns(self, thin: Any) -> Any:
        """Return what columns of `kept` are times for those of the plan to be times `thin`."""
        return thin if self.across is None else thin * self.across


class Passes(Protocol):
    """What a proof asks of the plan at some weights, and how far off the answers may be."""

    @property
    def unit(self) -> float:
        """What a score is off by, relative to its parts."""
        ...

    @property
    def sums(self) -> float:
        """What a sum over points is off by, relative to that of the sizes."""
        ...

    def mix_error(self) -> Rounding:
        """Bound the rounding of the mixed costs."""
        ...

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the rounding of group costs, (B, L), of a plan with marginals u and v."""
        ...

    def first(self, g: Any) -> FirstPass:
        """Form the plan of g."""
        ...

    def second(self, first: FirstPass, thin: Any) -> tuple[Any, Any]:
        """Return row sums over a and group costs of that plan with its columns times `thin`."""
        ...


class BlockPasses:
    """Passes over blocks of rows of the plan at the weights alpha, (B, L).

    The blocks of the first are kept for the second where there is room.
    """

    def __init__(
        self, geometry: Geometry, terms: BatchTerms, alpha: Any, parts: list[slice], keeps: bool
    ) -> None:
        self.terms, self.alpha, self.parts, self.keeps = terms, alpha, parts, keeps
        self.geometry = geometry
        self.scores: Scores = scores_at(geometry, terms, alpha)

    @property
    def unit(self) -> float:
        """What a number is off by, of itself."""
        return unit_of(self.terms.home)

    @property
    def sums(self) -> float:
        """What a sum over points is off by: k terms err by k / 2 units at most, in any order."""
        _, _, n, m = self.geometry.shape
        return (8.0 + 0.5 * (n + m)) * self.unit

    def mix_error(self) -> Rounding:
        """Bound the rounding of the mixed costs."""
        return self.geometry.mix_error(self.alpha)

    def inner_error(self, phi: Any, u: Any, v: Any) -> Any:
        """Bound the rounding of group costs, (B, L), of a plan with marginals u and v."""
        return self.geometry.inner_error(phi, u, v)

    def first(self, g: Any) -> FirstPass:
        """Form the plan once."""
        terms = self.terms
        kept, potentials, masses = [], [], 0.0
        for formed in form_rows(self.scores, terms, g, self.parts):
            potentials.append(formed.f)
            left = terms.a[:, formed.part] / formed.total
            masses = masses + (left[:, None, :] @ formed.kernel)[:, 0, :]
            if self.keeps:
                kept.append(formed)
        return FirstPass(g, terms.home.xp.concat(potentials, axis=1), masses, kept)

    def second(self, first: FirstPass, thin: Any) -> tuple[Any, Any]:
        """Return row sums over a and group costs of the plan with its columns times `thin`."""
        terms, scores = self.terms, self.scores
        sums, partials, right = [], 0.0, first.columns(thin)
        for block in first.kept or form_rows(scores, terms, first.g, self.parts):
            sums.append((block.kernel @ right[:, :, None])[:, :, 0] / block.total)
            left = terms.a[:, block.part] / block.total
            partials = partials + scores.partial(block.part, block.kernel, left, right)
        rows = terms.home.xp.concat(sums, axis=1)
        return rows, scores.total(partials, terms.a * rows, first.masses * thin)


class Search(Protocol):
    """Sinkhorn at given weights: all that steps on the weights ask for."""

    @property
    def terms(self) -> BatchTerms:
        """What the problem is besides its costs."""
        ...

    @property
    def patience(self) -> float:
        """Mass in wrong columns to sweep to, over the gap: small where sweeps are cheap."""
        ...

    @property
    def noise(self) -> float:
        """What dual values are off by, of themselves."""
        ...

    @property
    def newton_pays(self) -> bool:
        """Whether joint Newton steps cost little; they take a kernel that is kept."""
        ...

    def start(self, alpha: Any, closeness: Any = 1e-2) -> Point:
        """Potentials for the weights, from nothing."""
        ...

    def sweep(self, alpha: Any, g: Any, closeness: Any, limit: int | None = None) -> Point:
        """Potentials for the weights, from the potential g."""
        ...

    def double(self) -> Search:
        """The same in double precision."""
        ...


@dataclass(frozen=True, eq=False)
class Engine(ABC):
    """Sinkhorn with proofs, for one way of keeping the kernel.

    `exact` are the costs in double precision, where those of the search are not.
    """

    geometry: Geometry
    terms: BatchTerms
    exact: Geometry | None = None

    @property
    @abstractmethod
    def patience(self) -> float:
        """Mass in wrong columns to sweep to, over the gap: small where sweeps are cheap."""

    @property
    def noise(self) -> float:
        """What dual values are off by, of themselves: some units in the last place."""
        return 8.0 * unit_of(self.terms.home)

    @property
    def newton_pays(self) -> bool:
        """Whether joint Newton steps cost little; they take a kernel that is kept."""
        return False

    @property
    def parts(self) -> list[slice]:
        """Blocks of rows that kernels are formed in."""
        return row_blocks(self.geometry)

    def first_weights(self, alpha: Any) -> tuple[Any, Any]:
        """Better weights than these to start from, and potentials g where they come with them."""
        return alpha, None

    @abstractmethod
    def start(self, alpha: Any, closeness: Any = 1e-2) -> Point:
        """Potentials for the weights, from nothing."""

    @abstractmethod
    def sweep(self, alpha: Any, g: Any, closeness: Any, limit: int | None = None) -> Point:
        """Potentials for the weights, from the potential g."""

    @abstractmethod
    def passes(self, alpha: Any) -> Passes:
        """The passes that a proof at these weights takes."""

    @property
    def prover(self) -> Engine:
        """The engine that proofs are left to; its terms are in double precision."""
        return self.double()

    def double(self) -> Self:
        """The same in double precision, on the costs as they were given."""
        return self if self.terms.home.dtype == self.terms.home.xp.float64 else self._doubled

    @cached_property
    def _doubled(self) -> Self:
        geometry = self.exact or self.geometry.double()
        return replace(self, geometry=geometry, terms=self.terms.at(geometry.home), exact=None)


def make_point(
    terms: BatchTerms, alpha: Any, f: Any, g: Any, phi: Any, columns: Any, error: Any, **kept: Any
) -> Point:
    r"""Add the two values to weights and potentials.

    The entropy of the plan itself is :math:`\langle \Pi, f \oplus g - M_\alpha \rangle`.
    """
    xp = terms.home.xp
    if terms.soft:
        return _soft_point(terms, alpha, f, g, phi, columns, error, **kept)
    # A search that ran out of range has values that are no numbers, which is looked for.
    with quiet():
        masses = terms.b * columns
        linear = xp.vecdot(terms.a, f)
        entropy = linear + xp.vecdot(masses, g) - xp.vecdot(alpha, phi)
        dual = linear + xp.vecdot(terms.b, g) + terms.reward(alpha)
        dual = dual - terms.eps[:, 0] * (xp.sum(masses, axis=1) - 1.0)
        primal = terms.worst(phi) + entropy
    return Point(alpha, f, g, phi, columns, error, dual, primal, **kept)


def _soft_point(
    terms: BatchTerms, alpha: Any, f: Any, g: Any, phi: Any, columns: Any, error: Any, **kept: Any
) -> Point:
    """The same where mass may go: any plan is one, so that the objective is that of this plan."""
    xp = terms.home.xp
    with quiet():
        rows, cols = terms.row_masses(f), terms.b * columns
        over = terms.eps[:, 0] * (xp.sum(cols, axis=1) - terms.product_mass)
        entropy = xp.vecdot(rows, f) + xp.vecdot(cols, g) - xp.vecdot(alpha, phi) - over
        dual = terms.linear(f, g) + terms.reward(alpha) - over
        primal = terms.worst(phi) + entropy + terms.price(rows, cols)
    return Point(alpha, f, g, phi, columns, error, dual, primal, **kept)


def select(xp: Any, chosen: Any, yes: Point, no: Point) -> Point:
    """Return, member by member, the one point or the other."""
    if bool(xp.all(chosen)):
        return yes
    if not bool(xp.any(chosen)):
        return replace(no, work=yes.work)
    parts = {}
    for field in fields(Point):
        one, other = getattr(yes, field.name), getattr(no, field.name)
        if field.name == "work" or one is None:
            parts[field.name] = one
            continue
        where = xp.reshape(chosen, (-1,) + (1,) * (one.ndim - 1))
        parts[field.name] = xp.where(where, one, other)
    return Point(**parts)


def take(xp: Any, index: Any, at: Point) -> Point:
    """Return the point of some members only."""
    parts = {}
    for field in fields(Point):
        part = getattr(at, field.name)
        alone = field.name == "work" or part is None
        parts[field.name] = part if alone else xp.take(part, index, axis=0)
    return Point(**parts)


def gaps(xp: Any, at: Point) -> Any:
    """Return the relative gaps, (B,); where both values are zero there is none."""
    with quiet():
        return _relative(xp, at, at.primal - at.dual)


def _relative(xp: Any, at: Point, width: Any) -> Any:
    """Return a width over the values' size; what is no number is infinitely wide."""
    size = xp.maximum(xp.abs(at.primal), xp.abs(at.dual))
    found = width / xp.where(size > 0.0, size, xp.ones_like(size))
    return xp.where(xp.isnan(found), xp.zeros_like(found) + xp.inf, found)


def distances(terms: BatchTerms, at: Point) -> Any:
    """Return how wide proven intervals would be about, relative to the values, (B,).

    Mass in wrong columns has to be moved, which costs about as much as costs are; where marginals
    need not be kept, it may stay.
    """
    xp = terms.home.xp
    with quiet():
        width = xp.abs(at.primal - at.dual)
        if not terms.soft:
            width = width + 0.5 * terms.scale[:, 0] * at.error
        return _relative(xp, at, width)


def regrets(terms: BatchTerms, at: Point) -> Any:
    """Return what the best answer to the plan's costs earns more than alpha, over the value, (B,).

    Unlike the gap it does not see columns that are wrong.
    """
    xp = terms.home.xp
    with quiet():
        more = terms.worst(at.phi) - xp.vecdot(at.alpha, at.phi) - terms.reward(at.alpha)
        return _relative(xp, at, more)

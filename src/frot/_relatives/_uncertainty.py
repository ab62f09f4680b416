"""Sets of weights an adversary may choose from, each by its linear maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from frot._arrays import read_only
from frot._errors import InputError, brief
from frot._read_numbers import check_finite, read_numbers
from frot._validate import check_count

__all__ = ["Box", "CappedSimplex", "Ellipsoid", "Polyhedron", "Polytope", "Uncertainty"]


class Uncertainty(Protocol):
    """A convex, bounded, non-empty set of weights, known by its best answer to group costs."""

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the largest <alpha, phi> over the set, and the alpha that attains it."""
        ...


def _vector(values: Any, name: str) -> np.ndarray:
    array = read_numbers(values, name)
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{name}: has shape {array.shape}, expected one number a group")
    check_finite(array, name)
    return read_only(array.copy())


def _matrix(values: Any, name: str, what: str) -> np.ndarray:
    array = read_numbers(values, name)
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"{name}: has shape {array.shape}, expected {what}")
    check_finite(array, name)
    return read_only(array.copy())


@dataclass(frozen=True)
class CappedSimplex:
    r"""Weights of sum one of which none is above 1/k: the k worst groups share the weight.

    .. math::
        \{ \alpha : 0 \le \alpha_l \le 1/k,\; \textstyle\sum_l \alpha_l = 1 \}

    k = 1 is the simplex of feature-robust transport, k = L the mean of all costs.

    Parameters
    ----------
    k : int

    Examples
    --------
    >>> CappedSimplex(2).best(np.array([3.0, 1.0, 2.0]))
    (2.5, array([0.5, 0. , 0.5]))
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_count(self.k, "k"))

    def check(self, count: int) -> None:
        """Refuse more shares than groups: the set would be empty."""
        if self.k > count:
            raise InputError(
                f"uncertainty: CappedSimplex(k={self.k}) is empty for {count} groups; "
                f"use k from 1 to {count}"
            )

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean of the k largest costs, and equal weights on them."""
        top = np.argsort(-phi, kind="stable")[: self.k]
        alpha = np.zeros(len(phi))
        alpha[top] = 1.0 / self.k
        return float(phi[top].mean()), alpha


@dataclass(frozen=True, eq=False)
class Box:
    r"""Weights between bounds, :math:`l \le \alpha \le u`.

    Parameters
    ----------
    low, high : arrays of shape (L,)

    Examples
    --------
    >>> Box([0.0, 1.0], [1.0, 2.0]).best(np.array([1.0, -1.0]))
    (0.0, array([1., 1.]))
    """

    low: Any
    high: Any

    def __post_init__(self) -> None:
        low, high = _vector(self.low, "low"), _vector(self.high, "high")
        if low.shape != high.shape:
            raise InputError(f"low, high: have {len(low)} and {len(high)} entries")
        if (low > high).any():
            where = int(np.argmax(low > high))
            raise InputError(
                f"low, high: the box is empty, low[{where}] = {low[where]:g} > high[{where}] = "
                f"{high[where]:g}"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.low)

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        """Take the upper bound where the cost is positive, the lower one elsewhere."""
        alpha = np.where(phi > 0.0, self.high, self.low)
        return float(alpha @ phi), alpha


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    r"""Weights :math:`\{ c + B u : \|u\|_2 \le 1 \}` around a centre.

    Parameters
    ----------
    centre : array of shape (L,)
    shape : array of shape (L, q), or a radius
        The factor B; a number r stands for the ball of radius r.

    Examples
    --------
    >>> Ellipsoid([1.0, 1.0], 0.5).best(np.array([3.0, 4.0]))
    (9.5, array([1.3, 1.4]))
    """

    centre: Any
    shape: Any

    def __post_init__(self) -> None:
        centre = _vector(self.centre, "centre")
        shape = read_numbers(self.shape, "shape")
        if shape.ndim == 0:
            shape = float(shape) * np.eye(len(centre))
        shape = _matrix(shape, "shape", f"a radius or ({len(centre)}, q)")
        if len(shape) != len(centre):
            raise InputError(f"shape: has {len(shape)} rows for a centre of {len(centre)} entries")
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "shape", shape)

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.centre)

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        r"""Return :math:`\langle c, \phi \rangle + \|B^\top \phi\|_2`."""
        along = self.shape.T @ phi
        # Dividing by the largest first keeps the norm of tiny costs from vanishing.
        largest = float(np.abs(along).max(initial=0.0))
        if largest == 0.0:
            return float(self.centre @ phi), self.centre
        norm = largest * float(np.linalg.norm(along / largest))
        alpha = self.centre + self.shape @ (along / norm)
        return float(self.centre @ phi) + norm, alpha


@dataclass(frozen=True, eq=False)
class Polytope:
    """The convex hull of some weights.

    Parameters
    ----------
    vertices : array of shape (s, L)

    Examples
    --------
    >>> Polytope([[1.0, 0.0], [0.0, 2.0]]).best(np.array([1.0, 1.0]))
    (2.0, array([0., 2.]))
    """

    vertices: Any

    def __post_init__(self) -> None:
        vertices = read_numbers(self.vertices, "vertices")
        if vertices.ndim and len(vertices) == 0:
            raise InputError("vertices: there are none, so the set is empty")
        vertices = _matrix(vertices, "vertices", "(vertices, groups)")
        object.__setattr__(self, "vertices", vertices)

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.vertices.shape[1]

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the best vertex."""
        values = self.vertices @ phi
        top = int(np.argmax(values))
        return float(values[top]), self.vertices[top]


@dataclass(frozen=True, eq=False)
class Polyhedron:
    r"""Weights that satisfy :math:`A \alpha \le b`, and :math:`E \alpha = e` where given.

    Parameters
    ----------
    A : array of shape (q, L)
    b : array of shape (q,)
    equal : pair (E, e) of arrays of shapes (s, L) and (s,), optional

    Raises
    ------
    InputError
        If no weights satisfy them, or some may grow without limit.

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    >>> Polyhedron(rows, [1.0, 2.0, 0.0, 0.0]).best(np.array([1.0, 1.0]))
    (3.0, array([1., 2.]))
    """

    A: Any
    b: Any
    equal: Any = None

    def __post_init__(self) -> None:
        A, b = _matrix(self.A, "A", "(constraints, groups)"), _vector(self.b, "b")
        if len(A) != len(b):
            raise InputError(f"A, b: {len(A)} rows but {len(b)} right-hand sides")
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "b", b)
        if self.equal is not None:
            if not isinstance(self.equal, list | tuple) or len(self.equal) != 2:
                raise InputError(f"equal: {brief(self.equal)} is no pair (E, e)")
            E, e = self.equal
            E, e = _matrix(E, "equal", "(constraints, groups)"), _vector(e, "equal")
            if E.shape != (len(e), A.shape[1]):
                raise InputError(f"equal: shapes {E.shape} and {e.shape} do not go with A")
            object.__setattr__(self, "equal", (E, e))
        for sign in (1.0, -1.0):
            for group in range(self.size):
                probe = np.zeros(self.size)
                probe[group] = sign
                self.best(probe)

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.A.shape[1]

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        """Maximise <alpha, phi> by HiGHS."""
        # Imported here, since it would make `import frot` wait.
        from scipy.optimize import linprog

        unit = float(np.abs(phi).max(initial=0.0)) or 1.0
        E, e = self.equal or (None, None)
        found = linprog(
            -phi / unit,
            A_ub=self.A,
            b_ub=self.b,
            A_eq=E,
            b_eq=e,
            bounds=(None, None),
            method="highs",
        )
        if found.status == 2:
            raise InputError("uncertainty: the set is empty; no weights satisfy A alpha <= b")
        if found.status != 0:
            raise InputError(
                "uncertainty: the set is unbounded; add rows to A that limit every weight"
            )
        return float(found.x @ phi), np.asarray(found.x)

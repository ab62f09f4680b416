"""Sets of weights that an adversary may choose from besides the (capped) simplex.

Each knows its best answer to group costs, whether weights are in it, and a way into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from frot._base.arrays import UNIT, read_only
from frot._base.errors import InputError, brief
from frot._base.validate import check_finite, read_numbers

# Units in the last place by which weights may miss a set they are computed to be in.
ROUNDING = 64.0
# How closely HiGHS has to meet constraints: the most that it takes.
FEASIBILITY = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def _vector(values: Any, name: str) -> np.ndarray:
    return _matrix(values, name, "one number per group", ndim=1)


def _matrix(values: Any, name: str, what: str, ndim: int = 2) -> np.ndarray:
    array = read_numbers(values, name)
    if array.ndim != ndim or array.size == 0:
        raise InputError(f"{name}: has shape {array.shape}, expected {what}")
    check_finite(array, name)
    return read_only(array.copy())


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

    def contains(self, alpha: np.ndarray) -> bool:
        """Whether every weight is between its bounds."""
        return bool(((alpha >= self.low) & (alpha <= self.high)).all())

    def project(self, alpha: np.ndarray) -> np.ndarray:
        """Move every weight to the nearest bound.

        Examples
        --------
        >>> Box([0.0, 1.0], [1.0, 2.0]).project(np.array([3.0, 1.5]))
        array([1. , 1.5])
        """
        return np.clip(alpha, self.low, self.high)


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

    def _inverse(self, alpha: np.ndarray) -> np.ndarray:
        """Return the least u with c + B u nearest to alpha."""
        return np.linalg.lstsq(self.shape, alpha - self.centre, rcond=None)[0]

    def contains(self, alpha: np.ndarray) -> bool:
        """Whether alpha is c + B u of a u of length one at most."""
        u = self._inverse(alpha)
        size = np.abs(alpha).max() + np.abs(self.centre).max()
        off = np.abs(self.centre + self.shape @ u - alpha).max()
        room = ROUNDING * len(alpha) * UNIT
        return bool(np.linalg.norm(u) <= 1.0 + room and off <= room * size)

    def project(self, alpha: np.ndarray) -> np.ndarray:
        """Shorten u to length one.

        Examples
        --------
        >>> Ellipsoid([1.0, 1.0], 0.5).project(np.array([1.0, 3.0])).round(9)
        array([1. , 1.5])
        """
        u = self._inverse(alpha)
        return self.centre + self.shape @ (u / max(1.0, float(np.linalg.norm(u))))


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

    def contains(self, alpha: np.ndarray) -> bool:
        """Whether alpha is a mixture of the vertices."""
        if (self.vertices == alpha).all(axis=1).any():
            return True
        size = np.abs(self.vertices).max()
        return bool(np.abs(self.project(alpha) - alpha).max() <= ROUNDING * self.size * UNIT * size)

    def project(self, alpha: np.ndarray) -> np.ndarray:
        """Return the nearest mixture of the vertices.

        Examples
        --------
        >>> Polytope([[1.0, 0.0], [0.0, 1.0]]).project(np.array([1.0, 1.0])).round(9)
        array([0.5, 0.5])
        """
        # Imported here, since it would make `import frot` wait.
        from scipy.optimize import nnls

        # The nearest mixture of x_i minimises |sum w_i x_i|^2 + (1 - sum w_i)^2 but for its sum.
        away = self.vertices - alpha
        unit = float(np.abs(away).max()) or 1.0
        matrix = np.vstack([away.T / unit, np.ones((1, len(away)))])
        shares, _ = nnls(matrix, np.append(np.zeros(self.size), 1.0))
        return shares / float(shares.sum()) @ self.vertices


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
                raise InputError(f"equal: {brief(self.equal)} is not a pair (E, e)")
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
            -phi / unit, self.A, self.b, E, e, (None, None), method="highs", options=FEASIBILITY
        )
        if found.status == 2:
            raise InputError("adversary: the set is empty; no weights satisfy A alpha <= b")
        if found.status != 0:
            raise InputError(
                "adversary: the set is unbounded; add rows to A that limit every weight"
            )
        return float(found.x @ phi), np.asarray(found.x)

    def contains(self, alpha: np.ndarray) -> bool:
        """Whether alpha meets all constraints, to some units of what is summed for them."""
        E, e = self.equal or (self.A[:0], self.b[:0])
        room = ROUNDING * (self.size + 8.0) * UNIT
        low = self.A @ alpha - self.b <= room * (np.abs(self.A) @ np.abs(alpha) + np.abs(self.b))
        flat = np.abs(E @ alpha - e) <= room * (np.abs(E) @ np.abs(alpha) + np.abs(e))
        return bool(low.all() and flat.all())

    def project(self, alpha: np.ndarray) -> np.ndarray:
        """Move towards an interior point until the constraints hold.

        Examples
        --------
        >>> rows = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
        >>> box = Polyhedron(rows, [1.0, 1.0, 0.0, 0.0])
        >>> box.contains(box.project(np.array([2.0, 0.5])))
        True
        """
        centre, tight = self._inside
        E, e = self.equal or (self.A[:0], self.b[:0])
        flat, level = np.vstack([E, self.A[tight]]), np.concatenate([e, self.b[tight]])
        for _ in range(3):
            # Onto the flat that all weights of the set are on, and again for the last digits.
            for _ in range(2 if len(flat) else 0):
                alpha = alpha - np.linalg.lstsq(flat, flat @ alpha - level, rcond=None)[0]
            over = (self.A @ alpha - self.b)[~tight]
            room = (self.b - self.A @ centre)[~tight]
            if not (over > 0.0).any():
                break
            # A little further, so that rounding does not lead out again.
            over = over + 1e-13 * room
            share = float((over[over > 0.0] / (over + room)[over > 0.0]).max())
            alpha = alpha + share * (centre - alpha)
        return alpha

    @cached_property
    def _inside(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights with room in every row that can have any, and which rows cannot.

        Scaled up far enough, such weights have a room of one.
        """
        from scipy.optimize import linprog

        count, size = self.A.shape
        E, e = self.equal or (self.A[:0], self.b[:0])
        found = linprog(
            np.concatenate([np.zeros(size + 1), -np.ones(count)]),
            A_ub=np.hstack([self.A, -self.b[:, None], np.eye(count)]),
            b_ub=np.zeros(count),
            A_eq=np.hstack([E, -e[:, None], np.zeros((len(e), count))]),
            b_eq=np.zeros(len(e)),
            bounds=[(None, None)] * size + [(1.0, None)] + [(0.0, 1.0)] * count,
            method="highs",
            options=FEASIBILITY,
        )
        return found.x[:size] / found.x[size], found.x[size + 1 :] < 0.5

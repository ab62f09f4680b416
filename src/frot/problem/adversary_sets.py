"""Sets of weights that an adversary may choose from besides the (capped) simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._base.arrays import read_only, short_array
from frot._base.errors import InputError
from frot._base.validate import check_finite, read_numbers


def _vector(values: Any, name: str) -> np.ndarray:
    return _matrix(values, name, "one number per group", ndim=1)


def _matrix(values: Any, name: str, what: str, ndim: int = 2) -> np.ndarray:
    array = read_numbers(values, name)
    if array.ndim != ndim or array.size == 0:
        raise InputError(f"{name}: has shape {array.shape}, expected {what}")
    check_finite(array, name)
    return read_only(array.copy())


@dataclass(frozen=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        return f"Ellipsoid(centre={short_array(self.centre)}, shape={short_array(self.shape)})"

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


@dataclass(frozen=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        return f"Polytope(vertices={short_array(self.vertices)})"

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.vertices.shape[1]

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the best vertex."""
        values = self.vertices @ phi
        top = int(np.argmax(values))
        return float(values[top]), self.vertices[top]

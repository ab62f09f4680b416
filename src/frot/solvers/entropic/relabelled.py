r"""Sinkhorn divergences between the two parts of a pool of points, under many labellings at once.

With K the kernel of all N points, of which A (N, B) has the masses of the first part under each of
B labellings and A' those of the second, a sweep of all of them is two products of matrices,

.. math:: u \leftarrow 1 / K (A' v), \qquad v \leftarrow 1 / K (A u) ,

and for a part with itself :math:`x \leftarrow 1 / K (A x)` and
:math:`x \leftarrow \sqrt{x / K (A x)}` in turn: near the solution these multiply an error by
:math:`-\lambda` and :math:`(1 - \lambda) / 2`, for eigenvalues of K from zero to one, which is an
eighth at most for the two. K is scaled by potentials of the pool with itself, so that all scalings
begin near one. Points are never matched with themselves between the parts, and always may be within
one: the two kernels have bases of their own.

The number of sweeps is fixed. What comes out is the dual value of where they end, a function of the
labelling alone, which is all that a permutation test asks for. A look at when each labelling has
converged would be slower: how many sweeps it takes to prove a value depends on the largest cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class PoolPotentials:
    """Potentials of a pool of points with itself, over eps, for one matrix of costs (N, N).

    Attributes
    ----------
    eps : float
    cross, own : arrays of shape (N,)
        Where no point may be matched with itself, and where all may.
    """

    eps: float
    cross: np.ndarray
    own: np.ndarray

    @classmethod
    def of(cls, cost: np.ndarray, eps: float) -> PoolPotentials:
        """Find them, about; costs are symmetric."""
        scores = -cost / eps
        own = _potentials(scores)
        np.fill_diagonal(scores, -np.inf)
        return cls(eps, _potentials(scores), own)

    def divergences(self, cost: np.ndarray, inside: np.ndarray, sweeps: int) -> np.ndarray:
        """Return the divergence between the points inside and those outside, (B,).

        Parameters
        ----------
        cost : array of shape (N, N)
        inside : array of bool, shape (N, B)
        sweeps : int

        Examples
        --------
        >>> points = np.array([0.0, 0.1, 2.0, 2.1])
        >>> cost = (points[:, None] - points) ** 2
        >>> inside = np.array([[True, True, False, False], [True, False, True, False]]).T
        >>> PoolPotentials.of(cost, 0.5).divergences(cost, inside, 50).round(3)
        array([4.  , 0.01])
        """
        outside = ~inside
        first, second = inside / inside.sum(axis=0), outside / outside.sum(axis=0)
        between = self._between(cost, first, second, sweeps)
        # An even number, so that the last one halves what is left.
        few = 2 * math.ceil(sweeps / 4)
        kernel = self._kernel(cost, self.own)
        return between - 0.5 * (
            self._within(kernel, first, few) + self._within(kernel, second, few)
        )

    def _kernel(self, cost: np.ndarray, base: np.ndarray) -> np.ndarray:
        return np.exp(base[:, None] + base - cost / self.eps)

    def _between(
        self, cost: np.ndarray, first: np.ndarray, second: np.ndarray, sweeps: int
    ) -> np.ndarray:
        with np.errstate(over="ignore"):
            kernel = self._kernel(cost, self.cross)
        np.fill_diagonal(kernel, 0.0)
        u, v = np.empty(first.shape), np.ones(first.shape)
        # Fresh arrays would cost more than what is written to them. Sums that underflow are lifted:
        # the dual value stays a lower bound.
        masses = np.empty(first.shape)
        for sweep in range(sweeps):
            if sweep > 0:
                np.matmul(kernel, np.multiply(first, u, out=masses), out=v)
                np.divide(1.0, np.maximum(v, 1e-290, out=v), out=v)
            np.matmul(kernel, np.multiply(second, v, out=masses), out=u)
            np.divide(1.0, np.maximum(u, 1e-290, out=u), out=u)
        # Rows are exact, so that the plan has mass one.
        return self.eps * (_mean(first, u, self.cross) + _mean(second, v, self.cross))

    def _within(self, kernel: np.ndarray, masses: np.ndarray, sweeps: int) -> np.ndarray:
        x, elsewhere = np.ones(masses.shape), masses == 0.0
        columns, scaled = kernel @ masses, np.empty(masses.shape)
        for sweep in range(sweeps):
            # Nothing holds the scalings of points that are not there.
            np.copyto(columns, 1.0, where=elsewhere)
            np.maximum(columns, 1e-290, out=columns)
            if sweep % 2 == 1:
                np.sqrt(columns, out=columns)
            x /= columns
            np.matmul(kernel, np.multiply(masses, x, out=scaled), out=columns)
            columns *= x
        excess = (masses * columns).sum(axis=0) - 1.0
        return self.eps * (2.0 * _mean(masses, x, self.own) - excess)


def _mean(masses: np.ndarray, scaling: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Return the mean potential over eps, (B,)."""
    return np.einsum("ib,ib->b", masses, np.log(scaling)) + base @ masses


def _potentials(scores: np.ndarray) -> np.ndarray:
    r"""Return h of the pool with itself, about: :math:`\sum_j e^{h_i + h_j + s_{ij}} = N`."""
    h = np.zeros(len(scores))
    # No more than a beginning.
    for _ in range(10):
        shifted = scores + h
        top = shifted.max(axis=1)
        means = np.exp(shifted - top[:, None]).mean(axis=1)
        h = 0.5 * (h - top - np.log(means))
    return h

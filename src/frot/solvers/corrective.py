r"""The best mixture of plans that are already known: Frank-Wolfe's fully corrective step.

A plan enters the objective only through its L group costs, so mixing k plans is a problem on the
k-simplex, min over w of G_eta(Phi w) with Phi of shape (L, k). It is solved by the interior point
of :mod:`frot.solvers.exact.interior`, with k weights in the place of arcs, and reduced to a k x k
system since here the groups may be many.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from frot._base.arrays import quiet
from frot.problem.adversary import SimplexFamily
from frot.solvers.exact.interior import step_length

__all__ = ["best_mixture"]


def best_mixture(
    phis: np.ndarray, adversary: SimplexFamily, unit: float, tol: float = 1e-10, max_iter: int = 100
) -> tuple[np.ndarray, np.ndarray]:
    r"""Minimise :math:`G_\eta(\Phi w)` over the simplex.

    `phis`, (L, k), are the group costs of k plans, `unit` their scale, and `tol` the duality gap at
    which to stop, in units of it. Returns the weights, (k,), and the adversary's at the saddle
    point, (L,).

    Examples
    --------
    >>> from frot import Simplex
    >>> w, alpha = best_mixture(np.array([[1.0, 0.0], [0.0, 1.0]]), Simplex(), unit=1.0)
    >>> w.round(6), alpha.round(6)
    (array([0.5, 0.5]), array([0.5, 0.5]))
    """
    if phis.shape[1] == 1:
        return np.ones(1), adversary.best(phis[:, 0])[1]
    if adversary.single(len(phis)):
        return np.eye(phis.shape[1])[int(np.argmin(phis.mean(axis=0)))], np.full(
            len(phis), adversary.cap
        )
    mixture = _Mixture(phis / unit, adversary.eta / unit, adversary.log_prior, adversary.cap)
    for _ in range(max_iter):
        if mixture.complementarity <= tol or not mixture.step():
            break
    return mixture.w / mixture.w.sum(), adversary.project(mixture.alpha)


class _Mixture:
    """An interior iterate: weights w with reduced costs z, alpha with slacks s, levels y and t.

    With a cap, alpha has room r up to it, of price v.
    """

    def __init__(
        self, costs: np.ndarray, eta: float, log_prior: np.ndarray | None, cap: float = 1.0
    ) -> None:
        groups, count = costs.shape
        self.costs, self.eta = costs, eta
        self.log_prior = np.zeros(groups) if log_prior is None else log_prior
        self.w = np.full(count, 1.0 / count)
        self.alpha = np.full(groups, 1.0 / groups)
        reduced = self.alpha @ costs
        self.y = float(reduced.min()) - 0.1
        self.z = reduced - self.y
        free = costs @ self.w - eta * (np.log(self.alpha) - self.log_prior)
        self.t = float(free.max()) + 0.1
        self.s = self.t - free
        self.capped = cap < 1.0
        self.r = cap - self.alpha if self.capped else np.zeros(0)
        self.v = 0.1 * np.ones(len(self.r))
        if self.capped:
            self.s = self.s + self.v

    @property
    def complementarity(self) -> float:
        """The duality gap of the mixture problem, once feasible."""
        return float(self.w @ self.z + self.alpha @ self.s + self.r @ self.v)

    def step(self) -> bool:
        """Take one predictor-corrector step; False if nothing moves any more."""
        # A slack that rounds to zero leaves no direction: that is looked for, not warned of.
        with quiet():
            return self._step()

    def _step(self) -> bool:
        total = self.complementarity
        mu = total / (len(self.w) + len(self.alpha) + len(self.r))
        try:
            self._factor()
            probe = self._direction(-self.w * self.z, -self.alpha * self.s, -self.r * self.v)
            length = self._length(probe, 1.0)
            ahead = (self.w + length * probe[0]) @ (self.z + length * probe[1])
            ahead += (self.alpha + length * probe[2]) @ (self.s + length * probe[3])
            ahead += (self.r + length * probe[4]) @ (self.v + length * probe[5])
            sigma = min(1.0, max((ahead / total) ** 3, 1e-6))
            move = self._direction(
                sigma * mu - self.w * self.z - probe[0] * probe[1],
                sigma * mu - self.alpha * self.s - probe[2] * probe[3],
                sigma * mu - self.r * self.v - probe[4] * probe[5],
            )
        except (LinAlgError, ValueError):
            return False
        if not all(np.isfinite(part).all() for part in move):
            return False
        length = self._length(move, max(0.9, 1.0 - mu))
        self.w, self.z = self.w + length * move[0], self.z + length * move[1]
        self.alpha, self.s = self.alpha + length * move[2], self.s + length * move[3]
        self.r, self.v = self.r + length * move[4], self.v + length * move[5]
        self.y, self.t = self.y + length * move[6], self.t + length * move[7]
        return length > 1e-8

    def _length(self, move: tuple, share: float) -> float:
        values = (self.w, self.z, self.alpha, self.s, self.r, self.v)
        pairs = zip(values, move[:6], strict=True)
        return min(step_length(value, change, share) for value, change in pairs)

    def _factor(self) -> None:
        """Factor diag(z / w) + Phi^T diag(ease) Phi and solve for the two borders."""
        # How far alpha gives way when a group's cost rises by one.
        self._ease = self.alpha / (self.eta + self.s)
        if self.capped:
            self._ease = 1.0 / (1.0 / self._ease + self.v / self.r)
        matrix = self.costs.T @ (self.costs * self._ease[:, None])
        diagonal = np.einsum("ii->i", matrix)
        diagonal += self.z / self.w
        self._scale = 1.0 / np.sqrt(diagonal)
        matrix *= self._scale[:, None]
        matrix *= self._scale
        diagonal[:] = 1.0 + 1e-14
        self._cholesky = cho_factor(matrix, lower=True, overwrite_a=True)
        self._pull = self._ease @ self.costs
        self._sides = self._back(np.column_stack([np.ones(len(self.w)), self._pull]))

    def _back(self, right: np.ndarray) -> np.ndarray:
        scaled = right * self._scale[:, None]
        return cho_solve(self._cholesky, scaled) * self._scale[:, None]

    def _direction(self, wz: np.ndarray, alphas: np.ndarray, rooms: np.ndarray) -> tuple:
        off_z = self.alpha @ self.costs - self.y - self.z
        off_s = self.t - self.costs @ self.w - self.s
        if self.eta > 0.0:
            off_s += self.eta * (np.log(self.alpha) - self.log_prior)
        if self.capped:
            off_s += self.v
        level = alphas / self.alpha - off_s
        if self.capped:
            level -= rooms / self.r
        eased = self._ease * level
        base = self._back((wz / self.w - off_z - eased @ self.costs)[:, None])[:, 0]
        # dw = base + dy sides_0 + dt sides_1, with sum dw and sum dalpha what is still missing.
        pull, sides = self._pull, self._sides
        system = np.stack([sides.sum(axis=0), pull @ sides])
        system[1, 1] -= self._ease.sum()
        missing = np.array(
            [
                1.0 - self.w.sum() - base.sum(),
                1.0 - self.alpha.sum() - eased.sum() - pull @ base,
            ]
        )
        dy, dt = np.linalg.solve(system, missing)
        dw = base + sides @ np.array([dy, dt])
        dalpha = self._ease * (level - dt + self.costs @ dw)
        dz = off_z + dalpha @ self.costs - dy
        ds = (alphas - self.s * dalpha) / self.alpha
        dr, dv = self.r, self.v
        if self.capped:
            dr, dv = -dalpha, (rooms + self.v * dalpha) / self.r
        return dw, dz, dalpha, ds, dr, dv, dy, dt

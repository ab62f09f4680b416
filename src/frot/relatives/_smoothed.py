r"""Subspace-robust transport, smoothed on both sides: many cheap steps before the exact ones.

.. math::
    \min_{\Pi \in U(a, b)} \max_{\Omega \in \mathcal F_k}
    \langle \Omega, V_\Pi \rangle - \tfrac{\tau}{2} \|\Omega\|_F^2
    + \varepsilon \, \mathrm{KL}(\Pi \,|\, a b^\top)

The best plan is a mixture of very many vertices, which an exact solver has to collect one by one.
An entropic plan is near all of them at once, and costs a few sweeps in single precision: the
average moves towards it as far as that lowers the smoothed maximum (a conditional gradient step).
Eigenvectors are those of the last step after one more product. Nothing here proves anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from frot.plans.feasible import round_plan
from frot.plans.plan import Plan
from frot.relatives._displacement import Displacements
from frot.relatives._fantope import top_sum

# Both smoothings to begin with, and what is left of them after each stage, relative to the value.
FIRST = 0.03
SHRINK = 0.6
LAST = 1e-4
# A stage ends where its own gap is this share of eps.
DONE = 1.0
# Steps without the end of a stage after which nothing more is to be expected.
PATIENCE = 200
# Directions kept beyond k to begin with.
EXTRA = 20
SWEEPS = 300
ERROR = 0.02
TINY = np.float32(1e-30)


def capped_weights(values: np.ndarray, k: int, tau: float) -> np.ndarray:
    r"""Return the weights in [0, 1] of sum k that maximise
    :math:`\sum_i \omega_i \lambda_i - \tfrac{\tau}{2} \omega_i^2`.

    Examples
    --------
    >>> capped_weights(np.array([0.0, 2.0, 2.2, 9.0]), 2, 0.4).round(6)
    array([0.  , 0.25, 0.75, 1.  ])
    """  # noqa: D205
    if k >= len(values):
        return np.ones(len(values))
    # The sum is piecewise linear in the level, with corners where a weight meets 0 or 1.
    corners = np.sort(np.concatenate([values, values - tau]))
    sums = np.clip((values - corners[:, None]) / tau, 0.0, 1.0).sum(axis=1)
    right = int(np.searchsorted(-sums, -float(k)))
    right = min(max(right, 1), len(corners) - 1)
    drop = sums[right - 1] - sums[right]
    share = (sums[right - 1] - k) / drop if drop > 0.0 else 0.0
    level = corners[right - 1] + share * (corners[right] - corners[right - 1])
    return np.clip((values - level) / tau, 0.0, 1.0)


class Answer(NamedTuple):
    """Eigenvalues, ascending, the eigenvectors in the basis, and the adversary's weights."""

    values: np.ndarray
    vectors: np.ndarray
    omega: np.ndarray

    def cost(self, plane: np.ndarray) -> float:
        """Return <Omega, plane>."""
        return float(self.omega @ np.einsum("ik,ik->k", self.vectors, plane @ self.vectors))


@dataclass(eq=False)
class Smoothed:
    """The average plan, the directions it moves mass in most, and how smooth all is."""

    at: Displacements
    k: int
    plan: Plan
    values: np.ndarray
    vectors: np.ndarray
    eps: float
    tau: float
    g: np.ndarray
    length: float = 0.5
    inner: float = np.inf
    # What entropy adds to the cost of a plan, in units of eps; learnt where exact costs are known.
    bias: float = 1.0
    cost: float = -np.inf
    omega: np.ndarray = field(default_factory=lambda: np.zeros(0))
    waited: int = 0
    least: float = 0.0

    @classmethod
    def begin(
        cls, at: Displacements, k: int, plan: Plan, values: np.ndarray, vectors: np.ndarray
    ) -> Smoothed:
        """Begin at a plan and its leading eigenvalues, ascending."""
        value = top_sum(values, k)
        eps, tau = FIRST * value, 4.0 * FIRST * value / k
        g = np.zeros(len(at.Y))
        plan = Plan(plan.dense(), copy=False)
        return cls(at, k, plan, values, vectors, eps, tau, g, least=LAST * value)

    @property
    def upper(self) -> float:
        """The objective of the average, as far as the directions go."""
        return top_sum(self.values, self.k)

    @property
    def lower(self) -> float:
        """What an exact transport at the last answer should be worth."""
        return self.cost - self.bias * self.eps

    @property
    def done(self) -> bool:
        """Whether the problem at this smoothness is solved."""
        return self.inner <= DONE * self.eps

    @property
    def over(self) -> bool:
        """Whether exact steps should take over."""
        return self.waited > PATIENCE or self.eps < self.least

    def factor(self) -> np.ndarray:
        """Return F with Omega = F F^T, the adversary's answer to the average."""
        self.omega = capped_weights(self.values, self.k, self.tau)
        used = self.omega > 0.0
        return self.vectors[:, used] * np.sqrt(self.omega[used])

    def step(self) -> np.ndarray:
        """Answer the average, transport roughly at the answer, and move; return the factor."""
        if self.done:
            self.eps, self.tau, self.waited = SHRINK * self.eps, SHRINK * self.tau, 0
            # Sharper plans have less entropy to pay for.
            self.bias *= 0.85
        self.waited += 1
        factor = self.factor()
        mixed = _squared_distances(self.at.X @ factor, self.at.Y @ factor)
        rough, self.g = _rough(mixed, self.at.a, self.at.b, self.g, self.eps)
        new = round_plan(Plan(rough, copy=False), self.at.a, self.at.b)
        self.cost = float(np.vdot(new.dense(), mixed))
        self.inner = self.upper - self.cost
        self._move(new)
        return factor

    def learn(self, exact: float) -> None:
        """Take the exact cost at the last answer to heart."""
        self.bias = max((self.cost - exact) / self.eps, 0.0)

    def refine(self) -> None:
        """Turn the directions once more towards the leading eigenvectors."""
        basis = self._wider(self.plan)
        self._turn(basis, self.at.projected(basis).of(self.plan))

    def _move(self, new: Plan) -> None:
        """Average the plan in, as far as the smoothed maximum falls on the way."""
        # Where mass would go after the step counts: directions of the old average hide it.
        basis = self._wider(Plan(_between(self.plan, new, self.length), copy=False))
        projected = self.at.projected(basis)
        here, there = projected.of(self.plan), projected.of(new)
        slope = self._answer(here).cost(there - here)
        trial = self._answer(here + self.length * (there - here)).cost(there - here)
        # The slope is monotone: where it vanishes by the secant is close to the best length.
        length = self.length * slope / (slope - trial) if trial > slope else 1.0
        # Far beyond the trial the secant promises too much: mass finds directions not seen yet.
        length = min(max(length, 0.01), 2.0 * self.length, 1.0) if slope < 0.0 else 0.01
        self.length = max(length, 0.05)
        self.plan = Plan(_between(self.plan, new, length), copy=False)
        self._turn(basis, here + length * (there - here))

    def _wider(self, plan: Plan) -> np.ndarray:
        """An orthonormal basis of the directions and of V times them."""
        size = self.at.features
        if self.vectors.shape[1] == size:
            return self.vectors
        image = self.at.apply(plan, self.vectors)
        image -= self.vectors @ (self.vectors.T @ image)
        # Columns that are all but zero are rounding; QR makes directions of them all the same.
        both = np.hstack([self.vectors, image])[:, :size]
        return np.linalg.qr(both)[0]

    def _answer(self, plane: np.ndarray) -> Answer:
        values, vectors = eigh(plane, driver="evd")
        return Answer(values, vectors, capped_weights(values, self.k, self.tau))

    def _turn(self, basis: np.ndarray, plane: np.ndarray) -> None:
        values, turn = eigh(plane, driver="evd")
        used = int((capped_weights(values, self.k, self.tau) > 0.0).sum())
        # As many as the adversary uses, and some to spare for the next step.
        count = min(len(values), max(used + EXTRA, self.k + EXTRA))
        self.values, self.vectors = values[-count:], basis @ turn[:, -count:]


def _between(plan: Plan, other: Plan, share: float) -> np.ndarray:
    mean = (1.0 - share) * plan.dense()
    mean += share * other.dense()
    return mean


def _squared_distances(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    mixed = X @ (-2.0 * Y.T)
    mixed += np.einsum("ik,ik->i", X, X)[:, None]
    mixed += np.einsum("ik,ik->i", Y, Y)
    return np.maximum(mixed, 0.0, out=mixed)


def _rough(
    mixed: np.ndarray, a: np.ndarray, b: np.ndarray, g: np.ndarray, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """Entropic transport from a warm potential, to marginals that are nearly right."""
    score = (g - mixed) / eps
    score -= score.max(axis=1, keepdims=True)
    kernel = np.maximum(score, -80.0, out=score).astype(np.float32)
    left, right = a.astype(np.float32), b.astype(np.float32)
    v = np.ones(len(b), dtype=np.float32)
    with np.errstate(under="ignore", over="ignore"):
        np.exp(kernel, out=kernel)
        u = 1.0 / np.maximum(kernel @ right, TINY)
        for sweep in range(SWEEPS):
            columns = kernel.T @ (left * u)
            if sweep % 5 == 4 and right @ np.abs(v * columns - 1.0) < ERROR:
                break
            v = 1.0 / np.maximum(columns, TINY)
            u = 1.0 / np.maximum(kernel @ (right * v), TINY)
        plan = np.multiply(kernel, (a * u)[:, None], out=score)
        plan *= b * v.astype(float)
    return plan, g + eps * np.log(v.astype(float))

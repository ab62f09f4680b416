"""The adversary: which weights on the groups it may choose, and what it is paid for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

__all__ = ["Adversary", "Simplex"]


class Adversary(Protocol):
    """What every set of weights knows."""

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value and the weights of the best answer to the group costs `phi`."""
        ...

    def reward(self, alpha: np.ndarray) -> float:
        """Return what the adversary is paid for `alpha` besides <alpha, phi>."""
        ...


@dataclass(frozen=True, eq=False)
class Simplex:
    r"""All weights on the probability simplex, smoothed by their entropy (the paper's lemma 1).

    .. math::
        G_\eta(\phi) = \max_{\alpha \in \Sigma^L} \langle \alpha, \phi \rangle
            - \eta \sum_l \alpha_l \log \frac{\alpha_l}{q_l}
          = \eta \log \sum_l q_l e^{\phi_l / \eta},
        \qquad G_0(\phi) = \max_l \phi_l .

    Parameters
    ----------
    eta : float
        Weight of the entropy, in units of cost. 0 is the maximum itself.
    log_prior : array of shape (L,), optional
        :math:`\log q`. None is the paper's entropy, q = 1 (not normalised).

    Examples
    --------
    >>> value, alpha = Simplex(eta=1.0).best(np.array([0.0, 0.0]))
    >>> round(value, 4), alpha
    (0.6931, array([0.5, 0.5]))
    >>> Simplex().best(np.array([3.0, 1.0]))
    (3.0, array([1., 0.]))
    """

    eta: float = 0.0
    log_prior: np.ndarray | None = None

    def best(self, phi: np.ndarray) -> tuple[float, np.ndarray]:
        r"""Return :math:`G_\eta(\phi)` and the weights that attain it."""
        level = float(phi.max())
        if self.eta == 0.0 or np.isinf(level):
            alpha = np.zeros(len(phi))
            alpha[int(np.argmax(phi))] = 1.0
            return level, alpha
        with np.errstate(over="ignore", under="ignore"):
            # Taken from the maximum, so that no eta is too small.
            score = (phi - level) / self.eta
            if self.log_prior is not None:
                score = score + self.log_prior
            top = float(score.max())
            weight = np.exp(score - top)
        total = float(weight.sum())
        return level + self.eta * (top + float(np.log(total))), weight / total

    def reward(self, alpha: np.ndarray) -> float:
        r"""Return :math:`-\eta \sum_l \alpha_l \log(\alpha_l / q_l)` (0 log 0 = 0)."""
        if self.eta == 0.0:
            return 0.0
        on = alpha > 0.0
        surprise = np.log(alpha[on])
        if self.log_prior is not None:
            surprise = surprise - self.log_prior[on]
        return float(-self.eta * (alpha[on] @ surprise))

r"""The eta at which the weights use a given number of groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from frot.problem.adversary import SimplexFamily

__all__ = ["capped_eta", "eta_for_perplexity", "target_perplexity"]

# Groups that alpha uses for each one to be selected.
GROUPS_PER_PICK = 3.0
# Newton steps on log eta, of which four or five are taken.
STEPS = 60


def target_perplexity(count: int, groups: int) -> float:
    """Return three times the number of picks, and at most half of the groups.

    More than that and the weights would be near uniform, which tells nothing apart.

    Examples
    --------
    >>> target_perplexity(10, 2000), target_perplexity(5, 9)
    (30.0, 5.0)
    """
    return min(GROUPS_PER_PICK * count, 0.5 * (1.0 + groups))


def eta_for_perplexity(phi: np.ndarray, target: float, start: float | None = None) -> float:
    r"""Find eta such that :math:`\exp H(\mathrm{softmax}(\phi / \eta))` is `target`.

    The perplexity rises with eta from the number of groups that tie for the largest cost to the
    number of groups. Where even the smallest eta is above the target, that smallest is returned.

    Parameters
    ----------
    phi : array of shape (L,)
        Costs of the groups.
    target : float
        Between 1 and L.
    start : float, optional
        A guess.

    Examples
    --------
    >>> phi = np.array([3.0, 2.0, 1.0, 0.0])
    >>> eta = eta_for_perplexity(phi, 2.0)
    >>> alpha = np.exp(phi / eta) / np.exp(phi / eta).sum()
    >>> round(float(np.exp(-alpha @ np.log(alpha))), 6)
    2.0
    """
    below = phi - phi.max()
    spread = -float(below.min())
    if spread == 0.0:
        return max(float(phi.max()), 1.0)
    low, high = np.log(1e-6 * spread), np.log(1e6 * spread)
    wanted = np.log(target)
    at = float(np.clip(np.log(start if start else 0.1 * spread), low, high))
    for _ in range(STEPS):
        eta = float(np.exp(at))
        with np.errstate(under="ignore"):
            weight = np.exp(below / eta)
        total = float(weight.sum())
        mean = float(weight @ below) / total
        entropy = np.log(total) - mean / eta
        if abs(entropy - wanted) <= 1e-9:
            break
        if entropy > wanted:
            high = at
        else:
            low = at
        # The entropy's slope in log eta is the variance of phi / eta.
        slope = (float(weight @ np.square(below)) / total - mean**2) / eta**2
        newton = at - (entropy - wanted) / slope if slope > 1e-12 else np.inf
        at = float(newton) if low < newton < high else 0.5 * (low + high)
        if high - low < 1e-12:
            break
    return float(np.exp(at))


def capped_eta(
    phi: np.ndarray, target: float, adversary: SimplexFamily, start: float | None = None
) -> float:
    """Find eta such that the perplexity of the best answer to `phi` is `target`, with a cap.

    It rises with eta, from k at least; where the smallest eta is above the target, that is
    returned. `start` is a guess.

    Examples
    --------
    >>> from frot import CappedSimplex
    >>> phi = np.array([3.0, 2.0, 1.0, 0.0])
    >>> eta = capped_eta(phi, 3.0, CappedSimplex(2))
    >>> alpha = CappedSimplex(2, eta).best(phi)[1]
    >>> round(float(np.exp(-alpha @ np.log(alpha))), 6)
    3.0
    """
    from scipy.optimize import brentq

    spread = float(phi.max() - phi.min())
    if spread == 0.0:
        return max(float(phi.max()), 1.0)

    def over(at: float) -> float:
        _, alpha = adversary.having(float(np.exp(at)), None).best(phi)
        on = alpha[alpha > 0.0]
        return -float(on @ np.log(on)) - float(np.log(target))

    least, most = float(np.log(1e-6 * spread)), float(np.log(1e6 * spread))
    at = float(np.clip(np.log(start), least, most)) if start else float(np.log(0.1 * spread))
    low = high = at
    width = 0.05
    while over(low) > 0.0:
        if low == least:
            return float(np.exp(least))
        high, low, width = low, max(low - width, least), 4.0 * width
    while high == low or over(high) <= 0.0:
        if high == most:
            return float(np.exp(most))
        low, high, width = high, min(high + width, most), 4.0 * width
    found: Any = brentq(over, low, high, xtol=1e-12)
    return float(np.exp(found))

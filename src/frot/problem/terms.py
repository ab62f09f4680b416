"""What a call asks for besides costs, checked: weights, eta, eps, prior, adversary."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError
from frot._base.validate import (
    check_choice,
    check_flag,
    check_masses,
    check_number,
    check_prior,
    check_weights,
)
from frot.problem.adversary import GivenSet, SimplexFamily, check_adversary
from frot.problem.amounts import DEFAULT_EPS, Relative

__all__ = [
    "NORMALISATIONS",
    "Terms",
    "amount_at",
    "check_amount",
    "check_terms",
    "refuse_idle_prior",
]

NORMALISATIONS = ("none", "mean", "regret")

# Up to this many pairs of points `Exact` is the road to the answer: a minute at worst, and it ends
# at the optimum itself. Beyond, and on devices it cannot use, there is a little eps.
EXACT_UP_TO = 36_000_000


class Terms(NamedTuple):
    """What points and cost stacks have in common, checked.

    `eta` and `eps` are numbers, or shares of a mean cost that is not known yet; `adversary` is the
    set of weights without eta and prior.
    """

    a: np.ndarray
    b: np.ndarray
    eta: float | Relative
    eps: float | Relative
    log_prior: np.ndarray | None
    normalise: str
    adversary: SimplexFamily | GivenSet

    @property
    def regularisation(self) -> tuple[float, float]:
        """Eta and eps, as shares where they are shares: enough to see which are zero."""
        return amount_at(self.eta), amount_at(self.eps)


def check_terms(
    shape: tuple[int, ...],
    a: Any,
    b: Any,
    eta: Any,
    eps: Any,
    prior: Any,
    normalise: Any,
    normalise_weights: bool,
    eps_if_needed: bool = False,
    on_device: bool = False,
    adversary: Any = None,
) -> Terms:
    """Check weights, regularisation, prior and normalisation for costs of the given shape.

    Where eps is None it is zero, unless the solver may be chosen (`eps_if_needed`) and the costs
    are on a device or too many for `Exact`.
    """
    count, n, m = shape
    check_flag(normalise_weights, "normalise_weights")
    check_masses(a, b, normalise_weights)
    a = check_weights(a, n, "a", normalise_weights)
    b = check_weights(b, m, "b", normalise_weights)
    how = check_choice(normalise, "normalise", NORMALISATIONS)
    eta = check_amount(eta, "eta")
    log_prior = check_prior(prior, count)
    weights, eta, log_prior = check_adversary(adversary, count, eta, log_prior)
    if eps is None:
        # Sets of any other kind are solved without eps alone.
        needed = (on_device or n * m > EXACT_UP_TO) and weights.on_simplex
        eps = DEFAULT_EPS if eps_if_needed and needed else 0.0
    eps = check_amount(eps, "eps")
    refuse_idle_prior(log_prior, eta)
    return Terms(a, b, eta, eps, log_prior, how, weights)


def refuse_idle_prior(prior: Any, eta: float | Relative) -> None:
    """Refuse a prior that nobody would take notice of.

    Examples
    --------
    >>> refuse_idle_prior([0.5, 0.5], Relative(0.0))
    Traceback (most recent call last):
    ...
    frot.InputError: prior: has no effect at eta = 0, where the adversary takes the ...
    """
    if prior is not None and amount_at(eta) == 0.0:
        raise InputError(
            "prior: has no effect at eta = 0, where the adversary takes the largest cost whatever "
            "the prior; pass eta > 0, or leave prior out"
        )


def check_amount(amount: Any, name: str) -> float | Relative:
    """Return an amount of regularisation: a number >= 0, or a share as it is."""
    return amount if isinstance(amount, Relative) else check_number(amount, name)


def amount_at(amount: float | Relative, mean_cost: Any = 1.0) -> Any:
    """Return an amount of regularisation as a number, a share as that share of the mean cost."""
    return amount.of(mean_cost) if isinstance(amount, Relative) else amount

"""What a call asks for besides costs, checked: weights, eta, eps, prior, adversary, tau."""

from __future__ import annotations

from math import inf
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
from frot.problem.adversary import GivenSet, Simplex, SimplexFamily, as_adversary, given_once
from frot.problem.amounts import DEFAULT_EPS, Relative
from frot.problem.marginals import KEPT, Marginals, check_tau, unit_mass

__all__ = [
    "NORMALISATIONS",
    "Terms",
    "amount_at",
    "check_adversary",
    "check_amount",
    "check_terms",
    "refuse_idle_prior",
]

NORMALISATIONS = ("none", "mean", "regret")

# Masses that differ by less are taken for equal.
MASS_SLACK = 1e-12

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
    tau: tuple[float | Relative, float | Relative] | None = None
    penalty: str = "kl"

    @property
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights as shares of the mass of their side."""
        return (self.a, self.b) if self.tau is None else (unit_mass(self.a), unit_mass(self.b))

    def marginals(self, mean_cost: float = 1.0) -> Marginals:
        """How marginals bind where the mean cost is known; shares as they are where it is not."""
        if self.tau is None:
            return KEPT
        first, second = (amount_at(side, mean_cost) for side in self.tau)
        return Marginals(first, second, self.penalty)

    @property
    def regularisation(self) -> tuple[float, float]:
        """Eta and eps, as shares where they are shares: enough to see which are zero."""
        return amount_at(self.eta), amount_at(self.eps)


def check_terms(
    shape: tuple[int, ...],
    a: Any = None,
    b: Any = None,
    eta: Any = 0.0,
    eps: Any = 0.0,
    prior: Any = None,
    normalise: Any = "none",
    normalise_weights: bool = False,
    eps_if_needed: bool = False,
    on_device: bool = False,
    adversary: Any = None,
    tau: Any = None,
    penalty: Any = "kl",
) -> Terms:
    """Check weights, regularisation, prior and normalisation for costs of the given shape.

    With `tau` weights may sum to anything. Where eps is None it is zero, unless the solver may be
    chosen (`eps_if_needed`) and the costs are on a device or too many for `Exact`.
    """
    count, n, m = shape
    check_flag(normalise_weights, "normalise_weights")
    pair = check_tau(tau, penalty)
    check_masses(a, b, normalise_weights or pair is not None)
    a = check_weights(a, n, "a", normalise_weights, any_mass=pair is not None)
    b = check_weights(b, m, "b", normalise_weights, any_mass=pair is not None)
    how = check_choice(normalise, "normalise", NORMALISATIONS)
    weights, eta, log_prior = check_adversary(adversary, count, eta, prior)
    if eps is None:
        # Sets of any other kind are solved without eps alone.
        needed = (on_device or n * m > EXACT_UP_TO) and weights.on_simplex and penalty != "tv"
        eps = DEFAULT_EPS if eps_if_needed and needed else 0.0
    eps = check_amount(eps, "eps")
    if pair is not None:
        _check_unbalanced(a, b, pair, penalty, amount_at(eps), how, weights)
    return Terms(a, b, eta, eps, log_prior, how, weights, pair, penalty)


def _check_unbalanced(
    a: np.ndarray,
    b: np.ndarray,
    tau: tuple[float | Relative, float | Relative],
    penalty: str,
    eps: float,
    normalise: str,
    adversary: SimplexFamily | GivenSet,
) -> None:
    """Refuse what cannot be meant together with tau."""
    if not adversary.on_simplex:
        raise InputError(
            f"adversary: {adversary.name} has weights that need not sum to one, and tau counts "
            "once for all groups; leave tau out, or use frot.CappedSimplex(k)"
        )
    if normalise == "regret":
        raise InputError(
            "normalise: 'regret' subtracts what whole transport costs; with tau use 'mean' or none"
        )
    if penalty == "tv":
        if eps > 0.0:
            raise InputError("eps: penalty='tv' is solved without eps; drop eps, or use 'kl'")
        for price, name, side, rest in ((tau[0], "a", a, b), (tau[1], "b", b, a)):
            if price == inf and side.sum() > rest.sum() * (1.0 + MASS_SLACK):
                raise InputError(
                    f"tau: is infinite for {name}, whose mass of {side.sum():.6g} is more than the "
                    f"{rest.sum():.6g} of the other side; with penalty='tv' mass is not created"
                )


def check_adversary(
    adversary: Any, count: int, eta: Any, prior: Any
) -> tuple[SimplexFamily | GivenSet, float | Relative, np.ndarray | None]:
    """Return the set of weights without eta and prior, eta, and the log prior, each given once."""
    eta, log_prior = check_amount(eta, "eta"), check_prior(prior, count)
    found = as_adversary(Simplex() if adversary is None else adversary, count)
    if isinstance(found, GivenSet):
        if log_prior is not None or amount_at(eta) != 0.0:
            raise InputError(
                f"eta, prior: are for frot.Simplex and frot.CappedSimplex, not for {found.name}"
            )
        return found, 0.0, None
    eta, log_prior = given_once(found, eta, log_prior)
    refuse_idle_prior(log_prior, eta)
    return found.having(0.0, None), eta, log_prior


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

"""Options of a problem besides its costs, checked: weights, eta, eps, prior, adversary, tau, mass.

Regularisation is a number in units of cost, or a share of the mean cost (`relative`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, inf, isnan
from typing import Any, NamedTuple

import numpy as np

from frot._base.errors import InputError, brief
from frot._base.validate import (
    MASS_TOLERANCE,
    SMALLEST_MASS,
    check_choice,
    check_flag,
    check_masses,
    check_number,
    check_prior,
    check_weights,
)
from frot.problem.adversary import GivenSet, Simplex, SimplexFamily, as_adversary
from frot.problem.marginals import unit_mass
from frot.problem.problem import BALANCED, Marginals

NORMALISATIONS = ("none", "mean", "regret")
PENALTIES = ("kl", "tv")

# Masses that differ by less are taken for equal.
MASS_SLACK = 1e-12


@dataclass(frozen=True)
class Relative:
    """A share of the mean cost; see `relative`."""

    share: float

    def of(self, mean_cost: Any) -> Any:
        """Return the share of the given mean cost."""
        return self.share * mean_cost


Amount = float | Relative

# Entropy of the plan in `solve_batch` and `FRWDLoss`, which are never without. On normal clouds of
# 30 to 400 points the plan's own cost is then 1 to 3 percent above the optimum without entropy, in
# no more than twice the time that 0.05 takes, which leaves 4 to 11 percent.
DEFAULT_EPS = Relative(0.02)


def relative(share: float) -> Relative:
    r"""Give eta or eps as a share of the mean cost :math:`\frac{1}{L} \sum_l a^\top C_l b`.

    The paper's eta and eps are absolute, so that the same data in other units gives another
    answer; a share does not depend on units. The mean is over all groups, also those that get no
    weight: noise groups of small cost make the same share a smaller amount, and groups whose scales
    differ give one that is large for some. For the same amount in problems of different groups,
    give a number; for groups of one scale, ``normalise="mean"``.

    Parameters
    ----------
    share : float
        At least zero.

    Examples
    --------
    >>> import frot
    >>> X, Y = [[0.0, 0.0], [1.0, 1.0]], [[1.0, 3.0], [0.0, 2.0]]
    >>> metres = frot.solve(X, Y, eta=frot.relative(0.1))
    >>> millimetres = frot.solve([[1e3 * x for x in p] for p in X],
    ...                          [[1e3 * y for y in p] for p in Y], eta=frot.relative(0.1))
    >>> round(millimetres.value / metres.value)
    1000000
    """
    return Relative(check_number(share, "relative"))


def check_amount(amount: Any, name: str) -> Amount:
    """Return an amount of regularisation: a number >= 0, or a share as it is."""
    return amount if isinstance(amount, Relative) else check_number(amount, name)


def amount_at(amount: Any, mean_cost: Any = 1.0) -> Any:
    """Return an amount of regularisation as a number, a share as that share of the mean cost."""
    return amount.of(mean_cost) if isinstance(amount, Relative) else amount


class ProblemOptions(NamedTuple):
    """What points and cost stacks have in common, checked.

    `eta` and `eps` are numbers, or shares of a mean cost that is not known yet; `adversary` is the
    set of weights without eta and prior.
    """

    a: np.ndarray
    b: np.ndarray
    eta: Amount
    eps: Amount
    log_prior: np.ndarray | None
    normalise: str
    adversary: SimplexFamily | GivenSet
    tau: tuple[Amount, Amount] | None = None
    penalty: str = "kl"
    mass: float | None = None

    @property
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights as shares of the mass of their side."""
        if self.tau is None and self.mass is None:
            return self.a, self.b
        return unit_mass(self.a), unit_mass(self.b)

    def marginals(self, mean_cost: float = 1.0) -> Marginals:
        """How marginals bind where the mean cost is known; shares as they are where it is not."""
        if self.mass is not None:
            return Marginals(penalty="tv", mass=self.mass)
        if self.tau is None:
            return BALANCED
        first, second = (amount_at(side, mean_cost) for side in self.tau)
        return Marginals(first, second, self.penalty)

    @property
    def regularisation(self) -> tuple[float, float]:
        """Eta and eps, as shares where they are shares: enough to see which are zero."""
        return amount_at(self.eta), amount_at(self.eps)


def check_problem(
    shape: tuple[int, ...],
    a: Any = None,
    b: Any = None,
    eta: Any = 0.0,
    eps: Any = 0.0,
    prior: Any = None,
    normalise: Any = "none",
    normalise_weights: bool = False,
    adversary: Any = None,
    tau: Any = None,
    penalty: Any = "kl",
    mass: Any = None,
) -> ProblemOptions:
    """Check weights, regularisation, prior and normalisation for costs of the given shape.

    With `tau` or `mass` weights may sum to anything.
    """
    count, n, m = shape
    check_flag(normalise_weights, "normalise_weights")
    pair = check_tau(tau, penalty)
    if mass is not None and tau is not None:
        raise InputError("mass, tau: tau is a price for what is left out; pass one of the two")
    any_mass = pair is not None or mass is not None
    check_masses(a, b, normalise_weights or any_mass)
    a = check_weights(a, n, "a", normalise_weights, any_mass)
    b = check_weights(b, m, "b", normalise_weights, any_mass)
    moved = None if mass is None else check_mass(mass, a, b)
    how = check_choice(normalise, "normalise", NORMALISATIONS)
    weights, eta, log_prior = check_adversary(adversary, count, eta, prior)
    eps = check_amount(eps, "eps")
    penalty = penalty if mass is None else "tv"
    checked = ProblemOptions(a, b, eta, eps, log_prior, how, weights, pair, penalty, moved)
    if any_mass:
        _check_unbalanced(checked, pair)
    return checked


def check_mass(mass: Any, a: np.ndarray, b: np.ndarray) -> float:
    """Return the mass that plans are to have: above zero, and no more than either side has.

    Examples
    --------
    >>> check_mass(0.5, np.ones(1), np.ones(2))
    0.5
    >>> check_mass(2.0, np.ones(1), np.ones(2))
    Traceback (most recent call last):
    ...
    frot.InputError: mass: 2 is more than the 1 of the lighter side; pass at most that
    """
    mass = check_number(mass, "mass", strict=True)
    most = min(fsum(a.tolist()), fsum(b.tolist()))
    # Weights whose sum is as close to one were divided by it.
    if mass > most * (1.0 + MASS_TOLERANCE):
        raise InputError(
            f"mass: {mass:.9g} is more than the {most:.9g} of the lighter side; pass at most that"
        )
    if mass < SMALLEST_MASS:
        raise InputError(f"mass: {mass:.3g} is next to none; rescale a, b and mass")
    return min(mass, most)


def _check_unbalanced(checked: ProblemOptions, tau: tuple[Amount, Amount] | None) -> None:
    """Refuse what cannot be meant together with tau, or with a mass."""
    a, b = checked.a, checked.b
    given = "mass" if tau is None else "tau"
    if not checked.adversary.on_simplex:
        raise InputError(
            f"adversary: {checked.adversary.name} has weights that need not sum to one, and mass "
            f"left out counts once for all groups; leave {given} out, or use frot.CappedSimplex(k)"
        )
    if checked.normalise == "regret":
        raise InputError(
            "normalise: 'regret' subtracts what whole transport costs; with "
            f"{given} use 'mean' or none"
        )
    if tau is None:
        if amount_at(checked.eps) > 0.0:
            raise InputError(
                "eps: a given mass is solved without eps; drop eps, or pass tau=... instead of mass"
            )
    elif checked.penalty == "tv":
        if amount_at(checked.eps) > 0.0:
            raise InputError("eps: penalty='tv' is solved without eps; drop eps, or use 'kl'")
        for price, name, side, rest in ((tau[0], "a", a, b), (tau[1], "b", b, a)):
            if price == inf and side.sum() > rest.sum() * (1.0 + MASS_SLACK):
                raise InputError(
                    f"tau: is infinite for {name}, whose mass of {side.sum():.6g} is more than the "
                    f"{rest.sum():.6g} of the other side; with penalty='tv' mass is not created"
                )


def check_tau(tau: Any, penalty: Any) -> tuple[Amount, Amount] | None:
    """Return the two prices, each a number > 0, infinite or a share; None keeps both sides.

    Examples
    --------
    >>> check_tau((1.0, inf), "kl")
    (1.0, inf)
    >>> check_tau(0.0, "kl")
    Traceback (most recent call last):
    ...
    frot.InputError: tau: must be > 0, since mass that costs nothing to destroy is all ...
    """
    check_choice(penalty, "penalty", PENALTIES)
    if tau is None:
        if penalty != "kl":
            raise InputError("penalty: has no effect without tau; pass tau=..., or leave it out")
        return None
    is_pair = isinstance(tau, tuple | list | np.ndarray) and np.shape(tau) == (2,)
    first, second = (_check_side(side) for side in (tau if is_pair else (tau, tau)))
    return None if first == inf and second == inf else (first, second)


def _check_side(tau: Any) -> Amount:
    if isinstance(tau, float | np.floating) and tau == inf:
        return inf
    if isinstance(tau, tuple | list) or getattr(tau, "ndim", 0) > 0:
        raise InputError(f"tau: {brief(tau)} is neither a number nor a pair (tau_a, tau_b)")
    price = amount_at(tau)
    if isinstance(price, float) and isnan(price):
        raise InputError("tau: is NaN; pass a number > 0, or inf to keep a side")
    if check_number(price, "tau", least=-inf) <= 0.0:
        raise InputError(
            "tau: must be > 0, since mass that costs nothing to destroy is all destroyed; pass "
            "tau=frot.relative(1.0) for the mean cost, or inf to keep a side"
        )
    return tau if isinstance(tau, Relative) else float(tau)


def check_adversary(
    adversary: Any, count: int, eta: Any, prior: Any
) -> tuple[SimplexFamily | GivenSet, Amount, np.ndarray | None]:
    """Return the set of weights without eta and prior, eta, and the log prior, each given once."""
    eta, log_prior = check_amount(eta, "eta"), check_prior(prior, count)
    chosen = as_adversary(Simplex() if adversary is None else adversary, count)
    if isinstance(chosen, GivenSet):
        if log_prior is not None or amount_at(eta) != 0.0:
            raise InputError(
                f"eta, prior: are for frot.Simplex and frot.CappedSimplex, not for {chosen.name}"
            )
        return chosen, 0.0, None
    eta, log_prior = eta_and_prior(chosen, eta, log_prior)
    refuse_idle_prior(log_prior, eta)
    return chosen.having(0.0, None), eta, log_prior


def eta_and_prior(
    chosen: SimplexFamily, eta: Any, log_prior: np.ndarray | None
) -> tuple[Any, np.ndarray | None]:
    """Return eta and the log prior of a call or of its set; refuse those that both give."""
    if chosen.eta != 0.0:
        if amount_at(eta) != 0.0:
            raise InputError(f"eta: is given here and by {chosen.name}(eta=...); give it once")
        eta = float(chosen.eta)
    if chosen.log_prior is not None:
        if log_prior is not None:
            raise InputError(
                f"prior: is given here and by {chosen.name}(log_prior=...); give it once"
            )
        log_prior = np.asarray(chosen.log_prior, dtype=float)
    return eta, log_prior


def refuse_idle_prior(prior: Any, eta: Amount) -> None:
    """Refuse a prior that nobody would take notice of."""
    if prior is not None and amount_at(eta) == 0.0:
        raise InputError(
            "prior: has no effect at eta = 0, where the adversary takes the largest cost whatever "
            "the prior; pass eta > 0, or leave prior out"
        )

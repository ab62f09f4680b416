r"""The plan between the samples of two classes, the weights alpha, and what each cost is made of.

For one feature with values x and y, weights a and b, and any plan in U(a, b),

.. math::
    \phi = \underbrace{\Delta^2}_{\text{shift}}
        + \underbrace{W_2^2 - \Delta^2}_{\text{shape}}
        + \underbrace{\phi - W_2^2}_{\text{misalignment}},
    \qquad \Delta = \textstyle\sum_i a_i x_i - \sum_j b_j y_j,

where :math:`W_2` is the Wasserstein distance of the feature alone. All three are >= 0: the mean
cannot move by more than the points do, and no plan moves one feature more cheaply than sorting.

The problem is `frot.solve`'s, on features in units in which they are comparable:

- "balanced": centred at the midpoint of the class means, and scaled so that the mean squares of the
  two classes sum to 2: both classes count alike;
- "paper": standardised over both classes pooled, where the larger class sets the scale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse, special
from scipy.optimize import brentq

from frot._base.arrays import blocks
from frot.api.solve import solve_costs
from frot.costs import Points
from frot.groups.groups import Groups
from frot.problem.options import Relative
from frot.problem.result import Result
from frot.selection._effects import ROUNDING
from frot.solvers.frank_wolfe import FrankWolfe

SCALINGS = ("balanced", "paper")
# Samples of a class that a plan is between at most: 500 x 500 take some seconds.
MOST_SAMPLES = 500


@dataclass(frozen=True, eq=False)
class Parts:
    """Costs of features, or of groups of them, and what they are made of; shapes (L,).

    Examples
    --------
    >>> Parts.of(np.array([3.0]), shift=np.array([1.0]), wasserstein=np.array([1.5]))
    Parts(phi=array([3.]), shift=array([1.]), shape=array([0.5]), misalignment=array([1.5]))
    """

    phi: np.ndarray
    shift: np.ndarray
    shape: np.ndarray
    misalignment: np.ndarray

    @classmethod
    def of(cls, phi: np.ndarray, shift: np.ndarray, wasserstein: np.ndarray) -> Parts:
        """Compute the parts; small negative values from rounding are set to zero."""
        wasserstein = np.maximum(wasserstein, shift)
        return cls(phi, shift, wasserstein - shift, np.maximum(phi - wasserstein, 0.0))


@dataclass(frozen=True, eq=False)
class Transported:
    r"""The plan between samples of two classes.

    Attributes
    ----------
    result : Result
        Plan, and the interval that holds the optimum.
    alpha : array of shape (L,)
        The weights that answer the plan, :math:`\alpha_l \propto \exp(\phi_l / \eta)`.
    parts : Parts
        Costs of the groups under the plan, in scaled units.
    """

    result: Result
    alpha: np.ndarray
    parts: Parts


def transport(
    x: np.ndarray,
    y: np.ndarray,
    groups: Groups,
    *,
    picks: int | None = None,
    eta: str | float | Relative = "auto",
    scaling: str = "balanced",
) -> Transported:
    """Find the plan between the samples of two classes, and take its costs apart.

    Parameters
    ----------
    x, y : arrays of shape (n, d) and (m, d)
        The caller no longer needs them: they are scaled in place.
    groups : Groups
        A group costs the mean over its features that vary.
    picks : int, optional
        With ``eta="auto"`` the perplexity of alpha is three times this, at most half of the groups.
    eta : "auto", float or `relative`
    scaling : {"balanced", "paper"}

    Examples
    --------
    >>> x, y = np.random.default_rng(0).normal(size=(2, 10, 30))
    >>> y[:, 0] += 3.0
    >>> found = transport(x, y, Groups.each(30), picks=1)
    >>> int(found.alpha.argmax()), found.result.plan.shape
    (0, (10, 10))
    >>> parts = found.parts
    >>> bool(np.allclose(parts.shift + parts.shape + parts.misalignment, parts.phi))
    True
    """
    constant = scale_sides(x, y, scaling)
    pool = pooling(groups, constant)
    varying = np.logical_or.reduceat(~constant[groups.flat], groups.offsets[:-1])
    result, alpha = _solve(Points(x, y, pool), eta, picks, int(varying.sum()))
    result = replace(result, names=groups.names)
    single = result.phi if pool is None else Points(x, y).inner(result.plan)
    shift = np.square(x.mean(axis=0) - y.mean(axis=0))
    parts = Parts.of(single, shift, squared_wasserstein(x, y))
    if pool is not None:
        each = (parts.shift, parts.shape, parts.misalignment)
        parts = Parts(result.phi, *(np.asarray(pool @ part) for part in each))
    return Transported(result, alpha, parts)


def draw_rows(
    rows: tuple[np.ndarray, np.ndarray], codes: np.ndarray, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return at most 500 rows of either side, drawn at random, classes in proportion.

    Examples
    --------
    >>> rows = np.arange(2_000), np.arange(2_000, 2_010)
    >>> [len(side) for side in draw_rows(rows, np.zeros(2_010, dtype=int))]
    [500, 10]
    """
    rng = np.random.default_rng(seed)
    drawn = []
    for side in rows:
        if len(side) > MOST_SAMPLES:
            # Evenly spaced among samples in the order of their classes, and at random within.
            side = rng.permutation(side)
            side = side[np.argsort(codes[side], kind="stable")]
            side = np.sort(side[np.arange(MOST_SAMPLES) * len(side) // MOST_SAMPLES])
        drawn.append(side)
    return drawn[0], drawn[1]


def scale_sides(x: np.ndarray, y: np.ndarray, how: str) -> np.ndarray:
    """Scale both sides in place, and return which features do not vary."""
    centre = 0.5 * (x.mean(axis=0) + y.mean(axis=0))
    x -= centre
    y -= centre
    energies = np.square(x).mean(axis=0), np.square(y).mean(axis=0)
    if how == "balanced":
        variance = 0.5 * (energies[0] + energies[1])
    else:
        n, m = len(x), len(y)
        mean = (x.sum(axis=0) + y.sum(axis=0)) / (n + m)
        variance = (n * energies[0] + m * energies[1]) / (n + m) - np.square(mean)
    constant = variance <= np.square(ROUNDING * centre)
    scale = np.sqrt(np.where(constant, 1.0, variance))
    for side in (x, y):
        side /= scale
        side[:, constant] = 0.0
    return constant


def one_each(groups: Groups) -> bool:
    """Whether every feature is a group of its own, in order."""
    return groups.in_order and len(groups) == groups.n_features


def pooling(groups: Groups, constant: np.ndarray) -> sparse.csr_array | None:
    """Return the matrix that takes means over the features of each group that vary.

    None stands for the identity, where every feature is a group.

    Examples
    --------
    >>> groups = Groups.parse([[0, 1], [2]], 3)
    >>> pooling(groups, np.zeros(3, dtype=bool)).toarray()
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    """
    if one_each(groups):
        return None
    matrix = groups.membership()
    varying = np.add.reduceat(~constant[groups.flat], groups.offsets[:-1], dtype=float)
    matrix.data /= np.repeat(np.maximum(varying, 1.0), groups.sizes)
    return matrix


def _solve(
    costs: Points, eta: str | float | Relative, picks: int | None, varying: int
) -> tuple[Result, np.ndarray]:
    """Solve at a given eta, or at one that gives alpha its perplexity: two or three solves.

    Each starts where the last ended. Where classes hardly differ the best plan makes many costs
    equal, and only an eta near zero would give a small perplexity: it is 1.5 % of the mean cost at
    least.
    """
    solver = FrankWolfe(tol=1e-2, max_iter=500)
    if not isinstance(eta, str):
        result = solve_costs(costs, eta=eta, solver=solver)
        return result, weights_of(result.phi, result.eta)
    n, m = costs.shape[1:]
    phi = costs.product(np.full(n, 1.0 / n), np.full(m, 1.0 / m))
    least = 0.015 * float(phi.mean())
    perplexity = target_perplexity(varying if picks is None else picks, varying)
    result = None
    for _ in range(5):
        wanted = max(eta_for_perplexity(phi, perplexity), least)
        if result is not None and abs(np.log(wanted / result.eta)) <= 0.02:
            break
        result = solve_costs(costs, eta=wanted, solver=solver, start=result)
        phi = result.phi
    assert result is not None
    return result, weights_of(result.phi, result.eta)


def weights_of(phi: np.ndarray, eta: float) -> np.ndarray:
    """Return the weights that answer costs, softmax(phi / eta).

    Examples
    --------
    >>> weights_of(np.array([0.0, 0.0]), 1.0)
    array([0.5, 0.5])
    """
    return special.softmax(phi / eta)


def target_perplexity(picks: int, groups: int) -> float:
    """Return three times the number of picks, and at most half of the groups.

    More than that and the weights would be near uniform, which tells nothing apart.

    Examples
    --------
    >>> target_perplexity(10, 2000), target_perplexity(5, 9)
    (30.0, 5.0)
    """
    return min(3.0 * picks, 0.5 * (1.0 + groups))


def eta_for_perplexity(phi: np.ndarray, target: float) -> float:
    r"""Find eta such that :math:`\exp H(\mathrm{softmax}(\phi / \eta))` is `target`.

    The perplexity rises with eta from the number of groups that tie for the largest cost to the
    number of groups, L. Where even the smallest eta is above the target, that is returned.

    Examples
    --------
    >>> eta = eta_for_perplexity(np.array([3.0, 2.0, 1.0, 0.0]), 2.0)
    >>> alpha = weights_of(np.array([3.0, 2.0, 1.0, 0.0]), eta)
    >>> round(float(np.exp(-alpha @ np.log(alpha))), 6)
    2.0
    """
    spread = float(phi.max() - phi.min())
    if spread == 0.0:
        return max(float(phi.max()), 1.0)

    def beyond(log_eta: float) -> float:
        alpha = weights_of(phi, float(np.exp(log_eta)))
        return float(special.entr(alpha).sum() - np.log(target))

    low, high = np.log(1e-6 * spread), np.log(1e6 * spread)
    if beyond(low) >= 0.0:
        return float(np.exp(low))
    root: Any = brentq(beyond, low, high, xtol=1e-6)
    return float(np.exp(root))


def squared_wasserstein(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    r"""Return the squared 2-Wasserstein distance of every feature alone, shape (d,).

    Sorted samples of equal weights share the same pieces of mass, whatever the feature: n + m - 1
    of them at most.

    Examples
    --------
    >>> x, y = np.array([[3.0], [0.0]]), np.array([[1.0], [3.0], [2.0]])
    >>> squared_wasserstein(x, y).round(6)  # 3 with 3 and half of 2, 0 with 1 and half of 2
    array([1.166667])
    """
    n, m = len(x), len(y)
    # Point i of the first side holds the masses from i m to (i + 1) m of n m units.
    ends = np.union1d(m * np.arange(1, n + 1), n * np.arange(1, m + 1))
    mass = np.diff(ends, prepend=0) / (n * m)
    at_x, at_y = (ends - 1) // m, (ends - 1) // n
    distances = np.empty(x.shape[1])
    for part in blocks(len(distances), 24 * (n + m)):
        first, second = (np.sort(side[:, part].T, axis=1) for side in (x, y))
        distances[part] = np.square(first[:, at_x] - second[:, at_y]) @ mass
    return distances

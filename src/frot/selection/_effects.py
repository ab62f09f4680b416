r"""How each feature differs between two classes, with its sign: means, fold change, Welch's t.

For classes of means :math:`\mu_1, \mu_2`, variances :math:`s_1^2, s_2^2` (unbiased) and effective
sizes :math:`n_1, n_2`,

.. math::
    t = \frac{\mu_1 - \mu_2}{\sqrt{s_1^2 / n_1 + s_2^2 / n_2}},

which does not trust the classes to vary alike. Positive is higher in the first class. Nothing here
needs a plan, and all of it comes from two matrix products, so that sparse tables stay sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["VALUES", "Effects", "fold_change", "kind_of_values", "measure"]

# What the numbers of a table are: logarithms to the base 2, log(1 + x), or as they were measured.
VALUES = ("auto", "log2", "log1p", "linear")
# No logarithm of a measurement is as large as this; no table of raw ones is as small.
LARGEST_LOGARITHM = 50.0
# Added to means before a ratio is taken, as scanpy does.
PSEUDOCOUNT = 1e-9


@dataclass(frozen=True, eq=False)
class Effects:
    """Two classes, feature by feature; arrays of shape (d,).

    Attributes
    ----------
    means : pair of arrays
        Of the first class and of the second, in the units of the table.
    variances : pair of arrays
        Unbiased, within each class.
    sizes : pair of floats
        Samples in each; with weights the effective number, (sum w)^2 / sum w^2.

    Examples
    --------
    >>> table = np.array([[1.0], [3.0], [5.0], [9.0]])
    >>> effects = measure(table, np.array([0, 1]), np.array([2, 3]))
    >>> effects.difference, effects.t
    (array([-5.]), array([-2.23606798]))
    """

    means: tuple[np.ndarray, np.ndarray]
    variances: tuple[np.ndarray, np.ndarray]
    sizes: tuple[float, float]

    @property
    def difference(self) -> np.ndarray:
        """Mean of the first class less that of the second."""
        return self.means[0] - self.means[1]

    @property
    def t(self) -> np.ndarray:
        """Welch's t; zero for features that do not vary within the classes nor between them."""
        error = sum(v / n for v, n in zip(self.variances, self.sizes, strict=True))
        found = np.zeros(len(self.means[0]))
        np.divide(self.difference, np.sqrt(error), out=found, where=error > 0.0)
        apart = (error <= 0.0) & (self.difference != 0.0)
        found[apart] = np.copysign(np.inf, self.difference[apart])
        return found


def measure(
    table: Any, first: np.ndarray, second: np.ndarray, weight: np.ndarray | None = None
) -> Effects:
    """Return the effects between two sets of rows of a dense or sparse table (N, d).

    Samples of weight zero do not count.
    """
    n = table.shape[0]
    shares = np.zeros((2, n))
    for side, rows in enumerate((first, second)):
        shares[side, rows] = 1.0 if weight is None else weight[rows]
    totals = shares.sum(axis=1)
    effective = totals**2 / np.square(shares).sum(axis=1)
    shares /= totals[:, None]
    means, squares = _moments(table, shares)
    # Weights say how much a sample counts, not how often it was seen.
    unbiased = effective / np.maximum(effective - 1.0, 1e-300)
    variances = np.maximum(squares, 0.0) * unbiased[:, None]
    variances[effective <= 1.0] = 0.0
    return Effects((means[0], means[1]), (variances[0], variances[1]), tuple(effective.tolist()))


def _moments(table: Any, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and mean squared deviations of each class, shapes (2, d)."""
    if sparse.issparse(table):
        means = np.asarray(table.T @ shares.T, dtype=float).T
        powers = table.copy()
        powers.data = np.square(powers.data, dtype=float)
        squares = np.asarray(powers.T @ shares.T, dtype=float).T
        return means, squares - np.square(means)
    means = shares @ table
    # Deviations about the class mean: squares about zero cancel where the mean is large.
    squares = np.stack(
        [
            share[share > 0.0] @ np.square(table[share > 0.0] - mean)
            for share, mean in zip(shares, means, strict=True)
        ]
    )
    return means, squares


def kind_of_values(table: Any) -> str:
    """Guess what the numbers are, "linear" or "log2".

    They are linear if one is larger than a logarithm can be, or if all are whole and none is
    negative. A log1p table cannot be told from one of log2: whoever knows says so.

    Examples
    --------
    >>> kind_of_values(np.array([[0.0, 3.0], [2.0, 1.0]])), kind_of_values(np.array([[-1.5, 8.2]]))
    ('linear', 'log2')
    """
    values = table.data if sparse.issparse(table) else table
    if not values.size:
        return "linear"
    if values.min() < 0.0:
        return "log2"
    if values.max() > LARGEST_LOGARITHM:
        return "linear"
    part = np.ravel(values)[:: max(1, values.size // 100_000)]
    return "linear" if (part == np.floor(part)).all() else "log2"


def fold_change(effects: Effects, values: str, base: float | None = None) -> np.ndarray:
    r"""Return log2 fold changes of the first class over the second, shape (d,).

    "log2" tables give the difference of the means; "log1p" ones, as scanpy does,
    :math:`\log_2 \frac{\exp(\mu_1) - 1}{\exp(\mu_2) - 1}`, with `base` the base of the logarithms
    if it is not e; "linear" ones :math:`\log_2 (\mu_1 / \mu_2)`, NaN where a mean is negative.

    Examples
    --------
    >>> table = np.array([[8.0], [8.0], [2.0], [2.0]])
    >>> effects = measure(table, np.array([0, 1]), np.array([2, 3]))
    >>> fold_change(effects, "linear").round(6), fold_change(effects, "log2")
    (array([2.]), array([6.]))
    """
    if values == "log2":
        return effects.difference
    one, two = effects.means
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if values == "log1p":
            factor = 1.0 if base is None else float(np.log(base))
            one, two = np.expm1(factor * one), np.expm1(factor * two)
        return np.log2((one + PSEUDOCOUNT) / (two + PSEUDOCOUNT))

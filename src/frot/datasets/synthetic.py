"""The paper's toy data: two features that matter and eight that are noise."""

from __future__ import annotations

import numpy as np

from frot._base.validate import check_count, check_seed
from frot.groups.groups import Groups

# The columns (5, 1) and (4, 1) that the paper prints as its Sigma.
PRINTED_SIGMA = ((5.0, 4.0), (1.0, 1.0))


def toy(n: int = 100, random_state: int = 0) -> tuple[np.ndarray, np.ndarray, Groups]:
    r"""Draw the paper's toy data: n points each of two clouds in ten features.

    .. math::
        x_i = (u_i, z_i), \quad u_i \sim N((-5, 0), \Sigma), \quad z_i \sim N(0, I_8)

    and likewise :math:`y_j` around (5, 0). See `toy_covariance` for :math:`\Sigma`.

    Parameters
    ----------
    n : int
        Points in each cloud.
    random_state : int
        Of NumPy's default generator.

    Returns
    -------
    X, Y : numpy.ndarray, shape (n, 10)
    groups : Groups
        ``"true"``, the first two features, and ``"noise"``, the other eight.

    Examples
    --------
    >>> X, Y, groups = toy(n=50)
    >>> X.shape, Y.shape, groups
    ((50, 10), (50, 10), Groups(2 groups of 10 features: 'true' (2), 'noise' (8)))
    """
    n, seed = check_count(n, "n"), check_seed(random_state, "random_state")
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(toy_covariance())
    X, Y = (
        np.hstack([(mean, 0.0) + rng.standard_normal((n, 2)) @ root.T, rng.standard_normal((n, 8))])
        for mean in (-5.0, 5.0)
    )
    return X, Y, Groups.from_sizes([2, 8], names=["true", "noise"])


def toy_covariance() -> np.ndarray:
    r"""Return the covariance of the two true features, shape (2, 2).

    The paper prints :math:`S = ((5, 1)^\top, (4, 1)^\top)`, which is not symmetric and so is no
    covariance. NumPy's ``numpy.random.multivariate_normal`` does not refuse such a matrix: it
    takes :math:`S = U D V^\top` and draws with the covariance

    .. math:: V D V^\top = (S^\top S)^{1/2},

    which is symmetric and positive definite. That matrix is what this function returns.

    Examples
    --------
    >>> covariance = toy_covariance()
    >>> covariance.round(3)
    array([[4.025, 3.13 ],
           [3.13 , 2.683]])
    >>> S = np.array(PRINTED_SIGMA)
    >>> np.allclose(covariance @ covariance, S.T @ S)
    True
    """
    _, scales, right = np.linalg.svd(np.array(PRINTED_SIGMA))
    return (right.T * scales) @ right

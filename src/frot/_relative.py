"""Regularisation in units of the data: a share of the mean cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from frot._validate import check_number

__all__ = ["Relative", "relative"]


@dataclass(frozen=True)
class Relative:
    """A share of the mean cost; see `relative`."""

    share: float

    def of(self, mean_cost: Any) -> Any:
        """Return the share of the given mean cost."""
        return self.share * mean_cost


def relative(share: float) -> Relative:
    r"""Say eta or eps as a share of the mean cost :math:`\frac{1}{L} \sum_l a^\top C_l b`.

    The paper's eta and eps are absolute, so that the same data in other units gives another
    answer; a share does not depend on units.

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

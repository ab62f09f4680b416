"""`TwoSampleTest`: what `two_sample_test` returns, as text, table and picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.arrays import read_only
from frot._base.errors import require
from frot.problem.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of tests, where nobody says which.
LEVEL = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleTest:
    """Whether two samples differ, and in which groups of features; arrays of groups are (L,).

    Attributes
    ----------
    names : tuple of str
        Of the groups.
    sizes : pair of int
        Points in each sample.
    result : Result
        `frot.solve` between the samples, in the test's units of cost: its ``value`` is F, with a
        proven interval, its ``alpha`` the weights of the groups.
    p : float
        Of all groups together.
    p_interval : pair of float
        `p` is the upper end. The lower one would be p if none of the problems that ended before
        their tolerance had reached the samples' own statistic.
    z, effect : float
        The overall statistic above its mean under permuted labels: in standard deviations, and as
        a share of the mean cost between pooled points. z grows with the samples, effect does not.
    statistic : float
        T, the lower end of its interval.
    null : array of shape (B,)
        T under each permutation, to about three digits of F where that tells it from `statistic`.
    p_groups : array
        p of each group, adjusted for the largest over groups.
    p_single : array
        p of each group by itself, not adjusted.
    z_groups, effect_groups : arrays
        As z and effect, of each group's own statistic.
    divergence : array
        The groups' Sinkhorn divergences between the samples: the middle of
    divergence_interval : pair of arrays
        what is proven of them.
    null_groups : array of shape (B, L)
        The groups' statistics under each permutation.
    short : int
        Problems that ended before their tolerance, not far enough to tell.
    settings : dict
        What was asked for: metric, p, normalise, eta, eps, tol, blocks, random_state.

    Examples
    --------
    >>> import numpy as np, frot
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 30, 2))
    >>> test = frot.two_sample_test(X, Y + [2.0, 0.0], permutations=99)
    >>> test.p, test.p_groups.round(2), test.result.status
    (0.01, array([0.01, 0.36]), Status.CONVERGED)
    """

    names: tuple[str, ...]
    sizes: tuple[int, int]
    result: Result
    p: float
    p_interval: tuple[float, float]
    z: float
    effect: float
    statistic: float
    null: np.ndarray
    p_groups: np.ndarray
    p_single: np.ndarray
    z_groups: np.ndarray
    effect_groups: np.ndarray
    divergence: np.ndarray
    divergence_interval: tuple[np.ndarray, np.ndarray]
    null_groups: np.ndarray
    short: int
    settings: dict[str, Any]

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, read_only(value))
        low, high = self.divergence_interval
        object.__setattr__(self, "divergence_interval", (read_only(low), read_only(high)))

    @property
    def permutations(self) -> int:
        """B, how many permutations there were."""
        return len(self.null)

    @property
    def order(self) -> np.ndarray:
        """The groups, those that stand out most first."""
        return np.lexsort((-self.z_groups, self.p_groups))

    def differs(self, level: float = LEVEL) -> tuple[str, ...]:
        """Return the names of the groups with an adjusted p of at most `level`, the first first."""
        return tuple(self.names[group] for group in self.order if self.p_groups[group] <= level)

    def summary(self, top: int = 5) -> str:
        """Return the test as text: p, effect sizes, and the groups that stand out most."""
        n, m = self.sizes
        shown = self.order[:top]
        width = max(len(self.names[group]) for group in shown)
        low, high = self.p_interval
        within = "" if low == high else f" (at least {low:.3g})"
        count = len(self.names)
        many = f"{count} groups" if count > 1 else "1 group"
        lines = [
            f"Two-sample test of {n} and {m} points in {many}, {self.permutations} permutations",
            f"  overall  p = {self.p:.3g}{within}, z = {self.z:.3g}, effect {self.effect:.3g}",
            f"  groups   {len(self.differs())} with p <= {LEVEL:g}, adjusted for all {count}",
        ]
        lines += [
            f"    {self.names[group]:<{width}}  p = {self.p_groups[group]:<7.3g} "
            f"z = {self.z_groups[group]:<7.2f} effect {self.effect_groups[group]:.3g}"
            for group in shown
        ]
        if count > top:
            lines.append(f"    ... and {count - top} more")
        if self.short:
            lines.append(f"  {self.short} problems ended before their tolerance")
        asked = ", ".join(
            f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.settings.items()
        )
        lines.append(f"  asked for  {asked}, frot {self.result.version}")
        return "\n".join(lines)

    __repr__ = summary

    def _columns(self) -> dict[str, Any]:
        order, (low, high) = self.order, self.divergence_interval
        arrays = {
            "p": self.p_groups,
            "p_single": self.p_single,
            "z": self.z_groups,
            "effect": self.effect_groups,
            "divergence": self.divergence,
            "lower": low,
            "upper": high,
            "alpha": np.asarray(self.result.alpha),
        }
        names = [self.names[group] for group in order]
        return {"group": names, **{name: array[order] for name, array in arrays.items()}}

    def to_frame(self) -> Any:
        """Return the groups as a pandas DataFrame, those that stand out most first.

        Examples
        --------
        >>> import numpy as np, frot
        >>> X, Y = np.random.default_rng(0).normal(size=(2, 30, 2))
        >>> frame = frot.two_sample_test(X, Y + [2.0, 0.0], permutations=99).to_frame()
        >>> list(frame.columns)
        ['group', 'p', 'p_single', 'z', 'effect', 'divergence', 'lower', 'upper', 'alpha']
        """
        return require("pandas", "tables").DataFrame(self._columns())

    def to_dict(self) -> dict[str, Any]:
        """Return all but what permutations gave, as numbers and text ready for JSON."""
        columns = {
            name: values if name == "group" else values.tolist()
            for name, values in self._columns().items()
        }
        rows = zip(*columns.values(), strict=True)
        return {
            "points": list(self.sizes),
            "permutations": self.permutations,
            "short": self.short,
            "p": self.p,
            "p_interval": list(self.p_interval),
            "z": self.z,
            "effect": self.effect,
            "statistic": self.statistic,
            "settings": self.settings,
            "groups": [dict(zip(columns, row, strict=True)) for row in rows],
            "result": self.result.to_dict(),
        }

    def _repr_html_(self) -> str:
        from frot.show.page import card

        (n, m), columns = self.sizes, self._columns()
        heads = ["group", "p", "z", "effect"]
        rows = list(zip(*(columns[name][:5] for name in heads), strict=True))
        facts = [
            ("overall", f"p = {self.p:.3g}, z = {self.z:.3g}, effect {self.effect:.3g}"),
            ("permutations", f"{self.permutations:,}"),
        ]
        left = len(self.names) - len(rows)
        note = "p of groups are adjusted for the largest" + (f"; {left:,} more" if left else "")
        title = f"Two-sample test of {n:,} and {m:,} points"
        return card(title, facts, heads, rows, note)

    def plot(self, top: int = 20) -> Figure:
        """Draw the overall statistic on its null, and the groups' on theirs.

        Parameters
        ----------
        top : int
            Groups at most.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from frot.show.two_sample import plot_two_sample

        return plot_two_sample(self, top)

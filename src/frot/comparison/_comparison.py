"""Several methods on the same points: their answers as a table, a picture and plain data."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError
from frot.comparison._memory import MEASURES
from frot.comparison._relations import Relation, relations_of
from frot.comparison._row import Row
from frot.groups.groups import Groups
from frot.problem.adversary import GivenSet, SimplexFamily
from frot.problem.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HEADS", "NOTE", "Comparison"]

HEADS = ("method", "value", "interval", "gap", "status", "seconds", "memory", "chose")
NOTE = "Values are squared transport costs, in the squared unit of the features."
# Columns of text; the others are numbers.
TEXTS = ("method", "status", "chose")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What `compare` returns: a row for every method, in the order asked for.

    Attributes
    ----------
    rows : tuple of Row
        ``row.result`` is the method's `Result`, None where it failed (``row.problem`` says why).
    points : pair of arrays of shapes (n, d) and (m, d)
    groups : Groups
    feature_names : tuple of str, length d
    k : int
        As it was asked for, for SRW.
    measure : str
        How memory was measured.
    interrupted : bool
        Whether Ctrl-C ended it; methods whose turn never came are in `missing`.
    adversary : optional
        The weights that FROT's adversary could choose, where they were not all.

    Examples
    --------
    >>> import frot
    >>> both = frot.compare([[0.0, 0.0]], [[3.0, 4.0]], ["frot", "srw", "ot"], groups="each", k=1)
    >>> [(row.title, round(row.result.value, 6)) for row in both.rows]
    [('FROT', 16.0), ('SRW', 25.0), ('OT', 25.0)]
    >>> both["ot"].value
    25.0
    """

    rows: tuple[Row, ...]
    points: tuple[np.ndarray, np.ndarray]
    groups: Groups
    feature_names: tuple[str, ...]
    k: Any = 2
    measure: str = "resident"
    interrupted: bool = False
    adversary: SimplexFamily | GivenSet | None = None

    def __getitem__(self, method: str) -> Result:
        """Return the result of a method by its name."""
        for row in self.rows:
            if row.method == ("ot" if method == "wasserstein" else method):
                if row.result is None:
                    raise InputError(f"{method} has no result: {row.problem}")
                return row.result
        known = ", ".join(row.method for row in self.rows)
        raise InputError(f"{method!r} was not compared; there are {known}")

    @property
    def answered(self) -> tuple[Row, ...]:
        """Rows with a result."""
        return tuple(row for row in self.rows if row.result is not None)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the methods without a result."""
        return tuple(row.method for row in self.rows if row.result is None)

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The inequalities known between these methods, checked against their intervals."""
        return relations_of(self.rows, self.groups.sizes.tolist(), self.k, self.adversary)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the table should know."""
        other = [
            f"{row.title}'s are in another unit ({row.unit}) and not to be held against the others."
            for row in self.answered
            if not row.comparable
        ]
        warned = [f"{row.title}: {text}" for row in self.rows for text in row.warnings]
        return (NOTE, f"Memory is the {MEASURES[self.measure]}.", *other, *warned)

    def table(self) -> str:
        """Return the rows as text in columns.

        Examples
        --------
        >>> import frot
        >>> print(frot.compare([[0.0, 0.0]], [[3.0, 4.0]], ["frot", "ot"]).table())
        method  value  interval ...
        FROT       16  [16, 16] ...
        OT         25  [25, 25] ...
        """
        lines = [dict(zip(HEADS, HEADS, strict=True)), *(row.cells for row in self.rows)]
        widths = {head: max(len(line[head]) for line in lines) for head in HEADS}
        texts = (
            "  ".join(
                line[head].ljust(widths[head]) if head in TEXTS else line[head].rjust(widths[head])
                for head in HEADS
            ).rstrip()
            for line in lines
        )
        return "\n".join(texts)

    def plot(self, features: tuple[int, int] | None = None) -> Figure:
        """Draw all intervals on one axis and the plans side by side.

        Parameters
        ----------
        features : pair of int, optional
            The two features to show; by default the two that the methods chose most.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from frot.comparison.picture import plot_comparison

        return plot_comparison(self, features)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the plans as numbers and text, ready for JSON."""
        X, Y = self.points
        return {
            "points": [len(X), len(Y)],
            "features": X.shape[1],
            "groups": list(self.groups.names),
            "k": int(self.k) if isinstance(self.k, Integral) else str(self.k),
            "notes": list(self.notes),
            "memory_measure": self.measure,
            "interrupted": self.interrupted,
            "missing": list(self.missing),
            "rows": [row.to_dict() for row in self.rows],
            "relations": [relation.to_dict() for relation in self.relations],
        }

    def __repr__(self) -> str:
        return f"Comparison of {', '.join(row.title for row in self.rows)}\n{self.table()}"

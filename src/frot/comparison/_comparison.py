"""`Comparison`: a row for each method, and which values are proven to be no more than which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.errors import InputError, require
from frot.comparison.methods import SQUARED, Method
from frot.groups.groups import Groups
from frot.problem.adversary import GivenSet, SimplexFamily
from frot.problem.result import Chosen, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNBOUNDED = "∞"
WITHOUT_CHOICE = {
    "ot": "nothing: all features count",
    "sliced": "nothing: all directions count the same",
}


@dataclass(frozen=True, eq=False)
class Row:
    """A method's row in a `Comparison`: what it found, and what that took.

    Attributes
    ----------
    method, title : str
        Its name in `compare`, and for people.
    result : Result, optional
        None if it failed or was not run.
    problem : str
        Why there is no result; empty if there is one.
    seconds : float
    memory : int, optional
        Bytes at the peak, beyond what was there before.
    unit : str
        Of the value and its bounds.
    counts : str
        What of the squared displacements the method counts.
    warnings : tuple of str
    """

    method: str
    title: str
    result: Result | None = None
    problem: str = ""
    seconds: float = 0.0
    memory: int | None = None
    unit: str = SQUARED
    counts: str = ""
    warnings: tuple[str, ...] = field(default=())

    @classmethod
    def not_run(cls, method: Method, why: str) -> Row:
        """Return the row of a method that was not run."""
        return cls(method.name, method.title, problem=why, counts=method.counts)

    @property
    def comparable(self) -> bool:
        """Whether there is a value, in the unit of the others."""
        return self.result is not None and self.unit == SQUARED

    @property
    def status(self) -> str:
        """Why the method stopped, in a word."""
        return "FAILED" if self.result is None else str(self.result.status)

    @property
    def chosen(self) -> Chosen | None:
        """What the adversary chose; for FROT the weights of the groups."""
        if self.result is None or self.result.chosen is not None:
            return None if self.result is None else self.result.chosen
        # What is left of weights that are zero is rounding, and would be told as "and 3 more".
        return Chosen("weights", np.asarray(self.result.alpha).round(12), self.result.names)

    @property
    def cells(self) -> dict[str, str]:
        """The row as text, a column each."""
        chosen = self.chosen
        if self.result is None or chosen is None:
            blank = dict.fromkeys(("value", "interval", "gap"), "–")
            ran = f"{self.seconds:.3g}" if self.seconds else "–"
            about = {"status": "FAILED", "seconds": ran, "memory": "–", "chose": self.problem}
            return {"method": self.title, **blank, **about}
        result = self.result
        # Methods without choice would otherwise be said to have chosen "all 1".
        chose = WITHOUT_CHOICE.get(self.method) or chosen.describe()
        if self.method == "generalised_max_sliced":
            chose = chose.replace("direction", "parameters", 1)
        return {
            "method": self.title,
            "value": f"{result.value:.5g}",
            "interval": f"[{_number(result.lower)}, {_number(result.upper)}]",
            "gap": f"{result.gap:.1e}" if math.isfinite(result.upper) else UNBOUNDED,
            "status": str(result.status),
            "seconds": f"{self.seconds:.3g}",
            "memory": "–" if self.memory is None else megabytes(self.memory),
            "chose": chose,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain numbers and text, for JSON; infinite bounds are None."""
        row: dict[str, Any] = {
            "method": self.method,
            "title": self.title,
            "counts": self.counts,
            "unit": self.unit,
            "status": self.status,
            "seconds": round(self.seconds, 6),
            "memory_bytes": self.memory,
            "warnings": list(self.warnings),
        }
        chosen = self.chosen
        if self.result is None or chosen is None:
            return {**row, "problem": self.problem}
        result = self.result
        weights = None if chosen.weights is None else chosen.weights.tolist()
        return {
            **row,
            "value": result.value,
            "lower": _finite(result.lower),
            "upper": _finite(result.upper),
            "gap": _finite(result.gap) if math.isfinite(result.upper) else None,
            "sentence": result.status.sentence,
            "solver": result.solver,
            "iterations": result.iterations,
            "arcs": int(result.plan.nnz),
            "chosen": {
                "kind": chosen.kind,
                "text": chosen.describe(),
                "names": list(chosen.names),
                "array": np.asarray(chosen.array).tolist(),
                "weights": weights,
            },
        }


def megabytes(size: int) -> str:
    """Say a number of bytes in MB.

    Examples
    --------
    >>> megabytes(12_300_000), megabytes(40_000)
    ('12.3 MB', '< 0.1 MB')
    """
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else "< 0.1 MB"


def _number(value: float) -> str:
    return f"{value:.5g}" if math.isfinite(value) else UNBOUNDED


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


# Bounds of different methods are rounded differently.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Relation:
    """A theorem, left <= right, and what the two intervals say about it here.

    `verdict` is "proven" if the intervals do not even overlap, "consistent" if they do, and
    "violated" if they contradict it: then one of them is wrong, which would be a bug.
    """

    left: str
    right: str
    why: str
    verdict: str

    def to_dict(self) -> dict[str, str]:
        """Return the relation as text."""
        return asdict(self)


def relations_of(
    rows: Sequence[Row],
    sizes: Sequence[int],
    k: Any,
    adversary: SimplexFamily | GivenSet | None = None,
) -> tuple[Relation, ...]:
    """Return the relations between the rows, given how many features each group has.

    Those of FROT are about weights of sum one; of sets that are something else nothing is known.

    Examples
    --------
    >>> import frot
    >>> found = frot.compare([[0.0, 0.0]], [[1.0, 2.0]], ["max_min", "frot", "ot"])
    >>> [(one.left, one.right, one.verdict) for one in found.relations]
    [('max-min', 'FROT', 'consistent'), ('FROT', 'OT', 'proven')]
    """
    there = {row.method: row for row in rows if row.comparable}
    found = []
    for left, right, why, known in _theorems(max(sizes, default=1), k, adversary):
        one, other = there.get(left), there.get(right)
        if known and one is not None and other is not None:
            found.append(Relation(one.title, other.title, why, _verdict(one, other)))
    return tuple(found)


def _theorems(
    largest: int, k: Any, adversary: SimplexFamily | GivenSet | None
) -> list[tuple[str, str, str, bool]]:
    mixes = adversary is None or adversary.on_simplex
    # A single group is no choice where several have to share the weight.
    alone = mixes and (adversary is None or adversary.k == 1)
    fits = isinstance(k, Integral) and largest <= int(k)
    return [
        ("max_min", "frot", "the adversary chooses before the plan, and a single group", alone),
        ("equitable", "frot", "each group pays for its part of the plan only", mixes),
        ("frot", "srw", "every group lies in a subspace of at most k dimensions", fits and mixes),
        ("frot", "ot", "a mix of groups counts no feature more than once", mixes),
        ("max_min", "max_sliced", "single features are directions", largest == 1),
        ("sliced", "max_sliced", "a mean is no more than the largest", True),
        ("max_sliced", "srw", "a direction chosen first lies in some subspace", True),
        ("srw", "ot", "a subspace counts no direction more than once", True),
        ("generalised_max_sliced", "ot", "the curve stretches no distance", True),
    ]


def _verdict(one: Row, other: Row) -> str:
    assert one.result is not None
    assert other.result is not None
    left, right = one.result, other.result
    if left.upper <= right.lower:
        return "proven"
    room = ROUNDING * (abs(left.lower) + abs(right.upper))
    return "consistent" if left.lower <= right.upper + room else "violated"


HEADS = ("method", "value", "interval", "gap", "status", "seconds", "memory", "chose")
NOTE = "Values are squared transport costs, in the squared unit of the features."
# Columns of a DataFrame, besides what was chosen.
FRAME = ("method", "title", "value", "lower", "upper", "gap", "status", "unit", "seconds")
FRAME += ("memory_bytes",)
PAID = "They include what was paid for mass that was not kept."
# How memory was measured.
MEASURES = {
    "resident": "growth of the process's peak resident memory (what libraries in C took included)",
    "python": "peak of what Python and NumPy allocated (libraries in C left out)",
}
# Columns of text; the others are numbers.
TEXTS = ("method", "status", "chose")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Methods compared on the same points, as `frot.compare` returns them.

    A row for every method, in the order asked for. Not `frot.selection.Comparison`, which compares
    two classes of samples.

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
        Whether Ctrl-C ended it; methods that were not run are in `missing`.
    adversary : optional
        The weights that FROT's adversary could choose, where they were not all.
    paid : bool
        Whether mass could be left out at a price, which the values then include.

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
    paid: bool = False

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
        paid = [PAID] if self.paid else []
        return (NOTE, *paid, f"Memory is the {MEASURES[self.measure]}.", *other, *warned)

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

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per method: value, bounds, status, cost, choice.

        Examples
        --------
        >>> import frot
        >>> frame = frot.compare([[0.0, 0.0]], [[3.0, 4.0]], ["frot", "ot"]).to_frame()
        >>> frame["value"].tolist(), frame["status"].tolist()
        ([16.0, 25.0], ['CONVERGED', 'CONVERGED'])
        """
        rows = [
            {
                **{name: row.to_dict().get(name) for name in FRAME},
                "chose": row.cells["chose"],
            }
            for row in self.rows
        ]
        return require("pandas", "tables").DataFrame(rows)

    def save(self, path: str | Path) -> Path:
        """Write the comparison to an .npz file, with all results; `frot.load` reads it back.

        Of an adversary the file keeps the name and what `relations` depends on.

        Examples
        --------
        >>> import frot, pathlib, tempfile
        >>> both = frot.compare([[0.0, 0.0]], [[3.0, 4.0]], ["frot", "ot"])
        >>> again = frot.load(both.save(pathlib.Path(tempfile.mkdtemp()) / "both.npz"))
        >>> again["ot"].value
        25.0
        """
        from frot._base.files import write_archive
        from frot.comparison.comparison_file import arrays_of

        return write_archive(path, "comparison", arrays_of(self))

    def _repr_html_(self) -> str:
        from frot.show.page import card

        rows = [[row.cells[head] for head in HEADS] for row in self.rows]
        (n, d), m = self.points[0].shape, len(self.points[1])
        title = f"{len(rows)} transports of {n:,} to {m:,} points with {d:,} features"
        return card(title, [], HEADS, rows, NOTE)

    def __repr__(self) -> str:
        return f"Comparison of {', '.join(row.title for row in self.rows)}\n{self.table()}"

"""What came out, as a table of kinds by outcomes, and every failure with how to repeat it."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table

from .judge import OUTCOMES
from .pool import Outcome

__all__ = ["Tally", "show_failure"]

# Calls longer than this are not printed: they are made again by their number.
CODE_LENGTH = 1_200


class Tally:
    """Counts of outcomes and of complaints, by kind."""

    def __init__(self) -> None:
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.complaints: Counter[tuple[str, str]] = Counter()
        self.failures = 0
        self.calls = 0

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.calls += 1
        self.outcomes[outcome.kind, outcome.verdict.outcome] += 1
        self.failures += outcome.verdict.failed
        for what in {complaint.what for complaint in outcome.verdict.complaints}:
            self.complaints[outcome.kind, what] += 1

    def show(self, console: Console, title: str) -> None:
        """Print the table."""
        table = Table(title=title, pad_edge=False)
        kinds = sorted({kind for kind, _ in self.outcomes})
        seen = {what for _, what in self.outcomes}
        columns = [what for what in OUTCOMES if what in seen]
        table.add_column("kind")
        for column in columns:
            table.add_column(column, justify="right")
        table.add_column("failures by what is wrong")
        for kind in kinds:
            wrong = {what: times for (of, what), times in self.complaints.items() if of == kind}
            shown = ", ".join(
                f"{what} {times}" for what, times in sorted(wrong.items(), key=lambda x: -x[1])
            )
            cells = [str(self.outcomes[kind, column] or "") for column in columns]
            table.add_row(kind, *cells, shown)
        console.print(table)
        console.print(f"{self.calls} calls, failures {self.failures}")


def show_failure(console: Console, outcome: Outcome, seed: int) -> None:
    """Print what went wrong, and how to make it again."""
    again = f"python benchmarks/fuzz.py --seed {seed} --only {outcome.number}"
    console.print(f"{outcome.kind}: {outcome.door}   {again}", style="bold", markup=False)
    for complaint in outcome.verdict.complaints:
        console.print(f"  {complaint.what}: {complaint.detail}", markup=False)
    if outcome.code and len(outcome.code) <= CODE_LENGTH:
        console.print(f"  {outcome.code}", markup=False)

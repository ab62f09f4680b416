"""The files of ``frot select``: tables, the page, and what an unfinished run leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._errors import InputError
from frot._files import check_writable, replacing

if TYPE_CHECKING:
    from frot.selection import FROTSelector, StabilitySelection

__all__ = ["SelectFiles", "write_ranking"]

TABLES = (".tsv", ".csv")
PAGES = (".html", ".htm")


@dataclass(frozen=True)
class SelectFiles:
    """Where the table, the page and the finished permutations go.

    Unless the user names a checkpoint it lies beside the first file that is written, or in the
    working folder, and is removed when the run is complete. One that was named is kept, so that
    more permutations can be added.

    Examples
    --------
    >>> SelectFiles(Path("data.csv"), Path("out/genes.tsv")).permutations.as_posix()
    'out/genes.tsv.permutations'
    >>> SelectFiles(Path("in/data.csv")).stability.as_posix()
    'data.csv.stability'
    """

    data: Path
    table: Path | None = None
    page: Path | None = None
    checkpoint: Path | None = None

    @property
    def permutations(self) -> Path:
        """Checkpoint of the permutation test."""
        return self.checkpoint or self._beside("permutations")

    @property
    def stability(self) -> Path:
        """Checkpoint of stability selection."""
        if self.checkpoint is not None:
            return self.checkpoint.with_name(f"{self.checkpoint.name}.stability")
        return self._beside("stability")

    def _beside(self, what: str) -> Path:
        near = self.table or self.page or Path(self.data.name)
        return near.with_name(f"{near.name}.{what}")

    def check(self) -> None:
        """Refuse what could not be written, before the work."""
        for path in (self.table, self.page, self.checkpoint):
            if path is None:
                continue
            check_writable(path)
            if path.resolve() == self.data.resolve():
                raise InputError(f"{path} is the data itself; give the path of another file")
        for path, kinds in ((self.table, TABLES), (self.page, PAGES)):
            if path is not None and path.suffix.lower() not in kinds:
                raise InputError(f"{path} must end in {' or '.join(kinds)}")

    def finish(self) -> None:
        """Remove the checkpoints that the user did not ask for."""
        if self.checkpoint is None:
            self.permutations.unlink(missing_ok=True)
            self.stability.unlink(missing_ok=True)


def write_ranking(
    selector: FROTSelector, path: Path, stability: StabilitySelection | None = None
) -> None:
    """Write the table of all features, best first, with whether each is selected."""
    order = np.argsort(selector.ranking_)
    table: Any = selector.table_
    columns = {name: np.asarray(table[name]) for name in table}
    columns["selected"] = selector.groups_support_[order].astype(int)
    if stability is not None:
        columns["frequency"] = stability.frequency[order]
    import csv

    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        comma = path.suffix.lower() == ".csv"
        writer = csv.writer(file, delimiter="," if comma else "\t", lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow([_cell(value) for value in row])


def _cell(value: Any) -> str:
    """Write a number with all that it has; nothing where there is none."""
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{float(value):.9g}"
    return str(value)

"""A figure computed anew: its numbers, its verdicts and its picture, and how they are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frot._files import make_folder, replacing
from frot._reproduce._verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Reproduction"]


@dataclass(frozen=True, eq=False)
class Reproduction:
    """One figure of the paper.

    Parameters
    ----------
    name : str
        Of the files, for example ``"fig1"``.
    numbers : dict
        All that was computed, ready for JSON.
    verdicts : tuple of Verdict
    draw : callable
        Makes the picture; called only when one is wanted, since it needs matplotlib.
    notes : tuple of str
        What a reader of the verdicts should know about the data.
    tables : str, optional
        The numbers as Markdown.
    """

    name: str
    numbers: dict[str, Any]
    verdicts: tuple[Verdict, ...]
    draw: Callable[[], Figure]
    notes: tuple[str, ...] = ()
    tables: str | None = None

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write NAME.png, NAME.json and, with tables, NAME.md into `folder`; returns the paths."""
        folder = make_folder(folder)
        picture, numbers = folder / f"{self.name}.png", folder / f"{self.name}.json"
        verdicts = [verdict.as_dict() for verdict in self.verdicts]
        content = {**self.numbers, "notes": list(self.notes), "verdicts": verdicts}
        # The numbers first: they were dear, and a missing matplotlib shall not lose them.
        with replacing(numbers) as draft:
            draft.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", "utf-8")
        paths = [picture, numbers]
        if self.tables is not None:
            paths.append(folder / f"{self.name}.md")
            with replacing(paths[-1]) as draft:
                draft.write_text(self.tables, "utf-8")
        with replacing(picture) as draft:
            self.draw().savefig(draft, dpi=150)
        return tuple(paths)

"""The files of ``frot match``: the picture, the page and the numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frot._cli._match_call import MatchCall
from frot._cli._outputs import PICTURES
from frot._errors import InputError, require
from frot._files import check_writable, replacing

if TYPE_CHECKING:
    from frot.correspondence._match import Match as Matched
    from frot.correspondence._transfer import Transfer as Moved

__all__ = ["MatchFiles", "numbers"]


@dataclass(frozen=True)
class MatchFiles:
    """Where the picture, the page and the numbers go; None for those not wanted."""

    photos: tuple[Path, Path]
    picture: Path | None = None
    page: Path | None = None
    numbers: Path | None = None

    def check(self) -> None:
        """Refuse what could not be written, before the work."""
        kinds = (
            (self.picture, PICTURES),
            (self.page, (".html", ".htm")),
            (self.numbers, (".json",)),
        )
        for path, endings in kinds:
            if path is None:
                continue
            check_writable(path)
            if path.suffix.lower() not in endings:
                raise InputError(f"{path} must end in {' or '.join(endings)}")
            if path.resolve() in [photo.resolve() for photo in self.photos]:
                raise InputError(f"{path} is one of the photographs; give another path")
        if self.picture is not None:
            require("matplotlib.figure", "plot")

    def write(
        self, match: Matched, points: np.ndarray, moved: Moved, call: MatchCall
    ) -> list[Path]:
        """Write all that is wanted; returns the paths."""
        if self.picture is not None:
            from frot.correspondence._pictures import plot_matches

            figure = plot_matches(match, points)
            with replacing(self.picture) as draft:
                figure.savefig(draft, dpi=150)
        if self.page is not None:
            from frot.correspondence._page import write_match_page

            write_match_page(match, self.page, points, call=call.python, command=call.command)
        if self.numbers is not None:
            text = json.dumps(numbers(match, points, moved), indent=2, ensure_ascii=False)
            with replacing(self.numbers) as draft:
                draft.write_text(text + "\n", encoding="utf-8")
        return [path for path in (self.picture, self.page, self.numbers) if path is not None]


def numbers(match: Matched, points: np.ndarray, moved: Moved) -> dict[str, Any]:
    """Return what was found, as JSON has it."""
    result = match.result
    rows = zip(points.tolist(), moved.points.tolist(), moved.confidence.tolist(), strict=True)
    return {
        "source": {"name": match.source.name, "size": list(match.source.size)},
        "target": {"name": match.target.name, "size": list(match.target.size)},
        "points": [
            {"source": point, "target": place, "confidence": sure} for point, place, sure in rows
        ],
        "alpha": {name: float(weight) for name, weight in match.alpha.items()},
        "phi": {name: float(cost) for name, cost in (match.phi or {}).items()},
        "method": match.method,
        "seconds": float(match.seconds),
        "result": None
        if result is None
        else {
            **{name: float(getattr(result, name)) for name in ("value", "lower", "upper", "gap")},
            **{name: float(getattr(result, name)) for name in ("eta", "eps")},
            "status": str(result.status),
            "solver": result.solver,
        },
    }

"""The files that ``frot solve`` writes: checked before the work, complete or not there after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from frot._cli._call import Call
from frot._errors import InputError, require
from frot._files import check_writable, replacing

if TYPE_CHECKING:
    from frot._group_arrays import GroupArrays
    from frot._result import Result

__all__ = ["Outputs"]

PICTURES = (".png", ".svg", ".pdf", ".jpg", ".webp")


@dataclass(frozen=True)
class Outputs:
    """Where the result, the report and the picture go; None for those not wanted."""

    result: Path | None = None
    report: Path | None = None
    picture: Path | None = None

    def check(self) -> None:
        """Refuse what could not be written, before an hour of solving is lost to it."""
        for path in (self.result, self.report, self.picture):
            if path is not None:
                check_writable(path)
        for path, kinds in ((self.result, (".npz",)), (self.picture, PICTURES)):
            if path is not None and path.suffix.lower() not in kinds:
                raise InputError(f"{path} must end in {', '.join(kinds)}")
        if self.picture is not None:
            require("matplotlib.figure", "plot")

    def write(
        self, result: Result, call: Call, groups: GroupArrays, names: Sequence[str] | None
    ) -> list[Path]:
        """Write all that is wanted; returns the paths."""
        if self.result is not None:
            with replacing(self.result) as draft:
                result.save(draft)
        if self.report is not None:
            from frot.show import write_report

            title = f"{call.a.name} to {call.b.name}"
            write_report(
                result,
                self.report,
                call.python,
                title,
                command=call.command,
                groups=groups,
                feature_names=names,
            )
        if self.picture is not None:
            figure = result.plot(groups=groups, feature_names=names)
            with replacing(self.picture) as draft:
                figure.savefig(draft, dpi=150)
        return [path for path in (self.result, self.report, self.picture) if path is not None]

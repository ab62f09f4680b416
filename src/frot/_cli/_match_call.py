"""The call behind ``frot match``, written out in Python and as a command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["MatchCall"]


@dataclass(frozen=True)
class MatchCall:
    """What to match and how; `options` are the arguments of `Matcher` that were given.

    Examples
    --------
    >>> call = MatchCall(Path("a.jpg"), Path("my b.jpg"), ("12,8",), options={"hough": False})
    >>> print(call.command)
    frot match a.jpg 'my b.jpg' --points 12,8 --no-hough
    >>> print(call.python)
    from frot.correspondence import Matcher
    <BLANKLINE>
    match = Matcher(hough=False)('a.jpg', 'my b.jpg')
    moved = match.transfer([[12.0, 8.0]])
    """

    a: Path
    b: Path
    points: tuple[str, ...] = ()
    grid: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command line."""
        words = ["frot", "match", str(self.a), str(self.b)]
        for point in self.points:
            words += ["--points", point]
        if self.grid is not None:
            words += ["--grid", str(self.grid)]
        for name, value in self.options.items():
            if name == "hough":
                words.append("--hough" if value else "--no-hough")
            else:
                words += [f"--{name}", _text(value)]
        return shlex.join(words)

    @property
    def python(self) -> str:
        """The same in Python."""
        from frot._cli._match_points import parse_points
        from frot._cli._matcher_options import split_options

        network, rest = split_options(self.options)
        given = _arguments(rest)
        if network:
            given = ", ".join(filter(None, [f"OnnxBackbone({_arguments(network)})", given]))
        lines = [
            f"from frot.correspondence import Matcher{', OnnxBackbone' if network else ''}",
            "",
            f"match = Matcher({given})({str(self.a)!r}, {str(self.b)!r})",
        ]
        if self.points:
            lines.append(f"moved = match.transfer({parse_points(self.points).tolist()})")
        return "\n".join(lines)


def _arguments(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)

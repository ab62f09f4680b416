"""The call behind ``frot solve``, written out in Python and as a command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frot._cli._weights import weights_call

__all__ = ["Call"]


@dataclass(frozen=True)
class Call:
    """What to solve and how; `options` are the arguments of `frot.solve` that were given.

    Examples
    --------
    >>> call = Call(Path("a.csv"), Path("my b.csv"), "prefix", options={"eta": 0.5})
    >>> print(call.command)
    frot solve a.csv 'my b.csv' --groups prefix --eta 0.5
    >>> print(call.python)
    import frot
    <BLANKLINE>
    A, B = frot.read_pair('a.csv', 'my b.csv')
    groups = frot.Groups.parse('prefix', A.shape[1], A.columns or B.columns)
    result = frot.solve(A.values, B.values, groups, eta=0.5)
    """

    a: Path
    b: Path
    groups: str
    weights_a: Path | None = None
    weights_b: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command line."""
        words = ["frot", "solve", str(self.a), str(self.b), "--groups", self.groups]
        for name, path in (("--weights-a", self.weights_a), ("--weights-b", self.weights_b)):
            words += [] if path is None else [name, str(path)]
        for name, value in self.options.items():
            flag = f"--{name.replace('_', '-')}"
            if value is True:
                words.append(flag)
            else:
                text = str(value).replace("_", "-") if name == "solver" else str(value)
                words += [flag, text]
        return shlex.join(words)

    @property
    def python(self) -> str:
        """The same in Python."""
        weights = {"a": self.weights_a, "b": self.weights_b}
        given = [f"{name}={weights_call(path)}" for name, path in weights.items() if path]
        given += [f"{name}={value!r}" for name, value in self.options.items()]
        numpy = ["import numpy"] if "numpy.load" in " ".join(given) else []
        arguments = ", ".join(["A.values", "B.values", "groups", *given])
        return "\n".join(
            [
                *numpy,
                "import frot",
                "",
                f"A, B = frot.read_pair({str(self.a)!r}, {str(self.b)!r})",
                f"groups = frot.Groups.parse({self.groups!r}, A.shape[1], A.columns or B.columns)",
                f"result = frot.solve({arguments})",
            ]
        )

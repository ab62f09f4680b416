"""A command's call, written out as a command line and in Python, so that a page can show both."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["TablesCall", "arguments", "given", "option_words"]


def given(**choices: tuple[Any, Any]) -> dict[str, Any]:
    """Return the options that differ from their defaults, so that the call stays readable.

    Examples
    --------
    >>> given(eta=(0.5, 0.0), tol=(None, None))
    {'eta': 0.5}
    """
    return {name: value for name, (value, default) in choices.items() if value != default}


def arguments(options: Mapping[str, Any]) -> list[str]:
    """Return options as arguments in Python.

    Examples
    --------
    >>> arguments({"eta": 0.5, "label": "class"})
    ['eta=0.5', "label='class'"]
    """
    return [f"{name}={value!r}" for name, value in options.items()]


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Return options as words of a command line.

    Examples
    --------
    >>> option_words({"max_iter": 5, "hough": False, "mean": [104.0, 117.5]})
    ['--max-iter', '5', '--no-hough', '--mean', '104,117.5']
    """
    words = []
    for name, value in options.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", _text(value)]
    return words


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def weights_call(path: Path) -> str:
    """Return the Python expression that reads the weights of points.

    Examples
    --------
    >>> print(weights_call(Path("weights.npy")))
    numpy.load('weights.npy').ravel()
    """
    if path.suffix.lower() == ".npy":
        return f"numpy.load({str(path)!r}).ravel()"
    return f"frot.read_table({str(path)!r}).values.ravel()"


@dataclass(frozen=True)
class TablesCall:
    """The call of `frot.solve` on two tables, or of `frot.compare` where there are `methods`.

    Attributes
    ----------
    options : mapping
        The arguments that were given.

    Examples
    --------
    >>> call = TablesCall(Path("a.csv"), Path("my b.csv"), "prefix", options={"eta": 0.5})
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
    methods: str | None = None

    @property
    def command(self) -> str:
        """The command line."""
        words = ["frot", "solve" if self.methods is None else "compare", str(self.a), str(self.b)]
        words += [] if self.methods is None else ["--methods", self.methods]
        words += ["--groups", self.groups]
        options = dict(self.options)
        if "solver" in options:
            options["solver"] = options["solver"].replace("_", "-")
        files = {"weights_a": self.weights_a, "weights_b": self.weights_b}
        kept = {name: path for name, path in files.items() if path is not None}
        return shlex.join([*words, *option_words({**kept, **options})])

    @property
    def python(self) -> str:
        """The same in Python."""
        weights = {"a": self.weights_a, "b": self.weights_b}
        more = [f"{name}={weights_call(path)}" for name, path in weights.items() if path]
        more += arguments(self.options)
        names = "A.columns or B.columns"
        lines = ["import numpy"] * ("numpy.load" in " ".join(more)) + ["import frot", ""]
        lines.append(f"A, B = frot.read_pair({str(self.a)!r}, {str(self.b)!r})")
        if self.methods is None:
            call = f"result = frot.solve(A.values, B.values, {', '.join(['groups', *more])})"
        else:
            lines.append(f"names = {names}")
            names = "names"
            inner = ", ".join([repr(self.methods), "groups", *more, "feature_names=names"])
            call = f"found = frot.compare(A.values, B.values, {inner})"
        lines += [f"groups = frot.Groups.parse({self.groups!r}, A.shape[1], {names})", call]
        return "\n".join(lines)

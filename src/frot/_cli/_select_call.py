"""The call behind ``frot select``, written out in Python and as a command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["SelectCall"]


@dataclass(frozen=True)
class SelectCall:
    """What to select from and how; each mapping holds only what differs from the defaults.

    Attributes
    ----------
    data : Path
    top : int or float
    groups : str
    columns : mapping
        Other arguments of `frot.selection.read_samples`, with ``label``.
    options : mapping
        Arguments of `frot.selection.FROTSelector`.
    permutation, stability : mappings
        Arguments of `permutation_test` and `stability_selection`; empty where not asked for.
    files : mapping
        Names of options to paths that are written.

    Examples
    --------
    >>> call = SelectCall(
    ...     Path("a b.csv"), 5, "each", {"label": "class"}, {"eta": 0.5},
    ...     permutation={"n_permutations": 99, "statistic": "shift"},
    ... )
    >>> print(call.command)
    frot select 'a b.csv' --label class --top 5 --eta 0.5 --permutations 99 --statistic shift
    >>> print(call.python)
    from frot.selection import FROTSelector, read_samples
    <BLANKLINE>
    samples = read_samples('a b.csv', label='class')
    selector = FROTSelector(5, groups=samples.groups('each'), eta=0.5)
    selector.fit(samples.X, samples.y)
    selector.permutation_test(samples.X, samples.y, n_permutations=99, statistic='shift')
    """

    data: Path
    top: int | float
    groups: str
    columns: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    permutation: Mapping[str, Any] = field(default_factory=dict)
    stability: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """The command line."""
        words = ["frot", "select", str(self.data), "--label", str(self.columns["label"])]
        words += ["--top", str(self.top)]
        if self.groups != "each":
            words += ["--groups", self.groups]
        if "ids" in self.columns:
            words += ["--id", str(self.columns["ids"])]
        for name in self.columns.get("ignore", ()):
            words += ["--ignore", str(name)]
        for name, value in self.options.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        if self.permutation:
            words += ["--permutations", str(self.permutation["n_permutations"])]
            words += ["--statistic", str(self.permutation["statistic"])]
        if "block" in self.columns:
            words += ["--block", str(self.columns["block"])]
        if self.stability:
            words += ["--stability", str(self.stability["n_pairs"])]
        seeds = {**self.permutation, **self.stability}
        if "random_state" in seeds:
            words += ["--seed", str(seeds["random_state"])]
        for name, path in self.files.items():
            words += [f"--{name}", str(path)]
        return shlex.join(words)

    @property
    def python(self) -> str:
        """The same in Python."""
        names = ["FROTSelector", "read_samples", *(["stability_selection"] * bool(self.stability))]
        fit = [str(self.top), f"groups=samples.groups({self.groups!r})", *_given(self.options)]
        lines = [
            f"from frot.selection import {', '.join(names)}",
            "",
            f"samples = read_samples({', '.join([repr(str(self.data)), *_given(self.columns)])})",
            f"selector = FROTSelector({', '.join(fit)})",
            "selector.fit(samples.X, samples.y)",
        ]
        if self.permutation:
            given = ["samples.X", "samples.y", *_given(self.permutation)]
            given += ["block=samples.block"] * ("block" in self.columns)
            lines.append(f"selector.permutation_test({', '.join(given)})")
        if self.stability:
            given = ["samples.X", "samples.y", "selector=selector", *_given(self.stability)]
            lines.append(f"stability = stability_selection({', '.join(given)})")
        return "\n".join(lines)


def _given(options: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in options.items()]

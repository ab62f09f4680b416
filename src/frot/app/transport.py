"""The tab *Transport*: two tables or the toy data in, the certified answer and its pictures out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import frot
from frot._base.errors import InputError, collect_warnings
from frot.show import plot_plan
from frot.show.page import image_html
from frot.show.style import png

# What is solved while somebody drags a slider; frot.solve itself takes more.
MAX_ROWS = 2_000
SECONDS = 20.0
# Of the toy data, the features that are noise.
NOISE = slice(2, None)


@dataclass(frozen=True)
class Transported:
    """An answer: facts and weights, a picture of the plan, and the Python that does the same."""

    result: frot.Result
    facts: str
    picture: str
    python: str


def transport_toy(n: float, noise: float, eta: float, seed: float = 0) -> Transported:
    """Solve the paper's toy data, its eight features of noise being `noise` times as loud.

    Examples
    --------
    >>> found = transport_toy(20, 1.0, 0.0)
    >>> found.result.alpha.round(2).tolist()
    [1.0, 0.0]
    >>> print(found.python)
    import frot
    <BLANKLINE>
    X, Y, groups = frot.toy(20, random_state=0)
    result = frot.solve(X, Y, groups)
    print(result.summary())
    """
    n, seed = int(n), int(seed)
    X, Y, groups = frot.toy(n, random_state=seed)
    lines = [f"X, Y, groups = frot.toy({n}, random_state={seed})"]
    if noise != 1.0:
        X[:, NOISE] *= noise
        Y[:, NOISE] *= noise
        lines.append(f"X[:, 2:], Y[:, 2:] = {noise:g} * X[:, 2:], {noise:g} * Y[:, 2:]")
    return _solved(X, Y, groups, eta, lines)


def transport_tables(
    first: str | Path | None, second: str | Path | None, groups: Any, eta: float
) -> Transported:
    """Solve the points of two files; `groups` is a word as in ``frot solve``, or a file.

    A file that is larger than can be drawn while one waits is refused.
    """
    if not first or not second:
        raise InputError("give two tables, A and B, or take the toy data")
    a, b = frot.read_pair(first, second)
    for table, path in ((a, first), (b, second)):
        if table.shape[0] > MAX_ROWS:
            raise InputError(
                f"{Path(path).name} has {table.shape[0]:,} rows, and the app takes {MAX_ROWS:,}; "
                "frot.solve takes more"
            )
    names = a.columns or b.columns
    groups = str(groups or "each").strip()
    parsed = frot.Groups.parse(groups, a.shape[1], names)
    shown = Path(groups).name if Path(groups).is_file() else groups
    lines = [
        f"A, B = frot.read_pair({Path(first).name!r}, {Path(second).name!r})",
        f"groups = frot.Groups.parse({shown!r}, A.shape[1], A.columns or B.columns)",
        "X, Y = A.values, B.values",
    ]
    return _solved(a.values, b.values, parsed, eta, lines, names)


def _solved(
    X: np.ndarray, Y: np.ndarray, groups: Any, eta: float, lines: list[str], names: Any = None
) -> Transported:
    more = f", eta=frot.relative({eta:g})" if eta else ""
    with collect_warnings():
        # The interval says what a warning would.
        result = frot.solve(
            X, Y, groups, eta=frot.relative(eta) if eta else 0.0, time_limit=SECONDS
        )
    figure = plot_plan(result, groups=groups, feature_names=names)
    picture = image_html("image/png", png(figure, dpi=110), "the plan between the points")
    call = f"result = frot.solve(X, Y, groups{more})"
    python = "\n".join(["import frot", "", *lines, call, "print(result.summary())"])
    return Transported(result, result._repr_html_(), picture, python)

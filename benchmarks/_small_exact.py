"""The exact solver on few points beside POT, and what a first solve loads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

from _common import fastest  # isort: skip  (sets the number of threads)

import numpy as np
import ot

import frot

__all__ = ["exact_rows", "import_rows"]

# A call takes less than the clock can tell: so many at a time.
CALLS = 20
REPEATS = 15

FIRST_SOLVE = """
import sys, time
import numpy, frot
begin = time.perf_counter()
frot.solve([[0.0, 1.0], [1.0, 1.0]], [[2.0, 3.0], [1.0, 0.0]], "all")
seconds = time.perf_counter() - begin
print(seconds, *(name for name in ("torch", "jax", "ot") if name in sys.modules))
"""
WHOLE_POT = "import sys, time; t = time.perf_counter(); import ot; print(time.perf_counter() - t, "
WHOLE_POT += "*(name for name in ('torch', 'jax', 'ot') if name in sys.modules))"


def milliseconds(call: Callable[[], Any]) -> float:
    """The least processor time of a call."""
    call()

    def many() -> None:
        for _ in range(CALLS):
            call()

    return fastest(many, REPEATS)[0] / CALLS * 1e3


def exact_rows() -> list[list[str]]:
    """Rows: what, our time, the peer and its time, and the ratio."""
    rng = np.random.default_rng(0)
    rows = []
    for n, groups in ((5, [6]), (5, [2, 2, 2]), (20, [2, 2, 2]), (100, [6]), (100, [2, 2, 2])):
        X, Y = rng.normal(size=(2, n, 6))
        uniform = np.full(n, 1.0 / n)

        def transport(X: np.ndarray = X, Y: np.ndarray = Y, a: np.ndarray = uniform) -> Any:
            return ot.emd2(a, a, ot.dist(X, Y))

        ours = milliseconds(lambda X=X, Y=Y, g=groups: frot.solve(X, Y, g))
        theirs = milliseconds(transport)
        what = f"n = {n}, L = {len(groups)}"
        peer = "ot.emd2" if len(groups) == 1 else "ot.emd2 (one cost)"
        rows.append([what, f"{ours:.2f}", peer, f"{theirs:.2f}", f"{theirs / ours:.2f}"])
    x, y = rng.normal(size=(2, 3000, 1))
    for p in (1.0, 2.0, 3.0):
        ours = milliseconds(lambda p=p: frot.wasserstein(x, y, p=p))
        theirs = milliseconds(lambda p=p: ot.emd2_1d(x[:, 0], y[:, 0], metric="minkowski", p=p))
        what = f"one feature, n = 3000, p = {p:g}"
        rows.append([what, f"{ours:.2f}", "ot.emd2_1d", f"{theirs:.2f}", f"{theirs / ours:.2f}"])
    return rows


def import_rows() -> list[list[str]]:
    """Seconds that the first solve of a process takes, and POT's own import."""
    rows = []
    for what, script in (("frot.solve", FIRST_SOLVE), ("import ot", WHOLE_POT)):
        out = subprocess.run(
            [sys.executable, "-c", script], check=True, capture_output=True, text=True
        ).stdout.split()
        rows.append([what, f"{float(out[0]):.2f}", " ".join(out[1:]) or "none of torch, jax, ot"])
    return rows

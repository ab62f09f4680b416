"""Make a call, and note everything it did: answer, error, warnings, time, what it wrote where."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import frot

from .case import Case

__all__ = ["Attempt", "make_attempt"]


@dataclass(frozen=True, eq=False)
class Attempt:
    """What came of a call.

    `seconds` are of the wall clock or of the processor, whichever are fewer: on a busy machine
    the clock runs while others work.
    """

    answer: Any = None
    error: Exception | None = None
    where: str = ""
    warned: tuple[str, ...] = ()
    leaked: tuple[str, ...] = ()
    seconds: float = 0.0
    printed: str = ""
    mutated: tuple[str, ...] = ()
    inputs: dict[str, np.ndarray] = field(default_factory=dict)


def make_attempt(case: Case) -> Attempt:
    """Make the call of a case."""
    inputs = dict(arrays_in(case))
    before = {name: array.copy() for name, array in inputs.items()}
    answer, error, where = None, None, ""
    with _overheard() as printed, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        clock, processor = time.perf_counter(), time.process_time()
        try:
            answer = case.run()
        except Exception as raised:
            error, where = raised, _place(raised)
        seconds = min(time.perf_counter() - clock, time.process_time() - processor)
    known = [str(w.message) for w in seen if issubclass(w.category, frot.ConvergenceWarning)]
    leaked = [
        f"{w.category.__name__}: {w.message} ({os.path.basename(w.filename)}:{w.lineno})"
        for w in seen
        if not issubclass(w.category, frot.ConvergenceWarning)
    ]
    mutated = [name for name, array in inputs.items() if before[name].tobytes() != array.tobytes()]
    return Attempt(
        answer, error, where, tuple(known), tuple(leaked), seconds, "".join(printed),
        tuple(mutated), inputs,
    )  # fmt: skip


def arrays_in(case: Case) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays among the arguments of a call, and their names."""
    parts = [(f"argument {at}", value) for at, value in enumerate(case.args)]
    parts += list(case.options.items())
    for name, value in parts:
        if isinstance(value, np.ndarray):
            yield name, value
        elif isinstance(value, list | tuple):
            for at, part in enumerate(value):
                if isinstance(part, np.ndarray):
                    yield f"{name}[{at}]", part


def _place(error: Exception) -> str:
    """The line inside the library that an error came through last."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if f"{os.sep}frot{os.sep}" in frame.filename]
    last = (inside or frames)[-1]
    return f"{os.path.basename(last.filename)}:{last.lineno}"


@contextlib.contextmanager
def _overheard() -> Iterator[list[str]]:
    """Collect what is written to the process's standard streams, by C libraries too."""
    heard: list[str] = []
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1), os.dup(2)
        try:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            yield heard
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for stream, old in zip((1, 2), kept, strict=True):
                os.dup2(old, stream)
                os.close(old)
            file.seek(0)
            heard.append(file.read().decode(errors="replace"))

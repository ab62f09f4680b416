"""Exceptions and warnings of frot, and `require`, which imports optional dependencies."""

from __future__ import annotations

import importlib
import reprlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

# Who listens to `warn_caller` in this thread instead of the warnings module, if anyone does.
_LISTENER: ContextVar[list[str] | None] = ContextVar("listener", default=None)


class InputError(ValueError):
    """An argument cannot be used; the message names it and the fix.

    Examples
    --------
    >>> from frot import InputError
    >>> issubclass(InputError, ValueError)
    True
    """

    __module__ = "frot"


class ConvergenceWarning(UserWarning):
    """A solver stopped before its tolerance; its bounds still hold.

    Examples
    --------
    >>> from frot import ConvergenceWarning
    >>> issubclass(ConvergenceWarning, UserWarning)
    True
    """

    __module__ = "frot"


class DataWarning(UserWarning):
    """Data were read in a way that may not be meant; the message names the fix.

    Examples
    --------
    >>> from frot import DataWarning
    >>> issubclass(DataWarning, UserWarning)
    True
    """

    __module__ = "frot"


class SolverError(RuntimeError):
    """A library that frot calls failed, and there is no result to return.

    Examples
    --------
    >>> from frot import SolverError
    >>> issubclass(SolverError, RuntimeError)
    True
    """

    __module__ = "frot"


class MissingDependencyError(ImportError):
    """An optional library is needed and not installed; the message says how to install it.

    Examples
    --------
    >>> from frot import MissingDependencyError
    >>> issubclass(MissingDependencyError, ImportError)
    True
    """

    __module__ = "frot"


def brief(value: Any, most: int = 60) -> str:
    """Return what a value is, for a message: as Python writes it, but never long.

    Examples
    --------
    >>> brief("mean"), brief(list(range(1000)))
    ("'mean'", '[0, 1, 2, 3, ...]')
    >>> import numpy
    >>> brief(numpy.zeros((300, 2)))
    'ndarray of shape (300, 2)'
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {tuple(shape)}"
    if isinstance(value, Exception):
        text = str(value)
    else:
        short = reprlib.Repr()
        short.maxlist = short.maxtuple = short.maxset = short.maxdict = 4
        short.maxstring = short.maxother = short.maxlong = most
        try:
            text = short.repr(value)
        except Exception:
            # A message about a value that cannot be written is a message all the same.
            text = f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def how_to_install(extra: str) -> str:
    """Say how an extra is installed, from a package index or where there is only a clone."""
    return f'pip install "frot[{extra}]", or pip install ".[{extra}]" in a clone of frot'


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say which extra of frot brings it.

    Examples
    --------
    >>> require("math", "plot").sqrt(4.0)
    2.0
    >>> require("no_such_module", "plot")
    Traceback (most recent call last):
    ...
    frot.MissingDependencyError: no_such_module is not installed; pip install "frot[plot]", or ...
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # An installed library with a broken import of its own must show its own error.
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        message = f"{package} is not installed; {how_to_install(extra)}"
        raise MissingDependencyError(message, name=package) from None


def warn_caller(message: str, *past: str, category: type[UserWarning] = ConvergenceWarning) -> None:
    """Give a warning of frot's that points at the line outside frot that led here.

    Files in the directories `past` are passed over too: libraries that called frot for the user.
    """
    if (collected := _LISTENER.get()) is not None:
        collected.append(message)
        return
    inside = (str(Path(__file__).parents[1]), *past)
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect what `warn_caller` has to say in this thread, so that nothing is warned.

    `warnings.catch_warnings` would silence other threads too, and a worker process would keep
    what it warned to itself.
    """
    collected: list[str] = []
    token = _LISTENER.set(collected)
    try:
        yield collected
    finally:
        _LISTENER.reset(token)

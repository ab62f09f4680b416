"""One call of the library, what is meant by it, and how to make it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

import frot

from .truth import Program, normalised

__all__ = ["Case", "CostProblem", "PointProblem", "Problem"]


@dataclass(frozen=True, eq=False)
class PointProblem:
    """Points, the members of groups of their features, and weights (None is uniform)."""

    X: np.ndarray
    Y: np.ndarray
    members: Sequence[Sequence[int]]
    metric: Any = "sqeuclidean"
    p: float = 1.0
    a: np.ndarray | None = None
    b: np.ndarray | None = None
    normalise: str = "none"

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return len(self.members), len(self.X), len(self.Y)

    @cached_property
    def program(self) -> Program:
        """The problem in rational numbers."""
        plain = Program.of_points(self.X, self.Y, self.members, self.metric, self.p, self.a, self.b)
        return normalised(plain, self.normalise)


@dataclass(frozen=True, eq=False)
class CostProblem:
    """Cost matrices, (L, n, m), and weights (None is uniform)."""

    stack: np.ndarray
    a: np.ndarray | None = None
    b: np.ndarray | None = None
    normalise: str = "none"

    @property
    def shape(self) -> tuple[int, int, int]:
        """(L, n, m)."""
        return self.stack.shape  # type: ignore[return-value]

    @cached_property
    def program(self) -> Program:
        """The problem in rational numbers."""
        return normalised(Program.of_stack(self.stack, self.a, self.b), self.normalise)


Problem = PointProblem | CostProblem


@dataclass(frozen=True, eq=False)
class Case:
    """A call ``frot.<door>(*args, **options)``, of some kind of problem.

    The door "cutting_set" is `frot.solve_costs` by that solver.

    Attributes
    ----------
    kind : str
        The class of problems that it was drawn from.
    problems : tuple of Problem
        What is meant: one, or one per member of a batch, or one per pair of clouds.
    sentence : str
        What the `frot.InputError` must say of a call that is outside the contract on purpose.
    """

    kind: str
    door: str
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    sentence: str = ""

    def run(self) -> Any:
        """Make the call."""
        return DOORS.get(self.door, _plain)(self)

    def code(self) -> str:
        """The call as Python."""
        args = [_literal(value) for value in self.args]
        if self.door in LOSSES:
            options = [f"{name}={_literal(value)}" for name, value in self.options.items()]
            points = [part if part == "None" else f"torch.as_tensor({part})" for part in args]
            return f"frot.torch.FRWDLoss({', '.join(options)})({', '.join(points)})"
        args += [f"{name}={_literal(value)}" for name, value in self.options.items()]
        if self.door == "cutting_set":
            return f"frot.solve_costs({', '.join(args)}, solver='cutting_set')"
        return f"frot.{self.door}({', '.join(args)})"


def _plain(case: Case) -> Any:
    return getattr(frot, case.door)(*case.args, **case.options)


def _loss(case: Case) -> Any:
    """Return the loss, and the certified answers behind it."""
    import torch

    import frot.torch

    loss = frot.torch.FRWDLoss(**case.options)
    value = loss(*(None if part is None else torch.as_tensor(part) for part in case.args))
    return value.detach().numpy(), loss.result


def _cutting_set(case: Case) -> Any:
    return frot.solve_costs(*case.args, solver="cutting_set", **case.options)


def _divergence(case: Case) -> Any:
    """Return D(x, y), its weights, and D(x, x)."""
    import torch

    import frot.torch

    loss = frot.torch.FRWDLoss(**case.options)
    x, y, a, b = (None if part is None else torch.as_tensor(part) for part in case.args)
    value = float(loss(x, y, a, b))
    assert loss.alpha is not None
    return value, loss.alpha.numpy(), float(loss(x, x, a, a))


DOORS: dict[str, Callable[[Case], Any]] = {
    "FRWDLoss": _loss, "divergence": _divergence, "cutting_set": _cutting_set,
}  # fmt: skip
# Both are the loss.
LOSSES = ("FRWDLoss", "divergence")


def _literal(value: Any) -> str:
    """An expression that makes the value, in as few characters as hold all its digits."""
    if isinstance(value, np.ndarray):
        entries = np.array2string(
            value, separator=",", threshold=10**9, max_line_width=10**9, floatmode="unique"
        )
        entries = entries.replace("\n", "").replace(" ", "")
        entries = entries.replace("inf", "np.inf").replace("nan", "np.nan")
        kind = "" if value.dtype == np.float64 else f",dtype=np.{value.dtype.name}"
        order = ',order="F"' if value.flags.f_contiguous and not value.flags.c_contiguous else ""
        return f"np.array({entries}{kind}{order})"
    if isinstance(value, tuple | list):
        parts = ", ".join(_literal(part) for part in value)
        if isinstance(value, list):
            return f"[{parts}]"
        return f"({parts},)"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_literal(part)}" for key, part in value.items()) + "}"
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, frot.relative(0).__class__):
        return f"frot.relative({value.share!r})"
    name = type(value).__name__
    if is_dataclass(value) and hasattr(frot, name):
        parts = ((part.name, getattr(value, part.name)) for part in fields(value))
        return f"frot.{name}({', '.join(f'{part}={_literal(given)}' for part, given in parts)})"
    return getattr(value, "__name__", repr(value)) if callable(value) else repr(value)

"""The methods that make sense for two sets of points, by name, and how each is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from frot._base.errors import InputError, brief
from frot.api.solve import solve
from frot.groups.groups import Groups
from frot.problem.result import Result
from frot.relatives import (
    equitable,
    generalised_max_sliced,
    max_min,
    max_sliced,
    sliced,
    srw,
    wasserstein,
)

SQUARED = "squared cost"
DEFAULT = ("frot", "srw", "max_sliced", "max_min", "ot")
CURVES = ("circular", "linear", "cubic")
ALIASES = {"wasserstein": "ot", "generalized_max_sliced": "generalised_max_sliced"}
# What a stack of costs for `equitable` may take.
STACK_BYTES = 2 * 1024**3


@dataclass(frozen=True, eq=False)
class Task:
    """What `compare` gives every method; X and Y as they came, `points` as plain arrays."""

    X: Any
    Y: Any
    points: tuple[np.ndarray, np.ndarray]
    groups: Groups
    k: Any
    curve: Any
    weights: dict[str, Any]
    tol: Any = None
    time_limit: Any = None
    seed: int = 0
    progress: bool = False
    adversary: Any = None
    tau: Any = None
    penalty: str = "kl"

    @property
    def options(self) -> dict[str, Any]:
        """Weights, limits and, where one was given, the tolerance: every method has its own."""
        options = {**self.weights, "time_limit": self.time_limit}
        return options if self.tol is None else options | {"tol": self.tol}


@dataclass(frozen=True)
class Method:
    """A transport that `compare` runs; `counts` says what of squared displacements it counts."""

    name: str
    title: str
    counts: str
    run: Callable[[Task], Result]
    # Whether its adversary chooses among features (or directions of them), not among groups.
    of_features: bool = False
    # Whether mass may go, at a price.
    takes_tau: bool = False

    def warm_up(self) -> None:
        """Run on next to nothing, so that libraries loaded on first use are not measured."""
        x, y = np.random.default_rng(0).normal(size=(2, 8, 3))
        self.run(Task(x, y, (x, y), Groups.each(3), 1, "circular", {}))

    def unit(self, task: Task) -> str:
        """Return the unit of the values: the squared one, unless a curve has bent the features."""
        bent = self.name == "generalised_max_sliced" and task.curve not in ("linear", "circular")
        name = getattr(task.curve, "__name__", task.curve)
        return f"squared cost of {name} features" if bent else SQUARED


def find_methods(names: Sequence[str] | str) -> list[Method]:
    """Look methods up by name, each once.

    Examples
    --------
    >>> [method.title for method in find_methods("frot, wasserstein,ot")]
    ['FROT', 'OT']
    >>> find_methods(["frott"])
    Traceback (most recent call last):
    ...
    frot.InputError: methods: 'frott' is none of frot, srw, max_sliced, ...
    """
    if not isinstance(names, Iterable):
        raise InputError(f"methods: {brief(names)} is not a list; use some of {', '.join(METHODS)}")
    given = names.split(",") if isinstance(names, str) else list(names)
    if not all(isinstance(name, str) for name in given):
        raise InputError(
            f"methods: {brief(names)} is no list of names, such as 'frot, ot'; groups are given by "
            "name: groups=..."
        )
    words = [word.strip().replace("-", "_") for word in given]
    wanted = list(dict.fromkeys(ALIASES.get(word, word) for word in words if word))
    if not wanted:
        raise InputError(f"methods: none given; name some of {', '.join(METHODS)}")
    for name in wanted:
        if name not in METHODS:
            raise InputError(f"methods: {brief(name)} is none of {', '.join(METHODS)}")
    return [METHODS[name] for name in wanted]


def _frot(task: Task) -> Result:
    options = {"adversary": task.adversary, "tau": task.tau, "penalty": task.penalty}
    # No entropy anywhere: regularised values could not be held against the others.
    options |= {"eps": 0.0, "progress": task.progress}
    return solve(task.X, task.Y, task.groups, **task.options, **options)


def _ot(task: Task) -> Result:
    options = {"tau": task.tau, "penalty": task.penalty, "progress": task.progress}
    return wasserstein(task.X, task.Y, eps=0.0, **task.options, **options)


def _srw(task: Task) -> Result:
    return srw(task.X, task.Y, task.k, progress=task.progress, **task.options)


def _max_sliced(task: Task) -> Result:
    limits = {"random_state": task.seed, "time_limit": task.time_limit}
    return max_sliced(task.X, task.Y, **task.weights, **limits)


def _generalised(task: Task) -> Result:
    limits = {"random_state": task.seed, "time_limit": task.time_limit}
    return generalised_max_sliced(task.X, task.Y, task.curve, **task.weights, **limits)


def _sliced(task: Task) -> Result:
    return sliced(task.X, task.Y, **task.weights, random_state=task.seed)


def _max_min(task: Task) -> Result:
    return max_min(task.X, task.Y, task.groups, **task.weights, time_limit=task.time_limit)


def _equitable(task: Task) -> Result:
    # Imported here, since it would make `import frot` wait.
    from scipy.spatial.distance import cdist

    X, Y = task.points
    size = 8 * len(task.groups) * len(X) * len(Y)
    if size > STACK_BYTES:
        raise InputError(
            f"equitable: costs of {len(task.groups)} groups for {len(X)} x {len(Y)} points take "
            f"{size / 1024**3:.1f} GiB; give fewer points or groups"
        )
    costs = [cdist(X[:, of], Y[:, of], "sqeuclidean") for of in task.groups.indices]
    # Values next to nothing are common here, and their last digits lost.
    options: dict[str, Any] = {"tol": 1e-6} | task.options
    names = task.groups.names
    return equitable(np.stack(costs), names=names, progress=task.progress, **options)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("frot", "FROT", "the worst mix of groups", _frot, takes_tau=True),
        Method("srw", "SRW", "the worst k directions together", _srw, of_features=True),
        Method("max_sliced", "max-sliced", "one direction, chosen first", _max_sliced, True),
        Method(
            "generalised_max_sliced",
            "generalised max-sliced",
            "one curve, chosen first",
            _generalised,
            of_features=True,
        ),
        Method("sliced", "sliced", "the mean over all directions", _sliced, of_features=True),
        Method("max_min", "max-min", "one group, chosen first", _max_min),
        Method("ot", "OT", "all features", _ot, takes_tau=True),
        Method("equitable", "equitable", "the most that any group pays of its part", _equitable),
    )
}

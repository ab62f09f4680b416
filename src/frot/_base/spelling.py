"""Second names (aliases) of arguments; names of other libraries are refused with ours."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from frot._base.errors import InputError

SECOND_NAMES = {
    "normalise": "normalize",
    "normalise_weights": "normalize_weights",
    "colour": "color",
    "random_state": "seed",
}

# What POT, OTT-JAX and GeomLoss call an argument of ours. Some of them are not the same number (a
# tau of OTT's is a ratio, a blur a length), so that none is taken silently.
_EPS = "eps, the entropy of the plan in units of cost"
_TAU = "tau, the price of marginals that are not kept, in units of cost"
_MAX_ITER, _TOL = "max_iter", "tol, the relative gap between the bounds"
_COSTS = "C, of shape (L, n, m), in frot.solve_costs"
OTHER_WORDS = {
    "reg": _EPS,
    "epsilon": _EPS,
    "blur": _EPS,
    "reg_m": _TAU,
    "tau_a": f"tau=(tau_a, tau_b): {_TAU}",
    "tau_b": f"tau=(tau_a, tau_b): {_TAU}",
    "reach": _TAU,
    "unbalanced": _TAU,
    "unbalanced_type": 'penalty, "kl" or "tv"',
    "numItermax": _MAX_ITER,
    "max_iterations": _MAX_ITER,
    "stopThr": _TOL,
    "threshold": _TOL,
    "M": _COSTS,
    "cost_matrix": _COSTS,
    "method": "solver",
    "verbose": "progress",
    "log": "result.history, which is always kept",
}

Call = TypeVar("Call", bound=Callable[..., Any])


def second_names(call: Call) -> Call:
    """Let a function take its arguments by their second names too, silently.

    Only those that its signature has, or all of them where it passes keywords on. The signature
    that `inspect` and type checkers see keeps the first names. A word that another library has
    for one of our arguments raises an error that names ours, and a misspelt one Python's own error
    with the name that is near.

    Examples
    --------
    >>> @second_names
    ... def draw(n, random_state=0, colour="red"):
    ...     return n, random_state, colour
    >>> draw(3, seed=7, color="blue")
    (3, 7, 'blue')
    >>> draw(3, seed=7, random_state=8)
    Traceback (most recent call last):
    ...
    frot.InputError: seed: is random_state by another name; give one of them
    >>> draw(3, verbose=True)
    Traceback (most recent call last):
    ...
    frot.InputError: verbose: is called progress in frot
    """
    parameters = inspect.signature(call).parameters
    passes_on = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    second = {new: old for old, new in SECOND_NAMES.items() if passes_on or old in parameters}
    known = {one.name for one in parameters.values() if one.kind is not one.POSITIONAL_ONLY}
    known -= {"self"}
    # Whoever passes keywords on has the last word on what they are called.
    other = set() if passes_on else OTHER_WORDS.keys() - parameters.keys()

    @wraps(call)
    def run(*args: Any, **given: Any) -> Any:
        for name in other & given.keys():
            raise InputError(f"{name}: is called {OTHER_WORDS[name]} in frot")
        for name in second.keys() & given.keys():
            if second[name] in given:
                raise InputError(f"{name}: is {second[name]} by another name; give one of them")
            given[second[name]] = given.pop(name)
        if not passes_on:
            for name in given.keys() - known:
                # What Python would raise, with the argument that may be meant.
                near = difflib.get_close_matches(name, sorted(known), 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                unknown = f"{call.__qualname__}() got an unexpected keyword argument {name!r}"
                raise TypeError(unknown + hint)
        return call(*args, **given)

    return run  # pyright: ignore[reportReturnType]

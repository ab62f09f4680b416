"""Calls that are just outside the contract, and the sentence that each must be refused with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import frot

from .case import Case
from .draw import Rng

__all__ = ["OUTSIDE", "outside_case"]

Spoil = Callable[[Rng, tuple[Any, ...]], tuple[tuple[Any, ...], dict[str, Any]]]


def outside_case(rng: Rng) -> Case:
    """Draw a sound call, then put one thing in it that no door takes."""
    name = str(rng.choice(list(OUTSIDE)))
    door, spoil, sentence = OUTSIDE[name]
    n, m, d = (int(size) for size in rng.integers(2, 6, 3))
    args: tuple[Any, ...] = (rng.normal(size=(n, d)), rng.normal(size=(m, d)))
    if door == "solve_costs":
        args = (rng.random((d, n, m)),)
    elif door == "pairwise":
        args = ([rng.normal(size=(size, d)) for size in (n, m, n)],)
    elif door == "solve_batch":
        args = (rng.normal(size=(3, n, d)), rng.normal(size=(3, m, d)))
    args, options = spoil(rng, args)
    return Case("outside", door, args, options, sentence=sentence)


def _entry(which: int, value: Any, dtype: Any = float) -> Spoil:
    """Put a value somewhere in one of the arrays."""

    def spoil(rng: Rng, args: tuple[Any, ...]) -> Any:
        array = args[which].astype(dtype)
        array[tuple(rng.integers(size) for size in array.shape)] = value
        return _with(args, which, array), {}

    return spoil


def _array(which: int, change: Callable[[Any], Any]) -> Spoil:
    """Change one of the arrays."""
    return lambda rng, args: (_with(args, which, change(args[which])), {})


def _option(**options: Any) -> Spoil:
    return lambda rng, args: (args, options)


def _weights(change: Callable[[np.ndarray], Any]) -> Spoil:
    """Pass weights of the first side."""
    return lambda rng, args: (args, {"a": change(np.full(len(args[0]), 1.0 / len(args[0])))})


def _with(args: tuple[Any, ...], which: int, new: Any) -> tuple[Any, ...]:
    return (*args[:which], new, *args[which + 1 :])


def _first(array: Any, value: float) -> Any:
    array.flat[0] = value
    return array


def _masked(array: np.ndarray) -> Any:
    return np.ma.masked_less(array, float(np.median(array)))


OUTSIDE: dict[str, tuple[str, Spoil, str]] = {
    # The contract
    "an infinite cost": ("solve_costs", _entry(0, np.inf), "larger than all others"),
    "a metric that is infinite": (
        "solve", _option(metric=lambda u, v: np.inf), "larger than all others",
    ),
    "a huge cost of a light point": (
        "solve_costs",
        lambda rng, args: (
            (_first(args[0], 1e22),),
            {"a": _first(np.ones(args[0].shape[1]), 1e-14), "normalise_weights": True},
        ),
        "rescale",
    ),
    "tiny costs": ("solve_costs", _array(0, lambda c: 1e-150 * c), "rescale"),
    "huge costs": ("solve_costs", _array(0, lambda c: 1e150 * c), "rescale"),
    "tiny points": ("solve", lambda rng, args: ((1e-90 * args[0], 1e-90 * args[1]), {}), "rescale"),
    "huge points": ("solve", _array(0, lambda x: 1e90 * x), "rescale"),
    "points that overflow": ("solve", _array(0, lambda x: 1e200 * x), "rescale"),
    "an eps of nothing": ("solve", _option(eps=1e-150), "larger eps"),
    "huge points in a batch": ("solve_batch", _array(0, lambda x: 1e90 * x), "rescale"),
    "huge points for the loss": ("FRWDLoss", _array(0, lambda x: 1e90 * x), "rescale"),
    "masked points": ("solve", _array(0, _masked), "masked array"),
    "masked costs": ("solve_costs", _array(0, _masked), "masked array"),
    "masked weights": ("solve", _weights(_masked), "masked array"),
    "a masked batch": ("solve_batch", _array(0, _masked), "masked array"),
    "a masked cloud": ("pairwise", _array(0, lambda c: [_masked(c[0]), *c[1:]]), "masked array"),
    "masked points of a relative": ("max_min", _array(1, _masked), "masked array"),
    "large integers": (
        "solve", _array(0, lambda x: (x * 10).astype(np.int64) + 2**60), "beyond 2^53",
    ),
    # What is no data
    "NaN in X": ("solve", _entry(0, np.nan), "NaN"),
    "infinity in Y": ("solve", _entry(1, np.inf), "infinite"),
    "NaN in C": ("solve_costs", _entry(0, np.nan), "NaN"),
    "NaN in a batch": ("solve_batch", _entry(0, np.nan), "NaN"),
    "NaN for the loss": ("FRWDLoss", _entry(0, np.nan), "NaN"),
    "text": ("solve", _array(0, lambda x: x.astype(str)), "not numbers"),
    "complex X": ("solve", _array(0, lambda x: x + 1j), "complex"),
    "1-D X": ("solve", _array(0, lambda x: x[0]), "reshape"),
    "2-D C": ("solve_costs", _array(0, lambda c: c[0]), "C[None]"),
    "no points": ("solve", _array(0, lambda x: x[:0]), "no points"),
    "fewer features": ("solve", _array(1, lambda x: x[:, 1:]), "features"),
    "a negative weight": ("solve", _weights(lambda a: _first(a, -0.1)), ">= 0"),
    "zero weights": ("solve", _weights(np.zeros_like), "all weights are zero"),
    "weights of two": ("solve", _weights(lambda a: 2.0 * a), "normalise_weights=True"),
    # Options
    "negative eta": ("solve", _option(eta=-0.1), "eta"),
    "NaN eps": ("solve", _option(eps=np.nan), "eps"),
    "no iterations": ("solve", _option(max_iter=0), "max_iter"),
    "no time": ("solve", _option(time_limit=0.0), "time_limit"),
    "an unknown metric": ("solve", _option(metric="euclidian"), "did you mean"),
    "an unknown solver": ("solve", _option(solver="simplex"), "solver"),
    "Exact with eps": ("solve", _option(solver="exact", eps=0.1), "eps"),
    "a batch without eps": ("solve_batch", _option(eps=0.0), "eps"),
    "a set of other groups": (
        "solve_costs", _option(adversary=frot.Polytope(np.ones((1, 77)))), "77",
    ),
}  # fmt: skip

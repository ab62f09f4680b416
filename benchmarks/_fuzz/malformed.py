"""Calls that are wrong on purpose, one kind of mistake each: all must raise frot.InputError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import frot

from .case import Case
from .draw import Rng

__all__ = ["MISTAKES", "malformed_case"]

Draft = tuple[tuple[Any, ...], dict[str, Any]]


def malformed_case(rng: Rng) -> Case:
    """Draw a sound call, then make one mistake in it."""
    mistake = str(rng.choice(list(MISTAKES)))
    call, spoil = MISTAKES[mistake]
    n, m, d = (int(size) for size in rng.integers(2, 6, 3))
    args: tuple[Any, ...]
    if call in ("solve_costs", "equitable", "cutting_set"):
        args = (rng.random((d, n, m)),)
    elif call == "pairwise":
        args = ([rng.normal(size=(size, d)) for size in (n, m, n)],)
    elif call == "solve_batch":
        args = (rng.normal(size=(3, n, d)), rng.normal(size=(3, m, d)))
    else:
        args = (rng.normal(size=(n, d)), rng.normal(size=(m, d)))
    args, options = spoil(rng, args)
    return Case("malformed", call, args, options, complaint=mistake)


def _entry(which: int, value: Any, dtype: Any = float) -> Callable[[Rng, tuple], Draft]:
    """Put `value` somewhere in one of the arrays."""

    def spoil(rng: Rng, args: tuple) -> Draft:
        array = args[which].astype(dtype)
        array[tuple(rng.integers(size) for size in array.shape)] = value
        return _swap(args, which, array), {}

    return spoil


def _array(which: int, change: Callable[[np.ndarray], Any]) -> Callable[[Rng, tuple], Draft]:
    """Replace one of the arrays."""
    return lambda rng, args: (_swap(args, which, change(args[which])), {})


def _option(**options: Any) -> Callable[[Rng, tuple], Draft]:
    """Pass wrong options as they are."""
    return lambda rng, args: (args, options)


def _weights(change: Callable[[np.ndarray], Any]) -> Callable[[Rng, tuple], Draft]:
    """Pass weights of the first side that are spoilt."""
    return lambda rng, args: (args, {"a": change(np.full(len(args[0]), 1.0 / len(args[0])))})


def _for_points(make: Callable[[int, int, int], dict[str, Any]]) -> Callable[[Rng, tuple], Draft]:
    """Pass wrong options that depend on n, m and d."""
    return lambda rng, args: (args, make(len(args[0]), len(args[1]), args[0].shape[1]))


def _swap(args: tuple, which: int, new: Any) -> tuple:
    return (*args[:which], new, *args[which + 1 :])


def _spoilt(weights: np.ndarray, value: float) -> np.ndarray:
    weights[0] = value
    return weights


SINKHORN = frot.FrankWolfe(oracle=frot.Sinkhorn())
# Typed as anything, so that the type checker lets us make the mistake.
WRONG: Any = "unknown"
SINKHORN_CLASS: Any = frot.Sinkhorn
BY_CLASS = frot.FrankWolfe(oracle=SINKHORN_CLASS)

MISTAKES: dict[str, tuple[str, Callable[[Rng, tuple], Draft]]] = {
    # Points
    "NaN in X": ("solve", _entry(0, np.nan)),
    "infinity in Y": ("solve", _entry(1, np.inf)),
    "X of text": ("solve", _array(0, lambda x: x.astype(str))),
    "X of objects": ("solve", _entry(0, "n/a", object)),
    "None in X": ("solve", _entry(0, None, object)),
    "an integer beyond floats in X": ("solve", _entry(0, 10**400, object)),
    "complex X": ("solve", _array(0, lambda x: x + 1j)),
    "dates as X": ("solve", _array(0, lambda x: x.astype("datetime64[s]"))),
    "1-D X": ("solve", _array(0, lambda x: x[0])),
    "3-D Y": ("solve", _array(1, lambda x: x[None])),
    "X a number": ("solve", _array(0, lambda x: 1.0)),
    "X is None": ("solve", _array(0, lambda x: None)),
    "ragged X": ("solve", _array(0, lambda x: [[1.0, 2.0], [3.0]])),
    "no points": ("solve", _array(0, lambda x: x[:0])),
    "no features": ("solve", lambda rng, args: ((args[0][:, :0], args[1][:, :0]), {})),
    "fewer features in Y": ("solve", _array(1, lambda x: x[:, 1:])),
    "points that overflow": ("solve", _array(0, lambda x: 1e200 * x)),
    "points at the end of the range": ("solve", _array(0, lambda x: 1.7e308 * np.sign(x))),
    # Costs
    "NaN in C": ("solve_costs", _entry(0, np.nan)),
    "infinity in C": ("solve_costs", _entry(0, -np.inf)),
    "2-D C": ("solve_costs", _array(0, lambda c: c[0])),
    "4-D C": ("solve_costs", _array(0, lambda c: c[None])),
    "empty C": ("solve_costs", _array(0, lambda c: c[:0])),
    "complex C": ("solve_costs", _array(0, lambda c: c * 1j)),
    "C of text": ("solve_costs", _array(0, lambda c: "costs")),
    "C near overflow": ("solve_costs", _array(0, lambda c: 1e300 + c)),
    "too few names": ("solve_costs", _option(names=["only one", *"abcdefghi"])),
    "names a number": ("solve_costs", _option(names=5)),
    # Weights
    "a negative weight": ("solve", _weights(lambda a: _spoilt(a, -a[0]))),
    "a NaN weight": ("solve", _weights(lambda a: _spoilt(a, np.nan))),
    "an infinite weight": ("solve", _weights(lambda a: _spoilt(a, np.inf))),
    "zero weights": ("solve", _weights(np.zeros_like)),
    "too many weights": ("solve", _weights(lambda a: np.append(a, 0.0))),
    "2-D weights": ("solve", _weights(lambda a: a[None])),
    "a number as weights": ("solve", _weights(lambda a: 1.0)),
    "weights of text": ("solve", _weights(lambda a: ["heavy"] * len(a))),
    "complex weights": ("solve", _weights(lambda a: a + 0j)),
    "weights that do not sum to one": ("solve", _weights(lambda a: 2.0 * a)),
    "weights that overflow": (
        "solve",
        lambda rng, args: (args, {"a": np.full(len(args[0]), 1.7e308), "normalise_weights": True}),
    ),
    "masses that differ": (
        "solve",
        _for_points(lambda n, m, d: {"a": np.full(n, 1.0 / n), "b": np.full(m, 1.1 / m)}),
    ),
    "masses that overflow": (
        "solve",
        _for_points(lambda n, m, d: {"a": np.full(n, 1.7e308), "b": np.full(m, 1.0 / m)}),
    ),
    # Groups
    "an empty group": ("solve", _option(groups=[[0], []])),
    "no groups": ("solve", _option(groups=[])),
    "a feature out of range": ("solve", _for_points(lambda n, m, d: {"groups": [[0], [d]]})),
    "a negative feature": ("solve", _option(groups=[[0], [-1]])),
    "sizes that do not add up": ("solve", _for_points(lambda n, m, d: {"groups": [d, 1]})),
    "unknown groups": ("solve", _option(groups="prefixes")),
    "groups a number": ("solve", _option(groups=3)),
    "groups of floats": ("solve", _option(groups=[[0.5], [1.0]])),
    "groups of names without names": ("solve", _option(groups=[["age"], ["height"]])),
    "a single mask": ("solve", _for_points(lambda n, m, d: {"groups": [True] * d})),
    # Numbers
    "negative eta": ("solve", _option(eta=-0.1)),
    "NaN eta": ("solve", _option(eta=np.nan)),
    "infinite eta": ("solve", _option(eta=np.inf)),
    "eta of text": ("solve", _option(eta="small")),
    "eta an array": ("solve", _option(eta=[0.1, 0.2])),
    "eta None": ("solve", _option(eta=None)),
    "eta beyond floats": ("solve", _option(eta=10**400)),
    "negative eps": ("solve", _option(eps=-1e-9)),
    "NaN eps": ("solve", _option(eps=np.nan)),
    "p = 0": ("solve", _option(p=0.0, metric="euclidean")),
    "NaN p": ("solve", _option(p=np.nan, metric="euclidean")),
    "p < 1 for a distance": ("distance", _option(p=0.5)),
    "eta for a distance": ("distance", _option(eta=0.5)),
    "eps for a distance": ("distance", _option(eps=0.5)),
    "negative tol": ("solve", _option(tol=-1e-9)),
    "NaN tol": ("solve", _option(tol=np.nan)),
    "max_iter = 0": ("solve", _option(max_iter=0)),
    "fractional max_iter": ("solve", _option(max_iter=2.5)),
    "max_iter of text": ("solve", _option(max_iter="many")),
    "time_limit = 0": ("solve", _option(time_limit=0.0)),
    "NaN time_limit": ("solve", _option(time_limit=np.nan)),
    "time_limit of text": ("solve", _option(time_limit="soon")),
    # The prior
    "a prior of a wrong length": ("solve", _option(eta=0.1, prior=np.ones(77))),
    "a prior with a zero": (
        "solve",
        _for_points(lambda n, m, d: {"eta": 0.1, "prior": np.eye(d)[0]}),
    ),
    "a prior with NaN": (
        "solve",
        _for_points(lambda n, m, d: {"eta": 0.1, "prior": np.full(d, np.nan)}),
    ),
    # Names of things
    "an unknown metric": ("solve", _option(metric="euclidian")),
    "a metric of a wrong type": ("solve", _option(metric=3)),
    "a metric that gives text": ("solve", _option(metric=lambda u, v: "far")),
    "a metric that gives NaN": ("solve", _option(metric=lambda u, v: np.nan)),
    "correlation of one feature": ("solve", _option(metric="correlation", groups="each")),
    "cosine of a zero row": (
        "solve",
        lambda rng, args: ((args[0] * 0.0, args[1]), {"metric": "cosine"}),
    ),
    "an unknown normalisation": ("solve", _option(normalise="max")),
    "normalise of a wrong type": ("solve", _option(normalise=None)),
    "an unknown solver": ("solve", _option(solver="simplex")),
    "a solver's class": ("solve", _option(solver=frot.Exact)),
    "a solver of a wrong type": ("solve", _option(solver=7)),
    "an oracle as a solver": ("solve", _option(solver=frot.NetworkSimplex())),
    "an unknown step": ("solve", _option(eta=1.0, solver=frot.FrankWolfe(step=WRONG))),
    "an oracle's name": ("solve", _option(eta=1.0, solver=frot.FrankWolfe(oracle=WRONG))),
    "an oracle's class": ("solve", _option(eta=1.0, eps=0.1, solver=BY_CLASS)),
    "an unknown method": ("solve", _option(solver=frot.LinearProgram(method=WRONG))),
    # Combinations
    "Exact with eps": ("solve", _option(solver="exact", eps=0.1)),
    "LinearProgram with eta": ("solve", _option(solver="linear_program", eta=0.1)),
    "LinearProgram with eps": ("solve", _option(solver="linear_program", eps=0.1)),
    "the paper's steps without eta": ("solve", _option(solver=frot.FrankWolfe(step="paper"))),
    "a line search without eta": ("solve", _option(solver=frot.FrankWolfe(step="line_search"))),
    "Sinkhorn without eps": ("solve", _option(solver=SINKHORN, eta=0.1)),
    "the network simplex with eps": ("solve", _option(solver=frot.FrankWolfe(), eps=0.1)),
    # Starts and callbacks
    "a start of a wrong shape": ("solve", _option(start=np.ones(77))),
    "a negative start": ("solve", _for_points(lambda n, m, d: {"start": -np.ones(d)})),
    "a NaN start": ("solve", _for_points(lambda n, m, d: {"start": np.full((n, m), np.nan)})),
    "a zero start": ("solve", _for_points(lambda n, m, d: {"start": np.zeros((n, m))})),
    "a start of text": ("solve", _option(start="warm")),
    "a ragged start": ("solve", _option(start=[[0.5], [0.2, 0.3]])),
    "a callback that is none": ("solve", _option(callback="print")),
    # Batches
    "NaN in a batch": ("solve_batch", _entry(0, np.nan)),
    "a batch of other length": ("solve_batch", _array(1, lambda y: y[1:])),
    "a batch of other features": ("solve_batch", _array(1, lambda y: y[:, :, 1:])),
    "points that are no batch": ("solve_batch", _array(0, lambda x: x[0])),
    "an empty batch": ("solve_batch", _array(0, lambda x: x[:0])),
    "a batch without eps": ("solve_batch", _option(eps=0.0)),
    "a batch of a metric it does not know": ("solve_batch", _option(metric="cityblock")),
    "weights of too few members": (
        "solve_batch",
        lambda rng, args: (args, {"a": np.full((2, args[0].shape[1]), 1.0 / args[0].shape[1])}),
    ),
    "a member's weights below zero": (
        "solve_batch",
        lambda rng, args: (args, {"a": _spoilt(np.full(args[0].shape[:2], 0.5), -1.0)}),
    ),
    "a batch's max_iter of zero": ("solve_batch", _option(max_iter=0)),
    # Clouds
    "no clouds": ("pairwise", _array(0, lambda clouds: [])),
    "clouds of other features": (
        "pairwise",
        _array(0, lambda clouds: [clouds[0], clouds[1][:, 1:]]),
    ),
    "NaN in a cloud": ("pairwise", _array(0, lambda clouds: [clouds[0], clouds[1] * np.nan])),
    "weights of too few clouds": ("pairwise", _option(weights=[None])),
    "other_weights without others": ("pairwise", _option(other_weights=[None])),
    "p < 1 for clouds": ("pairwise", _option(p=0.5)),
    "n_jobs of text": ("pairwise", _option(n_jobs="all")),
    # Relatives
    "p < 1 for Wasserstein": ("wasserstein", _option(p=0.5)),
    "NaN in X for Wasserstein": ("wasserstein", _entry(0, np.nan)),
    "a stack for points": ("max_min", _array(0, lambda x: x[None])),
    "an unknown metric for max_min": ("max_min", _option(metric="euclidian")),
    "time_limit below zero for max_min": ("max_min", _option(time_limit=-1.0)),
    "weights for other points": ("max_min", _option(a=np.full(77, 1.0 / 77))),
    "costs below zero": ("equitable", _array(0, lambda c: c - 1.0)),
    "NaN in costs": ("equitable", _entry(0, np.nan)),
    "2-D costs": ("equitable", _array(0, lambda c: c[0])),
    "tol below zero": ("equitable", _option(tol=-1.0)),
    "more shares than groups": ("cutting_set", _option(adversary=frot.CappedSimplex(77))),
    "a set of other groups": (
        "cutting_set",
        _option(adversary=frot.Polytope(np.ones((1, 77)))),
    ),
    "a set that is none": ("cutting_set", _option(adversary="simplex")),
    "a set with entropy": ("cutting_set", _option(adversary=frot.Simplex(eta=1.0))),
    "a set's class": ("cutting_set", _option(adversary=frot.CappedSimplex)),
    # The loss
    "NaN for the loss": ("FRWDLoss", _entry(0, np.nan)),
    "the loss without eps": ("FRWDLoss", _option(eps=0.0)),
    "other features for the loss": ("FRWDLoss", _array(1, lambda y: y[:, 1:])),
    "1-D points for the loss": ("FRWDLoss", _array(0, lambda x: x[0])),
    "an unknown metric for the loss": ("FRWDLoss", _option(metric="cityblock")),
    "tol = 0 for the loss": ("FRWDLoss", _option(tol=0.0)),
    "groups of other features for the loss": ("FRWDLoss", _option(groups=[[0], [77]])),
}

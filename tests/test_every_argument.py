"""Every argument of every public function, given what it cannot be: one `InputError` each.

Nothing else may be raised, and the message names the argument and stays short.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse

import frot
import frot.selection
import frot.torch
from frot import InputError
from frot.problem.adversary import SimplexFamily
from tests.reference import quiet

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
STACK = RNG.random((2, 4, 5))
LABELS = np.array(["a", "b"] * 4)
SAMPLES = RNG.normal(size=(8, 3))
HUGE = "huge" * 10_000


def told(make: Callable[[], Any]) -> Any:
    """Make something that its library warns of, since it is too new or too old."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


class Odd:
    """Cannot be shown, nor asked anything."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


# What no argument can be, whatever it is for.
NONSENSE: dict[str, Any] = {"an odd object": Odd(), "a set": {1, "2"}, "a date": pd.NaT}

NUMBERS: dict[str, Any] = {
    **NONSENSE,
    "text": "1e-3",
    "bytes": b"1",
    "true": True,
    "NumPy's true": np.True_,
    "NaN": float("nan"),
    "infinity": np.inf,
    "complex": 1 + 0j,
    "a decimal that is no float": Decimal("0.1"),
    "a fraction that is no float": Fraction(1, 10),
    "a list": [0.1],
    "an array": np.array([0.1]),
    "many": np.full(1000, 0.1),
    "an array of text": np.array("1e-3"),
    "beyond floats": 10**400,
    "a meta tensor": torch.empty((), device="meta"),
    "a sparse tensor": torch.eye(2).to_sparse(),
    "a tensor with a gradient": torch.tensor(0.1, requires_grad=True),
    "negative": -1,
    "missing": pd.NA,
    "huge": HUGE,
}
COUNTS = {**NUMBERS, "a half": 1.5, "zero": 0}
# Python's whole numbers have no largest one.
COUNTS.pop("beyond floats")
SEEDS = {name: value for name, value in COUNTS.items() if name != "zero"}
FLAGS: dict[str, Any] = {
    **NONSENSE,
    "text": "yes",
    "None": None,
    "one": 1,
    "an array": np.array([True]),
    "a list": [],
    "huge": HUGE,
}
CHOICES: dict[str, Any] = {
    **NONSENSE,
    "another": "nonsense",
    "None": None,
    "a number": 5,
    "a list": ["mean"],
    "an array": np.array(["none", "mean"]),
    "a mapping": {},
    "bytes": b"none",
    "huge": HUGE,
}
KINDS = {name: value for name, value in CHOICES.items() if value is not None}
CALLABLES: dict[str, Any] = {**NONSENSE, "text": "print", "a number": 5, "an array": np.ones(3)}
TEXTS: dict[str, Any] = {**NONSENSE, "None": None, "a number": 5, "a list": ["a"], "bytes": b"a"}
PATHS: dict[str, Any] = {**NONSENSE, "a number": 5, "a list": ["a.csv"], "bytes": b"a.csv"}
ARRAYS: dict[str, Any] = {
    **NONSENSE,
    "text": "points",
    "huge": HUGE,
    "a mapping": {"a": [1.0]},
    "ragged": [[1.0], [2.0, 3.0]],
    "a generator": (x for x in [1.0]),
    "a function": len,
    "0-d": np.array(1.0),
    "4-d": np.ones((1, 1, 1, 1)),
    "objects": np.array([[object()]]),
    "text among objects": np.array([["1.0", 2.0]], dtype=object),
    "None among objects": np.array([[None, 2.0]]),
    "fields": np.zeros(4, dtype=[("x", float), ("y", float)]),
    "dates": np.array([["2020-01-01"]], dtype="datetime64[D]"),
    "spans": np.array([[1]], dtype="timedelta64[s]"),
    "complex": np.ones((4, 3)) * 1j,
    "NaN": np.full((4, 3), np.nan),
    "beyond float64": np.full((4, 3), np.longdouble("1e4000")),
    "whole numbers beyond floats": np.array([[10**400]], dtype=object),
    "masked": np.ma.masked_less(np.zeros((4, 3)), 1.0),
    "sparse": sparse.csr_array(np.eye(3)),
    "an old sparse matrix": sparse.coo_matrix(np.eye(3)),
    "AnnData": SimpleNamespace(X=np.eye(3), obs=None, var=None),
    "pandas' NA": pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
    "pandas' text": pd.DataFrame({"a": ["x", "y"]}),
    "pandas' dates": pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}),
    "polars' null": pl.DataFrame({"a": [1.0, None]}),
    "polars' text": pl.DataFrame({"a": ["x", "y"]}),
    "a meta tensor": torch.empty((4, 3), device="meta"),
    "a sparse tensor": torch.eye(3).to_sparse(),
    "a compressed tensor": told(torch.eye(3).to_sparse_csr),
    "a tensor of whole numbers": torch.ones((4, 3), dtype=torch.int64),
    "a tensor in half precision": torch.ones((4, 3), dtype=torch.float16),
    "a tensor with a gradient": torch.ones((4, 3), requires_grad=True),
    "tensors with gradients": [torch.ones(3, requires_grad=True)],
}
# Tensors of any precision are numbers where nothing comes back in theirs.
MATRICES = {k: v for k, v in ARRAYS.items() if k[:11] != "a tensor of" and "half" not in k}
SHARES = {k: v for k, v in COUNTS.items() if k != "a fraction that is no float"}
SIGNED = {k: v for k, v in NUMBERS.items() if k != "negative"}
WEIGHTS = {**ARRAYS, "too many": np.full(9, 1 / 9), "negative": [2.0, -1.0], "zero": np.zeros(4)}
NAMES: dict[str, Any] = {
    **NONSENSE,
    "a number": 5,
    "too few": ["one"],
    "too many": [str(name) for name in range(2000)],
    "equal ones": ["same", "same"],
    "lists": [["a"], ["b"]],
    "bytes": b"ab",
    "a mapping": {"a": 1, "b": 2},
    "None": [None, "b"],
}
GROUPS: dict[str, Any] = {
    **NONSENSE,
    "a number": 5,
    "unknown": "nonsense",
    "huge": HUGE,
    "a half": [1.5, 1.5],
    "out of range": [[0], [7]],
    "negative": [[-1]],
    "empty": [[]],
    "none": [],
    "a mask": [True, False, True],
    "objects": [[object()]],
    "nested": [[[0, 1]]],
    "ragged": [[[0], [1, 2]]],
    "names of no features": [["height"]],
    "a feature twice": [[0, 0]],
    "not a file": "nowhere.gmt",
    "other groups": frot.Groups.each(7),
    "bytes": b"each",
    "an array of halves": np.array([0.5, 2.5]),
    "a meta tensor": torch.empty(3, device="meta"),
}
INDICES = {**NONSENSE, "text": "0", "halves": [0.5], "ragged": [[0], [1, 2]], "a number": 7}
AMOUNTS = {**NUMBERS, "a share as text": "5%"}
LIMITS: dict[str, dict[str, Any]] = {
    "tol": NUMBERS,
    "max_iter": COUNTS,
    "time_limit": {**NUMBERS, "zero": 0},
}
PRICES = {name: value for name, value in AMOUNTS.items() if name != "infinity"} | {"zero": 0}
WATCHED = {"callback": CALLABLES, "progress": FLAGS}
STARTS = {
    **{name: value for name, value in ARRAYS.items() if name != "a tensor with a gradient"},
    "a wrong shape": np.ones((5, 4)),
    "negative": -np.ones(3),
    "zero": np.zeros(3),
}
METRICS = {**CHOICES, "a near miss": "euclidian"}
SOLVERS = {**CHOICES, "a class": frot.Exact, "a function": len}
MASSES = {"a": WEIGHTS, "b": WEIGHTS, "normalise_weights": FLAGS}
PAIR = {"X": ARRAYS, "Y": ARRAYS, **MASSES}
SETS = {
    **NONSENSE,
    "text": "box",
    "a number": 5,
    "a class": frot.Polytope,
    "more shares than groups": frot.CappedSimplex(99),
    "other groups": frot.Simplex(0.1, np.log(np.full(98, 1.0 / 98.0))),
}
SOLVE = {
    "adversary": SETS,
    "eta": AMOUNTS,
    "eps": AMOUNTS,
    "prior": WEIGHTS,
    "normalise": CHOICES,
    "solver": SOLVERS,
    **LIMITS,
}
BATCH = {
    name: value
    for name, value in ARRAYS.items()
    # An array of whole numbers is numbers, where nothing else says how precise to be.
    if name not in ("a generator",)
}
BLOCKS = {**NONSENSE, "text": "donor", "too few": ["a"], "a matrix": np.ones((8, 2))}
JOBS: dict[str, Any] = {**NONSENSE, "zero": 0, "a half": 1.5, "text": "2", "true": True}
POINTS = {"X": X, "Y": Y}
CLOUDS = [X, Y]
KEPT = frot.solve(X, Y)


def fit(X: Any = SAMPLES, y: Any = LABELS, block: Any = None, **options: Any) -> Any:
    return frot.selection.FROTSelector(**options).fit(X, y, block)


def loss(x: Any = None, y: Any = None, a: Any = None, b: Any = None, **options: Any) -> Any:
    x = torch.tensor(X) if x is None else x
    y = torch.tensor(Y) if y is None else y
    return frot.torch.FRWDLoss(**options)(x, y, a, b)


# Each function, arguments that it takes, and what is wrong for each of its parameters. Parameters
# that are listed as None are whatever a user wants them to be.
Wrong = Mapping[str, dict[str, Any] | None]
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any], Wrong]] = {
    "solve": (
        frot.solve,
        POINTS,
        {
            **PAIR,
            **SOLVE,
            **WATCHED,
            "groups": GROUPS,
            "metric": METRICS,
            "p": {**NUMBERS, "zero": 0},
            "start": STARTS,
            "memory_budget": NUMBERS,
            **{"tau": PRICES, "penalty": CHOICES, "mass": {**NUMBERS, "zero": 0, "two": 2}},
        },
    ),
    "solve_costs": (
        frot.solve_costs,
        {"C": STACK},
        {
            **{"C": ARRAYS, **MASSES, **SOLVE, **WATCHED, "names": NAMES, "start": STARTS},
            **{"tau": PRICES, "penalty": CHOICES, "mass": {**NUMBERS, "zero": 0, "two": 2}},
        },
    ),
    "solve_batch": (
        frot.solve_batch,
        {"X": [X], "Y": [Y]},
        {
            **{"X": BATCH, "Y": BATCH, "a": WEIGHTS, "b": WEIGHTS, "normalise_weights": FLAGS},
            **{"groups": GROUPS, "eta": AMOUNTS, "eps": AMOUNTS, "prior": WEIGHTS},
            **{
                "metric": CHOICES,
                **LIMITS,
                "memory_budget": NUMBERS,
                "adversary": SETS,
                "tau": PRICES,
            },
        },
    ),
    "distance": (
        frot.distance,
        POINTS,
        {
            **{"X": ARRAYS, "Y": ARRAYS, "groups": GROUPS, "p": NUMBERS, "metric": METRICS},
            **{"eta": AMOUNTS, "eps": AMOUNTS, "prior": WEIGHTS, "solver": SOLVERS, **LIMITS},
        },
    ),
    "pairwise": (
        frot.pairwise,
        {"clouds": CLOUDS},
        {
            **{"clouds": {**ARRAYS, "a bad one": [X, "Y"], "none": []}, "groups": GROUPS},
            **{"others": {**ARRAYS, "a bad one": [X, "Y"]}, "weights": WEIGHTS},
            **{"other_weights": WEIGHTS, "p": NUMBERS, "metric": METRICS, **SOLVE},
            **{"normalise_weights": FLAGS, "memory_budget": NUMBERS, "n_jobs": JOBS},
            **{"progress": FLAGS, "checkpoint": PATHS, "tau": PRICES, "penalty": CHOICES},
            **{"mass": {**NUMBERS, "zero": 0, "two": 2}},
        },
    ),
    "two_sample_test": (
        frot.two_sample_test,
        {**POINTS, "permutations": 9},
        {
            **{"X": ARRAYS, "Y": ARRAYS, "groups": GROUPS, "permutations": COUNTS, "block": BLOCKS},
            **{"eta": AMOUNTS, "eps": AMOUNTS, "metric": METRICS, "p": {**NUMBERS, "zero": 0}},
            **{"normalise": CHOICES, "tol": NUMBERS, "max_iter": COUNTS, "memory_budget": NUMBERS},
            **{"n_jobs": JOBS, "progress": FLAGS, "checkpoint": PATHS},
            "random_state": {**SEEDS, "a generator": RNG},
        },
    ),
    "compare": (
        frot.compare,
        POINTS,
        {
            **{**PAIR, "methods": {**NONSENSE, "unknown": "nonsense", "none": [], "a number": 5}},
            **{"groups": GROUPS, "k": COUNTS, "tol": NUMBERS, "time_limit": NUMBERS},
        },
    ),
    "relative": (frot.relative, {}, {"share": NUMBERS}),
    "srw": (frot.srw, {**POINTS, "k": 1}, {**PAIR, "k": COUNTS, **LIMITS, **WATCHED}),
    "max_sliced": (
        frot.max_sliced,
        POINTS,
        {**PAIR, "restarts": COUNTS, "random_state": SEEDS, **LIMITS},
    ),
    "sliced": (frot.sliced, POINTS, {**PAIR, "projections": COUNTS, "random_state": SEEDS}),
    "max_min": (
        frot.max_min,
        POINTS,
        {
            **{**PAIR, "groups": GROUPS, "metric": METRICS, "p": {**NUMBERS, "zero": 0}},
            "time_limit": LIMITS["time_limit"],
        },
    ),
    "wasserstein": (
        frot.wasserstein,
        POINTS,
        {"X": ARRAYS, "Y": ARRAYS, "p": NUMBERS, "metric": METRICS},
    ),
    "equitable": (
        frot.equitable,
        {"C": STACK},
        {"C": ARRAYS, **MASSES, "names": NAMES, **LIMITS, **WATCHED},
    ),
    "transport": (
        KEPT.transport,
        {"X_new": X},
        {
            "X_new": ARRAYS,
            "metric": {name: one for name, one in METRICS.items() if one is not None},
        },
    ),
    "toy": (frot.toy, {}, {"n": COUNTS, "random_state": SEEDS}),
    "load": (frot.load, {"path": "nowhere.npz"}, {"path": PATHS, "kind": KINDS}),
    "read_table": (frot.read_table, {}, {"path": PATHS}),
    "read_pair": (
        frot.read_pair,
        {"path_a": "nowhere.csv", "path_b": "nowhere.csv"},
        {"path_a": PATHS, "path_b": PATHS},
    ),
    "write_report": (
        frot.write_report,
        {"result": KEPT, "path": "page.html"},
        {
            **{"result": {**NONSENSE, "text": "result"}, "path": PATHS},
            **{"title": TEXTS, "command": TEXTS, "groups": GROUPS, "feature_names": NAMES},
        },
    ),
    "Exact": (lambda **o: frot.solve(X, Y, solver=frot.Exact(**o)), {}, LIMITS),
    "Entropic": (lambda **o: frot.solve(X, Y, eps=0.1, solver=frot.Entropic(**o)), {}, LIMITS),
    "FrankWolfe": (
        lambda **o: frot.solve(X, Y, eta=0.1, solver=frot.FrankWolfe(**o)),
        {},
        {**LIMITS, "oracle": CHOICES, "step": CHOICES},
    ),
    "LinearProgram": (
        lambda **o: frot.solve(X, Y, solver=frot.LinearProgram(**o)),
        {},
        {**LIMITS, "method": CHOICES},
    ),
    "NetworkSimplex": (frot.NetworkSimplex, {}, {"max_iter": COUNTS}),
    "Sinkhorn": (
        frot.Sinkhorn,
        {"eps": 0.1},
        {"eps": {**NUMBERS, "zero": 0}, "tol": {**NUMBERS, "zero": 0}, "max_iter": COUNTS},
    ),
    "CuttingSet": (lambda **o: frot.solve(X, Y, solver=frot.CuttingSet(**o)), {}, LIMITS),
    "Simplex": (frot.Simplex, {}, {"eta": NUMBERS, "log_prior": ARRAYS}),
    "CappedSimplex": (
        frot.CappedSimplex,
        {"k": 1},
        {"k": COUNTS, "eta": NUMBERS, "log_prior": ARRAYS},
    ),
    "Ellipsoid": (
        frot.Ellipsoid,
        {"centre": [0.0], "shape": 1.0},
        {"centre": ARRAYS, "shape": {k: v for k, v in ARRAYS.items() if k != "0-d"}},
    ),
    "Polytope": (frot.Polytope, {}, {"vertices": MATRICES}),
    "Plan": (
        frot.Plan,
        {},
        {
            "matrix": {k: v for k, v in MATRICES.items() if "sparse" not in k or "tensor" in k},
            "copy": None,
        },
    ),
    "Groups": (
        frot.Groups,
        {"names": ["a"], "flat": [0], "offsets": [0, 1], "n_features": 1},
        {
            **{"names": {**NONSENSE, "text": "a", "bytes": b"a", "a number": 5, "None": None}},
            **{"n_features": COUNTS, "dropped": None, "listed": None},
            **{"flat": INDICES, "offsets": INDICES},
        },
    ),
    "Groups.parse": (
        frot.Groups.parse,
        {"spec": None, "n_features": 3},
        {"spec": GROUPS, "n_features": COUNTS, "feature_names": NAMES},
    ),
    "FRWDLoss": (
        frot.torch.FRWDLoss,
        {},
        {
            **{"eta": AMOUNTS, "eps": AMOUNTS, "debias": FLAGS, "metric": CHOICES, "tau": PRICES},
            **{"gradient_tol": {**NUMBERS, "zero": 0}, "max_iter": COUNTS},
            **{"groups": None, "prior": None, "warm_start": FLAGS},
            "adversary": {k: v for k, v in SETS.items() if not isinstance(v, SimplexFamily)},
        },
    ),
    "FRWDLoss()": (
        loss,
        {},
        {
            **{
                name: {k: v for k, v in ARRAYS.items() if k != "a tensor with a gradient"}
                for name in ("x", "y", "a", "b")
            },
            **{"groups": GROUPS, "prior": WEIGHTS, "options": None},
        },
    ),
    "FROTSelector": (
        fit,
        {},
        {
            **{"block": BLOCKS, "options": None, "X": None, "y": None},
            **{"n_features_to_select": SHARES, "threshold": SIGNED, "groups": GROUPS},
            **{"scaling": CHOICES, "eta": {**NUMBERS, "zero": 0}, "score": CHOICES},
            **{"missing": CHOICES, "plan": FLAGS, "values": CHOICES},
            **{"reference": {**NONSENSE, "no class": "other"}},
        },
    ),
    "permutation_test": (
        frot.selection.permutation_test,
        {"X": SAMPLES, "y": LABELS},
        {
            **{"X": None, "y": None, "selector": {**NONSENSE, "text": "selector"}},
            **{"n_permutations": COUNTS, "block": BLOCKS, "progress": FLAGS},
            **{"random_state": {**SEEDS, "a generator": RNG}},
        },
    ),
    "shape_test": (
        frot.selection.shape_test,
        {"X": RNG.normal(size=(24, 3)), "y": np.array(["a", "b"] * 12)},
        {
            **{"X": None, "y": None, "selector": {**NONSENSE, "text": "selector"}},
            **{"n_permutations": COUNTS, "progress": FLAGS, "sample_names": None},
            **{"block": {k: v for k, v in BLOCKS.items() if k != "a matrix"}},
            **{"random_state": {**SEEDS, "a generator": RNG}},
        },
    ),
    "read_samples": (
        frot.selection.read_samples,
        {"path": "nowhere.csv", "label": "y"},
        {
            **{"path": PATHS, "label": None, "labels": None, "block": None, "ids": None},
            **{
                "transpose": None,
                "drop": None,
                "keep": None,
                "log1p": None,
                "layer": None,
            },
        },
    ),
}

# Where the message says it in another word than the argument's.
OTHER_WORDS = {"share": "relative", "groups": "group", "spec": "group", "equal": "equal"}
LONGEST = 600


def wrong(call: str, parameter: str) -> Iterator[tuple[str, Any]]:
    values = CALLS[call][2][parameter]
    return iter(() if values is None else values.items())


def outcome(call: str, parameter: str, value: Any) -> str:
    """What is wrong about how a wrong value is met; empty if nothing is."""
    function, given, _ = CALLS[call]
    try:
        function(**{**given, parameter: value})
    except InputError as error:
        message = str(error)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:100]}"
    else:
        return "accepted"
    if OTHER_WORDS.get(parameter, parameter) not in message:
        return f"does not name it: {message[:100]}"
    return f"too long: {message[:100]}" if len(message) > LONGEST else ""


EVERY = [(call, parameter) for call, (_, _, wrongs) in CALLS.items() for parameter in wrongs]


@pytest.mark.parametrize(("call", "parameter"), EVERY, ids=map("-".join, EVERY))
def test_what_an_argument_cannot_be(call: str, parameter: str, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    met = {name: outcome(call, parameter, value) for name, value in wrong(call, parameter)}
    assert {name: how for name, how in met.items() if how} == {}


# What the lambdas above stand for.
MEANT = {
    **{name: getattr(frot, name) for name in ("Exact", "Entropic", "FrankWolfe", "LinearProgram")},
    "CuttingSet": frot.CuttingSet,
    "FROTSelector": frot.selection.FROTSelector,
    "FRWDLoss()": frot.torch.FRWDLoss.forward,
}


@pytest.mark.parametrize("call", CALLS)
def test_no_argument_is_left_out(call: str):
    function = MEANT.get(call, CALLS[call][0])
    names = set(inspect.signature(function).parameters) - {"self", "options"}
    assert names <= set(CALLS[call][2])


def test_no_function_is_left_out():
    """Classes that are answers, errors or made by others have no door."""
    given = {name.partition(".")[0] for name in CALLS}
    functions = {name for name in frot.__all__ if inspect.isfunction(getattr(frot, name))}
    assert functions <= given
    assert {"Exact", "Entropic", "FrankWolfe", "LinearProgram", "Sinkhorn", "Plan"} <= given


@pytest.mark.parametrize("call", ["solve", "solve_costs", "solve_batch", "pairwise", "srw"])
def test_unknown_words(call: str):
    function, given, _ = CALLS[call]
    with pytest.raises(TypeError, match="unexpected keyword argument 'tolerance'"):
        function(**given, tolerance=1e-3)


@pytest.mark.parametrize("call", ["solve", "srw", "wasserstein", "distance", "compare"])
def test_tables_of_other_kinds_say_how_to_make_arrays_of_them(call: str):
    function, given, _ = CALLS[call]
    with pytest.raises(InputError, match=r"^Y: is a sparse matrix; use Y.toarray\(\)$"):
        function(**{**given, "Y": sparse.csr_matrix(Y)})
    with pytest.raises(InputError, match=r"^X: .*; use X.X, or X.X.toarray\(\) where that is"):
        function(**{**given, "X": SimpleNamespace(X=sparse.eye(3), obs=None, var=None)})
    with pytest.raises(InputError, match=r"^X: is a tensor of layout torch.sparse_coo; use X.to_d"):
        function(**{**given, "X": torch.eye(3).to_sparse()})
    with pytest.raises(InputError, match=r"^X: is a meta tensor, which holds no numbers"):
        function(**{**given, "X": torch.empty((4, 3), device="meta")})


FINE: dict[str, Any] = {
    "half precision": X.astype(np.float16),
    "single precision": X.astype(np.float32),
    "more precision": X.astype(np.longdouble),
    "whole numbers": np.arange(12).reshape(4, 3),
    "truths": X > 0.0,
    "objects": X.astype(object),
    "decimals": np.array([[Decimal(repr(x)) for x in row] for row in X.tolist()]),
    "fractions": [[Fraction(x) for x in row] for row in X.tolist()],
    "a matrix": told(lambda: np.asmatrix(X)),
    "Fortran's order": np.asfortranarray(X),
    "backwards": X[::-1, ::-1],
    "read-only": np.broadcast_to(X[:1], (4, 3)),
    "the other byte order": X.astype(">f8"),
    "pandas": pd.DataFrame(X),
    "pandas' nullable": pd.DataFrame(X).astype("Float64"),
    "pandas' sparse": pd.DataFrame(X).astype(pd.SparseDtype(float)),
    "pyarrow's": pd.DataFrame(X).astype("double[pyarrow]"),
    "polars": pl.DataFrame(X),
    "lists": X.tolist(),
    "rows in a tuple": tuple(map(tuple, X.tolist())),
    "tensors in a list": list(torch.tensor(X)),
}


@pytest.mark.parametrize("points", FINE.values(), ids=FINE)
def test_what_points_can_be(points: Any):
    plain = np.asarray(points.to_numpy() if hasattr(points, "to_numpy") else points, dtype=float)
    given = frot.solve(points, Y)
    assert given.value == frot.solve(plain, Y).value
    assert given.points is not None
    assert np.array_equal(given.points[0], plain)


@pytest.mark.parametrize(
    "number",
    [np.float32(0.25), np.array(0.25), Fraction(1, 4), Decimal("0.25"), torch.tensor(0.25)],
    ids=["single", "array", "fraction", "decimal", "tensor"],
)
def test_what_numbers_can_be(number: Any):
    """Whatever is a number is one throughout: not only where it is looked at first."""
    for name in ("eta", "eps", "tol", "time_limit", "p", "memory_budget"):
        options = {"metric": "euclidean"} if name == "p" else {}
        found = quiet(frot.solve, X, Y, **{**options, name: number})
        plain = quiet(frot.solve, X, Y, **{**options, name: 0.25})
        assert found.value == plain.value
        assert found.solver == plain.solver
    for solver in (frot.Exact, frot.FrankWolfe):
        found = frot.solve(X, Y, solver=solver(tol=number, time_limit=60 * number))
        assert found.value == frot.solve(X, Y, solver=solver(tol=0.25)).value
    batch = frot.solve_batch([X], [Y], eps=number, tol=number, time_limit=60 * number)
    assert batch.value == frot.solve_batch([X], [Y], eps=0.25, tol=0.25).value
    assert frot.relative(number) == frot.relative(0.25)


@pytest.mark.parametrize(
    "whole", [30, np.int32(30), np.uint8(30), 30.0, Fraction(30), np.array(30)]
)
def test_what_counts_can_be(whole: Any):
    plain = frot.solve(X, Y, max_iter=30)
    found = frot.solve(X, Y, max_iter=whole)
    assert (found.value, found.solver) == (plain.value, plain.solver)

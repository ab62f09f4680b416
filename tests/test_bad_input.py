"""Every mistake is refused at the door, by name, and before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import frot
import frot.torch
from frot import Exact, FrankWolfe, InputError, LinearProgram, Sinkhorn

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(3, 4)), RNG.normal(size=(5, 4))
UNIFORM = np.full(3, 1 / 3)


def spoilt(points: np.ndarray, value: Any, dtype: Any = float) -> np.ndarray:
    copy = points.astype(dtype)
    copy[1, 2] = value
    return copy


# What is passed, and what the message must say.
POINTS = {
    "NaN": ((spoilt(X, np.nan), Y), r"X: 1 of 12 entries are NaN .* first at X\[1, 2\]"),
    "infinity": ((X, spoilt(Y, np.inf)), r"Y: 1 of 20 entries .* first at Y\[1, 2\]"),
    "text": ((X.astype(str), Y), r"X: holds <U\d+, not numbers; use X.astype\(float\)"),
    "objects": ((spoilt(X, "n/a", object), Y), "X: holds objects that are not numbers"),
    "complex": ((X, Y + 1j), "Y: is complex"),
    "1-D": ((X[0], Y), r"X: has shape \(4,\), but points are rows; use X.reshape\(-1, 1\)"),
    "3-D": ((X, Y[None]), r"Y: has 3 dimensions, expected \(points, features\)"),
    "no points": ((X[:0], Y), r"X: has no points \(shape \(0, 4\)\)"),
    "no features": ((X[:, :0], Y[:, :0]), "X: has no features"),
    "other features": ((X, Y[:, 1:]), "X, Y: have 4 and 3 features; they must be the same"),
    "overflow": ((1e200 * X, Y), "costs: some are infinite or NaN; rescale the points"),
    "the end of floats": ((np.sign(X) * 1.7e308, Y), "costs: some are infinite or NaN"),
}

OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    # Weights
    "a negative weight": ({"a": [1.0, 0.5, -0.5]}, r"a: weights must be >= 0, but a\[2\] = -0.5"),
    "weights of zero": ({"a": np.zeros(3)}, "a: all weights are zero"),
    "a NaN weight": ({"b": [np.nan] * 5}, "b: 5 of 5 entries are NaN"),
    "a mass of two": ({"a": 2 * UNIFORM}, r"a: the weights sum to 2, which is \+1 off one"),
    "masses that differ": (
        {"a": UNIFORM, "b": np.full(5, 0.3)},
        r"a, b: the masses differ by -0.5 \(1 against 1.5\); pass normalise_weights=True",
    ),
    "too many weights": ({"a": np.full(4, 0.25)}, r"a: has shape \(4,\), expected .* \(3,\)"),
    # Groups
    "an empty group": ({"groups": [[0], []]}, "'g1'"),
    "no groups": ({"groups": []}, "group"),
    "a feature out of range": ({"groups": [[0], [4]]}, "4"),
    "sizes that do not add up": ({"groups": [2, 3]}, "the sizes add up to 5, 1 more than the 4"),
    "unknown groups": ({"groups": "prefixes"}, "groups='prefixes' is not known"),
    "prefixes without names": ({"groups": "prefix"}, "groups='prefix' needs named features"),
    # Numbers
    "negative eta": ({"eta": -0.1}, "eta: must be finite and >= 0, got -0.1"),
    "NaN eta": ({"eta": np.nan}, "eta: must be finite and >= 0, got nan"),
    "negative eps": ({"eps": -1}, "eps: must be finite and >= 0, got -1"),
    "p of zero": ({"metric": "euclidean", "p": 0}, "p: must be finite and > 0, got 0"),
    "negative tol": ({"tol": -1}, "tol: must be finite and >= 0, got -1"),
    "NaN tol": ({"tol": np.nan}, "tol: must be finite"),
    "max_iter of zero": ({"max_iter": 0}, "max_iter: must be a whole number >= 1, got 0"),
    "max_iter of 2.5": ({"max_iter": 2.5}, "max_iter: must be a whole number >= 1, got 2.5"),
    "time_limit of zero": ({"time_limit": 0}, "time_limit: must be finite and > 0, got 0"),
    # Metrics and normalisation
    "an unknown metric": ({"metric": "manhatten"}, "metric: 'manhatten' is neither a callable"),
    "a mistyped metric": ({"metric": "citiblock"}, "did you mean 'cityblock'"),
    "a metric of NaN": ({"metric": lambda u, v: np.nan}, "costs: some are infinite or NaN"),
    "a metric of text": ({"metric": lambda u, v: "far"}, "metric: could not be computed"),
    "an unknown normalisation": ({"normalise": "max"}, "normalise: 'max' is none of 'none'"),
    "a prior of a wrong length": ({"prior": [1.0]}, r"prior: has shape \(1,\)"),
    "a prior of zero": ({"prior": [1, 1, 1, 0]}, r"prior: must be > 0, but prior\[3\] = 0"),
    "a prior without eta": (
        {"prior": [1, 1, 1, 2]},
        "prior: has no effect at eta = 0, .*; pass eta > 0, or leave prior out",
    ),
    "a prior with a share of nothing": (
        {"prior": [1, 1, 1, 2], "eta": frot.relative(0.0)},
        "prior: has no effect at eta = 0",
    ),
    # Solvers
    "an unknown solver": ({"solver": "emd"}, "solver: 'emd' is none of 'auto', 'exact'"),
    "a solver's class": (
        {"solver": Exact},
        r"solver: Exact is a class; pass a name, or a solver such as frot.Exact\(\)",
    ),
    "no solver": ({"solver": 3}, "solver: 3; pass a name, or a solver such as frot.Exact"),
    "an unknown step": (
        {"eta": 1.0, "solver": FrankWolfe(step="away")},  # type: ignore[arg-type]
        "step: 'away' is none of 'paper', 'line_search', 'fully_corrective'",
    ),
    "an unknown method": (
        {"solver": LinearProgram(method="pdlp")},  # type: ignore[arg-type]
        "method: 'pdlp' is none of 'simplex', 'ipm'",
    ),
    "Exact with eps": ({"solver": "exact", "eps": 0.1}, "solver: Exact solves eps = 0; drop eps"),
    "LinearProgram with eta": (
        {"solver": "linear_program", "eta": 0.1},
        "solver: LinearProgram solves eta = 0 and eps = 0",
    ),
    "the paper's steps without eta": (
        {"solver": FrankWolfe(step="paper")},
        "eta: Frank-Wolfe with step='paper' needs eta > 0",
    ),
    "a line search without eta": (
        {"solver": FrankWolfe(step="line_search")},
        "eta: Frank-Wolfe with step='line_search' needs eta > 0",
    ),
    **{
        f"Frank-Wolfe with eps, {solver!r}": (
            {"eps": 1.0, "eta": 1.0, "solver": solver},
            r"eps: FrankWolfe solves eps = 0.*Entropic\(\).*oracle=frot.Sinkhorn\(eps=\.\.\.\)",
        )
        for solver in ("frank_wolfe", FrankWolfe(), FrankWolfe(oracle=Sinkhorn(eps=1.0)))
    },
    # Starts
    "a start of a wrong shape": (
        {"start": np.ones((5, 3))},
        r"start: shape \(5, 3\) is neither weights \(4,\) nor a plan \(3, 5\)",
    ),
    "a negative start": ({"start": [1, 1, -1, 1]}, "start: must be finite, >= 0 and not all zero"),
    "a start of zero": ({"start": np.zeros((3, 5))}, "start: must be finite, >= 0"),
    "a NaN start": ({"start": np.full(4, np.nan)}, "start: must be finite, >= 0"),
}


@pytest.mark.parametrize("mistake", POINTS)
def test_points(mistake):
    points, message = POINTS[mistake]
    with pytest.raises(InputError, match=message):
        frot.solve(*points)


@pytest.mark.parametrize("mistake", OPTIONS)
def test_options(mistake):
    options, message = OPTIONS[mistake]
    with pytest.raises(InputError, match=message):
        frot.solve(X, Y, **options)


class TestCostStacks:
    @pytest.mark.parametrize(
        ("costs", "message"),
        [
            (np.ones((3, 5)), r"C: has shape \(3, 5\).*use C\[None\] for a single cost"),
            (np.ones((2, 0, 5)), r"C: is empty \(shape \(2, 0, 5\)\)"),
            (np.full((2, 3, 5), np.nan), "C: 30 of 30 entries are NaN or infinite"),
            ("costs", "C: is the text 'costs', not numbers; .*frot.read_table"),
            (np.full((2, 3, 5), 1e300), r"costs: are 1e\+300 on average, .*; rescale"),
        ],
    )
    def test_refused(self, costs, message):
        with pytest.raises(InputError, match=message):
            frot.solve_costs(costs)

    def test_names_must_match(self):
        with pytest.raises(InputError, match="names: 1 names for 2 groups"):
            frot.solve_costs(np.ones((2, 3, 5)), names=["only"])


def test_data_frames_with_other_columns():
    pandas = pytest.importorskip("pandas")
    names = ["a", "b", "c", "d"]
    left, right = pandas.DataFrame(X, columns=names), pandas.DataFrame(Y, columns=names[::-1])
    with pytest.raises(InputError, match=r"X, Y: have different columns; .* Y\[X.columns\]"):
        frot.solve(left, right)


@pytest.mark.parametrize(("side", "lone"), [("X", "d"), ("Y", "e")])
def test_data_frames_of_which_one_has_a_column_more(side: str, lone: str):
    pandas = pytest.importorskip("pandas")
    left = pandas.DataFrame(X, columns=["a", "b", "c", "d" if side == "X" else "a"])
    right = pandas.DataFrame(Y, columns=["a", "b", "c", "a" if side == "X" else "e"])
    # Y[X.columns] would fail here.
    with pytest.raises(InputError, match=f"only {side} has '{lone}', for one: keep those that bo"):
        frot.solve(left, right)


def test_no_points_at_all():
    with pytest.raises(InputError, match=r"^X: has no points; give an array of shape"):
        frot.solve([], Y)


def test_cosine_of_a_row_of_zeros():
    points = X.copy()
    points[2, :2] = 0.0
    with pytest.raises(InputError, match="X row 2 is all zeros in group 'g0'"):
        frot.solve(points, Y, [2, 2], metric="cosine")
    with pytest.raises(InputError, match="Y row 2 is all zeros in group 'g0'"):
        frot.solve(Y, points, [2, 2], metric="cosine")


class TestBeforeAnyWork:
    @pytest.fixture
    def no_work(self, monkeypatch):
        def fail(*args, **options):
            raise AssertionError("costs were built for input that is wrong")

        monkeypatch.setattr("frot.api.solve.build_costs", fail)
        monkeypatch.setattr("frot.api.solve.Stack", fail)

    @pytest.mark.parametrize(
        "options",
        [
            {"a": [0.5, 0.5, 0.5]},
            {"b": np.full(5, -0.2)},
            {"groups": [[9]]},
            {"eta": -1.0},
            {"eps": np.nan},
            {"metric": "euclidian"},
            {"normalise": "max"},
            {"prior": [1.0]},
            {"p": 0.0},
        ],
    )
    def test_of_points(self, no_work, options):
        with pytest.raises(InputError):
            frot.solve(X, Y, **options)

    @pytest.mark.parametrize(
        "options",
        [
            {"solver": "simplex"},
            {"solver": Exact},
            {"solver": "exact", "eps": 0.1},
            {"tol": -1.0},
            {"max_iter": 0},
            {"time_limit": -1.0},
            {"start": np.ones(9)},
        ],
    )
    def test_of_solvers_and_starts(self, no_work, options):
        with pytest.raises(InputError):
            frot.solve(X, Y, **options)

    def test_of_costs(self, no_work):
        with pytest.raises(InputError):
            frot.solve_costs(np.ones((2, 3, 5)), eta=-1.0)


IDLE = "prior: has no effect at eta = 0, .*; pass eta > 0, or leave prior out"


@pytest.mark.parametrize("eta", [0.0, frot.relative(0.0)], ids=["zero", "a share of zero"])
class TestIdlePriors:
    """A prior is what the adversary pays eta for leaving; without eta it would do nothing."""

    Q = (0.1, 0.2, 0.3, 0.4)

    def test_at_every_door(self, eta):
        for call in (
            lambda: frot.solve(X, Y, eta=eta, prior=self.Q),
            lambda: frot.solve(X, Y, eta=eta, eps=0.1, prior=self.Q),
            lambda: frot.solve_costs(np.ones((4, 3, 5)), eta=eta, prior=self.Q),
            lambda: frot.solve_batch([X], [Y], eta=eta, prior=self.Q),
            lambda: frot.pairwise([X, Y], eta=eta, prior=self.Q),
            lambda: frot.distance(X, Y, prior=self.Q),
            lambda: frot.torch.FRWDLoss(eta=eta, prior=self.Q),
        ):
            with pytest.raises(InputError, match=IDLE):
                call()


def test_a_share_of_no_cost_is_no_mistake():
    """Where nothing costs anything, eta is zero, but nobody asked for zero."""
    import torch

    same, q = np.zeros((3, 4)), (0.1, 0.2, 0.3, 0.4)
    assert frot.solve(same, same, eta=frot.relative(0.1), prior=q).value == 0.0
    loss = frot.torch.FRWDLoss(eta=frot.relative(0.1), prior=q)
    assert float(loss(torch.tensor(same), torch.tensor(same))) == pytest.approx(0.0, abs=1e-12)

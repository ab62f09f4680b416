"""Arrays of every library: the same answers, of the same kind, and one clear error otherwise."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import frot
from frot import InputError, relative
from frot._base.arrays import Home, at_least, find_home, is_foreign, to_numpy
from tests.libraries import FOREIGN, LIBRARIES, Library
from tests.reference import quiet

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(11, 5)), RNG.normal(size=(8, 5)) + 0.4
A, B = RNG.dirichlet(np.ones(11)), RNG.dirichlet(np.ones(8))
HOLES = np.where(np.arange(8) % 3 == 1, 0.0, B) / B[np.arange(8) % 3 != 1].sum()
GROUPS = [[0, 1], [2, 3, 4], [1, 4]]
PROBLEMS: dict[str, dict[str, Any]] = {
    "entropic": {"eps": 0.2, "eta": 0.1},
    "streamed": {"eps": 0.2, "eta": 0.1, "memory_budget": 100},
    "exact": {"eps": 0.0, "eta": 0.1},
    "max": {"eps": 0.2},
    "cosine": {"eps": 0.05, "metric": "cosine"},
    "cityblock": {"eps": 0.2, "metric": "cityblock"},
    "prior": {"eps": 0.2, "eta": 0.3, "prior": [1.0, 2.0, 3.0]},
    "holes": {"eps": 0.2, "eta": 0.1, "b": HOLES},
    "mean": {"eps": relative(0.1), "normalise": "mean"},
    "regret": {"eps": 0.2, "normalise": "regret"},
    "frank_wolfe": {
        "eta": 0.1,
        "solver": frot.FrankWolfe(oracle=frot.Sinkhorn(eps=0.2), max_iter=4),
    },
}


class Other:
    """An array of some other library on the host."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values if dtype is None else self.values.astype(dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class OnDevice:
    """An array of some other library on a device: it can be handed over, and not be read."""

    def __init__(self, values: Any) -> None:
        self.tensor = torch.tensor(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (8, 0)

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor.__dlpack__()


class Tracer:
    """What JAX hands to a function that it traces."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("TracerArrayConversionError")


class JVPTracer(Tracer):
    """One of its kinds."""


def solve(library: Library, **options: Any) -> frot.Result:
    options = {"a": A, "b": B, "tol": 1e-9} | options
    if library.precision == "float32" or "solver" in options or "memory_budget" in options:
        options["tol"] = 1e-5
    for name in ("a", "b", "prior"):
        if name in options:
            options[name] = library(options[name])
    return quiet(frot.solve, library(X), library(Y), GROUPS, **options)


@cache
def on_the_host(problem: str) -> frot.Result:
    return solve(Library("numpy", "float64"), **PROBLEMS[problem])


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_the_same_answer_of_the_same_kind(library: Library, problem: str):
    found = solve(library, **PROBLEMS[problem])
    expected = on_the_host(problem)
    near = 3e-5 if library.precision == "float32" or problem == "streamed" else 1e-8
    assert found.value == pytest.approx(expected.value, rel=near)
    assert found.solver.split("(")[0] == expected.solver.split("(")[0]
    plan, whole = found.plan, np.asarray(expected.plan)
    # Plans near an optimum differ by the root of what values differ by.
    loose = 10.0 * near**0.5
    assert np.asarray(plan) == pytest.approx(whole, abs=loose)
    V, U = RNG.normal(size=(8, 2)), RNG.normal(size=(11, 3))
    whole = np.asarray(plan)
    for array, truth in (
        (found.alpha, expected.alpha),
        (found.phi, expected.phi),
        (plan @ library(V), whole @ V),
        (plan @ library(V[:, 0]), whole @ V[:, 0]),
        (plan.T @ library(U), whole.T @ U),
        (plan.rows(3), whole[3]),
        (plan.rows([4, -1]), whole[[4, -1]]),
        (plan.dense(), whole),
        (plan.sum(axis=0), whole.sum(axis=0)),
        (plan.sum(axis=1), whole.sum(axis=1)),
        *((potential, None) for potential in found.potentials),
    ):
        assert library.owns(array)
        if truth is not None:
            exactness = loose if truth is expected.alpha or truth is expected.phi else 1e-6
            assert to_numpy(array) == pytest.approx(truth, abs=exactness, rel=exactness)
    for axis in (0, 1):
        best = plan.argmax(axis=axis)
        assert type(best) is type(library(V))
        assert to_numpy(best).tolist() == whole.argmax(axis=axis).tolist()
    assert isinstance(plan.sum(), float)
    assert plan.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.abs(whole.sum(axis=1) - A.astype(library.precision)).max() <= 1e-7
    assert found.summary().count("\n") > 5
    assert isinstance(found.numpy().alpha, np.ndarray)


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_stacks_of_costs(library: Library, eps: float):
    stack = RNG.random((3, 7, 6)).astype(np.float32)
    found = frot.solve_costs(library(stack), eta=0.05, eps=eps, tol=1e-6)
    expected = frot.solve_costs(stack, eta=0.05, eps=eps, tol=1e-6)
    assert found.value == pytest.approx(expected.value, rel=1e-5)
    assert library.owns(found.alpha)
    assert library.owns(found.plan.dense())


@pytest.mark.parametrize("library", FOREIGN, ids=str)
@pytest.mark.parametrize("eps", [0.0, 0.2])
def test_results_of_any_library_are_a_start(library: Library, eps: float):
    first = solve(library, eps=eps, eta=0.1)
    for start in (first, first.plan, first.alpha, library([1.0, 0.0, 0.0])):
        again = solve(library, eps=0.2, eta=0.1, start=start)
        exact = solve(library, eps=0.0, eta=0.1, start=start)
        assert again.value == pytest.approx(solve(library, eps=0.2, eta=0.1).value, rel=2e-5)
        assert exact.value == pytest.approx(solve(library, eps=0.0, eta=0.1).value, rel=2e-5)


class TestOtherLibraries:
    """They are NumPy's on the host, and PyTorch's on a device."""

    @pytest.mark.parametrize("kind", [Other, OnDevice])
    @pytest.mark.parametrize("eps", [0.0, 0.2])
    def test_points(self, kind: type, eps: float):
        found = frot.solve(kind(X), kind(Y), GROUPS, a=kind(A), b=kind(B), eps=eps)
        expected = frot.solve(X, Y, GROUPS, a=A, b=B, eps=eps)
        assert found.value == pytest.approx(expected.value, rel=1e-4)
        assert type(found.alpha) is (np.ndarray if kind is Other else torch.Tensor)

    @pytest.mark.parametrize("kind", [Other, OnDevice])
    def test_stacks_batches_and_relatives(self, kind: type):
        own = np.ndarray if kind is Other else torch.Tensor
        stack = RNG.random((3, 7, 6))
        for call in (frot.solve_costs, frot.equitable):
            found = call(kind(stack))
            assert found.value == pytest.approx(call(stack).value, rel=1e-4)
        for X2, Y2 in (
            (kind(np.stack([X, X])), kind(np.stack([Y, Y]))),
            ([kind(X), kind(X)], [kind(Y), kind(Y)]),
        ):
            batch = frot.solve_batch(X2, Y2, GROUPS, eps=0.2)
            assert type(batch.alpha) is own
            assert batch[0].value == pytest.approx(
                frot.solve(X, Y, GROUPS, eps=0.2).value, rel=1e-3
            )
        assert type(frot.max_min(kind(X), kind(Y), GROUPS).alpha) is own
        table = frot.pairwise([kind(X), kind(Y)], [[0, 1], [2, 3, 4]])
        assert table[0, 1] == pytest.approx(frot.distance(X, Y, [[0, 1], [2, 3, 4]]), rel=1e-9)

    def test_what_cannot_be_handed_over(self, monkeypatch):
        def refuse(self: Any, **options: Any) -> Any:
            raise BufferError("no such device")

        monkeypatch.setattr(OnDevice, "__dlpack__", refuse)
        with pytest.raises(InputError, match=r"Y: is a OnDevice on a device that PyTorch cannot"):
            frot.solve(X, OnDevice(Y))

    def test_what_is_traced_has_no_numbers_yet(self):
        for call in (
            lambda: frot.solve(JVPTracer(), Y),
            lambda: frot.solve_batch([JVPTracer()], [Y], eps=0.1),
            lambda: frot.pairwise([JVPTracer(), Y]),
            lambda: frot.distance(JVPTracer(), Y),
        ):
            with pytest.raises(
                InputError, match=r"(X|X\[0\]|clouds\[0\]): is traced, as within jax"
            ):
                call()


@pytest.mark.parametrize("budget", [2e9, 100])
def test_nothing_is_copied_to_the_host_in_a_loop(monkeypatch, budget: float):
    """Copies are for the way in and out: twelve steps need no more of them than six."""
    counts = {"n": 0}
    for name in ("numpy", "cpu", "tolist"):
        original = getattr(torch.Tensor, name)

        def counting(self, *args, original=original, **options):
            counts["n"] += 1
            return original(self, *args, **options)

        monkeypatch.setattr(torch.Tensor, name, counting)

    def copies(steps: int) -> int:
        counts["n"] = 0
        result = quiet(
            frot.solve, torch.tensor(X), torch.tensor(Y), GROUPS,
            eps=0.01, tol=1e-15, max_iter=steps, memory_budget=budget,
        )  # fmt: skip
        assert result.iterations == steps
        return counts["n"]

    assert 0 < copies(12) <= copies(6)


class TestBadInput:
    def refuses(self, match: str, *args: Any, **options: Any) -> None:
        with pytest.raises(InputError, match=match):
            frot.solve(*args, **({"eps": 0.1} | options))

    def test_mixed_libraries(self):
        T = torch.tensor
        self.refuses(r"X, Y: are arrays of torch and numpy; convert", T(X), Y)
        self.refuses(r"X, Y: are arrays of numpy and torch; convert", X, T(Y))
        self.refuses(r"X, a: are arrays of torch and numpy; convert", T(X), T(Y), a=A)
        self.refuses(r"X, b: are arrays of torch and numpy", T(X), T(Y), b=Other(B))
        prior = torch.ones(5, dtype=torch.float64)
        self.refuses(r"X, prior: are arrays of numpy and torch", X, Y, prior=prior)

    def test_mixed_devices(self, monkeypatch):
        # A second device that every machine has; otherwise refused for holding no numbers.
        monkeypatch.setattr("frot._base.arrays.refuse_odd_tensor", lambda array, name: None)
        meta = torch.empty((8, 5), dtype=torch.float64, device="meta")
        self.refuses(r"X, Y: are on cpu and meta; move one to the other", torch.tensor(X), meta)

    def test_tensors_without_numbers(self):
        meta = torch.empty((8, 5), dtype=torch.float64, device="meta")
        self.refuses(r"Y: is a meta tensor, which holds no numbers", torch.tensor(X), meta)

    def test_mixed_precisions(self):
        single = torch.tensor(Y, dtype=torch.float32)
        self.refuses(r"X, Y: are torch.float64 and torch.float32; convert", torch.tensor(X), single)
        with pytest.raises(InputError, match=r"C, a: are torch.float64 and torch.float32"):
            frot.solve_costs(torch.ones((1, 8, 8), dtype=torch.float64), a=torch.full((8,), 0.125))

    @pytest.mark.parametrize("dtype", [torch.int64, torch.float16, torch.bfloat16, torch.bool])
    def test_precisions_that_no_solver_has(self, dtype):
        points = torch.ones((4, 2)).to(dtype)
        self.refuses(r"X: is torch\.\w+; convert it to float32 or float64", points, points)
        with pytest.raises(InputError, match=r"C: is torch\.\w+; convert it to float32"):
            frot.solve_costs(points[None])

    def test_gradients(self):
        points = torch.tensor(X, requires_grad=True)
        self.refuses(r"X: requires grad.*FRWDLoss.*X\.detach\(\)", points, torch.tensor(Y))
        weights = torch.full((8,), 0.125, dtype=torch.float64, requires_grad=True)
        self.refuses(
            r"b: requires grad.*b\.detach\(\)", torch.tensor(X), torch.tensor(Y), b=weights
        )

    @pytest.mark.parametrize("library", FOREIGN, ids=str)
    def test_not_finite(self, library: Library):
        bad = X.copy()
        bad[2, 1] = np.nan
        self.refuses(r"X: 1 of 55 entries are NaN .*X\[2, 1\]; drop", library(bad), library(Y))
        bad[2, 1] = np.inf
        self.refuses(r"Y: 1 of 55 entries are NaN or infinite", library(X), library(bad))

    @pytest.mark.parametrize("library", FOREIGN, ids=str)
    def test_shapes_weights_and_eps(self, library: Library):
        x, y = library(X), library(Y)
        self.refuses(r"X: has shape \(11,\), but points are rows", library(X[:, 0]), y)
        self.refuses(r"a: has shape \(8,\), expected one weight", x, y, a=library(B))
        self.refuses(r"b: the weights sum to 2.*normalise_weights", x, y, b=library(2.0 * B))
        self.refuses(r"eps: Entropic needs eps > 0; pass eps", x, y, eps=0.0, solver="entropic")
        self.refuses(r"eps: must be finite", x, y, eps=float("nan"))
        zero = library(np.zeros((8, 5)))
        self.refuses(r"Y row 0 is all zeros in group", x, zero, metric="cosine")


def test_factors_of_a_plan_have_to_be_where_it_is():
    plan = solve(Library("torch", "float64"), eps=0.2).plan
    with pytest.raises(InputError, match="plan: is of torch on cpu, and its factor of torch on me"):
        _ = plan @ torch.ones(8, device="meta")
    assert isinstance(plan @ np.ones(8), torch.Tensor)


def test_homes():
    assert not is_foreign(np.float64(1.0))
    assert not is_foreign([1.0])
    assert is_foreign(torch.zeros(1))
    assert find_home(X=[[1.0]], a=None, b=np.ones(1)) is None
    home = Home.of(torch.zeros(1, dtype=torch.float32))
    assert home.library == "torch"
    assert home.on_host
    assert home.double().dtype == torch.float64
    assert not Home.of(torch.zeros(1, device="meta")).on_host
    read_only = np.ones(2)
    read_only.flags.writeable = False
    assert home.bring(read_only).dtype == torch.float32
    assert home.indices([1, 2]).dtype == torch.int64


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_entries_below_a_number_are_that_number(library: Library):
    array = library(np.array([-1.0, 2.0]))
    found = at_least(Home.of(array).xp, array, 0.5)
    np.testing.assert_array_equal(to_numpy(found), [0.5, 2.0])

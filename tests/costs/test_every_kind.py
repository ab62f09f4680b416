"""Every kind of costs says the same as the plain stack of matrices."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from scipy.spatial.distance import cdist

import frot
from frot import Groups, Plan
from frot._base.arrays import Home, to_numpy
from frot.costs import Batch, Costs, Distances, Points, Powers, Stack, points_costs
from frot.costs.points import take_members
from frot.costs.stack import difference_stack
from frot.problem.bounds import plan_doubt
from tests.strategies import seeds

N, M, D = 7, 6, 5
OVERLAPPING = [[0, 1], [1, 2, 4], [3], [0, 1, 2, 3, 4], [4, 0]]
RAGGED = [[0, 3], [2]]


def stacked(X: np.ndarray, Y: np.ndarray, lists: Any, metric: Any, p: float = 1.0) -> np.ndarray:
    return np.stack([cdist(X[:, g], Y[:, g], metric) ** p for g in lists])


def taxi(u: np.ndarray, v: np.ndarray) -> float:
    return float(np.abs(u - v).sum())


def parse(lists: list[list[int]]) -> Groups:
    return Groups.parse(lists, D)


EACH = [[k] for k in range(D)]
MEMBER = np.array([[float(k in group) for k in range(D)] for group in OVERLAPPING])
SCALE, SHIFT = np.array([0.5, 3.0]), np.array([1.0, -0.25])


class Own(frot.costs.Costs):
    """A user's class: what has to be said, of a stack in either library."""

    def __init__(self, stack: Any) -> None:
        self.C = stack

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.C.shape)

    @property
    def home(self) -> Any:
        return Stack(self.C).home

    def mix(self, alpha: Any) -> Any:
        return (alpha[:, None, None] * self.C).sum(0)

    def at(self, rows: np.ndarray, cols: np.ndarray) -> Any:
        return self.C[:, rows, cols]


def scaled(stack: np.ndarray) -> np.ndarray:
    return SCALE[:, None, None] * (stack - SHIFT[:, None, None])


Made = tuple[Costs, np.ndarray]
KINDS: dict[str, Callable[[np.ndarray, np.ndarray], Made]] = {
    "stack": lambda X, Y: (
        Stack(stacked(X, Y, RAGGED, "euclidean")),
        stacked(X, Y, RAGGED, "euclidean"),
    ),
    "stack, summed in double precision": lambda X, Y: (
        Stack(stacked(X, Y, RAGGED, "euclidean").astype("float32"), dtype=np.float64),
        stacked(X, Y, RAGGED, "euclidean").astype("float32"),
    ),
    "stack of tensors": lambda X, Y: (
        Stack(torch.tensor(stacked(X, Y, RAGGED, "euclidean"))),
        stacked(X, Y, RAGGED, "euclidean"),
    ),
    "differences": lambda X, Y: (
        points_costs(X, Y, parse(OVERLAPPING)),
        stacked(X, Y, OVERLAPPING, "sqeuclidean"),
    ),
    "points, ragged": lambda X, Y: (
        Points.of(X, Y, parse(RAGGED)),
        stacked(X, Y, RAGGED, "sqeuclidean"),
    ),
    "points, overlapping": lambda X, Y: (
        Points.of(X, Y, parse(OVERLAPPING)),
        stacked(X, Y, OVERLAPPING, "sqeuclidean"),
    ),
    "points, each": lambda X, Y: (
        Points.of(X, Y, Groups.each(D)),
        stacked(X, Y, EACH, "sqeuclidean"),
    ),
    "points, each in another order": lambda X, Y: (
        Points.of(X, Y, parse(EACH[::-1])),
        stacked(X, Y, EACH[::-1], "sqeuclidean"),
    ),
    "points, each rescaled": lambda X, Y: (
        Points.of(X, Y, Groups.each(D)).rescaled(np.arange(1.0, 1.0 + D)),
        np.arange(1.0, 1.0 + D)[:, None, None] * stacked(X, Y, EACH, "sqeuclidean"),
    ),
    "points, cosine": lambda X, Y: (
        Points.of(X, Y, parse(OVERLAPPING), "cosine"),
        stacked(X, Y, OVERLAPPING, "cosine"),
    ),
    "points of tensors": lambda X, Y: (
        Points(torch.tensor(X), torch.tensor(Y), torch.tensor(MEMBER)),
        stacked(X, Y, OVERLAPPING, "sqeuclidean"),
    ),
    "powers, p = 1": lambda X, Y: (Powers(X, Y), stacked(X, Y, EACH, "cityblock")),
    "powers, p = 3": lambda X, Y: (
        Powers(X, Y, p=3.0),
        stacked(X, Y, EACH, "cityblock", 3.0),
    ),
    "powers, p = 1/2, rescaled": lambda X, Y: (
        Powers(X, Y, p=0.5).rescaled(np.full(D, 2.0)),
        2.0 * stacked(X, Y, EACH, "cityblock", 0.5),
    ),
    "distances, a row at a time": lambda X, Y: (
        Distances(X, Y, parse(OVERLAPPING), "chebyshev", p=2.0, chunk_bytes=1),
        stacked(X, Y, OVERLAPPING, "chebyshev", 2.0),
    ),
    "distances, three rows at a time": lambda X, Y: (
        Distances(X, Y, parse(RAGGED), "euclidean", chunk_bytes=8 * 3 * M),
        stacked(X, Y, RAGGED, "euclidean"),
    ),
    "distances, callable": lambda X, Y: (
        Distances(X, Y, parse(RAGGED), taxi),
        stacked(X, Y, RAGGED, "cityblock"),
    ),
    "distances of tensors": lambda X, Y: (
        Distances(torch.tensor(X), torch.tensor(Y), parse(OVERLAPPING), "chebyshev"),
        stacked(X, Y, OVERLAPPING, "chebyshev"),
    ),
    "distances, rescaled": lambda X, Y: (
        Distances(X, Y, parse(RAGGED), "euclidean").rescaled(SCALE, SHIFT),
        scaled(stacked(X, Y, RAGGED, "euclidean")),
    ),
    "points, rescaled": lambda X, Y: (
        Points.of(X, Y, parse(RAGGED)).rescaled(SCALE, SHIFT),
        scaled(stacked(X, Y, RAGGED, "sqeuclidean")),
    ),
    "a user's own": lambda X, Y: (
        Own(stacked(X, Y, RAGGED, "euclidean")),
        stacked(X, Y, RAGGED, "euclidean"),
    ),
    "a user's own of tensors": lambda X, Y: (
        Own(torch.tensor(stacked(X, Y, RAGGED, "euclidean"))),
        stacked(X, Y, RAGGED, "euclidean"),
    ),
}
# Of these it is not known that no cost is negative.
SIGNED = {
    "distances, callable",
    "distances, rescaled",
    "points, rescaled",
    "a user's own",
    "a user's own of tensors",
}


def made(kind: str, seed: int) -> tuple[np.random.Generator, Costs, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(N, D)), rng.normal(size=(M, D))
    return rng, *KINDS[kind](X, Y)


def close(expected: np.ndarray) -> Any:
    return pytest.approx(expected, rel=1e-10, abs=1e-12)


# Only the coordinates of the points differ from seed to seed.
FEW = settings(max_examples=20)


def weights(costs: Costs, *arrays: np.ndarray) -> list[Any]:
    return [costs.home.bring(array) for array in arrays]


@pytest.mark.parametrize("kind", KINDS)
class TestAgainstTheStack:
    @FEW
    @given(seeds)
    def test_mix(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        for _ in range(3):
            alpha = rng.dirichlet(np.ones(len(stack))) * (rng.random(len(stack)) < 0.7)
            expected = np.einsum("l,lij->ij", alpha, stack)
            assert to_numpy(costs.mix(*weights(costs, alpha))) == close(expected)
        assert costs.shape == stack.shape
        assert to_numpy(costs.stack()) == close(stack)

    @FEW
    @given(seeds)
    def test_inner(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        dense = rng.random((N, M)) * (rng.random((N, M)) < 0.5)
        expected = np.einsum("ij,lij->l", dense, stack)
        assert to_numpy(costs.inner(Plan(dense))) == close(expected)
        assert to_numpy(costs.inner(*weights(costs, dense))) == close(expected)
        sparse = Plan.from_arcs(*Plan(dense).arcs(), (N, M))
        assert to_numpy(costs.inner(sparse)) == close(expected)

    @FEW
    @given(seeds)
    def test_at(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        rows, cols = rng.integers(0, N, 9), rng.integers(0, M, 9)
        assert to_numpy(costs.at(rows, cols)) == close(stack[:, rows, cols])
        some = rng.permutation(len(stack))[: max(1, len(stack) - 1)]
        found = costs.entries(rows, cols, some)
        assert to_numpy(found) == close(stack[some][:, rows, cols])

    @FEW
    @given(seeds)
    def test_product(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        a, b = rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(M))
        expected = np.einsum("i,lij,j->l", a, stack, b)
        assert to_numpy(costs.product(*weights(costs, a, b))) == close(expected)

    @FEW
    @given(seeds)
    def test_sizes_and_peaks(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        a, b = rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(M))
        size = np.einsum("i,lij,j->l", a, np.abs(stack), b)
        assert to_numpy(costs.sizes(*weights(costs, a, b))) == close(size)
        assert (to_numpy(costs.peaks) >= np.abs(stack).max(axis=(1, 2)) * (1 - 1e-10)).all()

    @FEW
    @given(seeds)
    def test_take(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        rows, cols = rng.permutation(N)[:4], np.sort(rng.permutation(M)[:3])
        part, expected = costs.take(rows, cols), stack[:, rows][:, :, cols]
        assert part.shape == expected.shape
        assert to_numpy(part.stack()) == close(expected)
        assert to_numpy(costs.rows(slice(2, 5)).stack()) == close(stack[:, 2:5])
        again = costs.take(np.array([3, 3, 0]), np.array([4, 0, 1, 1]))
        assert to_numpy(again.stack()) == close(stack[:, [3, 3, 0]][:, :, [4, 0, 1, 1]])

    @FEW
    @given(seeds)
    def test_a_batch_of_one_says_the_same(self, kind, seed):
        rng, costs, stack = made(kind, seed)
        batch = costs.batch()
        alpha, plan = rng.dirichlet(np.ones(len(stack))), rng.random((N, M))
        u, v = rng.random(N), rng.random(M)
        (alpha, plan, u, v) = weights(costs, alpha, plan, u, v)
        assert batch.shape == (1, *costs.shape)
        assert to_numpy(batch.mix(alpha[None]))[0] == close(to_numpy(costs.mix(alpha)))
        assert to_numpy(batch.inner(plan[None]))[0] == close(to_numpy(costs.inner(plan)))
        assert to_numpy(batch.product(u[None], v[None]))[0] == close(to_numpy(costs.product(u, v)))
        assert to_numpy(batch.sizes(u[None], v[None]))[0] == close(to_numpy(costs.sizes(u, v)))
        assert to_numpy(batch.peaks)[0] == pytest.approx(to_numpy(costs.peaks), rel=1e-9)
        assert to_numpy(batch.stack())[0] == close(stack)
        rows, cols = np.array([0, 6, 2]), np.array([5, 0, 0])
        assert to_numpy(batch.at(rows, cols))[0] == close(stack[:, rows, cols])
        part = batch.take(rows, cols).rows(slice(1, 3))
        assert to_numpy(part.mix(alpha[None]))[0] == close(
            to_numpy(costs.mix(alpha))[rows[1:]][:, cols]
        )
        assert to_numpy(batch.member(0).mix(alpha)) == close(to_numpy(costs.mix(alpha)))
        index = costs.home.indices([0])
        assert to_numpy(batch.members(index).mix(alpha[None])) == close(
            to_numpy(batch.mix(alpha[None]))
        )

    @FEW
    @given(seeds)
    def test_nonnegative_only_where_it_is(self, kind, seed):
        _, costs, stack = made(kind, seed)
        if costs.nonnegative:
            assert stack.min() >= 0.0
        assert costs.nonnegative == (kind not in SIGNED)

    @FEW
    @given(seeds)
    def test_errors_are_bounded(self, kind, seed):
        """What is mixed and summed is off by no more than is said, and that is little."""
        rng, costs, stack = made(kind, seed)
        if "rescaled" in kind or "cosine" in kind or "differences" in kind:
            # Entries of the plain stack are themselves off by more than units of theirs.
            stack = stack.astype(float)
        long = stack.astype(np.longdouble)
        alpha, plan = rng.dirichlet(np.ones(len(stack))), rng.dirichlet(np.ones(N * M))
        plan = plan.reshape(N, M)
        relative, rows, cols = map(to_numpy, costs.rounding(*weights(costs, alpha)))
        mixed = to_numpy(costs.mix(*weights(costs, alpha)))
        bound = relative * np.abs(mixed) + np.reshape(rows, (-1, 1)) + cols
        units = 16.0 * np.finfo(float).eps * np.abs(stack).max()
        assert (np.abs(mixed - np.tensordot(alpha, long, 1)) <= bound + units).all()
        assert bound.max() <= 1e-12 * np.abs(stack).max()
        phi = to_numpy(costs.inner(Plan(plan)))
        doubt = plan_doubt(costs, phi, Plan(plan))
        assert (np.abs(phi - (long * plan).sum(axis=(1, 2))) <= doubt + units).all()
        assert doubt.max() <= 1e-12 * np.abs(stack).max()

    def test_precisions(self, kind):
        _, costs, stack = made(kind, 0)
        rough, precise = costs.single(), costs.single().double()
        alpha = np.full(len(stack), 1.0 / len(stack))
        for some, digits in ((rough, 1e-5), (precise, 1e-5), (costs.double(), 1e-10)):
            found = to_numpy(some.mix(*weights(some, alpha)))
            assert found == pytest.approx(np.tensordot(alpha, stack, 1), rel=digits, abs=digits)
        assert precise.home.dtype == costs.home.double().dtype
        assert costs.double() is costs


def allowance(costs, alpha) -> np.ndarray:
    """How far each entry of a mix may be off."""
    rounding = costs.rounding(alpha)
    shape = costs.shape[1:]
    absolute = np.broadcast_to(rounding.sums, shape)
    return rounding.relative * np.abs(costs.mix(alpha)) + absolute


class TestRounding:
    """The bound on rounding covers the distance to the same sums in extended precision."""

    @given(seeds, st.sampled_from([0.0, 1.0, 1e4]))
    def test_of_squared_distances(self, seed, offset):
        rng = np.random.default_rng(seed)
        X, Y = offset + rng.normal(size=(N, D)), offset + rng.normal(size=(M, D))
        costs = Points.of(X, Y, parse(RAGGED))
        alpha = rng.dirichlet(np.ones(2))
        gaps = (costs.X[:, None] - costs.Y).astype(np.longdouble) ** 2
        truth = gaps @ costs.feature_weights(alpha).astype(np.longdouble)
        off = np.abs(costs.mix(alpha) - truth)
        assert (off <= allowance(costs, alpha)).all()
        assert allowance(costs, alpha).max() <= 1e-12 * float(truth.max())

    @given(seeds, st.sampled_from([0.0, 1e6]))
    def test_of_stacks(self, seed, offset):
        rng = np.random.default_rng(seed)
        stack = offset + rng.normal(size=(9, N, M)) * 10.0 ** rng.uniform(-3, 3, (9, 1, 1))
        alpha = rng.dirichlet(np.ones(9))
        exact = np.einsum("l,lij->ij", alpha.astype(np.longdouble), stack.astype(np.longdouble))
        costs = Stack(stack)
        assert (np.abs(costs.mix(alpha) - exact) <= allowance(costs, alpha)).all()
        assert allowance(costs, alpha).max() <= 1e-14 * np.abs(stack).max()

    def test_of_a_stack_is_relative_to_the_groups_that_have_weight(self):
        stack = np.ones((2, 3, 3)) * np.array([1.0, 1e12])[:, None, None]
        assert allowance(Stack(stack), np.array([1.0, 0.0])).max() <= 1e-14
        assert allowance(Stack(-stack), np.array([1.0, 1e-12])).max() <= 1e-14

    @given(seeds, st.sampled_from([1.0, 2.5, 3.0]), st.sampled_from([0.0, 1e4, 1e8]))
    def test_of_powers(self, seed, p, offset):
        rng = np.random.default_rng(seed)
        X, Y = offset + rng.normal(size=(N, D)), offset + rng.normal(size=(M, D))
        costs = Powers(X, Y, p)
        alpha = rng.dirichlet(np.ones(D))
        gaps = np.abs(X[:, None].astype(np.longdouble) - Y) ** np.longdouble(p)
        off = np.abs(costs.mix(alpha) - gaps @ alpha.astype(np.longdouble))
        assert (off <= allowance(costs, alpha)).all()

    @given(seeds)
    def test_of_shifted_costs(self, seed):
        rng = np.random.default_rng(seed)
        stack, shift = 1e3 + rng.random((3, N, M)), 1e3 + rng.random(3)
        scale, alpha = np.array([1.0, 0.1, 7.0]), rng.dirichlet(np.ones(3))
        costs = Stack(stack).rescaled(scale, shift)
        factors = alpha.astype(np.longdouble) * scale
        exact = np.einsum("l,lij->ij", factors, stack - shift[:, None, None].astype(np.longdouble))
        assert (np.abs(costs.mix(alpha) - exact) <= allowance(costs, alpha)).all()


def exact_costs(X: np.ndarray, Y: np.ndarray) -> list[np.ndarray]:
    """Squared distances of every group as fractions."""
    parts = []
    for group in RAGGED:
        costs = np.empty((len(X), len(Y)), dtype=object)
        for i, j in np.ndindex(costs.shape):
            gaps = (Fraction(X[i, k]) - Fraction(Y[j, k]) for k in group)
            costs[i, j] = sum((gap**2 for gap in gaps), Fraction(0))
        parts.append(costs)
    return parts


@pytest.mark.parametrize("name", ["points", "centred", "differences", "stack", "negative"])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_errors_are_bounded_in_fractions(name: str, offset: float):
    """Entries may be off, but by no more than is said; with an offset squares lose digits."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(N, D)) + offset, rng.normal(size=(M, D)) + offset
    truth, groups = exact_costs(x, y), parse(RAGGED)
    stack = np.array([costs.astype(float) for costs in truth])
    member = np.array([[float(k in group) for k in range(D)] for group in RAGGED])
    costs: Costs
    if name == "points":
        costs = Points.of(x, y, groups)
    elif name == "centred":
        costs = Points((x - x.mean(axis=0))[None], (y - x.mean(axis=0))[None], member)
    elif name == "differences":
        costs = difference_stack(x[None], y[None], groups.flat, groups.offsets)
    else:
        shift = 0.0 if name == "stack" else 2.0
        costs = Stack(stack[None] - shift, relative=np.finfo(float).eps)
        truth = [np.vectorize(Fraction)(cost) for cost in stack - shift]
    batch = (1,) if len(costs.shape) == 4 else ()
    alpha = rng.dirichlet(np.ones(2))
    mixed = sum(Fraction(w) * cost for w, cost in zip(alpha, truth, strict=True))
    found = costs.mix(alpha.reshape(*batch, 2))
    off = costs.rounding(alpha.reshape(*batch, 2))
    bound = off.relative[..., None, None] * np.abs(found)
    bound = bound + off.rows[..., :, None] + off.cols[..., None, :]
    assert (np.abs(found - mixed).astype(float) <= bound).all()
    assert bound.max() <= 1e-12
    plan = rng.random((N, M))
    plan /= plan.sum()
    given = plan.reshape(*batch, N, M)
    phi = costs.inner(given)
    sums = [(np.vectorize(Fraction)(plan) * cost).sum() for cost in truth]
    doubt = costs.doubt(phi, given.sum(axis=-1), given.sum(axis=-2))
    assert (np.abs(phi - np.array(sums)).astype(float) <= doubt).all()
    assert doubt.max() <= 1e-12


def test_small_differences_keep_their_digits():
    """Points next to each other, far from the others: expanded squares would be noise."""
    x = np.array([[1e8, 1.0], [-1e8, 2.0]])
    y = x + np.array([1.0, 0.5])
    costs = difference_stack(x, y, np.arange(2), np.arange(3))
    assert costs.C[:, 0, 0].tolist() == [1.0, 0.25]
    assert float(costs.rounding(np.array([0.5, 0.5])).rows.max()) == 0.0


def test_members_of_a_batch():
    rng = np.random.default_rng(0)
    X, Y, groups = rng.normal(size=(N, D)), rng.normal(size=(M, D)), parse(OVERLAPPING)
    stack = stacked(X, Y, OVERLAPPING, "sqeuclidean")
    alpha = np.full((2, 5), 0.2)
    for costs in (
        Points(np.stack([X, 2 * X]), np.stack([Y, 2 * Y]), MEMBER),
        points_costs(np.stack([X, 2 * X]), np.stack([Y, 2 * Y]), groups),
        Stack(np.stack([stack, 4.0 * stack])),
        Batch((Distances(X, Y, groups, "sqeuclidean"), Points.of(2 * X, 2 * Y, groups))),
    ):
        both = costs.mix(alpha)
        assert both[1] == close(4.0 * both[0])
        assert costs.members(np.array([1])).mix(alpha[:1])[0] == close(both[1])
        assert costs.member(1).mix(alpha[0]) == close(both[1])
        assert costs.stack() == close(np.stack([stack, 4.0 * stack]))


@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_points_of_tensors_are_those_of_the_host(metric: str, dtype: Any):
    rng = np.random.default_rng(0)
    x, y = (torch.tensor(rng.normal(size=(k, D)) + 100.0, dtype=dtype) for k in (N, M))
    groups = parse(OVERLAPPING)
    found = points_costs(x, y, groups, metric)
    left, right = (part.double().numpy() for part in (x, y))
    expected = Points.of(left, right, groups, metric)
    assert found.given == dtype
    assert found.home.dtype == torch.float64
    assert to_numpy(found.stack()) == pytest.approx(expected.stack(), rel=1e-8, abs=1e-13)
    moved = found.to(expected.home)
    assert moved.stack() == pytest.approx(expected.stack(), rel=1e-8, abs=1e-13)


def test_a_point_without_direction_is_named():
    points = np.random.default_rng(0).normal(size=(6, 4))
    points[4, [1, 2, 3]] = 0.0
    groups = Groups.parse({"g0": [0, 1], "g1": [1, 2, 3]}, 4)
    with pytest.raises(
        frot.InputError, match=r"X row 4 is all zeros in group 'g1'.*drop such points"
    ):
        points_costs(torch.tensor(points), torch.tensor(points[:3]), groups, "cosine")


def test_members_may_stand_in_for_each_other_in_their_own_way():
    points = np.random.default_rng(0).normal(size=(2, 3, 4))
    places = np.array([[0, 0, 2], [1, 1, 1]])
    for library in (np, torch):
        given = library.asarray(points)
        found = take_members(Home.of(given), given, places)
        for member in range(2):
            assert np.asarray(found[member]) == pytest.approx(points[member][places[member]])

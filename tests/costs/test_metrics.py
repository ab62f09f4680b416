"""A metric is one class and one line in the registry, and then all doors take it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from typer.testing import CliRunner

import frot
from frot import Groups, InputError
from frot.cli.app import app
from frot.costs import METRICS, Columns, FactoredMetric, namespace
from frot.costs.build import factored_metric
from frot.costs.metrics import map_points
from frot.torch import FRWDLoss
from tests.libraries import LIBRARIES, Library

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.1, 3.0, size=(9, 5)), RNG.uniform(0.1, 3.0, size=(8, 5))
LISTS = [[0, 1, 2], [2, 3, 4], [4, 1]]
A, B = RNG.dirichlet(np.ones(9)), RNG.dirichlet(np.ones(8))


class Hellinger(FactoredMetric):
    """Of distributions over the features of a group: 1 - sum of the roots of products."""

    scale = 0.5
    complaint = "has negative numbers or no positive one"

    def embed(self, points: Any, columns: Columns) -> Any:
        return namespace(points).sqrt(points / columns.spread(columns.sum(points)))

    def outside(self, points: Any, columns: Columns) -> Any:
        xp = namespace(points)
        return xp.logical_or(
            columns.sum(abs(points) - points) > 0.0, columns.sum(abs(points)) == 0.0
        )

    def units(self, size: int) -> float:
        return 0.25 * size + 2.0


class Circular(FactoredMetric):
    """Of angles: the sum of 1 - cos(x - y). Every feature becomes two columns."""

    scale = 0.5

    def embed(self, points: Any, columns: Columns) -> Any:
        xp = namespace(points)
        return xp.concat([xp.cos(points), xp.sin(points)], axis=points.ndim - 1)

    def units(self, size: int) -> float:
        return 4.0


class Doubled(FactoredMetric):
    """Twice the squared distance: points as they are."""

    maps, scale = False, 2.0


def hellinger(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = (points / points.sum(axis=1, keepdims=True) for points in (x, y))
    return 1.0 - np.sqrt(x) @ np.sqrt(y).T


def circular(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (1.0 - np.cos(x[:, None] - y)).sum(axis=2)


def doubled(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 2.0 * cdist(x, y, "sqeuclidean")


NEW = {
    "hellinger": (Hellinger(), hellinger),
    "circular": (Circular(), circular),
    "doubled": (Doubled(), doubled),
}


def test_every_metric_of_the_registry_has_its_formula_here():
    assert {*METRICS} <= {*NEW, "sqeuclidean", "cosine"}


@pytest.fixture(params=NEW)
def metric(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a metric that is in the registry for the time of the test."""
    monkeypatch.setitem(METRICS, request.param, NEW[request.param][0])
    return request.param


def stack_of(name: str, x: np.ndarray = X, y: np.ndarray = Y, p: float = 1.0) -> np.ndarray:
    formula = NEW[name][1]
    return np.stack([formula(x[:, g], y[:, g]) ** p for g in LISTS])


class TestEveryDoor:
    @pytest.mark.parametrize("solver", ["exact", "frank_wolfe", "linear_program"])
    def test_solve_on_the_host(self, metric: str, solver: str):
        options: dict[str, Any] = {"a": A, "b": B, "eta": 0.05 if solver == "frank_wolfe" else 0.0}
        expected = frot.solve_costs(stack_of(metric), solver=solver, **options)
        found = frot.solve(X, Y, LISTS, metric=metric, solver=solver, **options)
        assert found.value == pytest.approx(expected.value, rel=1e-6)
        assert found.phi == pytest.approx(expected.phi, rel=1e-2)

    def test_the_interval_holds_the_truth(self, metric: str):
        found = frot.solve(X, Y, LISTS, metric=metric, a=A, b=B)
        truth = frot.solve_costs(stack_of(metric), a=A, b=B, solver="linear_program").value
        assert found.lower <= truth * (1 + 1e-9)
        assert found.upper >= truth * (1 - 1e-9)
        assert found.gap <= 1e-9

    @pytest.mark.parametrize("p", [0.5, 2.0])
    def test_powers(self, metric: str, p: float):
        found = frot.solve(X, Y, LISTS, metric=metric, p=p, a=A, b=B)
        expected = frot.solve_costs(stack_of(metric, p=p), a=A, b=B)
        assert found.value == pytest.approx(expected.value, rel=1e-9)

    def test_many_points(self, metric: str):
        x, y = RNG.uniform(0.1, 3.0, size=(2, 120, 5))
        found = frot.solve(x, y, LISTS, metric=metric, tol=1e-6)
        expected = frot.solve_costs(stack_of(metric, x, y), tol=1e-6)
        assert found.value == pytest.approx(expected.value, rel=3e-6)

    @pytest.mark.parametrize("library", LIBRARIES, ids=str)
    def test_solve_in_every_library(self, metric: str, library: Library):
        options: dict[str, Any] = {"eta": 0.1, "eps": 0.05, "tol": 1e-6}
        found = frot.solve(library(X), library(Y), LISTS, metric=metric, **options)
        x, y = (library.host(library(points)).astype(float) for points in (X, Y))
        expected = frot.solve_costs(stack_of(metric, x, y), **options)
        assert float(found.value) == pytest.approx(expected.value, rel=1e-5)
        assert float(found.lower) <= expected.upper + 1e-12
        assert float(found.upper) >= expected.lower - 1e-12

    @pytest.mark.parametrize("budget", [1e9, 1e4])
    def test_solve_batch(self, metric: str, budget: float):
        xs, ys = RNG.uniform(0.1, 3.0, size=(2, 3, 9, 5))
        found = frot.solve_batch(
            xs, ys, LISTS, metric=metric, eta=0.1, eps=0.1, memory_budget=budget
        )
        for at in range(3):
            one = frot.solve_costs(stack_of(metric, xs[at], ys[at]), eta=0.1, eps=0.1, tol=1e-6)
            assert found[at].value == pytest.approx(one.value, rel=1e-3)
            assert found[at].lower <= one.upper
            assert found[at].upper >= one.lower

    def test_the_loss_and_its_gradient(self, metric: str):
        loss = FRWDLoss(LISTS, 0.1, 0.1, metric=metric, gradient_tol=1e-6)
        x, y = torch.tensor(X, requires_grad=True), torch.tensor(Y)
        value: Any = loss(x, y)
        expected = frot.solve_costs(stack_of(metric), eta=0.1, eps=0.1, tol=1e-8)
        assert value.item() == pytest.approx(expected.value, rel=1e-5)
        value.backward()
        way, h = RNG.normal(size=X.shape), 1e-5
        ends = [
            frot.solve_costs(stack_of(metric, X + t * way), eta=0.1, eps=0.1, tol=1e-10).value
            for t in (h, -h)
        ]
        assert x.grad is not None
        slope = float((x.grad * torch.tensor(way)).sum())
        assert slope == pytest.approx((ends[0] - ends[1]) / (2.0 * h), rel=1e-3)

    def test_pairwise(self, metric: str):
        clouds = [X, Y, X[:4] + 0.1]
        found = frot.pairwise(clouds, LISTS, metric=metric, p=1.0, eps=0.1, tol=1e-8)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            stack = stack_of(metric, clouds[i], clouds[j])
            one = frot.solve_costs(stack, eps=0.1, tol=1e-8)
            assert found[i, j] == pytest.approx(one.value, rel=1e-7)

    def test_max_min(self, metric: str):
        found = frot.max_min(X, Y, LISTS, metric=metric)
        alone = [frot.solve_costs(cost[None]).value for cost in stack_of(metric)]
        assert found.value == pytest.approx(max(alone), rel=1e-9)

    def test_the_command_line(self, metric: str, tmp_path: Any):
        for name, points in (("a.csv", X), ("b.csv", Y)):
            np.savetxt(tmp_path / name, points, delimiter=",", header="a,b,c,d,e", comments="")
        files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
        done = CliRunner().invoke(app, ["solve", *files, "--groups", "all", "--metric", metric])
        assert done.exit_code == 0, done.output
        printed = float(re.findall(r"value +(\S+)", done.stdout)[0])
        expected = frot.solve_costs(NEW[metric][1](X, Y)[None])
        assert printed == pytest.approx(expected.value, rel=1e-6)

    def test_names_nobody_knows_are_refused_with_those_there_are(self, metric: str):
        with pytest.raises(InputError, match=f"did you mean '{metric}'"):
            frot.solve(X, Y, metric=metric + "x")
        with pytest.raises(InputError, match=metric):
            frot.solve_batch(X[None], Y[None], metric="nothing")


class TestOutsideTheDomain:
    """Points that have no image are refused by name, unless they weigh nothing."""

    BAD = np.vstack([X, [[1.0, -1.0, 1.0, 1.0, 1.0]]])

    @pytest.fixture(autouse=True)
    def _registered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(METRICS, "hellinger", Hellinger())

    @pytest.mark.parametrize("library", LIBRARIES, ids=str)
    def test_refused(self, library: Library):
        with pytest.raises(InputError, match=r"X row 9 has negative numbers .* in group 'g0'"):
            frot.solve(library(self.BAD), library(Y), LISTS, metric="hellinger", eps=0.1)

    def test_refused_in_a_batch_and_in_a_loss(self):
        stack = np.stack([self.BAD, self.BAD])
        other = np.stack([Y, Y])
        with pytest.raises(InputError, match=r"X\[0\] row 9 has negative numbers"):
            frot.solve_batch(stack, other, LISTS, metric="hellinger")
        loss = FRWDLoss(LISTS, metric="hellinger")
        with pytest.raises(InputError, match=r"x row 9 has negative numbers"):
            loss(torch.tensor(self.BAD), torch.tensor(Y))

    @pytest.mark.parametrize("library", LIBRARIES, ids=str)
    @pytest.mark.parametrize("eps", [0.0, 0.1])
    def test_points_without_weight_need_no_image(self, library: Library, eps: float):
        weights = np.append(np.full(9, 1 / 9), 0.0)
        options: dict[str, Any] = {"metric": "hellinger", "eps": eps, "tol": 1e-6}
        found = frot.solve(library(self.BAD), library(Y), LISTS, a=library(weights), **options)
        without = frot.solve(library(X), library(Y), LISTS, **options)
        assert float(found.value) == pytest.approx(float(without.value), rel=1e-5)


class TestCosine:
    @pytest.mark.parametrize("eps", [0.0, 0.1])
    def test_a_point_without_weight_needs_no_direction(self, eps: float):
        bad = np.vstack([X, np.zeros(5)])
        weights = np.append(np.full(9, 1 / 9), 0.0)
        found = frot.solve(bad, Y, LISTS, a=weights, metric="cosine", eps=eps)
        assert found.value == pytest.approx(
            frot.solve(X, Y, LISTS, metric="cosine", eps=eps).value, rel=1e-5
        )

    @pytest.mark.parametrize("library", LIBRARIES, ids=str)
    @pytest.mark.parametrize("factor", [1e150, 1e-150])
    def test_lengths_do_not_matter(self, library: Library, factor: float):
        if library.precision == "float32":
            factor = factor**0.2
        groups = Groups.parse(LISTS, 5)
        plain, scaled = (
            map_points("cosine", library(f * X), library(Y), groups).X for f in (1.0, factor)
        )
        found = library.host(scaled)
        assert found == pytest.approx(library.host(plain), rel=10 * library.close)
        assert (np.add.reduceat(found**2, groups.offsets[:-1], axis=1)) == pytest.approx(
            np.ones((9, 3)), rel=library.close
        )

    def test_units_cover_what_is_lost(self):
        """Against directions in extended precision."""
        groups = Groups.from_sizes([400, 2])
        points = RNG.normal(size=(20, 402))
        mapped = map_points("cosine", points, points, groups)
        wide = points.astype(np.longdouble)
        for part in (slice(0, 400), slice(400, 402)):
            exact = wide[:, part] / np.sqrt((wide[:, part] ** 2).sum(axis=1, keepdims=True))
            off = np.abs(mapped.X[:, part] - exact) / np.abs(exact)
            assert off.max() <= mapped.error * np.finfo(float).eps


def test_which_metrics_factor():
    assert factored_metric("sqeuclidean") is METRICS["sqeuclidean"]
    assert factored_metric("euclidean", 2.0) is METRICS["sqeuclidean"]
    assert factored_metric("cosine") is METRICS["cosine"]
    for metric, p in (("euclidean", 1.0), ("cosine", 2.0), ("sqeuclidean", 2.0), (max, 1.0)):
        assert factored_metric(metric, p) is None


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_columns_sum_and_spread(library: Library):
    columns = Columns(Groups.parse(LISTS, 5))
    values = RNG.normal(size=(2, 3, 8))
    expected = np.stack([values[..., :3], values[..., 3:6]], axis=2).sum(axis=3)
    sums = library.host(columns.sum(library(values)))
    assert sums[..., :2] == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert sums[..., 2] == pytest.approx(values[..., 6:].sum(axis=2), rel=1e-5, abs=1e-5)
    spread = library.host(columns.spread(library(np.array([[1.0, 2.0, 3.0]]))))
    assert spread.tolist() == [[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0]]
    member = columns.membership(2, 0.5).toarray()
    assert member[1].tolist() == 2 * [0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.0, 0.0]

"""Matrices of distances: what they hold, what is refused, and that no work is lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import frot
from frot import InputError
from frot.api import pair_tiles
from frot.api.clouds import check_clouds
from frot.api.pair_tiles import Call, Tile, batches_of, cut_tiles, members_that_fit, pairs_of
from frot.costs import MEMORY_BUDGET
from frot.groups.groups import Groups
from tests.reference import LIGHT, quiet
from tests.stores import finished
from tests.strategies import group_lists, point_clouds

RNG = np.random.default_rng(0)
CLOUDS = [RNG.normal(size=(n, 4)) + shift for n, shift in ((6, 0), (5, 0.5), (8, 1), (1, 0))]
GROUPS = [[0, 1], [1, 2, 3]]
few = settings(max_examples=30)


def call_with(memory_budget: float) -> Call:
    """Squared Euclidean costs, as far as a batch's memory goes."""
    return Call(Groups.parse(GROUPS, 4), {"metric": "euclidean", "p": 2.0}, memory_budget)


@pytest.fixture
def solved(monkeypatch) -> list[tuple[str, str]]:
    """The pairs that are solved in this process from here on."""
    pairs: list[tuple[str, str]] = []
    solve_pair = pair_tiles.solve_pair

    def counting(one: Any, other: Any, call: Any) -> Any:
        found = solve_pair(one, other, call)
        pairs.append((one.name, other.name))
        return found

    monkeypatch.setattr(pair_tiles, "solve_pair", counting)
    return pairs


@pytest.fixture
def small_tiles(monkeypatch) -> None:
    """A pair a tile, so that there is much to interrupt."""
    monkeypatch.setattr(pair_tiles, "LEAST_SECONDS", 0.0)


class TestValues:
    @pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
    @pytest.mark.parametrize("metric", ["euclidean", "cityblock", "chebyshev"])
    def test_they_are_those_of_distance(self, p, metric):
        D = frot.pairwise(CLOUDS, GROUPS, p=p, metric=metric)
        for i, X in enumerate(CLOUDS):
            for j, Y in enumerate(CLOUDS):
                expected = frot.distance(X, Y, GROUPS, p=p, metric=metric)
                assert D[i, j] == pytest.approx(expected, rel=1e-7, abs=1e-9)

    def test_upper_pairs_are_those_of_distance_to_the_last_digit(self):
        D = frot.pairwise(CLOUDS, GROUPS)
        assert D[0, 2] == pytest.approx(frot.distance(CLOUDS[0], CLOUDS[2], GROUPS), rel=1e-15)

    @few
    @given(point_clouds(clouds=4), st.sampled_from([1.0, 2.0]), st.data())
    def test_it_is_a_metric(self, clouds, p, data):
        groups = data.draw(group_lists(clouds[0].shape[1], covering=True))
        D = quiet(frot.pairwise, clouds, groups, p=p)
        assert np.array_equal(D, D.T)
        assert (D.diagonal() == 0.0).all()
        assert (D >= 0.0).all()
        most = (D[:, :, None] + D[None, :, :]).min(axis=1)
        assert (most * (1 + 1e-6) + 1e-6 >= D).all()

    @few
    @given(point_clouds(clouds=4), st.permutations(range(4)))
    def test_the_order_of_the_clouds_is_the_order_of_the_matrix(self, clouds, order):
        D = quiet(frot.pairwise, clouds)
        shuffled = quiet(frot.pairwise, [clouds[k] for k in order])
        assert shuffled == pytest.approx(D[np.ix_(order, order)], rel=1e-6, abs=1e-8)

    @few
    @given(point_clouds(clouds=2))
    def test_equal_clouds_are_at_zero(self, clouds):
        X, Y = clouds
        D = quiet(frot.pairwise, [X, Y, X, Y])
        assert D[0, 2] == D[1, 3] == 0.0
        assert D[0] == pytest.approx(D[2], rel=1e-7, abs=1e-9)

    def test_a_repeated_cloud_with_its_rows_shuffled(self):
        shuffled = CLOUDS[2][::-1]
        D = quiet(frot.pairwise, [CLOUDS[0], CLOUDS[2], shuffled], GROUPS)
        assert D[1, 2] == pytest.approx(0.0, abs=1e-7)
        assert D[0, 1] == pytest.approx(D[0, 2], rel=1e-7)

    def test_points_of_one_feature(self):
        D = frot.pairwise([[[0.0]], [[3.0]], [[1.0], [2.0]]], p=1)
        assert pytest.approx(np.array([[0, 3, 1.5], [3, 0, 1.5], [1.5, 1.5, 0]])) == D

    def test_one_cloud(self):
        assert frot.pairwise(CLOUDS[:1]).tolist() == [[0.0]]

    def test_a_rectangle(self):
        D = frot.pairwise(CLOUDS, GROUPS)
        part = frot.pairwise(CLOUDS[:3], GROUPS, others=CLOUDS[1:])
        assert part.shape == (3, 3)
        assert part == pytest.approx(D[:3, 1:], rel=1e-7, abs=1e-9)

    def test_frames_with_columns(self):
        frames = [pd.DataFrame(x, columns=pd.Index(["a_1", "a_2", "b_1", "b_2"])) for x in CLOUDS]
        found = frot.pairwise(frames, "prefix", others=CLOUDS[:1])
        assert found == pytest.approx(frot.pairwise(CLOUDS, [2, 2])[:, :1], rel=1e-9)

    def test_nothing_given_is_changed(self):
        before = [x.copy() for x in CLOUDS]
        frot.pairwise(CLOUDS, GROUPS)
        assert all(np.array_equal(x, y) for x, y in zip(CLOUDS, before, strict=True))


WEIGHTS = [RNG.dirichlet(np.ones(len(x))) for x in CLOUDS]


class TestWeights:
    def test_they_are_those_of_distance(self):
        D = frot.pairwise(CLOUDS, GROUPS, weights=WEIGHTS)
        expected = frot.distance(CLOUDS[0], CLOUDS[2], GROUPS, a=WEIGHTS[0], b=WEIGHTS[2])
        assert D[0, 2] == D[2, 0] == pytest.approx(expected, rel=1e-15)

    def test_none_is_uniform(self):
        some = [None, *WEIGHTS[1:]]
        uniform = [np.full(6, 1 / 6), *WEIGHTS[1:]]
        one = frot.pairwise(CLOUDS, GROUPS, weights=some)
        assert one == pytest.approx(frot.pairwise(CLOUDS, GROUPS, weights=uniform), rel=1e-9)

    def test_twice_the_point_is_twice_the_weight(self):
        X = CLOUDS[1]
        doubled = np.vstack([X, X[:1]])
        weight = [2 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6]
        D = frot.pairwise([doubled, CLOUDS[0]], GROUPS)
        weighted = frot.pairwise([X, CLOUDS[0]], GROUPS, weights=[weight, None])
        assert pytest.approx(weighted, rel=1e-7) == D

    def test_of_a_rectangle(self):
        D = frot.pairwise(CLOUDS, GROUPS, weights=WEIGHTS)
        part = frot.pairwise(
            CLOUDS[:2],
            GROUPS,
            others=CLOUDS[2:],
            weights=WEIGHTS[:2],
            other_weights=WEIGHTS[2:],
        )
        assert part == pytest.approx(D[:2, 2:], rel=1e-9)

    def test_normalised(self):
        heavy = [3.0 * w for w in WEIGHTS]
        D = frot.pairwise(CLOUDS, GROUPS, weights=heavy, normalise_weights=True)
        assert pytest.approx(frot.pairwise(CLOUDS, GROUPS, weights=WEIGHTS), rel=1e-9) == D

    def test_sums_just_within_bounds_on_either_side(self):
        weights = [np.full(6, (1 - 9e-6) / 6), np.full(5, (1 + 9e-6) / 5)]
        D = frot.pairwise(CLOUDS[:2], weights=weights)
        assert pytest.approx(frot.pairwise(CLOUDS[:2]), rel=1e-9) == D


class TestValuesThatAreNoDistances:
    def test_with_eta_they_are_those_of_solve_and_so_is_the_diagonal(self):
        D = frot.pairwise(CLOUDS[:3], GROUPS, eta=0.3)
        assert np.array_equal(D, D.T)
        assert (D.diagonal() > 0.0).all()
        for i in range(3):
            for j in range(i, 3):
                options = {"metric": "euclidean", "p": 2.0, "eta": 0.3}
                there = frot.solve(CLOUDS[i], CLOUDS[j], GROUPS, **options)
                assert D[i, j] == pytest.approx(there.value**0.5, rel=1e-12)

    def test_the_diagonal_with_entropy_on_the_weights_only(self):
        D = frot.pairwise(CLOUDS[:2], GROUPS, eta=0.3)
        assert D[0, 0] ** 2 == pytest.approx(0.3 * np.log(2), rel=1e-6)

    @pytest.mark.parametrize("name", ["eta", "eps", "tau"])
    def test_shares_of_each_pairs_own_mean_cost_are_refused(self, name, solved):
        options: dict[str, Any] = {name: frot.relative(0.1)}
        with pytest.raises(frot.InputError, match=f"{name}: .*each pair's own mean cost"):
            frot.pairwise(CLOUDS, GROUPS, **options)
        assert solved == []

    def test_metrics_that_are_not_zero_between_equal_points(self):
        def off(u: np.ndarray, v: np.ndarray) -> float:
            return 1.0 + float(np.abs(u - v).sum())

        D = frot.pairwise(CLOUDS[:2], "all", metric=off, p=1)
        assert D.diagonal() == pytest.approx(1.0)
        bits = [np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]])]
        D = frot.pairwise(bits, "all", metric="russellrao", p=1, tau=10.0, penalty="tv")
        assert D[0, 0] == pytest.approx(0.5)

    def test_what_is_no_metric_has_values_and_groups_may_leave_features_out(self):
        D = frot.pairwise(CLOUDS[:2], [[0], [2]], metric="sqeuclidean", p=1, eta=0.1)
        value = frot.solve(CLOUDS[0], CLOUDS[1], [[0], [2]], eta=0.1).value
        assert D[0, 1] == pytest.approx(value, rel=1e-12)


METRICS_WITH_EPS = [
    ("euclidean", 2.0),
    ("cityblock", 1.0),
    ("sqeuclidean", 1.0),
    ("chebyshev", 3.0),
]


class TestBatches:
    @settings(max_examples=40, deadline=None)
    @given(
        point_clouds(clouds=4, most_points=9),
        st.sampled_from(METRICS_WITH_EPS),
        st.sampled_from([0.02, 0.5, 20.0]),
        st.sampled_from([0.0, 0.3]),
        st.sampled_from([None, frot.CappedSimplex(2)]),
        st.sampled_from([None, 0.7, (0.7, np.inf)]),
        st.data(),
    )
    def test_values_lie_in_the_intervals_of_solve(self, clouds, metric, eps, eta, k, tau, data):
        """Sizes differ, weights may be zero: members of a batch are padded, and stay proven."""
        groups = data.draw(group_lists(clouds[0].shape[1]))
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        weights = [rng.dirichlet(np.ones(len(x))) * (rng.random(len(x)) < 0.8) for x in clouds]
        weights = [None if w.sum() == 0.0 else w / w.sum() for w in weights]
        k = k if k is None or len(groups) >= 2 else None
        options = {"metric": metric[0], "p": metric[1], "eps": eps, "eta": eta, "tau": tau}
        options |= {"adversary": k, "tol": 1e-6}
        D = quiet(
            frot.pairwise, clouds[:2], groups, others=clouds[2:],
            weights=weights[:2], other_weights=weights[2:], **options,
        )  # fmt: skip
        for i, j in ((0, 2), (0, 3), (1, 2), (1, 3)):
            ab = {"a": weights[i], "b": weights[j]}
            one = quiet(frot.solve, clouds[i], clouds[j], groups, **ab, **options)
            least, value = max(one.lower, 0.0), D[i, j - 2] ** metric[1]
            off = 1e-6 * max(one.upper, one.mean_cost, eps) + (one.upper - one.lower)
            assert least - off <= value <= max(one.upper, 0.0) + off

    def test_they_are_proven_as_those_of_solve_batch(self):
        clouds = [RNG.normal(size=(7, 4)) for _ in range(4)]
        D = frot.pairwise(clouds[:2], GROUPS, others=clouds[2:], eps=0.5, p=2, tol=1e-7)
        batch = frot.solve_batch(
            [clouds[0], clouds[0], clouds[1], clouds[1]],
            [clouds[2], clouds[3]] * 2, GROUPS, eps=0.5, tol=1e-7,
        )  # fmt: skip
        assert D.ravel() ** 2 == pytest.approx(batch.value, rel=1e-6)

    def test_a_batch_is_as_large_as_the_memory_budget(self, monkeypatch):
        sizes, run_batch = [], pair_tiles.run_batch

        def counting(geometries: Any, *args: Any, **options: Any) -> Any:
            sizes.append(geometries[0].shape[0])
            return run_batch(geometries, *args, **options)

        monkeypatch.setattr(pair_tiles, "run_batch", counting)
        clouds = [RNG.normal(size=(8, 4)) for _ in range(4)]
        whole = frot.pairwise(clouds, GROUPS, eps=0.5)
        assert sizes == [10]
        sizes.clear()
        pair = [(cloud, cloud) for cloud in check_clouds(clouds, None, False).members[:1]]
        room = 3.5 * MEMORY_BUDGET / members_that_fit(pair, call_with(MEMORY_BUDGET))
        parts = frot.pairwise(clouds, GROUPS, eps=0.5, memory_budget=room)
        assert sizes == [3, 3, 3, 1]
        assert parts == pytest.approx(whole, rel=1e-4)
        sizes.clear()
        alone = frot.pairwise(clouds, GROUPS, eps=0.5, memory_budget=0.0)
        assert sizes == []
        assert alone == pytest.approx(whole, rel=1e-4)

    def test_sides_of_like_sizes_go_together(self):
        clouds = [np.zeros((n, 2)) for n in (5, 8, 9, 16)]
        members = check_clouds(clouds, None, normalise=False).members
        pairs = [(one, other) for one in members[:2] for other in members]
        assert batches_of(pairs) == [[0, 1, 4, 5], [2, 3, 6, 7]]

    def test_a_point_without_direction_is_named_by_its_cloud(self):
        clouds = [np.ones((3, 2)), np.vstack([np.ones((2, 2)), np.zeros((1, 2))])]
        with pytest.raises(frot.InputError, match=r"clouds\[1\] row 2 is all zeros"):
            frot.pairwise(clouds, "all", metric="cosine", p=1, eps=0.1)

    @pytest.mark.parametrize("eps", [0.5, 0.0])
    def test_costs_outside_the_contract_name_the_pair(self, eps):
        clouds = [CLOUDS[0], CLOUDS[1], 1e120 * CLOUDS[2]]
        with pytest.raises(
            frot.InputError, match=r"clouds\[[01]\], clouds\[2\]: costs: are .* rescale"
        ):
            frot.pairwise(clouds, GROUPS, eps=eps)

    def test_one_warning_for_members_that_fall_short(self):
        with pytest.warns(
            frot.ConvergenceWarning, match=r"pairwise: \d+ of 10 pairs ended"
        ) as seen:
            frot.pairwise(CLOUDS, GROUPS, eps=0.01, max_iter=1, tol=1e-12)
        assert len(seen) == 1


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "NaN": ({"clouds": [*CLOUDS[:3], [[0, 0, np.nan, 0]]]}, r"clouds\[3\]: 1 of 4 entries are NaN"),
    "a width": ({"clouds": [*CLOUDS, [[0.0]]]}, r"clouds\[4\]: has 1 features and clouds\[0\]"),
    "no points": ({"clouds": [CLOUDS[0], np.zeros((0, 4))]}, r"clouds\[1\]: has no points"),
    "others": ({"others": [CLOUDS[0], [[np.inf] * 4]]}, r"others\[1\]: 4 of 4 entries are NaN or"),
    "others' width": ({"others": [[[0.0]]]}, r"others\[0\]: has 1 features and clouds\[0\] has 4"),
    "weights": ({"weights": [None, None, [1.0], None]}, r"weights\[2\]: has shape \(1,\)"),
    "a sum": ({"weights": [None] * 3 + [[2.0]]}, r"weights\[3\]: the weights sum to 2"),
    "other weights": (
        {"others": CLOUDS[:1], "other_weights": [[0.5] * 5]},
        r"other_weights\[0\]: has shape \(5,\)",
    ),
    "weights of no others": ({"other_weights": [None]}, "other_weights: are of no clouds"),
    "p": ({"p": 0.5}, r"p: must be finite and >= 1, got 0.5"),
    "metric": ({"metric": "euclidian"}, "metric: .* did you mean 'euclidean'"),
    "groups": ({"groups": [[9]]}, "9"),
    "clouds as groups": ({"groups": CLOUDS}, "groups: are clouds; .* by name: others="),
    "a batch as groups": ({"groups": np.zeros((2, 5, 4))}, "groups: are clouds"),
    "eta": ({"eta": -1.0}, "eta: must be finite and >= 0"),
    "eps": ({"eps": -1.0}, "eps: must be finite and >= 0"),
    "prior": ({"prior": [1.0]}, "prior: has shape"),
    "normalise": ({"normalise": "max"}, "normalise: 'max' is none of"),
    "solver": ({"solver": "simplex"}, "solver: 'simplex' is none of"),
    "a solver without eps": ({"solver": "exact", "eps": 0.1}, "solver: Exact solves eps = 0"),
    "tol": ({"tol": -1.0}, "tol: must be finite and >= 0"),
    "max_iter": ({"max_iter": 0}, "max_iter: must be a whole number >= 1"),
    "time_limit": ({"time_limit": 0.0}, "time_limit: must be finite and > 0"),
    "memory_budget": ({"memory_budget": -1}, "memory_budget: must be finite"),
    "n_jobs": ({"n_jobs": 0}, "n_jobs: 0 is not a number of workers"),
    "checkpoint": (
        {"checkpoint": "no/such/folder/work"},
        "checkpoint: no/such/folder does not",
    ),
}


@pytest.mark.parametrize("mistake", BAD)
def test_mistakes_are_named_before_any_work(mistake, solved):
    options, message = BAD[mistake]
    with pytest.raises(frot.InputError, match=message):
        frot.pairwise(**{"clouds": CLOUDS, **options})
    assert solved == []


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_what_fails_in_a_worker_names_the_pair(n_jobs):
    clouds = [CLOUDS[0], CLOUDS[1], 1e200 * CLOUDS[2]]
    with pytest.raises(frot.InputError, match=r"clouds\[[01]\], clouds\[2\]: costs: some are inf"):
        frot.pairwise(clouds, n_jobs=n_jobs)


class TestWarnings:
    @pytest.mark.parametrize(
        "backend", [{"n_jobs": 1}, {"backend": "threading", "n_jobs": 2}, {"n_jobs": 2}]
    )
    def test_one_for_all_pairs_wherever_they_were_solved(self, backend, small_tiles):
        with joblib.parallel_config(**backend), pytest.warns(frot.ConvergenceWarning) as seen:
            frot.pairwise(CLOUDS[:3], GROUPS, max_iter=1)
        assert len(seen) == 1
        found = re.fullmatch(
            r"pairwise: 3 of 3 pairs ended before their tolerance. The worst gap is (\S+), between "
            r"clouds\[(\d)\] and clouds\[(\d)\]; .*",
            str(seen[0].message),
        )
        assert found is not None
        assert seen[0].filename == __file__
        gap, i, j = float(found[1]), int(found[2]), int(found[3])
        pair = CLOUDS[i], CLOUDS[j]
        result = quiet(frot.solve, *pair, GROUPS, metric="euclidean", p=2.0, max_iter=1)
        assert gap == pytest.approx(result.gap, rel=0.1)

    def test_pairs_of_a_checkpoint_are_not_forgotten(self, tmp_path, solved):
        options = {"max_iter": 1, "checkpoint": tmp_path / "work"}
        for _ in range(2):
            with pytest.warns(frot.ConvergenceWarning, match="3 of 3 pairs"):
                frot.pairwise(CLOUDS[:3], GROUPS, **options)
        assert len(solved) == 3

    def test_none_where_all_is_well(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frot.pairwise(CLOUDS, GROUPS, n_jobs=2)


class TestWorkers:
    @pytest.mark.parametrize("options", [{}, {"eta": 0.2}, {"eps": 0.5}])
    @pytest.mark.usefixtures("small_tiles")
    def test_processes_give_the_same_matrix(self, options):
        expected = frot.pairwise(CLOUDS, GROUPS, n_jobs=1, **options)
        assert np.array_equal(frot.pairwise(CLOUDS, GROUPS, n_jobs=2, **options), expected)

    def test_threads_give_the_same_matrix(self, small_tiles):
        expected = frot.pairwise(CLOUDS, GROUPS, n_jobs=1)
        with joblib.parallel_config(backend="threading", n_jobs=2):
            assert np.array_equal(frot.pairwise(CLOUDS, GROUPS), expected)

    def test_threads_leave_the_filters_of_warnings_alone(self):
        before = list(warnings.filters)
        with joblib.parallel_config(backend="threading", n_jobs=4):
            frot.pairwise(CLOUDS[:3], "all")
        assert warnings.filters == before

    def test_clouds_so_large_that_joblib_maps_them_into_memory(self):
        clouds = [RNG.normal(size=(8, 20_000)) for _ in range(3)]
        assert clouds[0].nbytes > 1e6
        expected = frot.pairwise(clouds, "all", n_jobs=1)
        assert np.array_equal(frot.pairwise(clouds, "all", n_jobs=2), expected)

    def test_a_metric_of_the_users(self):
        D = frot.pairwise(CLOUDS[:3], GROUPS, metric=lambda u, v: abs(u - v).max(), n_jobs=2)
        expected = frot.pairwise(CLOUDS[:3], GROUPS, metric="chebyshev")
        assert pytest.approx(expected, rel=1e-9) == D

    def test_the_bar_goes_to_stderr(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TTY_INTERACTIVE", "1")
        frot.pairwise(CLOUDS, GROUPS, progress=True)
        out, err = capsys.readouterr()
        assert out == ""
        assert "pairs" in err
        assert "6/6" in err


class TestCheckpoint:
    def test_finished_pairs_are_not_solved_again(self, tmp_path, solved, small_tiles):
        path = tmp_path / "work"
        D = frot.pairwise(CLOUDS, GROUPS, checkpoint=path)
        assert len(solved) == 6
        assert np.array_equal(frot.pairwise(CLOUDS, GROUPS, checkpoint=path), D)
        assert len(solved) == 6

    def test_a_matrix_that_is_finished_starts_no_workers(self, tmp_path, monkeypatch):
        path = tmp_path / "work"
        D = frot.pairwise(CLOUDS, GROUPS, checkpoint=path)
        monkeypatch.setattr(joblib, "Parallel", None)
        assert np.array_equal(frot.pairwise(CLOUDS, GROUPS, checkpoint=path, n_jobs=2), D)

    def test_an_error_keeps_what_was_finished(self, tmp_path, solved, small_tiles, monkeypatch):
        path = tmp_path / "work"
        expected = frot.pairwise(CLOUDS, GROUPS)
        solved.clear()
        counting = pair_tiles.solve_pair

        def fail_later(one: Any, other: Any, call: Any) -> Any:
            if len(solved) == 4:
                raise MemoryError
            return counting(one, other, call)

        monkeypatch.setattr(pair_tiles, "solve_pair", fail_later)
        with pytest.raises(MemoryError):
            frot.pairwise(CLOUDS, GROUPS, checkpoint=path)
        monkeypatch.setattr(pair_tiles, "solve_pair", counting)
        assert np.array_equal(frot.pairwise(CLOUDS, GROUPS, checkpoint=path), expected)
        assert len(solved) == len(set(solved)) == 6

    @pytest.mark.parametrize(
        "change",
        [
            {"p": 1.0},
            {"metric": "cityblock"},
            {"metric": lambda u, v: 0.0},
            {"eta": 0.1},
            {"eps": 0.1},
            {"groups": [2, 2]},
            {"weights": [None, None, None, [1.0]]},
            {"clouds": [CLOUDS[0] + 1e-9, *CLOUDS[1:]]},
            {"clouds": CLOUDS[:3]},
            {"clouds": [CLOUDS[1], CLOUDS[0], *CLOUDS[2:]]},
            {"others": CLOUDS},
            {"tol": 1e-3},
            {"max_iter": 50},
            {"time_limit": 10.0},
            {"solver": frot.LinearProgram()},
            {"eta": 0.1, "prior": [0.5, 0.5]},
            {"eta": 0.1, "prior": [0.6, 0.4]},
        ],
        ids=lambda change: "-".join(change),
    )
    def test_of_other_data_or_options_is_refused(self, tmp_path, solved, change):
        path = tmp_path / "work"
        call = {"clouds": CLOUDS, "groups": GROUPS}
        if "prior" in change:
            # Otherwise it would be the other eta that is refused.
            call |= {"eta": 0.1, "prior": [0.3, 0.7]}
        frot.pairwise(**call, checkpoint=path)
        solved.clear()
        content = path.read_bytes()
        with pytest.raises(frot.InputError, match=r"checkpoint: .* is of other data or options"):
            frot.pairwise(**{**call, **change}, checkpoint=path)
        assert solved == []
        assert path.read_bytes() == content

    def test_of_another_number_of_workers_is_taken(self, tmp_path, solved):
        path = tmp_path / "work"
        D = frot.pairwise(CLOUDS, GROUPS, checkpoint=path, n_jobs=2)
        again = frot.pairwise(CLOUDS, GROUPS, checkpoint=path, memory_budget=0.0, progress=True)
        assert np.array_equal(D, again)
        assert solved == []

    def test_a_metric_that_looks_different_every_time_is_refused(self, tmp_path):
        class Metric:
            def __call__(self, u: Any, v: Any) -> float:
                return 0.0

        with pytest.raises(frot.InputError, match=r"metric: .* cannot be recognised in another"):
            frot.pairwise(CLOUDS, metric=Metric(), checkpoint=tmp_path / "work")


# Many tiles in a process of its own, handed out slowly: a signal comes before the last of them, on
# a machine with much else to do too.
SCRIPT = """
import sys
import time
import numpy as np
import frot
from frot.api import pair_tiles

def slowly(table, number, job=pair_tiles.PairTable.job):
    time.sleep(0.05)
    return job(table, number)

pair_tiles.LEAST_SECONDS = 0.0
pair_tiles.PairTable.job = slowly
rng = np.random.default_rng(7)
clouds = [rng.normal(size=(25, 6)) for _ in range(20)]
if __name__ == "__main__":
    frot.pairwise(clouds, [3, 3], checkpoint=sys.argv[1], n_jobs=int(sys.argv[2]))
"""
PAIRS = 20 * 19 // 2


def stopped(folder: Path, n_jobs: int, how: signal.Signals) -> tuple[int, str]:
    """Run the script until it has written a few more records; return how it ended, and stderr."""
    script, path, log = folder / "script.py", folder / "work", folder / "log"
    script.write_text(SCRIPT)
    enough = len(finished(path)) + 5
    deadline = time.monotonic() + 60.0
    command = [sys.executable, str(script), str(path), str(n_jobs)]
    with log.open("w") as stderr:
        # A group of its own, so that a signal reaches its workers as Ctrl-C in a terminal would.
        process = subprocess.Popen(
            command, stderr=stderr, start_new_session=True, env={**os.environ, **LIGHT}
        )
        while len(finished(path)) < enough:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.001)
        os.killpg(process.pid, how)
        return process.wait(timeout=60.0), log.read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_killed_and_interrupted_again_and_again(tmp_path, solved, small_tiles):
    """Nothing that was finished is lost, nor solved a second time."""
    path, kept = tmp_path / "work", 0
    for n_jobs, how in ((1, "KILL"), (2, "KILL"), (1, "INT"), (2, "INT")):
        status, log = stopped(tmp_path, n_jobs, signal.Signals[f"SIG{how}"])
        if how == "KILL":
            assert status == -signal.SIGKILL
        else:
            assert status != 0
            assert "KeyboardInterrupt" in log
        assert kept < len(finished(path)) < PAIRS
        kept = len(finished(path))
    rng = np.random.default_rng(7)
    clouds = [rng.normal(size=(25, 6)) for _ in range(20)]
    D = frot.pairwise(clouds, [3, 3], checkpoint=path)
    assert len(solved) == PAIRS - kept
    assert np.array_equal(D, frot.pairwise(clouds, [3, 3]))


@pytest.mark.parametrize("penalty", ["kl", "tv"])
def test_with_tau_entries_are_what_solve_finds_and_masses_may_differ(penalty):
    rng = np.random.default_rng(4)
    clouds = [rng.normal(size=(n, 3)) for n in (4, 5, 6)]
    weights = [rng.random(len(cloud)) for cloud in clouds]
    found = frot.pairwise(clouds, [1, 2], weights=weights, tau=0.7, penalty=penalty)
    options = {"metric": "euclidean", "p": 2.0, "penalty": penalty}
    for i, j in ((0, 1), (0, 2), (1, 2)):
        ab = {"a": weights[i], "b": weights[j]}
        value = frot.solve(clouds[i], clouds[j], [1, 2], **ab, tau=0.7, **options).value
        assert found[i, j] == pytest.approx(np.sqrt(value), rel=1e-7)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 0.0)
    # Far from each other everything is destroyed, which is an answer like any other.
    far = frot.pairwise([clouds[0], clouds[1] + 99.0], "all", tau=0.7, penalty="tv")
    assert far[0, 1] == pytest.approx(np.sqrt(2 * 0.7))


def test_two_prices_need_two_sides():
    clouds = [np.zeros((2, 1)), np.ones((3, 1))]
    with pytest.raises(frot.InputError, match="tau: the prices of the two sides differ"):
        frot.pairwise(clouds, tau=(1.0, 2.0))
    table = frot.pairwise(clouds, others=clouds, tau=(1.0, np.inf), p=1.0)
    value = frot.solve(*clouds, tau=(1.0, np.inf), metric="euclidean").value
    assert table[0, 1] == pytest.approx(value)


THREE = [np.random.default_rng(n).normal(size=(n, 3)) for n in (4, 5, 6)]


def test_arrays_frames_lists_stacks_and_arrays_of_objects():
    frames = [pd.DataFrame(cloud, columns=pd.Index(list("abc"))) for cloud in THREE]
    ragged = np.empty(3, dtype=object)
    ragged[:] = THREE
    for some in (
        THREE,
        tuple(THREE),
        iter(THREE),
        [x.tolist() for x in THREE],
        frames,
        ragged,
    ):
        found = check_clouds(some, None, normalise=False)
        assert found.sizes.tolist() == [4, 5, 6]
        for cloud, expected in zip(found.members, THREE, strict=True):
            assert np.array_equal(cloud.points, expected)
    assert check_clouds(frames, None, normalise=False).columns == ("a", "b", "c")
    assert check_clouds(np.zeros((2, 4, 3)), None, normalise=False).sizes.tolist() == [4, 4]


def test_columns_of_any_member_name_the_features():
    mixed = [THREE[0], pd.DataFrame(THREE[1], columns=pd.Index(list("abc"))), THREE[2]]
    assert check_clouds(mixed, None, normalise=False).columns == ("a", "b", "c")


BAD_CLOUDS = {
    "nothing": ([], "clouds: is empty; give one cloud at least"),
    "one array": (THREE[0], r"clouds: is one table; pass a list of clouds, \[clouds\]"),
    "one frame": (pd.DataFrame(THREE[0]), "clouds: is one table"),
    "a mapping": ({"a": THREE[0]}, r"clouds: is a mapping; pass list\(clouds.values\(\)\)"),
    "a path": ("a.csv", "clouds: 'a.csv' is not a list of clouds"),
    "a number": (3, "clouds: 3 is not a list of clouds"),
    "a flat member": ([THREE[0], THREE[1][0]], r"clouds\[1\]: has shape \(3,\), but points are"),
    "an empty member": ([*THREE, np.zeros((0, 3))], r"clouds\[3\]: has no points"),
    "another width": (
        [*THREE, np.zeros((2, 4))],
        r"clouds\[3\]: has 4 features and clouds\[0\] has 3; they must be the same ones",
    ),
    "other columns": (
        [THREE[0], *(pd.DataFrame(THREE[1], columns=pd.Index(list(c))) for c in ("abc", "acb"))],
        r"clouds\[2\]: has other columns than clouds\[1\]; reorder them",
    ),
    "NaN": (
        [*THREE, np.array([[0.0, np.nan, 0.0]])],
        r"clouds\[3\]: 1 of 3 entries are NaN or infinite, the first at clouds\[3\]\[0, 1\]",
    ),
    "text": ([THREE[0], THREE[1].astype(str)], r"clouds\[1\]: holds <U32, not numbers"),
}


@pytest.mark.parametrize("mistake", BAD_CLOUDS)
def test_a_bad_member_is_named(mistake):
    clouds, message = BAD_CLOUDS[mistake]
    with pytest.raises(InputError, match=message):
        check_clouds(clouds, None, normalise=False)


UNIFORM = [np.full(n, 1 / n) for n in (4, 5, 6)]
BAD_WEIGHTS = {
    "too few": (UNIFORM[:2], r"weights: 2 vectors for 3 clouds; give one for each, or None"),
    "a wrong length": ([*UNIFORM[:2], UNIFORM[0]], r"weights\[2\]: has shape \(4,\), expected"),
    "negative": ([None, [-1.0, 1, 1, 0, 0], None], r"weights\[1\]: weights must be >= 0"),
    "a sum of two": ([None, 2 * UNIFORM[1], None], r"weights\[1\]: the weights sum to 2, .*=True"),
    "a number": (1.0, "weights: is not a list of weight vectors; give one for each of clouds"),
    "flat": ([0.2, 0.3, 0.5], r"weights\[0\]: has shape \(\), expected one weight per point"),
}


@pytest.mark.parametrize("mistake", BAD_WEIGHTS)
def test_bad_weights_are_named(mistake):
    weights, message = BAD_WEIGHTS[mistake]
    with pytest.raises(InputError, match=message):
        check_clouds(THREE, weights, normalise=False)


def test_weights_are_kept_as_they_came():
    found = check_clouds(THREE, [None, 2 * UNIFORM[1], UNIFORM[2]], normalise=True)
    assert found.members[0].weights is None
    assert np.array_equal(found.members[1].weights, 2 * UNIFORM[1])  # type: ignore[arg-type]


sizes = st.lists(st.integers(1, 2000), min_size=1, max_size=40).map(np.array)
efforts = st.tuples(st.sampled_from([1e-3, 1e-2, 3.0]), st.sampled_from([0.0, 1e-7, 1e-5]))


def positions(tiles: list[Tile], triangle: bool, diagonal: bool) -> list[tuple[int, int]]:
    return [pair for tile in tiles for pair in pairs_of(tile, triangle, diagonal)]


@given(sizes, sizes, efforts, st.integers(1, 5000))
def test_a_rectangle_has_every_pair_once(rows, cols, effort, width):
    tiles = cut_tiles(rows, cols, effort, width, diagonal=False)
    found = positions(tiles, triangle=False, diagonal=False)
    assert sorted(found) == [(i, j) for i in range(len(rows)) for j in range(len(cols))]


@given(sizes, efforts, st.integers(1, 5000), st.booleans())
def test_a_triangle_has_every_pair_once(rows, effort, width, diagonal):
    tiles = cut_tiles(rows, None, effort, width, diagonal)
    count = range(len(rows))
    expected = [(i, j) for i in count for j in count if i < j + diagonal]
    assert sorted(positions(tiles, triangle=True, diagonal=diagonal)) == expected
    assert all(pairs_of(tile, True, diagonal) for tile in tiles)


@given(sizes, efforts, st.integers(1, 5000))
def test_no_tile_is_too_much_unless_it_is_one_pair(rows, effort, width):
    tiles = cut_tiles(rows, None, effort, width, diagonal=False)
    seconds = [tile.seconds for tile in tiles]
    assert seconds == sorted(seconds, reverse=True)
    for tile in tiles:
        blocks = [block for block in (tile.rows, tile.cols) if len(block) > 1]
        assert tile.seconds <= pair_tiles.MOST_SECONDS * (1 + 1e-9) or len(blocks) < 2
        points = sum(rows[list(block)].sum() for block in blocks)
        assert 8 * width * points <= pair_tiles.MOST_BYTES
        n, m = rows[list(tile.rows)].sum(), rows[list(tile.cols)].sum()
        half = 0.5 if tile.rows == tile.cols else 1.0
        least = half * (effort[0] * len(tile.rows) * len(tile.cols) + effort[1] * n * m)
        assert tile.seconds >= least * (1 - 1e-9)


def test_small_pairs_share_a_tile_and_its_clouds():
    """What is sent is a few clouds a tile, not two a pair."""
    rows = np.full(200, 20)
    tiles = cut_tiles(rows, None, (5e-3, 0.0), 10, diagonal=False)
    pairs = len(positions(tiles, triangle=True, diagonal=False))
    clouds = sum(len({*tile.rows, *tile.cols}) for tile in tiles)
    assert pairs == 200 * 199 / 2
    assert len(tiles) < 2 * pair_tiles.TILES
    assert clouds < pairs / 2


def test_one_cloud_has_no_pairs():
    assert cut_tiles(np.array([5]), None, (1.0, 1.0), 3, diagonal=False) == []
    assert len(cut_tiles(np.array([5]), None, (1.0, 0.0), 3, diagonal=True)) == 1


def test_with_a_mass_entries_are_what_solve_finds():
    rng = np.random.default_rng(0)
    clouds = [rng.normal(size=(n, 3)) for n in (4, 6, 5)]
    weights = [rng.random(len(cloud)) + 0.2 for cloud in clouds]
    least = min(side.sum() for side in weights)
    table = frot.pairwise(clouds, [1, 2], weights=weights, mass=0.8 * least)
    assert (table == table.T).all()
    assert (np.diag(table) == 0.0).all()
    for i, j in ((0, 1), (0, 2), (1, 2)):
        ab = {"a": weights[i], "b": weights[j], "metric": "euclidean", "p": 2.0}
        value = frot.solve(clouds[i], clouds[j], [1, 2], **ab, mass=0.8 * least).value
        assert table[i, j] == pytest.approx(np.sqrt(value), rel=1e-9)
    ones = frot.pairwise(clouds, weights=weights, mass=1.0, normalise_weights=True)
    np.testing.assert_allclose(
        ones, frot.pairwise(clouds, weights=weights, normalise_weights=True), rtol=1e-8
    )
    with pytest.raises(frot.InputError, match=r"mass: .* of the lighter side"):
        frot.pairwise(clouds, weights=weights, mass=1.1 * least)
    with pytest.raises(frot.InputError, match="mass, tau"):
        frot.pairwise(clouds, mass=0.5, tau=1.0)
    with pytest.raises(frot.InputError, match="solved without eps"):
        frot.pairwise(clouds, mass=0.5, eps=0.1)

"""The two-sample test: its level, its numbers beside those of `solve`, and what leaves it alone."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import frot
from frot.api.permutations import permuted_labels
from frot.api.pooled_sample import Factors, PooledSample
from frot.costs.build import factored_metric
from frot.groups.groups import Groups
from tests.reference import linear_program, quiet

GROUPS = {"a": [0, 1], "b": [2], "c": [3, 4, 5]}


def samples(
    seed: int, n: int = 20, m: int = 15, shift: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Two samples that differ by a shift of the first group."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, 6)), rng.normal(size=(m, 6))
    Y[:, :2] += shift
    return X, Y


def run(X: Any, Y: Any, groups: Any = GROUPS, permutations: int = 99, **options: Any) -> Any:
    return frot.two_sample_test(X, Y, groups, permutations=permutations, **options)


def within_two_errors(count: int, sets: int, level: float) -> bool:
    return abs(count - level * sets) <= 2.0 * np.sqrt(sets * level * (1.0 - level))


SETS = 120


@pytest.fixture(scope="module")
def under_the_null() -> list[frot.TwoSampleTest]:
    tests = []
    for seed in range(SETS):
        rng = np.random.default_rng([9, seed])
        # Heavy tails, groups that depend on each other, and points noisier than others.
        noise = rng.standard_t(3, size=(16, 3)) + rng.standard_t(3, size=(16, 1))
        Z = noise * rng.choice([1.0, 3.0], size=(16, 1))
        tests.append(run(Z[:6], Z[6:], None, 19, random_state=seed))
    return tests


@pytest.fixture(scope="module")
def shifted() -> frot.TwoSampleTest:
    return run(*samples(0, shift=1.5))


class TestLevel:
    def test_overall(self, under_the_null):
        assert within_two_errors(sum(t.p <= 0.05 for t in under_the_null), SETS, 0.05)
        assert within_two_errors(sum(t.p <= 0.5 for t in under_the_null), SETS, 0.5)

    def test_any_group(self, under_the_null):
        count = sum(t.p_groups.min() <= 0.05 for t in under_the_null)
        assert within_two_errors(count, SETS, 0.05)

    def test_one_group(self, under_the_null):
        count = sum(t.p_single[1] <= 0.5 for t in under_the_null)
        assert within_two_errors(count, SETS, 0.5)

    def test_groups_that_do_not_differ_beside_one_that_does(self):
        wrong = 0
        for seed in range(40):
            X, Y = samples(seed, 8, 8, shift=3.0)
            test = run(X, Y, permutations=39, random_state=seed)
            assert test.p_groups[0] <= 0.05
            wrong += test.p_groups[1:].min() <= 0.05
        assert wrong <= 0.05 * 40 + 2.0 * np.sqrt(40 * 0.05 * 0.95)


class TestAnswers:
    def test_a_difference_is_seen_and_placed(self):
        test = run(*samples(0, shift=1.5), permutations=199)
        assert test.p == test.p_groups[0] == pytest.approx(1 / 200)
        assert test.differs() == ("a",)
        assert test.effect_groups.argmax() == test.z_groups.argmax() == 0
        assert test.z > 3.0

    def test_dependence_that_no_group_shows_alone(self):
        rng = np.random.default_rng(0)
        X, Y = rng.normal(size=(60, 4)), rng.normal(size=(60, 1)) + 0.1 * rng.normal(size=(60, 4))
        test = frot.two_sample_test(X, Y / Y.std(axis=0), permutations=99)
        assert test.p == 0.01
        assert test.p_groups.min() > 0.05

    def test_two_points_against_two(self):
        # Of the 6 labellings, that of the samples and its mirror image are the farthest apart.
        X, Y = np.array([[0.0], [1.0]]), np.array([[10.0], [11.0]])
        with pytest.warns(frot.DataWarning, match="X, Y: allow 6 different labellings, .* 0.17 at"):
            test = frot.two_sample_test(X, Y, permutations=199, eps=0.0, normalise="none")
        assert test.result.value == pytest.approx(100.0)
        assert test.divergence == pytest.approx([100.0])
        assert abs(test.p - 1 / 3) < 0.1
        assert test.p_groups == pytest.approx([test.p])

    def test_the_divergence_of_a_shifted_set_is_the_shift_squared(self):
        X = samples(1)[0]
        Y = X + np.array([0.0, 0.0, 0.7, 0.0, 0.3, 0.4])
        low, high = run(X, Y, normalise="none", eps=0.5).divergence_interval
        assert (low <= [1e-12, 0.49 + 1e-12, 0.25 + 1e-12]).all()
        assert (high >= [-1e-12, 0.49 - 1e-12, 0.25 - 1e-12]).all()
        assert (high - low < 1e-3).all()

    def test_the_same_points_everywhere(self):
        test = run(np.ones((5, 6)), np.ones((4, 6)), permutations=19)
        assert test.p == 1.0
        assert test.p_groups.tolist() == test.p_single.tolist() == [1.0] * 3
        assert np.isfinite(test.z)

    def test_a_group_that_is_the_same_everywhere(self):
        X, Y = samples(0, shift=2.0)
        X[:, 2] = Y[:, 2] = 5.0
        test = run(X, Y)
        assert test.p_groups[0] == 0.01
        assert test.p_groups[1] == 1.0

    def test_adjusted_p_is_the_slow_definition(self):
        test = run(*samples(3, shift=0.6))
        labels = np.repeat([0, 1], [20, 15])
        own = pooled(*samples(3, shift=0.6)).statistics(labels[None])[0, 3:]
        every = np.vstack([own, test.null_groups])
        z = (every - every.mean(axis=0)) / every.std(axis=0)
        slow = [(1 + sum(row.max() >= value for row in z[1:])) / 100 for value in z[0]]
        assert test.p_groups == pytest.approx(slow)
        assert (test.p_groups >= test.p_single).all()


def pooled(X: np.ndarray, Y: np.ndarray, eps: float = 0.2, **options: Any) -> PooledSample:
    """The pool of `frot.two_sample_test` with its defaults."""
    Z, parsed = np.concatenate([X, Y]), Groups.parse(GROUPS, 6)
    parts = [Z[:, members] for members in parsed.indices]
    costs = np.stack([((part[:, None] - part) ** 2).sum(axis=2) for part in parts])
    scale = len(Z) * (len(Z) - 1.0) / costs.sum(axis=(1, 2))
    metric = factored_metric("sqeuclidean", 1.0)
    assert metric is not None
    factors = Factors(Z, metric, scale) if options.pop("points", True) else None
    known: dict[str, Any] = {"eta": 0.0, "tol": 1e-5, "max_iter": 2000, **options}
    return PooledSample(costs * scale[:, None, None], parsed, eps=eps, factors=factors, **known)


class TestNumbers:
    """Intervals of batches hold what others find."""

    def test_the_result_is_that_of_solve(self):
        X, Y = samples(2, shift=0.5)
        test = run(X, Y, eps=0.3, normalise="none", permutations=19)
        alone = frot.solve(X, Y, GROUPS, eps=0.3)
        assert test.result.lower <= alone.upper
        assert alone.lower <= test.result.upper
        assert test.result.alpha == pytest.approx(alone.alpha, abs=1e-2)
        assert test.result.names == ("a", "b", "c")

    @pytest.mark.parametrize("points", [True, False])
    @pytest.mark.parametrize("eta", [0.0, 0.1])
    def test_labellings_are_what_they_are_alone(self, points, eta):
        sample = pooled(*samples(4), eta=eta, points=points)
        labels = permuted_labels(np.repeat([0, 1], [20, 15]), np.zeros(35, int), 0, range(30))
        found = sample.statistics(labels)
        for row, codes in zip(found, labels, strict=True):
            first, second = codes == 0, codes == 1
            offset = sample.potentials[first].mean() + sample.potentials[second].mean()
            stack = sample.costs[:, first][:, :, second]
            alone = frot.solve_costs(stack, eta=eta, eps=0.2, tol=1e-7)
            assert row[0] + offset <= alone.upper + 1e-12
            assert row[1] + offset >= alone.lower - 1e-12
            assert row[1] - row[0] <= 1.01e-5 * alone.value

    def test_labellings_are_as_certain_as_it_takes(self):
        sample = pooled(*samples(4))
        labels = permuted_labels(np.repeat([0, 1], [20, 15]), np.zeros(35, int), 0, range(60))
        closely = sample.statistics(labels)
        own = tuple(closely[0, :2].tolist())
        found = sample.statistics(labels, own)
        wide = found[:, 1] - found[:, 0]
        assert wide.max() > 2e-5
        # What is wide is beside the interval it is compared with.
        meets = (found[:, 1] >= own[0]) & (found[:, 0] <= own[1])
        assert (wide[meets] < 2e-5).all()
        assert meets[0]
        assert (found[:, 0] <= closely[:, 1]).all()
        assert (found[:, 1] >= closely[:, 0]).all()

    def test_without_eps_they_hold_what_highs_finds(self):
        sample = pooled(*samples(5, 7, 6), eps=0.0)
        labels = permuted_labels(np.repeat([0, 1], [7, 6]), np.zeros(13, int), 0, range(8))
        found = sample.statistics(labels)
        for row, codes in zip(found, labels, strict=True):
            first, second = codes == 0, codes == 1
            offset = sample.potentials[first].mean() + sample.potentials[second].mean()
            stack, a, b = sample.costs[:, first][:, :, second], np.full(7, 1 / 7), np.full(6, 1 / 6)
            truth = linear_program(stack, a, b)
            assert row[0] + offset <= truth + 1e-9
            assert row[1] + offset >= truth - 1e-9
            alone = [linear_program(cost[None], a, b) for cost in stack]
            assert row[3:] == pytest.approx(alone, abs=1e-8)

    @pytest.mark.parametrize("kind", ["grid", "tails", "twins", "units", "far"])
    def test_intervals_on_hostile_pools(self, kind):
        """Batches prove what holds: beside each interval is that of one problem, and HiGHS's."""
        for seed in range(3):
            rng = np.random.default_rng(seed)
            Z = rng.normal(size=(14, 6))
            if kind == "grid":
                Z = np.round(Z)
            elif kind == "tails":
                Z = rng.standard_cauchy(size=(14, 6))
            elif kind == "twins":
                Z[7:] = Z[:7]
            elif kind == "units":
                Z = Z * np.geomspace(1e-4, 1e4, 6)
            else:
                Z[0] += 1e4
            labels = permuted_labels(np.repeat([0, 1], [8, 6]), np.zeros(14, int), seed, range(4))
            for eps in (0.0, 0.05, 1.0):
                sample = pooled(Z[:8], Z[8:], eps=eps, points=bool(seed % 2))
                for row, codes in zip(quiet(sample.statistics, labels), labels, strict=True):
                    first, second = codes == 0, codes == 1
                    offset = sample.potentials[first].mean() + sample.potentials[second].mean()
                    stack = sample.costs[:, first][:, :, second]
                    low, high = row[0] + offset, row[1] + offset
                    slack = 1e-9 * float(stack.max())
                    alone = quiet(frot.solve_costs, stack, eps=eps, tol=1e-7)
                    assert low <= alone.upper + slack
                    assert high >= alone.lower - slack
                    assert np.isfinite(row).all()
                    if eps == 0.0:
                        truth = linear_program(stack, np.full(8, 1 / 8), np.full(6, 1 / 6))
                        assert low - slack <= truth <= high + slack

    def test_potentials_change_nothing_where_samples_are_of_one_size(self):
        sample = pooled(*samples(6, 15, 15))
        labels = permuted_labels(np.repeat([0, 1], 15), np.zeros(30, int), 0, range(5))
        offsets = [sum(sample.potentials[codes == k].mean() for k in (0, 1)) for codes in labels]
        assert offsets == pytest.approx([offsets[0]] * 5, rel=1e-12)

    def test_runs_that_end_early_are_said_and_make_p_no_smaller(self):
        X, Y = samples(7, shift=0.8)
        exact = run(X, Y)
        with pytest.warns(frot.ConvergenceWarning, match="of 100 problems did not reach"):
            rough = run(X, Y, max_iter=1)
        assert rough.short > 0
        assert rough.p >= exact.p
        assert rough.p_interval[0] <= exact.p <= rough.p_interval[1]
        assert "ended before their tolerance" in rough.summary()

    def test_what_is_closer_than_the_tolerance_is_the_same(self):
        X, Y = samples(8, shift=0.65)
        exact, rough = run(X, Y), run(X, Y, tol=0.3)
        assert rough.short == 0
        assert rough.p > exact.p


class TestInvariance:
    def same(self, one: frot.TwoSampleTest, other: frot.TwoSampleTest) -> None:
        assert other.result.value == pytest.approx(one.result.value, rel=1e-4)
        assert other.statistic == pytest.approx(one.statistic, abs=1e-4)
        assert other.divergence == pytest.approx(one.divergence, abs=1e-4)

    def test_order_of_points(self):
        X, Y = samples(10, shift=0.5)
        order = np.random.default_rng(0).permutation
        one, other = run(X, Y), run(X[order(20)], Y[order(15)])
        self.same(one, other)
        assert abs(one.p - other.p) < 0.15

    def test_exchange_of_samples(self):
        X, Y = samples(11, shift=0.5)
        self.same(run(X, Y), run(Y, X))

    def test_order_of_groups(self):
        X, Y = samples(12, shift=0.7)
        one, other = run(X, Y), run(X, Y, dict(reversed(GROUPS.items())))
        assert other.statistic == pytest.approx(one.statistic, abs=1e-4)
        assert other.p_groups.tolist() == one.p_groups[::-1].tolist()
        assert other.z_groups == pytest.approx(one.z_groups[::-1])

    @pytest.mark.parametrize("factor", [2.0**-20, 2.0**20])
    def test_units(self, factor):
        X, Y = samples(13, shift=0.7)
        one, other = run(X, Y), run(factor * X, factor * Y)
        self.same(one, other)
        assert (one.p, one.p_groups.tolist()) == (other.p, other.p_groups.tolist())

    def test_units_of_a_group_with_costs_divided_by_their_mean(self):
        X, Y = samples(14, shift=0.7)
        units = np.array([1.0, 1.0, 1.0, 1e3, 1e3, 1e3])
        self.same(run(X, Y), run(X * units, Y * units))


class TestBlocks:
    def confounded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Two blocks that differ, with three quarters of X in one and of Y in the other."""
        rng = np.random.default_rng(0)
        block = np.repeat([0, 1, 0, 1], [18, 6, 6, 18])
        Z = rng.normal(size=(48, 6)) + 1.5 * block[:, None]
        return Z[:24], Z[24:], block

    def test_what_differs_between_blocks_is_no_difference(self):
        X, Y, block = self.confounded()
        assert run(X, Y).p == 0.01
        within = run(X, Y, block=block)
        assert within.p > 0.05
        assert within.p_groups.min() > 0.05
        assert within.settings["blocks"] == 2

    def test_as_one_vector_or_two(self):
        X, Y, block = self.confounded()
        names = np.where(block == 0, "first", "second")
        one = run(X, Y, block=block)
        other = run(X, Y, block=(names[:24], pd.Series(names[24:])))
        assert (one.p, one.p_groups.tolist()) == (other.p, other.p_groups.tolist())

    def test_a_block_of_one_sample_is_named(self):
        X, Y = samples(0)
        block = np.array(["u"] * 15 + ["lone"] * 5 + ["u"] * 15)
        with pytest.warns(frot.DataWarning, match="block: 'lone' holds points of X alone"):
            run(X, Y, permutations=19, block=block)

    @pytest.mark.parametrize(
        ("block", "message"),
        [
            (np.repeat([0, 1], [20, 15]), "block: every block holds a single class"),
            (np.zeros(34), r"block: has shape \(34,\)"),
            (([0] * 20, [0] * 14), r"block: has labels of shape \(14,\) for 15 points of Y"),
            (np.ma.masked_equal(np.zeros(35), 1), "block: is a masked array"),
            ([object() for _ in range(35)], "block: cannot be read as labels"),
        ],
    )
    def test_what_it_cannot_be(self, block, message):
        with pytest.raises(frot.InputError, match=message):
            run(*samples(0), block=block)


class TestCall:
    def test_seeds(self):
        X, Y = samples(15, shift=0.3)
        one, same, other = (run(X, Y, random_state=seed) for seed in (1, 1, 2))
        assert one.null.tolist() == same.null.tolist()
        assert one.null.tolist() != other.null.tolist()

    def test_workers_and_checkpoints(self, tmp_path, monkeypatch):
        X, Y = samples(16, 40, 40, shift=0.3)
        whole = run(X, Y, permutations=300)
        path = tmp_path / "run"
        run(X, Y, permutations=150, checkpoint=path)
        calls = []
        statistics = PooledSample.statistics

        def counted(self, labels, own=None):
            calls.append(len(labels))
            return statistics(self, labels, own)

        monkeypatch.setattr(PooledSample, "statistics", counted)
        resumed = run(X, Y, permutations=300, checkpoint=path)
        assert sum(calls) == 1 + 150
        assert resumed.p == whole.p
        assert resumed.null_groups == pytest.approx(whole.null_groups, abs=1e-9)
        monkeypatch.undo()
        spread = run(X, Y, permutations=300, n_jobs=2)
        assert spread.p == whole.p
        assert spread.null_groups == pytest.approx(whole.null_groups, abs=1e-9)
        with pytest.raises(frot.InputError, match="of other data or options"):
            run(X, Y, permutations=300, checkpoint=path, eps=0.3)

    def test_ctrl_c_has_no_answer_of_one_labelling(self, monkeypatch):
        def stopped(*_):
            raise frot.Interrupted(None)

        monkeypatch.setattr(PooledSample, "statistics", stopped)
        with pytest.raises(KeyboardInterrupt) as stop:
            run(*samples(0))
        assert not isinstance(stop.value, frot.Interrupted)

    def test_progress(self, capsys):
        run(*samples(0), progress=True)
        assert "permutations: 99/99" in capsys.readouterr().err

    def test_tensors_frames_and_american_spelling(self):
        X, Y = samples(17, shift=0.5)
        one = run(X, Y)
        tensors = run(torch.tensor(X), torch.tensor(Y), normalize="mean")
        frames = run(pd.DataFrame(X), pd.DataFrame(Y))
        assert one.p_groups.tolist() == tensors.p_groups.tolist() == frames.p_groups.tolist()

    @pytest.mark.parametrize("metric", ["cityblock", "cosine", "euclidean"])
    def test_metrics(self, metric):
        X, Y = samples(18, shift=2.5)
        test = run(X, Y, [[0, 1], [2, 3], [4, 5]], metric=metric)
        assert test.p_groups[0] == 0.01
        assert test.settings["metric"] == metric

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"normalise": "regret"}, "normalise: 'regret' .* changes with labels"),
            ({"metric": lambda x, y: float(x[0] > y[0])}, "metric: has another cost from x to y"),
            ({"memory_budget": 1e4}, "X, Y: costs among 35 points .* larger memory_budget"),
            ({"checkpoint": "run", "random_state": None}, "random_state: a run with a checkpoint"),
        ],
    )
    def test_what_cannot_be_asked_for(self, options, message):
        with pytest.raises(frot.InputError, match=message):
            run(*samples(0), **options)

    def test_a_single_point(self):
        X, Y = samples(0)
        with pytest.raises(frot.InputError, match="Y: has a single point"):
            run(X, Y[:1])


class TestResult:
    def test_text(self, shifted):
        lines = shifted.summary(top=2).splitlines()
        assert lines[0] == "Two-sample test of 20 and 15 points in 3 groups, 99 permutations"
        assert "p = 0.01" in lines[1]
        assert lines[3].split()[0] == "a"
        assert lines[5] == "    ... and 1 more"
        assert "eps 0.2" in lines[-1]
        assert str(shifted) == repr(shifted) == shifted.summary()

    def test_table(self, shifted):
        frame = shifted.to_frame()
        assert frame["group"][0] == "a"
        assert frame["p"].is_monotonic_increasing
        assert (frame["lower"] <= frame["upper"]).all()

    def test_json_html_and_pickle(self, shifted):
        told = json.loads(json.dumps(shifted.to_dict()))
        assert told["groups"][0]["group"] == "a"
        assert told["p"] == 0.01
        assert "<table" in shifted._repr_html_()
        again = pickle.loads(pickle.dumps(shifted))
        assert again.p_groups.tolist() == shifted.p_groups.tolist()

    def test_arrays_are_read_only(self, shifted):
        with pytest.raises(ValueError, match="read-only"):
            shifted.null[0] = 1.0

    def test_picture(self, shifted):
        figure = shifted.plot(top=2)
        whole, groups = figure.axes
        assert whole.get_title(loc="left") == "All groups: p = 0.01"
        assert groups.get_yticklabels()[0].get_text() == "a"
        assert len(groups.get_yticklabels()) == 2

import numpy as np
import pytest

import frot
from frot.cells import Cells, Trajectory, trajectory
from frot.cells._coupling import CouplingSettings
from tests.cells.planted import GROUPS, planted


def cells(seed=0):
    X, obs, names = planted(n=30, days=4, seed=seed)
    return Cells(X, obs, names)


@pytest.fixture(scope="module")
def found():
    return trajectory(cells(), groups=GROUPS)


def test_days_are_chained(found):
    plans = [np.asarray(one.result.plan) for one in found]
    assert found.days == (3, 4, 5, 6)
    first = np.arange(30) < 5
    through = first @ plans[0] @ plans[1] @ plans[2]
    np.testing.assert_allclose(found.push(first), through / through.sum())
    back = plans[1] @ plans[2] @ first
    np.testing.assert_allclose(found.pull(first, source=4), back / back.sum())
    np.testing.assert_allclose(found.push(first, 4, 5), found[1].push(first))


def test_transitions_through_several_days(found):
    mass = found.transition_matrix("kind", share="none")
    assert mass.to_numpy().sum() == pytest.approx(1.0)
    for kind in ("stem", "blood"):
        there = found.push(kind, column="kind")[cells().obs["kind"][90:] == "stem"].sum()
        assert found.transition_matrix("kind").loc[kind, "stem"] == pytest.approx(there)


def test_weights_over_time_have_a_column_for_each_interval(found):
    assert found.weights.columns.tolist() == ["group", "3 to 4", "4 to 5", "5 to 6"]
    np.testing.assert_allclose(found.weights.iloc[:, 1:].sum(), 1.0)


def test_a_run_that_was_killed_resumes(tmp_path, monkeypatch):
    path, done, solve = tmp_path / "days.store", [], CouplingSettings.couple

    def killed(self, data, key, first, second, **run):
        if len(done) == 2:
            raise RuntimeError("power cut")
        done.append(first.day)
        return solve(self, data, key, first, second, **run)

    monkeypatch.setattr(CouplingSettings, "couple", killed)
    options = {"groups": GROUPS, "checkpoint": path, "tau": 1.0}
    with pytest.raises(RuntimeError, match="power cut"):
        trajectory(cells(), **options)
    done.clear()
    resumed = trajectory(cells(), **options)
    assert done == [5]
    monkeypatch.undo()
    expected = trajectory(cells(), groups=GROUPS, tau=1.0)
    for one, two in zip(resumed, expected, strict=True):
        assert one.result.lower <= two.result.upper
        assert one.about == two.about
        np.testing.assert_allclose(one.marginals[0], two.marginals[0], rtol=1e-3)
        assert one.result.status is frot.Status.CONVERGED
    with pytest.raises(frot.InputError, match="of other data or options"):
        trajectory(cells(seed=1), **options)


def test_exact_plans_resume_as_they_were(tmp_path):
    options = {"groups": GROUPS, "checkpoint": tmp_path / "days.store", "eps": 0.0}
    first, again = trajectory(cells(), **options), trajectory(cells(), **options)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(np.asarray(one.result.plan), np.asarray(two.result.plan))
        assert (one.result.lower, one.result.upper) == (two.result.lower, two.result.upper)


def test_ctrl_c_brings_the_days_done(monkeypatch):
    solve = CouplingSettings.couple

    def interrupted(self, data, key, first, second, **run):
        if first.day == 5:
            raise KeyboardInterrupt
        return solve(self, data, key, first, second, **run)

    monkeypatch.setattr(CouplingSettings, "couple", interrupted)
    with pytest.raises(frot.Interrupted) as caught:
        trajectory(cells(), groups=GROUPS)
    assert isinstance(caught.value.result, Trajectory)
    assert caught.value.result.days == (3, 4, 5)


@pytest.mark.filterwarnings("ignore::frot.ConvergenceWarning")
def test_a_time_limit_is_for_all_days():
    found = trajectory(cells(), groups=GROUPS, time_limit=1e-6)
    assert all(one.result.status is frot.Status.TIME_LIMIT for one in found)
    assert all(one.result.lower <= one.result.upper for one in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"days": [3]}, "days: give at least two"),
        ({"days": [3, 4, 3]}, "days: a day is given twice"),
        ({"days": [3, 8]}, "days: day has no 8"),
        ({"colour": 1}, "colour: is not an option of couplings"),
        ({"growth": "dying"}, "growth: must be > 0"),
    ],
)
def test_bad_input_is_refused_before_the_first_coupling(arguments, message):
    data = cells()
    data.obs["dying"] = np.where(data.obs["day"] == 5, -1.0, 1.0)
    with pytest.raises(frot.InputError) as caught:
        trajectory(data, **({"groups": GROUPS} | arguments))
    assert message in str(caught.value)


def test_days_that_are_not_in_order_are_refused(found):
    with pytest.raises(frot.InputError, match="5 is not before 4"):
        found.push(source=5, target=4)
    with pytest.raises(frot.InputError, match="there is no 9; days are '3', '4'"):
        found.push(source=9)

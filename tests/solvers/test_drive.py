"""The loop around every algorithm: limits, callbacks, Ctrl-C, progress and history."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import frot
from frot import Exact, FrankWolfe, Problem, Status
from frot._base.stopping import DeadlineError
from frot.costs import Stack
from frot.solvers import SOLVERS
from frot.solvers.drive import Offer, drive
from tests.reference import linear_program, quiet

RNG = np.random.default_rng(0)
STACK = RNG.random((6, 20, 18))
UNIFORM = np.full(20, 1 / 20), np.full(18, 1 / 18)
TRUTH = linear_program(STACK, *UNIFORM)


def holds_the_truth(result: frot.Result) -> bool:
    return result.lower <= TRUTH * (1 + 1e-9) and result.upper >= TRUTH * (1 - 1e-9)


class TestLimits:
    @pytest.mark.parametrize("name", ["exact", "frank_wolfe"])
    def test_max_iter(self, name):
        with pytest.warns(frot.ConvergenceWarning, match="Stopped at max_iter") as caught:
            result = frot.solve_costs(STACK, solver=SOLVERS[name], max_iter=2)
        assert result.status is Status.MAX_ITER
        assert result.iterations == 2
        assert result.gap > 1e-6
        assert holds_the_truth(result)
        assert f"[{result.lower:.8g}, {result.upper:.8g}]" in str(caught[0].message)

    @pytest.mark.parametrize(
        "solve", [frot.solve_costs, lambda C, **o: frot.solve(C[0], C[0], **o)]
    )
    def test_the_warning_points_at_the_line_that_called(self, solve):
        with pytest.warns(frot.ConvergenceWarning) as caught:
            solve(STACK, eta=0.1, solver=FrankWolfe(step="paper"), max_iter=1)
        assert caught[0].filename == __file__

    @pytest.mark.parametrize("name", ["exact", "frank_wolfe"])
    def test_time_limit(self, name):
        with pytest.warns(frot.ConvergenceWarning, match="Stopped at time_limit"):
            result = frot.solve_costs(STACK, solver=SOLVERS[name], time_limit=1e-9)
        assert result.status is Status.TIME_LIMIT
        assert result.iterations <= 1
        assert holds_the_truth(result)

    @pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
    @pytest.mark.parametrize("name", ["exact", "frank_wolfe"])
    def test_tol_is_met_and_not_wasted(self, name, tol):
        result = frot.solve_costs(STACK, solver=SOLVERS[name], tol=tol)
        assert result.status is Status.CONVERGED
        assert result.gap <= tol
        assert all(now.gap > tol for now in result.history[:-1])

    def test_a_tighter_tol_takes_longer(self):
        rough = frot.solve_costs(STACK, solver=FrankWolfe(tol=1e-2))
        fine = frot.solve_costs(STACK, solver=FrankWolfe(tol=1e-7))
        assert rough.iterations < fine.iterations

    def test_options_override_the_solvers_own(self):
        result = quiet(frot.solve_costs, STACK, solver=FrankWolfe(tol=1e-9), tol=0.5, max_iter=7)
        assert "tol=0.5, max_iter=7" in result.solver


class TestCallback:
    def test_it_sees_every_iteration_with_bounds(self):
        seen: list[frot.Progress] = []
        result = frot.solve_costs(STACK, solver=FrankWolfe(), callback=seen.append)
        assert [now.iteration for now in seen] == list(range(1, result.iterations + 1))
        assert all(now.lower <= now.upper for now in seen)
        assert [now.elapsed for now in seen] == sorted(now.elapsed for now in seen)
        assert seen == list(result.history)

    @pytest.mark.parametrize(
        "true",
        [True, np.True_],
    )
    def test_returning_true_stops(self, true):
        with pytest.warns(frot.ConvergenceWarning, match="Stopped by the callback"):
            result = frot.solve_costs(
                STACK,
                solver=FrankWolfe(),
                callback=lambda now: true if now.iteration == 3 else None,
            )
        assert result.status is Status.STOPPED
        assert result.iterations == 3
        assert holds_the_truth(result)

    def test_other_returns_do_not_stop(self):
        assert frot.solve_costs(STACK, callback=lambda now: "going on").status.ok

    def test_its_errors_are_not_swallowed(self):
        def fail(now):
            raise ZeroDivisionError("in the callback")

        with pytest.raises(ZeroDivisionError, match="in the callback"):
            frot.solve_costs(STACK, solver=FrankWolfe(), callback=fail)


class Interrupting:
    """Costs that are interrupted at the first mix."""

    def __init__(self, base: Stack, after: int = 0) -> None:
        self.base, self.left = base, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base, name)

    def to(self, home: Any) -> Any:
        return self

    def mix(self, alpha: np.ndarray) -> np.ndarray:
        self.left -= 1
        if self.left == -1:
            raise KeyboardInterrupt
        return self.base.mix(alpha)


def interrupt(*given: Any, **options: Any) -> Any:
    raise KeyboardInterrupt


class TestInterruption:
    """Ctrl-C reaches the caller, with the best certified answer."""

    @pytest.mark.parametrize("name", ["exact", "frank_wolfe"])
    def test_in_the_callback(self, name):
        with pytest.raises(frot.Interrupted, match=r"take stop.result") as stop:
            frot.solve_costs(STACK, solver=SOLVERS[name], callback=interrupt)
        result = stop.value.result
        assert result.status is Status.INTERRUPTED
        assert holds_the_truth(result)
        assert result.plan.sum() == pytest.approx(1.0, rel=1e-12)

    @pytest.mark.parametrize("name", ["exact", "frank_wolfe"])
    def test_before_the_first_iteration(self, name):
        costs: Any = Interrupting(Stack(STACK))
        problem = Problem(costs, *UNIFORM, names=tuple("abcdef"))
        with pytest.raises(frot.Interrupted) as stop:
            SOLVERS[name](problem)
        result = stop.value.result
        assert result.status is Status.INTERRUPTED
        assert result.iterations == 0
        assert len(result.history) == 1
        assert holds_the_truth(result)
        assert result.plan.sum(axis=1) == pytest.approx(UNIFORM[0], abs=1e-15)

    def test_in_the_oracle(self):
        @dataclasses.dataclass(frozen=True)
        class Broken(frot.NetworkSimplex):
            def __call__(self, *args, **options):
                raise KeyboardInterrupt

        with pytest.raises(frot.Interrupted) as stop:
            frot.solve_costs(STACK, solver=FrankWolfe(oracle=Broken()))
        assert stop.value.result.status is Status.INTERRUPTED
        assert holds_the_truth(stop.value.result)

    def test_it_ends_the_loop_of_the_caller(self):
        done = []

        def loop() -> None:
            for callback in (None, interrupt, None):
                done.append(frot.solve_costs(STACK, callback=callback))

        with pytest.raises(KeyboardInterrupt):
            loop()
        assert len(done) == 1

    def test_the_answer_is_the_one_that_would_be_returned(self):
        """With points without weight, and in the library of the arguments."""
        torch = pytest.importorskip("torch")
        rng = np.random.default_rng(1)
        X, Y = torch.tensor(rng.normal(size=(9, 3))), torch.tensor(rng.normal(size=(7, 3)))
        a = torch.tensor([0.0, 0.0, *[1 / 7] * 7], dtype=torch.float64)
        whole = frot.solve(X, Y, a=a)
        for solver in (Exact(), FrankWolfe()):
            with pytest.raises(frot.Interrupted) as stop:
                frot.solve(X, Y, a=a, solver=solver, callback=interrupt)
            result = stop.value.result
            assert isinstance(result.alpha, torch.Tensor)
            assert result.plan.shape == (9, 7)
            assert result.potentials[0].shape == (9,)
            assert result.lower <= whole.upper
            assert whole.lower <= result.upper

    @pytest.mark.parametrize(
        "door",
        [
            lambda X, Y: frot.srw(X, Y, k=1, callback=interrupt),
            lambda X, Y: frot.equitable(STACK, callback=interrupt),
            lambda X, Y: frot.wasserstein(X, Y, callback=interrupt),
        ],
        ids=["srw", "equitable", "wasserstein"],
    )
    def test_of_the_relatives(self, door):
        rng = np.random.default_rng(1)
        X, Y = rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
        with pytest.raises(frot.Interrupted) as stop:
            door(X, Y)
        result = stop.value.result
        assert result.status is Status.INTERRUPTED
        assert result.lower <= result.upper
        assert result.chosen is not None

    def test_a_pair_of_many_ends_all_of_them(self, monkeypatch):
        monkeypatch.setattr("frot.solvers.drive.mostly_rounding", interrupt)
        with pytest.raises(KeyboardInterrupt) as stop:
            frot.pairwise([[[0.0, 1.0], [3.0, 1.0]], [[1.0, 5.0], [2.0, 2.0]]])
        assert not isinstance(stop.value, frot.Interrupted)

    def test_it_can_be_sent_between_processes(self):
        with pytest.raises(frot.Interrupted) as stop:
            frot.solve_costs(STACK, callback=interrupt)
        again = pickle.loads(pickle.dumps(stop.value))
        assert again.result.value == stop.value.result.value


def objective(name: str) -> dict[str, Any]:
    """Whatever a solver cannot do without."""
    return {"eps": 0.1} if name == "entropic" else {}


class TestProgressBar:
    @pytest.mark.parametrize("name", SOLVERS)
    def test_it_is_drawn_on_stderr_and_changes_nothing(self, name, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        shown = frot.solve_costs(STACK, solver=SOLVERS[name], progress=True, **objective(name))
        out, err = capsys.readouterr()
        assert out == ""
        assert "solving" in err
        assert "gap" in err
        silent = frot.solve_costs(STACK, solver=SOLVERS[name], **objective(name))
        assert capsys.readouterr().err == ""
        assert shown.value == silent.value


class TestHistory:
    @pytest.mark.parametrize("name", SOLVERS)
    def test_bounds_only_get_better(self, name):
        result = frot.solve_costs(STACK, solver=SOLVERS[name], **objective(name))
        lowers, uppers = zip(*((now.lower, now.upper) for now in result.history), strict=True)
        assert list(lowers) == sorted(lowers)
        assert list(uppers) == sorted(uppers, reverse=True)
        assert result.history[-1].gap == result.gap
        assert result.history[-1].upper == result.upper


class TestTheLoopItself:
    problem = Problem(Stack(STACK), *UNIFORM, names=tuple("abcdef"))

    def test_no_offers_at_all_still_give_an_interval(self):
        with pytest.warns(frot.ConvergenceWarning, match="cannot be narrowed further"):
            result = drive(iter([]), self.problem, solver="none", tol=1e-6, max_iter=5)
        assert result.status is Status.STALLED
        assert holds_the_truth(result)

    def test_empty_offers_count_as_iterations(self):
        with pytest.warns(frot.ConvergenceWarning, match="Stopped at max_iter"):
            result = drive(iter([Offer()] * 9), self.problem, solver="idle", tol=1e-6, max_iter=4)
        assert result.iterations == 4
        assert len(result.history) == 1

    def test_running_out_of_time_inside_a_step(self):
        def offers():
            raise DeadlineError
            yield Offer()

        with pytest.warns(frot.ConvergenceWarning, match="Stopped at time_limit"):
            result = drive(offers(), self.problem, solver="slow", tol=1e-6, max_iter=4)
        assert result.status is Status.TIME_LIMIT


@pytest.mark.parametrize("solver", [Exact(), frot.Entropic()])
def test_a_run_that_converged_is_not_looked_at_again(solver):
    """Whether an optimum is zero is a question of a warning, and drawing costs takes its time."""
    rng = np.random.default_rng(0)
    costs, uniform = Stack(rng.random((1, 4, 5))), (np.full(4, 0.25), np.full(5, 0.2))
    problem = Problem(costs, *uniform, eps=0.1 if isinstance(solver, frot.Entropic) else 0.0)
    assert solver(problem).status is Status.CONVERGED
    assert "typical_cost" not in problem.__dict__

from typing import Any

import numpy as np
import pytest

import frot
from frot.show import plot_convergence


def axes_of(figure) -> list[Any]:
    """Matplotlib's types know less than its objects."""
    return figure.axes


def test_lines_are_the_history(toy_result):
    bounds, gaps = axes_of(plot_convergence(toy_result))
    history = toy_result.history
    lines = {line.get_label(): line for line in bounds.lines}
    assert list(lines["upper bound"].get_ydata()) == [now.upper for now in history]
    assert list(lines["lower bound"].get_ydata()) == [now.lower for now in history]
    assert list(lines["lower bound"].get_xdata()) == [now.iteration for now in history]
    (gap,) = gaps.lines
    assert np.allclose(gap.get_ydata(), np.maximum([now.gap for now in history], 1e-16))
    assert gaps.get_yscale() == "log"
    assert f"{toy_result.gap:.1e}" in gaps.get_title("left")
    texts = [text.get_text() for text in bounds.get_legend().get_texts()]
    assert texts == ["upper bound", "lower bound"]


def test_over_time(toy_result):
    bounds, gaps = axes_of(plot_convergence(toy_result, over="time"))
    assert bounds.get_xlabel() == gaps.get_xlabel() == "seconds"
    assert list(bounds.lines[0].get_xdata()) == [now.elapsed for now in toy_result.history]


def test_over_something_else(toy_result):
    with pytest.raises(frot.InputError, match="over: 'space' is none of 'iteration', 'time'"):
        plot_convergence(toy_result, over="space")  # type: ignore[arg-type]


def test_a_gap_of_zero_can_be_drawn():
    result = frot.solve([[1.0]], [[1.0]])
    figure = plot_convergence(result)
    figure.draw_without_rendering()
    low, high = axes_of(figure)[1].get_ylim()
    assert 0.0 < low < high


@pytest.mark.parametrize("over", ["iteration", "time"])
def test_the_rate_of_frank_wolfe_is_drawn_above_the_error(toy_data, over):
    X, Y, _ = toy_data
    solver = frot.FrankWolfe(step="paper", tol=0.0, max_iter=12)
    with pytest.warns(frot.ConvergenceWarning):
        result = frot.solve(X, Y, "each", eta=1.0, solver=solver)
    _, gaps = axes_of(plot_convergence(result, over=over))
    gap, bound = gaps.lines
    assert bound.get_label() == "error allowed by proposition 3"
    steps = np.array([now.iteration for now in result.history])
    assert result.rate is not None
    assert bound.get_ydata() == pytest.approx(result.rate(steps) / result.upper)
    assert np.all(np.diff(bound.get_ydata()) < 0.0)
    best = frot.solve(X, Y, "each", eta=1.0).lower
    errors = np.array([now.upper for now in result.history]) - best
    assert np.all(errors / result.upper <= bound.get_ydata())
    low, high = gaps.get_ylim()
    assert low <= gap.get_ydata().min() <= bound.get_ydata().max() <= high


def test_other_runs_have_no_rate(toy_result):
    assert len(axes_of(plot_convergence(toy_result))[1].lines) == 1

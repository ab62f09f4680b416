import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import frot
from frot._base.errors import MissingDependencyError
from frot.show import plot_alpha, plot_convergence, plot_result
from frot.show.style import plain, png, shorten


def test_all_three_in_one_figure(toy_data, toy_result):
    figure = plot_result(toy_result, groups=toy_data[2])
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles[0] == "Transport plan"
    assert titles[1] == "Groups"
    assert titles[3] == "Certified interval"
    assert len(titles) == 5
    assert png(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize(("kind", "count"), [("plan", 1), ("alpha", 2), ("convergence", 2)])
def test_one_kind(toy_result, kind, count):
    assert len(toy_result.plot(kind).axes) == count


def test_options_go_to_the_kind(toy_result):
    assert len(plot_result(toy_result, "alpha", top=1).axes[0].patches) == 1


def test_an_unknown_kind_names_the_known(toy_result):
    with pytest.raises(frot.InputError, match="'pie' is none of 'plan', 'alpha', 'convergence'"):
        toy_result.plot("pie")


def test_no_pyplot_and_shown_in_notebooks(toy_result):
    sys.modules.pop("matplotlib.pyplot", None)
    figure = toy_result.plot("alpha")
    assert "matplotlib.pyplot" not in sys.modules
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_without_matplotlib_the_error_says_how_to_get_it(toy_result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"frot\[plot\]"):
        toy_result.plot("alpha")


def test_names_are_cut_in_the_middle():
    assert shorten("x" * 100, 20) == "x" * 10 + "…" + "x" * 10
    assert shorten("two\nlines") == "two lines"
    assert plain("5$") == r"5\$"


def axes_of(figure) -> list[Any]:
    """Matplotlib's types know less than its objects."""
    return figure.axes


def test_bars_are_alpha_and_phi_heaviest_first(costs_result):
    left, right = axes_of(plot_alpha(costs_result))
    order = costs_result.ranking()
    assert [bar.get_width() for bar in left.patches] == pytest.approx(costs_result.alpha[order])
    assert [bar.get_width() for bar in right.patches] == pytest.approx(costs_result.phi[order])
    names = [text.get_text() for text in left.get_yticklabels()]
    assert names == [costs_result.names[i] for i in order]
    assert left.get_ylim()[0] > left.get_ylim()[1]  # the heaviest on top
    assert "α" in left.get_xlabel()
    assert "φ" in right.get_xlabel()
    assert left.texts[0].get_text() == f"{costs_result.alpha[order[0]]:.4f}"


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    names = [f"A LONG NAME OF A SET OF GENES, NUMBER {i} OF MANY$" for i in range(40)]
    return frot.solve_costs(rng.random((40, 6, 6)), names=names)


def test_at_most_thirty_and_the_title_says_so(many):
    left, _ = axes_of(plot_alpha(many))
    assert len(left.patches) == 30
    assert left.get_title("left") == "Heaviest 30 of 40 groups"
    assert len(axes_of(plot_alpha(many, top=5))[0].patches) == 5


def test_long_names_are_cut_and_nothing_overlaps(many):
    figure = plot_alpha(many)
    left, right = axes_of(figure)
    names = [text.get_text() for text in left.get_yticklabels()]
    assert all(len(name.replace("\\", "")) <= 29 and "…" in name for name in names)
    figure.draw_without_rendering()
    labels = [text.get_window_extent() for text in left.get_yticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(labels))
    numbers = [text.get_window_extent() for text in left.texts]
    assert not any(number.overlaps(right.get_window_extent()) for number in numbers)
    assert all(label.x0 >= 0 for label in labels)


def test_negative_costs_have_room():
    result = frot.solve_costs(-np.ones((2, 2, 2)))
    _, right = axes_of(plot_alpha(result))
    assert right.get_xlim()[0] < -1.0


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

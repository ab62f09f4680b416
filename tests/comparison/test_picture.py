"""Pictures of a comparison."""

import numpy as np
import pytest

import frot
from frot.comparison.picture import (
    _shared,
    plot_choices,
    plot_comparison,
    plot_intervals,
    plot_plans,
)

pytest.importorskip("matplotlib")


def titles(figure):
    return [axes.get_title("left") for axes in figure.axes if axes.get_visible()]


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 20, 5))
    Y[:, 3] += 4.0
    Y[:, 1] += 3.5
    return frot.compare(X, Y, "frot,srw,max_sliced,generalised_max_sliced,ot")


def test_every_interval_is_drawn_where_it_is(found):
    axes = plot_intervals(found).axes[0]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == ["FROT", "SRW", "max-sliced", "generalised max-sliced", "OT"]
    ends = [np.asarray(line.get_xdata()) for line in axes.lines]
    spans = [each for each in ends if len(each) == 2]
    for (lower, upper), row in zip(spans, found.rows, strict=True):
        assert lower == row.result.lower
        assert upper == min(row.result.upper, axes.get_xlim()[1])


def test_plans_are_in_the_features_that_were_chosen(found):
    figure = plot_plans(found)
    assert titles(figure) == ["FROT", "SRW", "max-sliced", "generalised max-sliced", "OT"]
    assert {axes.get_xlabel() for axes in figure.axes if axes.get_xlabel()} == {"x1"}
    assert {axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()} == {"x3"}
    other = plot_plans(found, (4, 0))
    assert {axes.get_xlabel() for axes in other.axes if axes.get_xlabel()} == {"x4"}
    with pytest.raises(frot.InputError, match="9 is none of the 5 features"):
        found.plot((9, 0))


def test_choices_leave_out_who_has_none(found):
    assert titles(plot_choices(found)) == ["FROT", "SRW", "max-sliced", "generalised max-sliced"]
    X, Y = found.points
    only = frot.compare(X, Y, "ot")
    assert titles(plot_choices(only)) == ["OT"]


def test_many_points_become_heat_maps_in_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(450, 1))
    found = frot.compare(X, X + 1.0, "ot", k=1)
    figure = plot_plans(found)
    cells = np.asarray(figure.axes[0].images[0].get_array())
    # The order of the points is not that of the file, and so the plan is a diagonal.
    assert np.trace(cells) == pytest.approx(1.0)
    assert "sorted by x0" in figure.axes[0].get_xlabel()


def test_points_on_a_line_and_the_whole_figure(tmp_path):
    X, Y = np.random.default_rng(0).normal(size=(2, 6, 1))
    found = frot.compare(X, Y, "frot,ot,max_min,max_sliced", k=1)
    figure = plot_comparison(found)
    figure.savefig(tmp_path / "a.png")
    assert titles(figure)[1:] == ["FROT", "OT", "max-min", "max-sliced"]
    assert "100% as FROT" in figure.axes[2].get_title("right")


def test_nothing_to_draw():
    failed = frot.compare([[0.0]], [[1.0]], "srw", k=3)
    for draw in (plot_comparison, plot_choices, plot_plans, plot_intervals):
        with pytest.raises(frot.InputError, match="no method has a result"):
            draw(failed)


def test_shared_mass_counts_common_arcs():
    plan = frot.Plan(np.array([[0.5, 0.0], [0.2, 0.3]]))
    other = frot.Plan(np.array([[0.1, 0.4], [0.2, 0.3]]))
    assert _shared(plan, other) == pytest.approx(0.1 + 0.2 + 0.3)

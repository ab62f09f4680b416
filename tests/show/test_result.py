import sys

import pytest

import frot
from frot._base.errors import MissingDependencyError
from frot.show import plot_result
from frot.show.style import plain, png, shorten


def test_all_three_in_one_figure(toy_data, toy_result):
    figure = plot_result(toy_result, groups=toy_data[2])
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles[0] == "Transport plan"
    assert titles[1] == "Groups"
    assert titles[3] == "Certified interval"
    assert len(titles) == 5
    assert png(figure, dpi=50).startswith(b"\x89PNG")


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

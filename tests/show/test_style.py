"""Figures that pyplot knows of, and those that it does not."""

import importlib
from concurrent.futures import ThreadPoolExecutor

import pytest

import frot
from frot.show.page import picture
from frot.show.style import legend_below, new_figure


@pytest.fixture
def windows(monkeypatch):
    """A pyplot that says it has windows; its figures are drawn without."""
    # Here, since other tests take matplotlib away and bring it back.
    plt = importlib.import_module("matplotlib.pyplot")
    plt.close("all")
    monkeypatch.setattr(plt, "get_backend", lambda: "TkAgg")
    yield plt
    plt.close("all")


def test_pyplot_shows_what_a_script_has_drawn(windows):
    figure = frot.solve([[0.0]], [[1.0]]).plot("alpha")
    assert windows.get_fignums() == [figure.number]
    assert figure.axes


def test_files_and_threads_open_no_window(windows):
    assert picture(lambda: new_figure(1, 1), "nothing").source
    with ThreadPoolExecutor(1) as pool:
        pool.submit(new_figure, 1, 1).result()
    assert windows.get_fignums() == []


def test_a_notebook_draws_what_has_no_window():
    assert vars(new_figure(1, 1))["_repr_png_"]().startswith(b"\x89PNG")


def test_one_legend_names_what_is_on_several_panels():
    figure = new_figure(4, 2)
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], label="one")
    right.plot([0, 1], label="two")
    legend_below(figure, left, right, columns=2, size=7)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "two"]
    assert [text.get_fontsize() for text in legend.get_texts()] == [7, 7]

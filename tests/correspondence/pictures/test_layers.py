from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from frot import InputError
from frot.correspondence.pictures import plot_layers
from tests.correspondence.fake_match import fake_match


def heights(axes: Any) -> list[float]:
    return [bar.get_height() for bar in axes.patches]


ETAS = {0.5: {"a": 0.5, "b": 0.5}, 0.1: {"b": 0.9, "a": 0.1}}


def test_bars_of_a_match_are_its_alpha_in_the_order_of_the_network():
    match = fake_match()
    for given in (match, match.alpha):
        (axes,) = plot_layers(given).axes
        assert heights(axes) == list(match.alpha.values())
        assert [text.get_text() for text in axes.get_xticklabels()] == list(match.alpha)
        assert axes.get_title("left") == ""


def test_a_panel_for_each_eta_on_one_scale():
    first, second = plot_layers(ETAS).axes
    assert [first.get_title("left"), second.get_title("left")] == ["η = 0.1", "η = 0.5"]
    # The order of the layers is that of the smallest eta, in every panel.
    assert heights(first) == [0.9, 0.1]
    assert heights(second) == [0.5, 0.5]
    assert [text.get_text() for text in second.get_xticklabels()] == ["b", "a"]
    assert first.get_ylim() == second.get_ylim()


def test_many_etas_are_a_map():
    many = {eta: {"a": eta / 10, "b": 1 - eta / 10} for eta in range(1, 9)}
    axes, bar = plot_layers(many).axes
    cells = np.asarray(axes.images[0].get_array())
    assert cells == pytest.approx(np.array([[e / 10, 1 - e / 10] for e in range(1, 9)]))
    assert [text.get_text() for text in axes.get_yticklabels()] == [str(e) for e in range(1, 9)]
    assert bar.get_ylabel() == "weight α"
    assert len(plot_layers(many, kind="bars").axes) == 8
    assert plot_layers(ETAS, kind="map").axes[0].images


def test_into_axes_of_the_user():
    figure = Figure()
    axes = figure.add_subplot()
    assert plot_layers(ETAS[0.5], ax=axes) is figure
    assert len(axes.patches) == 2
    with pytest.raises(InputError, match="ax: is one panel"):
        plot_layers(ETAS, ax=axes)


def test_names_of_34_layers_do_not_touch():
    figure = plot_layers({f"layer3.{i}.bottleneck.sum": 1 / 34 for i in range(34)})
    figure.draw_without_rendering()
    labels = [text.get_window_extent() for text in figure.axes[0].get_xticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(labels))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (({},), "alphas: are of no layer"),
        ((ETAS, "pie"), "kind: 'pie'"),
        (({0.1: {"a": 1.0}, 0.2: {"b": 1.0}},), "alphas: the layers at eta 0.2"),
    ],
)
def test_bad_input(given, text):
    with pytest.raises(InputError, match=text):
        plot_layers(*given)

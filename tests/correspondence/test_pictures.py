from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from frot import InputError
from frot.correspondence import (
    Matcher,
    TorchBackbone,
    match_picture,
    pictures,
    plot_features,
    plot_flow,
    plot_warp,
)
from frot.correspondence._features import Grid
from frot.correspondence.pictures import (
    flow_colours,
    grid_extent,
    plot_cam,
    plot_heatmap,
    plot_layers,
    plot_weights,
)
from tests.correspondence.fake_match import bent_match, fake_match
from tests.correspondence.small import cat, convolutions

POINT = (150.0, 120.0)


@pytest.fixture(scope="module")
def match():
    return fake_match()


def crosses(axes):
    return [line.get_xydata()[0] for line in axes.lines]


def test_the_heat_lies_over_the_target_and_the_crosses_where_the_point_is(match):
    left, right = plot_heatmap(match, POINT).axes
    photo, heat = right.images
    assert tuple(heat.get_extent()) == tuple(photo.get_extent()) == (-0.5, 471.5, 359.5, -0.5)
    assert np.array_equal(np.asarray(heat.get_array()), match.heatmap(POINT))
    assert np.all(crosses(left) == np.array(POINT))
    moved = match.transfer([POINT])
    assert np.array(crosses(right)) == pytest.approx(np.repeat(moved.points, 2, axis=0))
    assert f"confidence {moved.confidence[0]:.0%}" in right.get_title("left")
    assert left.get_title("left") == "cat.png"


def test_cold_places_show_the_photograph(match):
    heat = plot_heatmap(match, POINT).axes[1].images[1]
    values, alpha = np.asarray(heat.get_array()), np.asarray(heat.get_alpha())
    assert alpha[values < 1e-4].max() < 0.01
    assert alpha.max() == pytest.approx(0.8)


def test_into_axes_of_the_user(match):
    figure = Figure()
    axes = figure.add_subplot()
    assert plot_heatmap(match, POINT, axes) is figure
    assert len(axes.images) == 2
    assert len(figure.axes) == 1


@pytest.mark.parametrize(
    ("point", "text"),
    [([[1, 2], [3, 4]], "point: 2 given"), ((900, 0), "outside"), ((1, 2, 3), "points: shape")],
)
def test_a_heat_map_is_of_one_point_inside(match, point, text):
    with pytest.raises(InputError, match=text):
        plot_heatmap(match, point)


def test_a_cam_is_stretched_over_its_photograph(match):
    cam = np.linspace(0.0, 1.0, 12).reshape(3, 4)
    figure = plot_cam(match.source, cam)
    photo, map_ = figure.axes[0].images
    assert tuple(map_.get_extent()) == tuple(photo.get_extent())
    assert np.array_equal(np.asarray(map_.get_array()), cam)
    assert map_.get_clim() == (0.0, 1.0)
    assert figure.axes[1].get_ylabel() == "activation"
    with pytest.raises(InputError, match="cam: has 1 axes"):
        plot_cam(match.source, cam[0])


def test_weights_are_drawn_at_their_cells(match):
    left, right, bar = plot_weights(match).axes
    for axes, mass, grid, ratio in (
        (left, match.a, match.source_grid, match.source_ratio),
        (right, match.b, match.target_grid, match.target_ratio),
    ):
        image: Any = axes.images[1]
        assert np.asarray(image.get_array()) == pytest.approx(
            len(mass) * mass.reshape(grid.h, grid.w)
        )
        x0, x1, y1, y0 = image.get_extent()
        cell = np.array([(x1 - x0) / grid.w, (y1 - y0) / grid.h])
        first, last = np.array([x0, y0]) + cell / 2, np.array([x1, y1]) - cell / 2
        assert first == pytest.approx([0.0, 0.0], abs=1e-9)
        assert last == pytest.approx(grid.centres[-1] / ratio)
    assert left.get_xlim() == (-0.5, 359.5)
    assert bar.get_ylabel() == "weight of a cell over the mean"


def test_a_grid_begins_half_a_cell_before_the_first_pixel():
    assert grid_extent(Grid(2, 3, 4.0, 11.0), 1.0) == (-2.0, 10.0, 6.0, -2.0)


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


def test_layers_into_axes_of_the_user(monkeypatch):
    for module in (pictures, match_picture):
        monkeypatch.setattr(module, "new_figure", lambda *_: pytest.fail("there are axes already"))
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


def test_the_wheel_turns_once():
    angles = np.linspace(0.0, 2 * np.pi, 12, endpoint=False)
    moves = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    colours = flow_colours(moves, 1.0)
    assert colours.max(axis=1) == pytest.approx(np.ones(12))
    assert colours.min(axis=1) == pytest.approx(np.zeros(12))
    assert len(np.unique(colours.round(6), axis=0)) == 12
    # Halfway out it is halfway to white, and beyond the edge as at the edge.
    assert flow_colours(0.5 * moves, 1.0) == pytest.approx(0.5 + 0.5 * colours)
    assert flow_colours(3.0 * moves, 1.0) == pytest.approx(colours)


def test_the_flow_is_drawn_in_the_colours_of_its_wheel():
    match, _ = bent_match()
    figure = plot_flow(match)
    _, panel = figure.axes[:2]
    shown = np.asarray(panel.images[0].get_array())
    flow = match.flow()
    assert shown.shape == (*match.source.size, 3)
    sure = flow.certainty * flow.valid
    y, x = np.unravel_index(sure.argmax(), sure.shape)
    top = float(panel.get_title("left").split("wheel: ")[1].split()[0])
    expected = flow_colours(flow.displacement[y, x], top)
    assert shown[y, x] == pytest.approx(expected, abs=0.02)
    invalid = shown[~flow.valid]
    assert invalid == pytest.approx(np.full(invalid.shape, 0.75))


def test_the_warp_stands_between_the_photographs():
    match, _ = bent_match()
    panels = plot_warp(match).axes
    assert len(panels) == 3
    warped = match.warp()
    shown = np.asarray(panels[1].images[0].get_array())
    assert shown[warped.valid] == pytest.approx(np.clip(warped.pixels[warped.valid], 0, 1))
    assert "in the frame of" in panels[1].get_title("left")


def test_features_that_are_alike_have_one_colour():
    matcher = Matcher(TorchBackbone(convolutions()), side=96, device="cpu")
    pair = matcher.pair_features(cat(), cat())
    figure = plot_features(pair)
    one, other = (np.asarray(axes.images[0].get_array()) for axes in figure.axes[2:])
    assert one == pytest.approx(other, abs=1e-3)
    assert one.std(axis=(0, 1)).min() > 0.05
    names = pair.layers.names
    some = plot_features(pair, {name: float(name == names[0]) for name in names})
    assert not np.allclose(np.asarray(some.axes[2].images[0].get_array()), one, atol=0.05)
    with pytest.raises(InputError, match="alpha: has no weight for layer"):
        plot_features(pair, {names[0]: 1.0})

import numpy as np
import pytest

from frot import InputError
from frot.correspondence import Matcher, TorchBackbone, plot_features, plot_flow, plot_warp
from frot.correspondence.pictures import flow_colours
from tests.correspondence.fake_match import bent_match
from tests.correspondence.small import cat, convolutions


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
    matcher = Matcher(TorchBackbone(convolutions()), side=96, device="numpy")
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

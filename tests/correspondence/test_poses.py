import numpy as np
import pytest

from frot import InputError
from frot._base.arrays import Home
from frot.correspondence import ArrayBackbone, Matcher, TorchBackbone, Turn
from frot.correspondence._features import Grid
from frot.correspondence.poses import (
    AS_IS,
    FORWARD,
    MARGINS,
    MIRRORED,
    SPREADS,
    Taps,
    choose,
    evidence,
    frame_of,
    own_maps,
    turned_image,
)
from tests.correspondence.small import cat, convolutions
from tests.correspondence.turns import QUARTERS, plainly, went

STRIDES = (2, 4, 4, 8)


@pytest.fixture(scope="module")
def backbone():
    return TorchBackbone(convolutions())


@pytest.mark.parametrize("turn", QUARTERS, ids=str)
def test_quarters_are_exact(turn):
    image = np.random.default_rng(0).random((33, 41, 3)).astype(np.float32)
    frame = frame_of((33, 41), turn, STRIDES)
    assert frame.canvas == (33, 41)
    np.testing.assert_allclose(turned_image(image, frame), plainly(image, turn), atol=1e-6)
    points = np.array([[0.0, 0.0], [7.0, 12.0], [40.0, 32.0]])
    moved = points @ frame.affine()[:, :2].T + frame.affine()[:, 2]
    np.testing.assert_allclose(moved, went(points, turn, (33, 41)), atol=1e-9)


def test_a_margin_puts_cells_on_cells():
    frame = frame_of((30, 47), Turn(mirror=True), STRIDES)
    assert frame.canvas == frame.size == (33, 49)
    own, turned = Grid(4, 6, 8.0, 1.0), Grid(5, 7, 8.0, 1.0)
    there = frame.seen(own, turned)
    np.testing.assert_allclose(there, np.round(there), atol=1e-9)
    # Patches of one size need none.
    patches = frame_of((28, 42), Turn(mirror=True), (14, 14))
    assert patches.size == (28, 42)
    flipped = patches.seen(Grid(2, 3, 14.0, 14.0), Grid(2, 3, 14.0, 14.0))
    np.testing.assert_allclose(flipped[:, 0], [2, 1, 0, 2, 1, 0], atol=1e-9)


@pytest.mark.parametrize("turn", [*QUARTERS, Turn(angle=45.0), Turn(scale=0.7)], ids=str)
def test_there_and_back(turn):
    frame = frame_of((65, 97), turn, STRIDES)
    own = Grid(9, 13, 8.0, 1.0)
    turned = Grid(-(-frame.size[0] // 8), -(-frame.size[1] // 8), 8.0, 1.0)
    values = np.stack([own.centres[:, 0], own.centres[:, 1] ** 2, np.ones(own.count)], axis=1)
    home = Home.of(values)
    away = Taps.of(frame.back(turned, own), own, edges=False).rows(values, home)
    back = Taps.of(frame.seen(own, turned), turned, edges=True).rows(away, home)
    inner = ((own.centres > 16) & (own.centres < [80, 48])).all(axis=1)
    exact = turn in QUARTERS
    np.testing.assert_allclose(back[inner], values[inner], rtol=1e-9 if exact else 0.15)


@pytest.mark.parametrize("turn", [AS_IS, Turn(mirror=True), Turn(angle=90.0)], ids=str)
def test_features_come_back_to_their_cells(backbone, turn):
    image = cat(h=65, w=97)
    own = backbone.extract(image)
    frame = frame_of((65, 97), turn, [layer.stride for layer in own])
    seen = backbone.extract(turned_image(image, frame))
    for found, one, other in zip(own_maps(seen, own, frame), own, seen, strict=True):
        assert found.values.shape == one.values.shape
        back = np.rot90(other.values, -int(turn.angle) // 90, axes=(1, 2))
        back = back[:, :, ::-1] if turn.mirror else back
        np.testing.assert_allclose(found.values, back, atol=1e-5)
        if turn == AS_IS:
            np.testing.assert_allclose(found.values, one.values, atol=1e-5)


def test_evidence_is_for_neighbours_that_stay_so():
    grid = Grid(6, 6, 8.0, 1.0)
    straight, home = np.eye(36) + 0.01, Home.of(np.zeros(1))
    mixed = straight[np.random.default_rng(0).permutation(36)]
    mirrored = straight.reshape(6, 6, 36)[:, ::-1].reshape(36, 36)
    ours, theirs, back = (
        evidence(np.ones(3), votes, grid, grid, home) for votes in (straight, mixed, mirrored)
    )
    for name in ("plan", "direction", "rigidity"):
        assert ours[name] > max(theirs[name], back[name])
    assert ours["coherence"] == theirs["coherence"] == 0.0
    assert ours["direction"] == -back["direction"] == pytest.approx(1.0 / SPREADS["direction"])
    # Cells without votes are not asked.
    some = mirrored.copy()
    some[:6] = 0.0
    again = evidence(np.ones(3), some, grid, grid, home)
    assert again["direction"] == pytest.approx(back["direction"])


def test_another_pose_has_to_be_better_by_the_margin():
    margin = MARGINS["mirror"]
    for gain, turn in ((margin - 0.1, AS_IS), (margin + 0.1, MIRRORED)):
        found = choose({AS_IS: {"direction": 1.0}, MIRRORED: {"direction": 1.0 + gain}}, "mirror")
        assert found.turn == turn
        assert found.statistic == pytest.approx(gain)
        assert found.tried == {"mirrored": pytest.approx(gain)}


def test_what_runs_forwards_is_not_mirrored():
    forwards = {"direction": 1.1 * FORWARD / SPREADS["direction"]}
    better = {"direction": forwards["direction"] + 2.0 * MARGINS["all"]}
    assert choose({AS_IS: forwards, MIRRORED: better}, "mirror").turn == AS_IS
    upside_down = Turn(True, 180.0)
    assert choose({AS_IS: forwards, upside_down: better}, "all").turn == upside_down


def test_features_by_name_cannot_be_turned():
    by_name = ArrayBackbone({"cat.jpg": {"patches": np.ones((5, 4, 6))}})
    with pytest.raises(InputError, match="poses: 'mirror' needs a network that can look"):
        Matcher(by_name, poses="mirror")


@pytest.mark.parametrize("size", [(57, 91), (33, 32)])
@pytest.mark.parametrize("strides", [(4, 8, 16), (16,)], ids=["margin", "no margin"])
def test_mirrored_and_turned_by_quarters_pixels_are_moved_and_not_mixed(size, strides):
    image = np.random.default_rng(0).random((*size, 3)).astype(np.float32)
    for quarters in range(4):
        for mirror in (False, True):
            frame = frame_of(size, Turn(angle=90.0 * quarters, mirror=mirror), strides)
            down, across = (side - own for side, own in zip(frame.canvas, size, strict=True))
            padded = np.pad(image, [(0, down), (0, across), (0, 0)], mode="reflect")
            flipped = padded[:, ::-1] if mirror else padded
            assert np.array_equal(turned_image(image, frame), np.rot90(flipped, quarters))

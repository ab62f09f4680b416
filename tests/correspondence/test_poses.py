from itertools import product

import numpy as np
import pytest

from frot import InputError
from frot._base.arrays import Home
from frot.correspondence import ArrayBackbone, Matcher, Pose, TorchBackbone, Turn, load_match
from frot.correspondence._features import Grid
from frot.correspondence.agreement import STRENGTH
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
from tests.correspondence.small import SIDE, cat, convolutions, places

QUARTERS = [
    Turn(mirror, angle) for mirror, angle in product((False, True), (0.0, 90.0, 180.0, 270.0))
]
STRIDES = (2, 4, 4, 8)


@pytest.fixture(scope="module")
def backbone():
    return TorchBackbone(convolutions())


def plainly(image, turn):
    """Mirrored, then turned by quarters, as NumPy has it."""
    mirrored = image[:, ::-1] if turn.mirror else image
    return np.rot90(mirrored, int(turn.angle) // 90)


def went(points, turn, size):
    """Where points are in a photograph of (h, w) that was turned by quarters."""
    h, w = size
    x, y = points.T
    x = w - 1 - x if turn.mirror else x
    for _ in range(int(turn.angle) // 90):
        x, y, w, h = y, w - 1 - x, h, w
    return np.stack([x, y], axis=1)


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


@pytest.mark.parametrize(
    ("poses", "turn"),
    [("mirror", Turn(mirror=True)), ("all", Turn(angle=90.0)), ("all", Turn(True, 180.0))],
    ids=str,
)
def test_a_turned_photograph_is_matched_in_its_own_frame(backbone, poses, turn, tmp_path):
    source = cat(h=97, w=SIDE)
    target = np.ascontiguousarray(plainly(source, turn))
    match = Matcher(backbone, side=SIDE, device="cpu", poses=poses)(source, target)
    assert match.pose.turn == turn
    assert match.pose.statistic > match.pose.margin == MARGINS[poses]
    assert match.pose.tried[str(turn)] == match.pose.statistic
    points = places(97, SIDE, border=24)
    truth = went(points, turn, (97, SIDE))
    moved = match.transfer(points)
    assert np.abs(moved.points - truth).max() < 3.0
    assert np.abs(match.inverse.transfer(truth).points - points).max() < 3.0
    assert match.cycle_error(points).max() < 3.0
    flow = match.flow()
    x, y = points.astype(int).T
    assert np.abs(flow.points[y, x] - went(np.stack([x, y], 1), turn, (97, SIDE))).max() < 3.5
    inner = (slice(20, -20), slice(20, -20))
    assert np.abs(match.warp().pixels - target)[inner].mean() < 0.06
    # The plan is one between A's own cells and B's.
    assert match.result is not None
    assert match.result.lower <= match.result.value <= match.result.upper
    assert match.plan is not None
    np.testing.assert_allclose(match.plan.sum(axis=1), match.a, atol=1e-6)
    again = load_match(match.save(tmp_path / "turned.npz"))
    assert again.pose == match.pose
    np.testing.assert_array_equal(again.transfer(points).points, moved.points)


def test_what_is_as_it_is_stays_so(backbone):
    plain = Matcher(backbone, side=SIDE, device="cpu")
    ours, theirs = (one(cat(), cat(x=76)) for one in (plain.with_settings(poses="mirror"), plain))
    assert ours.pose.turn == AS_IS
    assert ours.pose.statistic < 0.0
    assert theirs.pose == Pose()
    np.testing.assert_array_equal(ours.scores, theirs.scores)


def test_what_faces_the_other_way_is_read_as_a_reflection(backbone, tmp_path):
    plain = Matcher(backbone, side=SIDE, device="cpu")
    mirrored = np.ascontiguousarray(cat()[:, ::-1])
    posed = plain.with_settings(poses="mirror")
    found = [
        way(cat(), to) for way, to in ((plain, cat(x=76)), (plain, mirrored), (posed, mirrored))
    ]
    assert [one.reflected for one in found] == [False, True, False]
    assert [one.agreement for one in found] == [STRENGTH] * 3
    # A was never looked at mirrored.
    match = found[1]
    assert match.pose == Pose()
    points = places(border=24)
    truth = points * [-1.0, 1.0] + [SIDE - 1.0, 0.0]
    off = np.linalg.norm(match.transfer(points).points - truth, axis=1)
    as_displacements = plain.with_settings(agreement=STRENGTH)(cat(), mirrored)
    assert not as_displacements.reflected
    others = np.linalg.norm(as_displacements.transfer(points).points - truth, axis=1)
    assert np.median(off) < 0.5 * np.median(others)
    assert match.rigidity > 2.0 * as_displacements.rigidity
    # There and back again, in files too.
    assert match.inverse.reflected
    again = load_match(match.save(tmp_path / "reflected.npz"))
    assert again.reflected
    assert again.rigidity == match.rigidity
    np.testing.assert_array_equal(
        again.transfer(points).confidence, match.transfer(points).confidence
    )


def test_frames_of_a_video_are_turned_too(backbone):
    frames = [cat(), np.ascontiguousarray(cat()[:, ::-1])]
    matcher = Matcher(backbone, side=SIDE, device="cpu", poses="mirror")
    last = list(matcher.track(frames, [[40.0, 60.0]]))[-1]
    assert last.match is not None
    assert last.match.pose.turn.mirror
    assert last.points == pytest.approx(np.array([[SIDE - 41.0, 60.0]]), abs=3.0)


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

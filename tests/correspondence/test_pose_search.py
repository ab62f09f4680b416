import numpy as np
import pytest

from frot.correspondence import Matcher, Pose, TorchBackbone, Turn, load_match
from frot.correspondence.poses import AS_IS, MARGINS
from tests.correspondence.small import SIDE, cat, convolutions, places
from tests.correspondence.turns import plainly, went


@pytest.fixture(scope="module")
def backbone():
    return TorchBackbone(convolutions())


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


def test_frames_of_a_video_are_turned_too(backbone):
    frames = [cat(), np.ascontiguousarray(cat()[:, ::-1])]
    matcher = Matcher(backbone, side=SIDE, device="cpu", poses="mirror")
    last = list(matcher.track(frames, [[40.0, 60.0]]))[-1]
    assert last.match is not None
    assert last.match.pose.turn.mirror
    assert last.points == pytest.approx(np.array([[SIDE - 41.0, 60.0]]), abs=3.0)

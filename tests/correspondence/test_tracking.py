from itertools import count

import numpy as np
import pytest

from frot import InputError
from frot.correspondence import Matcher
from tests.correspondence.small import SIDE, Counting, cat

POINTS = np.array([[60.0, 64.0], [80.0, 50.0]])


def tracking(**more):
    counting = Counting()
    return counting, Matcher(counting, side=SIDE, device="numpy", **more)


@pytest.mark.parametrize("follow", ["first", "previous"])
def test_points_are_followed_and_frames_seen_once(follow):
    counting, matcher = tracking()
    frames = [cat(x=60 + 8 * step) for step in range(4)]
    tracked = list(matcher.track(frames, POINTS, follow=follow))
    assert [now.frame for now in tracked] == [0, 1, 2, 3]
    assert counting.seen == 4
    for step, now in enumerate(tracked):
        assert now.points == pytest.approx(POINTS - [8.0 * step, 0.0], abs=2.0)
    assert tracked[0].match is None
    np.testing.assert_array_equal(tracked[0].confidence, 1.0)
    last = tracked[3].match
    assert last is not None
    assert np.array_equal(last.source.pixels, frames[0 if follow == "first" else 2])
    sure = np.array([now.confidence for now in tracked])
    if follow == "previous":
        assert (np.diff(sure, axis=0) <= 0.0).all()
    else:
        np.testing.assert_array_equal(sure[3], last.transfer(POINTS).confidence)


def test_frames_are_read_as_they_are_needed():
    counting, matcher = tracking()
    endless = (cat(x=60 + 8 * step) for step in count())
    tracked = matcher.track(endless, POINTS)
    assert counting.seen == 0
    next(tracked)
    assert next(tracked).frame == 1
    assert counting.seen == 2


def test_what_cannot_be_followed():
    _, matcher = tracking()
    with pytest.raises(InputError, match="frames: str is not a list"):
        matcher.track("video.mp4", POINTS)
    with pytest.raises(InputError, match="follow"):
        matcher.track([cat()], POINTS, follow="last")
    with pytest.raises(InputError, match="outside"):
        list(matcher.track([cat()], [[500.0, 0.0]]))
    assert list(matcher.track([], POINTS)) == []

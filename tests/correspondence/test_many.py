"""Many pairs are those one by one, in their order; points go from frame to frame."""

from __future__ import annotations

from itertools import count, islice

import numpy as np
import pytest
from PIL import Image

from frot import InputError
from frot.correspondence import Matcher
from tests.correspondence.small import SIDE, Counting, cat

POINTS = np.array([[60.0, 64.0], [80.0, 50.0]])


def test_pairs_come_in_their_order_and_photographs_are_seen_once(tmp_path):
    counting = Counting()
    matcher = Matcher(counting, side=SIDE, device="numpy")
    photos = [cat(x=60 + 8 * step) for step in range(3)]
    for number, photo in enumerate(photos):
        Image.fromarray((photo * 255).astype(np.uint8)).save(tmp_path / f"{number}.png")
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    pairs = [(paths[0], paths[1]), (paths[0], paths[2]), (str(paths[1]), paths[2])]
    found = list(matcher.many(pairs, ahead=2))
    assert counting.seen == 3
    for match, pair in zip(found, pairs, strict=True):
        alone = matcher(*pair)
        assert np.array_equal(match.source.pixels, alone.source.pixels)
        assert np.array_equal(match.transfer(POINTS).points, alone.transfer(POINTS).points)


def test_an_iterator_without_end_is_read_some_pairs_ahead():
    asked = []

    def pairs():
        for number in count():
            asked.append(number)
            yield cat(), cat(x=68)

    matcher = Matcher(Counting(), side=SIDE, device="numpy")
    assert len(list(islice(matcher.many(pairs(), ahead=2), 2))) == 2
    assert len(asked) <= 5


def test_a_photograph_that_cannot_be_read_ends_it_where_it_stands(tmp_path):
    matcher = Matcher(Counting(), side=SIDE, device="numpy")
    matches = matcher.many([(cat(), cat()), (cat(), tmp_path / "none.png")])
    assert next(matches).transfer(POINTS).points == pytest.approx(POINTS, abs=1.0)
    with pytest.raises(InputError, match=r"none\.png"):
        next(matches)


@pytest.mark.parametrize(
    ("pairs", "options", "words"),
    [
        ("a.jpg", {}, "pairs: str is not a list"),
        (3, {}, "pairs: int is not a list"),
        ([("a.jpg",)], {}, "pairs: number 0 is not a pair"),
        ([], {"ahead": 0}, "ahead: must be a whole number"),
    ],
)
def test_bad_input_is_one_sentence(pairs, options, words):
    matcher = Matcher(Counting(), side=SIDE, device="numpy")
    with pytest.raises(InputError, match=words):
        list(matcher.many(pairs, **options))


def test_no_pairs_are_no_matches():
    assert list(Matcher(Counting(), side=SIDE, device="numpy").many([])) == []


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

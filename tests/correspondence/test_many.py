"""Many pairs are those one by one, in their order."""

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
    matcher = Matcher(counting, side=SIDE, device="cpu", centres="nominal")
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

    matcher = Matcher(Counting(), side=SIDE, device="cpu")
    assert len(list(islice(matcher.many(pairs(), ahead=2), 2))) == 2
    assert len(asked) <= 5


def test_a_photograph_that_cannot_be_read_ends_it_where_it_stands(tmp_path):
    matcher = Matcher(Counting(), side=SIDE, device="cpu")
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
    matcher = Matcher(Counting(), side=SIDE, device="cpu")
    with pytest.raises(InputError, match=words):
        list(matcher.many(pairs, **options))


def test_no_pairs_are_no_matches():
    assert list(Matcher(Counting(), side=SIDE, device="cpu").many([])) == []

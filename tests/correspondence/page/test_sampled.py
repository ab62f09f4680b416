from dataclasses import replace

import numpy as np
import pytest

from frot.correspondence._feature_map import Grid
from frot.correspondence._page._sampled import sample
from tests.correspondence.fake_match import FakePhoto, FakeTransfer, fake_match


def unpacked(sampled):
    span = sampled.high - sampled.low
    return sampled.low + sampled.places / 65_535 * span, sampled.sure / 255


@pytest.mark.parametrize(("most", "step"), [(30_000, 2), (12_100, 3), (500, 15)])
def test_what_is_kept_is_what_transfer_says(most, step):
    match = fake_match()
    sampled = sample(match, most)
    assert sampled.step == step
    assert sampled.across * sampled.down <= most
    assert (sampled.across, sampled.down) == (-(-360 // step), -(-300 // step))
    k = np.arange(len(sampled.places))
    points = step * np.stack([k % sampled.across, k // sampled.across], axis=1)
    places, sure = unpacked(sampled)
    moved = match.transfer(points)
    assert places == pytest.approx(moved.points, abs=0.01)
    assert sure == pytest.approx(moved.confidence, abs=0.5 / 255 + 1e-9)


def test_a_small_photograph_has_every_pixel():
    match = fake_match()
    small = replace(match, source=FakePhoto(match.source.pixels[:40, :50], "small"))
    sampled = sample(small)
    assert (sampled.step, sampled.across, sampled.down) == (1, 50, 40)


def test_everything_may_go_to_one_place():
    class Still:
        source = FakePhoto(np.zeros((4, 6, 3)), "still")
        source_grid = target_grid = Grid(1, 1, 8.0, 8.0)

        def transfer(self, points):
            return FakeTransfer(np.full((len(points), 2), 7.0), np.ones(len(points)))

    places, sure = unpacked(sample(Still()))  # type: ignore[arg-type]
    assert places == pytest.approx(np.full((24, 2), 7.0), abs=1e-5)
    assert (sure == 1.0).all()

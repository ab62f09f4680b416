from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from frot import InputError
from frot.correspondence.pictures import grid_points, object_points
from tests.correspondence.fake_match import FakeMatch, fake_match


@dataclass(frozen=True, eq=False)
class Uniform(FakeMatch):
    @cached_property
    def a(self):
        return np.full(self.source_grid.count, 1.0 / self.source_grid.count)


def uniform() -> Any:
    match = fake_match()
    return Uniform(match.source, match.target, match.warp)


@pytest.mark.parametrize("size", [(300, 360), (90, 700), (500, 20), (1, 1)])
@pytest.mark.parametrize("count", [1, 4, 10])
def test_a_grid_is_even_and_inside(size, count):
    points = grid_points(size, count)
    assert len(set(points[:, 0 if size[1] >= size[0] else 1])) == min(count, max(size))
    assert (points >= 0.0).all()
    assert (points <= [size[1] - 1, size[0] - 1]).all()


def test_a_grid_is_centred():
    points = grid_points((300, 360), 6)
    assert points.mean(axis=0) == pytest.approx([179.5, 149.5])
    assert len(points) == 30


@pytest.mark.parametrize("count", [1, 5, 16, 100])
def test_points_of_the_object_are_on_it(count):
    match = fake_match()
    points = object_points(match, count)
    assert 0.7 * count <= len(points) <= 1.3 * count + 1
    cells = match.source_grid.centres / match.source_ratio
    nearest = ((points[:, None] - cells) ** 2).sum(axis=2).argmin(axis=1)
    assert (match.a[nearest] == match.a.max()).all()
    assert (np.diff(points[:, 1]) > 0.0).all()


def test_without_an_object_points_are_the_surest_that_are_apart():
    match = uniform()
    points = object_points(match, 20)
    assert len(points) == 20
    assert (points >= [36, 30]).all()
    assert (points <= [323, 269]).all()
    assert (np.diff(points[:, 1]) > 0.0).all()
    apart = np.linalg.norm(points[:, None] - points, axis=2) + 1e9 * np.eye(20)
    assert apart.min() >= 0.5 * np.sqrt(287 * 239 / 20)
    others = match.transfer(grid_points((300, 360), 20)).confidence
    assert match.transfer(points).confidence.mean() > others.mean() + 0.1


def test_nothing_to_choose():
    with pytest.raises(InputError, match="grid: 0"):
        grid_points((10, 10), 0)
    with pytest.raises(InputError, match="points: 0"):
        object_points(fake_match(), 0)

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from frot.api import _pairwise_table
from frot.api._pairwise_table import Effort, Tile, cut_tiles

sizes = st.lists(st.integers(1, 2000), min_size=1, max_size=40).map(np.array)
efforts = st.builds(Effort, st.sampled_from([1e-3, 1e-2, 3.0]), st.sampled_from([0.0, 1e-7, 1e-5]))


def positions(tiles: list[Tile], diagonal: bool) -> list[tuple[int, int]]:
    return [pair for tile in tiles for pair in tile.pairs(diagonal)]


@given(sizes, sizes, efforts, st.integers(1, 5000))
def test_a_rectangle_has_every_pair_once(rows, cols, effort, width):
    tiles, _ = cut_tiles(rows, cols, effort, width, diagonal=False)
    found = positions(tiles, diagonal=False)
    assert sorted(found) == [(i, j) for i in range(len(rows)) for j in range(len(cols))]


@given(sizes, efforts, st.integers(1, 5000), st.booleans())
def test_a_triangle_has_every_pair_once(rows, effort, width, diagonal):
    tiles, _ = cut_tiles(rows, None, effort, width, diagonal)
    found = positions(tiles, diagonal)
    count = range(len(rows))
    assert sorted(found) == [(i, j) for i in count for j in count if i < j + diagonal]
    assert len(found) == sum(tile.count_pairs(diagonal) for tile in tiles)
    assert all(tile.count_pairs(diagonal) == len(list(tile.pairs(diagonal))) for tile in tiles)


@given(sizes, efforts, st.integers(1, 5000))
def test_no_tile_is_too_much_unless_it_is_one_pair(rows, effort, width):
    tiles, seconds = cut_tiles(rows, None, effort, width, diagonal=False)
    assert seconds == sorted(seconds, reverse=True)
    for tile, cost in zip(tiles, seconds, strict=True):
        many = tile.count_pairs(diagonal=False) > 1
        assert cost <= _pairwise_table.MOST_SECONDS or not many
        clouds = set(tile.rows) | set(tile.cols)
        assert 8 * width * rows[list(clouds)].sum() <= _pairwise_table.MOST_BYTES or not many


def test_small_pairs_share_a_tile_and_its_clouds():
    """What is sent is a few clouds a tile, not two a pair."""
    rows = np.full(200, 20)
    tiles, _ = cut_tiles(rows, None, Effort(5e-3, 0.0), 10, diagonal=False)
    pairs = sum(tile.count_pairs(diagonal=False) for tile in tiles)
    clouds = sum(len({*tile.rows, *tile.cols}) for tile in tiles)
    assert pairs == 200 * 199 / 2
    assert len(tiles) < 2 * _pairwise_table.TILES
    assert clouds < pairs / 2


def test_one_cloud_has_no_pairs():
    assert cut_tiles(np.array([5]), None, Effort(1.0, 1.0), 3, diagonal=False) == ([], [])
    assert cut_tiles(np.array([5]), None, Effort(1.0, 0.0), 3, diagonal=True)[1] == [1.0]

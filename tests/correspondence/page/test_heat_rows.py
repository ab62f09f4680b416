from types import SimpleNamespace

import numpy as np
import pytest

from frot.correspondence._feature_map import Grid
from frot.correspondence._page._heat_rows import Reach, heat_rows, reach_of
from tests.correspondence.fake_match import fake_match

GRID = Grid(18, 25, 8.0, 8.0)


def random_scores(n=30, power=1.0):
    return np.random.default_rng(0).random((n, GRID.count)) ** power


def test_all_are_kept_where_there_is_room():
    scores = random_scores()
    rows = heat_rows(scores, GRID)
    assert rows.cells.shape == (30, GRID.count)
    for cell in (0, 29):
        expected = scores[cell].reshape(18, 25) / scores[cell].max()
        assert rows.row(cell, GRID) == pytest.approx(expected, abs=0.5 / 255 + 1e-6)


def test_the_best_are_kept_and_the_others_averaged():
    scores = random_scores()
    rows = heat_rows(scores, GRID, most=30 * 50)
    assert rows.cells.shape == (30, 50)
    assert rows.block == 3
    scaled = scores[7] / scores[7].max()
    best = set(np.argsort(scaled)[-50:])
    assert set(rows.cells[7].tolist()) == best
    made = rows.row(7, GRID).ravel()
    y, x = np.divmod(np.arange(GRID.count), GRID.w)
    block = (y // 3) * 9 + x // 3
    for cell in range(GRID.count):
        others = [k for k in np.flatnonzero(block == block[cell]) if k not in best]
        expected = scaled[cell] if cell in best else scaled[others].mean()
        assert made[cell] == pytest.approx(expected, abs=0.5 / 255 + 1e-6)


def test_nothing_and_negative_scores_are_cold():
    rows = heat_rows(np.stack([np.zeros(GRID.count), -np.ones(GRID.count)]), GRID)
    assert not rows.row(0, GRID).any()
    assert not rows.row(1, GRID).any()


def test_the_largest_stays_small():
    grid = Grid(57, 75, 4.0, 11.0)
    n = 400  # of 4,275; as many bytes a row
    scores = np.random.default_rng(0).random((n, grid.count), dtype=np.float32) ** 8
    rows = heat_rows(scores, grid, most=400_000 * n // grid.count)
    size = rows.cells.nbytes + rows.scores.nbytes + rows.rest.nbytes
    assert rows.cells.dtype == np.uint16
    assert size / n * grid.count * 4 / 3 < 2.5e6


def test_more_cells_than_two_bytes_count():
    grid = Grid(2, 40_000, 1.0, 1.0)
    scores = np.zeros((1, grid.count))
    scores[0, 79_999] = 3.0
    assert heat_rows(scores, grid).row(0, grid)[1, -1] == 1.0


def test_the_heat_of_a_point_is_that_of_the_match():
    match = fake_match()
    grid, ratio = match.target_grid, match.target_ratio
    rows = heat_rows(match.scores, grid)
    for point in np.random.default_rng(0).uniform([0, 0], [359, 299], (20, 2)):
        made = rows.heat(point * match.source_ratio, match.source_grid, grid)
        heat = match.heatmap(point)
        # At the pixels next to the centres of the cells; between them both are smooth.
        x, y = (grid.centres / ratio).round().astype(int).T
        inside = (x < 472) & (y < 360)
        seen = heat[y[inside], x[inside]]
        assert made.ravel()[inside] == pytest.approx(seen, abs=0.1)
        assert np.abs(made.ravel()[inside] - seen).mean() < 0.01


@pytest.mark.parametrize(
    ("mode", "radius", "expected"),
    [
        ("near", None, (1.0, False)),
        ("soft", 12.0, (1.5, False)),
        ("argmax", None, (0.0, False)),
        ("boxes", None, (9 / 8, True)),
    ],
)
def test_a_match_says_which_cells_it_reads(mode, radius, expected):
    reading = SimpleNamespace(mode=mode, radius=radius)
    match = SimpleNamespace(transferring=reading, source_grid=Grid(9, 9, 8.0, 19.0))
    assert reach_of(match) == expected
    assert reach_of(fake_match()) == (1.0, False)


def test_which_cells_count():
    source = Grid(5, 5, 8.0, 19.0)
    scores = np.eye(25)
    rows = heat_rows(scores, source)
    at = np.array([16.0, 16.0])
    for reach, cells in (
        (Reach(0.0, False), [12]),
        (Reach(1.0, False), [7, 11, 12, 13, 17]),
        (Reach(1.0, True), [6, 7, 8, 11, 12, 13, 16, 17, 18]),
    ):
        assert np.flatnonzero(rows.heat(at, source, source, reach)).tolist() == cells

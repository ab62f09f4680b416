import numpy as np
import pytest

from frot.correspondence import Matcher, TorchBackbone
from frot.correspondence._feature_map import Grid
from frot.correspondence._page._heat_rows import heat_rows
from frot.correspondence._transfer import TRANSFERS
from tests.correspondence.fake_match import fake_match
from tests.correspondence.small import SIDE, cat, convolutions

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
    scores = np.stack([np.zeros(GRID.count), -np.ones(GRID.count), np.arange(GRID.count)])
    rows = heat_rows(scores, GRID)
    assert not rows.row(0, GRID).any()
    assert not rows.row(1, GRID).any()
    assert rows.shares[:2].tolist() == [0.0, 0.0]
    assert rows.shares[2] == pytest.approx(2.0 / GRID.count)


def test_scores_however_small_are_votes():
    scores = np.float32(1e-36) * random_scores().astype(np.float32)
    rows = heat_rows(scores, GRID)
    assert rows.row(0, GRID).max() == 1.0


def test_where_nothing_votes_all_is_even():
    rows = heat_rows(np.zeros((30, GRID.count)), GRID)
    assert rows.heat(np.array([8.0, 8.0]), Grid(5, 6, 8.0, 8.0), GRID).tolist() == [[1.0] * 25] * 18


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


@pytest.fixture(scope="module")
def matched():
    """Matches of a cat with itself shifted, at ratio 1: centres of cells are pixels."""
    backbone = TorchBackbone(convolutions())
    mask = np.zeros((SIDE, SIDE))
    mask[16:60, 24:70] = 1.0

    def match(transfer, masked, **more):
        given = {"side": SIDE, "device": "cpu", "transfer": transfer, **more}
        masks = {"source_mask": mask} if masked else {}
        return Matcher(backbone, **given)(cat(), cat(x=67, y=45), **masks)

    return match


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("transfer", "more"),
    [
        *((transfer, {}) for transfer in TRANSFERS),
        ("near", {"radius": 20.0}),
        ("median", {"method": "nn"}),
    ],
)
def test_the_page_shows_the_heat_map_of_a_real_match(matched, transfer, more, masked):
    match = matched(transfer, masked, **more)
    grid = match.target_grid
    assert match.source_ratio == match.target_ratio == 1.0
    rows = heat_rows(match.scores, grid)
    x, y = grid.centres.astype(int).T
    # In the mask, beside it, far off it, between the cells, in a corner.
    for point in ([40.0, 32.0], [77.0, 40.0], [120.0, 110.0], [51.5, 43.2], [0.0, 0.0]):
        heat = match.heatmap(point)[y, x].reshape(grid.h, grid.w)
        assert heat.max() == 1.0
        made = rows.heat(np.array(point), match.source_grid, grid)
        assert made == pytest.approx(heat, abs=1.5 / 255)


def test_which_cells_count():
    source = Grid(5, 5, 8.0, 19.0)
    scores = np.eye(25)
    for off, cells in (((), [7, 11, 12, 13, 17]), ((7, 12), [11, 13, 17])):
        scores[off, :] = 0.0
        rows = heat_rows(scores, source)
        assert rows.around(np.array([16.0, 16.0]), source) == cells
        assert np.flatnonzero(rows.heat(np.array([16.0, 16.0]), source, source)).tolist() == cells
    # Beyond the last cells, and where none is within a stride: the nearest, all of them.
    assert rows.around(np.array([50.0, 50.0]), source) == [24]
    scores[[6, 7, 8, 11, 12, 13, 16, 17, 18], :] = 0.0
    rows = heat_rows(scores, source)
    assert rows.around(np.array([16.0, 16.0]), source) == [2, 10, 14, 22]

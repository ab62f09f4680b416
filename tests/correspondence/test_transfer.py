import numpy as np
import pytest
import torch

from frot._base.arrays import Home
from frot.correspondence._features import Grid
from frot.correspondence.transfer import TRANSFERS, Transferring

NUMPY = Home.of(np.zeros(1))
SOURCE, TARGET = Grid(7, 9, 8.0, 27.0), Grid(8, 6, 8.0, 27.0)


def random_scores(seed=0, source=SOURCE, target=TARGET):
    return np.random.default_rng(seed).random((source.count, target.count)) ** 6


def points(count=12, seed=0):
    return np.random.default_rng(seed).uniform([0, 0], [64, 48], (count, 2))


def landed(row, grid, window):
    """Where one cell goes: the best cell, or the centre of gravity about it."""
    best = divmod(int(row.argmax()), grid.w)
    total, where = 0.0, np.zeros(2)
    for y in range(grid.h):
        for x in range(grid.w):
            if max(abs(y - best[0]), abs(x - best[1])) <= window // 2:
                total += row[y * grid.w + x]
                where += row[y * grid.w + x] * 8.0 * np.array([x, y])
    return where / total


def plain(point, scores, mode):
    """One point by itself."""
    centres = SOURCE.centres
    apart = np.linalg.norm(centres - point, axis=1)
    window = 3 if mode == "median" else 1
    if mode == "argmax":
        cells = [int(apart.argmin())]
    elif mode == "boxes":
        cells = [
            i for i, (left, top, right, bottom) in enumerate(SOURCE.boxes)
            if left <= point[0] <= right and top <= point[1] <= bottom
        ]  # fmt: skip
    else:
        cells = range(SOURCE.count)
    moves = np.array([landed(scores[i], TARGET, window) - centres[i] for i in cells])
    if mode != "median":
        return point + moves.mean(axis=0)
    weights = np.exp(-0.5 * (apart / 12.0) ** 2)
    weights[weights < 0.01 * weights.max()] = 0.0
    moved = []
    for axis in (0, 1):
        # Half of the weight on either side: the least sum of distances.
        sums = [(weights * np.abs(moves[:, axis] - move)).sum() for move in moves[:, axis]]
        moved.append(moves[int(np.argmin(sums)), axis])
    return point + moved


@pytest.mark.parametrize("mode", TRANSFERS)
def test_point_by_point(mode):
    scores = random_scores()
    moved = Transferring(scores, SOURCE, TARGET, NUMPY, mode)(points())
    expected = np.array([plain(point, scores, mode) for point in points()])
    assert moved.points == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("mode", TRANSFERS)
def test_torch_agrees(mode):
    scores = random_scores()
    home = Home.of(torch.zeros(1, dtype=torch.float64))
    ours = Transferring(scores, SOURCE, TARGET, NUMPY, mode)
    theirs = Transferring(torch.tensor(scores), SOURCE, TARGET, home, mode)
    assert theirs(points()).points == pytest.approx(ours(points()).points, abs=1e-9)
    assert theirs(points()).confidence == pytest.approx(ours(points()).confidence, abs=1e-9)
    heat = ours.heatmap(points()[0], (90, 70), 0.7)
    assert theirs.heatmap(points()[0], (90, 70), 0.7) == pytest.approx(heat, abs=1e-6)


def shifted(grid, x, y):
    """Scores that send every cell x and y cells on, where there are such cells."""
    scores = np.zeros((grid.count, grid.count))
    for cell in range(grid.count):
        row, column = divmod(cell, grid.w)
        if 0 <= row + y < grid.h and 0 <= column + x < grid.w:
            scores[cell, (row + y) * grid.w + column + x] = 1.0
    return scores


@pytest.mark.parametrize("mode", TRANSFERS)
def test_a_shift_is_exact_and_certain(mode):
    grid = Grid(16, 16, 8.0, 27.0)
    moved = Transferring(shifted(grid, 2, -1), grid, grid, NUMPY, mode)(points() + 40.0)
    assert moved.points == pytest.approx(points() + 40.0 + [16.0, -8.0], abs=1e-9)
    assert moved.confidence == pytest.approx(1.0)


def test_medians_stand_two_fifths_of_cells_astray():
    grid = Grid(20, 20, 8.0, 27.0)
    scores = shifted(grid, 1, 2)
    row, column = np.divmod(np.arange(grid.count), grid.w)
    astray = (2 * row + column) % 5 < 2
    lost = np.random.default_rng(0).integers(0, grid.count, astray.sum())
    scores[astray] = np.eye(grid.count)[lost]
    where = np.random.default_rng(1).uniform(40, 110, (50, 2))

    def off(mode):
        moved = Transferring(scores, grid, grid, NUMPY, mode)(where).points
        return np.abs(moved - where - [8.0, 16.0]).max(axis=1)

    assert off("median").max() <= 1e-9
    assert np.median(off("boxes")) > 8.0


@pytest.mark.parametrize("mode", TRANSFERS)
def test_cells_without_votes_move_nothing(mode):
    grid = Grid(16, 16, 8.0, 27.0)
    scores = shifted(grid, 1, 0)
    row, column = np.divmod(np.arange(grid.count), grid.w)
    inside = (row >= 5) & (row <= 10) & (column >= 5) & (column <= 10)
    scores[~inside] = 0.0
    # At the edge of the cells that vote, and well off them.
    where = np.array([[40.0, 40.0], [62.0, 81.0], [5.0, 5.0], [120.0, 60.0]])
    moved = Transferring(scores, grid, grid, NUMPY, mode)(where)
    assert moved.points == pytest.approx(where + np.array([8.0, 0.0]), abs=1e-9)
    assert moved.confidence[:2] == pytest.approx(1.0)


def test_no_votes_at_all_are_no_error():
    moved = Transferring(np.zeros((63, 48)), SOURCE, TARGET, NUMPY)(points())
    assert np.isfinite(moved.points).all()
    assert moved.confidence.max() < 0.5


@pytest.mark.parametrize("mode", TRANSFERS)
def test_no_points(mode):
    moved = Transferring(random_scores(), SOURCE, TARGET, NUMPY, mode)(np.zeros((0, 2)))
    assert moved.points.shape == (0, 2)
    assert moved.confidence.shape == (0,)


def test_many_points_are_as_few():
    transferring = Transferring(random_scores(), SOURCE, TARGET, NUMPY)
    many = points(4_500)
    whole, last = transferring(many), transferring(many[-3:])
    assert whole.points[-3:] == pytest.approx(last.points)
    assert whole.confidence[-3:] == pytest.approx(last.confidence)


def test_confidence_falls_with_what_lies_elsewhere():
    scores = np.zeros((63, 48))
    scores[:, 20] = 3.0
    scores[:, 47] = 1.0
    moved = Transferring(scores, SOURCE, TARGET, NUMPY, "argmax")([[24.0, 24.0]] * np.ones((2, 1)))
    # Cells 20 and 47 are five columns and more than two cells apart.
    assert moved.confidence == pytest.approx(0.75)


def test_heat_is_where_the_votes_are():
    scores = np.zeros((63, 48))
    scores[:, 2 * TARGET.w + 3] = 1.0
    transferring = Transferring(scores, SOURCE, TARGET, NUMPY)
    heat = transferring.heatmap(np.array([20.0, 20.0]), (128, 96), 0.5)
    assert heat.shape == (128, 96)
    assert heat.dtype == np.float32
    # Column 3 and row 2, 8 pixels apart at half the size.
    assert np.unravel_index(heat.argmax(), heat.shape) == (32, 48)
    assert heat.max() == 1.0
    # Bilinear: half-way to the next cell there is half the heat.
    assert heat[32, 56] == pytest.approx(0.5)
    assert heat[60, 80] == 0.0


def test_support_is_the_share_of_the_cells_around_that_go_along():
    rng = np.random.default_rng(5)
    grid = Grid(11, 13, 8.0, 43.0)
    # Every cell goes to itself, or anywhere.
    best = np.where(rng.random(143) < 0.6, np.arange(143), rng.integers(0, 143, 143))
    scores = np.eye(143)[best].astype(np.float32)
    places = rng.uniform(0, 80, (40, 2))
    read = Transferring(scores, grid, grid, NUMPY)
    # No cell is two cells away to the last digit.
    moved = read.moved(places) + 0.3
    apart = np.linalg.norm(places[:, None] + read.moves - moved[:, None], axis=2)
    expected = (read.around(places) * (apart <= 16.0)).sum(axis=1)
    found = read.support(places, moved)
    # Cells beyond four strides weigh a little in the one, and not in the other.
    np.testing.assert_allclose(found, expected, atol=0.01)
    assert 0.1 < found.min() < found.max() < 1.0
    # Whatever the mode, cells around a point are asked, and not only the closest.
    other = Transferring(scores, grid, grid, NUMPY, "argmax")
    np.testing.assert_array_equal(other.support(places, moved), found)


def test_all_support_or_none():
    grid = Grid(6, 6, 8.0, 43.0)
    read = Transferring(np.eye(36, dtype=np.float32), grid, grid, NUMPY)
    places = np.array([[10.0, 12.0], [40.0, 0.0]])
    assert read.support(places, places).tolist() == [1.0, 1.0]
    assert read.support(places, places + 30.0).tolist() == [0.0, 0.0]
    # Without any point there is nothing to say.
    assert read.support(places[:0], places[:0]).shape == (0,)

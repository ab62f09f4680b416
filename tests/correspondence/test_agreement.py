from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from frot._base.arrays import Home, to_numpy
from frot.correspondence._features import Grid
from frot.correspondence.agreement import (
    NARROW,
    RULE,
    Matches,
    hough,
    hough_bins,
    reflection,
    rigidity,
)

HOUGH_SOURCE, HOUGH_TARGET = Grid(6, 8, 8.0, 19.0), Grid(7, 5, 8.0, 19.0)
HOUGH = HOUGH_SOURCE, HOUGH_TARGET
SIZES = (45, 60), (52, 40)


NUMPY = Home.of(np.zeros(1))


def plain_hough(
    votes, source, target, source_size, target_size, smoothing=(3.5 / 2.354, 3), reflected=False
):
    """Every pair of cells by itself."""
    cell = np.sqrt((source_size[1] + target_size[1]) * (source_size[0] + target_size[0]) / 8192)
    counts = np.zeros([int((source_size[k] + target_size[k]) / cell) + 1 for k in (0, 1)])  # y, x
    places = np.empty((*votes.shape, 2), dtype=int)
    for i, one in enumerate(source.centres):
        for j, other in enumerate(target.centres):
            place = (np.array(source_size) - one[::-1] + other[::-1]) / cell
            if reflected:
                place[1] = (one[0] + other[0]) / cell
            places[i, j] = np.floor(place)
    np.add.at(counts, (places[..., 0], places[..., 1]), votes)
    smooth = gaussian_filter(counts, smoothing[0], radius=smoothing[1], mode="constant")
    return votes * smooth[places[..., 0], places[..., 1]]


@pytest.mark.parametrize("home", [NUMPY, Home.of(torch.zeros(1, dtype=torch.float64))])
@pytest.mark.parametrize(
    ("stride", "sizes"),
    # Bins smaller than the stride, and larger, so that several displacements share one.
    [(8.0, SIZES), (4.0, ((225, 300), (200, 280)))],
)
@pytest.mark.parametrize("reflected", [False, True])
def test_pair_by_pair(home, stride, sizes, reflected):
    source, target = (replace(grid, stride=stride) for grid in (HOUGH_SOURCE, HOUGH_TARGET))
    votes = np.random.default_rng(0).random((source.count, target.count)) ** 4
    places = source, target, sizes[0], sizes[1]
    found = hough(home.bring(votes), *places, home, reflected=reflected)
    expected = plain_hough(votes, *places, reflected=reflected)
    assert to_numpy(found) == pytest.approx(expected, rel=1e-10)


def test_bins_of_the_original():
    size, down, across = hough_bins((225, 300), (225, 300))
    assert size == pytest.approx(5.74099, abs=5e-6)
    assert (across, down) == (105, 79)
    assert pytest.approx((1.4868, 3), abs=1e-4) == NARROW
    assert hough_bins((30, 40), (50, 60))[0] == pytest.approx(np.sqrt(80 * 100 / 8192))


def test_votes_that_agree_win_over_a_stronger_one_alone():
    grid = Grid(8, 8, 8.0, 19.0)
    votes = np.zeros((64, 64))
    # All cells but those at the right vote for one column further; one is surer of a corner.
    for cell in range(64):
        if cell % 8 < 7:
            votes[cell, cell + 1] = 1.0
    votes[0, 63] = 1.5
    scores = hough(votes, grid, grid, (64, 64), (64, 64), NUMPY)
    assert votes[0].argmax() == 63
    assert scores[0].argmax() == 1
    assert (scores[votes == 0.0] == 0.0).all()


def test_scaling_votes_scales_scores_by_the_square():
    votes = np.random.default_rng(1).random((HOUGH_SOURCE.count, HOUGH_TARGET.count))
    once = hough(votes, HOUGH_SOURCE, HOUGH_TARGET, *SIZES, NUMPY)
    assert hough(3.0 * votes, HOUGH_SOURCE, HOUGH_TARGET, *SIZES, NUMPY) == pytest.approx(
        9.0 * once
    )


def test_cells_beyond_the_edge_fall_into_the_last_bins():
    # A grid that reaches well over the picture, as those of padded images do.
    grid = Grid(9, 9, 8.0, 19.0)
    votes = np.ones((81, 81))
    scores = hough(votes, grid, grid, (40, 40), (40, 40), NUMPY)
    assert np.isfinite(scores).all()
    assert (scores > 0.0).all()


def test_wider_smoothing():
    votes = np.random.default_rng(3).random((HOUGH_SOURCE.count, HOUGH_TARGET.count))
    found = hough(votes, *HOUGH, *SIZES, NUMPY, smoothing=RULE.wide)
    assert found == pytest.approx(plain_hough(votes, *HOUGH, *SIZES, RULE.wide), rel=1e-10)


def test_tempered_agreement_is_a_power_of_it():
    votes = np.random.default_rng(2).random((HOUGH_SOURCE.count, HOUGH_TARGET.count))
    half, full = (hough(votes, *HOUGH, *SIZES, NUMPY, strength) for strength in (0.5, 1.0))
    assert (half / votes) ** 2 == pytest.approx(full / votes)


def rigid(scatter, scale=1.0, home=NUMPY):
    """Rigidity where a share of 100 cells go anywhere, and the others all one cell to the right."""
    grid, rng = Grid(10, 10, 8.0, 19.0), np.random.default_rng(0)
    goes = np.roll(np.arange(100).reshape(10, 10), -1, axis=1).ravel()
    some = rng.random(100) < scatter
    goes[some] = rng.permutation(goes[some])
    votes = home.bring(scale * (np.eye(100)[goes] + 0.01))
    return rigidity(Matches.of(votes, grid, grid, home), home)


def test_what_moves_alike_is_rigid():
    found = [rigid(scatter) for scatter in (0.0, 0.3, 0.6, 1.0)]
    # The cells at the right end go to the left one.
    assert found[0] == pytest.approx(0.9**2 + 0.1**2)
    assert (np.diff(found) < 0.0).all()
    assert rigid(0.3, scale=7.0) == rigid(0.3, home=Home.of(torch.zeros(1))) == found[1]


def test_a_reflection_is_rigid_where_its_places_are_mirrored():
    grid = Grid(10, 10, 8.0, 19.0)
    votes = np.eye(100)[np.arange(100).reshape(10, 10)[:, ::-1].ravel()]
    matches = Matches.of(votes, grid, grid, NUMPY)
    assert rigidity(matches, NUMPY, reflected=True) == 1.0
    # Columns next to each other differ by two cells.
    assert rigidity(matches, NUMPY) == pytest.approx(0.1)


def reflects(votes, source, target, source_size, target_size, home):
    """What speaks for a reflection, from votes alone."""
    matches = Matches.of(votes, source, target, home)
    return reflection(votes, matches, source_size, target_size, home)


def placed(source, target, goes, share, home=NUMPY, seed=0):
    """Evidence where cells (y, x) go to goes(y, x), but for a share that go anywhere."""
    rng = np.random.default_rng(seed)
    y, x = np.divmod(np.arange(source.count), source.w)
    y, x = goes(y, x)
    on = (y >= 0) & (y < target.h) & (x >= 0) & (x < target.w) & (rng.random(source.count) >= share)
    cells = np.where(on, y * target.w + x, rng.integers(target.count, size=source.count))
    votes = np.eye(target.count)[cells] + 0.05 * rng.random((source.count, target.count))
    sizes = (8 * source.h, 8 * source.w), (8 * target.h, 8 * target.w)
    return reflects(home.bring(votes), source, target, *sizes, home)


@pytest.mark.parametrize("home", [NUMPY, Home.of(torch.zeros(1, dtype=torch.float64))])
@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("shift", [-3, 0, 2])
def test_things_that_face_opposite_ways_are_told(home, share, shift):
    source, target = Grid(16, 20, 8.0, 19.0), Grid(18, 17, 8.0, 19.0)
    ways = (lambda y, x: (y + 1, x + shift)), (lambda y, x: (y + 1, 18 + shift - x))
    same, opposite = (placed(source, target, way, share, home) for way in ways)
    assert same < RULE.reflected - 0.3
    assert opposite > RULE.reflected + 0.3


def test_what_is_its_own_mirror_image_stays_as_it_is():
    grid = Grid(20, 24, 8.0, 19.0)
    # Left goes to left and right to right, though each cell's mirror image has as many votes.
    cells = np.arange(grid.count).reshape(20, 24)
    votes = np.eye(grid.count)[cells.ravel()]
    other = np.eye(grid.count)[cells[:, ::-1].ravel()]
    size = (160, 192)
    assert reflects(votes + 0.95 * other, grid, grid, size, size, NUMPY) < RULE.reflected
    assert reflects(0.8 * votes + other, grid, grid, size, size, NUMPY) > RULE.reflected


@pytest.mark.parametrize("votes", [np.zeros((48, 35)), np.ones((48, 35))], ids=["none", "even"])
def test_where_nothing_is_known_nothing_is_reflected(votes):
    assert reflects(votes, *HOUGH, *SIZES, NUMPY) < RULE.reflected
    line = Grid(6, 1, 8.0, 19.0)
    assert reflects(np.eye(6), line, line, (48, 8), (48, 8), NUMPY) < RULE.reflected


def test_evidence_does_not_depend_on_the_size_of_votes():
    votes = np.random.default_rng(4).random((HOUGH_SOURCE.count, HOUGH_TARGET.count)) ** 3
    one = reflects(votes, *HOUGH, *SIZES, NUMPY)
    assert reflects(1e-3 * votes, *HOUGH, *SIZES, NUMPY) == pytest.approx(one)


def test_mutual_matches_lead_back_to_within_a_cell_in_both_directions():
    grid = Grid(4, 5, 8.0, 19.0)
    cells = np.arange(grid.count)
    start = 6  # row 1, column 1
    for back, near in [(6, True), (7, True), (11, True), (0, True), (8, False), (16, False)]:
        there = np.full(grid.count, back)
        matches = Matches(cells, there, np.ones(grid.count, bool), grid, grid)
        assert matches.mutual[start] == near
    silent = Matches(cells, cells, cells != start, grid, grid)
    assert silent.mutual.tolist() == (cells != start).tolist()


def scattered(source, target, seed=0):
    """Matches near where they belong, of which some lead back."""
    rng = np.random.default_rng(seed)
    y, x = np.divmod(np.arange(source.count), source.w)
    y = np.clip(y + rng.integers(-2, 3, size=len(y)), 0, target.h - 1)
    x = np.clip(np.where(rng.random(len(x)) < 0.4, source.w - 1 - x, x), 0, target.w - 1)
    back = np.full(target.count, source.count - 1)
    there = y * target.w + x
    back[there] = np.arange(source.count)
    return Matches(there, back, rng.random(source.count) < 0.9, source, target)


@pytest.mark.parametrize("shape", [(6, 9), (3, 4), (2, 3)], ids=str)
def test_pairs_in_the_same_and_in_the_other_order_pair_by_pair(shape):
    (h, w), target = shape, Grid(7, 10, 8.0, 19.0)
    source = Grid(h, w, 8.0, 19.0)
    matches = scattered(source, target)
    votes = np.random.default_rng(1).random((source.count, target.count))
    sizes = (8 * source.h, 8 * source.w), (56, 80)
    found = reflection(votes, matches, *sizes, NUMPY)
    silent = replace(matches, voting=np.zeros(source.count, bool))
    least = reflection(votes, silent, *sizes, NUMPY)
    places, mutual = np.divmod(np.arange(source.count), source.w), matches.mutual
    ends = np.divmod(matches.there, target.w)
    same = other = 0
    for i, j in np.argwhere(mutual[:, None] & mutual):
        down, across = (side[j] - side[i] for side in places)
        moved_down, moved = (side[j] - side[i] for side in ends)
        if 2 <= across <= 4 and abs(down) <= 4 and abs(moved_down - down) <= 2:
            same += abs(moved - across) <= 1.5
            other += abs(moved + across) <= 1.5
    assert same or shape == (2, 3)
    expected = 0.5 * (np.log((other + 10.0) / (same + 40.0)) - np.log(10.0 / 40.0))
    assert found - least == pytest.approx(expected, abs=1e-12)


def test_rigidity_is_the_share_of_pairs_that_move_alike():
    source, target = Grid(3, 40, 8.0, 19.0), Grid(7, 40, 8.0, 19.0)
    matches = scattered(source, target)
    some = np.flatnonzero(matches.mutual)
    moves = target.centres[matches.there[some]] - source.centres[some]
    # A twentieth of 40 cells of 8 pixels.
    alike = (np.abs(moves[:, None] - moves).max(axis=-1) <= 16.0).mean()
    assert 0.1 < alike < 0.9
    assert rigidity(matches, NUMPY) == pytest.approx(alike, abs=1e-12)

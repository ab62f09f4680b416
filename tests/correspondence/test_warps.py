import numpy as np
import pytest

from frot import InputError
from frot.correspondence._warps import Warp, random_affine, random_homography, random_thin_plate

SIZE = (120, 160)
RANDOM = [random_affine, random_homography, random_thin_plate]


def inside(count=40, seed=0):
    return np.random.default_rng(seed).uniform([30, 30], [130, 90], (count, 2))


@pytest.mark.parametrize("make", RANDOM)
def test_nothing_moves_at_strength_zero(make):
    warp = make(SIZE, strength=0.0)
    assert warp.points(inside()) == pytest.approx(inside(), abs=1e-9)
    image = np.random.default_rng(0).random((*SIZE, 3))
    assert warp.apply(image) == pytest.approx(image, abs=1e-6)


@pytest.mark.parametrize("make", RANDOM)
@pytest.mark.parametrize("seed", range(5))
def test_origins_undo_points(make, seed):
    warp = make(SIZE, strength=1.0, seed=seed)
    moved = warp.points(inside())
    assert np.abs(moved - inside()).max() > 1.0
    assert warp.origins(moved) == pytest.approx(inside(), abs=1e-6)


@pytest.mark.parametrize("make", RANDOM)
def test_a_dot_lands_where_points_says(make):
    warp = make(SIZE, strength=0.8, seed=1)
    y, x = np.mgrid[: SIZE[0], : SIZE[1]]
    for dot in inside(6):
        image = np.exp(-((x - dot[0]) ** 2 + (y - dot[1]) ** 2) / 8.0)
        seen = warp.apply(image)
        centre = np.array([(seen * x).sum(), (seen * y).sum()]) / seen.sum()
        assert centre == pytest.approx(warp.points(dot[None])[0], abs=0.5)


@pytest.mark.parametrize("make", RANDOM)
def test_seeds_decide(make):
    one, same, other = (make(SIZE, seed=seed).points(inside()) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert np.abs(one - other).max() > 1.0


def test_a_shift_moves_pixels_exactly():
    image = np.random.default_rng(0).random(SIZE)
    assert np.array_equal(Warp.shift(8, 16).apply(image)[16:, 8:], image[:-16, :-8])


def test_another_size_and_integers():
    image = np.arange(60, dtype=np.uint8).reshape(6, 10)
    warped = Warp().apply(image, size=(4, 12))
    assert warped.dtype == np.uint8
    assert np.array_equal(warped[:, :10], image[:4])
    assert np.array_equal(warped[:, 11], image[:4, 9])  # beyond the edge, as at the edge


def test_a_thin_plate_goes_through_its_targets_after_a_homography_too():
    plate = random_thin_plate(SIZE, random_state=4)
    both = Warp(random_homography(SIZE, random_state=5).matrix, plate.anchors, plate.bend)
    p = inside()
    assert both.points(p) == pytest.approx(Warp(both.matrix).points(plate.points(p)))
    assert both.origins(both.points(p)) == pytest.approx(p, abs=1e-6)


def test_what_folds_is_refused():
    held = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], [100.0, 100.0], [50.0, 50.0]])
    moved = held.copy()
    moved[4, 0] += 90.0
    with pytest.raises(InputError, match="folds"):
        Warp.thin_plate(held, moved).apply(np.zeros((100, 100)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: random_affine(SIZE, strength=2.0), "strength: 2.0"),
        (lambda: random_thin_plate(SIZE, anchors=1), "anchors: 1"),
        (lambda: Warp.thin_plate(np.eye(2), np.eye(3)), "targets:"),
        (lambda: Warp.thin_plate(np.eye(2), np.eye(2)), "on a line"),
        (lambda: Warp().points([1.0, 2.0]), "points: shape"),
        (lambda: Warp().apply(np.zeros(3)), "image: has 1 axes"),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(InputError, match=text):
        call()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_a_warped_photograph_is_of_the_same_type(dtype):
    image = (255 * np.random.default_rng(0).random((20, 30, 3))).astype(dtype)
    warped = Warp.shift(0.5, 0.0).apply(image)
    assert warped.dtype == dtype
    between = (image[:, :-1].astype(float) + image[:, 1:]) / 2
    assert np.abs(warped[:, 1:].astype(float) - between).max() <= (
        0.5 if dtype().dtype.kind == "u" else 1e-4
    )

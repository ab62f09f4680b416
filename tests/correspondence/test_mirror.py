import numpy as np
import pytest

from frot._base.arrays import Home
from frot.correspondence._features import FeatureMap, Grid
from frot.correspondence._mirror import (
    at_cells,
    mirrored_cells,
    mirrored_grid,
    mirrored_image,
    mirrored_width,
)


def sampled(image, stride, start=0):
    """A layer that sees the pixels at multiples of its stride, from one of the first on."""
    pixels = np.moveaxis(image[start::stride, start::stride], -1, 0)
    return FeatureMap(str(stride), pixels, stride, 1, start=(float(start), float(start)))


@pytest.mark.parametrize(("stride", "start"), [(8, 0), (8, 3), (6, 1), (1, 0), (14, 13)])
@pytest.mark.parametrize("width", [40, 41, 47])
def test_cells_of_the_mirror_image_are_those_of_the_photograph(stride, start, width):
    image = np.random.default_rng(0).random((30, width, 3)).astype(np.float32)
    own = sampled(image, stride, start)
    wide = mirrored_width(width, own.grid)
    assert width <= wide < width + stride
    seen = sampled(mirrored_image(image, wide), stride, start)
    (found,) = at_cells([seen], 0, mirrored_grid(own.grid, wide))
    # Cells beyond the last of the mirror image have the last one's values.
    known = min(own.grid.w, seen.grid.w)
    np.testing.assert_allclose(
        found.values[:, :, ::-1][:, :, -known:], own.values[:, :, -known:], atol=1e-6
    )


def test_cells_between_pixels_are_interpolated():
    image = np.arange(33.0)[None, :, None] * np.ones((9, 1, 3))
    grid = Grid(1, 3, 8.0, 1.0, start=(0.0, 8.3))
    wide = mirrored_width(33, grid)
    seen = sampled(mirrored_image(image, wide), 8)
    (found,) = at_cells([seen], 0, mirrored_grid(grid, wide))
    np.testing.assert_allclose(found.values[0, 0, ::-1], [8.3, 16.3, 24.3], atol=1e-6)


def test_layers_that_do_not_say_where_they_look_are_taken_at_multiples_of_the_stride():
    layer = FeatureMap("a", np.arange(6.0).reshape(1, 2, 3), 8, 19)
    for one in at_cells([layer, layer], 1, Grid(2, 3, 8.0, 19.0)):
        assert one.start == (0.0, 0.0)
        np.testing.assert_array_equal(one.values, layer.values)


def test_patches_need_no_margin():
    image = np.random.default_rng(0).random((28, 42, 3)).astype(np.float32)
    patches = Grid(2, 3, 14.0, 14.0, start=(6.5, 6.5))
    assert mirrored_width(42, patches) == 42
    np.testing.assert_array_equal(mirrored_image(image, 42), image[:, ::-1])
    assert mirrored_grid(patches, 42) == patches


def test_the_margin_is_a_reflection():
    image = np.arange(5.0)[None, :, None] * np.ones((2, 1, 3))
    found = mirrored_image(image, 9)
    np.testing.assert_array_equal(found[1, :, 0], [0, 1, 2, 3, 4, 3, 2, 1, 0])


def test_cells_mirrored_twice_are_as_they_were():
    layer = sampled(np.random.default_rng(0).random((9, 13, 3)), 4)
    home = Home.of(layer.values)
    votes = np.random.default_rng(1).random((layer.grid.count, 5))
    once = mirrored_cells(votes, layer.grid, home)
    np.testing.assert_array_equal(once[: layer.grid.w], votes[: layer.grid.w][::-1])
    np.testing.assert_array_equal(mirrored_cells(once, layer.grid, home), votes)

import numpy as np
import pytest

from frot._base.arrays import Home
from frot.correspondence._features import FeatureMap
from frot.correspondence._mirror import (
    mirrored_cells,
    mirrored_image,
    mirrored_size,
    without_margin,
)


def sampled(image, strides):
    """Layers that see the pixels at multiples of their strides, from the first one on."""
    return [
        FeatureMap(str(stride), np.moveaxis(image[::stride, ::stride], -1, 0), stride, 1)
        for stride in strides
    ]


@pytest.mark.parametrize("strides", [(2, 4, 8), (4, 6), (1, 2)])
@pytest.mark.parametrize("width", [40, 41, 47])
def test_cells_of_the_mirror_image_are_those_of_the_photograph(strides, width):
    image = np.random.default_rng(0).random((30, width, 3)).astype(np.float32)
    size = mirrored_size((30, width), strides)
    assert all((side - 1) % stride == 0 for stride in strides for side in size)
    own = sampled(image, strides)
    seen = without_margin(sampled(mirrored_image(image, size), strides), own)
    for one, other in zip(own, seen, strict=True):
        assert other.grid == one.grid
        np.testing.assert_array_equal(other.values[:, :, ::-1], one.values)


def test_patches_need_no_margin():
    image = np.random.default_rng(0).random((28, 42, 3)).astype(np.float32)
    assert mirrored_size((28, 42), (14, 14)) == (28, 42)
    np.testing.assert_array_equal(mirrored_image(image, (28, 42)), image[:, ::-1])


def test_the_margin_is_a_reflection():
    image = np.arange(5.0)[None, :, None] * np.ones((2, 1, 3))
    found = mirrored_image(image, (3, 9))
    np.testing.assert_array_equal(found[2, :, 0], [0, 1, 2, 3, 4, 3, 2, 1, 0])


def test_cells_mirrored_twice_are_as_they_were():
    (layer,) = sampled(np.random.default_rng(0).random((9, 13, 3)), (4,))
    home = Home.of(layer.values)
    votes = np.random.default_rng(1).random((layer.grid.count, 5))
    once = mirrored_cells(votes, layer.grid, home)
    np.testing.assert_array_equal(once[: layer.grid.w], votes[: layer.grid.w][::-1])
    np.testing.assert_array_equal(mirrored_cells(once, layer.grid, home), votes)

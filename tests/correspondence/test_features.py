import numpy as np
import pytest
import torch
from torch.nn import functional

from frot import InputError
from frot.correspondence._features import (
    FeatureMap,
    Grid,
    check_mask,
    class_activation,
    mask_mass,
    staircase,
)


def test_cells_go_row_by_row_and_boxes_are_about_the_centres():
    grid = Grid(2, 3, 4.0, 11.0)
    assert grid.count == 6
    assert grid.centres[4].tolist() == [4.0, 4.0]
    assert grid.centres[3].tolist() == [0.0, 4.0]
    # 11 // 2 on both sides, as in the original.
    assert grid.boxes[4].tolist() == [-1.0, -1.0, 9.0, 9.0]


def test_cells_inside_an_image():
    # Boxes from 8 x - 21 to 8 x + 21 of an image of 64 x 80: at most 8 pixels beyond it.
    grid = Grid(8, 10, 8.0, 43.0)
    inside = grid.inside((64, 80)).reshape(8, 10)
    assert np.flatnonzero(inside.any(axis=1)).tolist() == [2, 3, 4, 5, 6]
    assert np.flatnonzero(inside.any(axis=0)).tolist() == [2, 3, 4, 5, 6, 7, 8]
    assert inside.sum() == 5 * 7
    # On the lower side the limit itself counts, on the upper it does not.
    assert Grid(1, 1, 8.0, 16.0).inside((1, 1)).all()
    assert Grid(1, 4, 8.0, 16.0).inside((24, 24)).tolist() == [True, True, True, False]


def test_where_no_cell_is_inside_all_are_kept():
    assert Grid(2, 2, 8.0, 483.0).inside((16, 16)).all()


def test_a_map_knows_its_grid():
    layer = FeatureMap("a", np.zeros((5, 2, 3), dtype=np.float32), 8, 43)
    assert (layer.channels, layer.grid) == (5, Grid(2, 3, 8.0, 43.0))


def test_cells_may_be_further_apart_across_than_down_and_begin_anywhere():
    grid = Grid(2, 3, 4.0, 11.0, 6.0, (1.5, -2.0))
    assert grid.centres.tolist() == [[x, y] for y in (1.5, 5.5) for x in (-2.0, 4.0, 10.0)]
    assert grid.rows(np.array([5.5])).tolist() == [1.0]
    assert grid.columns(np.array([1.0])).tolist() == [0.5]
    assert grid.spacing == pytest.approx(24.0**0.5)


def test_a_layer_is_read_where_its_cells_look():
    # A ramp over the places of the cells reads as the places asked for.
    grid = Grid(5, 6, 8.0, 19.0, 10.0, (3.5, 4.5))
    y, x = np.meshgrid(*grid.places, indexing="ij")
    layer = FeatureMap("a", np.stack([y, x]), 8.0, 19.0, column_stride=10.0, start=(3.5, 4.5))
    asked = Grid(6, 4, 5.0, 11.0, 12.0, (4.0, 6.0))
    found = layer.at(asked)
    assert found.grid == Grid(6, 4, 5.0, 19.0, 12.0, (4.0, 6.0))
    assert pytest.approx(asked.centres) == found.values.reshape(2, -1)[::-1].T


class Looking:
    """Says of any image that it is two classes, with maps that are known; keeps what it saw."""

    name = "looking"

    def __init__(self, *maps):
        self.maps = np.array(maps, dtype=np.float32)
        self.images = []

    def class_maps(self, image, classes):
        self.images.append(image)
        # Other numbers at every size, so that the sizes cannot be mixed up.
        return self.maps[:classes] * (1.0 + 0.5 * (len(self.images) - 1) * np.eye(2, 3))


FIRST = [[-1.0, 0.0, 2.0], [1.0, 3.0, 4.0]]
SECOND = [[5.0, 1.0, 1.0], [2.0, 0.5, 1.0]]


def enlarged(values, h, w):
    tensor = torch.tensor(np.asarray(values), dtype=torch.float64)[None, None]
    found = functional.interpolate(tensor, (h, w), mode="bilinear", align_corners=True)
    return found[0, 0].numpy()


def image(h=24, w=36):
    return np.random.default_rng(0).random((h, w, 3)).astype(np.float32)


def test_two_classes_at_three_sizes():
    looking = Looking(FIRST, SECOND)
    found = class_activation(looking, image(), "cam")
    total = np.zeros((24, 36))
    for size in range(3):
        each = []
        for values in (FIRST, SECOND):
            cam = enlarged(np.array(values) * (1.0 + 0.5 * size * np.eye(2, 3)), 24, 36)
            each.append((cam - cam.min()) / cam.max())
        total += np.maximum(*each)
    assert found == pytest.approx(total / (total.max() + 1e-5), abs=1e-5)
    assert found.max() <= 1.0


def test_the_largest_image_is_made_from_the_one_before():
    looking = Looking(FIRST, SECOND)
    original = image()
    class_activation(looking, original, "cam")
    middle = np.stack([enlarged(original[..., c], 36, 54) for c in range(3)], axis=-1)
    largest = np.stack([enlarged(middle[..., c], 48, 72) for c in range(3)], axis=-1)
    assert looking.images[0] == pytest.approx(original)
    assert looking.images[1] == pytest.approx(middle, abs=1e-5)
    assert looking.images[2] == pytest.approx(largest, abs=1e-5)


def test_the_top_class_alone_goes_from_0_to_1():
    looking = Looking(FIRST, SECOND)
    found = class_activation(looking, image(), "cam-top")
    cam = enlarged(FIRST, 24, 36)
    assert found == pytest.approx((cam + 1.0) / 5.0, abs=1e-5)
    assert (found.min(), found.max()) == pytest.approx((0.0, 1.0))
    assert len(looking.images) == 1


def test_a_class_that_is_nowhere_counts_for_nothing():
    below = -1.0 - np.random.default_rng(0).random((2, 3))
    both = class_activation(Looking(SECOND, below), image(), "cam")
    alone = class_activation(Looking(SECOND, np.zeros((2, 3))), image(), "cam")
    assert both == pytest.approx(alone)
    assert not class_activation(Looking(below, below), image(), "cam").any()
    assert not class_activation(Looking(np.ones((2, 3)), SECOND), image(), "cam-top").any()


def test_a_network_without_classifier_has_no_maps():
    class Blind:
        name = "blind"

    with pytest.raises(InputError, match=r"blind has no classifier.*mass='uniform'"):
        class_activation(Blind(), image(), "cam")


def test_the_staircase():
    levels = [0.0, 0.4, 0.41, 0.5, 0.51, 0.6, 0.61, 1.0]
    steps = np.array([0.5, 0.5, 0.8, 0.8, 0.9, 0.9, 1.0, 1.0])
    found = staircase(np.array([levels]), Grid(1, 8, 1.0, 1.0))
    assert found == pytest.approx(steps / steps.sum())


def test_the_staircase_is_read_at_the_centres():
    activation = np.zeros((20, 20))
    activation[8, 12] = 1.0
    found = staircase(activation, Grid(3, 3, 4.0, 11.0)).reshape(3, 3)
    assert found == pytest.approx(1 / 9)
    found = staircase(activation, Grid(3, 4, 4.0, 11.0)).reshape(3, 4)
    assert np.argwhere(found > found.min()).tolist() == [[2, 3]]
    # Cells beyond the edge take its last pixel.
    activation[:, -1] = 1.0
    assert staircase(activation, Grid(1, 8, 4.0, 11.0)).argmax() == 5


def test_masks_are_read_at_the_centres_in_the_photographs_own_pixels():
    mask = np.zeros((60, 80))
    mask[20:, 40:] = 2.0
    # At half the size, cells 8 apart are 16 apart in the photograph.
    found = mask_mass(mask, 0.5, Grid(4, 5, 8.0, 11.0), "source_mask").reshape(4, 5)
    expected = np.zeros((4, 5))
    expected[2:, 3:] = 0.25
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        (np.ones((5, 4)), "m: has shape .5, 4., but the photograph has .4, 5."),
        (np.ones((4, 5, 1)), "m: has shape"),
        (-np.eye(4, 5), "m: has entries that are negative"),
        (np.full((4, 5), np.nan), "m: has entries that are negative or not numbers"),
        (np.zeros((4, 5)), "m: is zero everywhere"),
        (np.full((4, 5), "a"), "m: is not numeric"),
        ([[1, 2], [1]], "m: is not numeric"),
    ],
)
def test_masks_that_are_none(mask, said):
    with pytest.raises(InputError, match=said):
        check_mask(mask, (4, 5), "m")


def test_masks_may_be_true_or_false():
    assert check_mask(np.eye(4, 5) > 0, (4, 5), "m").tolist() == np.eye(4, 5).tolist()


def test_a_mask_between_all_cells():
    mask = np.zeros((40, 40))
    mask[3, 3] = 1.0
    with pytest.raises(InputError, match="m: is zero at every cell; mark a larger part"):
        mask_mass(mask, 1.0, Grid(5, 5, 8.0, 11.0), "m")

import numpy as np
import pytest

import frot
from frot.correspondence._features import FeatureMap
from frot.correspondence._offsets import leaves, measured_offsets, placed


class Shifted:
    """Layers of means over windows around the places where cells look."""

    name = fingerprint = "shifted"

    def __init__(self, offsets, reach=4):
        self.offsets, self.reach = offsets, reach
        self.layers = tuple(f"{stride} {offset:g}" for stride, offset in offsets)

    def extract(self, image):
        maps = []
        for name, (stride, offset) in zip(self.layers, self.offsets, strict=True):
            h, w = (-(-side // stride) for side in image.shape[:2])
            rows = [np.clip(stride * np.arange(h) + offset + k, 0, image.shape[0] - 1)
                    for k in range(-self.reach, self.reach + 1)]  # fmt: skip
            across = [np.clip(stride * np.arange(w) + offset + k, 0, image.shape[1] - 1)
                      for k in range(-self.reach, self.reach + 1)]  # fmt: skip
            smooth = np.mean([image[r.astype(int)] for r in rows], axis=0)
            smooth = np.mean([smooth[:, c.astype(int)] for c in across], axis=0)
            maps.append(FeatureMap(name, np.moveaxis(smooth - 0.5, -1, 0), stride, 9))
        return maps


@pytest.mark.parametrize("offset", [-4, -1, 0, 3])
def test_the_offset_of_a_layer_is_found(offset):
    backbone = Shifted([(8, offset), (16, 2 * offset)])
    fine, coarse = measured_offsets(backbone).values()
    # To a tenth of a cell.
    assert fine == pytest.approx(offset, abs=0.8)
    assert coarse == pytest.approx(2 * offset, abs=1.6)


def test_layers_of_one_stride_that_look_alike_share_their_cells():
    found = measured_offsets(Shifted([(8, 0), (8, 1), (8, -3)]))
    first, second, third = found.values()
    assert first == second
    assert third == pytest.approx(-3, abs=0.8)


def test_layers_of_noise_stay_where_they_are():
    class Noise(Shifted):
        def extract(self, image):
            rng = np.random.default_rng(int(1e6 * image.mean()))
            return [
                FeatureMap(one.name, rng.normal(size=(64, *one.values.shape[1:])), one.stride, 9)
                for one in super().extract(image)
            ]

    assert set(measured_offsets(Noise([(8, -3), (16, 5)])).values()) == {0.0}


def test_layers_of_noise_lie_as_those_before_them():
    class Noisy(Shifted):
        def extract(self, image):
            rng = np.random.default_rng(int(1e6 * image.mean()))
            real = super().extract(image)
            values = rng.normal(size=(64, *real[0].values.shape[1:]))
            return [real[0], FeatureMap(self.layers[1], values, real[0].stride, 9)]

    first, second = measured_offsets(Noisy([(8, -3), (8, 0)])).values()
    assert first == second == pytest.approx(-3, abs=0.8)


def test_networks_that_do_not_take_the_images_stay_where_they_are():
    class OneSize(Shifted):
        def extract(self, image):
            raise frot.InputError("another size")

    assert measured_offsets(OneSize([(8, -3)])) == {"8 -3": 0.0}


def test_maps_that_say_where_they_look_are_believed():
    own = FeatureMap("own", np.zeros((1, 2, 2)), 8, 8, start=(3.5, 3.5))
    other = FeatureMap("other", np.zeros((1, 2, 2)), 8, 8)
    one, two = placed((own, other), {"own": -3.0, "other": -3.0})
    assert one is own
    assert two.start == (-3.0, -3.0)


def test_images_are_between_zero_and_one_and_the_same_every_time():
    image = leaves(0)
    assert image.min() >= 0.0
    assert image.max() <= 1.0
    assert image.std() > 0.15
    np.testing.assert_array_equal(image, leaves(0))
    assert (image != leaves(1)).any()

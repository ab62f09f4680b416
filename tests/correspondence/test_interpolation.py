import numpy as np
import pytest
import torch
from torch.nn import functional

from frot.correspondence._interpolation import interpolation, resize, sampling


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize(
    ("old", "new"), [((5, 7), (9, 13)), ((9, 13), (4, 3)), ((1, 6), (3, 1)), ((6, 6), (6, 5))]
)
def test_as_torch_does_it(old, new, align_corners):
    maps = np.random.default_rng(0).normal(size=(3, *old))
    theirs = functional.interpolate(
        torch.tensor(maps)[None], new, mode="bilinear", align_corners=align_corners
    )[0].numpy()
    assert resize(maps, *new, align_corners=align_corners) == pytest.approx(theirs, abs=1e-12)


def test_precision_is_kept_and_the_same_size_is_left_alone():
    maps = np.ones((2, 3, 4), dtype=np.float32)
    assert resize(maps, 5, 5, align_corners=True).dtype == np.float32
    assert resize(maps, 3, 4, align_corners=False) is maps


def test_samples_are_weighted_means_and_straight_lines_stay_straight():
    for matrix in (interpolation(7, 12, True), interpolation(12, 7, False)):
        assert matrix.sum(axis=1) == pytest.approx(1.0)
        assert (matrix >= 0.0).all()
    where = np.array([0.0, 0.3, 4.999, 5.0])
    assert sampling(where, 6) @ np.arange(6.0) == pytest.approx(where, abs=1e-12)
    assert sampling(np.array([-3.0, 0.0, 9.0]), 1).tolist() == [[1.0]] * 3

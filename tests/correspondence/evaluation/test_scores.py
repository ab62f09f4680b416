import numpy as np
import pytest

from frot import InputError
from frot.correspondence.evaluation.scores import (
    mask_score,
    outline_mask,
    pck,
    pck_difference,
    point_errors,
)

RNG = np.random.default_rng(0)
ERRORS = [RNG.uniform(0.0, 0.3, size) for size in RNG.integers(3, 12, 400)]


def test_a_point_at_the_threshold_is_right():
    errors = [point_errors([[0.3, 0.0]], [[0.0, 0.0]], 3.0)]
    assert errors[0][0] != 0.1  # 0.3 / 3 is not the 0.1 of a computer
    assert pck(errors, 0.1).value == 1.0
    assert pck([[0.1 + 1e-9]], 0.1).value == 0.0


def test_points_that_are_nowhere_are_wrong():
    assert pck([point_errors([[np.nan, 0.0]], [[0.0, 0.0]], 1.0)], 1e9).value == 0.0


def test_resized_coordinates_give_the_same_hits():
    """The rule of the literature: distance <= t length r in pixels that were resized by r."""
    found, truth = RNG.uniform(0, 100, (500, 2)), RNG.uniform(0, 100, (500, 2))
    r, length = np.float32(300 / 417), 83.0
    resized = np.linalg.norm(found * r - truth * r, axis=1) <= 0.3 * length * r
    assert 0 < resized.sum() < 500
    np.testing.assert_array_equal(point_errors(found, truth, length) <= 0.3, resized)


def test_per_image_is_the_mean_of_shares_with_its_usual_error():
    shares = np.array([np.mean(one <= 0.1) for one in ERRORS])
    found = pck(ERRORS, 0.1)
    assert found.value == pytest.approx(shares.mean())
    assert found.standard_error == pytest.approx(shares.std(ddof=1) / 20.0)
    assert found.count == 400


def test_the_error_per_point_is_that_of_pairs_drawn_anew():
    draws = [
        pck([ERRORS[i] for i in RNG.integers(0, 400, 400)], 0.1, per="point").value
        for _ in range(400)
    ]
    assert pck(ERRORS, 0.1, per="point").standard_error == pytest.approx(np.std(draws), rel=0.15)


@pytest.mark.parametrize("per", ["image", "point"])
def test_differences_are_paired(per):
    """Two that err on the same pairs differ by less than their own errors suggest."""
    better = [np.where(np.arange(len(one)) == 0, 0.0, one) for one in ERRORS]
    found = pck_difference(better, ERRORS, 0.1, per)
    ours, theirs = pck(better, 0.1, per), pck(ERRORS, 0.1, per)
    assert found.value == pytest.approx(ours.value - theirs.value)
    assert 0.0 < found.standard_error < ours.standard_error


def test_one_pair_has_no_standard_error():
    assert np.isnan(pck([[0.0]]).standard_error)


def test_other_pairs_cannot_be_compared():
    with pytest.raises(InputError, match="second: is of other pairs than first"):
        pck_difference([[0.0]], [[0.0, 1.0]])
    with pytest.raises(InputError, match="per='pixel' is not a way to average"):
        pck([[0.0]], per="pixel")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="errors: has to be one or more"):
        pck([])
    with pytest.raises(InputError, match=r"found: has shape \(1, 2\) and truth \(2, 2\)"):
        point_errors(np.zeros((1, 2)), np.zeros((2, 2)), 1.0)


def test_an_outline_fills_what_a_library_fills():
    """Away from the outline itself, where conventions differ."""
    from matplotlib.path import Path

    corners = np.array([[3.2, 2.1], [30.7, 5.3], [24.4, 28.8], [15.1, 12.3], [5.9, 25.2]])
    y, x = np.mgrid[:32, :40]
    theirs = Path(corners).contains_points(np.stack([x.ravel(), y.ravel()], axis=1))
    ours = outline_mask(corners, 32, 40)
    assert ours.sum() > 100
    np.testing.assert_array_equal(ours, theirs.reshape(32, 40))


def test_masks():
    truth = outline_mask([[2, 2], [8, 2], [8, 8], [2, 8]], 10, 10)
    assert truth.sum() == 36
    assert mask_score(truth, truth) == (1.0, 1.0)
    assert mask_score(np.zeros((10, 10)), truth) == (0.64, 0.0)
    assert mask_score(np.roll(truth, 3, axis=1), truth).iou == pytest.approx(18 / 54)
    assert mask_score(np.zeros((2, 2)), np.zeros((2, 2))).iou == 1.0
    with pytest.raises(InputError, match="found: has shape"):
        mask_score(np.zeros((2, 2)), np.zeros((2, 3)))

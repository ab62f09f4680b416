import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

from frot import DataWarning, InputError
from frot.correspondence import Flow, Matcher, TorchBackbone, mask_score, read_flow
from frot.correspondence.flow import flow_of, look_up
from frot.correspondence.transfer import TRANSFERS
from tests.correspondence.fake_match import bent_match
from tests.correspondence.small import SIDE, cat, convolutions


def pixels(size, count=600, seed=0, border=0):
    h, w = size
    low, high = [border, border], [w - border, h - border]
    return np.random.default_rng(seed).integers(low, high, (count, 2))


def truth(match, warp):
    h, w = match.source.size
    y, x = np.mgrid[:h, :w]
    return warp.points(np.stack([x.ravel(), y.ravel()], axis=1)).reshape(h, w, 2)


def shifted(**more):
    """A photograph and the same eight pixels further: what is at x in A is at x - 8 in B."""
    matcher = Matcher(TorchBackbone(convolutions()), side=SIDE, device="cpu", **more)
    return matcher(cat(), cat(x=68))


@pytest.fixture(scope="module")
def shift():
    # At full strength, so that what is beyond B is taken to be there.
    return shifted(agreement=1.0)


@pytest.mark.parametrize("mode", TRANSFERS)
def test_flow_says_what_transfer_says(mode):
    match, _ = bent_match(mode)
    flow = match.flow()
    assert flow.displacement.shape == (*match.source.size, 2)
    assert flow.displacement.dtype == flow.certainty.dtype == np.float32
    x, y = (points := pixels(match.source.size)).T
    moved = match.transfer(points)
    assert flow.points[y, x] == pytest.approx(moved.points, abs=1e-3)
    assert np.median(np.abs(flow.certainty[y, x] - moved.confidence)) <= 0.05


def test_between_the_points_of_a_lattice():
    match, _ = bent_match()
    fine = match.flow()
    h, w = match.source.size
    # Every second pixel, as in a photograph of 640 x 480.
    coarse = flow_of(match, h * w // 3)
    off = np.linalg.norm(fine.displacement - coarse.displacement, axis=2)
    assert off[::2, ::2].max() == 0.0
    assert (off <= 0.5).mean() >= 0.94
    assert off.max() > 0.0


def test_flow_of_a_known_warp():
    match, warp = bent_match()
    flow = match.flow()
    off = np.linalg.norm(flow.points - truth(match, warp), axis=2)[15:-15, 15:-15]
    assert np.median(off) < 1.0
    assert np.quantile(off, 0.95) < 3.0
    back = match.inverse.flow()
    x, y = (points := pixels(match.target.size, border=40)).T
    off = np.linalg.norm(back.points[y, x] - warp.origins(points), axis=1)
    assert np.median(off) < 1.0


def test_flow_of_a_shifted_photograph(shift):
    flow = shift.flow()
    inside = flow.displacement[24:-24, 32:-24]
    assert np.abs(inside - [-8.0, 0.0]).max() < 2.0
    # What was at the left of A is beyond B.
    assert flow.valid[24:-24, 32:-24].all()
    assert flow.valid[:, :4].mean() < 0.7


def test_the_inverse_is_the_other_way_round(shift):
    back = shift.inverse
    assert back.inverse is shift
    np.testing.assert_array_equal(back.scores, shift.scores.T)
    np.testing.assert_array_equal(back.plan, shift.plan.T)
    assert back.source is shift.target
    np.testing.assert_allclose(np.asarray(back.result.plan), np.asarray(shift.result.plan).T)
    np.testing.assert_array_equal(back.result.potentials[0], shift.result.potentials[1])
    assert back.result.lower == shift.result.lower
    assert np.abs(back.flow().displacement[24:-24, 24:-32] - [8.0, 0.0]).max() < 2.0


def test_points_that_come_back(shift):
    points = pixels((SIDE, SIDE), 50, border=36)
    there = shift.transfer(points).points
    expected = np.linalg.norm(shift.inverse.transfer(there).points - points, axis=1)
    assert shift.cycle_error(points) == pytest.approx(expected)
    assert shift.cycle_error(points).max() < 3.0
    # What leaves B on the left finds something else there.
    assert shift.cycle_error([[0, y] for y in range(20, 110)]).mean() > 3.0
    every, strict = shift.flow().valid, shift.flow(cycle=4.0).valid
    assert strict[24:-24, 32:-24].all()
    assert not (strict & ~every).any()
    assert strict.sum() < every.sum()
    with pytest.raises(InputError, match="cycle"):
        shift.flow(cycle=-1.0)


def test_off_a_mask_nothing_is_known():
    mask = np.zeros((SIDE, SIDE))
    mask[40:90, 30:80] = 1.0
    matcher = Matcher(TorchBackbone(convolutions()), side=SIDE, device="cpu")
    match = matcher(cat(), cat(x=68), source_mask=mask)
    flow = match.flow()
    assert flow.valid[48:82, 38:72].all()
    assert not flow.valid[:28].any()
    assert not flow.valid[:, 96:].any()
    assert np.isfinite(flow.displacement).all()


def test_warps_are_named_after_what_they_are_laid_on():
    match, _ = bent_match()
    onto_b, onto_a = match.warp(), match.warp(onto="source")
    assert onto_b.pixels.shape == match.target.pixels.shape
    assert onto_a.pixels.shape == match.source.pixels.shape
    for warped, photo in ((onto_b, match.target), (onto_a, match.source)):
        inside = (slice(25, -25), slice(35, -55))
        off = np.abs(warped.pixels - photo.pixels)[inside].mean()
        assert off < 0.25 * np.abs(photo.pixels[inside] - photo.pixels[inside].mean()).mean()
    with pytest.raises(InputError, match="onto"):
        match.warp(onto="b")


def test_a_mask_and_labels_go_where_they_belong():
    match, warp = bent_match()
    h, w = match.source.size
    y, x = np.mgrid[:h, :w]
    disc = (x - 85) ** 2 + (y - 75) ** 2 < 35**2
    expected = warp.apply(disc.astype(float), size=match.target.size) > 0.5
    assert mask_score(match.transfer_mask(disc), expected).iou > 0.95
    np.testing.assert_array_equal(
        match.transfer_mask(disc.astype(np.uint8)), match.transfer_mask(disc)
    )
    labels = (x // 60).astype(np.int16) + 5
    found = match.transfer_labels(labels)
    assert found.dtype == np.int16
    assert set(np.unique(found)) <= {0, 5, 6, 7}
    where = match.inverse.flow()
    assert (found[~where.valid] == 0).all()
    assert (match.transfer_labels(labels, fill=-1)[~where.valid] == -1).all()
    for bad in (labels[1:], labels.astype(float), "cat"):
        with pytest.raises(InputError, match=r"labels: has shape .* whole numbers or bool"):
            match.transfer_labels(bad)
    with pytest.raises(InputError, match=r"fill: must be .* 0 to 255 \(uint8\), got -1"):
        match.transfer_labels(labels.astype(np.uint8), fill=-1)
    np.testing.assert_array_equal(match.transfer_mask(0.5 * disc), match.transfer_mask(disc))
    for bad in (disc[1:], "mask.png", Path("mask.png")):
        with pytest.raises(InputError, match=r"^mask: has shape .* one per pixel of"):
            match.transfer_mask(bad)
    assert repr(where).startswith(f"Flow({match.target.size[1]} x {match.target.size[0]} pixels, ")
    assert repr(match.warp()).endswith(f"{where.valid.mean():.0%} known)")


def test_looking_up():
    image = np.arange(12.0).reshape(3, 4)
    flow = Flow(np.full((2, 2, 2), 0.5, np.float32), np.ones((2, 2)), np.ones((2, 2), bool))
    # Between pixels (x + 1/2, y + 1/2), and beyond the edge as at the edge.
    assert look_up(image, flow).tolist() == [[2.5, 3.5], [6.5, 7.5]]
    far = Flow(np.full((1, 1, 2), 99.0, np.float32), np.ones((1, 1)), np.ones((1, 1), bool))
    assert look_up(image, far).tolist() == look_up(image, far, nearest=True).tolist() == [[11.0]]


def random_flow():
    rng = np.random.default_rng(0)
    return Flow(
        rng.normal(scale=20, size=(5, 7, 2)).astype(np.float32),
        rng.random((5, 7)).astype(np.float32),
        rng.random((5, 7)) > 0.3,
    )


def test_the_bytes_of_middleburys_format(tmp_path):
    flow = random_flow()
    content = flow.save(tmp_path / "a.flo").read_bytes()
    assert content[:4] == b"PIEH"
    assert struct.unpack("<ii", content[4:12]) == (7, 5)
    assert len(content) == 12 + 4 * 2 * 5 * 7
    values = np.frombuffer(content[12:], "<f4").reshape(5, 7, 2)
    np.testing.assert_array_equal(values[flow.valid], flow.displacement[flow.valid])
    assert (values[~flow.valid] > 1e9).all()


@pytest.mark.parametrize("suffix", ["flo", "npy", "npz"])
def test_flows_are_read_as_they_were_written(tmp_path, suffix):
    flow = random_flow()
    found = read_flow(flow.save(tmp_path / f"a.{suffix}"))
    np.testing.assert_array_equal(found.valid, flow.valid)
    np.testing.assert_array_equal(found.displacement[flow.valid], flow.displacement[flow.valid])
    if suffix == "npz":
        np.testing.assert_array_equal(found.certainty, flow.certainty)
    else:
        np.testing.assert_array_equal(found.certainty, flow.valid)
        assert not found.displacement[~flow.valid].any()
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{suffix}"]


def test_files_that_are_no_flows(tmp_path):
    flow = random_flow()
    with pytest.raises(InputError, match=r"must end in \.flo or \.npy or \.npz"):
        flow.save(tmp_path / "a.png")
    with pytest.raises(InputError, match="does not exist"):
        read_flow(tmp_path / "none.flo")
    cut = flow.save(tmp_path / "cut.flo")
    cut.write_bytes(cut.read_bytes()[:-4])
    other = tmp_path / "other.flo"
    other.write_bytes(b"PNG " * 10)
    empty = tmp_path / "empty.npz"
    np.savez(empty, a=np.zeros(3))
    for path in (cut, other):
        with pytest.raises(InputError, match="not a flow, or cut short"):
            read_flow(path)
    with pytest.raises(InputError, match="is damaged, or no file that frot saved"):
        read_flow(empty)
    np.save(tmp_path / "flat.npy", np.zeros((4, 5)))
    with pytest.raises(InputError, match=r"a flow has .H, W, 2."):
        read_flow(tmp_path / "flat.npy")


@pytest.mark.parametrize("second", ["flat", "cat"])
def test_without_content_nothing_is_sure(second):
    slope = np.linspace(0.2, 0.8, SIDE)[None, :, None] * np.ones((SIDE, 1, 3))
    other = np.full((SIDE, SIDE, 3), 0.5) if second == "flat" else cat()
    matcher = Matcher(TorchBackbone(convolutions()), side=SIDE, device="cpu")
    with pytest.warns(DataWarning, match="has no content"):
        match = matcher(slope, other)
    points = pixels((SIDE, SIDE), 20)
    assert not match.transfer(points).confidence.any()
    assert not match.flow().valid.any()
    assert not match.transfer_mask(np.ones((SIDE, SIDE), bool)).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matcher(cat(), cat())

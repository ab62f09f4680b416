"""What a matcher refuses: one sentence that names the argument, before the network runs."""

import numpy as np
import pytest

from frot import InputError
from frot.correspondence import Matcher, TorchBackbone
from frot.correspondence._features import Classifying
from tests.correspondence.small import SIDE, Counting, cat, classifier, convolutions


@pytest.fixture(scope="module")
def match():
    return Matcher(convolutions(), side=96)(cat(), cat())


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([[300, 5]], r"points: \(300, 5\) is outside image, which is 129 x 129 pixels"),
        ([[5, 5], [5, -1]], r"points: \(5, -1\) is outside"),
        ([[5, np.inf]], r"points: \(5, inf\) is outside"),
        ([[5, np.nan]], "points: have coordinates that are not numbers"),
        ([5, 5], r"points: must be pairs of x and y, of shape \(k, 2\)"),
        ([[5, 5, 5]], "points: must be pairs"),
        ([], "points: must be pairs"),
        ([["a", "b"]], "points: must be pairs"),
        ([[1, 2], [3]], "points: must be pairs"),
        (None, "points: must be pairs"),
    ],
)
def test_points(match, points, said):
    with pytest.raises(InputError, match=said):
        match.transfer(points)


def test_a_point_of_a_heat_map(match):
    for point in ([200, 5], [[5, 5]], [5], "ab", None):
        with pytest.raises(InputError, match="points: "):
            match.heatmap(point)


def test_points_at_the_very_edge_and_none(match):
    corners = [[-0.5, -0.5], [SIDE - 0.5, SIDE - 0.5]]
    moved = match.transfer(corners)
    assert ((moved.points >= 0.0) & (moved.points <= SIDE - 1)).all()
    assert match.transfer(np.zeros((0, 2))).points.shape == (0, 2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"preset": "best"}, "preset: 'best' is none of 'frot', 'frot-paper', 'scot', 'hpf'"),
        ({"method": "magic"}, "method: 'magic' is none of"),
        ({"eps": 0.0}, "eps: must be finite and > 0"),
        ({"prior": [1.0, 2.0]}, "prior: has 2 weights, but Sequential has 4 layers"),
        ({"prior": [1.0, 2.0, -1.0, 1.0]}, "prior: has weights that are not finite and > 0"),
        ({"layers": ["nose"]}, "layers names 'nose', which Sequential does not have"),
        ({"layers": [99]}, "layers holds 99, but Sequential has layers 0 to 3"),
        ({"layers": []}, "layers is empty"),
        ({"layers": [1.5]}, "layers holds 1.5, but Sequential has layers 0 to 3"),
        ({"layers": [True]}, "layers holds True, but Sequential has layers 0 to 3"),
        ({"cache": 3}, "cache: is 3; give the path of a folder, or a FeatureCache"),
        ({"device": "abacus"}, r"device: 'abacus' cannot be used \(.*\); use 'cpu'"),
        ({"weights": "some.pth"}, "weights: needs the name of its network"),
    ],
)
def test_arguments(given, said):
    with pytest.raises(InputError, match=said) as error:
        Matcher(convolutions(), **given)
    assert "\n" not in str(error.value)


def test_a_device_that_is_not_there():
    import torch

    absent = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(InputError, match=f"device: '{absent}' cannot be used") as error:
        Matcher(convolutions(), device=absent)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("backbone", "weights", "said"),
    [
        ("timm:resnet101", None, "weights: timm:resnet101 needs the path of a file that you have"),
        ("resnet18", None, "backbone: 'resnet18' is not known; give efficientnet-lite2, "),
        (3, None, "backbone: a int is not known; give "),
        ("absent.onnx", None, "absent.onnx"),
    ],
)
def test_networks(tmp_path, monkeypatch, backbone, weights, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        Matcher(backbone, weights)


@pytest.fixture
def counting():
    return Counting()


@pytest.mark.parametrize(
    ("masks", "said"),
    [
        ({"source_mask": np.ones((3, 3))}, "source_mask: has shape .3, 3., but the photograph"),
        ({"target_mask": np.zeros((SIDE, SIDE))}, "target_mask: is zero everywhere"),
        ({"target_mask": -np.ones((SIDE, SIDE))}, "target_mask: has entries that are negative"),
    ],
)
def test_masks(counting, masks, said):
    with pytest.raises(InputError, match=said):
        Matcher(counting)(cat(), cat(), **masks)
    assert counting.seen == 0


def bad_photographs(folder):
    (folder / "text.jpg").write_text("no picture")
    (folder / "empty.png").write_bytes(b"")
    yield folder / "absent.jpg", r"absent\.jpg does not exist"
    yield folder / "text.jpg", "is not a picture that Pillow can read"
    yield folder / "empty.png", "is not a picture that Pillow can read"
    yield folder, "is a folder"
    yield np.zeros((31, 200, 3)), "give at least 32 pixels a side"
    yield np.broadcast_to(np.uint8(0), (10_000, 10_000, 3)), "more than 89,000,000 pixels"
    yield np.zeros((40, 40, 2)), "has shape"
    yield np.full((40, 40), 255.0), "divide by 255"
    yield np.full((40, 40), np.nan), "not finite"
    yield None, "give a path, a PIL image"


def test_photographs(counting, tmp_path):
    match = Matcher(counting)
    for photo, said in bad_photographs(tmp_path):
        for pair in ((photo, cat()), (cat(), photo)):
            with pytest.raises(InputError, match=said):
                match(*pair)
    assert counting.seen == 0


def test_photographs_that_are_too_long_for_the_side(counting):
    with pytest.raises(InputError, match="crop it or give a larger side"):
        Matcher(counting, side=64)(cat(), np.zeros((40, 2000, 3)))


@pytest.mark.parametrize("preset", ["frot-paper", "scot"])
def test_a_network_without_classifier_is_refused_where_one_is_needed(counting, preset):
    # It cannot even be asked.
    assert not isinstance(counting, Classifying)
    with pytest.raises(InputError, match=r"Sequential has no classifier.*mass='uniform'"):
        Matcher(counting, preset=preset)(cat(), cat())
    assert counting.seen == 0
    # It can be asked and has none.
    with pytest.raises(InputError, match="Sequential has no classifier"):
        Matcher(TorchBackbone(convolutions()), preset=preset)(cat(), cat())
    Matcher(TorchBackbone(classifier()), preset=preset, side=33, stride=8)(cat(), cat())


def test_kinds_of_photographs(tmp_path):
    from PIL import Image

    matcher = Matcher(Counting(), side=96)
    colour = Image.fromarray((255 * cat()).astype(np.uint8))
    turned = colour.rotate(90, expand=True)
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by a quarter to see it upright
    turned.save(tmp_path / "turned.png", exif=exif)
    sources = [colour, colour.convert("L"), colour.convert("RGBA"), colour.convert("CMYK"),
               np.asarray(colour), tmp_path / "turned.png"]  # fmt: skip
    points = [[40.0, 50.0], [80.0, 60.0]]
    for source in sources:
        moved = matcher(source, colour).transfer(points).points
        assert np.abs(moved - points).max() < 4.0


def test_a_stride_that_leaves_next_to_no_cells_is_refused():
    with pytest.raises(InputError, match=r"stride: 64 leaves 1 x 1 cells of .*; use a smaller"):
        Matcher(convolutions(), side=48, stride=64)(cat(), cat())

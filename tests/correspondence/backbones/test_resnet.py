"""ResNet-101 as torchvision and transformers have it: the paper's layers."""

import importlib
import sys

import numpy as np
import pytest

from frot.correspondence.backbones import TorchBackbone, resolve_backbone

torch = pytest.importorskip("torch")

IMAGE = np.random.default_rng(0).random((64, 96, 3), dtype=np.float32)
CHANNELS = [64] + 3 * [256] + 4 * [512] + 23 * [1024] + 3 * [2048]
STRIDES = 4 * [4] + 4 * [8] + 23 * [16] + 3 * [32]


@pytest.fixture(scope="module")
def torchvision():
    """torchvision, whose wheel asks beside a CPU build of torch for an operator that is absent."""
    try:
        return importlib.import_module("torchvision.models")
    except ImportError:
        pytest.skip("torchvision is not installed")
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        for name in [one for one in sys.modules if one.startswith("torchvision")]:
            del sys.modules[name]
        return importlib.import_module("torchvision.models")


@pytest.fixture
def resnet101():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    return transformers.ResNetForImageClassification(
        transformers.ResNetConfig(depths=[3, 4, 23, 3], num_labels=10)
    ).eval()


def test_the_paper_s_34_layers_and_32576_channels(resnet101):
    backbone = resolve_backbone(resnet101)
    maps = backbone.extract(IMAGE)
    assert [one.channels for one in maps] == CHANNELS
    assert sum(CHANNELS) == 32_576
    assert [one.stride for one in maps] == STRIDES
    # As the literature has them, from the first on.
    fields = [11, 19, 27, 35, 43, 59, 75, 91, 107, 139]
    assert [one.receptive_field for one in maps[:10]] == fields


def test_they_are_the_sums_before_the_activation(resnet101):
    backbone = resolve_backbone(resnet101)
    assert isinstance(backbone, TorchBackbone)
    x = torch.from_numpy(backbone._prepare(IMAGE).transpose(2, 0, 1)[None].copy())
    wanted = []
    with torch.no_grad():
        x = resnet101.resnet.embedder(x)
        wanted.append(x)
        for stage in resnet101.resnet.encoder.stages:
            for block in stage.layers:
                wanted.append(block.layer(x) + block.shortcut(x))
                x = torch.relu(wanted[-1])
        scores = resnet101.classifier(resnet101.resnet.pooler(x))[0].numpy()
    for one, value in zip(backbone.extract(IMAGE), wanted, strict=True):
        np.testing.assert_allclose(one.values, value[0].numpy(), atol=1e-4)
    best = np.argsort(-scores)[:2]
    means = backbone.class_maps(IMAGE, 2).mean(axis=(1, 2))
    bias = resnet101.classifier[1].bias.detach().numpy()
    np.testing.assert_allclose(means + bias[best], scores[best], rtol=1e-5)


def test_of_torchvision_with_a_file_of_weights(torchvision, tmp_path):
    torch.manual_seed(0)
    module = torchvision.get_model("resnet101", weights=None)
    torch.save(module.state_dict(), tmp_path / "resnet101.pth")
    backbone = resolve_backbone("torchvision:resnet101", tmp_path / "resnet101.pth")
    assert backbone.name == "resnet101"
    assert backbone.layers[:2] == ("maxpool", "layer1.0")
    assert [one.channels for one in backbone.extract(IMAGE)] == CHANNELS
    assert backbone.fingerprint == resolve_backbone(
        "torchvision:resnet101", tmp_path / "resnet101.pth"
    ).fingerprint  # fmt: skip


def test_of_torchvision_by_a_feature_extractor(torchvision):
    extraction = importlib.import_module("torchvision.models.feature_extraction")
    module = extraction.create_feature_extractor(
        torchvision.get_model("resnet18", weights=None), {"layer2": "early", "layer4": "late"}
    )
    backbone = resolve_backbone(module)
    assert backbone.layers == ("early", "late")
    assert [one.stride for one in backbone.extract(IMAGE)] == [8, 32]


@pytest.mark.parametrize("name", ["resnet18", "convnext_tiny", "vgg11", "densenet121", "swin_t"])
def test_others_of_torchvision(torchvision, name):
    maps = resolve_backbone(torchvision.get_model(name, weights=None)).extract(IMAGE)
    assert len(maps) == {"resnet18": 9}.get(name, len(maps)) > 3
    assert all(np.isfinite(one.values).all() for one in maps)


def test_of_timm(torchvision):
    timm = pytest.importorskip("timm", reason="timm is not installed")
    assert len(resolve_backbone(timm.create_model("resnet18")).layers) == 9
    features = timm.create_model("resnet18", features_only=True)
    assert resolve_backbone(features).layers == tuple(features.feature_info.module_name())

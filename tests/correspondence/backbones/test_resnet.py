"""One ResNet from the files of every library, with transformers' own as the referee."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from frot._base.errors import InputError
from frot.correspondence.backbones._networks import build_resnet, resnet
from frot.correspondence.backbones._torch import TorchBackbone

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")
from tests.correspondence.backbones import resnets  # noqa: E402

IMAGE = np.random.default_rng(0).random((64, 96, 3), dtype=np.float32)
SMALL = (2, 1, 3, 1)
LAYOUTS = ("torchvision", "timm", "transformers", "headless", "onnx")


def save(folder, layout, named, blocks):
    path = (
        folder
        / {
            "torchvision": "a.pth",
            "timm": "b.safetensors",
            "transformers": "c.safetensors",
            "headless": "d.safetensors",
            "onnx": "e.onnx",
        }[layout]
    )
    if layout == "torchvision":
        torch.save(named, path)
    elif layout == "timm":
        safetensors.save_file(named, path)
    elif layout == "transformers":
        safetensors.save_file(resnets.transformers_names(named), path)
    elif layout == "headless":
        body = {key: value for key, value in named.items() if not key.startswith("fc.")}
        safetensors.save_file(resnets.transformers_names(body, prefix=""), path)
    else:
        pytest.importorskip("onnxruntime")
        resnets.write_onnx(path, named, blocks)
    return path


def referee(named, blocks, width, **options):
    """transformers' own network with the same weights."""
    transformers = pytest.importorskip("transformers")
    config = transformers.ResNetConfig(
        embedding_size=width,
        hidden_sizes=[4 * width * 2**stage for stage in range(4)],
        depths=list(blocks),
        num_labels=len(named["fc.bias"]),
        **options,
    )
    model = transformers.ResNetForImageClassification(config).eval()
    model.load_state_dict(resnets.transformers_names(named))
    return model


def close(one, other):
    assert np.abs(one - other).max() <= 1e-5 * np.abs(other).max()


def maps_of(model, image):
    """Stem and sums of transformers' network, from its own parts."""
    with torch.no_grad():
        x = model.resnet.embedder(image)
        maps = [x]
        for stage in model.resnet.encoder.stages:
            for block in stage.layers:
                sums = block.layer(x) + block.shortcut(x)
                maps.append(sums)
                x = block(x)
    return [value[0].numpy() for value in maps]


def scores_of(backbone, image):
    assert isinstance(backbone, TorchBackbone)
    return backbone._module(image).numpy()


@pytest.fixture(scope="module")
def small():
    return resnets.weights(SMALL, 4, classes=6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_maps(tmp_path, small, layout):
    backbone = build_resnet("small", SMALL, 4, save(tmp_path, layout, small, SMALL))
    maps = backbone.extract(IMAGE)
    assert [one.name for one in maps] == [
        "stem",
        *("layer1.0", "layer1.1", "layer2.0", "layer3.0", "layer3.1", "layer3.2", "layer4.0"),
    ]
    assert [one.stride for one in maps] == [4, 4, 4, 8, 16, 16, 16, 32]
    model = referee(small, SMALL, 4)
    ready = (IMAGE - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    image = torch.from_numpy(ready.astype(np.float32).transpose(2, 0, 1)[None].copy())
    for one, wanted in zip(maps, maps_of(model, image), strict=True):
        assert one.values.dtype == np.float32
        close(one.values, wanted)
    assert backbone.name == "small"
    assert pickle.loads(pickle.dumps(backbone)).fingerprint == backbone.fingerprint
    if layout == "headless":
        with pytest.raises(InputError, match="no classifier"):
            backbone.class_maps(IMAGE, 1)
        return
    with torch.no_grad():
        scores = model(image).logits[0].numpy()
    best = np.argsort(-scores)[:2]
    means = backbone.class_maps(IMAGE, 2).mean(axis=(1, 2))
    np.testing.assert_allclose(
        means + small["fc.bias"].numpy()[best], scores[best], rtol=1e-4, atol=1e-5
    )


def test_the_network_s_own_scores(tmp_path, small):
    backbone = build_resnet("small", SMALL, 4, save(tmp_path, "torchvision", small, SMALL))
    image = torch.randn(1, 3, 50, 70, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        close(scores_of(backbone, image), referee(small, SMALL, 4)(image).logits.numpy())


@pytest.mark.parametrize("early", [False, True])
def test_where_the_stride_is_is_read_beside_the_weights(tmp_path, small, early):
    model = referee(small, SMALL, 4, downsample_in_bottleneck=early)
    model.save_pretrained(tmp_path)
    image = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        wanted = model(image).logits.numpy()
        path = tmp_path / "model.safetensors"
        ours = build_resnet("small", SMALL, 4, path)
        close(scores_of(ours, image), wanted)
        other = build_resnet("small", SMALL, 4, path, early_stride=not early)
        assert np.abs(scores_of(other, image) - wanted).max() > 1e-3
    fields = [one.receptive_field for one in ours.extract(IMAGE)]
    assert fields[:4] == ([11, 19, 27, 43] if early else [11, 19, 27, 35])
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "downsample_in_first_stage": True}))
    with pytest.raises(InputError, match="downsample_in_first_stage"):
        build_resnet("small", SMALL, 4, path)


def test_resnet_101_is_the_paper_s(tmp_path):
    named = resnets.weights((3, 4, 23, 3), 64, classes=3)
    path = save(tmp_path, "torchvision", named, ())
    backbone = resnet("resnet101", path)
    maps = backbone.extract(IMAGE)
    assert len(maps) == 34
    assert sum(one.channels for one in maps) == 32_576
    assert [one.channels for one in maps] == [64, *3 * [256], *4 * [512], *23 * [1024], *3 * [2048]]
    assert [one.stride for one in maps] == [4] * 4 + [8] * 4 + [16] * 23 + [32] * 3
    fields = [one.receptive_field for one in maps]
    assert fields[:10] == [11, 19, 27, 35, 43, 59, 75, 91, 107, 139]
    assert fields[10:] == [139 + 32 * i for i in range(1, 22)] + [843, 907, 971]
    ready = torch.from_numpy(backbone._prepare(IMAGE).transpose(2, 0, 1)[None].copy())
    model = referee(named, (3, 4, 23, 3), 64)
    for one, wanted in zip(maps, maps_of(model, ready), strict=True):
        close(one.values, wanted)
    few = resnet("resnet101", path, layers=[0, 8, "layer4.2"])
    assert few.layers == ("stem", "layer3.0", "layer4.2")
    with pytest.raises(InputError, match=r"no weights for layer2\.4"):
        resnet("resnet152", path)
    with pytest.raises(InputError, match=r"does not have, such as layer3\.10"):
        resnet("resnet50", path)


def test_weights_that_do_not_fit(tmp_path, small):
    def refused(named, words):
        path = tmp_path / "w.pth"
        torch.save(named, path)
        with pytest.raises(InputError, match=words):
            build_resnet("small", SMALL, 4, path)

    refused({**small, "conv1.weight": torch.zeros(4, 3, 3, 3)}, r"\(4, 3, 3, 3\) for conv1")
    refused({**small, "extra": torch.zeros(1)}, "such as extra")
    refused({k: v for k, v in small.items() if k != "bn1.bias"}, r"no weights for bn1\.bias")
    refused({**small, "bn1.bias": torch.full((4,), torch.nan)}, "not finite")
    refused({"encoder.weight": torch.zeros(3)}, "no ResNet of torchvision, timm or transformers")
    refused({}, "holds a")
    refused({"epoch": 3}, "holds no tensors")
    refused(torch.zeros(3), "holds a Tensor")


def test_wrappings_that_trainers_put_around_weights(tmp_path, small):
    path = tmp_path / "w.pth"
    torch.save({"epoch": 3, "state_dict": {f"module.{k}": v for k, v in small.items()}}, path)
    assert len(build_resnet("small", SMALL, 4, path).layers) == 8


class Attack:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_files_that_are_not_what_they_say(tmp_path, small):
    with pytest.raises(InputError, match=r"none\.pth does not exist"):
        resnet("resnet101", tmp_path / "none.pth")
    with pytest.raises(InputError, match=r"holds no model\.safetensors"):
        resnet("resnet101", tmp_path)
    with pytest.raises(InputError, match="resnet50, resnet101, resnet152"):
        resnet("resnet18", tmp_path / "none.pth")
    for suffix in ("pth", "safetensors"):
        page = tmp_path / f"page.{suffix}"
        page.write_text("<!DOCTYPE html><html><body>Not found</body></html>")
        with pytest.raises(InputError, match="web page"):
            resnet("resnet101", page)
        pointer = tmp_path / f"pointer.{suffix}"
        pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
        with pytest.raises(InputError, match="get the file itself"):
            resnet("resnet101", pointer)
        layout = "torchvision" if suffix == "pth" else "timm"
        whole = save(tmp_path, layout, small, SMALL)
        content = whole.read_bytes()
        for part in (0, 20, len(content) // 2, len(content) - 5):
            whole.write_bytes(content[:part])
            with pytest.raises(InputError, match="cut short"):
                resnet("resnet101", whole)
    evil, victim = tmp_path / "evil.pth", tmp_path / "victim"
    torch.save({"conv1.weight": Attack(victim)}, evil)
    with pytest.raises(InputError, match="could run code"):
        resnet("resnet101", evil)
    evil.write_bytes(pickle.dumps(Attack(victim)))
    with pytest.raises(InputError, match=r"could run code|cut short"):
        resnet("resnet101", evil)
    assert not victim.exists()
    Path(tmp_path / "module.pth").touch()
    torch.save(torch.nn.Linear(2, 2), tmp_path / "module.pth")
    with pytest.raises(InputError, match="state_dict"):
        resnet("resnet101", tmp_path / "module.pth")


def test_onnx_files_of_other_networks(tmp_path, small):
    path = save(tmp_path, "onnx", small, SMALL)
    with pytest.raises(InputError, match="8 layers where resnet101 has 34"):
        resnet("resnet101", path)
    with pytest.raises(InputError, match="other widths"):
        build_resnet("small", SMALL, 8, path)

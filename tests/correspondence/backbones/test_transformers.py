"""Small random models of transformers, against their own hidden states."""

import pickle

import numpy as np
import pytest

from frot._base.errors import InputError
from frot.correspondence import Matcher
from frot.correspondence.backbones import (
    TorchBackbone,
    resolve_backbone,
    transformers_backbone,
)

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

IMAGE = np.random.default_rng(0).random((75, 100, 3), dtype=np.float32)
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": 64,
}


def model(kind):
    torch.manual_seed(0)
    t = transformers
    if kind == "dinov2":
        return t.Dinov2Model(t.Dinov2Config(**SMALL, patch_size=14))
    if kind == "registers":
        config = t.Dinov2WithRegistersConfig(**SMALL, patch_size=14, num_register_tokens=4)
        return t.Dinov2WithRegistersModel(config)
    if kind == "dinov3":
        return t.DINOv3ViTModel(t.DINOv3ViTConfig(**SMALL, patch_size=16, num_register_tokens=4))
    if kind == "clip":
        return t.CLIPVisionModel(t.CLIPVisionConfig(**SMALL, patch_size=16))
    return t.ViTModel(t.ViTConfig(**SMALL, patch_size=16))


@pytest.mark.parametrize(
    ("kind", "patch", "others"),
    [("dinov2", 14, 1), ("registers", 14, 5), ("dinov3", 16, 5), ("clip", 16, 1), ("vit", 16, 1)],
)
def test_tokens_become_grids_without_class_and_registers(kind, patch, others):
    network = model(kind)
    backbone = resolve_backbone(network)
    assert isinstance(backbone, TorchBackbone)
    assert len(backbone.layers) == 3
    ready = backbone._ready(IMAGE)
    h, w = ready.shape[0] // patch, ready.shape[1] // patch
    call = {"interpolate_pos_encoding": True} if kind in ("clip", "vit") else {}
    with torch.no_grad():
        hidden = network.eval()(
            torch.from_numpy(ready.transpose(2, 0, 1)[None].copy()),
            output_hidden_states=True,
            **call,
        ).hidden_states
    for one, wanted in zip(backbone.extract(IMAGE), hidden[1:], strict=True):
        assert (one.stride, one.receptive_field) == (patch, patch)
        assert one.values.shape == (16, h, w)
        assert wanted.shape[1] == h * w + others
        grid = wanted[0, others:].numpy().T.reshape(16, h, w)
        # The last state may have been normalised once more; the sum is before that.
        if wanted is not hidden[-1]:
            np.testing.assert_allclose(one.values, grid, atol=1e-5)
    with pytest.raises(InputError, match="no classifier"):
        backbone.class_maps(IMAGE, 1)
    assert pickle.loads(pickle.dumps(backbone)).fingerprint == backbone.fingerprint


def test_patches_look_at_their_middle():
    backbone = transformers_backbone(model("dinov2"), layers=[0])
    assert isinstance(backbone, TorchBackbone)
    assert backbone.patch == 14
    # Filled up to whole patches, on the right and below.
    ready = backbone._ready(IMAGE)
    assert ready.shape[:2] == (84, 112)
    np.testing.assert_array_equal(ready[:75, :100], backbone._prepare(IMAGE))
    bright = np.zeros((70, 70, 3), dtype=np.float32)
    bright[28:42, 42:56] = 1
    patches = TorchBackbone(backbone._module, ["embeddings.patch_embeddings.projection"])
    (one,) = patches.extract(bright)
    (dark,) = patches.extract(np.zeros_like(bright))
    changed = np.abs(one.values - dark.values).max(axis=0).ravel()
    assert one.grid.centres[changed > 1e-6].tolist() == [[48.5, 34.5]]


@pytest.mark.parametrize("kind", ["Dinov2", "ResNet"])
def test_backbones_with_features_of_their_own(kind):
    t = transformers
    torch.manual_seed(0)
    if kind == "Dinov2":
        config = t.Dinov2Config(**SMALL, patch_size=14, out_features=["stage1", "stage3"])
    else:
        config = t.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 12, 16], depths=[1, 2, 1], layer_type="basic",
            out_features=["stage1", "stage3"],
        )  # fmt: skip
    network = getattr(t, f"{kind}Backbone")(config).eval()
    backbone = resolve_backbone(network)
    assert isinstance(backbone, TorchBackbone)
    assert backbone.layers == ("stage1", "stage3")
    maps = backbone.extract(IMAGE)
    image = torch.from_numpy(backbone._ready(IMAGE).transpose(2, 0, 1)[None].copy())
    with torch.no_grad():
        wanted = network(image).feature_maps
    for one, value in zip(maps, wanted, strict=True):
        np.testing.assert_allclose(one.values, value[0].numpy(), atol=1e-5)
    assert [one.stride for one in maps] == ([14, 14] if kind == "Dinov2" else [4, 16])


def test_colours_of_the_families():
    assert transformers_backbone(model("clip"))._prepare.mean[0] == 0.48145466
    assert transformers_backbone(model("vit"))._prepare.std == (0.5, 0.5, 0.5)
    assert transformers_backbone(model("dinov2"))._prepare.mean[0] == 0.485


def test_of_images_and_text_the_part_for_images():
    small = {key: value for key, value in SMALL.items() if key != "image_size"}
    config = transformers.CLIPConfig(
        vision_config={**SMALL, "patch_size": 16}, text_config={**small, "vocab_size": 50}
    )
    backbone = resolve_backbone(transformers.CLIPModel(config))
    assert [one.values.shape for one in backbone.extract(IMAGE)] == 3 * [(16, 5, 7)]


@pytest.mark.parametrize("version", ["", "V2"])
def test_convnext(version):
    torch.manual_seed(0)
    config = getattr(transformers, f"ConvNext{version}Config")(
        hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1], num_labels=5
    )
    network = getattr(transformers, f"ConvNext{version}ForImageClassification")(config)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
    backbone = resolve_backbone(network)
    maps = backbone.extract(IMAGE)
    assert [one.stride for one in maps] == [4, 8, 16, 16, 32]
    assert [one.channels for one in maps] == [8, 16, 24, 24, 32]
    assert isinstance(backbone, TorchBackbone)
    image = torch.from_numpy(backbone._ready(IMAGE).transpose(2, 0, 1)[None].copy())
    with torch.no_grad():
        found = network.eval()(image, output_hidden_states=True)
    for one, wanted in zip((maps[0], maps[1], maps[3], maps[4]), found.hidden_states[1:]):  # noqa: B905
        np.testing.assert_allclose(one.values, wanted[0].numpy(), atol=1e-5)
    # Normalisation lies between the averages and the classifier, which then weighs no maps.
    with pytest.raises(InputError, match="no classifier"):
        backbone.class_maps(IMAGE, 1)


def test_resnet_of_transformers_itself():
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[16, 32, 64, 128], depths=[1, 2, 1, 1], num_labels=5
    )
    backbone = resolve_backbone(transformers.ResNetForImageClassification(config))
    assert [one.stride for one in backbone.extract(IMAGE)] == [4, 4, 8, 8, 16, 32]
    assert [one.receptive_field for one in backbone.extract(IMAGE)][:4] == [11, 19, 27, 43]
    assert isinstance(backbone, TorchBackbone)
    assert backbone.class_maps(IMAGE, 2).shape == (2, 3, 4)


def test_only_models_of_transformers():
    with pytest.raises(InputError, match="give a model of transformers"):
        transformers_backbone(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("kind", ["dinov2", "registers", "dinov3", "clip"])
def test_a_folder_by_name(kind, tmp_path):
    network = model(kind).eval()
    wanted = resolve_backbone(network).extract(IMAGE)
    network.save_pretrained(tmp_path)
    found = resolve_backbone(f"transformers:{tmp_path}").extract(IMAGE)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


def test_large_patches_and_many_tokens_of_no_cell():
    torch.manual_seed(0)
    for patch, registers in ((32, 0), (8, 8), (14, 16)):
        config = transformers.DINOv3ViTConfig(
            **SMALL, patch_size=patch, num_register_tokens=registers
        )
        backbone = resolve_backbone(transformers.DINOv3ViTModel(config))
        assert isinstance(backbone, TorchBackbone)
        assert backbone.patch == patch
        shape = (16, -(-75 // patch), -(-100 // patch))
        assert {one.values.shape for one in backbone.extract(IMAGE)} == {shape}


def test_a_matcher_with_patches():
    matcher = Matcher(model("dinov2"))
    assert matcher.settings.side == 60 * 14
    matcher = Matcher(model("dinov2"), side=112)
    photo = (255 * IMAGE).astype(np.uint8)
    assert matcher.pair_features(photo, photo).layers.source_grid.stride == 14
    # A stride is obeyed: features are interpolated.
    finer = matcher.with_settings(stride=7).pair_features(photo, photo).layers.source_grid
    own = matcher.pair_features(photo, photo).layers.source_grid
    assert (finer.stride, finer.h, finer.w) == (7, 2 * own.h - 1, 2 * own.w - 1)
    match = matcher.with_settings(stride=7, method="nn", agreement=0, transfer="argmax")(
        photo, photo
    )
    points = [[40.0, 30.0], [70.0, 50.0]]
    np.testing.assert_allclose(match.transfer(points).points, points, atol=1e-6)

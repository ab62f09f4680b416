"""Small random models of transformers, against their own hidden states."""

import pickle

import numpy as np
import pytest

from frot._base.errors import InputError
from frot.correspondence import Matcher
from frot.correspondence.backbones._networks import resolve_backbone
from frot.correspondence.backbones._torch import TorchBackbone, transformers_backbone

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


def test_patches_are_centred_where_cells_are():
    backbone = transformers_backbone(model("dinov2"), layers=[0])
    ready = backbone._ready(IMAGE)
    assert ready.shape[:2] == (84, 112)  # half a patch before, and up to whole patches
    np.testing.assert_array_equal(ready[7:82, 7:107], backbone._prepare(IMAGE))
    bright = np.zeros((70, 70, 3), dtype=np.float32)
    bright[28 - 3 : 28 + 3, 42 - 3 : 42 + 3] = 1
    patches = TorchBackbone(backbone._module, ["embeddings.patch_embeddings.projection"])
    (one,) = patches.extract(bright)
    (dark,) = patches.extract(np.zeros_like(bright))
    changed = np.abs(one.values - dark.values).max(axis=0)
    assert np.argwhere(changed > 1e-6).tolist() == [[2, 3]]  # 28 / 14, 42 / 14


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
    assert [one.values.shape for one in backbone.extract(IMAGE)] == 3 * [(16, 6, 7)]


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
    image = torch.from_numpy(backbone._prepare(IMAGE).transpose(2, 0, 1)[None].copy())
    with torch.no_grad():
        found = network.eval()(image, output_hidden_states=True)
        shift = network.classifier(
            [part for part in network.modules() if isinstance(part, torch.nn.LayerNorm)][-1].bias
        )
    for one, wanted in zip((maps[0], maps[1], maps[3], maps[4]), found.hidden_states[1:]):  # noqa: B905
        np.testing.assert_allclose(one.values, wanted[0].numpy(), atol=1e-5)
    # Normalisation lies between the averages and the classifier; the maps still add up.
    scores = found.logits[0].numpy()
    best = np.argsort(-scores)[:3]
    assert isinstance(backbone, TorchBackbone)
    means = backbone.class_maps(IMAGE, 3).mean(axis=(1, 2))
    np.testing.assert_allclose(means + shift.numpy()[best], scores[best], atol=1e-4)


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


WIDE = {**SMALL, "hidden_size": 128, "num_hidden_layers": 2, "intermediate_size": 256}
FOUR = {"patch_size": 16, "num_register_tokens": 4}
GATED = {"use_gated_mlp": True, "hidden_act": "silu"}
TEXT = {key: value for key, value in WIDE.items() if key != "image_size"}
# Models whose weights say all: heads have 64 channels.
KINDS = {
    "dinov2": ("Dinov2", {"patch_size": 14}),
    "dinov2 with gates": ("Dinov2", {"patch_size": 14, "use_swiglu_ffn": True}),
    "dinov2 with registers": ("Dinov2WithRegisters", FOUR),
    "dinov3": ("DINOv3ViT", FOUR),
    "dinov3 with gates": ("DINOv3ViT", {**FOUR, **GATED}),
    "clip": ("CLIPVision", {"patch_size": 16}),
    "clip with text": (
        "CLIP",
        {
            "vision_config": {**WIDE, "patch_size": 16},
            "text_config": {**TEXT, "vocab_size": 50},
        },
    ),
}


def wide(kind):
    torch.manual_seed(0)
    name, settings = KINDS[kind]
    config = getattr(transformers, f"{name}Config")
    made = config(**settings) if name == "CLIP" else config(**WIDE, **settings)
    return getattr(transformers, f"{name}Model")(made)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_folder_and_a_file_by_name(kind, tmp_path):
    network = wide(kind).eval()
    wanted = resolve_backbone(network).extract(IMAGE)
    network.save_pretrained(tmp_path)
    name = kind.split(" ")[0]
    for weights in (tmp_path, tmp_path / "model.safetensors"):
        found = resolve_backbone(name, weights).extract(IMAGE)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one.values, other.values)
    # Without the file that says what it is, its shapes do.
    (tmp_path / "config.json").unlink()
    found = resolve_backbone(name, tmp_path / "model.safetensors", layers=[1]).extract(IMAGE)
    np.testing.assert_array_equal(found[0].values, wanted[1].values)


class Authors(torch.nn.Module):
    """DINOv2 in the names of its authors, at the size of its places, and what leaves its blocks."""

    def __init__(self, width=128, heads=2, places=17):
        super().__init__()
        nn = torch.nn
        self.cls_token = nn.Parameter(torch.randn(1, 1, width))
        self.pos_embed = nn.Parameter(torch.randn(1, places, width))
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, width, 14, 14)})
        self.heads = heads
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm1": nn.LayerNorm(width, eps=1e-6),
                    "attn": nn.ModuleDict(
                        {"qkv": nn.Linear(width, 3 * width), "proj": nn.Linear(width, width)}
                    ),
                    "ls1": nn.ParameterDict({"gamma": torch.randn(width)}),
                    "norm2": nn.LayerNorm(width, eps=1e-6),
                    "mlp": nn.ModuleDict(
                        {"fc1": nn.Linear(width, 4 * width), "fc2": nn.Linear(4 * width, width)}
                    ),
                    "ls2": nn.ParameterDict({"gamma": torch.randn(width)}),
                }
            )
            for _ in range(2)
        )
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def forward(self, image):
        cells = self.patch_embed["proj"](image).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token, cells], dim=1) + self.pos_embed
        found = []
        for block in self.blocks:
            n, c = x.shape[1:]
            q, k, v = (
                block["attn"]["qkv"](block["norm1"](x))
                .reshape(1, n, 3, self.heads, c // self.heads)
                .permute(2, 0, 3, 1, 4)
            )
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
            y = block["attn"]["proj"](y.transpose(1, 2).reshape(1, n, c))
            x = x + block["ls1"]["gamma"] * y
            y = torch.nn.functional.gelu(block["mlp"]["fc1"](block["norm2"](x)))
            x = x + block["ls2"]["gamma"] * block["mlp"]["fc2"](y)
            found.append(x)
        return found


def test_a_file_of_the_authors_of_dinov2(tmp_path):
    torch.manual_seed(0)
    network = Authors().eval()
    path = tmp_path / "dinov2_vits14_pretrain.pth"
    torch.save({**network.state_dict(), "mask_token": torch.zeros(1, 128)}, path)
    backbone = resolve_backbone("dinov2", path)
    assert isinstance(backbone, TorchBackbone)
    # With half a patch before it, this is four by four patches.
    image = np.random.default_rng(1).random((49, 49, 3), dtype=np.float32)
    ready = torch.from_numpy(backbone._ready(image).transpose(2, 0, 1)[None].copy())
    with torch.no_grad():
        wanted = network(ready)
    for one, other in zip(backbone.extract(image), wanted, strict=True):
        grid = other[0, 1:].numpy().T.reshape(128, 4, 4)
        np.testing.assert_allclose(one.values, grid, atol=2e-4)


def test_weights_that_are_not_what_they_are_called(tmp_path):
    network = wide("dinov2")
    network.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    for name, weights, said in (
        ("dinov3", tmp_path, "holds a dinov2, not dinov3"),
        ("dinov2", tmp_path / "none", "does not exist; .* nothing is downloaded"),
        ("dinov2", None, "needs weights, the path of a folder or file"),
    ):
        with pytest.raises(InputError, match=said):
            resolve_backbone(name, weights)
    (tmp_path / "config.json").unlink()
    with pytest.raises(InputError, match=r"has no config\.json"):
        resolve_backbone("dinov2", tmp_path)
    with pytest.raises(InputError, match=r"no fitting weights for .*; is it a clip_vision_model"):
        resolve_backbone("clip", file)
    names = {f"blocks.{k}.attn.qkv.weight": torch.zeros(6, 2) for k in range(2)}
    torch.save(names, tmp_path / "authors.pth")
    with pytest.raises(InputError, match="the names of the authors' code; give the folder"):
        resolve_backbone("dinov3", tmp_path / "authors.pth")
    torch.save({"fc.weight": torch.zeros(2, 2)}, tmp_path / "fc.pth")
    with pytest.raises(InputError, match="has no patches and blocks of a clip"):
        resolve_backbone("clip", tmp_path / "fc.pth")


def test_a_matcher_with_patches():
    matcher = Matcher(model("dinov2"))
    assert matcher.settings.side == 60 * 14
    assert repr(matcher) == "Matcher(dinov2)"
    matcher = Matcher(model("dinov2"), side=112)
    photo = (255 * IMAGE).astype(np.uint8)
    assert matcher.pair_features(photo, photo).layers.source_grid.stride == 14
    # A stride is obeyed: features are interpolated.
    finer = matcher.with_settings(stride=7).pair_features(photo, photo).layers.source_grid
    own = matcher.pair_features(photo, photo).layers.source_grid
    assert (finer.stride, finer.h, finer.w) == (7, 2 * own.h - 1, 2 * own.w - 1)
    match = matcher.with_settings(stride=7, method="nn", hough=False, transfer="argmax")(
        photo, photo
    )
    points = [[40.0, 30.0], [70.0, 50.0]]
    np.testing.assert_allclose(match.transfer(points).points, points, atol=1e-6)

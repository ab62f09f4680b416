import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from frot._base.errors import DataWarning, InputError
from frot.correspondence.backbones._torch import TorchBackbone

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

IMAGE = np.random.default_rng(0).random((48, 64, 3), dtype=np.float32)


class Block(nn.Module):
    """A residual block whose last activation overwrites the sum."""

    def __init__(self, inputs, outputs, stride=1, added_in_place=True):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride, 1)
        self.norm = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Conv2d(inputs, outputs, 1, stride)
        self.added_in_place = added_in_place

    def forward(self, x):
        y = self.norm(self.conv(x))
        if self.added_in_place:
            y += self.down(x)
        else:
            y = y + self.down(x)
        return self.relu(y)


class Residual(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 7, 2, 3)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.blocks = nn.Sequential(Block(8, 8), Block(8, 12, 2, added_in_place=False))
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(12, classes)

    def forward(self, x):
        x = self.blocks(self.pool(self.relu(self.first(x))))
        return self.fc(self.dropout(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1)))


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return Residual().eval()


def by_hand(network, backbone):
    """The maps, from the parts one after the other."""
    x = torch.from_numpy(backbone._prepare(IMAGE).transpose(2, 0, 1)[None].copy())
    maps = []
    with torch.no_grad():
        x = nn.functional.max_pool2d(torch.relu(network.first(x)), 3, 2, 1)
        maps.append(x)
        for block in network.blocks:
            x = block.norm(block.conv(x)) + block.down(x)
            maps.append(x)
            x = torch.relu(x)
    return [value[0].numpy() for value in maps], x[0].numpy()


def test_sums_are_taken_before_the_activation_that_overwrites_them(network):
    backbone = TorchBackbone(network)
    assert backbone.layers == ("pool", "blocks.0", "blocks.1")
    maps = backbone.extract(IMAGE)
    wanted, _ = by_hand(network, backbone)
    for one, value in zip(maps, wanted, strict=True):
        np.testing.assert_allclose(one.values, value, atol=1e-5)
    assert maps[1].values.min() < 0
    assert [(one.stride, one.receptive_field) for one in maps] == [(4, 11), (4, 19), (8, 27)]


def test_outputs_where_they_are_asked_for(network):
    backbone = TorchBackbone(network, ["blocks.1:output", "blocks.0", "first"])
    assert backbone.layers == ("first", "blocks.0", "blocks.1:output")
    first, before, after = backbone.extract(IMAGE)
    wanted, last = by_hand(network, backbone)
    np.testing.assert_allclose(before.values, wanted[1], atol=1e-5)
    np.testing.assert_allclose(after.values, last, atol=1e-5)
    # The ReLU after the first convolution works in place, too.
    assert first.values.min() < 0
    assert (first.stride, first.receptive_field) == (2, 7)


def test_layers_by_place_and_under_other_names(network):
    assert TorchBackbone(network, [0, 2]).layers == ("pool", "blocks.1")
    assert TorchBackbone(network, [0, "blocks.1.conv"]).layers == ("pool", "blocks.1.conv")
    assert TorchBackbone(network, "blocks.1").layers == ("blocks.1",)  # type: ignore[arg-type]
    named = TorchBackbone(network, {"late": "blocks.1"})
    assert named.layers == ("late",)
    assert named.extract(IMAGE)[0].name == "late"


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        (["block.1"], r"does not have; nearest: blocks\.1"),
        ([7], "0 to"),
        ([-1], "0 to"),
        ([], "empty"),
        ({"late": "nothing"}, "does not have"),
        (["fc"], r"names 'fc' of Residual: a tensor of shape \(1, 5\) is not a map"),
    ],
)
def test_layers_that_are_not_there(network, layers, words):
    with pytest.raises(InputError, match=words):
        TorchBackbone(network, layers).extract(IMAGE)


def test_a_part_that_is_never_run():
    class Lazy(Residual):
        def forward(self, x):
            return self.first(x)

    with pytest.raises(InputError, match="does not run"):
        TorchBackbone(Lazy(), ["fc"]).extract(IMAGE)


def test_class_maps_are_what_the_classifier_averages(network):
    backbone = TorchBackbone(network)
    _, last = by_hand(network, backbone)
    x = torch.from_numpy(backbone._prepare(IMAGE).transpose(2, 0, 1)[None].copy())
    with torch.no_grad():
        scores = network(x)[0].numpy()
    best = np.argsort(-scores)[:2]
    maps = backbone.class_maps(IMAGE, 2)
    weights = network.fc.weight.detach().numpy()
    np.testing.assert_allclose(maps, np.einsum("ck,kyx->cyx", weights[best], last), atol=1e-5)
    np.testing.assert_allclose(
        maps.mean(axis=(1, 2)) + network.fc.bias.detach().numpy()[best], scores[best], atol=1e-5
    )
    with pytest.raises(InputError, match="classes is 6"):
        backbone.class_maps(IMAGE, 6)
    with pytest.raises(InputError, match="no classifier"):
        TorchBackbone(nn.Sequential(nn.Conv2d(3, 4, 3))).class_maps(IMAGE, 1)


class Gated(nn.Module):
    """A block that weighs its channels by a matrix on their averages."""

    def __init__(self, head):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, 2, 1)
        self.gate = nn.Linear(6, 6)
        self.head = nn.Linear(6, 2) if head else None

    def forward(self, x):
        x = self.conv(x)
        x = x * torch.sigmoid(self.gate(x.mean(dim=(2, 3))))[:, :, None, None]
        return x if self.head is None else self.head(x.mean(dim=(2, 3)))


def test_a_gate_is_no_classifier():
    torch.manual_seed(0)
    with pytest.raises(InputError, match="no classifier"):
        TorchBackbone(Gated(head=False)).class_maps(IMAGE, 1)
    assert TorchBackbone(Gated(head=True)).class_maps(IMAGE, 2).shape == (2, 24, 32)
    with pytest.raises(InputError, match="classes is 3"):
        TorchBackbone(Gated(head=True)).class_maps(IMAGE, 3)


def test_the_module_is_left_as_it_was(network):
    module = Residual()
    module.blocks[1].eval()
    before = {name: part.training for name, part in module.named_modules()}
    weights = {name: value.clone() for name, value in module.state_dict().items()}
    backbone = TorchBackbone(module)
    backbone.extract(IMAGE)
    assert {name: part.training for name, part in module.named_modules()} == before
    assert all(torch.equal(weights[name], value) for name, value in module.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    assert all(p.grad is None and p.requires_grad for p in module.parameters())


def test_two_threads_may_share_a_backbone(network):
    backbone = TorchBackbone(network)
    wanted = backbone.extract(IMAGE)
    with ThreadPoolExecutor(4) as pool:
        for maps in pool.map(backbone.extract, 8 * [IMAGE]):
            for one, other in zip(maps, wanted, strict=True):
                np.testing.assert_array_equal(one.values, other.values)


def test_hooks_are_removed_after_a_failure():
    class Failing(Residual):
        def forward(self, x):
            super().forward(x)
            if x.shape[2] == 48:
                raise RuntimeError("out of luck")
            return x

    module = Failing().train()
    backbone = TorchBackbone(module)
    with pytest.raises(InputError, match="64 x 48 pixels: out of luck"):
        backbone.extract(IMAGE)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    assert all(part.training for part in module.modules())


def test_without_residuals_the_convolutions_are_taken():
    plain = nn.Sequential(
        nn.Conv2d(3, 4, 3, 1, 1),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, 1, 1, dilation=1),
        nn.ReLU(inplace=True),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 7, 3, 1, 2, dilation=2),
    )
    maps = TorchBackbone(plain.eval()).extract(IMAGE)
    assert [one.name for one in maps] == ["1", "4", "7"]
    assert [one.stride for one in maps] == [1, 2, 4]
    # 3; 3 + 1 + 2 * 2; that + 2 + 4 * 4
    assert [one.receptive_field for one in maps] == [3, 8, 26]
    assert maps[1].values.min() < 0


def test_receptive_fields_are_what_gradients_say(network):
    maps = TorchBackbone(network).extract(IMAGE)
    image = torch.rand(1, 3, 65, 65, requires_grad=True)
    x = network.pool(torch.relu(network.first(image)))
    for block, one in zip(network.blocks, maps[1:], strict=True):
        x = block(x)
        middle = x.shape[2] // 2
        (slope,) = torch.autograd.grad(x[0, :, middle, middle].sum(), image, retain_graph=True)
        rows = torch.nonzero(slope[0].abs().sum(dim=(0, 2))).ravel()
        # Max-pools pass on one cell of each window: the reach is at most what is stated.
        assert int(rows[-1] - rows[0]) + 1 <= one.receptive_field
        assert abs(float(rows.double().mean()) - one.stride * middle) < one.receptive_field / 4


def test_half_precision_modules_give_single_precision_maps(network):
    torch.manual_seed(0)
    half = Residual().eval().to(torch.bfloat16)
    for one, other in zip(
        TorchBackbone(half).extract(IMAGE), TorchBackbone(network).extract(IMAGE), strict=True
    ):
        assert one.values.dtype == np.float32
        assert np.abs(one.values - other.values).max() < 0.1


def test_the_fingerprint_is_that_of_everything_that_matters(network):
    one = TorchBackbone(network).fingerprint
    assert one == TorchBackbone(network).fingerprint
    other = Residual()
    others = [
        TorchBackbone(network, [0, 1]),
        TorchBackbone(network, scale=255.0),
        TorchBackbone(network, colour="BGR"),
        TorchBackbone(other),
    ]
    assert len({one, *(backbone.fingerprint for backbone in others)}) == 5
    again = pickle.loads(pickle.dumps(TorchBackbone(network)))
    assert again.fingerprint == one
    np.testing.assert_array_equal(
        again.extract(IMAGE)[2].values, TorchBackbone(network).extract(IMAGE)[2].values
    )


class Tokens(nn.Module):
    """A small vision transformer, the batch first or the tokens."""

    def __init__(self, batch_first, extra=0):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 8, 8)
        self.extra = nn.Parameter(torch.randn(1, extra, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.batch_first = batch_first

    def forward(self, x):
        x = torch.cat([self.extra, self.patches(x).flatten(2).transpose(1, 2)], dim=1)
        return self.encoder(x if self.batch_first else x.transpose(0, 1))


@pytest.mark.parametrize("extra", [0, 2])
def test_tokens_before_the_batch_are_the_same_grid(extra):
    torch.manual_seed(0)
    usual, other = Tokens(True, extra).eval(), Tokens(False, extra).eval()
    other.load_state_dict(usual.state_dict())
    expected, found = (TorchBackbone(one).extract(IMAGE) for one in (usual, other))
    assert [one.name for one in found] == [f"encoder.layers.{k}" for k in range(3)]
    for one, wanted in zip(found, expected, strict=True):
        assert (
            (one.stride, one.receptive_field) == (wanted.stride, wanted.receptive_field) == (8, 8)
        )
        np.testing.assert_allclose(one.values, wanted.values, atol=1e-5)


@pytest.mark.parametrize("inside", [False, True])
def test_compiled_modules_are_refused(network, inside):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions say that TorchScript is on its way out
        compiled = [torch.jit.script(network), torch.jit.trace(network, torch.zeros(1, 3, 64, 64))]
    for one in compiled:
        module = nn.Sequential(one) if inside else one
        said = "module: '0' is" if inside else "module: it is"
        with pytest.raises(InputError, match=f"{said} compiled by TorchScript.*ONNX file"):
            TorchBackbone(module)


@pytest.mark.parametrize("error", [KeyError("boom"), AttributeError("no such"), OSError()])
def test_whatever_a_module_raises_is_one_sentence(error):
    class Failing(Residual):
        def forward(self, x):
            raise error

    with pytest.raises(InputError, match=rf"{type(error).__name__}.*; give a module whose") as said:
        TorchBackbone(Failing())
    assert "\n" not in str(said.value)


def test_bad_arguments(network):
    with pytest.raises(InputError, match=r"torch\.nn\.Module"):
        TorchBackbone("resnet101")
    with pytest.raises(InputError, match="device is"):
        TorchBackbone(network, device="moon")
    with pytest.raises(InputError, match="colour"):
        TorchBackbone(network, colour="rgb")
    with pytest.raises(InputError, match="std"):
        TorchBackbone(network, mean=0, std=0)
    with pytest.raises(InputError, match="mean is"):
        TorchBackbone(network, mean=[1, 2])
    with pytest.raises(InputError, match="scale"):
        TorchBackbone(network, scale=-1)
    with pytest.raises(InputError, match="no layers of two dimensions, neither residual sums nor"):
        TorchBackbone(nn.Flatten())
    with pytest.raises(InputError, match="cannot be run"):
        TorchBackbone(nn.Linear(7, 2))
    backbone = TorchBackbone(network)
    for image in (IMAGE[..., 0], IMAGE.transpose(2, 0, 1), (IMAGE * 255).astype(np.uint8)):
        with pytest.raises(InputError, match=r"give \(h, w, 3\) floats"):
            backbone.extract(image)
    with pytest.raises(InputError, match="not finite"):
        backbone.extract(IMAGE * np.nan)


def test_a_copy_goes_to_another_device(network):
    backbone = TorchBackbone(network, [0], device="meta")
    assert next(network.parameters()).device.type == "cpu"
    assert next(backbone._module.parameters()).device.type == "meta"
    assert TorchBackbone(network, device="cpu")._module is network


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_gives_the_same_maps(network):
    here, there = TorchBackbone(network), TorchBackbone(network, device="cuda")
    assert there.layers == here.layers
    assert there.fingerprint == here.fingerprint
    for one, other in zip(there.extract(IMAGE), here.extract(IMAGE), strict=True):
        assert (one.stride, one.receptive_field) == (other.stride, other.receptive_field)
        np.testing.assert_allclose(one.values, other.values, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(
        there.class_maps(IMAGE, 2), here.class_maps(IMAGE, 2), rtol=1e-2, atol=1e-2
    )


class Mixing(torch.nn.Module):
    """A residual block with the channels last."""

    def __init__(self, width):
        super().__init__()
        self.inside = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, width))

    def forward(self, x):
        return x + self.inside(x)


class Merging(torch.nn.Module):
    """Two by two cells become one: picked as torchvision's Swin does, or folded as timm's."""

    def __init__(self, width, folds):
        super().__init__()
        self.folds = folds
        self.reduce = torch.nn.Linear(4 * width, 2 * width)

    def forward(self, x):
        _, h, w, c = x.shape
        x = torch.nn.functional.pad(x, (0, 0, 0, w % 2, 0, h % 2))
        if self.folds:
            x = x.reshape(1, x.shape[1] // 2, 2, x.shape[2] // 2, 2, c)
            return self.reduce(x.permute(0, 1, 3, 4, 2, 5).flatten(3))
        picked = [x[..., i::2, j::2, :] for j in (0, 1) for i in (0, 1)]
        return self.reduce(torch.cat(picked, dim=-1))


class Last(torch.nn.Module):
    def forward(self, x):
        return x.permute(0, 2, 3, 1)


@pytest.mark.parametrize("folds", [False, True])
def test_blocks_behind_merged_patches_are_found(folds):
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 4, 4), Last(), Mixing(6),
        Merging(6, folds), Mixing(12), Mixing(12), Merging(12, folds), Mixing(24),
    ).eval()  # fmt: skip
    backbone = TorchBackbone(network)
    assert backbone.layers == ("2", "4", "5", "7")
    # The image is filled up to whole patches.
    maps = backbone.extract(IMAGE[:44, :56])
    assert [one.values.shape for one in maps] == [(6, 12, 16), (12, 6, 8), (12, 6, 8), (24, 3, 4)]
    assert [one.stride for one in maps] == [4, 8, 8, 16]
    assert [one.receptive_field for one in maps] == [4, 8, 8, 16]
    assert [one.start for one in maps] == [(x, x) for x in (1.5, 3.5, 3.5, 7.5)]
    x = torch.from_numpy(backbone._ready(IMAGE[:44, :56]).transpose(2, 0, 1)[None].copy())
    with torch.no_grad():
        wanted = network(x)[0].permute(2, 0, 1).numpy()
    np.testing.assert_allclose(maps[-1].values, wanted, atol=1e-5)


def test_few_layers_of_many_matrices_are_a_warning():
    torch.manual_seed(0)
    many = [torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(20)))]
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 4, 4), Last(), Mixing(4), *many)
    with pytest.warns(DataWarning, match="few of its layers were found, 1, and it applies 22"):
        assert TorchBackbone(network).layers == ("2",)
    # Whoever names layers knows.
    assert TorchBackbone(network, ["2", "3.4"]).layers == ("2", "3.4")


def test_a_network_of_timm_that_takes_one_size_is_told_apart():
    class Fixed(torch.nn.Module):
        def __init__(self, dynamic_img_size=False):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 4, 4)

        def forward(self, x):
            assert x.shape[2] == 224, "Input height doesn't match model."
            return self.conv(x)

    Fixed.__module__ = "timm.models.vision_transformer"
    backbone = TorchBackbone(Fixed())
    said = r"doesn't match model; make it with timm.create_model\(..., dynamic_img_size=True\)"
    with pytest.raises(InputError, match=said):
        backbone.extract(IMAGE)


class Pyramid(nn.Module):
    """Returns several maps, in whatever it is asked for."""

    def __init__(self, kind):
        super().__init__()
        self.body, self.kind = Residual(), kind

    def forward(self, x):
        body = self.body
        early = body.pool(body.relu(body.first(x)))
        late = body.blocks(early)
        return {"dict": {"early": early, "late": late}, "list": [x, early, late]}[self.kind]


def test_a_module_s_own_outputs_are_its_layers():
    torch.manual_seed(0)
    named = TorchBackbone(Pyramid("dict"))
    assert named.layers == ("early", "late")
    # The image itself, which some encoders put first, is no layer.
    listed = TorchBackbone(Pyramid("list"))
    assert listed.layers == ("output_1", "output_2")
    x = torch.from_numpy(named._prepare(IMAGE).transpose(2, 0, 1)[None].copy())
    with torch.no_grad():
        wanted = named._module.eval()(x)
    maps = named.extract(IMAGE)
    for one, value in zip(maps, wanted.values(), strict=True):
        np.testing.assert_allclose(one.values, value[0].numpy(), atol=1e-5)
    assert [(one.stride, one.receptive_field) for one in maps] == [(4, 11), (8, 27)]
    assert TorchBackbone(Pyramid("dict"), ["late"]).layers == ("late",)
    # Parts can be named as well.
    assert TorchBackbone(Pyramid("dict"), ["body.blocks.0"]).layers == ("body.blocks.0",)


class Info(list):
    def module_name(self):
        return ["stem", "stage"]


def test_features_of_timm_have_the_names_that_timm_gives_them():
    class FeatureList(Pyramid):
        def __init__(self):
            super().__init__("list")
            self.feature_info = Info()

        def forward(self, x):
            return super().forward(x)[1:]

    assert TorchBackbone(FeatureList()).layers == ("stem", "stage")


def test_a_network_for_images_of_one_size_says_what_to_take_instead():
    class OneSize(Tokens):
        image_size = 224

        def forward(self, x):
            assert x.shape[2] == 224, f"Wrong image height! Expected 224 but got {x.shape[2]}!"
            return super().forward(x)

    backbone = TorchBackbone(OneSize(True))
    assert len(backbone.layers) == 3
    with pytest.raises(InputError, match=r"224 x 224 pixels alone.*dynamic_img_size=True\), or"):
        backbone.extract(IMAGE)


def test_blocks_that_add_nothing_are_layers_like_the_others():
    class Sometimes(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv = nn.Conv2d(inputs, outputs, 3, stride, 1)
            self.adds = stride == 1 and inputs == outputs

        def forward(self, x):
            return x + self.conv(x) if self.adds else self.conv(x)

    network = nn.Sequential(Sometimes(3, 8, 2), Sometimes(8, 8, 1), Sometimes(8, 9, 2))
    backbone = TorchBackbone(network)
    assert backbone.layers == ("0", "1", "2")
    assert [one.stride for one in backbone.extract(IMAGE)] == [2, 2, 4]


def test_a_sum_with_constants_is_no_layer():
    class Placed(nn.Module):
        """Patches, embeddings of places that are added to them, and a block."""

        def __init__(self):
            super().__init__()
            self.places = nn.Parameter(torch.randn(1, 4, 1, 1))
            self.patches = nn.Sequential(nn.Conv2d(3, 4, 8, 8))
            self.block = Block(4, 4)

        def forward(self, x):
            x = self.patches(x)
            return self.block(x + self.places.expand(-1, -1, *x.shape[2:]))

    assert TorchBackbone(Placed()).layers == ("block",)

"""Graphs that are written out here, so that every figure is known."""

import pickle
import warnings

import numpy as np
import pytest

from frot._base.errors import DataWarning, InputError
from frot.correspondence import Matcher
from frot.correspondence.backbones._onnx import OnnxBackbone
from frot.correspondence.backbones._torch import TorchBackbone

onnx = pytest.importorskip("onnx")
torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")
from frot.correspondence.backbones._torch_networks import ResNet  # noqa: E402
from tests.correspondence.backbones.onnx_files import write  # noqa: E402

IMAGE = np.random.default_rng(0).random((40, 56, 3), dtype=np.float32)


@pytest.mark.parametrize("constants", [False, True])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_sums_strides_and_fields_come_from_the_graph(tmp_path, layout, constants):
    path = write(tmp_path / "small.onnx", layout=layout, constants=constants)
    backbone = OnnxBackbone(path, layout=layout)
    maps = backbone.extract(IMAGE)
    assert [one.name for one in maps] == ["stem", "sum_1", "sum_2"] == list(backbone.layers)
    assert [(one.stride, one.receptive_field) for one in maps] == [(4, 11), (4, 19), (8, 27)]
    assert [one.values.shape for one in maps] == [(6, 10, 14), (6, 10, 14), (8, 5, 7)]
    assert maps[1].values.min() < 0 <= maps[0].values.min()
    assert backbone.name == "small"
    again = pickle.loads(pickle.dumps(backbone))
    np.testing.assert_array_equal(again.extract(IMAGE)[2].values, maps[2].values)
    assert again.fingerprint == backbone.fingerprint


@pytest.mark.parametrize("gemm", [False, True])
def test_class_maps(tmp_path, gemm):
    runtime = pytest.importorskip("onnxruntime")
    path = write(tmp_path / "small.onnx", gemm=gemm)
    backbone = OnnxBackbone(path)
    session = runtime.InferenceSession(str(path))
    small = IMAGE[:32, :32]
    ready = np.ascontiguousarray(backbone._prepare(small).transpose(2, 0, 1)[None])
    (scores,) = session.run(None, {"image": ready})
    maps = backbone.class_maps(small, 3)
    order = np.argsort(-scores[0])[:3]
    bias = backbone._classifier.bias if backbone._classifier else np.zeros(0)
    np.testing.assert_allclose(
        maps.mean(axis=(1, 2)) + bias[order], scores[0][order], rtol=1e-4, atol=1e-5
    )
    assert backbone.class_maps(IMAGE, 1).shape == (1, 5, 7)


def test_colours_and_scale(tmp_path):
    path = write(tmp_path / "small.onnx")
    plain = OnnxBackbone(path, mean=0.0)
    turned = OnnxBackbone(path, mean=[0, 0, 0], colour="BGR")
    np.testing.assert_allclose(
        plain.extract(IMAGE)[0].values, turned.extract(IMAGE[..., ::-1])[0].values, atol=1e-6
    )
    large = OnnxBackbone(path, scale=255.0)
    np.testing.assert_allclose(
        255 * plain.extract(IMAGE)[0].values, large.extract(IMAGE)[0].values, rtol=1e-4, atol=1e-3
    )
    assert len({one.fingerprint for one in (plain, turned, large, OnnxBackbone(path))}) == 4


def test_layers_by_name_place_and_tensor(tmp_path):
    path = write(tmp_path / "small.onnx")
    assert OnnxBackbone(path, layers=["sum_2", "stem"]).layers == ("stem", "sum_2")
    assert OnnxBackbone(path, layers=[1]).layers == ("sum_1",)
    maps = OnnxBackbone(path, layers=["out0", "sum_1", "sum_2"]).extract(IMAGE)
    assert [one.name for one in maps] == ["sum_1", "out0", "sum_2"]
    np.testing.assert_array_equal(maps[1].values, np.maximum(maps[0].values, 0))
    with pytest.raises(InputError, match="does not have"):
        OnnxBackbone(path, layers=["sum_9"])


def test_a_graph_without_residuals(tmp_path):
    backbone = OnnxBackbone(write(tmp_path / "plain.onnx", residual=False))
    assert backbone.layers == ("convolution_1", "convolution_2", "convolution_3")
    assert [one.stride for one in backbone.extract(IMAGE)] == [2, 4, 8]


def test_files_that_cannot_be_used(tmp_path):
    path = write(tmp_path / "small.onnx")
    with pytest.raises(InputError, match="try layout='NHWC'"):
        OnnxBackbone(write(tmp_path / "last.onnx", layout="NHWC"))
    with pytest.raises(InputError, match="layout is 'HW'"):
        OnnxBackbone(path, layout="HW")
    with pytest.raises(InputError, match="2 inputs"):
        OnnxBackbone(write(tmp_path / "two.onnx", inputs=2))
    with pytest.raises(InputError, match="does not exist"):
        OnnxBackbone(tmp_path / "none.onnx")
    for name, content in (("page", b"<html></html>"), ("cut", path.read_bytes()[:900])):
        broken = tmp_path / f"{name}.onnx"
        broken.write_bytes(content)
        with pytest.raises(InputError, match="not an ONNX file, or is cut short"):
            OnnxBackbone(broken)
    empty = tmp_path / "empty.onnx"
    empty.write_bytes(b"")
    with pytest.raises(InputError, match="not an ONNX file"):
        OnnxBackbone(empty)


def test_a_graph_without_a_classifier(tmp_path):
    path = write(tmp_path / "small.onnx")
    model = onnx.load(path)
    kept = [node for node in model.graph.node if node.op_type not in ("Gemm", "Flatten")]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    model.graph.output[0].name = "averaged"
    onnx.save(model, tmp_path / "headless.onnx")
    backbone = OnnxBackbone(tmp_path / "headless.onnx")
    assert len(backbone.extract(IMAGE)) == 3
    with pytest.raises(InputError, match="no classifier"):
        backbone.class_maps(IMAGE, 1)


class ChannelsLast(torch.nn.Module):
    """A block that mixes channels by a matrix, with the channels last."""

    def __init__(self):
        super().__init__()
        self.look = torch.nn.Conv2d(6, 6, 7, padding=3, groups=6)
        self.mix = torch.nn.Sequential(
            torch.nn.LayerNorm(6), torch.nn.Linear(6, 12), torch.nn.GELU(), torch.nn.Linear(12, 6)
        )

    def forward(self, x):
        return x + self.mix(self.look(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


@pytest.mark.parametrize("kind", ["resnet", "channels last"])
def test_files_that_torch_wrote(tmp_path, kind):
    torch.manual_seed(0)
    if kind == "resnet":
        module = ResNet((1, 2, 1, 1), width=4, classes=3)
    else:
        module = torch.nn.Sequential(torch.nn.Conv2d(3, 6, 4, 4), ChannelsLast(), ChannelsLast())
    path = tmp_path / "exported.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The exporter that needs onnxscript is the other one.
        torch.onnx.export(module.eval(), (torch.zeros(1, 3, 64, 64),), str(path), dynamo=False)
    ours, wanted = OnnxBackbone(path), TorchBackbone(module)
    for one, other in zip(ours.extract(IMAGE), wanted.extract(IMAGE), strict=True):
        assert (one.stride, one.receptive_field) == (other.stride, other.receptive_field)
        np.testing.assert_allclose(one.values, other.values, atol=1e-5)
    if kind == "resnet":
        np.testing.assert_allclose(
            ours.class_maps(IMAGE, 2), wanted.class_maps(IMAGE, 2), atol=1e-5
        )


class Hidden(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image):
        return self.model(image).last_hidden_state


def vit(path, kind, any_size):
    """A small vision transformer of three blocks, as torch writes it."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32,
        image_size=56, patch_size=14, hidden_act="gelu",
        **({"num_register_tokens": 4} if kind == "DINOv3ViT" else {}),
    )  # fmt: skip
    module = getattr(transformers, f"{kind}Model")(config).eval()
    axes = {"dynamic_axes": {"image": {0: "n", 2: "h", 3: "w"}}} if any_size else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Hidden(module), (torch.zeros(1, 3, 56, 56),), str(path), dynamo=False,
            input_names=["image"], **axes,
        )  # fmt: skip
    return module


@pytest.mark.parametrize(
    ("kind", "any_size"),
    [("Dinov2", False), ("Dinov2", True), ("DINOv3ViT", True), ("CLIPVision", False)],
)
def test_every_block_of_a_vision_transformer(tmp_path, kind, any_size):
    path = tmp_path / "vit.onnx"
    module = vit(path, kind, any_size)
    call = {"interpolate_pos_encoding": True} if kind == "CLIPVision" else {}
    backbone, wanted = OnnxBackbone(path), TorchBackbone(module, call=call)
    assert backbone.layers == ("sum_1", "sum_2", "sum_3")
    assert backbone.patch == wanted.patch == 14
    assert backbone.most_side == (None if any_size else 49)
    # 49 pixels and half a patch before them are the file's own 56.
    square = np.tile(IMAGE, (2, 1, 1))[:49, :49]
    for image in (square, IMAGE[:40, :49], IMAGE[:30, :35])[: 3 if any_size else 1]:
        for one, other in zip(backbone.extract(image), wanted.extract(image), strict=True):
            assert (one.stride, one.receptive_field) == (other.stride, other.receptive_field)
            np.testing.assert_allclose(one.values, other.values, atol=1e-4)
    again = pickle.loads(pickle.dumps(backbone)).extract(square)
    np.testing.assert_array_equal(again[2].values, backbone.extract(square)[2].values)


def test_a_transformer_of_one_size_frames_smaller_images(tmp_path):
    vit(tmp_path / "vit.onnx", "CLIPVision", False)
    backbone = OnnxBackbone(tmp_path / "vit.onnx", layers=[0, 2])
    assert [one.values.shape for one in backbone.extract(IMAGE[:32, :49])] == 2 * [(16, 3, 4)]
    with pytest.raises(InputError, match="takes images of 49 pixels a side at most, not of 56 x 4"):
        backbone.extract(IMAGE)
    assert Matcher(backbone).settings.side == 49
    with pytest.raises(InputError, match="side: vit takes 49 pixels at most, not 320"):
        Matcher(backbone, side=320)


def test_few_layers_of_many_matrices_are_a_warning(tmp_path):
    many = [torch.nn.Linear(64, 64) for _ in range(20)]
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 6, 4, 4), torch.nn.Flatten(2), *many)
    path = tmp_path / "few.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), (torch.zeros(1, 3, 32, 32),), str(path), dynamo=False)
    with pytest.warns(DataWarning, match="few: few of its layers were found, 1, and it applies 21"):
        assert OnnxBackbone(path).layers == ("convolution_1",)

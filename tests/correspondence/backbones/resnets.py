"""Random ResNets in the layouts of every library that writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch


def weights(blocks: Sequence[int], width: int, classes: int = 0, seed: int = 0) -> dict[str, Any]:
    """A state dict in torchvision's names, written out from the layout alone."""
    random = torch.Generator().manual_seed(seed)
    found: dict[str, Any] = {}

    def conv(name: str, outputs: int, inputs: int, side: int) -> None:
        spread = (2 / (inputs * side**2)) ** 0.5
        shape = (outputs, inputs, side, side)
        found[f"{name}.weight"] = spread * torch.randn(shape, generator=random)

    def norm(name: str, channels: int, gain: float = 1.0) -> None:
        found[f"{name}.weight"] = gain * (0.5 + torch.rand(channels, generator=random))
        found[f"{name}.bias"] = 0.1 * torch.randn(channels, generator=random)
        found[f"{name}.running_mean"] = 0.1 * torch.randn(channels, generator=random)
        found[f"{name}.running_var"] = 0.5 + torch.rand(channels, generator=random)
        found[f"{name}.num_batches_tracked"] = torch.tensor(7)

    conv("conv1", width, 3, 7)
    norm("bn1", width)
    inputs = width
    for stage, count in enumerate(blocks):
        inside = width * 2**stage
        for block in range(count):
            name = f"layer{stage + 1}.{block}"
            conv(f"{name}.conv1", inside, inputs, 1)
            norm(f"{name}.bn1", inside)
            conv(f"{name}.conv2", inside, inside, 3)
            norm(f"{name}.bn2", inside)
            conv(f"{name}.conv3", 4 * inside, inside, 1)
            # Small gains keep sums of many blocks from growing out of all bounds.
            norm(f"{name}.bn3", 4 * inside, 0.3)
            if block == 0:
                conv(f"{name}.downsample.0", 4 * inside, inputs, 1)
                norm(f"{name}.downsample.1", 4 * inside)
            inputs = 4 * inside
    if classes:
        found["fc.weight"] = torch.randn((classes, inputs), generator=random) / inputs**0.5
        found["fc.bias"] = torch.randn(classes, generator=random)
    return found


def transformers_names(named: dict[str, Any], prefix: str = "resnet.") -> dict[str, Any]:
    """The same weights under transformers' names."""
    found = {}
    for key, value in named.items():
        parts = key.split(".")
        kind = {"conv": "convolution", "bn": "normalization"}
        if parts[0] == "fc":
            found[f"classifier.1.{parts[1]}"] = value
        elif parts[0] in ("conv1", "bn1"):
            found[f"{prefix}embedder.embedder.{kind[parts[0][:-1]]}.{parts[1]}"] = value
        else:
            start = f"{prefix}encoder.stages.{int(parts[0][5:]) - 1}.layers.{parts[1]}"
            if parts[2] == "downsample":
                word = ("convolution", "normalization")[int(parts[3])]
                found[f"{start}.shortcut.{word}.{parts[4]}"] = value
            else:
                word, place = kind[parts[2][:-1]], int(parts[2][-1]) - 1
                found[f"{start}.layer.{place}.{word}.{parts[3]}"] = value
    return found


def write_onnx(path: Path, named: dict[str, Any], blocks: Sequence[int], side: int = 224) -> None:
    """The same network as an ONNX graph with a fixed size of image."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = []
    initial = [
        numpy_helper.from_array(np.asarray(value), key)
        for key, value in named.items()
        if not key.endswith("num_batches_tracked")
    ]

    def conv(source: str, name: str, norm: str, stride: int = 1, relu: bool = True) -> str:
        side = named[f"{name}.weight"].shape[2]
        nodes.append(
            helper.make_node(
                "Conv",
                [source, f"{name}.weight"],
                [f"{name}/out"],
                kernel_shape=[side, side],
                strides=[stride] * 2,
                pads=[side // 2] * 4,
            )
        )
        inputs = [f"{norm}.{part}" for part in ("weight", "bias", "running_mean", "running_var")]
        nodes.append(
            helper.make_node(
                "BatchNormalization", [f"{name}/out", *inputs], [f"{norm}/out"], epsilon=1e-5
            )
        )
        if not relu:
            return f"{norm}/out"
        nodes.append(helper.make_node("Relu", [f"{norm}/out"], [f"{norm}/relu"]))
        return f"{norm}/relu"

    x = conv("image", "conv1", "bn1", 2)
    nodes.append(
        helper.make_node(
            "MaxPool", [x], ["maxpool"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4
        )
    )
    x = "maxpool"
    for stage, count in enumerate(blocks):
        for block in range(count):
            name = f"layer{stage + 1}.{block}"
            stride = 2 if stage and not block else 1
            y = conv(x, f"{name}.conv1", f"{name}.bn1")
            y = conv(y, f"{name}.conv2", f"{name}.bn2", stride)
            y = conv(y, f"{name}.conv3", f"{name}.bn3", relu=False)
            if f"{name}.downsample.0.weight" in named:
                x = conv(x, f"{name}.downsample.0", f"{name}.downsample.1", stride, relu=False)
            nodes.append(helper.make_node("Add", [y, x], [f"{name}/sum"]))
            nodes.append(helper.make_node("Relu", [f"{name}/sum"], [f"{name}/relu"]))
            x = f"{name}/relu"
    nodes.append(helper.make_node("GlobalAveragePool", [x], ["average"]))
    nodes.append(helper.make_node("Flatten", ["average"], ["flat"]))
    nodes.append(helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], ["scores"], transB=1))
    graph = helper.make_graph(
        nodes,
        "resnet",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, side, side])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, None)],
        initial,
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path
    )

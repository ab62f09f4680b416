"""ResNet-50, 101 and 152 from a file of weights that the user has."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frot._base.errors import InputError, require
from frot.correspondence.backbones._keras_resnet import (
    KERAS_COLOURS,
    from_keras,
    read_tensorflow_js,
)
from frot.correspondence.backbones._onnx import OnnxBackbone
from frot.correspondence.backbones._torch import TorchBackbone
from frot.correspondence.backbones._weights import fill, read_weights
from frot.correspondence.backbones.choose import choose_layers

__all__ = ["RESNETS", "resnet"]

RESNETS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}


def resnet(
    network: str,
    weights: str | os.PathLike[str],
    layers: Sequence[str | int] | None = None,
    *,
    early_stride: bool | None = None,
    device: Any = None,
) -> TorchBackbone | OnnxBackbone:
    """Return a ResNet with the weights of a file.

    ResNet-101 has 34 layers: the stem after its max-pool (``stem``, 64 channels) and 33 sums of
    bottlenecks before their last activation (``layer1.0`` to ``layer4.2``), 32,576 channels in all.

    Parameters
    ----------
    network : {"resnet50", "resnet101", "resnet152"}
        Which one.
    weights : path
        torchvision's ``.pth``, timm's or transformers' ``.safetensors`` (or the folder that
        transformers saves), the ``model.json`` of Keras' ResNet for TensorFlow.js (or its folder),
        or an ONNX file with the images as NCHW. Nothing is downloaded.
    layers : sequence of str or int, optional
        Names or places; by default all.
    early_stride : bool, optional
        Whether strides are in the first 1 x 1 convolutions. By default what a ``config.json``
        beside the weights says, True for Keras, and otherwise False, which holds for torchvision
        and timm.
    device : optional
        Where to run.

    Raises
    ------
    InputError
        If the file is not there, is not what it says, or belongs to another network.

    Examples
    --------
    >>> resnet("resnet101", "resnet101.pth")
    Traceback (most recent call last):
    ...
    frot.InputError: resnet101.pth does not exist; give the path of a weight file
    """
    if network not in RESNETS:
        raise InputError(f"network is {network!r}; give one of {', '.join(RESNETS)}")
    path = _file(Path(weights))
    return build_resnet(network, RESNETS[network], 64, path, layers, early_stride, device)


def build_resnet(
    network: str,
    blocks: Sequence[int],
    width: int,
    path: Path,
    layers: Sequence[str | int] | None = None,
    early_stride: bool | None = None,
    device: Any = None,
) -> TorchBackbone | OnnxBackbone:
    """Return a network of any depth and width."""
    names = ["stem"]
    names += [f"layer{s + 1}.{b}" for s, count in enumerate(blocks) for b in range(count)]
    if path.suffix == ".onnx":
        return _from_onnx(network, blocks, width, path, names, layers)
    require("torch", "correspondence")
    from frot.correspondence.backbones._torch_networks import ResNet

    chosen = choose_layers(names, layers, network)
    colours: dict[str, Any] = {}
    if path.suffix == ".json":
        model = read_tensorflow_js(path)
        named, early, colours = from_keras(model.weights, model.epsilon, path), True, KERAS_COLOURS
    else:
        named, early = own_names(read_weights(path), path), _early(path)
    classes = len(named["fc.bias"]) if "fc.bias" in named else 0
    module = ResNet(blocks, width, classes, early if early_stride is None else early_stride)
    fill(module, named, path, network)
    parts = {name: "maxpool" if name == "stem" else name for name in chosen}
    return TorchBackbone(module.eval(), parts, device=device, name=network, **colours)


def own_names(weights: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Translate the names of weights to torchvision's, which timm shares."""
    if "conv1.weight" in weights:
        return dict(weights)
    if any(key.endswith("embedder.embedder.convolution.weight") for key in weights):
        return {_from_transformers(key): value for key, value in weights.items()}
    some = ", ".join(list(weights)[:3])
    raise InputError(
        f"{path} holds no ResNet of torchvision, timm or transformers: it has weights such as "
        f"{some}"
    )


def _from_transformers(key: str) -> str:
    """Translate one of transformers' names.

    Examples
    --------
    >>> _from_transformers("resnet.encoder.stages.2.layers.5.layer.1.normalization.bias")
    'layer3.5.bn2.bias'
    >>> _from_transformers("resnet.encoder.stages.0.layers.0.shortcut.convolution.weight")
    'layer1.0.downsample.0.weight'
    """
    key = key.removeprefix("resnet.")
    kinds = {"convolution": ("conv", "0"), "normalization": ("bn", "1")}
    if match := re.fullmatch(r"embedder\.embedder\.(convolution|normalization)\.(\w+)", key):
        return f"{kinds[match[1]][0]}1.{match[2]}"
    if match := re.fullmatch(
        r"encoder\.stages\.(\d)\.layers\.(\d+)\.(shortcut|layer\.(\d))"
        r"\.(convolution|normalization)\.(\w+)",
        key,
    ):
        stage, block, part, place, kind, weight = match.groups()
        word, number = kinds[kind]
        inside = f"downsample.{number}" if part == "shortcut" else f"{word}{int(place) + 1}"
        return f"layer{int(stage) + 1}.{block}.{inside}.{weight}"
    return key.replace("classifier.1.", "fc.")


def _file(path: Path) -> Path:
    """Find the weights in a folder that transformers saved."""
    if path.is_dir():
        for name in ("model.safetensors", "pytorch_model.bin", "model.json"):
            if (path / name).is_file():
                return path / name
        raise InputError(f"{path} holds no model.safetensors; give the path of a weight file")
    return path


def _early(path: Path) -> bool:
    """Ask transformers' description, where it lies beside the weights."""
    beside = path.parent / "config.json"
    try:
        config = json.loads(beside.read_text())
    except (OSError, ValueError):
        return False
    if not isinstance(config, dict) or config.get("model_type") != "resnet":
        return False
    if config.get("downsample_in_first_stage"):
        raise InputError(f"{beside} says downsample_in_first_stage, which no ResNet here has")
    return bool(config.get("downsample_in_bottleneck", False))


def _from_onnx(
    network: str,
    blocks: Sequence[int],
    width: int,
    path: Path,
    names: list[str],
    layers: Sequence[str | int] | None,
) -> OnnxBackbone:
    whole = OnnxBackbone(path)
    found = [whole.geometry[name].channels for name in whole.layers]
    wanted = [width] + [4 * width * 2**s for s, count in enumerate(blocks) for _ in range(count)]
    if len(found) != len(wanted) or whole.layers[0] != "stem":
        raise InputError(
            f"{path} has {len(found)} layers where {network} has {len(wanted)}; for another "
            "network give OnnxBackbone(path) as the backbone"
        )
    if found != wanted:
        raise InputError(f"{path} has layers of other widths than {network}; is it that network?")
    backbone = OnnxBackbone(path, layers=layers, names=names)
    backbone.name = network
    return backbone

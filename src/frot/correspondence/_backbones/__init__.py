"""Networks behind one protocol."""

from __future__ import annotations

from frot.correspondence._backbones._arrays import ArrayBackbone, extract_named, image_key
from frot.correspondence._backbones._choose import SomeLayers
from frot.correspondence._backbones._mobile import default_backbone, efficientnet_lite2, mobilenetv2
from frot.correspondence._backbones._noise import NoisyBackbone
from frot.correspondence._backbones._onnx import OnnxBackbone
from frot.correspondence._backbones._resnet import resnet
from frot.correspondence._backbones._resolve import BACKBONES, resolve_backbone
from frot.correspondence._backbones._torch import TorchBackbone
from frot.correspondence._backbones._transformers import transformers_backbone
from frot.correspondence._backbones._weights import find_weights

__all__ = [
    "BACKBONES",
    "ArrayBackbone",
    "NoisyBackbone",
    "OnnxBackbone",
    "SomeLayers",
    "TorchBackbone",
    "default_backbone",
    "efficientnet_lite2",
    "extract_named",
    "find_weights",
    "image_key",
    "mobilenetv2",
    "resnet",
    "resolve_backbone",
    "transformers_backbone",
]

"""Vision models of transformers: objects of that library, and DINOv2, DINOv3 and CLIP by name."""

from __future__ import annotations

import inspect
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frot._base.errors import InputError, require
from frot.correspondence.backbones._torch import TorchBackbone
from frot.correspondence.backbones._weights import read_weights

__all__ = [
    "VISION_TRANSFORMERS",
    "is_transformers",
    "transformers_backbone",
    "vision_transformer",
]

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


# The kinds of configuration that a name may stand for; the first is what a lone file is taken for.
VISION_TRANSFORMERS: dict[str, tuple[str, ...]] = {
    "dinov2": ("dinov2", "dinov2_with_registers"),
    "dinov3": ("dinov3_vit", "dinov3_convnext"),
    "clip": ("clip_vision_model", "clip"),
}
_PATCHES = re.compile(
    r"(patch_embeddings\.projection|patch_embeddings?|patch_embed\.proj)\.weight$"
)
_BLOCK = re.compile(r"(?:^|\.)(?:layers?|blocks)\.(\d+)\.")
# Channels of a head are 64, but for these widths.
_HEADS = {("dinov3", 4096): 32, ("clip", 1280): 16, ("clip", 1408): 16, ("clip", 1664): 16}
CONFIG = "config.json"


def vision_transformer(
    name: str,
    weights: str | os.PathLike[str],
    layers: Sequence[str | int] | Mapping[str, str] | None = None,
    device: Any = None,
) -> TorchBackbone:
    """Return DINOv2, DINOv3 or CLIP with weights of the user's; nothing is downloaded.

    Parameters
    ----------
    name : {"dinov2", "dinov3", "clip"}
    weights : path
        A folder as ``save_pretrained`` writes it, or a ``.safetensors`` or ``.pth`` file of the
        same names. Beside a file may be its config.json; without it the network is read off the
        shapes of its weights, with heads of the published widths, and for CLIP the activation of
        OpenAI's models. DINOv2 may also be a file of its authors', in the names of their code.
    layers, device : optional
        As for `TorchBackbone`.

    Examples
    --------
    >>> vision_transformer("dinov2", "no-such-folder")
    Traceback (most recent call last):
    ...
    frot.InputError: weights: no-such-folder does not exist; give a folder or file that ...
    """
    path = Path(weights).expanduser()
    if not path.exists():
        raise InputError(
            f"weights: {path} does not exist; give a folder or file that you have, for example of "
            "huggingface.co; nothing is downloaded"
        )
    require("transformers", "transformers")
    model = _from_folder(name, path) if path.is_dir() else _from_file(name, path)
    return transformers_backbone(model, layers, device)


def _from_folder(name: str, folder: Path) -> Any:
    config = _config(name, folder / CONFIG)
    if not any(folder.glob("*.safetensors")) and not any(folder.glob("pytorch_model*.bin")):
        raise InputError(f"weights: {folder} has no model.safetensors; put it beside {CONFIG}")
    return _loaded(config, folder)


def _from_file(name: str, path: Path) -> Any:
    tensors = read_weights(path)
    beside = path.parent / CONFIG
    if name == "dinov2" and "blocks.0.attn.qkv.weight" in tensors:
        tensors = _renamed(tensors)
    elif any(".attn.qkv." in key or key.startswith("visual.") for key in tensors):
        raise InputError(
            f"weights: {path} has the names of the authors' code; give the folder that "
            f"transformers has of {name}, with {CONFIG} and model.safetensors"
        )
    elif beside.is_file():
        return _loaded(_config(name, beside), path, tensors)
    return _loaded(_inferred(name, tensors, path), path, tensors)


def _config(name: str, path: Path) -> Any:
    """Return the configuration in a file, of the family that the name stands for."""
    transformers = require("transformers", "transformers")
    if not path.is_file():
        raise InputError(f"weights: {path.parent} has no {CONFIG}; it says what network it is")
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        kind = known["model_type"]
        if kind in VISION_TRANSFORMERS[name]:
            found = transformers.AutoConfig.for_model(kind).from_dict(known)
            return found.vision_config if kind == "clip" else found
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"weights: {path} cannot be read ({error!r}); get it anew") from None
    wanted = " or ".join(VISION_TRANSFORMERS[name])
    raise InputError(f"weights: {path.parent} holds a {kind}, not {name} ({wanted})")


def _inferred(name: str, tensors: Mapping[str, Any], path: Path) -> Any:
    """Return the configuration that the shapes of the weights speak of."""
    transformers = require("transformers", "transformers")
    if name == "clip":
        tensors = {key: value for key, value in tensors.items() if "text_model." not in key}
    patches = next((value for key, value in tensors.items() if _PATCHES.search(key)), None)
    blocks = {int(found[1]) for key in tensors if (found := _BLOCK.search(key))}
    if patches is None or patches.ndim != 4 or not blocks:
        raise InputError(f"weights: {path} has no patches and blocks of a {name}; is it one?")
    width, _, patch, _ = patches.shape
    shared = {
        "hidden_size": width,
        "num_hidden_layers": len(blocks),
        "num_attention_heads": _HEADS.get((name, width), max(1, width // 64)),
        "patch_size": patch,
    }
    places = _shape(tensors, r"position_embeddings?(\.weight)?$")
    if places is not None:
        # One place is the class token's.
        shared["image_size"] = patch * math.isqrt(places[-2] - 1)
    registers = _shape(tensors, r"register_tokens$")
    if name == "clip":
        inside = _shape(tensors, r"mlp\.fc1\.weight$")
        return transformers.CLIPVisionConfig(**shared, intermediate_size=inside[0] if inside else 0)
    if name == "dinov2":
        gated = _shape(tensors, r"mlp\.fc1\.weight$") is None
        if registers is None:
            return transformers.Dinov2Config(**shared, use_swiglu_ffn=gated)
        return transformers.Dinov2WithRegistersConfig(
            **shared, use_swiglu_ffn=gated, num_register_tokens=registers[1]
        )
    inside = _shape(tensors, r"mlp\.up_proj\.weight$")
    gated = _shape(tensors, r"mlp\.gate_proj\.weight$") is not None
    return transformers.DINOv3ViTConfig(
        **shared,
        intermediate_size=inside[0] if inside else 0,
        use_gated_mlp=gated,
        hidden_act="silu" if gated else "gelu",
        num_register_tokens=registers[1] if registers else 0,
    )


def _shape(tensors: Mapping[str, Any], pattern: str) -> tuple[int, ...] | None:
    found = (tuple(value.shape) for key, value in tensors.items() if re.search(pattern, key))
    return next(found, None)


def _loaded(config: Any, path: Path, tensors: Mapping[str, Any] | None = None) -> Any:
    """Return the model; every one of its weights has to be there, of the right shape."""
    transformers = require("transformers", "transformers")
    kind = config.model_type
    # Of CLIP the part for images, which a file of both parts has, too.
    clip = kind == "clip_vision_model"
    network = transformers.CLIPVisionModel if clip else transformers.MODEL_MAPPING[type(config)]
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    bars = transformers.logging.is_progress_bar_enabled()
    transformers.logging.disable_progress_bar()
    try:
        model, said = network.from_pretrained(
            None if tensors is not None else str(path),
            config=config,
            output_loading_info=True,
            **({"local_files_only": True} if tensors is None else {"state_dict": dict(tensors)}),
        )
    except Exception as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"weights: {path} is not a {kind} that can be read: {first}") from None
    finally:
        transformers.logging.set_verbosity(level)
        if bars:
            transformers.logging.enable_progress_bar()
    lacking = sorted(key for key in said["missing_keys"] if "mask_token" not in key)
    if lacking or said.get("mismatched_keys"):
        what = lacking[0] if lacking else str(next(iter(said["mismatched_keys"])))
        raise InputError(f"weights: {path} has no fitting weights for {what}; is it a {kind}?")
    return model.eval()


def _renamed(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Give the weights of DINOv2's authors the names that transformers has for them."""
    found: dict[str, Any] = {}
    for key, value in tensors.items():
        if key.endswith(("attn.qkv.weight", "attn.qkv.bias")):
            stem, kind = key.rsplit("attn.qkv.", 1)
            stem = stem.replace("blocks.", "encoder.layer.")
            for part, piece in zip(("query", "key", "value"), value.chunk(3), strict=True):
                found[f"{stem}attention.attention.{part}.{kind}"] = piece.clone()
            continue
        for old, new in _NAMES:
            key = re.sub(old, new, key)
        found[key] = value
    return found


# From the authors' names to those of transformers.
_NAMES = (
    (r"^(cls_token|mask_token|register_tokens)$", r"embeddings.\1"),
    (r"^pos_embed$", "embeddings.position_embeddings"),
    (r"^patch_embed\.proj\.", "embeddings.patch_embeddings.projection."),
    (r"^blocks\.", "encoder.layer."),
    (r"\.attn\.proj\.", ".attention.output.dense."),
    (r"\.ls(\d)\.gamma$", r".layer_scale\1.lambda1"),
    (r"\.mlp\.w12\.", ".mlp.weights_in."),
    (r"\.mlp\.w3\.", ".mlp.weights_out."),
    (r"^norm\.", "layernorm."),
)

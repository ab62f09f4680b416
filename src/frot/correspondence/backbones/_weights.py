"""Weights from files, which are data and never code, by the names that networks here have."""

from __future__ import annotations

import json
import os
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError, require
from frot.datasets.catalogue import folders

_WRAPPERS = ("state_dict", "model_state_dict", "model", "module")


def read_weights(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the named tensors of a ``.pth``, ``.pt`` or ``.safetensors`` file.

    Files of torch are read with ``weights_only=True``: what would run code is refused.

    Examples
    --------
    >>> read_weights("resnet101.pth")
    Traceback (most recent call last):
    ...
    frot.InputError: resnet101.pth does not exist; give the path of a weight file
    """
    path = _existing(Path(path))
    torch = require("torch", "correspondence")
    if path.suffix == ".safetensors":
        load = require("safetensors.torch", "correspondence").load_file
        try:
            return dict(load(str(path)))
        except Exception as error:
            raise InputError(_refusal(path, "a safetensors file", error)) from None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        unsafe = "Weights only load failed" in str(error) and not _is_text(path)
        if unsafe and isinstance(error, pickle.UnpicklingError):
            raise InputError(
                f"{path} holds more than tensors, and reading it could run code; save the "
                "state_dict() alone"
            ) from None
        raise InputError(_refusal(path, "a file of torch", error)) from None
    for wrapper in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping) or not content:
        raise InputError(f"{path} holds a {type(content).__name__}; save a state_dict()")
    named = {str(key): value for key, value in content.items() if torch.is_tensor(value)}
    if not named:
        raise InputError(f"{path} holds no tensors; save a state_dict()")
    # What DataParallel puts before every name says nothing about the network.
    if all(key.startswith("module.") for key in named):
        named = {key.removeprefix("module."): value for key, value in named.items()}
    return named


def find_weights(name: str, root: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the path of a weight file in the data folders, or None.

    It may lie in ``weights`` below `root`, below the folder that ``FROT_DATA`` names, and below
    the other folders in which data sets are looked for.

    Examples
    --------
    >>> find_weights("no-such-network.pth") is None
    True
    """
    for folder in folders(root):
        for path in (folder / "weights" / name, folder / name):
            if path.is_file():
                return path
    return None


def fill(module: Any, weights: Mapping[str, Any], path: object, network: str) -> None:
    """Load weights into a module; every one must be there, of the right shape, and finite."""
    torch = require("torch", "correspondence")
    wanted = module.state_dict()
    for key, value in wanted.items():
        if key.endswith("num_batches_tracked"):
            continue
        if key not in weights:
            raise InputError(f"{path} has no weights for {key} of {network}; is it that network?")
        if tuple(weights[key].shape) != tuple(value.shape):
            raise InputError(
                f"{path} has shape {tuple(weights[key].shape)} for {key}, but {network} has "
                f"{tuple(value.shape)}; is it that network?"
            )
        if not bool(torch.isfinite(weights[key].float()).all()):
            raise InputError(f"{path} has values for {key} that are not finite; get it anew")
    extra = sorted(key for key in weights if key not in wanted)
    if extra:
        raise InputError(f"{path} has weights that {network} does not have, such as {extra[0]}")
    module.load_state_dict({**wanted, **weights})


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"{path} does not exist; give the path of a weight file")
    return path


def _refusal(path: Path, kind: str, error: Exception) -> str:
    if _is_text(path):
        return f"{path} is a text or web page, not {kind}; get the file itself"
    first = (str(error).splitlines() or [type(error).__name__])[0]
    if not zipfile.is_zipfile(path) and path.suffix != ".safetensors":
        return f"{path} is not {kind}, or is cut short"
    return f"{path} is not {kind}, or is cut short: {first}"


def _is_text(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(64).lstrip()
    return start.startswith((b"<", b"{", b"version https://git-lfs"))


def efficientnet_name(key: str) -> str:
    """Translate the name of a weight of EfficientNet-Lite2's package.

    Examples
    --------
    >>> efficientnet_name("_blocks.3._bn1.weight"), efficientnet_name("_conv_head.weight")
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


def mobilenet_name(key: str) -> str:
    """Translate torchvision's name of a weight of MobileNetV2.

    Examples
    --------
    >>> mobilenet_name("features.2.conv.3.weight"), mobilenet_name("features.1.conv.1.bias")
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


def torchvision_names(weights: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the weights of a ResNet by torchvision's names, which timm shares."""
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


# From the authors' names to those of transformers.
_DINOV2_NAMES = (
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


def transformers_names(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Return the weights of DINOv2's authors by the names that transformers has for them."""
    found: dict[str, Any] = {}
    for key, value in tensors.items():
        if key.endswith(("attn.qkv.weight", "attn.qkv.bias")):
            stem, kind = key.rsplit("attn.qkv.", 1)
            stem = stem.replace("blocks.", "encoder.layer.")
            for part, piece in zip(("query", "key", "value"), value.chunk(3), strict=True):
                found[f"{stem}attention.attention.{part}.{kind}"] = piece.clone()
            continue
        for old, new in _DINOV2_NAMES:
            key = re.sub(old, new, key)
        found[key] = value
    return found


# What Keras adds to variances where a model does not say, and what torch adds.
KERAS_EPSILON, EPSILON = 1e-3, 1e-5


def read_keras_resnet(path: Path) -> dict[str, Any]:
    r"""Return the weights of Keras' ResNet for TensorFlow.js by torchvision's names and shapes.

    `path` is its ``model.json``. Weights are data, and nothing is run; quantised ones are refused.
    They are called ``res2a_branch2a/kernel`` (Keras of old) or ``conv2_block1_1_conv/kernel``. The
    bias of a convolution goes into the mean of the normalisation behind it, and the difference
    between the two libraries' epsilon into its variance:

    .. math:: \gamma \frac{x + b - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta
        = \gamma \frac{x - (\mu - b)}{\sqrt{(\sigma^2 + \epsilon - 10^{-5}) + 10^{-5}}} + \beta

    Examples
    --------
    >>> read_keras_resnet(Path("model.json"))
    Traceback (most recent call last):
    ...
    frot.InputError: model.json does not exist; give the path of a weight file
    """
    weights, epsilon = _read_tensorflow_js(path)
    torch = require("torch", "correspondence")
    parts: dict[str, dict[str, np.ndarray]] = {}
    for key, value in weights.items():
        layer, _, kind = key.rpartition("/")
        parts.setdefault(layer.rpartition("/")[2], {})[kind] = value
    found: dict[str, np.ndarray] = {}
    biases: dict[str, np.ndarray] = {}
    for layer, part in parts.items():
        place = _place(layer, path)
        try:
            if place == "fc":
                found |= {"fc.weight": part["kernel"].T, "fc.bias": part["bias"]}
            elif _NORMALISATION.search(place):
                found |= {
                    f"{place}.weight": part["gamma"],
                    f"{place}.bias": part["beta"],
                    f"{place}.running_mean": part["moving_mean"],
                    f"{place}.running_var": part["moving_variance"] + (epsilon - EPSILON),
                }
            else:
                found[f"{place}.weight"] = part["kernel"].transpose(3, 2, 0, 1)
                # Under the name of the normalisation behind it.
                behind = re.sub(r"conv(\d)$", r"bn\1", place.replace("sample.0", "sample.1"))
                biases[behind] = part.get("bias", np.zeros(1, dtype=np.float32))
        except KeyError as missing:
            raise InputError(f"{path} has no {missing.args[0]} of {layer}") from None
    for place, bias in biases.items():
        if f"{place}.running_mean" not in found:
            raise InputError(f"{path} has no normalisation behind {place}; is it a ResNet?")
        found[f"{place}.running_mean"] = found[f"{place}.running_mean"] - bias
    return {
        key: torch.from_numpy(np.ascontiguousarray(value, dtype=np.float32))
        for key, value in found.items()
    }


# How the names of normalisations end.
_NORMALISATION = re.compile(r"(^|\.)(bn\d|downsample\.1)$")


def _place(layer: str, path: Path) -> str:
    """Return torchvision's name of a layer.

    Examples
    --------
    >>> _place("res4f_branch2b", Path("model.json")), _place("bn2a_branch1", Path("model.json"))
    ('layer3.5.conv2', 'layer1.0.downsample.1')
    >>> _place("conv4_block6_2_conv", Path("model.json"))
    'layer3.5.conv2'
    """
    if layer in ("conv1", "conv1_conv"):
        return "conv1"
    if layer in ("bn_conv1", "conv1_bn"):
        return "bn1"
    if re.fullmatch(r"fc\d+|predictions|probs", layer):
        return "fc"
    if match := re.fullmatch(r"(res|bn)([2-5])([a-z])_branch(1|2[abc])", layer):
        kind, stage, letter, branch = match.groups()
        block, number = ord(letter) - ord("a"), " abc".index(branch[1:] or " ")
    elif match := re.fullmatch(r"conv([2-5])_block(\d+)_([0-3])_(conv|bn)", layer):
        stage, block, number, kind = match[1], int(match[2]) - 1, int(match[3]), match[4]
    else:
        raise InputError(f"{path} has a layer {layer!r}, which no ResNet of Keras has")
    normal = kind == "bn"
    inside = f"downsample.{int(normal)}" if number == 0 else f"{'bn' if normal else 'conv'}{number}"
    return f"layer{int(stage) - 1}.{block}.{inside}"


def _read_tensorflow_js(path: Path) -> tuple[dict[str, np.ndarray], float]:
    """Return the weights of a model by name, such as ``conv1/kernel``, and its epsilon.

    That is what it adds to variances. The shards lie in the same folder as its ``model.json``.
    """
    path = _existing(path)
    try:
        model = json.loads(path.read_text(encoding="utf-8"))
        groups = [
            ([str(name) for name in group["paths"]], list(map(_entry, group["weights"])))
            for group in model["weightsManifest"]
        ]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is no model.json of a TensorFlow.js layers model") from None
    weights: dict[str, np.ndarray] = {}
    for shards, entries in groups:
        weights |= _group(path.parent, shards, entries)
    return weights, _epsilon(model, path)


def _entry(entry: dict[str, Any]) -> tuple[str, tuple[int, ...], bool]:
    """Name and shape of an array, and whether it is in single precision."""
    plain = entry["dtype"] == "float32" and "quantization" not in entry
    return str(entry["name"]), tuple(int(side) for side in entry["shape"]), plain


def _group(
    folder: Path, shards: list[str], entries: list[tuple[str, tuple[int, ...], bool]]
) -> dict[str, np.ndarray]:
    """The arrays of one group, which lie end to end over its shards."""
    content = b"".join(_shard(folder, name) for name in shards)
    found, start = {}, 0
    for name, shape, plain in entries:
        if not plain:
            raise InputError(f"{folder} holds {name} quantised; get the model in single precision")
        count = int(np.prod(shape, dtype=int))
        if start + 4 * count > len(content):
            raise InputError(f"{folder} holds less than its model.json says; get it anew")
        # Copied: what is read is not to be written, and torch warns of such arrays.
        found[name] = np.frombuffer(content, "<f4", count, start).reshape(shape).copy()
        start += 4 * count
    if start != len(content):
        raise InputError(f"{folder} holds more than its model.json says; get it anew")
    return found


def _shard(folder: Path, name: str) -> bytes:
    if Path(name).name != name:
        raise InputError(f"{folder / 'model.json'} names a shard {name!r} outside its folder")
    try:
        return (folder / name).read_bytes()
    except OSError:
        raise InputError(f"{folder / name} is missing, which model.json names") from None


def _epsilon(model: dict[str, Any], path: Path) -> float:
    """What the model's normalisations add to variances: one number."""
    try:
        layers = model["modelTopology"]["model_config"]["config"]["layers"]
        found = {
            float(layer["config"].get("epsilon", KERAS_EPSILON))
            for layer in layers
            if layer["class_name"] == "BatchNormalization"
        }
    except (KeyError, TypeError, ValueError):
        found = {KERAS_EPSILON}
    if len(found) > 1:
        raise InputError(f"{path} has normalisations that differ in epsilon, as no ResNet has")
    return found.pop() if found else KERAS_EPSILON

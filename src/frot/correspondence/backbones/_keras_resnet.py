"""ResNets of Keras: files of TensorFlow.js, and their weights as torchvision names them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from frot._base.errors import InputError, require

__all__ = ["KERAS_COLOURS", "TensorFlowJs", "from_keras", "read_tensorflow_js"]

# What Keras adds to variances where a model does not say.
KERAS_EPSILON = 1e-3


@dataclass(frozen=True, eq=False)
class TensorFlowJs:
    """Weights by name, such as ``conv1/kernel``, and what is added to variances."""

    weights: dict[str, np.ndarray]
    epsilon: float


def read_tensorflow_js(path: Path) -> TensorFlowJs:
    """Return the weights of a model; they are data, and nothing is run.

    Parameters
    ----------
    path : path
        Its ``model.json``; the shards lie in the same folder. Quantised weights are refused.

    Examples
    --------
    >>> read_tensorflow_js(Path("model.json"))
    Traceback (most recent call last):
    ...
    frot.InputError: model.json does not exist; give the path of a weight file
    """
    if not path.is_file():
        raise InputError(f"{path} does not exist; give the path of a weight file")
    try:
        model = json.loads(path.read_text(encoding="utf-8"))
        groups = [(_names(group), _entries(group)) for group in model["weightsManifest"]]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is no model.json of a TensorFlow.js layers model") from None
    weights: dict[str, np.ndarray] = {}
    for shards, entries in groups:
        weights.update(_group(path.parent, shards, entries))
    return TensorFlowJs(weights, _epsilon(model, path))


@dataclass(frozen=True)
class _Entry:
    """One array of a group."""

    name: str
    shape: tuple[int, ...]
    plain: bool


def _names(group: dict[str, Any]) -> list[str]:
    return [str(name) for name in group["paths"]]


def _entries(group: dict[str, Any]) -> list[_Entry]:
    return [
        _Entry(
            str(entry["name"]),
            tuple(int(side) for side in entry["shape"]),
            entry["dtype"] == "float32" and "quantization" not in entry,
        )
        for entry in group["weights"]
    ]


def _group(folder: Path, shards: list[str], entries: list[_Entry]) -> dict[str, np.ndarray]:
    """The arrays of one group, which lie end to end over its shards."""
    content = b"".join(_shard(folder, name) for name in shards)
    found, start = {}, 0
    for entry in entries:
        if not entry.plain:
            raise InputError(
                f"{folder} holds {entry.name} quantised; get the model in single precision"
            )
        count = int(np.prod(entry.shape, dtype=int))
        if start + 4 * count > len(content):
            raise InputError(f"{folder} holds less than its model.json says; get it anew")
        # Copied: what is read is not to be written, and torch warns of such arrays.
        found[entry.name] = np.frombuffer(content, "<f4", count, start).reshape(entry.shape).copy()
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


# Blue first, means of ImageNet subtracted, no scaling: Caffe's habits, from where they came.
KERAS_COLOURS: dict[str, Any] = {
    "colour": "BGR",
    "mean": [103.939, 116.779, 123.68],
    "scale": 255.0,
}
# What torch adds to variances.
EPSILON = 1e-5


def from_keras(weights: Mapping[str, np.ndarray], epsilon: float, path: Path) -> dict[str, Any]:
    r"""Return the weights by torchvision's names and in its shapes.

    The bias of a convolution goes into the mean of the normalisation behind it, and the difference
    between the two libraries' epsilon into its variance:

    .. math:: \gamma \frac{x + b - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta
        = \gamma \frac{x - (\mu - b)}{\sqrt{(\sigma^2 + \epsilon - 10^{-5}) + 10^{-5}}} + \beta

    Parameters
    ----------
    weights : mapping of str to array
        Such as ``res2a_branch2a/kernel`` (Keras of old) or ``conv2_block1_1_conv/kernel``.
    epsilon : float
        What the model adds to variances.
    path : path
        For messages.
    """
    torch = require("torch", "correspondence")
    parts: dict[str, dict[str, np.ndarray]] = {}
    for key, value in weights.items():
        layer, _, kind = key.rpartition("/")
        parts.setdefault(layer.rpartition("/")[2], {})[kind] = value
    found: dict[str, np.ndarray] = {}
    biases: dict[str, np.ndarray] = {}
    for layer, part in parts.items():
        place, normalisation = _place(layer, path)
        try:
            if place == "fc":
                found |= {"fc.weight": part["kernel"].T, "fc.bias": part["bias"]}
            elif layer == normalisation:
                found |= {
                    f"{place}.weight": part["gamma"],
                    f"{place}.bias": part["beta"],
                    f"{place}.running_mean": part["moving_mean"],
                    f"{place}.running_var": part["moving_variance"] + (epsilon - EPSILON),
                }
            else:
                found[f"{place}.weight"] = part["kernel"].transpose(3, 2, 0, 1)
                biases[_behind(place)] = part.get("bias", np.zeros(1, dtype=np.float32))
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


def _place(layer: str, path: Path) -> tuple[str, str]:
    """Return torchvision's name of a layer, and the layer's own if it is a normalisation.

    Examples
    --------
    >>> _place("res4f_branch2b", Path("model.json")), _place("bn2a_branch1", Path("model.json"))
    (('layer3.5.conv2', ''), ('layer1.0.downsample.1', 'bn2a_branch1'))
    >>> _place("conv4_block6_2_conv", Path("model.json"))
    ('layer3.5.conv2', '')
    """
    if layer in ("conv1", "conv1_conv"):
        return "conv1", ""
    if layer in ("bn_conv1", "conv1_bn"):
        return "bn1", layer
    if re.fullmatch(r"fc\d+|predictions|probs", layer):
        return "fc", ""
    if match := re.fullmatch(r"(res|bn)([2-5])([a-z])_branch(1|2[abc])", layer):
        kind, stage, letter, branch = match.groups()
        block, number = ord(letter) - ord("a"), " abc".index(branch[1:] or " ")
    elif match := re.fullmatch(r"conv([2-5])_block(\d+)_([0-3])_(conv|bn)", layer):
        stage, block, number, kind = match[1], int(match[2]) - 1, int(match[3]), match[4]
    else:
        raise InputError(f"{path} has a layer {layer!r}, which no ResNet of Keras has")
    normal = kind == "bn"
    inside = f"downsample.{int(normal)}" if number == 0 else f"{'bn' if normal else 'conv'}{number}"
    return f"layer{int(stage) - 1}.{block}.{inside}", layer if normal else ""


def _behind(place: str) -> str:
    """The normalisation behind a convolution."""
    return re.sub(r"conv(\d)$", r"bn\1", place.replace("downsample.0", "downsample.1"))

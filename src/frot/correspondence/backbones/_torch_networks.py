"""Networks that are built here, for weights in files: inverted residuals, and ResNets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from frot._base.errors import InputError

# What can be taken of a block, and the part that gives it.
TENSORS = {
    "sum": "",
    "projection": ".project",
    "expansion": ".expand",
    "depthwise": ".depthwise",
}


@dataclass(frozen=True)
class Stage:
    """Blocks of one width."""

    # How many times wider a block is inside, and the channels that leave it.
    expansion: int
    channels: int
    blocks: int
    # Of the first block.
    stride: int
    # Side of the depthwise windows.
    kernel: int = 3


class _Block(nn.Module):
    """Widen, look around channel by channel, narrow, and add what came in where it fits."""

    def __init__(self, inputs: int, stage: Stage, stride: int, eps: float) -> None:
        super().__init__()
        inside = inputs * stage.expansion
        self.expand = _convolution(inputs, inside, 1, eps=eps) if stage.expansion > 1 else None
        self.depthwise = _convolution(
            inside, inside, stage.kernel, stride=stride, groups=inside, eps=eps
        )
        self.project = _convolution(inside, stage.channels, 1, eps=eps, active=False)
        self.residual = stride == 1 and inputs == stage.channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inside = x if self.expand is None else self.expand(x)
        y = self.project(self.depthwise(inside))
        return x + y if self.residual else y


class InvertedResiduals(nn.Module):
    """Stem, blocks, head and, where there is one, classifier: without classes there is none.

    Every window is padded alike on both sides, whatever the size of the image, so that the cell
    with index i is centred on pixel stride i, and a shift of the image by a stride is a shift of
    the map by a cell. Batch normalisations add eps to the variance.

    Examples
    --------
    >>> network = InvertedResiduals([Stage(1, 8, 1, 1), Stage(6, 16, 2, 2)], 8, 32, classes=5)
    >>> network.eval()(torch.zeros(1, 3, 33, 47)).shape
    torch.Size([1, 5])
    """

    def __init__(
        self, stages: Sequence[Stage], stem: int, head: int, classes: int = 0, eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.stem = _convolution(3, stem, 3, stride=2, eps=eps)
        blocks, channels = [], stem
        for stage in stages:
            for place in range(stage.blocks):
                blocks.append(_Block(channels, stage, stage.stride if place == 0 else 1, eps))
                channels = stage.channels
        self.blocks = nn.ModuleList(blocks)
        self.head = _convolution(channels, head, 1, eps=eps)
        self.classifier = nn.Linear(head, classes) if classes else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the classifier's scores, or the head's maps."""
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        x = self.head(x)
        return x if self.classifier is None else self.classifier(x.mean(dim=(2, 3)))


def parts_of(network: InvertedResiduals, tensors: str) -> dict[str, str]:
    """Return the part of each block that gives its map, by the name of the block.

    ``"sum"`` is what leaves a block, ``"projection"`` the same before the block's input is added,
    ``"expansion"`` what is widened and ``"depthwise"`` what its windows made of that, both after
    their activation. A block that does not widen gives its windows in place of its expansion.
    """
    if tensors not in TENSORS:
        raise InputError(f"tensors is {tensors!r}; give one of {', '.join(TENSORS)}")
    parts = {}
    for place, block in enumerate(network.blocks):
        narrow = tensors == "expansion" and block.expand is None
        part = TENSORS["depthwise" if narrow else tensors]
        parts[f"block_{place}"] = f"blocks.{place}{part}"
    return parts


def _convolution(
    inputs: int,
    outputs: int,
    kernel: int,
    *,
    stride: int = 1,
    groups: int = 1,
    eps: float,
    active: bool = True,
) -> nn.Sequential:
    parts: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs, eps=eps),
    ]
    if active:
        parts.append(nn.ReLU6())
    return nn.Sequential(*parts)


class _Bottleneck(nn.Module):
    """Narrow, look around, widen by four, and add what came in."""

    def __init__(self, inputs: int, width: int, stride: int, early: bool) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, stride if early else 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1 if early else stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        if self.downsample is not None:
            x = self.downsample(x)
        return torch.relu(y + x)


class ResNet(nn.Module):
    """A stem, four stages of bottlenecks and, where there is one, a classifier.

    The parts have the names that torchvision gave them, so that its files fit as they are. With
    (3, 4, 23, 3) blocks a stage and a stem of 64 channels it is ResNet-101. A stage's stride is
    in its first 1 x 1 convolution, as it was in 2015 (`early`), or in the 3 x 3 convolution after
    it, as in the files of today.

    Examples
    --------
    >>> ResNet((1, 1, 1, 1), width=4, classes=5).eval()(torch.zeros(1, 3, 64, 48)).shape
    torch.Size([1, 5])
    """

    def __init__(
        self, blocks: Sequence[int], width: int = 64, classes: int = 0, early: bool = False
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inputs = width
        for place, count in enumerate(blocks):
            inside = width * 2**place
            stage = []
            for block in range(count):
                stride = 2 if place > 0 and block == 0 else 1
                stage.append(_Bottleneck(inputs, inside, stride, early))
                inputs = 4 * inside
            self.add_module(f"layer{place + 1}", nn.Sequential(*stage))
        self.stages = len(blocks)
        self.fc = nn.Linear(inputs, classes) if classes else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the classifier's scores, or the last maps."""
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        for place in range(self.stages):
            x = self.get_submodule(f"layer{place + 1}")(x)
        return x if self.fc is None else self.fc(x.mean(dim=(2, 3)))

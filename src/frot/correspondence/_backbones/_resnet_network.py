"""Residual networks of bottlenecks: ResNet-50, 101 and 152."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

__all__ = ["ResNet"]


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

    The parts have the names that torchvision gave them, so that its files fit as they are.

    Parameters
    ----------
    blocks : four ints
        Bottlenecks a stage: (3, 4, 23, 3) is ResNet-101.
    width : int
        Channels of the stem; 64 in the published networks.
    classes : int
        0 for a network without classifier.
    early : bool
        Whether a stage's stride is in its first 1 x 1 convolution, as it was in 2015, or in the
        3 x 3 convolution after it, as in the files of today.

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

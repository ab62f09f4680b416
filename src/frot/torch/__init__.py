"""The feature-robust transport cost as a loss for PyTorch, differentiable on any device.

Points or batches of points go in, a tensor with gradients comes out. Needs PyTorch:
``pip install "frot[torch]"``; `import frot` does not load it.
"""

from __future__ import annotations

from frot.torch.loss import FRWDLoss

__all__ = ["FRWDLoss"]

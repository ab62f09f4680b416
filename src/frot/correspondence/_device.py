"""Where to work: NumPy, or PyTorch on a device."""

from __future__ import annotations

from typing import Any

from frot._errors import InputError

__all__ = ["find_device"]


def find_device(device: str | None) -> Any:
    """Return the torch device to work on, None for NumPy."""
    if device == "numpy":
        return None
    try:
        import torch
    except ImportError:
        if device is None:
            return None
        raise InputError(
            f"device: {device!r} needs PyTorch; pip install 'frot[torch]' or use device='numpy'"
        ) from None
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=device)
    except Exception as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"device: {device!r} cannot be used ({why}); use 'cpu' or 'numpy'"
        ) from None
    return str(device)

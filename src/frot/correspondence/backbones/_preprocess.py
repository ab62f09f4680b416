"""Preprocessing: from red, green and blue in [0, 1] to the numbers a network was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from frot._base.errors import InputError

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Preprocessing:
    """What is done to the colours: (scale x - mean) / std, channel by channel.

    Parameters
    ----------
    colour : {"RGB", "BGR"}
        Order of the channels that the network wants.
    mean, std : tuples of three floats
        In the network's order of channels.
    scale : float
        1.0, or 255.0 where the network was trained on bytes.

    Examples
    --------
    >>> bytes_minus_mean = Preprocessing("BGR", (104, 117, 123), (1, 1, 1), 255.0)
    >>> bytes_minus_mean(np.ones((1, 1, 3), dtype="float32"))[0, 0].tolist()
    [151.0, 138.0, 132.0]
    """

    colour: str = "RGB"
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    scale: float = 1.0

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """Return the network's input for an image of shape (h, w, 3), in single precision."""
        image = check_image(image)
        if self.colour == "BGR":
            image = image[..., ::-1]
        mean = np.asarray(self.mean, dtype=np.float32)
        std = np.asarray(self.std, dtype=np.float32)
        return (image * np.float32(self.scale) - mean) / std


def preprocessing(
    colour: str,
    mean: Sequence[float] | float | None,
    std: Sequence[float] | float | None,
    scale: float,
) -> Preprocessing:
    """Check what the user says of the colours, and fill in the rest.

    Nothing given means ImageNet's mean and standard deviation; with a mean or a scale given, what
    is missing is a mean of 0 and a standard deviation of 1.

    Examples
    --------
    >>> preprocessing("BGR", [104, 117, 123], None, 255.0).std
    (1.0, 1.0, 1.0)
    >>> preprocessing("RGB", None, None, 1.0).mean
    (0.485, 0.456, 0.406)
    """
    if colour not in ("RGB", "BGR"):
        raise InputError(f"colour is {colour!r}; give 'RGB' or 'BGR'")
    if not np.isfinite(scale) or scale <= 0:
        raise InputError(f"scale is {scale}; give a positive number, such as 1 or 255")
    if mean is None and std is None and scale == 1.0:
        mean, std = IMAGENET_MEAN, IMAGENET_STD
        if colour == "BGR":
            mean, std = mean[::-1], std[::-1]
    middle = _three("mean", 0.0 if mean is None else mean)
    spread = _three("std", 1.0 if std is None else std)
    if min(spread) <= 0:
        raise InputError(f"std is {spread}; give positive numbers")
    return Preprocessing(colour, middle, spread, float(scale))


def check_image(image: np.ndarray) -> np.ndarray:
    """Refuse what is not an image of shape (h, w, 3) in finite floats.

    Examples
    --------
    >>> check_image(np.zeros((40, 40, 3))).dtype
    dtype('float32')
    """
    image = np.asarray(image)
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype.kind != "f" or image.size == 0:
        raise InputError(
            f"image has shape {image.shape} and type {image.dtype}; give (h, w, 3) floats in "
            "[0, 1], as read_photo makes them"
        )
    if not np.isfinite(image).all():
        raise InputError("image holds values that are not finite; replace them first")
    return image.astype(np.float32, copy=False)


def _three(name: str, value: Sequence[float] | float) -> tuple[float, float, float]:
    values = np.asarray(value, dtype=float)
    if values.shape not in ((), (3,)) or not np.isfinite(values).all():
        raise InputError(f"{name} is {value}; give one finite number or three")
    one, two, three = np.broadcast_to(values, 3).tolist()
    return one, two, three

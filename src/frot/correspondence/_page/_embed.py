"""Photographs and arrays as text inside a page."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import numpy as np

from frot._errors import require
from frot.correspondence._pictures._matched import Pictured

__all__ = ["array_text", "data_block", "photo_source"]

# A screen has room for two of these side by side.
_LONGEST = 1_000


def photo_source(photo: Pictured) -> str:
    """Return a photograph as the address of an image that is inside the address."""
    image = require("PIL.Image", "correspondence")
    pixels = (255.0 * np.clip(photo.pixels, 0.0, 1.0)).round().astype(np.uint8)
    picture = image.fromarray(pixels)
    # Only shrinks, and keeps the proportions to a pixel.
    picture.thumbnail((_LONGEST, _LONGEST))
    buffer = io.BytesIO()
    picture.save(buffer, format="JPEG", quality=88)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def array_text(array: np.ndarray) -> str:
    """Return the bytes of an array as text, little end first.

    Examples
    --------
    >>> array_text(np.array([1, 256], dtype="<u2"))
    'AQAAAQ=='
    """
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode("ascii")


def data_block(data: dict[str, Any]) -> str:
    r"""Return data for the page's script; no text in it can end the block.

    Examples
    --------
    >>> data_block({"name": "</script>"})
    '{"name": "\\u003c/script>"}'
    """
    return json.dumps(data).replace("<", "\\u003c")

"""The ranked table of a fit: a DataFrame where pandas is installed, else columns in a dict."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

__all__ = ["make_table"]


def make_table(columns: dict[str, np.ndarray]) -> Any:
    """Return the columns as a table.

    Examples
    --------
    >>> make_table({"feature": np.array(["a", "b"], dtype=object), "rank": np.array([1, 2])})
      feature  rank
    0       a     1
    1       b     2
    """
    if importlib.util.find_spec("pandas") is None:
        return columns
    import pandas as pd

    return pd.DataFrame(columns)

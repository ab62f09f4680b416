"""Two-class gene expression sets and gene sets, checksummed, from disk or their public source.

Files are looked for in `root` where one is given, and otherwise in the folder that the environment
variable ``FROT_DATA`` names, in folders beside a checkout, and in the cache of earlier downloads.
Nothing is downloaded unless ``download=True`` is passed.

>>> from frot import datasets
>>> datasets.load_breast_cancer().shape
(569, 30)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frot.datasets.synthetic import toy

if TYPE_CHECKING:
    from frot.datasets._expression import (
        NAMES,
        Expression,
        available,
        hallmark_path,
        load_breast_cancer,
        load_expression,
        load_hallmark,
    )

__all__ = [
    "NAMES",
    "Expression",
    "available",
    "hallmark_path",
    "load_breast_cancer",
    "load_expression",
    "load_hallmark",
    "toy",
]


def __getattr__(name: str) -> object:
    """Import readers and downloads when they are first used: `import frot` has `toy` alone."""
    if name in __all__:
        import importlib

        return getattr(importlib.import_module("frot.datasets._expression"), name)
    raise AttributeError(f"module 'frot.datasets' has no attribute {name!r}")

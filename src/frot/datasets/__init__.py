"""Two-class gene expression sets and gene sets, checksummed, from disk or their public source.

Files are looked for in `root` where one is given, and otherwise in the folder that the environment
variable ``FROT_DATA`` names, in ``../shared/data`` (beside a checkout, beside the working folder)
and in the cache of earlier downloads. Nothing is downloaded unless ``download=True`` is passed.

>>> from frot import datasets
>>> datasets.load_breast_cancer().shape
(569, 30)
"""

from __future__ import annotations

from frot.datasets._expression import (
    NAMES,
    Expression,
    available,
    hallmark_path,
    load_breast_cancer,
    load_expression,
    load_hallmark,
)
from frot.datasets.synthetic import toy

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

"""The set that scikit-learn brings along, for demos and documentation."""

from __future__ import annotations

from typing import Any

import numpy as np

from frot._errors import require
from frot.datasets._expression import Expression

__all__ = ["load_breast_cancer"]


def load_breast_cancer() -> Expression:
    """Load scikit-learn's breast cancer set: nothing to download, 30 features with names.

    These are measurements of nuclei in pictures, not of genes; what makes it a good example is
    that three statistics (mean, error, worst) of ten quantities are groups by themselves.

    Returns
    -------
    Expression
        569 samples of 30 features, labelled ``"benign"`` or ``"malignant"``.

    Examples
    --------
    >>> data = load_breast_cancer()
    >>> data.X.shape, data.classes, data.feature_names[0]
    ((569, 30), ('benign', 'malignant'), 'mean radius')
    """
    content: Any = require("sklearn.datasets", "selection").load_breast_cancer()
    return Expression(
        X=np.asarray(content.data, dtype=np.float64),
        y=np.asarray(content.target_names)[content.target].astype(str),
        feature_names=tuple(str(name) for name in content.feature_names),
        name="breast_cancer",
        source="https://archive.ics.uci.edu/dataset/17/breast+cancer+wisconsin+diagnostic",
        description="Nuclei of breast masses: 357 benign, 212 malignant",
        citation="Street, Wolberg and Mangasarian, SPIE 1905 (1993) 861-870",
        licence="CC BY 4.0",
    )

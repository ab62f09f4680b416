"""Feature selection by feature-robust optimal transport, in scikit-learn's manner.

Needs scikit-learn and joblib: ``pip install "frot[selection]"``. `import frot` does not load it.
"""

from __future__ import annotations

from frot._errors import require

require("sklearn", "selection")
require("joblib", "selection")

from frot.selection._compare import Comparison  # noqa: E402
from frot.selection._decomposition import Parts  # noqa: E402
from frot.selection._selector import FROTSelector  # noqa: E402

__all__ = ["Comparison", "FROTSelector", "Parts"]

"""Feature selection by feature-robust optimal transport, with scikit-learn's interface.

Samples of two or more classes go in; features or groups by weight come out, with permutation
tests. The feature selection of the paper's appendix.

Needs scikit-learn and joblib: ``pip install "frot[selection]"``. `import frot` does not load it.
"""

from __future__ import annotations

from frot._base.errors import require

require("joblib", "selection")
require("sklearn", "selection")

from frot.selection._anndata import rank_genes  # noqa: E402
from frot.selection._comparison import Comparison, Parts  # noqa: E402
from frot.selection._page import write_selection_report  # noqa: E402
from frot.selection._pathway_test import PathwayTest, pathway_test  # noqa: E402
from frot.selection._permutation import PermutationTest, permutation_test  # noqa: E402
from frot.selection._pictures import write_selection_pictures  # noqa: E402
from frot.selection._plots import plot_pathways, plot_strips, plot_volcano  # noqa: E402
from frot.selection._samples import Samples, read_samples  # noqa: E402
from frot.selection._selector import FROTSelector  # noqa: E402

__all__ = [
    "Comparison",
    "FROTSelector",
    "Parts",
    "PathwayTest",
    "PermutationTest",
    "Samples",
    "pathway_test",
    "permutation_test",
    "plot_pathways",
    "plot_strips",
    "plot_volcano",
    "rank_genes",
    "read_samples",
    "write_selection_pictures",
    "write_selection_report",
]

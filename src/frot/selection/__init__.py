"""Feature selection by feature-robust optimal transport, with scikit-learn's interface.

Samples of two or more classes go in; features or groups by weight come out, with permutation
tests. The feature selection of the paper's appendix.

Needs scikit-learn and joblib: ``pip install "frot[selection]"``. `import frot` does not load it.

The walk of ``FROTSelector().fit(X, y, block)``, in the order to read it:

- ``_selector.py``, `FROTSelector`: `fit` is the whole call: scores, ranks, which features are kept;
- ``_inputs.py``, `prepare`: checks the table, labels, blocks, groups and options: a `Prepared`;
- ``_design.py``, `contrasts_of`: which classes are compared, and in which blocks;
- ``_effects.py``, `Moments`: the table is read once; `Effects`: the moderated t of a comparison;
- ``_comparison.py``, `compare`: the same of groups, and `with_plan`;
- ``_transport.py``, `transport`: scaled features, eta by the perplexity of alpha, and the plan by
  `frot.solve_costs`.

Tests: ``_permutation.py``, ``_pathway_test.py`` and ``_shape_test.py``; labels are permuted by
matrix products (``_label_statistics.py``, ``_set_statistics.py``), and p and q counted in
``_null.py``.
"""

from __future__ import annotations

from frot._base.errors import require

require("joblib", "selection")
require("sklearn", "selection")

from frot.selection._anndata import rank_genes  # noqa: E402
from frot.selection._comparison import Comparison  # noqa: E402
from frot.selection._pathway_test import PathwayTest, pathway_test  # noqa: E402
from frot.selection._permutation import PermutationTest, permutation_test  # noqa: E402
from frot.selection._plots import (  # noqa: E402
    plot_heat_map,
    plot_pathways,
    plot_shapes,
    plot_strips,
    plot_volcano,
)
from frot.selection._report import write_selection_report  # noqa: E402
from frot.selection._samples import Samples, read_samples  # noqa: E402
from frot.selection._selector import FROTSelector  # noqa: E402
from frot.selection._shape_test import ShapeTest, shape_test  # noqa: E402
from frot.selection._transport import Parts  # noqa: E402

__all__ = [
    "Comparison",
    "FROTSelector",
    "Parts",
    "PathwayTest",
    "PermutationTest",
    "Samples",
    "ShapeTest",
    "pathway_test",
    "permutation_test",
    "plot_heat_map",
    "plot_pathways",
    "plot_shapes",
    "plot_strips",
    "plot_volcano",
    "rank_genes",
    "read_samples",
    "shape_test",
    "write_selection_report",
]

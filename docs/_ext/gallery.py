"""What Sphinx-Gallery is told of frot: which figures it draws, and in which order to read examples.

"image_scrapers": ("matplotlib", "gallery"),
"within_subsection_order": "gallery.ReadingOrder",
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

# What is not named here comes last, by its name.
ORDER = (
    "figure_1", "intervals", "when_frot_fails", "eta_path", "eps", "outliers",
    "relatives_under_noise", "own_set", "own_cost", "from_pot", "adaptation", "against_highs",
    "training", "pairwise_digits", "two_samples", "ten_thousand_points", "batch_on_a_device",
    "breast_cancer", "three_classes", "pathways", "permutation_batches", "pipeline",
    "shift_shape_misalignment", "matching_patients", "stability", "anndata_scanpy", "two_days",
    "warped_cat", "turned", "noise_layers", "mask_transfer", "own_network", "colour_transfer",
)  # fmt: skip


class ReadingOrder:
    """Sort the files of a folder as a newcomer would read them."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the place of a file."""
        name = Path(filename).stem.removeprefix("plot_")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures that frot has drawn since the last block; return what shows them.

    They belong to no window, so that the scraper of pyplot's figures sees none of them.
    """
    drawn = [
        value
        for value in block_vars["example_globals"].values()
        # Figures of frot show themselves in notebooks by this method; pyplot's have none.
        if isinstance(value, Figure) and "_repr_png_" in vars(value)
    ]
    paths = []
    for figure, path in zip(drawn, block_vars["image_path_iterator"], strict=False):
        figure.savefig(path, dpi=100)
        del vars(figure)["_repr_png_"]
        paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])


def _get_sg_image_scraper() -> Callable[..., str]:
    """What Sphinx-Gallery asks a module for."""
    return scrape

"""Show in the gallery what frot draws: its figures belong to no window, so pyplot has none.

Sphinx-Gallery finds it by name: ``"image_scrapers": ("matplotlib", "figures")``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures that frot has drawn since the last block; return what shows them."""
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

"""Pictures of a match. Needs matplotlib, from the extra ``frot[plot]``, when called."""

from __future__ import annotations

from frot.correspondence.pictures._heat import grid_extent, plot_cam, plot_heatmap, plot_weights
from frot.correspondence.pictures._layers import plot_layers
from frot.correspondence.pictures._matches import plot_matches
from frot.correspondence.pictures._points import as_points, grid_points, object_points

__all__ = [
    "as_points",
    "grid_extent",
    "grid_points",
    "object_points",
    "plot_cam",
    "plot_heatmap",
    "plot_layers",
    "plot_matches",
    "plot_weights",
]

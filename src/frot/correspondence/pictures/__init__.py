"""Pictures of a match. Needs matplotlib, from the extra ``frot[plot]``, when called."""

from __future__ import annotations

from frot.correspondence.pictures._maps import (
    flow_colours,
    grid_extent,
    plot_cam,
    plot_features,
    plot_flow,
    plot_heatmap,
    plot_layers,
    plot_warp,
    plot_weights,
)
from frot.correspondence.pictures._matches import (
    as_points,
    grid_points,
    object_points,
    plot_matches,
)

__all__ = [
    "as_points",
    "flow_colours",
    "grid_extent",
    "grid_points",
    "object_points",
    "plot_cam",
    "plot_features",
    "plot_flow",
    "plot_heatmap",
    "plot_layers",
    "plot_matches",
    "plot_warp",
    "plot_weights",
]

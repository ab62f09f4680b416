"""Semantic correspondence: two photographs, all layers of a network, no layer to choose.

Photographs and a network go in, a `Match` comes out: where points of one lie in the other, and how
much each layer weighed. Section 3.3 of the paper.

>>> from frot.correspondence import Matcher
>>> from skimage.data import chelsea
>>> match = Matcher(side=96)(chelsea(), chelsea()[:, ::-1])
>>> match.method, len(match.alpha)
('frot', 21)
"""

from __future__ import annotations

from frot.correspondence._coherence import coherence
from frot.correspondence._features import Backbone, Classifying, FeatureMap, Grid
from frot.correspondence._layer_search import (
    LayerSearch,
    ScoredLayers,
    best_layer,
    search_layers,
)
from frot.correspondence._matcher import Matcher
from frot.correspondence._photo import Photo, read_photo
from frot.correspondence.backbones import (
    ArrayBackbone,
    NoisyBackbone,
    OnnxBackbone,
    TorchBackbone,
    default_backbone,
    efficientnet_lite2,
    find_weights,
    image_key,
    mobilenetv2,
    resnet,
    resolve_backbone,
)
from frot.correspondence.cache import CachedBackbone, FeatureCache
from frot.correspondence.datasets import (
    PAIR_SETS,
    PairSet,
    Verification,
    load_pairs,
    pf_willow,
    verify_pairs,
)
from frot.correspondence.datasets.pair_set import Pair
from frot.correspondence.evaluation import (
    Evaluation,
    Record,
    ResultTable,
    evaluate,
    read_evaluation,
    result_table,
)
from frot.correspondence.evaluation.scores import (
    Estimate,
    mask_score,
    pck,
    pck_difference,
    point_errors,
)
from frot.correspondence.flow import (
    Flow,
    Warped,
    read_flow,
)
from frot.correspondence.match import Match, load_match
from frot.correspondence.match_picture import grid_points, object_points, plot_matches
from frot.correspondence.page import write_match_page
from frot.correspondence.pictures import (
    plot_cam,
    plot_features,
    plot_flow,
    plot_heatmap,
    plot_layers,
    plot_warp,
    plot_weights,
)
from frot.correspondence.settings import PRESETS, Settings
from frot.correspondence.transfer import Transfer

__all__ = [
    "PAIR_SETS",
    "PRESETS",
    "ArrayBackbone",
    "Backbone",
    "CachedBackbone",
    "Classifying",
    "Estimate",
    "Evaluation",
    "FeatureCache",
    "FeatureMap",
    "Flow",
    "Grid",
    "LayerSearch",
    "Match",
    "Matcher",
    "NoisyBackbone",
    "OnnxBackbone",
    "Pair",
    "PairSet",
    "Photo",
    "Record",
    "ResultTable",
    "ScoredLayers",
    "Settings",
    "TorchBackbone",
    "Transfer",
    "Verification",
    "Warped",
    "best_layer",
    "coherence",
    "default_backbone",
    "efficientnet_lite2",
    "evaluate",
    "find_weights",
    "grid_points",
    "image_key",
    "load_match",
    "load_pairs",
    "mask_score",
    "mobilenetv2",
    "object_points",
    "pck",
    "pck_difference",
    "pf_willow",
    "plot_cam",
    "plot_features",
    "plot_flow",
    "plot_heatmap",
    "plot_layers",
    "plot_matches",
    "plot_warp",
    "plot_weights",
    "point_errors",
    "read_evaluation",
    "read_flow",
    "read_photo",
    "resnet",
    "resolve_backbone",
    "result_table",
    "search_layers",
    "verify_pairs",
    "write_match_page",
]

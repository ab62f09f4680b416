"""Semantic correspondence: two photographs, all layers of a network, no layer to choose.

Photographs and a network go in, a `Match` comes out: where points of one lie in the other, and how
much each layer weighed. Section 3.3 of the paper.

The walk of ``Matcher()(a, b)``, in the order to read it:

- ``_matcher.py``, `Matcher`: `__call__` is the whole call; ``settings.py`` declares its options;
- ``backbones/_networks.py``, `resolve_backbone`: which network is meant; torch modules by
  ``_torch.py``, ONNX files by ``_onnx.py``;
- ``cache.py``, `FeatureMemory`: photographs (``_photo.py``) and their features, computed once;
- ``layers.py``, `LayerPair`: two photographs, all layers, cell against cell;
- ``layer_costs.py``, `LayerCosts`: the costs on the layers' own grids: `mix` and `inner` by small
  products, interpolated once a grid;
- ``methods.py``, `feature_robust`: a plan between cells by `frot.solve_costs`, as all methods;
- ``_coherence.py``, `coherence`: the prior that keeps the weights off layers of noise, and why;
- ``_mirror.py``, `mirrored_image`: A mirrored, where a first look leaves open which way it faces;
- ``_looks.py``, `read_off`: votes of one look at A or two, and the scores; Hough matching is
  ``agreement.py``;
- ``match.py``, `Match`: what comes out: points (``transfer.py``), flow, masks, a file.

`evaluate` (``evaluation/_run.py``) does this for every pair of a data set (``datasets/sets.py``).

>>> from frot.correspondence import Matcher
>>> from skimage.data import chelsea
>>> match = Matcher(side=96)(chelsea(), chelsea()[:, ::-1])
>>> match.method, len(match.alpha)
('frot', 21)
"""

from __future__ import annotations

from frot.correspondence._coherence import coherence
from frot.correspondence._features import Backbone, Classifying, FeatureMap, Grid
from frot.correspondence._matcher import Matcher
from frot.correspondence._photo import Photo, read_photo
from frot.correspondence.backbones import (
    ArrayBackbone,
    NoisyBackbone,
    OnnxBackbone,
    TorchBackbone,
    default_backbone,
    image_key,
    resolve_backbone,
)
from frot.correspondence.cache import CachedBackbone, FeatureCache
from frot.correspondence.datasets import (
    PAIR_SETS,
    PairSet,
    load_pairs,
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
from frot.correspondence.layers import LayerPair
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
from frot.correspondence.tune import Tuned

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
    "LayerPair",
    "Match",
    "Matcher",
    "NoisyBackbone",
    "OnnxBackbone",
    "Pair",
    "PairSet",
    "Photo",
    "Record",
    "ResultTable",
    "Settings",
    "TorchBackbone",
    "Transfer",
    "Tuned",
    "Warped",
    "coherence",
    "default_backbone",
    "evaluate",
    "grid_points",
    "image_key",
    "load_match",
    "load_pairs",
    "mask_score",
    "object_points",
    "pck",
    "pck_difference",
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
    "resolve_backbone",
    "result_table",
    "write_match_page",
]

"""
Labels from one photograph to another
=====================================

Somebody has labelled a photograph, pixel by pixel. A second photograph shows the same scene from
another place. ``match.transfer_labels`` carries the labels over, and ``match.transfer_mask`` a
single object.

The two photographs are a stereo pair of a motorcycle from scikit-image, with the true disparity:
by how many pixels each point of the left photograph moves. From it come the labels, near, middle
and far, and the true labels of the right photograph, to compare with.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from skimage.data import stereo_motorcycle

from frot.correspondence import Matcher, mask_score

left, right, disparity = stereo_motorcycle()
known = np.isfinite(disparity) & (disparity > 0)

# %%
# Labels of the left photograph by depth: 0 where the disparity is not known, then far, middle and
# near. The true labels of the right one are these, moved by the disparity, near over far.

depth = np.where(known, 1 + np.digitize(disparity, [22.0, 38.0]), 0)
truth = np.zeros_like(depth)
rows, columns = np.nonzero(known)
near_last = np.argsort(disparity[rows, columns])
rows, columns = rows[near_last], columns[near_last]
moved = np.round(columns - disparity[rows, columns]).astype(int)
seen = moved >= 0
truth[rows[seen], moved[seen]] = depth[rows[seen], columns[seen]]

# %%
# Match, and carry the labels over.

match = Matcher(side=256)(left, right)
found = match.transfer_labels(depth)
for label, name in ((1, "far"), (2, "middle"), (3, "near")):
    score = mask_score((found == label)[truth > 0], (truth == label)[truth > 0])
    print(f"{name:7s} intersection over union {score.iou:.2f}, pixels right {score.lt_acc:.0%}")
right_share = (found == truth)[truth > 0].mean()

# %%
# Colours: far is blue, middle green, near orange. White is unknown.

colours = ListedColormap(["#FFFFFF00", "#0072B2", "#009E73", "#D55E00"])
figure, panels = plt.subplots(2, 2, figsize=(8.8, 6.4), layout="constrained")
shown = [
    ("left: labels given", left, depth),
    ("right: labels found", right, found),
    ("right: true labels", right, truth),
]
for axes, (title, photo, labels) in zip(panels.flat, shown, strict=False):
    axes.imshow(photo.mean(axis=2), cmap="gray")
    axes.imshow(labels, cmap=colours, vmin=0, vmax=3, alpha=0.6, interpolation="nearest")
    axes.set_title(title, fontsize=11)
wrong = np.where(truth > 0, found != truth, np.nan)
panels[1, 1].imshow(right.mean(axis=2), cmap="gray")
panels[1, 1].imshow(np.where(wrong == 1, 1.0, np.nan), cmap="autumn", alpha=0.8)
panels[1, 1].set_title(f"wrong pixels: {1 - right_share:.0%}", fontsize=11)
for axes in panels.flat:
    axes.set(xticks=[], yticks=[])
plt.show()

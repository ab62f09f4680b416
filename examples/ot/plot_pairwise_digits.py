"""
Pairwise distances and a map of digits
======================================

``frot.pairwise`` returns the feature-robust distances between all pairs of clouds. Here a cloud is
a handwritten digit: its points are pixels with ink, with their positions as features and the ink as
weights.

The two features, across and down, are two groups. The distance between two digits is then the
larger of what has to be moved across and what has to be moved down, at the plan that is best
against the worse of both. It is a metric: symmetric, zero only between equal digits, and with the
triangle inequality.

A matrix of distances is all that multidimensional scaling (MDS) needs to draw a map.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from sklearn.datasets import load_digits

import frot

COLOURS = {0: "#0072B2", 1: "#D55E00", 4: "#009E73", 7: "#CC79A7"}

# %%
# Seven images each of the digits 0, 1, 4 and 7: 28 clouds of about 27 points, 378 distances.
# ``n_jobs=-1`` would use all processors, ``checkpoint="distances.ckpt"`` keep what is done.

digits = load_digits()
chosen = np.concatenate([np.flatnonzero(digits.target == digit)[:7] for digit in COLOURS])
images, labels = digits.images[chosen], digits.target[chosen]
clouds, ink = [], []
for image in images:
    down, across = np.nonzero(image > 3)
    clouds.append(np.stack([across, -down], axis=1).astype(float))
    ink.append(image[down, across] / image[down, across].sum())
D = frot.pairwise(clouds, weights=ink)
assert np.allclose(D, D.T)

# %%
# Classical MDS: the leading eigenvectors of the centred squared distances.

n = len(D)
centring = np.eye(n) - 1.0 / n
values, vectors = np.linalg.eigh(-0.5 * centring @ D**2 @ centring)
position = vectors[:, [-1, -2]] * np.sqrt(values[[-1, -2]])

# %%
# On the left the distances, digit by digit: blocks on the diagonal are paler. On the right the map,
# with the images themselves.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.0, 4.8), width_ratios=(3, 5), layout="constrained"
)
shades = left.imshow(D, cmap="magma_r")
places = [3, 10, 17, 24]
left.set_xticks(places, COLOURS)
left.set_yticks(places, COLOURS)
for edge in (6.5, 13.5, 20.5):
    left.axhline(edge, color="white", linewidth=1.5)
    left.axvline(edge, color="white", linewidth=1.5)
figure.colorbar(shades, ax=left, label="distance, pixels", shrink=0.6)
for image, label, place in zip(images, labels, position, strict=True):
    picture = OffsetImage(image, zoom=3.0, cmap="Greys")
    frame = {"edgecolor": COLOURS[label], "linewidth": 2, "boxstyle": "square,pad=0"}
    right.add_artist(AnnotationBbox(picture, place, pad=0, bboxprops=frame))
right.scatter(*position.T, s=0)
right.margins(0.08)
right.set(xticks=[], yticks=[])
right.set_aspect("equal", adjustable="datalim")
right.set_title("map by classical MDS", fontsize=11)
plt.show()

# %%
# How many digits have a digit of their own kind as their nearest neighbour?

nearest = np.argsort(D + np.diag(np.full(n, np.inf)), axis=1)[:, 0]
print(f"{(labels[nearest] == labels).sum()} of {n}")

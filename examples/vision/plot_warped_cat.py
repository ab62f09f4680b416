"""
A warped cat, with known truth
==============================

How good is a dense correspondence? To know, one needs the right answer. Here a photograph is bent
by a formula, so that it is known where each pixel has gone.

``Matcher`` compares the two photographs by *all* layers of a network: each layer is a group with a
cost of its own, and the transport plan is robust against the weights of the layers. The network is
EfficientNet-Lite2, whose weights come with the Python package; nothing is downloaded.

``match.transfer(points)`` moves points of the first photograph to the second, with a confidence
each. Cells are 8 pixels wide after resizing, so errors of some pixels are what one can expect.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import img_as_ubyte
from skimage.data import chelsea
from skimage.transform import warp

from frot.correspondence import Matcher, grid_points, plot_matches

cat = chelsea()
height, width = cat.shape[:2]


def bend(points):
    """Where points of the cat, x and y, are in the bent one: a wave across, then one down."""
    x, y = points.T
    x = x + 16 * np.sin(2 * np.pi * y / height)
    return np.column_stack([x, y + 12 * np.sin(2 * np.pi * x / width)])


def unbend(points):
    """Where points of the bent cat come from."""
    x, y = points.T
    y = y - 12 * np.sin(2 * np.pi * x / width)
    return np.column_stack([x - 16 * np.sin(2 * np.pi * y / height), y])


bent = img_as_ubyte(warp(cat, unbend, mode="edge"))

# %%
# ``side=256`` is the longer side of what the network sees. ``match.result`` has the proven interval
# of the transport problem, ``match.alpha`` the weights of the layers.

match = Matcher(side=256, agreement=0)(cat, bent)
print(match.result)

# %%
# A grid of points, and where they belong.

points = grid_points((height, width), 12)
truth = bend(points)
inside = ((truth >= 0) & (truth < (width, height))).all(axis=1)
points, truth = points[inside], truth[inside]
moved = match.transfer(points)
error = np.hypot(*(moved.points - truth).T)
print(f"{len(points)} points, median error {np.median(error):.1f} of {width} pixels")

# %%
# Above, some of the points and where they were found; short green lines lead to the true places.
# Below, the error of every point, and the first photograph moved into the frame of the second.

figure = plt.figure(figsize=(8.6, 6.4), layout="constrained")
panels = figure.subplot_mosaic([["pair", "pair"], ["error", "warped"]])
some = slice(5, None, 9)
plot_matches(match, points[some], panels["pair"], targets=truth[some], threshold=25.0)
panels["error"].imshow(bent, alpha=0.55)
dots = panels["error"].scatter(*truth.T, c=error, s=28, cmap="plasma", vmin=0, vmax=20)
panels["error"].set_title("error at the true place", fontsize=11)
figure.colorbar(dots, ax=panels["error"], label="pixels", shrink=0.8)
warped = match.warp()
pixels = np.where(warped.valid[..., None], warped.pixels, 0.85)
panels["warped"].imshow(pixels)
panels["warped"].set_title("A in the frame of B", fontsize=11)
for name in ("error", "warped"):
    panels[name].set(xticks=[], yticks=[])
plt.show()
assert np.median(error) < 10.0

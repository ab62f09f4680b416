"""
Layers of noise, and the coherence prior
========================================

Which layers of a network should a match trust? The adversary of robust transport gives weight to
what costs most. A layer of pure noise costs much with *every* plan: so it takes the weight, and the
match follows noise.

The remedy is a prior on the layers. The *coherence* of a layer is the share of neighbouring cells
whose nearest neighbours in the other photograph are neighbours, too. It needs no label, and noise
has none of it. With ``prior="coherence"``, the default, the adversary pays for trusting a layer
that matches incoherently.

Here four layers of noise are planted behind the 21 layers of the network.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import img_as_ubyte
from skimage.data import chelsea
from skimage.transform import warp

import frot
from frot.correspondence import (
    Matcher,
    NoisyBackbone,
    default_backbone,
    grid_points,
)

BLUE, ORANGE = "#0072B2", "#D55E00"

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
points = grid_points((height, width), 14)
truth = bend(points)
inside = ((truth >= 0) & (truth < (width, height))).all(axis=1)
points, truth = points[inside], truth[inside]

# %%
# Three ways to weigh the layers, with the same features. ``with_settings`` returns a matcher with
# other settings that shares the features already computed. Hough matching is off, since it would
# hide some of the damage.


def normalised(layers, a, b):
    """A method of one's own: costs divided by their means, and no prior."""
    return frot.solve_costs(layers.costs, a, b, eta=0.1, eps=0.1, tol=1e-3, normalise="mean")


matcher = Matcher(NoisyBackbone(default_backbone(), count=4), side=256, agreement=0, eta=0.1)
ways = {
    "no prior": matcher.with_settings(prior="uniform"),
    "costs over their means": matcher.with_settings(method=normalised),
    "coherence prior (default)": matcher.with_settings(prior="coherence"),
}
found = {name: way(cat, bent) for name, way in ways.items()}

# %%
# On the left the weights of the layers, noise in orange. On the right the grid where it was found:
# it should be a smoothly bent grid.

figure, panels = plt.subplots(3, 2, figsize=(8.6, 7.2), width_ratios=(3, 2), layout="constrained")
for (left, right), (name, match) in zip(panels, found.items(), strict=True):
    layers, weights = list(match.alpha), np.array(list(match.alpha.values()))
    noise = np.array([layer.startswith("noise") for layer in layers])
    left.bar(range(len(layers)), weights, color=np.where(noise, ORANGE, BLUE))
    left.set_title(f"{name}: {weights[noise].sum():.0%} of the weight on noise", fontsize=11)
    left.set(ylabel="weight", xticks=[])
    moved = match.transfer(points).points
    error = np.median(np.hypot(*(moved - truth).T))
    right.imshow(bent, alpha=0.45)
    right.scatter(*moved.T, c=points[:, 0], s=14, cmap="turbo")
    right.set_title(f"median error {error:.0f} pixels", fontsize=11)
    right.set(xticks=[], yticks=[], xlim=(0, width), ylim=(height, 0))
panels[2, 0].set_xlabel("layers of the network, from first to last, then noise")
plt.show()

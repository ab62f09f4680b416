"""
A network of your own
=====================

``Matcher`` takes any torch module, ONNX file, model of transformers, or plain arrays. Give it the
module and the names of the layers to read; strides and receptive fields are found by running it.

To show that nothing is special about a trained network, this page builds one by hand: a pyramid of
oriented edges with no training at all. It is then put beside EfficientNet-Lite2, the default.

Two tasks: a photograph and its bent copy, and the same with the colours of the copy inverted. Edges
do not care much about colours; a trained network may.
"""

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt
import numpy as np
import torch
from skimage import img_as_ubyte
from skimage.data import chelsea
from skimage.transform import warp

from frot.correspondence import (
    Matcher,
    TorchBackbone,
    grid_points,
    plot_features,
)

BLUE, ORANGE = "#0072B2", "#D55E00"


class EdgePyramid(torch.nn.Module):
    """Oriented edges at three scales, each squared and averaged over its surroundings."""

    def __init__(self, angles=8):
        """Make the filters: derivatives of a Gaussian in some directions."""
        super().__init__()
        grid = torch.linspace(-1.5, 1.5, 7)
        y, x = torch.meshgrid(grid, grid, indexing="ij")
        bell = torch.exp(-(x**2 + y**2))
        turns = torch.arange(angles) * torch.pi / angles
        kernels = torch.stack([(torch.cos(t) * x + torch.sin(t) * y) * bell for t in turns])
        self.scales = torch.nn.ModuleList()
        for _ in range(3):
            edges = torch.nn.Conv2d(1, angles, 7, padding=3, bias=False)
            edges.weight = torch.nn.Parameter(kernels[:, None])
            self.scales.append(edges)
        self.pooled = torch.nn.ModuleList(torch.nn.AvgPool2d(9, 4, 4) for _ in range(3))
        self.smaller = torch.nn.AvgPool2d(2)

    def forward(self, image):
        """Return the last map; frot reads all of them on the way."""
        grey = image.mean(dim=1, keepdim=True)
        for edges, pooled in zip(self.scales, self.pooled, strict=True):
            out = pooled(edges(grey) ** 2)
            grey = self.smaller(grey)
        return out


# %%
# Layers are named as in ``module.named_modules()``.

edges = TorchBackbone(EdgePyramid(), layers=["pooled.0", "pooled.1", "pooled.2"], name="edges")
matchers = {
    "edges, by hand": Matcher(edges, side=256),
    "EfficientNet-Lite2": Matcher(side=256),
}

# %%
# The cat, its bent copy, and the bent copy as a negative.

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
tasks = {"bent": bent, "bent, negative": 255 - bent}
points = grid_points((height, width), 14)
truth = bend(points)
inside = ((truth >= 0) & (truth < (width, height))).all(axis=1)
points, truth = points[inside], truth[inside]

found = {}
for name, matcher in matchers.items():
    for task, target in tasks.items():
        match = matcher(cat, target)
        found[name, task] = np.hypot(*(match.transfer(points).points - truth).T)
        print(f"{name:20s} {task:15s} median error {np.median(found[name, task]):5.1f} pixels")

# %%
# What share of the points is within so many pixels of the truth? The negative costs the trained
# network more pixels than it costs the edges; it is no worse than they are even so.

figure, axes = plt.subplots(figsize=(7.2, 4.0), layout="constrained")
for (name, task), error in found.items():
    axes.plot(
        np.sort(error), np.arange(1, len(error) + 1) / len(error), linewidth=1.8,
        color=BLUE if name.startswith("edges") else ORANGE,
        linestyle="-" if task == "bent" else "--", label=f"{name}; {task}",
    )  # fmt: skip
axes.set(xlim=(0, 40), ylim=(0, 1.02), xlabel="error, pixels", ylabel="share of the points")
axes.legend(frameon=False)
plt.show()

# %%
# What the two networks see: the three principal components of all layers as red, green and blue.
# What has the same colour in both photographs is alike to the network.

matcher = matchers["edges, by hand"]
seen_edges = plot_features(matcher.pair_features(cat, bent))

# %%
# EfficientNet-Lite2 sees regions rather than edges.

matcher = matchers["EfficientNet-Lite2"]
seen_efficientnet = plot_features(matcher.pair_features(cat, bent))

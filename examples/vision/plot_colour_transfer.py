"""
Colours from one photograph to another
======================================

The pixels of a photograph are a cloud of colours. To give a photograph the colours of another one,
transport one cloud onto the other and paint each pixel with the colour it is sent to.

Ordinary transport adds the squared differences of lightness and of hue. FROT takes them as two
groups, and finds the plan that is best against the worse of the two: neither lightness nor hue is
sacrificed for the other.

The photographs are the two that come with scikit-learn: a palace in Beijing and a flower.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree
from skimage.color import lab2rgb, rgb2lab
from sklearn.datasets import load_sample_images

import frot

china, flower = (image[::2, ::2] / 255.0 for image in load_sample_images().images)

# %%
# The Lab space: L is lightness, a and b are colour. 500 pixels of each photograph are enough to
# learn the map.

source, target = rgb2lab(china), rgb2lab(flower)
rng = np.random.default_rng(0)
X = rng.choice(source.reshape(-1, 3), 500, replace=False)
Y = rng.choice(target.reshape(-1, 3), 500, replace=False)
groups = {"lightness": [0], "colour": [1, 2]}

# %%
# Two plans, with a little entropy so that neighbours stay neighbours. ``plan @ Y`` is where each of
# the 500 pixels goes on average; a pixel that was not among them moves as its ten nearest
# neighbours do.

eps = frot.relative(0.005)
plans = {"OT": frot.solve(X, Y, "all", eps=eps), "FROT": frot.solve(X, Y, groups, eps=eps)}
print(plans["FROT"].summary())
tree = cKDTree(X)
distance, nearest = tree.query(source.reshape(-1, 3), k=10)
weights = 1.0 / (distance + 1.0)
weights /= weights.sum(axis=1, keepdims=True)


def paint(plan):
    """Move every pixel of the source as its neighbours among the 500 do."""
    move = plan @ Y * len(X) - X
    moved = source.reshape(-1, 3) + np.einsum("ij,ijc->ic", weights, move[nearest])
    return np.clip(lab2rgb(moved.reshape(source.shape)), 0.0, 1.0)


# %%
# What each plan costs in each group: FROT evens the two out.

for name, result in plans.items():
    i, j, mass = result.plan.arcs()
    cost = mass @ (X[i] - Y[j]) ** 2
    print(f"{name:5s} lightness {cost[0]:.0f}, colour {cost[1:].sum():.0f}")

# %%
# The picture. The clouds below are the colours of both photographs, and where FROT sends those of
# the first.

figure, panels = plt.subplots(2, 3, figsize=(9.2, 5.0), layout="constrained")
pictures = {
    "source": china, "target": flower, "source, colours by OT": paint(plans["OT"].plan),
    "source, colours by FROT": paint(plans["FROT"].plan),
}  # fmt: skip
places = (panels[0, 0], panels[0, 1], panels[1, 0], panels[1, 1])
for axes, (title, picture) in zip(places, pictures.items(), strict=True):
    axes.imshow(picture)
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=11)
shown = {"colours of the source": X, "colours by FROT": plans["FROT"].plan @ Y * len(X)}
for axes, (title, cloud) in zip(panels[:, 2], shown.items(), strict=True):
    rgb = np.clip(lab2rgb(cloud[None])[0], 0.0, 1.0)
    axes.scatter(cloud[:, 2], cloud[:, 0], c=rgb, s=14)
    axes.set(xlim=(-65, 85), ylim=(0, 102), xlabel="b (blue to yellow)", ylabel="L")
    axes.set_title(title, fontsize=11)
plt.show()

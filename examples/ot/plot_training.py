"""
Training with FRWDLoss: undo an unknown scaling
===============================================

``frot.torch.FRWDLoss`` is the entropic transport cost as a PyTorch loss. Gradients come from the
envelope theorem: the plan and the weights are held fixed at the optimum, so that nothing is
unrolled and memory does not grow with the number of iterations.

The task: a cloud was scaled and shifted, each feature by its own unknown amount, and its points
were shuffled. No pairs are known. Adam moves a scale and a shift per feature until the transformed
cloud lies on the clean one.

The loss is robust: an error in any one of the three groups of features is what it shows, not the
average of all. ``debias=True`` makes it zero where the clouds agree.
"""

import matplotlib.pyplot as plt
import torch

import frot.torch

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A8A8A"

FEATURES, POINTS, STEPS = 6, 50, 80

# %%
# Points of a skewed distribution, so that a scale and a shift can be told apart. The corrupted
# cloud is the clean one in another order with a little noise, less the shift, divided by the scale.

generator = torch.Generator().manual_seed(0)


def draw():
    """Skewed points, shape (POINTS, FEATURES)."""
    normal = torch.randn(POINTS, FEATURES, generator=generator, dtype=torch.float64)
    return normal.exp().sqrt()


clean = draw()
scale = torch.linspace(0.5, 2.0, FEATURES, dtype=torch.float64)
shift = torch.linspace(1.0, -1.0, FEATURES, dtype=torch.float64)
corrupted = (clean.flip(0) + 0.02 * draw() - shift) / scale

# %%
# The training loop is that of any PyTorch model. After each step ``loss.alpha`` has the weights of
# the groups.

log_scale = torch.zeros(FEATURES, dtype=torch.float64, requires_grad=True)
offset = torch.zeros(FEATURES, dtype=torch.float64, requires_grad=True)
loss = frot.torch.FRWDLoss([2, 2, 2], eta=0.05, eps=0.1, debias=True)
adam = torch.optim.Adam([log_scale, offset], lr=0.1)
decay = torch.optim.lr_scheduler.CosineAnnealingLR(adam, STEPS)
losses, weights, clouds = [], [], {}
for step in range(STEPS):
    adam.zero_grad()
    moved = corrupted * log_scale.exp() + offset
    value = loss(moved, clean)
    value.backward()
    adam.step()
    decay.step()
    losses.append(value.item())
    weights.append(loss.alpha)
    if step in (0, 15, STEPS - 1):
        clouds[step] = moved.detach()

with torch.no_grad():
    scale_error = (log_scale.exp() / scale - 1.0).abs().max().item()
    shift_error = (offset - shift).abs().max().item()
print(f"scales are within {scale_error:.1%} of the true ones, shifts within {shift_error:.3f}")
assert losses[-1] < 0.05 * losses[0]

# %%
# Above, the first two features before, during and after training. Below, the loss, and the weights
# of the groups: whichever group is worst at the moment gets most of the gradient, until all three
# fit equally well.

figure = plt.figure(figsize=(8.6, 6.0), layout="constrained")
panels = figure.subplot_mosaic([["first", "later", "last"], ["loss", "alpha", "alpha"]])
for name, (step, cloud) in zip(("first", "later", "last"), clouds.items(), strict=True):
    axes = panels[name]
    axes.scatter(*clean[:, :2].T, s=16, color=GREY, label="clean")
    axes.scatter(*cloud[:, :2].T, s=16, color=ORANGE, alpha=0.8, label="transformed")
    axes.set(xlim=(-1.8, 3.0), ylim=(-0.6, 3.4), xlabel="feature 0")
    axes.set_title(f"step {step}", fontsize=11)
panels["first"].set_ylabel("feature 1")
panels["last"].legend(frameon=False, loc="upper left", handletextpad=0.1)
panels["loss"].semilogy(losses, color="black")
panels["loss"].set(xlabel="step", ylabel="debiased loss")
labels = ["features 0, 1", "features 2, 3", "features 4, 5"]
panels["alpha"].stackplot(
    range(STEPS), torch.stack(weights).T, labels=labels, colors=[BLUE, ORANGE, GREEN], alpha=0.85
)
panels["alpha"].set(xlabel="step", ylabel="weights of the groups", xlim=(0, STEPS - 1), ylim=(0, 1))
panels["alpha"].legend(loc="upper right", framealpha=0.9)
plt.show()

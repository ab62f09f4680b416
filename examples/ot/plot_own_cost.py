"""
A loss with a cost of one's own: what the clock is out by
=========================================================

``FRWDLoss(metric=cost)`` takes any function in PyTorch that returns the costs between two clouds,
(n, m), or (L, n, m) for L groups. Plan and weights are held fixed backward, and the rest is
autograd's: points get gradients, and so do parameters of the cost.

The task: the same kind of events was recorded by two stations, each by its hour and its size. The
clock of one of them is out by some hours, and its sizes are in other units. No pairs are known.
Hours are on a circle: 23 o'clock and 1 o'clock are two hours apart, not 22.

The cost on the circle finds the hours, where squared differences of the numbers end in a wrong
place.
"""

import matplotlib.pyplot as plt
import torch

import frot.torch

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A8A8A"
POINTS, STEPS = 40, 60
OUT_BY, FACTOR = 9.0, 1.5

# %%
# Events around 21 and 4 o'clock, the later ones larger. The second station's clock is nine hours
# ahead, so that most of its evening is after midnight.

generator = torch.Generator().manual_seed(0)


def record():
    """Hours, and logarithms of sizes, shape (POINTS, 2)."""
    late = torch.arange(POINTS) < 0.35 * POINTS
    noise = torch.randn(POINTS, 2, generator=generator, dtype=torch.float64)
    hours = torch.where(late, 4.0, 21.0) + 1.2 * noise[:, 0]
    return torch.stack([hours % 24.0, torch.where(late, 1.0, 0.0) + 0.3 * noise[:, 1]], dim=1)


first, second = record(), record()
second = torch.stack([(second[:, 0] + OUT_BY) % 24.0, second[:, 1] + FACTOR], dim=1)

# %%
# The cost has one matrix for hours, the square of a chord of the clock's face, and one for sizes.


def clock(x, y):
    """Costs of hours and of sizes, shape (2, n, m)."""
    turn = 2.0 * torch.pi / 24.0 * (x[:, None, 0] - y[None, :, 0])
    sizes = (x[:, None, 1] - y[None, :, 1]) ** 2
    return torch.stack([2.0 - 2.0 * torch.cos(turn), sizes])


def numbers(x, y):
    """The same with hours that are numbers from 0 to 24, in units of a quarter of a day."""
    return torch.stack([((x[:, None, k] - y[None, :, k]) / (6.0, 1.0)[k]) ** 2 for k in (0, 1)])


def recover(cost):
    """Move the second station's clock and units; return the hours it is put back by, by step."""
    back = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    loss = frot.torch.FRWDLoss(metric=cost, eta=0.1, eps=0.1, debias=True)
    adam = torch.optim.Adam([{"params": [back], "lr": 0.4}])
    way, moved = [], second
    for _ in range(STEPS):
        adam.zero_grad()
        hours, sizes = (second - back).T
        moved = torch.stack([hours % 24.0, sizes], dim=1)
        loss(first, moved).backward()
        adam.step()
        way.append(back.detach().clone())
    return torch.stack(way), moved.detach()


ways, placed = zip(*(recover(cost) for cost in (numbers, clock)), strict=True)
print(f"out by {OUT_BY:.0f} h; found {ways[0][-1, 0]:.2f} (numbers), {ways[1][-1, 0]:.2f} (clock)")

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6))
axes[0].axhline(OUT_BY, color=GREY, linestyle=":", label="true")
for way, name, colour in zip(ways, ("numbers", "clock"), (ORANGE, BLUE), strict=True):
    axes[0].plot(way[:, 0], color=colour, label=f"cost of {name}")
axes[0].set(xlabel="step", ylabel="clock put back by (hours)")
axes[0].legend(frameon=False)
axes[1].scatter(first[:, 0], first[:, 1], s=14, color=GREY, label="first station")
axes[1].scatter(second[:, 0], second[:, 1], s=14, color=GREEN, marker="x", label="second")
axes[1].scatter(
    placed[1][:, 0], placed[1][:, 1], s=14, facecolors="none", edgecolors=BLUE, label="put back"
)
axes[1].set(xlabel="hour", ylabel="log size", xlim=(0, 24))
axes[1].legend(frameon=False)
fig.tight_layout()
plt.show()

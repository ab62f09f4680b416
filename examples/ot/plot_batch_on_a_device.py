"""
A batch on a device: where does a time series change?
=====================================================

``frot.solve_batch`` solves many problems of the same shape together. Small problems leave most of a
processor idle; a batch does not. Every member has its own value, weights and proven interval.

The points may be tensors on a CUDA device: then all of the work is done there, and what comes back
is on the device, too. This page uses one where there is one, and the CPU otherwise.

The example: a series of 12 sensors in four groups of three. At each time the 30 steps before are
held against the 30 steps after. The value peaks where the distribution changes, and the weights
tell which group of sensors it was.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import frot

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7"]

# %%
# Three changes: the mean of the first group at 150, the spread of the third at 300, and a mean of
# the second at 450.

rng = np.random.default_rng(0)
length, window = 600, 30
series = rng.normal(size=(length, 12))
series[150:, 0:3] += 1.5
series[300:, 6:9] *= 2.5
series[450:, 3:6] -= 2.0
groups = {"pumps": [0, 1, 2], "valves": [3, 4, 5], "motors": [6, 7, 8], "fans": [9, 10, 11]}

# %%
# A member of the batch is a time: X the window before, Y the window after.

device = "cuda" if torch.cuda.is_available() else "cpu"
times = np.arange(window, length - window, 5)
before = np.stack([series[t - window : t] for t in times])
after = np.stack([series[t : t + window] for t in times])
batch = frot.solve_batch(
    torch.tensor(before, device=device), torch.tensor(after, device=device), groups,
    eta=frot.relative(0.05), eps=frot.relative(0.02), tol=1e-3,
)  # fmt: skip
value, alpha = batch.value, batch.alpha.cpu().numpy()
print(f"{len(batch)} problems of {window} against {window} points on {device}")

# %%
# The value also grows with the spread of a group, since noise of a larger scale costs more. That is
# seen after 300: the level stays high. A peak of the value is a change, and the weight at the peak
# says where.

figure, panels = plt.subplots(3, 1, figsize=(8.0, 6.2), sharex=True, layout="constrained")
for number, (name, members) in enumerate(groups.items()):
    panels[0].plot(
        series[:, members[0]] - 9.0 * number, color=COLOURS[number], linewidth=0.6, label=name
    )
    panels[0].annotate(
        name, (length + 6, -9.0 * number), color=COLOURS[number], va="center", annotation_clip=False
    )
panels[0].set(yticks=[], ylabel="one sensor of each")
panels[1].plot(times, value, color="black")
panels[1].set(ylabel="robust cost", ylim=(0, None))
panels[2].stackplot(times, alpha.T, colors=COLOURS, alpha=0.9)
panels[2].set(xlabel="time", ylabel="weights", xlim=(0, length), ylim=(0, 1))
for axes in panels:
    for change in (150, 300, 450):
        axes.axvline(change, color="black", linewidth=0.8, linestyle=":")
plt.show()
assert alpha[np.abs(times - 150).argmin()].argmax() == 0

r"""
FROT, SRW and max-sliced transport under noise
==============================================

A square breaks into four pieces that move apart: :math:`y = x + 2\,\mathrm{sign}(x)` in two
features. More and more features of normal noise are added, with the same distribution on both
sides. A distance that is robust should not change.

All methods below are squared transport costs. They differ in what an adversary lets count:

- **OT** counts all features;
- **SRW** (subspace-robust) counts the worst plane, which need not follow the features;
- **max-sliced** counts the worst line;
- **FROT** counts the worst mixture of single features.

The first two cost about 8 without noise, the last two 4: one line or one feature sees half of the
move. So each is divided by its own value without noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import frot

COLOURS = {"OT": "#8A8A8A", "SRW": "#D55E00", "max-sliced": "#009E73", "FROT": "#0072B2"}

methods = {
    "OT": lambda X, Y: frot.wasserstein(X, Y),
    "SRW": lambda X, Y: frot.srw(X, Y, k=2, tol=1e-2),
    "max-sliced": lambda X, Y: frot.max_sliced(X, Y),
    "FROT": lambda X, Y: frot.solve(X, Y),
}


def draw(noise, seed, n=80):
    """Two clouds of n points, two features that break apart and some of noise."""
    rng = np.random.default_rng(seed)
    X, Y = rng.uniform(-1.0, 1.0, size=(2, n, 2))
    Y += 2.0 * np.sign(Y)
    return np.hstack([X, rng.normal(size=(n, noise))]), np.hstack([Y, rng.normal(size=(n, noise))])


# %%
# Two draws for each number of noisy features.

counts = [0, 4, 8, 16, 32, 48]
values = {
    name: np.array([[solve(*draw(count, seed)).value for count in counts] for seed in range(2)])
    for name, solve in methods.items()
}

# %%
# On the right, where the adversary looks with 48 features of noise: the share of its weight on each
# feature. FROT looks at the two true features alone.

X, Y = draw(48, seed=0)
found = {name: methods[name](X, Y) for name in ("SRW", "max-sliced", "FROT")}
shares = {
    "SRW": found["SRW"].chosen.array ** 2 @ found["SRW"].chosen.weights / 2,
    "max-sliced": found["max-sliced"].chosen.array ** 2,
    "FROT": found["FROT"].alpha,
}

figure = plt.figure(figsize=(8.8, 4.2), layout="constrained")
panels = figure.subplot_mosaic([["value", name] for name in shares], width_ratios=(3, 2))
axes = panels["value"]
for name, of in values.items():
    ratio = of / of[:, :1]
    axes.plot(counts, ratio.mean(axis=0), "o-", color=COLOURS[name], markersize=4, label=name)
    axes.fill_between(counts, ratio.min(0), ratio.max(0), color=COLOURS[name], alpha=0.2)
axes.set(xlabel="features of noise", ylabel="value / value without noise", ylim=(0.9, 2.0))
axes.legend(frameon=False, loc="upper right")
for name, share in shares.items():
    panels[name].bar(range(len(share)), share, color=COLOURS[name], width=1.0)
    panels[name].set(ylim=(0, 1), xlim=(-1, 50), yticks=[0, 1])
    panels[name].set_title(f"{name}: {share[:2].sum():.0%} on the true two", fontsize=10)
    panels[name].label_outer()
panels["FROT"].set(xlabel="feature")
plt.show()
assert shares["FROT"][:2].sum() > 0.99

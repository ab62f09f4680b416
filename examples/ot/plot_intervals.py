"""
Intervals and gaps: how accurate a result is
============================================

Every solver of frot returns two numbers besides its value, ``lower`` and ``upper``, that are proven
to hold the optimum: ``lower`` from the weights and dual potentials, ``upper`` from a plan that
keeps the marginals. The relative width of the interval is ``gap``.

So you need not trust a solver, or a setting of it: an answer from a run that was stopped early is
still a statement that holds, only a weaker one.

Below, three solvers run on the same problem, 80 points against 80 in 10 groups, and every bound
that they prove on the way is drawn.
"""

import matplotlib.pyplot as plt
import numpy as np

import frot

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(2, 80, 30))
Y[:, :9] += 0.7
groups = [3] * 10

# %%
# ``result.history`` has the bounds after each iteration. The first solver is the paper's algorithm
# (Frank-Wolfe with steps 2 / (2 + t)), the second the same with the best mixture of all plans found
# so far, and the third is what ``frot.solve`` takes by itself. All work on the same problem, with
# an entropy of 0.2 on the weights, which the paper's algorithm needs. ``tol=0`` asks it for its 60
# steps and no tolerance.

solvers = {
    "FrankWolfe, the paper's steps": frot.FrankWolfe(step="paper", max_iter=60, tol=0),
    "FrankWolfe, fully corrective": frot.FrankWolfe(max_iter=60, tol=1e-9),
    "Exact": frot.Exact(),
}
found = {}
for name, solver in solvers.items():
    result = found[name] = frot.solve(X, Y, groups, eta=0.2, solver=solver)
    print(f"{name:30s} [{result.lower:.9f}, {result.upper:.9f}]  {result.status}")

# %%
# On the left the intervals: they shrink from both sides, and all three hold the same number. On the
# right their gap, on a logarithmic scale. The paper's steps are at half a per cent after 60
# iterations; the other two end where rounding errors begin.

figure = plt.figure(figsize=(8.6, 4.6), layout="constrained")
panels = figure.subplot_mosaic([[name, "gap"] for name in found], width_ratios=(1, 1.1))
right = panels["gap"]
for colour, (name, result) in zip((ORANGE, BLUE, GREEN), found.items(), strict=True):
    steps = np.array([entry.iteration for entry in result.history])
    lower = np.array([entry.lower for entry in result.history])
    upper = np.array([entry.upper for entry in result.history])
    left = panels[name]
    left.fill_between(steps, lower, upper, color=colour, alpha=0.25, linewidth=0)
    left.plot(steps, lower, steps, upper, color=colour, linewidth=1.4)
    left.axhline(found["Exact"].value, color="black", linewidth=0.8, linestyle="--")
    left.set(xlim=(0, 60), ylim=(2.8, 7.0))
    left.set_title(name, loc="right", color=colour, fontsize=10, y=0.78, x=0.98)
    gaps = [max(entry.gap, 1e-16) for entry in result.history]
    right.semilogy(steps, gaps, color=colour, linewidth=1.8)
    left.label_outer()
left.set(xlabel="iteration")
figure.supylabel("lower and upper", fontsize=10)
right.set(xlabel="iteration", xlim=(0, 60), ylim=(1e-14, 1))
right.set_title("gap", fontsize=10)
plt.show()

# %%
# Intervals of different solvers must overlap. If they did not, one of the proofs would be wrong.

lowest = max(result.lower for result in found.values())
highest = min(result.upper for result in found.values())
assert lowest <= highest * (1 + 1e-12)

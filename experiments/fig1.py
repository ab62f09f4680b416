"""Figure 1: FROT finds the matching of the true features among noise, plain transport does not.

Twice: by the paper's algorithm (Sinkhorn with eps = .02, and for FROT algorithm 2 with eta = 1 and
T = 10), and exactly (eps = 0). A plan is suitable if it shares 95 % of its mass with the plan that
the same method finds on the two true features alone, and another one below 50 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import frot
from _paper import fw_sinkhorn, relative_excess, shared_mass
from _runner import Experiment, Run
from frot._base.errors import collect_warnings
from frot.show.plan import draw_arcs
from frot.show.style import legend_below, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIM = (
    "Figure 1: FROT can identify a suitable matching, OT fails to; the true group has α₁ = .9999."
)
SAME, OTHER = 0.95, 0.5
# Features of the group "true": the first ones.
TRUE = 2
TITLES = {
    "clean": "OT on clean data",
    "noisy": "OT on noisy data",
    "frot": "FROT on noisy data (η = 1)",
}
PAPER = {"eta": 1.0, "solver": fw_sinkhorn(0.02)}
# How transport and FROT are solved. With one group the mixed cost never changes, so that one
# iteration of algorithm 2 is Sinkhorn's algorithm.
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the paper's algorithm": ({**PAPER, "max_iter": 1}, PAPER),
    "exact": ({}, {"eta": 1.0}),
}

Results = Mapping[str, frot.Result]


def solve(n: int, seed: int, plain: dict[str, Any], robust: dict[str, Any]) -> Results:
    """Return transport on the true features, on all, and FROT on all."""
    X, Y, groups = frot.toy(n, seed)
    # Ten iterations need not reach the tolerance: that is no news.
    with collect_warnings():
        return {
            "clean": frot.solve(X[:, :TRUE], Y[:, :TRUE], "all", **plain),
            "noisy": frot.solve(X, Y, "all", **plain),
            "frot": frot.solve(X, Y, groups, **robust),
        }


def run(run: Run) -> None:
    n = run.options.n
    X, Y, _ = frot.toy(n, run.seed)
    x, y = X[:, :TRUE], Y[:, :TRUE]
    cost = ((x[:, None] - y[None]) ** 2).sum(axis=2)
    ways = {way: solve(n, run.seed, *options) for way, options in WAYS.items()}
    rows, checks = [], {}
    for way, results in ways.items():
        clean, alpha = results["clean"].plan, results["frot"].alpha
        shared = {name: shared_mass(result.plan, clean) for name, result in results.items()}
        for name, result in results.items():
            excess = relative_excess(result.plan, clean, cost)
            numbers = [f"{shared[name]:.1%}", f"{excess:.1%}", f"{result.value:.6g}"]
            rows.append([f"{TITLES[name]}, {way}", *numbers, f"{result.gap:.0e}"])
        numbers = {name: result.to_dict() for name, result in results.items()}
        run.numbers[way] = {**numbers, "shared": shared}
        checks |= {
            f"α₁ = {alpha[0]:.6f} ({way})": bool(alpha[0] >= 0.9999),
            f"FROT shares {shared['frot']:.1%} of its mass with OT on clean data ({way})": (
                shared["frot"] >= SAME
            ),
            f"OT on noisy data shares {shared['noisy']:.1%} ({way})": shared["noisy"] <= OTHER,
        }
    run.claim(CLAIM, checks)
    header = ["", "mass as on clean data", "excess cost on the true features", "value", "gap"]
    note = "Excess cost: 0 % is that of the plan on clean data, 100 % that of the plan abᵀ."
    run.table("Plans", header, rows, note)
    run.figure(draw(ways, x, y), "the three plans by both ways")


def draw(ways: Mapping[str, Results], x: Any, y: Any) -> Figure:
    """Draw the three plans on the true features, a row a way."""
    figure: Any = new_figure(12.0, 0.5 + 3.7 * len(ways))
    grid = figure.subplots(len(ways), 3, sharex=True, sharey=True, squeeze=False)
    for line, (way, results) in zip(grid, ways.items(), strict=True):
        for axes, (name, title) in zip(line, TITLES.items(), strict=True):
            draw_arcs(axes, results[name].plan, x, y, ("x", "y"), size=16.0)
            tidy(axes)
            shared = shared_mass(results[name].plan, results["clean"].plan)
            note = (
                "the reference" if name == "clean" else f"{shared:.0%} of the mass as on clean data"
            )
            axes.set_title(f"{title}\n{note}", fontsize=10.5)
        line[0].set_ylabel(f"{way}\n\ntrue feature 2")
    for axes in grid[-1]:
        axes.set_xlabel("true feature 1")
    legend_below(figure, grid[0][0], columns=2)
    return figure


EXPERIMENT = Experiment(
    "fig1",
    "On noisy data FROT finds the matching of the clean data, plain transport does not.",
    run,
    options={"n": (100, "points in each cloud")},
)

if __name__ == "__main__":
    EXPERIMENT.main()

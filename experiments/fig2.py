"""Figure 2: the linear program against Frank-Wolfe with network simplex and with Sinkhorn.

(a) objective and (b) plan over eta, with eps = .1; (c) plan over eps, with eta = 1. The objective
of a plan is the largest cost of a group, which is what the linear program minimises. The mean
squared error is also told as a share of that of the plan a b^T, which knows nothing.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

import frot
from _paper import FW_EMD, fw_sinkhorn, mean_squared_error
from _runner import Experiment, Run
from frot._base.errors import collect_warnings
from frot.show.style import BLUE, GREY, INK, ORANGE, new_figure, tidy
from frot.solvers import Exact, LinearProgram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPS = 0.1
ETAS = [float(eta) for eta in np.logspace(-2, 3, 11)]
EPSES = [float(eps) for eps in np.logspace(-3, 1, 9)]
# "Relatively small" is eta up to this; "almost the same" is within this share of the LP's value;
# a plan is "similar" or "accurate" if its MSE is below this share of that of the plan a b^T.
SMALL_ETA, ALMOST, SIMILAR = 1.0, 1e-3, 0.05
NAMES = {"fw_emd": "FW-EMD", "fw_sinkhorn": f"FW-Sinkhorn (ε = {EPS:g})"}


def run(run: Run) -> None:
    n = run.options.n
    X, Y, groups = frot.toy(n, run.seed)
    with collect_warnings():
        lp = frot.solve(X, Y, groups, solver=LinearProgram())
        others = [
            frot.solve(X, Y, groups, solver=solver)
            for solver in (Exact(), LinearProgram(method="ipm"))
        ]
    ignorant = mean_squared_error(frot.Plan(np.full((n, n), 1.0 / n**2)), lp.plan)

    def point(eta: float, eps: float = 0.0) -> dict[str, Any]:
        solver = fw_sinkhorn(eps) if eps else FW_EMD
        with collect_warnings() as warned:
            result = frot.solve(X, Y, groups, eta=eta, solver=solver)
        return {
            "eta": eta,
            "eps": eps,
            "objective": float(result.phi.max()),
            "mse": mean_squared_error(result.plan, lp.plan),
            "gap": result.gap,
            "short": any("did not reach" in text for text in warned),
        }

    over_eta = {
        "fw_emd": [point(eta) for eta in ETAS],
        "fw_sinkhorn": [point(eta, EPS) for eta in ETAS],
    }
    over_eps = [point(1.0, eps) for eps in EPSES]
    best = float(lp.phi.max())
    run.numbers |= {"lp": lp.to_dict(), "mse_of_independent_plan": ignorant}
    run.numbers |= {"over_eta": over_eta, "over_eps": over_eps}
    claim_all(run, over_eta, over_eps, best, ignorant)
    tell(run, lp, others, over_eps)
    for name, points in over_eta.items():
        table(run, NAMES[name], "η", "eta", points, ignorant)
    table(run, "FW-Sinkhorn (η = 1)", "ε", "eps", over_eps, ignorant)
    run.figure(draw(over_eta, over_eps, best, ignorant), "objective and plans over η and ε")


def claim_all(
    run: Run, over_eta: dict[str, Any], over_eps: list[Any], best: float, ignorant: float
) -> None:
    """Hold the numbers against what the paper says of the three panels."""
    objective, plans = {}, {}
    for key, name in NAMES.items():
        small = [point for point in over_eta[key] if point["eta"] <= SMALL_ETA * (1.0 + 1e-9)]
        above = max(point["objective"] / best - 1.0 for point in small)
        share = max(point["mse"] for point in small) / ignorant
        objective[f"{name} is within {above:.2%} of LP for η ≤ {SMALL_ETA:g}"] = above <= ALMOST
        plans[f"{name}'s MSE is {share:.1%} of that of the plan abᵀ"] = share <= SIMILAR
    shares = [point["mse"] / ignorant for point in over_eps]
    falls = all(low <= high for low, high in pairwise(shares))
    smallest = f"at ε = {EPSES[0]:g} the MSE is {shares[0]:.1%} of that of the plan abᵀ"
    run.claim(
        "Figure 2a: FW-EMD and FW-Sinkhorn achieve almost the same objective as LP with a small η.",
        objective,
    )
    run.claim(
        "Figure 2b: FW-EMD and FW-Sinkhorn yield a transport plan similar to LP's with a small η.",
        plans,
    )
    run.claim(
        "Figure 2c: FW-Sinkhorn obtains an accurate transport plan with a small ε (η = 1).",
        {smallest: shares[0] <= SIMILAR, "the MSE falls with every smaller ε": falls},
    )


def tell(run: Run, lp: frot.Result, others: list[frot.Result], over_eps: list[Any]) -> None:
    """Say what the problem can tell apart, and whether its optimal plan is the only one."""
    phi, weight = np.sort(lp.phi)[::-1], float(lp.alpha.max())
    run.note(
        f"At the LP's optimum the heaviest group has weight {weight:.6g} and costs {phi[0]:.6g}, "
        f"the next {phi[1]:.6g}."
    )
    if weight > 1.0 - 1e-6:
        run.note(
            "One group decides alone, so that every small η gives ordinary transport on that "
            "group: this problem cannot tell good min-max solvers from bad ones."
        )
    apart = max(float(np.abs(other.plan.dense() - lp.plan.dense()).max()) for other in others)
    run.note(
        f"The exact solver and HiGHS's interior point end at plans that differ by {apart:.0e} from "
        "the LP's"
        # A mass is 1/n at most, so that this is one part in a million of it.
        + (", which appears to be the only optimal one." if apart <= 1e-6 / lp.plan.shape[0]
           else ": there are several optimal plans, and the MSE to one of them means little.")
    )  # fmt: skip
    if short := [f"{point['eps']:.2g}" for point in over_eps if point["short"]]:
        run.note(
            f"Sinkhorn met its limit of sweeps before its tolerance at ε = {', '.join(short)}; its "
            "plans are rounded to the marginals and the intervals hold."
        )


def table(run: Run, name: str, symbol: str, key: str, points: list[Any], ignorant: float) -> None:
    rows = [
        [f"{point[key]:.2g}", f"{point['objective']:.6g}", f"{point['mse']:.1e}",
         f"{point['mse'] / ignorant:.1%}", f"{point['gap']:.0e}"]
        for point in points
    ]  # fmt: skip
    run.table(name, [symbol, "objective", "MSE to LP", "of that of abᵀ", "gap"], rows)


def draw(over_eta: dict[str, Any], over_eps: list[Any], best: float, ignorant: float) -> Figure:
    """Draw the three panels."""
    figure: Any = new_figure(14.0, 4.2)
    objective, by_eta, by_eps = figure.subplots(1, 3)
    objective.axhline(best, color=INK, linewidth=1.2, label="LP (η = 0)")
    emd = {"color": BLUE, "marker": "o", "markersize": 4.5}
    sinkhorn = {"color": ORANGE, "marker": "s", "markersize": 4.5, "linestyle": "--"}
    for (key, name), style in zip(NAMES.items(), (emd, sinkhorn), strict=True):
        for axes, measured in ((objective, "objective"), (by_eta, "mse")):
            axes.plot(ETAS, [point[measured] for point in over_eta[key]], label=name, **style)
    errors = [point["mse"] for point in over_eps]
    by_eps.plot(EPSES, errors, label="FW-Sinkhorn (η = 1)", **sinkhorn)
    for axes in (by_eta, by_eps):
        axes.axhline(ignorant, color=GREY, linewidth=1.2, linestyle=":", label="plan abᵀ")
        axes.set_ylabel("MSE to the plan of LP")
        # A little below zero, where the markers of exact plans lie.
        axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])
    objective.set_ylabel("objective  max over groups of ⟨Π, C⟩")
    titles = {objective: "(a) Objective", by_eta: "(b) Plan over η", by_eps: "(c) Plan over ε"}
    for axes, title in titles.items():
        axes.set_xscale("log")
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel("ε" if axes is by_eps else "η")
        axes.legend(frameon=False, fontsize=9)
        tidy(axes)
    return figure


EXPERIMENT = Experiment(
    "fig2",
    "Frank-Wolfe, the paper's algorithm, finds value and plan of the linear program.",
    run,
    options={"n": (100, "points in each cloud")},
)

if __name__ == "__main__":
    EXPERIMENT.main()

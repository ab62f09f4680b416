"""Figure 2: the linear program against Frank-Wolfe with network simplex and with Sinkhorn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from frot.cli.reproduce.experiment import (
    FW_EMD,
    FW_SINKHORN,
    ITERATIONS,
    Check,
    Experiment,
    NotedResult,
    Reproduction,
    Verdict,
    run_solver,
)
from frot.datasets import toy
from frot.plans.plan import Plan
from frot.show.style import BLUE, GREY, INK, ORANGE, new_figure, tidy
from frot.solvers import Exact, LinearProgram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 100
EPS = 0.1
ETAS = tuple(float(eta) for eta in np.logspace(-2, 3, 11))
EPSES = tuple(float(eps) for eps in np.logspace(-3, 1, 9))
# "Relatively small" is eta up to this; "almost the same" is within this share of the LP's value;
# a plan is "similar" or "accurate" if its MSE is below this share of that of the plan a b^T.
SMALL_ETA, ALMOST, SIMILAR = 1.0, 1e-3, 0.05

CLAIMS = {
    "2a": "FW-EMD and FW-Sinkhorn achieve almost the same objective as LP with a small η.",
    "2b": "FW-EMD and FW-Sinkhorn yield a transport plan similar to LP's with a small η.",
    "2c": "FW-Sinkhorn obtains an accurate transport plan with a small ε (η = 1).",
}


def fig2(
    n: int = POINTS,
    seed: int = 0,
    etas: Sequence[float] = ETAS,
    epses: Sequence[float] = EPSES,
) -> Reproduction:
    r"""Compute figure 2's three panels on the toy data.

    The objective of a plan is :math:`\max_l \langle \Pi, C_l \rangle` for every solver, since
    that is what the linear program minimises. Besides the paper's mean squared error it is given
    as a share of the error of :math:`a b^\top`, a plan that knows nothing: an error of 6e-7 is
    small only beside the square of a typical entry.

    Examples
    --------
    >>> made = fig2(n=50, etas=[0.1, 1.0], epses=[0.1, 1.0])
    >>> [(verdict.figure, verdict.outcome) for verdict in made.verdicts[:2]]
    [('2a', 'reproduced'), ('2b', 'partly reproduced')]
    """
    X, Y, groups = toy(n, seed)
    lp = run_solver(X, Y, groups, solver=LinearProgram())
    reference = lp.result.plan
    ignorant = mean_squared_error(Plan(np.full((n, n), 1.0 / n**2)), reference)

    def point(name: str, value: float, **options: Any) -> dict[str, Any]:
        return _point(name, value, run_solver(X, Y, groups, **options), reference)

    sinkhorn = {"solver": FW_SINKHORN}
    over_eta = {
        "fw_emd": [point("eta", eta, eta=eta, solver=FW_EMD) for eta in etas],
        "fw_sinkhorn": [point("eta", eta, eta=eta, eps=EPS, **sinkhorn) for eta in etas],
    }
    over_eps = [point("eps", eps, eta=1.0, eps=eps, **sinkhorn) for eps in epses]
    numbers: dict[str, Any] = {
        "figure": "2",
        "n": n,
        "seed": seed,
        "iterations": ITERATIONS,
        "objective": "max over groups of <plan, C_l>, for every solver",
        "lp": {"objective": float(lp.result.phi.max()), "gap": lp.result.gap},
        "lp_plan": _uniqueness(X, Y, groups, lp),
        "mse_of_independent_plan": ignorant,
        "eps_of_2a_and_2b": EPS,
        "over_eta": over_eta,
        "over_eps": over_eps,
    }
    notes = (_dominance(lp), _uniqueness_note(numbers["lp_plan"]), *_sweeps_note(over_eps))
    return Reproduction("fig2", numbers, _verdicts(numbers), lambda: draw_fig2(numbers), notes)


def mean_squared_error(plan: Plan, reference: Plan) -> float:
    r"""The paper's measure, :math:`\sum_{ij} (\pi_{ij} - \rho_{ij})^2 / (n m)`.

    Examples
    --------
    >>> mean_squared_error(Plan(np.full((2, 2), 0.25)), Plan(np.eye(2) / 2))
    0.0625
    """
    return float(np.mean((plan.dense() - reference.dense()) ** 2))


def _point(name: str, value: float, made: NotedResult, reference: Plan) -> dict[str, Any]:
    result = made.result
    return {
        name: value,
        "objective": float(result.phi.max()),
        "mse": mean_squared_error(result.plan, reference),
        "gap": result.gap,
        "alpha": [float(weight) for weight in result.alpha],
        "seconds": round(result.time, 4),
        "warnings": list(made.warnings),
    }


def _uniqueness(X: np.ndarray, Y: np.ndarray, groups: Any, lp: NotedResult) -> dict[str, Any]:
    """Whether other algorithms, free to end at another optimal plan, end at the LP's."""
    others = {"exact": Exact(), "lp_ipm": LinearProgram(method="ipm")}
    apart = {
        name: float(
            np.abs(run_solver(X, Y, groups, solver=solver).result.plan - lp.result.plan).max()
        )
        for name, solver in others.items()
    }
    # A mass is 1/n at most, so that this is one part in a million of it.
    same = max(apart.values()) <= 1e-6 / len(X)
    return {"appears_unique": same, "largest_difference_to_plan_of": apart}


def _uniqueness_note(found: dict[str, Any]) -> str:
    apart = max(found["largest_difference_to_plan_of"].values())
    if found["appears_unique"]:
        return (
            "The LP's plan appears to be the only optimal one: the exact solver and HiGHS's "
            f"interior point end at the same plan (largest difference {apart:.0e})."
        )
    return (
        "The LP has several optimal plans: other exact solvers end at plans that differ by up to "
        f"{apart:.1e} in an arc, so that the MSE to one of them means little."
    )


def _dominance(lp: NotedResult) -> str:
    phi = np.sort(lp.result.phi)[::-1]
    weight = float(lp.result.alpha.max())
    return (
        f"At the LP's optimum the heaviest group has weight {weight:.6g} and costs {phi[0]:.6g}, "
        f"the next {phi[1]:.6g}. "
        + (
            "One group decides alone, so that every small eta gives the same problem: ordinary "
            "transport on that group. This data cannot tell good min-max solvers from bad ones."
            if weight > 1.0 - 1e-6
            else "Several groups share the decision."
        )
    )


def _sweeps_note(points: list[dict[str, Any]]) -> list[str]:
    short = [f"{p['eps']:.2g}" for p in points if any("did not reach" in w for w in p["warnings"])]
    if not short:
        return []
    return [
        f"Sinkhorn met its limit of sweeps before its tolerance in some calls at ε = "
        f"{', '.join(short)}; its plans are rounded to the marginals and the intervals hold."
    ]


def _verdicts(numbers: dict[str, Any]) -> tuple[Verdict, ...]:
    best, ignorant = numbers["lp"]["objective"], numbers["mse_of_independent_plan"]
    names = {"fw_emd": "FW-EMD", "fw_sinkhorn": f"FW-Sinkhorn (ε = {EPS:g})"}
    objective, plans = [], []
    for key, name in names.items():
        small = [p for p in numbers["over_eta"][key] if p["eta"] <= SMALL_ETA * (1.0 + 1e-9)]
        above = max(point["objective"] / best - 1.0 for point in small)
        error = max(point["mse"] for point in small)
        objective.append(
            Check(f"{name} is within {above:.2%} of LP for η ≤ {SMALL_ETA:g}", above <= ALMOST)
        )
        plans.append(
            Check(
                f"{name}'s MSE is {error:.1e} for η ≤ {SMALL_ETA:g}, {error / ignorant:.0%} of "
                "that of the plan a bᵀ",
                error <= SIMILAR * ignorant,
            )
        )
    points = numbers["over_eps"]
    shares = [point["mse"] / ignorant for point in points]
    falls = all(low <= high for low, high in pairwise(shares))
    middle = min(points, key=lambda point: abs(np.log(point["eps"] / EPS)))
    accuracy = (
        Check(
            f"at ε = {points[0]['eps']:g} the MSE is {points[0]['mse']:.1e}, {shares[0]:.1%} of "
            f"that of the plan a bᵀ (at ε = {middle['eps']:g}: {middle['mse'] / ignorant:.0%})",
            shares[0] <= SIMILAR,
        ),
        Check("the MSE falls with every smaller ε", falls),
    )
    checks = {"2a": tuple(objective), "2b": tuple(plans), "2c": accuracy}
    return tuple(Verdict(name, CLAIMS[name], checks[name]) for name in CLAIMS)


LINES = {
    "fw_emd": ("FW-EMD", BLUE, "o", "-"),
    "fw_sinkhorn": ("FW-Sinkhorn", ORANGE, "s", "--"),
}


def draw_fig2(numbers: dict[str, Any]) -> Figure:
    """Draw the three panels from the numbers of `fig2`."""
    figure: Any = new_figure(14.0, 4.2)
    objective, by_eta, by_eps = figure.subplots(1, 3)
    objective.axhline(numbers["lp"]["objective"], color=INK, linewidth=1.2, label="LP (η = 0)")
    for key, (name, colour, marker, dashes) in LINES.items():
        points = numbers["over_eta"][key]
        etas = [point["eta"] for point in points]
        style = {"color": colour, "marker": marker, "markersize": 4.5, "linestyle": dashes}
        label = f"{name} (ε = {numbers['eps_of_2a_and_2b']:g})" if "Sink" in name else name
        objective.plot(etas, [point["objective"] for point in points], label=label, **style)
        by_eta.plot(etas, [point["mse"] for point in points], label=label, **style)
    points = numbers["over_eps"]
    by_eps.plot(
        [point["eps"] for point in points],
        [point["mse"] for point in points],
        color=ORANGE,
        marker="s",
        markersize=4.5,
        linestyle="--",
        label="FW-Sinkhorn (η = 1)",
    )
    for axes in (by_eta, by_eps):
        axes.axhline(
            numbers["mse_of_independent_plan"],
            color=GREY,
            linewidth=1.2,
            linestyle=":",
            label="plan a bᵀ",
        )
        axes.set_ylabel("MSE to the plan of LP")
        # A little below zero, where the markers of exact plans lie.
        axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])
    objective.set_ylabel("objective  max over groups of ⟨Π, C⟩")
    titles = {objective: "(a) Objective", by_eta: "(b) Plan over η", by_eps: "(c) Plan over ε"}
    for axes, title in titles.items():
        axes.set_xscale("log")
        tidy(axes)
        axes.grid(True, color="#DDDDDD", linewidth=0.6)
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel("ε" if axes is by_eps else "η")
        axes.legend(frameon=False, fontsize=9)
    return figure


EXPERIMENT = Experiment("fig2", "Frank-Wolfe finds value and plan of the linear program", fig2)

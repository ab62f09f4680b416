"""Figure 2's picture: objective and error over eta, error over eps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frot.show.style import BLUE, GREY, INK, ORANGE, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_fig2"]

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

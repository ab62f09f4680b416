"""The picture of a two-sample test: statistics as they are, on those under permuted labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frot._base.validate import check_count
from frot.show.style import BLUE, FAINT, GREY, INK, ORANGE, new_figure, plain, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_two_sample(test: Any, top: int = 20, level: float = 0.05) -> Figure:
    """Draw a `TwoSampleTest`.

    On the left the overall statistic is a line on the histogram of its null. On the right each
    group's z is a point on the band of all permutations but a share `level`; beyond the dashed
    line, which the largest z of all groups passes in as many, the adjusted p is at most that.

    Examples
    --------
    >>> import numpy as np, frot
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 30, 2))
    >>> test = frot.two_sample_test(X, Y + [2.0, 0.0], permutations=99)
    >>> [axes.get_title(loc="left") for axes in plot_two_sample(test).axes]
    ['All groups: p = 0.01', 'Each group, p adjusted']
    """
    shown = test.order[: check_count(top, "top")]
    figure = new_figure(9.0, max(3.2, 1.4 + 0.28 * len(shown)))
    whole, groups = figure.subplots(1, 2, width_ratios=(2, 3))
    whole.hist(test.null, bins=30, color=FAINT, label="permuted labels")
    whole.axvline(test.statistic, color=ORANGE, linewidth=2.0, label="as they are")
    whole.set(xlabel="overall statistic T", yticks=[])
    whole.set_title(f"All groups: p = {test.p:.3g}", loc="left", fontsize=11)
    whole.legend(frameon=False, fontsize=9)
    whole.margins(x=0.08)
    null = test.null_groups - test.null_groups.mean(axis=0)
    spread = null.std(axis=0)
    null = np.divide(null, spread, out=np.zeros_like(null), where=spread > 0.0)
    rows = np.arange(len(shown))
    bands = np.quantile(null[:, shown], [0.5 * level, 1.0 - 0.5 * level], axis=0)
    groups.hlines(rows, *bands, color=FAINT, linewidth=6.0)
    significant = test.p_groups[shown] <= level
    for chosen, colour in ((significant, ORANGE), (~significant, BLUE)):
        groups.plot(test.z_groups[shown][chosen], rows[chosen], "o", color=colour, markersize=6)
    groups.axvline(np.quantile(null.max(axis=1), 1.0 - level), color=GREY, ls="--", linewidth=1.0)
    groups.set_yticks(rows, [plain(shorten(test.names[group])) for group in shown])
    groups.set_ylim(len(shown) - 0.4, -0.6)
    for row, group in zip(rows, shown, strict=True):
        groups.annotate(
            f"{test.p_groups[group]:.3g}", (1.0, row), xycoords=("axes fraction", "data"),
            xytext=(4, 0), textcoords="offset points", va="center", fontsize=8, color=INK,
        )  # fmt: skip
    groups.set_xlabel("z of the group, in standard deviations of permuted labels")
    groups.set_title("Each group, p adjusted", loc="left", fontsize=11)
    for axes in (whole, groups):
        tidy(axes)
    groups.tick_params(axis="y", length=0)
    return figure

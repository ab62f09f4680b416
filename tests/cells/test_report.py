"""Pictures of couplings show the numbers that the coupling has; the page has them all."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import numpy as np
import pytest

import frot
from frot.cells import (
    Cells,
    Coupling,
    couple,
    plot_flow,
    plot_push,
    plot_transitions,
    plot_weights,
    simulate,
    write_coupling_report,
)


@pytest.fixture(scope="module")
def days() -> list[Coupling]:
    made = simulate(60, noise=0.5, n_groups=6, n_days=3, seed=2)
    data = Cells(made.X, made.obs, made.names, obsm={"X_umap": made.X[:, :2]})
    return [couple(data, "day", at, at + 1, groups=made.groups, tau=(np.inf, 1.0)) for at in (0, 1)]


def axes_of(figure: Any) -> Any:
    return figure.axes[0]


def test_the_heat_map_has_the_transitions(days):
    axes = axes_of(plot_transitions(days[0], "fate"))
    expected = days[0].transition_matrix("fate").to_numpy()
    np.testing.assert_allclose(axes.images[0].get_array(), expected)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A", "B", "C", "D"]


def test_bands_of_the_flow_are_as_high_as_their_mass(days):
    axes = axes_of(plot_flow(days, "fate"))
    heights = [bar.get_height() for bar in axes.patches]
    # Four types on three days, and all mass on each.
    np.testing.assert_allclose(np.reshape(heights, (3, 4)).sum(axis=1), 1.0)
    mass = days[0].transition_matrix("fate", share="none").to_numpy()
    np.testing.assert_allclose(heights[:4], mass.sum(axis=1) / mass.sum())
    bands = [path.get_paths()[0].vertices for path in axes.collections]
    first = mass[0, 0] / mass.sum()
    assert np.ptp(bands[0][bands[0][:, 0] == bands[0][:, 0].min(), 1]) == pytest.approx(first)


def test_weights_as_bars_and_over_time(days):
    bars = [bar.get_width() for bar in axes_of(plot_weights(days[0], top=3)).patches]
    np.testing.assert_allclose(bars, np.sort(days[0].alpha)[::-1][:3])
    picture = axes_of(plot_weights(days)).images[0].get_array()
    np.testing.assert_allclose(picture.sum(axis=0), 1.0, atol=1e-6)


@pytest.mark.parametrize("pull", [False, True])
def test_pushed_mass_colours_the_cells_of_the_other_day(days, pull):
    figure = plot_push(days[0], "B", "fate", pull=pull)
    *_, chosen, other = axes_of(figure).collections
    shares = (days[0].pull if pull else days[0].push)("B", "fate")
    np.testing.assert_allclose(np.sort(other.get_array()), np.sort(shares) * 60)
    fate = days[0].data.obs["fate"][(days[0].target if pull else days[0].source).rows]
    assert len(chosen.get_offsets()) == (fate == "B").sum()
    assert axes_of(figure).get_xlabel() == "umap 1"


def test_a_basis_that_is_not_there_is_named(days):
    with pytest.raises(
        frot.InputError, match=r"basis: adata.obsm has no 'X_tsne'; it has 'X_umap'"
    ):
        plot_push(days[0], basis="X_tsne")
    with pytest.raises(frot.InputError, match="couplings: there are none"):
        plot_weights([])


def test_the_page_says_what_was_found(days, tmp_path):
    path = write_coupling_report(days[0], tmp_path / "page.html", "fate", command="frot couple x")
    page = unescape(path.read_text(encoding="utf-8"))
    for part in ("Pathways", "Cell types", "Descendants", "Genes that change", "frot couple x"):
        assert part in page
    assert page.count('<img class="plot"') == 3 + 4
    assert f"{days[0].mass:.1%} of the source" in page
    kept = days[0].transition_matrix("fate").to_numpy()[0, 0]
    assert f">{kept:.3f}<" in page
    assert page.count(">left out<") == sum(not one.passed for one in days[0].about)
    assert len(re.findall(r"badge[^>]*>taken<", page)) == sum(one.passed for one in days[0].about)
    plain = write_coupling_report(days[0], tmp_path / "plain.html").read_text(encoding="utf-8")
    assert "Cell types" not in plain

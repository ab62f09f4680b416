from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import frot
from frot.show import plot_alpha


def axes_of(figure) -> list[Any]:
    """Matplotlib's types know less than its objects."""
    return figure.axes


def test_bars_are_alpha_and_phi_heaviest_first(costs_result):
    left, right = axes_of(plot_alpha(costs_result))
    order = costs_result.ranking()
    assert [bar.get_width() for bar in left.patches] == pytest.approx(costs_result.alpha[order])
    assert [bar.get_width() for bar in right.patches] == pytest.approx(costs_result.phi[order])
    names = [text.get_text() for text in left.get_yticklabels()]
    assert names == [costs_result.names[i] for i in order]
    assert left.get_ylim()[0] > left.get_ylim()[1]  # the heaviest on top
    assert "α" in left.get_xlabel()
    assert "φ" in right.get_xlabel()
    assert left.texts[0].get_text() == f"{costs_result.alpha[order[0]]:.4f}"


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    names = [f"A LONG NAME OF A SET OF GENES, NUMBER {i} OF MANY$" for i in range(40)]
    return frot.solve_costs(rng.random((40, 6, 6)), names=names)


def test_at_most_thirty_and_the_title_says_so(many):
    left, _ = axes_of(plot_alpha(many))
    assert len(left.patches) == 30
    assert left.get_title("left") == "Heaviest 30 of 40 groups"
    assert len(axes_of(plot_alpha(many, top=5))[0].patches) == 5


def test_long_names_are_cut_and_nothing_overlaps(many):
    figure = plot_alpha(many)
    left, right = axes_of(figure)
    names = [text.get_text() for text in left.get_yticklabels()]
    assert all(len(name.replace("\\", "")) <= 29 and "…" in name for name in names)
    figure.draw_without_rendering()
    labels = [text.get_window_extent() for text in left.get_yticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(labels))
    numbers = [text.get_window_extent() for text in left.texts]
    assert not any(number.overlaps(right.get_window_extent()) for number in numbers)
    assert all(label.x0 >= 0 for label in labels)


def test_negative_costs_have_room():
    result = frot.solve_costs(-np.ones((2, 2, 2)))
    _, right = axes_of(plot_alpha(result))
    assert right.get_xlim()[0] < -1.0

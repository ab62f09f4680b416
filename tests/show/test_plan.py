from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection

import frot
from frot.show import plot_plan
from frot.show.plan import project


def axes_of(figure) -> list[Any]:
    """Matplotlib's types know less than its objects."""
    return figure.axes


def find(axes, kind) -> list[Any]:
    return [artist for artist in axes.collections if type(artist) is kind]


def test_a_line_for_every_arc_between_the_right_points(toy_data, toy_result):
    X, Y, groups = toy_data
    (axes,) = axes_of(plot_plan(toy_result, groups=groups))
    (lines,) = find(axes, LineCollection)
    rows, cols, mass = toy_result.plan.arcs()
    drawn = {tuple(np.concatenate(segment)) for segment in lines.get_segments()}
    heavy = mass > 0.01 * mass.max()
    expected = {(*X[i, :2], *Y[j, :2]) for i, j in zip(rows[heavy], cols[heavy], strict=True)}
    assert drawn == expected
    left, right = find(axes, PathCollection)
    assert np.array_equal(left.get_offsets(), X[:, :2])
    assert np.array_equal(right.get_offsets(), Y[:, :2])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("feature 0", "feature 1")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["X", "Y"]


def test_heavier_arcs_are_more_opaque_and_wider():
    X = np.array([[0.0, 0.0], [0.0, 1.0]])
    result = frot.solve(X, X + np.array([1.0, 0.0]), "all", a=[0.9, 0.1], b=[0.9, 0.1])
    (axes,) = axes_of(plot_plan(result))
    (lines,) = find(axes, LineCollection)
    opacity, width = lines.get_colors()[:, 3], lines.get_linewidths()
    assert opacity[0] < opacity[-1]
    assert width[0] < width[-1]


def test_features_can_be_chosen_and_named(toy_data, toy_result):
    X, _, _ = toy_data
    names = [f"gene_{i}" for i in range(10)]
    (axes,) = axes_of(plot_plan(toy_result, (4, 7), feature_names=names))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("gene_4", "gene_7")
    assert np.array_equal(find(axes, PathCollection)[0].get_offsets(), X[:, [4, 7]])


@pytest.mark.parametrize(
    ("features", "message"),
    [((0, 10), "10 is none of the 10 features"), ((0,), "give two"), ((-1, 0), "-1 is none")],
)
def test_features_that_are_not_there(toy_result, features, message):
    with pytest.raises(frot.InputError, match=message):
        plot_plan(toy_result, features)


def test_costs_without_points_make_a_heat_map(costs_result):
    axes, bar = axes_of(plot_plan(costs_result))
    (image,) = axes.images
    assert np.allclose(image.get_array(), costs_result.plan.dense())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("column j", "row i")
    assert bar.get_ylabel() == "mass"
    with pytest.raises(frot.InputError, match="no points"):
        plot_plan(costs_result, (0, 1))


def test_the_title_says_when_arcs_are_left_out():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 2)), rng.normal(size=(80, 2))
    with pytest.warns(frot.ConvergenceWarning):
        result = frot.solve(
            X,
            Y,
            "all",
            eta=1.0,
            solver=frot.FrankWolfe(oracle=frot.Sinkhorn(eps=5.0), step="paper", max_iter=1),
        )
    (axes,) = axes_of(plot_plan(result))
    (lines,) = find(axes, LineCollection)
    assert len(lines.get_segments()) <= 4_000 < len(result.plan.arcs()[2])
    share = float(axes.get_title("left").split("(")[1].split("%")[0]) / 100
    mass = np.sort(result.plan.dense().ravel())[::-1][: len(lines.get_segments())]
    assert share == pytest.approx(mass.sum(), abs=0.01)


def test_points_on_a_line_are_drawn_on_two():
    result = frot.solve([[0.0], [1.0]], [[2.0], [3.0]])
    (axes,) = axes_of(plot_plan(result))
    left, right = find(axes, PathCollection)
    assert set(left.get_offsets()[:, 1]) == {1.0}
    assert set(right.get_offsets()[:, 1]) == {0.0}


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(15, 6)), rng.normal(size=(12, 6))
    Y[:, 3:] += 4.0
    return X, Y


def test_principal_components_of_a_large_heaviest_group(clouds):
    X, Y = clouds
    groups = frot.Groups.parse({"low": [0, 1, 2], "high": [3, 4, 5]}, 6)
    shown = project(frot.solve(X, Y, groups), groups=groups)
    assert shown.labels[0].startswith("high: component 1 (")
    both = np.vstack([X, Y])[:, 3:]
    expected = np.linalg.svd(both - both.mean(axis=0), compute_uv=False)
    found = np.vstack([shown.x, shown.y])
    assert np.linalg.norm(found, axis=0) == pytest.approx(expected[:2])
    assert found[:, 0] @ found[:, 1] == pytest.approx(0.0, abs=1e-9)


def test_a_group_of_one_feature_is_joined_by_the_next(clouds):
    X, Y = clouds
    Y = Y.copy()
    Y[:, 5] += 20.0
    groups = frot.Groups.parse({"rest": [0, 1, 2, 3, 4], "one": [5]}, 6)
    shown = project(frot.solve(X, Y, groups, solver="linear_program"), groups=groups)
    assert shown.labels == ("feature 5", "feature 0")
    assert np.array_equal(shown.x, X[:, [5, 0]])


def test_each_feature_a_group_shows_the_two_heaviest(clouds):
    X, Y = clouds
    result = frot.solve(X, Y, "each", eta=1.0)
    first, second = result.ranking()[:2]
    assert project(result).labels == (result.names[first], result.names[second])


def test_unknown_groups_fall_back_to_all_features(clouds):
    X, Y = clouds
    shown = project(frot.solve(X, Y, "3,3"))
    assert shown.x.shape == (15, 2)
    assert "component 2" in shown.labels[1]


def test_points_that_keep_nothing_are_hollow():
    X, Y = np.zeros((3, 2)), np.array([[0.0, 0.1], [0.1, 0.0], [9.0, 9.0]])
    kept = plot_plan(frot.solve(X, Y, tau=1.0, penalty="tv")).axes[0]
    hollow = [c for c in kept.collections if c.get_label() not in ("X", "Y")][1:]
    # One of Y's by name, and one of X's that was to have it.
    offsets = np.vstack([np.asarray(c.get_offsets()) for c in hollow])
    assert {tuple(at) for at in offsets} == {(0.0, 0.0), (9.0, 9.0)}
    assert "keeps 67% of X" in kept.get_title("left")
    assert "keeps" not in plot_plan(frot.solve(X, Y)).axes[0].get_title("left")

from typing import Any

import numpy as np
import pytest

import frot
from frot.selection import (
    FROTSelector,
    pathway_test,
    plot_heat_map,
    plot_pathways,
    plot_shapes,
    plot_strips,
    plot_volcano,
    shape_test,
)
from frot.show.style import BLUE, ORANGE
from tests.selection.planted import planted


@pytest.fixture(scope="module")
def fitted():
    X, y = planted()
    X[y == "control", 5] += 2.5
    return FROTSelector(6, plan=False).fit(X, y), X, y


def points(figure):
    """Return the points of a volcano by the first word of their legend."""
    return {
        str(one.get_label()): np.asarray(one.get_offsets()) for one in figure.axes[0].collections
    }


def test_a_volcano_of_p_values(fitted):
    selector, X, y = fitted
    (one,) = selector.comparisons_
    figure = plot_volcano(selector)
    assert figure.axes[0].get_ylabel().startswith("−log10 p")
    found = points(figure)
    heights = np.concatenate([part[:, 1] for part in found.values()])
    assert np.sort(heights) == pytest.approx(np.sort(-np.log10(one.effects.p)))
    up = next(part for label, part in found.items() if "up in control" in label)
    chosen = (selector.p_values[1] <= 0.05) & (one.t > 0)
    assert sorted(up[:, 0]) == pytest.approx(sorted(one.log2_fold_change[chosen]))
    # Colours are those of the test that was run.
    again = FROTSelector(6, plan=False).fit(X, y)
    test = again.permutation_test(X, y, n_permutations=99)
    others = next(
        part for label, part in points(plot_volcano(again)).items() if label.startswith("others")
    )
    assert len(others) == (test.q > 0.05).sum()


def test_members_of_the_best_sets_have_a_colour():
    X, y = planted()
    selector = FROTSelector(1, groups={"signal": [0, 1, 2], "rest": range(3, 40)}).fit(X, y)
    found = points(plot_volcano(selector))
    assert sum(len(part) for part in found.values()) == 40


def test_names_in_a_volcano_do_not_touch():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 200)), np.repeat(["a" * 50, "b"], 20)
    X[:20] += np.repeat([1.5, -1.5], 100)
    figure = plot_volcano(FROTSelector(100, plan=False).fit(X, y))
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) >= 8
    frame = figure.bbox
    for place, one in enumerate(boxes):
        assert frame.x0 <= one.x0
        assert one.x1 <= frame.x1
        assert not any(one.overlaps(two) for two in boxes[:place])


def test_fold_changes_over_nothing_are_at_the_edge():
    X, y = np.abs(planted(d=6)[0]) * 60, planted(d=6)[1]
    X[y == "control", 0] = 0.0
    selector = FROTSelector(2, plan=False, values="linear").fit(X, y)
    axes = plot_volcano(selector).axes[0]
    assert axes.get_xlim()[1] < 20
    assert "1 farther out" in axes.get_xlabel()


def test_strips_have_every_sample_and_the_means(fitted):
    selector, X, y = fitted
    figure = plot_strips(selector, X, y, features=["x5", "x0"])
    assert [axes.get_title("left") for axes in figure.axes] == ["x5", "x0"]
    for axes, column in zip(figure.axes, (5, 0), strict=True):
        for part, line, label in zip(
            axes.collections, axes.lines, ("control", "treated"), strict=True
        ):
            values = X[y == label, column]
            assert np.asarray(part.get_offsets())[:, 1] == pytest.approx(values)
            assert np.asarray(line.get_ydata())[0] == pytest.approx(values.mean())


def test_strips_of_many_samples_and_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8 * 60, 3)), np.repeat(list("abcdefgh"), 60)
    selector = FROTSelector(2, plan=False).fit(X, y)
    axes = plot_strips(selector, X, y, "c vs rest").axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["c", "rest"]
    assert [len(np.asarray(part.get_offsets())) for part in axes.collections] == [60, 200]
    # The mean is of all samples, also of those not drawn.
    column = int(axes.get_title("left")[1:])
    assert np.asarray(axes.lines[1].get_ydata())[0] == pytest.approx(X[y != "c", column].mean())


def test_strips_and_heat_maps_are_without_the_effects_of_blocks():
    X, y = planted(n=20, m=20)
    block = np.arange(40) % 2
    moved = X + 50.0 * block[:, None]
    strips, maps = [], []
    for table in (X, moved):
        selector = FROTSelector(6, plan=False, values="log2").fit(table, y, block)
        strips.append(plot_strips(selector, table, y, features=["x0"]).axes[0])
        maps.append(plot_heat_map(selector, table, y).axes[0].images[0].get_array())
    one, two = (np.asarray(axes.collections[0].get_offsets())[:, 1] for axes in strips)
    np.testing.assert_allclose(two - two.mean(), one - one.mean(), atol=1e-9)
    np.testing.assert_allclose(maps[0], maps[1], atol=1e-9)


def test_a_heat_map_has_every_sample_of_either_class(fitted):
    selector, X, y = fitted
    names = [f"P{row}" for row in range(40)]
    figure = plot_heat_map(selector, X, y, sample_names=names)
    first, second = figure.axes[:2]
    shapes = [np.asarray(axes.images[0].get_array()).shape for axes in (first, second)]
    assert shapes == [(30, 24), (30, 16)]
    shown = [text.get_text() for axes in (first, second) for text in axes.get_xticklabels()]
    assert sorted(shown) == sorted(names)
    assert set(shown[:24]) == set(names[:24])
    rows = [text.get_text() for text in first.get_yticklabels()]
    assert rows[:3] == selector.table_["feature"][:3].tolist()


def test_the_samples_of_a_subgroup_have_a_ring():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 8)), np.repeat(["sick", "well"], 30)
    X[:6, 3] += 8.0
    test = shape_test(X, y, n_permutations=99)
    axes = plot_shapes(test, X, y, ["x3"]).axes[0]
    rings = [part for part in axes.collections if len(part.get_facecolor()) == 0]
    drawn = sorted(float(v) for part in rings for v in np.asarray(part.get_offsets())[:, 1])
    inside = y == test.subgroup_in[3]
    expected = X[test.subgroups[3], 3] - X[inside, 3].mean()
    np.testing.assert_allclose(drawn, np.sort(expected))
    assert len(plot_shapes(test, X, y).axes) == 6
    # Whatever a batch adds is taken out.
    block = np.arange(60) % 2
    drawn = [
        np.concatenate([np.asarray(part.get_offsets())[:, 1] for part in axes.collections])
        for axes in (
            plot_shapes(test, moved, y, ["x3"], block=block).axes[0]
            for moved in (X, X + 9.0 * block[:, None])
        )
    ]
    np.testing.assert_allclose(drawn[0], drawn[1])


def test_bars_have_the_colour_of_the_class():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 90)), np.repeat(["sick", "well"], 20)
    X[y == "sick", :10] += 1.5
    X[y == "well", 30:40] += 1.5
    sets = {"up": range(20), "down": range(30, 50), "none": range(60, 80)}
    test = pathway_test(X, y, sets, n_permutations=99)
    axes = plot_pathways(test, rows=2).axes[0]
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert sorted(names) == ["down", "up"]
    from matplotlib.colors import to_rgb

    bars: list[Any] = list(axes.patches)
    for bar, name in zip(bars, names, strict=True):
        assert bar.get_facecolor()[:3] == to_rgb({"up": BLUE, "down": ORANGE}[name])
        assert bar.get_width() == pytest.approx(test.score[test.names.index(name)])


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda s, X, y: plot_volcano(s, 1), "comparison: 1 is none of 'control vs treated'"),
        (lambda s, X, y: plot_strips(s, X, y, features=["gene"]), "features: 'gene' is not a feat"),
        (lambda s, X, y: plot_strips(s, X[:, :9], y), "X, y: are not what the selector was fitted"),
        (lambda s, X, y: plot_strips(s, X[:9], y[:9]), "X, y: are not what|one class"),
        (lambda s, X, y: plot_heat_map(s, X, y, sample_names=["a"]), "sample_names: has 1 names"),
        (lambda s, X, y: plot_shapes(shape_test(X, y), X[:, :9], y), "X, y: are not what was test"),
        (lambda s, X, y: plot_shapes(shape_test(X, y), X, y, ["x99"]), "features: 'x99' is not a"),
    ],
)
def test_bad_input(fitted, work, message):
    with pytest.raises(frot.InputError, match=message):
        work(*fitted)

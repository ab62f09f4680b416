from typing import Any

import numpy as np
import pytest

import frot
from frot.selection import FROTSelector, pathway_test, plot_pathways, plot_strips, plot_volcano
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


def test_a_volcano_without_a_test(fitted):
    selector, _, _ = fitted
    found = points(plot_volcano(selector))
    (one,) = selector.comparisons_
    assert sum(len(part) for part in found.values()) == 40
    up = next(part for label, part in found.items() if "up in control" in label)
    chosen = selector.groups_support_ & (one.t > 0)
    assert sorted(up[:, 0]) == pytest.approx(sorted(one.log2_fold_change[chosen]))
    assert sorted(up[:, 1]) == pytest.approx(sorted(one.moderated[chosen]))


def test_a_volcano_of_p_values(fitted):
    selector, X, y = fitted
    selector = FROTSelector(6, plan=False).fit(X, y)
    test = selector.permutation_test(X, y, n_permutations=99)
    figure = plot_volcano(selector)
    assert figure.axes[0].get_ylabel().startswith("−log10 p")
    heights = np.concatenate([part[:, 1] for part in points(figure).values()])
    assert np.sort(heights) == pytest.approx(np.sort(-np.log10(test.p)))
    found = points(plot_volcano(selector, against="t"))
    others = next(part for label, part in found.items() if label.startswith("others"))
    assert len(others) == (test.q > 0.05).sum()
    assert others[:, 1].max() < test.observed[test.q <= 0.05].min()


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
    figure = plot_strips(selector, X, y, features=[5, 0])
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
        (lambda s, X, y: plot_volcano(s, against="q"), "against: 'q' is none of"),
        (lambda s, X, y: plot_volcano(s, against="p"), "has no permutation test"),
        (lambda s, X, y: plot_strips(s, X, y, features=[40]), "features: are columns of X"),
    ],
)
def test_bad_input(fitted, work, message):
    with pytest.raises(frot.InputError, match=message):
        work(*fitted)

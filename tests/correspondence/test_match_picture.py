from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from frot import InputError
from frot.correspondence import (
    NoisyBackbone,
    load_pairs,
    match_picture,
    pck,
    plot_features,
    plot_flow,
    plot_layers,
    plot_warp,
    plot_weights,
    result_table,
    write_match_page,
)
from frot.correspondence.match_picture import (
    RED,
    SideBySide,
    grid_points,
    object_points,
    place_labels,
    plot_matches,
)
from frot.correspondence.pictures import plot_heatmap
from frot.show.style import GREEN
from tests.correspondence.fake_match import FakeMatch, fake_match


@dataclass(frozen=True, eq=False)
class Uniform(FakeMatch):
    @cached_property
    def a(self):
        return np.full(self.source_grid.count, 1.0 / self.source_grid.count)


def uniform() -> Any:
    match = fake_match()
    return Uniform(match.source, match.target, match.bent)


@pytest.mark.parametrize("size", [(300, 360), (90, 700), (500, 20), (1, 1)])
@pytest.mark.parametrize("count", [1, 4, 10])
def test_a_grid_is_even_and_inside(size, count):
    points = grid_points(size, count)
    assert len(set(points[:, 0 if size[1] >= size[0] else 1])) == min(count, max(size))
    assert (points >= 0.0).all()
    assert (points <= [size[1] - 1, size[0] - 1]).all()


def test_a_grid_is_centred():
    points = grid_points((300, 360), 6)
    assert points.mean(axis=0) == pytest.approx([179.5, 149.5])
    assert len(points) == 30


@pytest.mark.parametrize("count", [1, 5, 16, 100])
def test_points_of_the_object_are_on_it(count):
    match = fake_match()
    points = object_points(match, count)
    assert 0.7 * count <= len(points) <= 1.3 * count + 1
    cells = match.source_grid.centres / match.source_ratio
    nearest = ((points[:, None] - cells) ** 2).sum(axis=2).argmin(axis=1)
    assert (match.a[nearest] == match.a.max()).all()
    assert (np.diff(points[:, 1]) > 0.0).all()


def test_without_an_object_points_are_the_surest_that_are_apart():
    match = uniform()
    points = object_points(match, 20)
    assert len(points) == 20
    assert (points >= [36, 30]).all()
    assert (points <= [323, 269]).all()
    assert (np.diff(points[:, 1]) > 0.0).all()
    apart = np.linalg.norm(points[:, None] - points, axis=2) + 1e9 * np.eye(20)
    assert apart.min() >= 0.5 * np.sqrt(287 * 239 / 20)
    others = match.transfer(grid_points((300, 360), 20)).confidence
    assert match.transfer(points).confidence.mean() > others.mean() + 0.1


def test_points_are_where_the_classifier_looks():
    looked = np.zeros((300, 360))
    looked[100:200, 50:150] = 1.0
    match = replace(uniform(), source_cam=looked)
    points = object_points(match, 16)
    assert 8 <= len(points) <= 24
    reach = match.source_grid.spacing / match.source_ratio
    assert (np.abs(points - [100, 150]) <= 50 + reach).all()


def test_confidence_that_cannot_vary_is_not_shown():
    few = replace(fake_match(), side=96)
    assert min(few.source_grid.count, few.target_grid.count) < 500
    figure = plot_matches(few, POINTS)
    assert not [text for text in figure.axes[0].texts if "%" in text.get_text()]
    assert "too few cells" in figure.axes[0].get_title("left")
    assert "confidence" not in plot_heatmap(few, POINTS[0]).axes[-1].get_title("left")
    many = fake_match()
    assert [text for text in plot_matches(many, POINTS).axes[0].texts if "%" in text.get_text()]
    assert "confidence" in plot_heatmap(many, POINTS[0]).axes[-1].get_title("left")


def test_nothing_to_choose():
    with pytest.raises(InputError, match="count: must be a whole number >= 1, got 0"):
        grid_points((10, 10), 0)
    with pytest.raises(InputError, match="points: must be a whole number >= 1, got 0"):
        object_points(fake_match(), 0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: plot_matches(3), "match: is a int; give what matcher"),  # type: ignore[arg-type]
        (lambda: plot_matches(fake_match(), "abc"), "points: 'abc' are no numbers"),
        (lambda: plot_matches(fake_match(), POINTS, targets="x"), "targets: 'x' are no numbers"),
        (lambda: plot_heatmap(fake_match(), "x"), "points: 'x' are no numbers"),
        (lambda: object_points(fake_match(), "3"), "points: '3' is not a number"),  # type: ignore[arg-type]
        (lambda: object_points("x"), "match: is a str"),  # type: ignore[arg-type]
        (lambda: grid_points("ab", 3), "size: "),  # type: ignore[arg-type]
        (lambda: plot_flow("x"), "match: is a str"),  # type: ignore[arg-type]
        (lambda: plot_warp("x"), "match: is a str"),  # type: ignore[arg-type]
        (lambda: plot_weights("x"), "match: is a str"),  # type: ignore[arg-type]
        (lambda: plot_layers(3), "match: is a int"),  # type: ignore[arg-type]
        (lambda: plot_features("x"), "pair: is a str"),  # type: ignore[arg-type]
        (lambda: write_match_page("x", "m.html"), "match: is a str"),  # type: ignore[arg-type]
        (lambda: load_pairs(["spair"]), "is not a set of pairs"),  # type: ignore[arg-type]
        (lambda: result_table(3), "evaluations: is a int"),  # type: ignore[arg-type]
        (lambda: pck("x"), "errors: has to be"),
        (lambda: NoisyBackbone(3), "backbone: is a int"),  # type: ignore[arg-type]
    ],
)
def test_what_is_of_a_wrong_type_is_said(call, said):
    with pytest.raises(InputError, match=said):
        call()


POINTS = np.array([[100.0, 80.0], [220.5, 140.0], [180.0, 260.0]])


@pytest.fixture(scope="module")
def match():
    return fake_match()


def pictures(figure) -> list[Any]:
    return figure.axes[0].images


def drawn(figure, gid) -> Any:
    (artist,) = figure.axes[0].findobj(lambda artist: artist.get_gid() == gid)
    return artist


def test_the_second_photograph_stands_beside_the_first_as_high(match):
    first, second = pictures(plot_matches(match, POINTS))
    assert first.get_extent() == [-0.5, 359.5, 299.5, -0.5]
    left, right, bottom, top = second.get_extent()
    assert left > 359.5
    assert (bottom, top) == (299.5, -0.5)
    assert (right - left) / (bottom - top) == pytest.approx(472 / 360)
    assert second.get_array().shape == (360, 472, 3)


def test_markers_are_where_the_points_are(match):
    figure = plot_matches(match, POINTS)
    moved = match.transfer(POINTS)
    assert np.asarray(drawn(figure, "source").get_offsets()) == pytest.approx(POINTS)
    # A pixel of the target is 300 / 360 units wide, from the left edge of its picture on.
    left = figure.axes[0].images[1].get_extent()[0]
    places = (moved.points + 0.5) * (300 / 360) + [left, -0.5]
    assert np.asarray(drawn(figure, "found").get_offsets()) == pytest.approx(places)
    ends = np.array([[line[0], line[-1]] for line in drawn(figure, "lines").get_segments()])
    assert ends == pytest.approx(np.stack([POINTS, places], axis=1))


def test_one_colour_in_both_and_fainter_where_less_sure(match):
    figure = plot_matches(match, POINTS)
    colours = drawn(figure, "source").get_facecolors()
    assert np.array_equal(colours, drawn(figure, "found").get_facecolors())
    assert len({tuple(colour) for colour in colours}) == 3
    lines = drawn(figure, "lines").get_colors()
    assert lines[:, :3] == pytest.approx(colours[:, :3])
    sure = match.transfer(POINTS).confidence
    assert np.array_equal(np.argsort(lines[:, 3]), np.argsort(sure))
    assert [text.get_text() for text in figure.axes[0].texts] == [f"{s:.0%}" for s in sure]


def boxes(figure):
    """Where the labels are on the canvas once it is drawn, (k, 4)."""
    figure.draw_without_rendering()
    found = [text.get_window_extent().extents for text in figure.axes[0].texts]
    return np.array(found).reshape(-1, 4)


def overlaps(figure):
    """How many pairs of labels are on one another, and labels on markers."""
    labels = boxes(figure)
    centres = figure.axes[0].transData.transform(np.asarray(drawn(figure, "found").get_offsets()))
    radius = 0.5 * np.sqrt(44) * figure.dpi / 72
    both = np.vstack([labels, np.hstack([centres - radius, centres + radius])])
    apart = (labels[:, None, :2] >= both[:, 2:]) | (labels[:, None, 2:] <= both[:, :2])
    over = np.asarray(~apart.any(axis=2))
    np.fill_diagonal(over, False)
    return over[:, : len(labels)].sum() // 2, over[:, len(labels) :].sum()


@pytest.mark.parametrize("axes", [False, True])
def test_labels_of_close_points_are_not_on_one_another(match, axes):
    close = np.array([[100.0, 80.0], [102.0, 82.0], [104.0, 86.0], [106.0, 80.0], [150.0, 80.0]])
    corners = np.array([[0.0, 0.0], [3.0, 6.0], [359.0, 0.0], [359.0, 5.0], [359.0, 299.0]])
    ax = Figure(figsize=(6.0, 9.0)).add_subplot(3, 2, 3) if axes else None
    figure = plot_matches(match, np.vstack([close, corners]), ax)
    assert overlaps(figure) == (0, 0)
    assert 2 <= len(figure.axes[0].texts) < 10


def test_of_two_points_in_one_place_the_surer_is_labelled_first(match):
    sure = np.array([0.2, 0.9, 0.4, 0.6, 0.3, 0.5])
    places = np.full((6, 2), 150.0)
    shown = ("source", "target", "source_grid", "target_grid")
    fixed = SimpleNamespace(**{name: getattr(match, name) for name in shown})
    fixed.transfer = lambda points: SimpleNamespace(points=places, confidence=sure)
    figure = plot_matches(fixed, places)  # type: ignore[arg-type]
    # There is room on four sides of a marker.
    assert [text.get_text() for text in figure.axes[0].texts] == ["90%", "40%", "60%", "50%"]
    assert overlaps(figure) == (0, 0)


def test_labels_that_have_room_stay_to_the_right(match):
    figure = plot_matches(match, POINTS)
    assert overlaps(figure) == (0, 0)
    places = figure.axes[0].transData.transform(np.asarray(drawn(figure, "found").get_offsets()))
    labels = boxes(figure)
    assert (labels[:, 0] > places[:, 0]).all()
    assert (labels[:, [1, 3]].mean(axis=1) - places[:, 1]) == pytest.approx(0.0, abs=2.0)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ((300, 400), (300, 400)),
        ((300, 30), (300, 400)),
        ((300, 400), (900, 60)),
        ((50, 400), (9, 2)),
    ],
)
def test_the_gap_is_a_fixed_share_of_the_width(source, target):
    both = SideBySide(source, target)
    gap = both.left + 0.5 - source[1]
    assert gap / both.width == pytest.approx(0.025 / 1.025)
    assert both.width == pytest.approx(source[1] + gap + both.scale * target[1])


def test_right_is_green_and_wrong_is_red(match):
    off = np.array([[3.0, 0.0], [0.0, 4.0], [30.0, 40.0]])
    truth = match.transfer(POINTS).points + off
    figure = plot_matches(match, POINTS, targets=truth, threshold=4.0)
    expected = [to_rgba(GREEN), to_rgba(GREEN), to_rgba(RED)]
    assert drawn(figure, "found").get_facecolors() == pytest.approx(np.array(expected))
    both = SideBySide(match.source.size, match.target.size)
    assert np.asarray(drawn(figure, "truth").get_offsets()) == pytest.approx(both.place(truth))
    lengths = [np.linalg.norm(line[1] - line[0]) for line in drawn(figure, "errors").get_segments()]
    assert np.array(lengths) / both.scale == pytest.approx([3.0, 4.0, 50.0])
    assert "2 of 3 within 4 pixels" in figure.axes[0].get_title("left")


def test_the_usual_threshold_is_a_tenth_of_the_extent(match):
    truth = match.transfer(POINTS).points
    extent = np.ptp(truth, axis=0).max()
    figure = plot_matches(match, POINTS, targets=truth)
    assert f"3 of 3 within {0.1 * extent:.3g} pixels" in figure.axes[0].get_title("left")


def test_into_axes_of_the_user(match, monkeypatch):
    monkeypatch.setattr(
        match_picture, "new_figure", lambda *_: pytest.fail("there are axes already")
    )
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot_matches(match, 5, right) is figure
    assert len(right.images) == 2
    assert not left.images


def test_names_are_not_mathematics_and_numbers_do_not_crowd(match):
    named = replace(match, source=replace(match.source, name="a$b$c.png"))
    figure = plot_matches(named, 60)
    assert r"a\$b\$c.png" in figure.axes[0].get_title("left")
    assert not figure.axes[0].texts
    figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"points": [1.0, 2.0, 3.0]}, "points: shape"),
        ({"points": np.zeros((0, 2))}, "points: shape"),
        ({"points": 0}, "points: must be a whole number >= 1, got 0"),
        ({"points": [[900.0, 20.0]]}, "outside"),
        ({"points": POINTS, "targets": POINTS[:2]}, "targets: shape"),
    ],
)
def test_bad_input(match, given, text):
    with pytest.raises(InputError, match=text):
        plot_matches(match, **given)


EVERYWHERE = np.array([-np.inf, -np.inf, np.inf, np.inf])
NOTHING = np.zeros((0, 4))


def test_neither_on_one_another_nor_on_what_is_taken_nor_beyond():
    rng = np.random.default_rng(0)
    corners = rng.uniform(0.0, 10.0, (40, 4, 2))
    spots = np.concatenate([corners, corners + np.array([2.0, 1.0])], axis=2)
    taken = np.array([[2.0, 2.0, 4.0, 4.0], [7.0, 0.0, 8.0, 9.0]])
    limit = np.array([1.0, 1.0, 11.0, 9.0])
    chosen = place_labels(spots, taken, limit, range(40))
    boxes = [spots[k, spot] for k, spot in enumerate(chosen) if spot is not None]
    assert 5 < len(boxes) < 40
    for number, box in enumerate(boxes):
        assert (box[:2] >= limit[:2]).all()
        assert (box[2:] <= limit[2:]).all()
        for other in [*boxes[:number], *taken]:
            assert (box[:2] >= other[2:]).any() or (box[2:] <= other[:2]).any()


def test_who_comes_first_has_the_best_spot():
    spots = np.tile(np.array([[0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 2.0, 1.0]]), (3, 1, 1))
    # Boxes that only touch are not on one another.
    assert place_labels(spots, NOTHING, EVERYWHERE, [2, 0, 1]) == [1, None, 0]
    assert place_labels(spots[:0], NOTHING, EVERYWHERE, []) == []

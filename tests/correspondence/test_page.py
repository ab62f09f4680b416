import json
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from frot import InputError
from frot.correspondence import Matcher, TorchBackbone, Warped
from frot.correspondence._features import Grid
from frot.correspondence.agreement import told
from frot.correspondence.page import heat_rows, sample, write_match_page
from frot.correspondence.transfer import TRANSFERS
from tests.correspondence.fake_match import FakeMatch, FakePhoto, FakeTransfer, fake_match
from tests.correspondence.heat import cells_around, drawn_heat, drawn_row
from tests.correspondence.small import SIDE, cat, convolutions

POINTS = np.array([[100.25, 80.0], [220.5, 140.0]])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "match.html"
    assert write_match_page(fake_match(), path, POINTS, command="frot <x>") == path
    return path.read_text(encoding="utf-8")


def test_it_asks_nothing_of_the_network(page):
    addresses = re.findall(r'(?:src|href)="([^"]*)', page)
    assert len(addresses) == 5
    assert all(address.startswith("data:") for address in addresses)
    assert "http" not in re.sub(r"base64,[^\"]*", "", page.split('id="data"')[0])
    assert "url(" not in page


def test_what_users_wrote_is_escaped(page):
    assert "<cat>" not in page
    assert "bent &lt;cat&gt;.png" in page
    assert "frot &lt;x&gt;" in page
    block = page.split('id="data">')[1].split("</script>")[0]
    assert [side["photo"]["width"] for side in json.loads(block)["sides"]] == [360, 472]


def test_the_answer_and_the_layers_are_there(page):
    match = fake_match()
    assert match.result is not None
    assert f"[{match.result.lower:.8g},&nbsp;{match.result.upper:.8g}]" in page
    assert 'class="badge">CONVERGED' in page
    weights = re.findall(r'data-value="([^"]+)"', page)
    assert [float(weight) for weight in weights] == list(match.alpha.values())
    for x, y in match.transfer(POINTS).points:
        assert f"<td>{x:.1f}, {y:.1f}</td>" in page
    assert "310 best of 713 cells" in page
    assert "every 2 pixels of A, and a click goes to the nearest of these" in page


def test_a_method_without_transport_has_no_interval(tmp_path):
    match = replace(fake_match(), result=None, method="nn", phi=None)
    text = write_match_page(match, tmp_path / "nn.html", 3, "Cats & dogs").read_text("utf-8")
    assert "no interval" in text
    assert "<title>Cats &amp; dogs</title>" in text
    assert "To get this again" not in text


@dataclass(frozen=True, eq=False)
class Large(FakeMatch):
    """As many cells as in the paper, in photographs of twelve megapixels, half of it noise."""

    @cached_property
    def scores(self):
        row = np.random.default_rng(0).random(self.target_grid.count, dtype=np.float32)
        return np.broadcast_to(row, (self.source_grid.count, self.target_grid.count))

    def transfer(self, points):
        same = np.asarray(points, dtype=float)
        return FakeTransfer(same, np.ones(len(same)))

    def warp(self, onto):
        return Warped(self.source.pixels, np.ones(self.source.size, dtype=bool))


def test_the_largest_page_is_below_six_megabytes(tmp_path):
    cat = fake_match()
    pixels = np.kron(cat.source.pixels, np.ones((10, 10, 1), dtype=np.float32))[:, :, :3]
    pixels += 0.3 * np.random.default_rng(0).random((*pixels.shape[:2], 1), dtype=np.float32)
    photo = FakePhoto(pixels, "large.jpg")
    match: Any = Large(photo, photo, cat.bent, 4.0, 284)
    assert match.source_grid.count >= 4_275
    page = write_match_page(match, tmp_path / "large.html")
    assert page.stat().st_size < 6e6


@pytest.mark.parametrize(
    ("name", "points", "text"),
    [
        ("no/such/page.html", None, "does not exist"),
        ("page.html", [[1e4, 0.0]], "outside"),
        ("page.html", [1.0], "points: shape"),
    ],
)
def test_bad_input_leaves_no_file(tmp_path, name, points, text):
    with pytest.raises(InputError, match=text):
        write_match_page(fake_match(), tmp_path / name, points)
    assert not list(tmp_path.iterdir())


def unpacked(sampled):
    span = sampled.high - sampled.low
    return sampled.low + sampled.places / 65_535 * span, sampled.sure / 255


def test_a_second_look_is_told(tmp_path):
    seen = []
    for reflected, looks in ((False, (-2.0,)), (False, (-0.6, 0.3)), (True, (0.1, 2.0))):
        match = replace(fake_match(), reflected=reflected, looks=looks)
        page = write_match_page(match, tmp_path / "match.html").read_text()
        words = ("of a reflection", "A was looked at mirrored, too")
        seen.append(tuple(word in page for word in words))
        assert "A and B face opposite ways" in page
        assert f"{'yes' if reflected else 'no'}: {told(looks)}" in page
    assert seen == [(False, False), (False, True), (True, True)]
    # Where it was not asked for, nothing is said of it.
    page = write_match_page(fake_match(), tmp_path / "match.html").read_text()
    assert "face opposite ways" not in page


@pytest.mark.parametrize(("most", "step"), [(30_000, 2), (12_100, 3), (500, 15)])
def test_what_is_kept_is_what_transfer_says(most, step):
    match = fake_match()
    sampled = sample(match, most)
    assert sampled.step == step
    assert sampled.across * sampled.down <= most
    assert (sampled.across, sampled.down) == (-(-360 // step), -(-300 // step))
    k = np.arange(len(sampled.places))
    points = step * np.stack([k % sampled.across, k // sampled.across], axis=1)
    places, sure = unpacked(sampled)
    moved = match.transfer(points)
    assert places == pytest.approx(moved.points, abs=0.01)
    assert sure == pytest.approx(moved.confidence, abs=0.5 / 255 + 1e-9)


def test_a_small_photograph_has_every_pixel():
    match = fake_match()
    small = replace(match, source=FakePhoto(match.source.pixels[:40, :50], "small"))
    sampled = sample(small)
    assert (sampled.step, sampled.across, sampled.down) == (1, 50, 40)


def test_everything_may_go_to_one_place():
    class Still:
        source = FakePhoto(np.zeros((4, 6, 3)), "still")
        source_grid = target_grid = Grid(1, 1, 8.0, 8.0)

        def transfer(self, points):
            return FakeTransfer(np.full((len(points), 2), 7.0), np.ones(len(points)))

    places, sure = unpacked(sample(Still()))  # type: ignore[arg-type]
    assert places == pytest.approx(np.full((24, 2), 7.0), abs=1e-5)
    assert (sure == 1.0).all()


GRID = Grid(18, 25, 8.0, 8.0)


def random_scores(n=30, power=1.0):
    return np.random.default_rng(0).random((n, GRID.count)) ** power


def test_all_are_kept_where_there_is_room():
    scores = random_scores()
    rows = heat_rows(scores, GRID)
    assert rows.cells.shape == (30, GRID.count)
    for cell in (0, 29):
        expected = scores[cell].reshape(18, 25) / scores[cell].max()
        assert drawn_row(rows, cell, GRID) == pytest.approx(expected, abs=0.5 / 255 + 1e-6)


def test_the_best_are_kept_and_the_others_averaged():
    scores = random_scores()
    rows = heat_rows(scores, GRID, most=30 * 50)
    assert rows.cells.shape == (30, 50)
    assert rows.block == 3
    scaled = scores[7] / scores[7].max()
    best = set(np.argsort(scaled)[-50:])
    assert set(rows.cells[7].tolist()) == best
    made = drawn_row(rows, 7, GRID).ravel()
    y, x = np.divmod(np.arange(GRID.count), GRID.w)
    block = (y // 3) * 9 + x // 3
    for cell in range(GRID.count):
        others = [k for k in np.flatnonzero(block == block[cell]) if k not in best]
        expected = scaled[cell] if cell in best else scaled[others].mean()
        assert made[cell] == pytest.approx(expected, abs=0.5 / 255 + 1e-6)


def test_nothing_and_negative_scores_are_cold():
    scores = np.stack([np.zeros(GRID.count), -np.ones(GRID.count), np.arange(GRID.count)])
    rows = heat_rows(scores, GRID)
    assert not drawn_row(rows, 0, GRID).any()
    assert not drawn_row(rows, 1, GRID).any()
    assert rows.shares[:2].tolist() == [0.0, 0.0]
    assert rows.shares[2] == pytest.approx(2.0 / GRID.count)


def test_scores_however_small_are_votes():
    scores = np.float32(1e-36) * random_scores().astype(np.float32)
    rows = heat_rows(scores, GRID)
    assert drawn_row(rows, 0, GRID).max() == 1.0


def test_where_nothing_votes_all_is_even():
    rows = heat_rows(np.zeros((30, GRID.count)), GRID)
    assert (
        drawn_heat(rows, np.array([8.0, 8.0]), Grid(5, 6, 8.0, 8.0), GRID).tolist()
        == [[1.0] * 25] * 18
    )


def test_the_largest_stays_small():
    grid = Grid(57, 75, 4.0, 11.0)
    n = 400  # of 4,275; as many bytes a row
    scores = np.random.default_rng(0).random((n, grid.count), dtype=np.float32) ** 8
    rows = heat_rows(scores, grid, most=400_000 * n // grid.count)
    size = rows.cells.nbytes + rows.scores.nbytes + rows.rest.nbytes
    assert rows.cells.dtype == np.uint16
    assert size / n * grid.count * 4 / 3 < 2.5e6


def test_more_cells_than_two_bytes_count():
    grid = Grid(2, 40_000, 1.0, 1.0)
    scores = np.zeros((1, grid.count))
    scores[0, 79_999] = 3.0
    assert drawn_row(heat_rows(scores, grid), 0, grid)[1, -1] == 1.0


def test_the_heat_of_a_point_is_that_of_the_match():
    match = fake_match()
    grid, ratio = match.target_grid, match.target_ratio
    rows = heat_rows(match.scores, grid)
    for point in np.random.default_rng(0).uniform([0, 0], [359, 299], (20, 2)):
        made = drawn_heat(rows, point * match.source_ratio, match.source_grid, grid)
        heat = match.heatmap(point)
        # At the pixels next to the centres of the cells; between them both are smooth.
        x, y = (grid.centres / ratio).round().astype(int).T
        inside = (x < 472) & (y < 360)
        seen = heat[y[inside], x[inside]]
        assert made.ravel()[inside] == pytest.approx(seen, abs=0.1)
        assert np.abs(made.ravel()[inside] - seen).mean() < 0.01


@pytest.fixture(scope="module")
def matched():
    """Matches of a cat with itself shifted, at ratio 1: centres of cells are pixels."""
    backbone = TorchBackbone(convolutions())
    mask = np.zeros((SIDE, SIDE))
    mask[16:60, 24:70] = 1.0

    def match(transfer, masked, **more):
        given = {"side": SIDE, "device": "cpu", "transfer": transfer, **more}
        masks = {"source_mask": mask} if masked else {}
        return Matcher(backbone, **given)(cat(), cat(x=67, y=45), **masks)

    return match


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("transfer", "more"),
    [
        *((transfer, {}) for transfer in TRANSFERS),
        ("median", {"method": "nn"}),
    ],
)
def test_the_page_shows_the_heat_map_of_a_real_match(matched, transfer, more, masked):
    match = matched(transfer, masked, **more)
    grid = match.target_grid
    assert match.source_ratio == match.target_ratio == 1.0
    rows = heat_rows(match.scores, grid)
    x, y = grid.centres.astype(int).T
    # In the mask, beside it, far off it, between the cells, in a corner.
    for point in ([40.0, 32.0], [77.0, 40.0], [120.0, 110.0], [51.5, 43.2], [0.0, 0.0]):
        heat = match.heatmap(point)[y, x].reshape(grid.h, grid.w)
        assert heat.max() == 1.0
        made = drawn_heat(rows, np.array(point), match.source_grid, grid)
        assert made == pytest.approx(heat, abs=1.5 / 255)


def test_which_cells_count():
    source = Grid(5, 5, 8.0, 19.0)
    scores = np.eye(25)
    for off, cells in (((), [7, 11, 12, 13, 17]), ((7, 12), [11, 13, 17])):
        scores[off, :] = 0.0
        rows = heat_rows(scores, source)
        assert cells_around(rows, np.array([16.0, 16.0]), source) == cells
        assert (
            np.flatnonzero(drawn_heat(rows, np.array([16.0, 16.0]), source, source)).tolist()
            == cells
        )
    # Beyond the last cells, and where none is within a stride: the nearest, all of them.
    assert cells_around(rows, np.array([50.0, 50.0]), source) == [24]
    scores[[6, 7, 8, 11, 12, 13, 16, 17, 18], :] = 0.0
    rows = heat_rows(scores, source)
    assert cells_around(rows, np.array([16.0, 16.0]), source) == [2, 10, 14, 22]

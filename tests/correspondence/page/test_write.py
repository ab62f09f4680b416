import json
import re
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest

from frot import InputError
from frot.correspondence._page import write_match_page
from tests.correspondence.fake_match import FakeMatch, FakePhoto, FakeTransfer, fake_match

POINTS = np.array([[100.25, 80.0], [220.5, 140.0]])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "match.html"
    assert write_match_page(fake_match(), path, POINTS, call="m(a, b)", command="frot <x>") == path
    return path.read_text(encoding="utf-8")


def test_it_asks_nothing_of_the_network(page):
    addresses = re.findall(r'(?:src|href)="([^"]*)', page)
    assert len(addresses) == 3
    assert all(address.startswith("data:") for address in addresses)
    assert "http" not in re.sub(r"base64,[^\"]*", "", page.split('id="data"')[0])
    assert "url(" not in page


def test_what_users_wrote_is_escaped(page):
    assert "<cat>" not in page
    assert "bent &lt;cat&gt;.png" in page
    assert "frot &lt;x&gt;" in page
    block = page.split('id="data">')[1].split("</script>")[0]
    assert json.loads(block)["b"]["width"] == 472


def test_the_answer_and_the_layers_are_there(page):
    match = fake_match()
    assert match.result is not None
    assert f"[{match.result.lower:.8g},&nbsp;{match.result.upper:.8g}]" in page
    assert 'class="badge">CONVERGED' in page
    weights = re.findall(r'data-value="([^"]+)"', page)
    assert [float(weight) for weight in weights] == list(match.alpha.values())
    for x, y in match.transfer(POINTS).points:
        assert f"<td>{x:.1f}, {y:.1f}</td>" in page
    assert "496 best of 713 cells" in page
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


def test_the_largest_page_is_below_five_megabytes(tmp_path):
    cat = fake_match()
    pixels = np.kron(cat.source.pixels, np.ones((10, 10, 1), dtype=np.float32))[:, :, :3]
    pixels += 0.3 * np.random.default_rng(0).random((*pixels.shape[:2], 1), dtype=np.float32)
    photo = FakePhoto(pixels, "large.jpg")
    match = Large(photo, photo, cat.warp, 4.0, 284)
    assert match.source_grid.count >= 4_275
    page = write_match_page(match, tmp_path / "large.html")
    assert page.stat().st_size < 5e6


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

"""The page of a match as Chromium sees it: points are clicked, keys are pressed."""

import numpy as np
import pytest

from frot.correspondence import Matcher, TorchBackbone
from frot.correspondence.page import heat_rows, sample, write_match_page
from tests.correspondence.fake_match import fake_match
from tests.correspondence.heat import drawn_heat
from tests.correspondence.small import SIDE, cat, convolutions

# One browser for all pages.
pytestmark = pytest.mark.xdist_group("browser")

LISTED = np.array([[100.25, 80.5], [220.5, 140.0], [30.0, 290.0]])
# How opaque the cells of the heat map are.
CELLS = """const c = document.getElementById("heat");
    return [c.width, c.height, Array.from(c.getContext("2d").getImageData(
    0, 0, c.width, c.height).data).filter((_, k) => k % 4 === 3)];"""
WINDOWS = [(1300, 900, 1), (700, 1400, 1), (360, 800, 2)]


@pytest.fixture(scope="module")
def match():
    return fake_match()


@pytest.fixture(scope="module")
def address(match, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "match.html"
    return write_match_page(match, path, LISTED).as_uri()


@pytest.fixture
def page(visit, address):
    return visit(address)


def resize(page, width, height, scale=1):
    size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def box(page, identity):
    script = """const e = document.getElementById(arguments[0]);
        e.scrollIntoView({block: "center"}); const b = e.getBoundingClientRect();
        return [b.left, b.top, b.width, b.height];"""
    return np.array(page.execute_script(script, identity))


def spot(page, photo, mark, size):
    """Where a marker's middle is, in pixels of the photograph, by what is on the screen."""
    script = """const at = id => document.getElementById(id).getBoundingClientRect();
        const p = at(arguments[0]), m = at(arguments[1]);
        return [(m.left + m.width / 2 - p.left) / p.width, (m.top + m.height / 2 - p.top) /
                p.height];"""
    h, w = size
    return np.array(page.execute_script(script, photo, mark)) * [w, h] - 0.5


def mouse(page, kind, x, y):
    event = {"type": kind, "x": float(x), "y": float(y), "button": "none", "clickCount": 0}
    if kind != "mouseMoved":
        event |= {"button": "left", "clickCount": 1}
    page.execute_cdp_cmd("Input.dispatchMouseEvent", event)


def aim(page, match, point, photo="photo-a"):
    """Where a point of A, or of B, is on the screen."""
    left, top, width, height = box(page, photo)
    h, w = match.source.size if photo == "photo-a" else match.target.size
    share = (np.asarray(point, dtype=float) + 0.5) / [w, h]
    return np.array([left, top]) + share * [width, height]


def click(page, match, point, photo="photo-a"):
    x, y = aim(page, match, point, photo)
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        mouse(page, kind, x, y)


def settle(page):
    page.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));"
    )


def found(page, match):
    return spot(page, "photo-b", "mark-b", match.target.size)


@pytest.mark.parametrize(("width", "height", "scale"), WINDOWS)
def test_a_click_in_a_lands_in_b_where_transfer_says(page, match, width, height, scale):
    resize(page, width, height, scale)
    points = np.random.default_rng(width).integers([0, 0], [180, 150], (12, 2)) * 2.0
    # The first and the last point of the grid.
    points = np.vstack([points, [[0.0, 0.0], [358.0, 298.0]]])
    # Where the photograph is shrunk, a pixel of the screen is more than one of the photograph, and
    # browsers say only in which pixel of the screen a click was.
    off = 0.1 if box(page, "photo-a")[2] >= 360 else 2.1
    for clicked in points:
        click(page, match, clicked)
        settle(page)
        shown = spot(page, "photo-a", "mark-a", match.source.size)
        assert shown == pytest.approx(clicked, abs=off)
        point = 2.0 * np.abs((shown / 2.0).round())
        assert shown == pytest.approx(point, abs=0.1)
        moved = match.transfer([point])
        there, sure = moved.points[0], moved.confidence[0]
        assert found(page, match) == pytest.approx(there, abs=1.0)
        mark = page.find_element("id", "mark-b")
        assert float(mark.get_attribute("data-x")) == pytest.approx(there[0], abs=0.01)
        assert float(mark.get_attribute("data-confidence")) == pytest.approx(sure, abs=0.003)
        said = [page.find_element("id", f"said-{which}").text for which in "abc"]
        assert said[0] == f"{point[0]:g}, {point[1]:g}"
        place = said[1].removesuffix(" (beyond the edge)")
        assert [float(word) for word in place.split(", ")] == pytest.approx(there, abs=0.06)
        assert float(said[2].removesuffix(" %")) == pytest.approx(100 * sure, abs=0.8)


def test_a_click_in_b_lands_in_a_where_the_inverse_says(page, match):
    back = match.inverse
    sampled = sample(back)
    for point in ((60.0, 60.0), (300.0, 210.0)):
        point = sampled.step * np.round(np.array(point) / sampled.step)
        click(page, match, point, "photo-b")
        settle(page)
        there = back.transfer([point]).points[0]
        shown = spot(page, "photo-a", "mark-a", match.source.size)
        assert shown == pytest.approx(there, abs=1.0)
        assert found(page, match) == pytest.approx(point, abs=1.1)
        assert not page.find_element("id", "heat").is_displayed()
        assert page.find_element("id", "heat-a").is_displayed()
        said = page.find_element("id", "aloud").get_attribute("textContent")
        assert said.startswith(f"Point {point[0]:g}, {point[1]:g} of B is at")
    # And in A again.
    click(page, match, (60.0, 60.0))
    settle(page)
    assert found(page, match) == pytest.approx(match.transfer([[60.0, 60.0]]).points[0], abs=1.0)
    assert not page.find_element("id", "heat-a").is_displayed()


def test_the_slider_uncovers_the_warped_photograph(page):
    from selenium.webdriver.common.keys import Keys

    shape = "return getComputedStyle(document.getElementById('warped')).clipPath"
    assert page.execute_script(shape) == "inset(0px 50% 0px 0px)"
    slider = page.find_element("id", "slide")
    slider.send_keys(Keys.END)
    assert page.execute_script(shape) == "inset(0px 0% 0px 0px)"
    slider.send_keys(Keys.HOME)
    assert page.execute_script(shape) == "inset(0px 100% 0px 0px)"
    over, under = (box(page, "warped"), page.execute_script(
        "const b = document.querySelector('.over img').getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height];"
    ))  # fmt: skip
    assert over == pytest.approx(np.array(under), abs=0.5)


def test_all_layers_are_in_sight(page):
    script = """const b = document.getElementById("layers").parentElement;
        return [b.scrollHeight, b.clientHeight];"""
    inside, shown = page.execute_script(script)
    assert inside <= shown + 1


def test_between_the_points_of_the_grid_the_nearest_is_taken(page, match):
    for point, expected in (((101.4, 80.7), (102, 80)), ((359.4, 299.4), (358, 298))):
        click(page, match, point)
        settle(page)
        assert spot(page, "photo-a", "mark-a", match.source.size) == pytest.approx(
            expected, abs=0.1
        )
        there = match.transfer([expected]).points[0]
        assert found(page, match) == pytest.approx(there, abs=0.2)


def test_the_heat_map_is_hottest_where_the_scores_are(page, match):
    grid = match.target_grid
    rows = heat_rows(match.scores, grid)
    for point in ((60.0, 60.0), (200.0, 200.0), (358.0, 0.0)):
        click(page, match, point)
        settle(page)
        w, h, opaque = page.execute_script(CELLS)
        assert (h, w) == (grid.h, grid.w)
        drawn = (np.array(opaque).reshape(h, w) / 255 / 0.8) ** 2
        expected = drawn_heat(rows, np.multiply(point, match.source_ratio), match.source_grid, grid)
        assert drawn == pytest.approx(expected, abs=0.02)
        # On the screen the hottest cell is at its centre in the photograph.
        left, top, width, height = box(page, "heat")
        there = box(page, "photo-b")
        hottest = np.array(np.unravel_index(drawn.argmax(), drawn.shape))[::-1]
        screen = np.array([left, top]) + (hottest + 0.5) * [width / w, height / h]
        pixel = (screen - there[:2]) / there[2:] * [472, 360] - 0.5
        heat = match.heatmap(point)
        assert heat[tuple(pixel.round().astype(int)[::-1])] > 0.95
        best = np.unravel_index(heat.argmax(), heat.shape)[::-1]
        assert pixel == pytest.approx(best, abs=1.0)


def test_a_real_match_with_a_mask_shows_its_own_heat_map(browser, tmp_path):
    """Whatever moves its points, and off the mask too, where cells have no votes."""
    mask = np.zeros((SIDE, SIDE))
    mask[16:60, 24:70] = 1.0
    matcher = Matcher(TorchBackbone(convolutions()), side=SIDE, device="cpu", transfer="boxes")
    match = matcher(cat(), cat(x=67, y=45), source_mask=mask)
    grid = match.target_grid
    x, y = grid.centres.astype(int).T
    browser.get(match.write_page(tmp_path / "real.html").as_uri())
    for point in ((40.0, 32.0), (77.0, 40.0), (120.0, 110.0)):
        click(browser, match, point)
        settle(browser)
        w, h, opaque = browser.execute_script(CELLS)
        drawn = (np.array(opaque).reshape(h, w) / 255 / 0.8) ** 2
        assert drawn.ravel() == pytest.approx(match.heatmap(point)[y, x], abs=0.02)


def test_hovering_shows_and_leaving_goes_back(page, match):
    click(page, match, (80.0, 100.0))
    settle(page)
    mouse(page, "mouseMoved", *aim(page, match, (240.0, 180.0)))
    settle(page)
    there = match.transfer([[240.0, 180.0]]).points[0]
    assert found(page, match) == pytest.approx(there, abs=0.2)
    mouse(page, "mouseMoved", 2, 2)
    settle(page)
    back = match.transfer([[80.0, 100.0]]).points[0]
    assert found(page, match) == pytest.approx(back, abs=0.2)
    page.find_element("id", "follow").click()
    mouse(page, "mouseMoved", *aim(page, match, (240.0, 180.0)))
    settle(page)
    assert found(page, match) == pytest.approx(back, abs=0.2)


def test_the_keyboard_moves_the_point(page, match):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    ActionChains(page).send_keys(Keys.TAB).perform()
    photo = page.find_element("id", "photo-a")
    assert page.switch_to.active_element == photo
    assert (
        page.execute_script("return getComputedStyle(arguments[0]).outlineStyle", photo) != "none"
    )
    click(page, match, (100.0, 100.0))
    mouse(page, "mouseMoved", 2, 2)
    before = page.execute_script("return scrollY")
    steps = [
        ([Keys.ARROW_RIGHT, Keys.ARROW_DOWN], (102, 102)),
        ([Keys.ARROW_LEFT] * 3 + [Keys.ARROW_UP], (96, 100)),
        ([Keys.HOME, Keys.ARROW_LEFT], (0, 100)),
        ([Keys.END, Keys.PAGE_DOWN], (358, 298)),
        ([Keys.PAGE_UP], (358, 0)),
    ]
    for keys, point in steps:
        ActionChains(page).send_keys(*keys).perform()
        settle(page)
        assert spot(page, "photo-a", "mark-a", match.source.size) == pytest.approx(point, abs=0.1)
        there = match.transfer([point]).points[0]
        assert found(page, match) == pytest.approx(there, abs=0.2)
    ActionChains(page).key_down(Keys.SHIFT).send_keys(Keys.ARROW_DOWN).key_up(Keys.SHIFT).perform()
    assert spot(page, "photo-a", "mark-a", match.source.size) == pytest.approx((358, 20), abs=0.1)
    # The keys moved the point, and not the page.
    assert page.execute_script("return scrollY") == before
    there = match.transfer([[358.0, 20.0]]).points[0]
    said = page.find_element("id", "aloud").get_attribute("textContent")
    assert said.startswith(f"Point 358, 20 of A is at {there[0]:.0f}"[:-1])


def test_listed_points_are_shown_exactly(page, match):
    from selenium.webdriver.common.keys import Keys

    moved = match.transfer(LISTED)
    buttons = page.find_elements("css selector", "#points button")
    for number, button in enumerate(buttons):
        button.send_keys(Keys.ENTER)
        mark = page.find_element("id", "mark-b")
        there = [float(mark.get_attribute(f"data-{axis}")) for axis in "xy"]
        assert there == pytest.approx(moved.points[number], abs=1e-9)
        (line,) = page.find_elements("css selector", "#points tr.on")
        assert line.text.split()[0] == str(number + 1)
    click(page, match, (10.0, 10.0))
    assert not page.find_elements("css selector", "#points tr.on")


def test_it_begins_with_the_surest(page, match):
    surest = match.transfer(LISTED).confidence.argmax()
    (line,) = page.find_elements("css selector", "#points tr.on")
    assert line.text.split()[0] == str(surest + 1)


def test_the_heat_map_can_be_put_out(page):
    heat = page.find_element("id", "heat")
    assert heat.is_displayed()
    page.find_element("id", "warm").click()
    assert not heat.is_displayed()


def test_bars_are_as_long_as_the_weights(page, match):
    script = """return Array.from(document.querySelectorAll("#layers .bar div"),
        bar => bar.getBoundingClientRect().width);"""
    widths = np.array(page.execute_script(script))
    weights = np.array(list(match.alpha.values()))
    assert widths / widths.max() == pytest.approx(weights / weights.max(), abs=0.01)


@pytest.mark.parametrize("width", [360, 1200])
def test_photographs_fit_the_window(page, width):
    resize(page, width, 900)
    photos = [box(page, f"photo-{which}") for which in "ab"]
    assert all(photo[3] <= 0.7 * 900 for photo in photos)
    for photo, (h, w) in zip(photos, ((300, 360), (360, 472)), strict=True):
        assert photo[2] / photo[3] == pytest.approx(w / h, rel=0.01)

"""What all pages share: they fetch nothing, fit, and can be read in light, dark and on paper."""

import json

import numpy as np
import pytest

import frot
from _report import Entry
from _report import write_page as write_experiments
from fig1 import EXPERIMENT
from frot.datasets import toy
from frot.show.page import Cell, Claim, Column, PageTable, Section, number, picture, write_page

# One browser for all pages.
pytestmark = pytest.mark.xdist_group("browser")

KINDS = ["result", "selection", "match", "sections", "experiments"]


def write(kind, folder):
    path = folder / f"{kind}.html"
    X, Y, groups = toy(15)
    if kind == "result":
        return frot.write_report(frot.solve(X, Y, groups), path, "Toy data")
    if kind == "match":
        from frot.correspondence import write_match_page
        from tests.correspondence.fake_match import fake_match

        return write_match_page(fake_match(), path)
    if kind == "experiments":
        write_experiments([Entry(EXPERIMENT, EXPERIMENT(n=10))], path, "python experiments fig1")
        return path
    rows = [[Cell("FROT", note="worst mix"), number(2.0, ".1f"), Cell("fails", badge="failed")]]
    columns = [Column("method", "text"), Column("value"), Column("claim", "text")]
    result = frot.solve(X, Y, groups)
    section = Section(
        "One",
        ["Some words. " * 30],
        [("Points", "15")],
        [
            Claim("it holds", True, "1 < 2"),
            Claim("it fails", False, checks=[Claim("a part of it", True)]),
            Claim("who knows", None),
        ],
        [picture(lambda: result.plot("plan"), "The plan")],
        [PageTable(columns, rows, "Values", "values", search="methods", note="All of them.")],
        ["Small print."],
        "one",
    )
    return write_page(path, "Experiments", [section], command="frot")


@pytest.fixture(scope="module")
def addresses(tmp_path_factory, genes_page):
    made = {"selection": genes_page[1].as_uri()}

    def address(kind):
        if kind not in made:
            made[kind] = write(kind, tmp_path_factory.mktemp("pages")).as_uri()
        return made[kind]

    return address


@pytest.mark.parametrize("kind", KINDS)
def test_it_loads_everything_from_itself(visit, addresses, kind):
    page = visit(addresses(kind))
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    requests = [m for m in messages if m["method"] == "Network.requestWillBeSent"]
    urls = {request["params"]["request"]["url"] for request in requests}
    assert {url for url in urls if not url.startswith("data:")} == {addresses(kind)}
    script = "return Array.from(document.images, i => [i.complete, i.naturalWidth, i.alt.length]);"
    pictures = page.execute_script(script)
    assert len(pictures) == {"selection": 9, "match": 4, "sections": 1, "experiments": 1}.get(
        kind, 3
    )
    assert all(complete and width >= 360 and words for complete, width, words in pictures)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(visit, addresses, kind, scheme):
    page = visit(addresses(kind))
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    for width in (360, 1200):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
    ink, card = luminance(page, "td", "color"), luminance(page, "section", "backgroundColor")
    soft, ground = luminance(page, ".soft", "color"), luminance(page, "body", "backgroundColor")
    assert (ink > card) == (scheme == "dark")
    assert contrast(ink, card) >= 7.0
    assert min(contrast(soft, card), contrast(soft, ground)) >= 4.5
    for badge in page.find_elements("class name", "badge"):
        assert contrast(1.0, colour(badge.value_of_css_property("background-color"))) >= 4.5
    for plot in page.find_elements("css selector", "img.plot"):
        assert ("invert" in plot.value_of_css_property("filter")) == (scheme == "dark")


@pytest.mark.parametrize("kind", KINDS)
def test_on_paper_all_of_it_is_there_in_black_on_white(visit, addresses, kind):
    page = visit(addresses(kind))
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    media = {"media": "print", "features": features}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    assert luminance(page, "body", "backgroundColor") == 1.0
    assert contrast(luminance(page, "td", "color"), 1.0) >= 7.0
    for badge in page.find_elements("class name", "badge"):
        assert contrast(colour(badge.value_of_css_property("color")), 1.0) >= 7.0
    boxes = page.find_elements("css selector", ".scroll")
    assert all(box.value_of_css_property("max-height") == "none" for box in boxes)
    panels = page.find_elements("css selector", "[role=tabpanel]")
    assert all(panel.is_displayed() for panel in panels)
    assert all(
        plot.value_of_css_property("filter") == "none"
        for plot in page.find_elements("css selector", "img.plot")
    )


def luminance(page, which, name):
    script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]];"
    return colour(page.execute_script(script, which, name))


def colour(text: str) -> float:
    """Return the relative luminance of "rgb(r, g, b)", as the WCAG define it."""
    values = np.array(text[text.index("(") + 1 : -1].split(",")[:3], dtype=float) / 255.0
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)

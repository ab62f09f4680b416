"""The report of a comparison as Chromium sees it."""

import numpy as np
import pytest

# One browser for all pages.
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def found(methods_page):
    return methods_page[0]


@pytest.fixture
def page(visit, methods_page):
    return visit(methods_page[1].as_uri())


def column(page, number):
    script = """return Array.from(document.getElementById("methods").tBodies[0].rows)
        .map(row => row.cells[arguments[0]].dataset.value ?? row.cells[arguments[0]].innerText);"""
    return page.execute_script(script, number)


def click_head(page, text):
    script = """const heads = document.querySelectorAll("#methods th");
        const head = Array.from(heads).find(head => head.innerText.trim().startsWith(arguments[0]));
        head.querySelector("button").click(); return head.getAttribute("aria-sort");"""
    return page.execute_script(script, text)


def test_clicking_a_heading_sorts_and_failed_ones_go_to_an_end(page, found):
    assert [name.split("\n")[0] for name in column(page, 0)] == [row.title for row in found.rows]
    known = sorted(row.result.value for row in found.answered)
    for way, expected in (("descending", known[::-1]), ("ascending", known)):
        assert click_head(page, "Value") == way
        *values, last = column(page, 1)
        assert np.array(values, dtype=float) == pytest.approx(expected)
        # What has no value is last whichever way round.
        assert last == ""
        assert column(page, 0)[-1].startswith("SRW")
    assert click_head(page, "Method") == "ascending"
    assert column(page, 0)[0].startswith("equitable")


def test_a_failed_method_says_why(page):
    row = page.find_element("xpath", "//tr[.//span[contains(@class, 'failed')]]")
    assert "k: must be a whole number from 1 to 6" in row.text
    assert "FAILED" in row.text


def test_the_table_needs_no_scrolling(page):
    size = {"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    script = """const box = document.querySelector(".scroll");
        return box.scrollWidth <= box.clientWidth;"""
    assert page.execute_script(script)

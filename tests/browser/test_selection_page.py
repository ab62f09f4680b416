"""The report of a selection as Chromium sees it."""

import numpy as np
import pytest

from tests.browser.conftest import GENES

# One browser for all pages.
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def page(visit, genes_page):
    return visit(genes_page[1].as_uri())


def column(page, number, table="ranking"):
    script = """return Array.from(document.getElementById(arguments[0]).tBodies[0].rows)
        .filter(row => !row.hidden).map(row => row.cells[arguments[1]].dataset.value
        ?? row.cells[arguments[1]].textContent);"""
    return page.execute_script(script, table, number)


def click_head(page, text):
    script = """const heads = document.querySelectorAll("#ranking th");
        const head = Array.from(heads).find(head => head.innerText.trim().startsWith(arguments[0]));
        head.querySelector("button").click(); return head.getAttribute("aria-sort");"""
    return page.execute_script(script, text)


def place_of(page, text):
    script = """return Array.from(document.querySelectorAll("#ranking th"))
        .findIndex(head => head.innerText.trim().split(/\\s/)[0] === arguments[0]);"""
    return page.execute_script(script, text)


def test_clicking_a_heading_sorts(page, genes_page):
    selector = genes_page[0]
    assert [int(float(value)) for value in column(page, 0)] == list(range(1, GENES + 1))
    size, q = place_of(page, "t"), place_of(page, "q")
    assert click_head(page, "t") == "descending"
    values = np.array(column(page, size), dtype=float)
    assert values == pytest.approx(np.sort(selector.table_["t"])[::-1])
    assert click_head(page, "t") == "ascending"
    assert np.array(column(page, size), dtype=float) == pytest.approx(np.sort(selector.table_["t"]))
    assert click_head(page, "q") == "ascending"
    assert np.array(column(page, q), dtype=float) == pytest.approx(np.sort(selector.p_values[1]))
    assert click_head(page, "feature") == "ascending"
    # GENE2 comes before GENE10.
    assert column(page, 1) == [f"GENE{i}" for i in range(GENES)]
    assert len(page.find_elements("css selector", "#ranking [aria-sort]")) == 1


def test_the_keyboard_sorts_too(page):
    from selenium.webdriver.common.keys import Keys

    button = page.find_element("css selector", "#ranking th:nth-child(2) button")
    button.send_keys(Keys.ENTER)
    assert column(page, 1)[0] == "GENE0"


def test_the_box_searches(page):
    box = page.find_element("css selector", "input[type=search]")
    box.send_keys("gene1")
    found = column(page, 1)
    assert set(found) == {"GENE1", *(f"GENE{i}" for i in range(10, 20))}
    assert page.find_element("id", "ranking-found").text == f"11 of {GENES} rows match"
    box.send_keys("9 gene5")
    assert set(column(page, 1)) == {"GENE19", "GENE5", *(f"GENE{i}" for i in range(50, 60))}
    click_head(page, "q")
    assert len(column(page, 1)) == 12
    box.clear()
    box.send_keys("none of these")
    assert column(page, 1) == []
    box.clear()
    box.send_keys(" ")
    assert len(column(page, 1)) == GENES
    assert page.find_element("id", "ranking-found").text == ""


def test_one_comparison_at_a_time(page):
    tabs = page.find_elements("css selector", "[role=tab]")
    panels = page.find_elements("css selector", "[role=tabpanel]")
    assert [panel.is_displayed() for panel in panels] == [True, False, False]
    page.execute_script("arguments[0].click()", tabs[2])
    assert [panel.is_displayed() for panel in panels] == [False, False, True]
    assert tabs[2].get_attribute("aria-selected") == "true"
    from selenium.webdriver.common.keys import Keys

    tabs[2].send_keys(Keys.ARROW_LEFT)
    assert [panel.is_displayed() for panel in panels] == [False, True, False]


def test_the_table_fits_a_screen_without_a_box_to_scroll(page):
    size = {"width": 1300, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    script = """const box = document.getElementById("ranking").parentElement;
        return [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight];"""
    assert page.execute_script(script) == [0, 0]

"""A real browser without a window, where there is one."""

from __future__ import annotations

import shutil

import pandas
import pytest

from tests.selection.planted import planted

GENES = 60


@pytest.fixture(scope="session")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromium-driver (apt-get install chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    # The sandbox and /dev/shm are often not to be had in containers.
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.add_argument("--window-size=1200,1000")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    browser.set_page_load_timeout(60)
    yield browser
    browser.quit()


@pytest.fixture(scope="session")
def genes_page(tmp_path_factory):
    """A selector of three classes, tested, and its page."""
    from frot.selection import FROTSelector, write_selection_report

    X, y = planted(d=GENES, classes=3)
    frame = pandas.DataFrame(X, columns=pandas.Index([f"GENE{i}" for i in range(GENES)]))
    selector = FROTSelector(5).fit(frame, y)
    selector.permutation_test(frame, y, n_permutations=49)
    path = tmp_path_factory.mktemp("page") / "genes.html"
    return selector, write_selection_report(selector, frame, y, path, command="frot select")


@pytest.fixture
def visit(browser):
    """Open a page; at the end nothing may have been written to the console."""

    def go(address: str):
        browser.get_log("browser")  # of pages before
        browser.get_log("performance")
        browser.get(address)
        return browser

    yield go
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    assert [entry["message"] for entry in browser.get_log("browser")] == []

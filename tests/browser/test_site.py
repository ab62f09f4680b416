"""The site: built without warnings, no dead link, no missing picture, found, narrow and dark.

Examples of the gallery are shown and not run: `make docs` runs them, and
``FROT_SITE=docs/_build/html pytest tests/browser/test_site.py`` looks at what it made.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
# With -n, the site is built once.
pytestmark = [pytest.mark.xdist_group("site"), pytest.mark.timeout(900)]
LOOKED_AT = [
    "index", "start", "tutorials/biology", "reading-alpha", "proofs", "cli", "benchmarks",
    "api/generated/frot.solve", "auto_examples/index",
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site from a copy, so that what `make docs` has cached stays as it is.

    FROT_SITE names one that has been built, with its gallery.
    """
    if made := os.environ.get("FROT_SITE"):
        return Path(made).resolve()
    for module in ("sphinx", "pydata_sphinx_theme", "sphinx_gallery", "myst_parser"):
        pytest.importorskip(module, reason='needs pip install "frot[docs]"')
    folder = tmp_path_factory.mktemp("site")
    made = shutil.ignore_patterns("_build", "auto_examples", "generated", "__pycache__")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=made)
    shutil.copy(ROOT / "CHANGELOG.md", folder)
    # In one process: two would each read every module, while other tests wait for a core.
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    environment = {**os.environ, "FROT_DOCS_GALLERY": "0", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [*command, "docs", "html"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return folder / "html"


class Page(HTMLParser):
    """Names of places on a page, what it links to and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Take note of a tag."""
        given = dict(attrs)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag in ("img", "script", "source") and given.get("src"):
            self.loads.append(given["src"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(given["href"])


def test_no_dead_link_and_nothing_from_elsewhere(site):
    # The theme has a template among its files.
    made = (path for path in site.rglob("*.html") if "_static" not in path.parts)
    pages = {path: Page(path) for path in made}
    assert len(pages) > 150
    dead = []
    for path, page in pages.items():
        here = path.as_uri()
        for target in page.loads:
            if urlsplit(target).scheme in ("http", "https") or target.startswith("//"):
                dead.append(f"{path.name} loads {target}")
        for target in [*page.links, *page.loads]:
            address, fragment = urldefrag(urljoin(here, target))
            if not address.startswith("file:"):
                continue
            file = Path(unquote(urlsplit(address).path))
            file = file / "index.html" if file.is_dir() else file
            if not file.is_file():
                dead.append(f"{path.relative_to(site)} -> {target}")
            elif fragment and file in pages and unquote(fragment) not in pages[file].ids:
                dead.append(f"{path.relative_to(site)} -> {target}, no such place")
    assert dead == []


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that writes no log."""

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def address(site):
    """Serve the site: search reads pages, which browsers do not allow from files."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


LUMINANCE = """
const light = color => { const [r, g, b] = color.match(/[\\d.]+/g).map(Number);
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255; };
const text = document.querySelector('article p') || document.body;
let back = text;
while (back && /rgba\\(0, 0, 0, 0\\)|transparent/.test(getComputedStyle(back).backgroundColor))
  back = back.parentElement;
return [light(getComputedStyle(text).color),
        light(getComputedStyle(back || document.body).backgroundColor)];
"""
PICTURES = "return [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
TOO_WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def look(browser, address):
    """Open a page, light or dark; at the end the console may have no error."""

    def go(page: str, theme: str = "light"):
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get(f"{address}{page}")
        return browser

    browser.get_log("browser")  # of pages before
    yield go
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    # The theme writes which colours it has taken, as information.
    told = browser.get_log("browser")
    assert [entry["message"] for entry in told if entry["level"] == "SEVERE"] == []


@pytest.mark.parametrize("page", LOOKED_AT)
def test_page_reads_well_in_light_dark_and_narrow(look, page):
    for theme in ("light", "dark"):
        browser = look(f"{page}.html", theme)
        assert browser.execute_script(PICTURES) == []
        text, back = browser.execute_script(LUMINANCE)
        assert (back < 0.2) == (theme == "dark")
        assert abs(text - back) > 0.5
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert browser.execute_script(TOO_WIDE) <= 0


def test_search_finds_a_word(look):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser = look("search.html?q=permutation_test")
    WebDriverWait(browser, 20).until(
        lambda b: [
            link
            for link in b.find_elements(By.CSS_SELECTOR, "#search-results a")
            if "frot.selection.permutation_test" in (link.get_attribute("href") or "")
        ]
    )

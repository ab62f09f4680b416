"""The app as somebody with a browser meets it: uploads, clicks, and what can then be read."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frot
from tests.app.test_genes import write_samples

pytest.importorskip("gradio", reason="gradio is not installed (frot[app])")

# Under any load that the tests themselves are run under.
PATIENCE = 240.0
pytestmark = [pytest.mark.xdist_group("app"), pytest.mark.timeout(900)]


class App:
    """A server in a process of its own, and the folder that its files are in."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder
        self.address = f"http://127.0.0.1:{self.port}/"
        command = [sys.executable, "-m", "frot", "app", "--port", str(self.port)]
        command += ["--max-upload", "1"]
        self.log = (folder.parent / "app.log").open("wb")
        self.process = subprocess.Popen(
            command, env={**os.environ, "TMPDIR": str(folder)}, stdout=self.log, stderr=self.log
        )
        wait_for(self.answers)

    def answers(self) -> bool:
        assert self.process.poll() is None, Path(self.log.name).read_text(encoding="utf-8")
        try:
            with urllib.request.urlopen(self.address, timeout=5) as reply:
                return reply.status == 200
        except OSError:
            return False

    def end(self) -> None:
        """Interrupt it, as Ctrl-C does, unless it has ended."""
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.log.close()


def wait_for(holds: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.2)
    raise TimeoutError(f"{holds} did not come true")


@pytest.fixture(scope="module")
def app(browser, tmp_path_factory) -> Iterator[App]:
    made = App(tmp_path_factory.mktemp("served"))
    yield made
    made.end()


class Page:
    """What a visitor does and sees."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    def text(self, name: str) -> str:
        """All that can be read in a part, fields included."""
        script = """const part = document.getElementById(arguments[0]);
            if (!part) return "";
            const fields = Array.from(part.querySelectorAll("textarea, input"));
            return [part.innerText, ...fields.map(field => field.value)].join("\\n");"""
        return self.browser.execute_script(script, name)

    def read(self, name: str, holds: Callable[[str], Any]) -> str:
        """Wait until a part says what is expected, and return it."""
        try:
            wait_for(lambda: holds(self.text(name)))
        except TimeoutError:
            body = self.browser.find_element("tag name", "body").text
            raise AssertionError(f"{name} says {self.text(name)!r}; the page: {body}") from None
        return self.text(name)

    def upload(self, name: str, path: Path) -> None:
        part = self.find(f"#{name} input[type=file]")
        part.send_keys(str(path))

    def find(self, selector: str) -> Any:
        from selenium.common.exceptions import NoSuchElementException

        def look() -> Any:
            try:
                return self.browser.find_element("css selector", selector)
            except NoSuchElementException:
                return None

        return wait_for(look)

    def click(self, selector: str) -> None:
        self.browser.execute_script("arguments[0].click()", self.find(selector))

    def tab(self, name: str) -> None:
        tabs = wait_for(lambda: self.browser.find_elements("css selector", "button[role=tab]"))
        (found,) = [one for one in tabs if one.text.strip() == name]
        self.browser.execute_script("arguments[0].click()", found)


@pytest.fixture
def page(browser, app) -> Page:
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(app.address)
    found = Page(browser)
    found.read("transport-facts", lambda text: "interval" in text)
    return found


@pytest.fixture
def tables(tmp_path) -> tuple[Path, Path]:
    X, Y, _ = frot.toy(12)
    header = ",".join(["true_1", "true_2", *(f"noise_{i}" for i in range(8))])
    for name, points in (("a.csv", X), ("b.csv", Y)):
        np.savetxt(tmp_path / name, points, delimiter=",", header=header, comments="")
    return tmp_path / "a.csv", tmp_path / "b.csv"


def test_transport_is_live_and_nothing_leaves_the_machine(page, app):
    result = frot.solve(*frot.toy(60))
    assert f"{result.value:.8g}" in page.text("transport-facts")
    assert "frot.toy(60, random_state=0)" in page.text("transport-python")
    assert page.find("#transport-plan img").get_attribute("naturalWidth") != "0"
    # A slider moves, and so does the answer.
    field = page.find("#eta input[type=number]")
    script = """arguments[0].value = "0.1";
        arguments[0].dispatchEvent(new Event("input", {bubbles: true}));
        arguments[0].dispatchEvent(new Event("blur", {bubbles: true}));"""
    page.browser.execute_script(script, field)
    page.read("transport-python", lambda text: "eta=frot.relative(0.1)" in text)
    asked = set()
    for entry in page.browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.add(message["params"]["request"]["url"])
    outside = [url for url in asked if url.startswith("http") and not url.startswith(app.address)]
    assert outside == []
    assert len(asked) > 5


def test_two_visitors_get_their_own_answers(page, app, tables):
    X, Y, _ = frot.toy(12)
    windows = [page.browser.current_window_handle]
    page.browser.switch_to.new_window("tab")
    windows.append(page.browser.current_window_handle)
    page.browser.get(app.address)
    page.read("transport-facts", lambda text: "interval" in text)
    asked = ["2,8", "each"]
    for window, groups in zip(windows, asked, strict=True):
        page.browser.switch_to.window(window)
        page.click("input[value='My tables']")
        page.upload("table-a", tables[0])
        page.upload("table-b", tables[1])
        field = page.find("#groups textarea, #groups input")
        field.clear()
        field.send_keys(groups + "\n")
    for window, groups in zip(windows, asked, strict=True):
        page.browser.switch_to.window(window)
        expected = frot.solve(X, Y, frot.Groups.parse(groups, 10))
        page.read("transport-facts", lambda text, v=expected.value: f"{v:.6g}" in text)
        assert f"frot.Groups.parse({groups!r}" in page.text("transport-python")
    page.browser.close()
    page.browser.switch_to.window(windows[0])


def test_a_bad_file_is_a_sentence(page, tmp_path, tables):
    bad = tmp_path / "bad.csv"
    bad.write_bytes(b"\x00\x01nothing")
    page.click("input[value='My tables']")
    page.upload("table-a", bad)
    page.upload("table-b", tables[1])
    said = page.read("transport-problem", lambda text: "bad.csv" in text)
    assert "Traceback" not in said
    assert "/" not in said


def test_genes_from_a_table_to_a_report_and_a_job_that_is_stopped(page, tmp_path):
    path = tmp_path / "genes.csv"
    write_samples(path)
    page.tab("Genes")
    page.upload("genes-data", path)
    page.read("genes-label", lambda text: "patient" in text)
    field = page.find("#genes-label input")
    field.clear()
    field.send_keys("arm\n")
    page.click("#genes-start")
    page.read("genes-state", lambda text: "Running" in text)
    page.click("#genes-stop")
    page.read("genes-state", lambda text: "Stopped" in text)
    page.click("#genes-start")
    page.read("genes-state", lambda text: "Done in" in text)
    table = page.read("genes-table", lambda text: "g0" in text)
    assert "treated" in table
    assert "read_samples('genes.csv', label='arm')" in page.text("genes-python")
    assert page.find("#genes-volcano img")
    link = page.find("#genes-files a[href*='report.html']").get_attribute("href")
    with urllib.request.urlopen(link) as reply:
        assert b"<html" in reply.read()


def test_photographs_matched_clicked_and_a_mask_moved(page):
    page.tab("Photographs")
    page.click("#photo-match")
    page.read("photo-problem", lambda text: "give two photographs, A and B" in text)
    page.click("#photo-example")
    page.read("photo-state", lambda text: "Press Match" in text)
    page.click("#photo-match")
    page.read("photo-state", lambda text: "Matched in" in text)
    assert "block_" in page.text("photo-layers")
    from selenium.webdriver import ActionChains

    photo = page.find("#photo-left img")
    page.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", photo)
    ActionChains(page.browser).move_to_element(photo).click().perform()
    said = page.read("photo-state", lambda text: "with confidence" in text)
    assert "in A is (" in said
    assert "match.transfer([[" in page.text("photo-python")
    page.click("#photo-move")
    wait_for(lambda: page.browser.find_elements("css selector", "#photo-moved img"))
    assert page.find("#photo-files a[href*='match.npz']")


def test_files_that_are_too_large_are_refused(app):
    def upload(size: int) -> int:
        edge = "frot-frot-frot"
        head = f'--{edge}\r\nContent-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\n'
        body = head.encode() + b"1\n" * (size // 2) + f"\r\n--{edge}--\r\n".encode()
        request = urllib.request.Request(
            f"{app.address}gradio_api/upload",
            body,
            {"Content-Type": f"multipart/form-data; boundary={edge}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            return error.code

    assert upload(1_000) == 200
    assert upload(2_000_000) == 413


def test_the_server_knows_its_name_and_leaves_nothing(app):
    """The last test of all, since it ends the server."""
    request = urllib.request.Request(app.address, headers={"Host": "elsewhere.example"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, timeout=30)
    with socket.socket() as other:
        # Nobody listens on the address that others see.
        other.settimeout(5)
        name = socket.gethostbyname(socket.gethostname())
        assert name.startswith("127.") or other.connect_ex((name, app.port)) != 0
    assert any(app.folder.iterdir())
    app.end()
    # What torch keeps of its own is no visitor's.
    left = [one for one in app.folder.iterdir() if not one.name.startswith("torchinductor")]
    assert left == []

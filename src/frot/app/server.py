"""The page with its three tabs, in Gradio, and the server that shows it.

What the tabs do is in `transport`, `genes` and `photographs`. Handlers get everything from their
arguments, and what belongs to a visitor is in a `gr.State`, of which every visitor has their own:
the module itself keeps nothing. The server listens on one address, this machine's own unless told
otherwise, and makes no request to others.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from html import escape
from typing import Any

from frot._base.errors import InputError, MissingDependencyError, SolverError, require
from frot._base.validate import check_count
from frot.app import genes, photographs, transport

LOCAL = ("127.0.0.1", "localhost", "::1")
# Read when Gradio and its libraries are imported, or when a page is made.
QUIET = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
# The browser is held to it too: whatever a page names elsewhere is not fetched.
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "connect-src 'self' data: blob:; form-action 'self'; base-uri 'self'; frame-ancestors 'self'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
FONTS = ["system-ui", "-apple-system", "Segoe UI", "sans-serif"]


def serve(
    host: str = "127.0.0.1", port: int = 7860, *, max_upload: int = 200, open_browser: bool = False
) -> None:
    """Serve the app until it is interrupted; uploads are removed at the end.

    Parameters
    ----------
    host : str
        The address to listen on. Any other than this machine's own lets others in, without a
        password.
    port : int
    max_upload : int
        The largest file that is taken, in MB.
    open_browser : bool
        Open the page in a browser.
    """
    with make_server(host, port, max_upload=max_upload) as server:
        if open_browser:
            import threading
            import webbrowser

            address = f"http://{'localhost' if host in LOCAL else host}:{port}"
            timer = threading.Timer(1.0, webbrowser.open, [address])
            timer.daemon = True
            timer.start()
        server.run()


@contextmanager
def make_server(host: str, port: int, *, max_upload: int = 200) -> Iterator[Any]:
    """Yield a server that is ready to run; at the end its folder and what is in it are gone."""
    check_count(max_upload, "max_upload")
    if not 0 <= check_count(port, "port", least=0) <= 65_535:
        raise InputError(f"port: {port} is none; give 1 to 65535")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="frot-app-"))
        stack.enter_context(_environment({**QUIET, "GRADIO_TEMP_DIR": folder}))
        yield _server(host, port, folder, max_upload)


def _server(host: str, port: int, folder: str, max_upload: int) -> Any:
    gr: Any = require("gradio", "app")
    uvicorn: Any = require("uvicorn", "app")
    fastapi: Any = require("fastapi", "app")

    app = gr.mount_gradio_app(
        fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None),
        build(folder),
        path="/",
        server_name=host,
        server_port=port,
        max_file_size=max_upload * 2**20,
        footer_links=[],
        ssr_mode=False,
        enable_monitoring=False,
        theme=gr.themes.Default(font=FONTS, font_mono=["ui-monospace", "monospace"]),
        css=CSS,
    )
    allowed: list[str] = [*LOCAL] if host in LOCAL else ["*"]
    settings = uvicorn.Config(
        Guarded(app, allowed),
        host=host,
        port=port,
        log_level="warning",
        # Pages that are open wait for news forever.
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(settings)


class Guarded:
    """A server that only answers to the names it is known by, and says what pages may fetch.

    Another website cannot reach a server on this machine by a name of its own for it.
    """

    def __init__(self, app: Any, hosts: list[str]) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        name = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if "*" not in self.hosts and name.rsplit(":", 1)[0].strip("[]") not in self.hosts:
            await _refuse(send)
            return

        async def answer(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                extra = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        await self.app(scope, receive, answer)


async def _refuse(send: Any) -> None:
    await send({"type": "http.response.start", "status": 403, "headers": []})
    await send({"type": "http.response.body", "body": b"this server has another name"})


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


TABLES = [".csv", ".tsv", ".txt", ".gz", ".xlsx", ".parquet", ".npy", ".npz"]
SAMPLES = [".csv", ".tsv", ".txt", ".gz", ".xlsx", ".parquet", ".gct", ".h5ad"]
PAUSE = 0.3
CSS = ".gradio-container{max-width:1200px!important;margin:auto} .plain{padding:0}"
ABOUT = """# frot
Feature-robust optimal transport. Everything runs on this machine; files you give are removed at the
end."""


def build(folder: str) -> Any:
    """Return the page, a `gradio.Blocks`; visitors' files are made below `folder`."""
    gr: Any = require("gradio", "app")
    with gr.Blocks(title="frot", analytics_enabled=False, delete_cache=(600, 3600)) as page:
        gr.Markdown(ABOUT)
        with gr.Tab("Transport", id="transport"):
            _transport_tab(gr, folder)
        with gr.Tab("Genes", id="genes"):
            _genes_tab(gr, folder)
        with gr.Tab("Photographs", id="photographs"):
            _photographs_tab(gr, folder)
    return page


def _handler(folder: str, count: int, work: Callable[..., tuple[Any, ...]]) -> Any:
    """Wrap a handler: its first output is a sentence, and after an error the others are empty.

    An answer that stayed would be taken for that to what was just asked.
    """

    def run(*given: Any) -> tuple[Any, ...]:
        try:
            return ("", *work(*given))
        except Exception as error:
            return (_problem(error, folder), *[None] * count)

    return run


def _problem(error: Exception, folder: str) -> str:
    if not isinstance(error, InputError | MissingDependencyError | SolverError):
        # A fault of ours: whoever runs the app sees where, whoever uses it a sentence.
        traceback.print_exception(error)
    return problem_html(sentence_of(error, folder))


def problem_html(text: str) -> str:
    """Return a sentence that says why there is no answer.

    Examples
    --------
    >>> problem_html("a < b")
    '<p role="alert" style="color:#D55E00;font-weight:600">a &lt; b</p>'
    """
    style = "color:#D55E00;font-weight:600"
    return f'<p role="alert" style="{style}">{escape(text)}</p>' if text else ""


def sentence_of(error: Exception, folder: str = "") -> str:
    """Return what an error says to whoever uses the app, without the server's paths.

    Examples
    --------
    >>> sentence_of(InputError("/tmp/x/1f/a.csv has no rows"), "/tmp/x")
    'a.csv has no rows'
    >>> sentence_of(KeyError("z"))
    "Something went wrong on our side: KeyError: 'z'"
    """
    text = str(error)
    if not isinstance(error, InputError | MissingDependencyError | SolverError):
        text = f"Something went wrong on our side: {type(error).__name__}: {text}"
    if folder:
        text = re.sub(re.escape(folder) + r"/(?:[^\s/]+/)*", "", text)
    return text


def _transport_tab(gr: Any, folder: str) -> None:
    with gr.Row():
        with gr.Column(scale=1, min_width=280):
            source = gr.Radio(["Toy data", "My tables"], value="Toy data", label="Points")
            with gr.Group() as toy:
                n = gr.Slider(10, 300, value=60, step=10, label="Points in each cloud")
                noise = gr.Slider(0, 4, value=1, step=0.1, label="Noise of eight features")
                seed = gr.Number(0, label="Random state", precision=0, minimum=0)
            with gr.Group(visible=False) as files:
                first = gr.File(label="A: one row per point", file_types=TABLES, height=130,
                                elem_id="table-a")  # fmt: skip
                second = gr.File(label="B: the same columns", file_types=TABLES, height=130,
                                 elem_id="table-b")  # fmt: skip
                groups = gr.Textbox("each", label="Groups: each, prefix, or sizes like 2,8",
                                    elem_id="groups")  # fmt: skip
                sets = gr.File(label="or a file of groups", file_types=[".gmt", ".json", ".csv"],
                               height=130)  # fmt: skip
            eta = gr.Slider(0, 0.5, value=0, step=0.01, label="eta, share of the mean cost",
                            elem_id="eta")  # fmt: skip
        with gr.Column(scale=2):
            problem = gr.HTML(elem_id="transport-problem")
            facts = gr.HTML(elem_id="transport-facts")
            picture = gr.HTML(elem_id="transport-plan")
            with gr.Accordion("The same in Python", open=True):
                python = gr.Code(language="python", interactive=False, elem_id="transport-python")

    def solve(*given: Any) -> tuple[Any, ...]:
        source, n, noise, seed, first, second, groups, sets, eta = given
        if source == "Toy data":
            found = transport.transport_toy(n, noise, eta, seed or 0)
        else:
            found = transport.transport_tables(first, second, sets or groups, eta)
        return found.facts, found.picture, found.python

    inputs = [source, n, noise, seed, first, second, groups, sets, eta]
    # While one drags, only the last place of a slider is solved.
    live = {
        "fn": _handler(folder, 3, solve), "inputs": inputs,
        "outputs": [problem, facts, picture, python], "trigger_mode": "always_last",
        "show_progress": "minimal", "api_visibility": "private",
    }  # fmt: skip
    for one in (source, n, noise, seed, eta, first, second, sets):
        one.change(**live)
    groups.submit(**live)
    groups.blur(**live)
    source.change(
        lambda kind: (gr.update(visible=kind == "Toy data"), gr.update(visible=kind != "Toy data")),
        source, [toy, files], api_visibility="private",
    )  # fmt: skip
    gr.on(None, **live)


def _genes_tab(gr: Any, folder: str) -> None:
    job = gr.State(None, delete_callback=lambda one: one and one.close(), time_to_live=3600)
    with gr.Row():
        with gr.Column(scale=1, min_width=280):
            data = gr.File(label="Samples: a row each, genes in columns", file_types=SAMPLES,
                           elem_id="genes-data")  # fmt: skip
            label = gr.Dropdown([], label="Column of the classes", allow_custom_value=True,
                                elem_id="genes-label")  # fmt: skip
            sets = gr.File(label="Gene sets (.gmt), if any", file_types=[".gmt"], height=130,
                           elem_id="genes-sets")  # fmt: skip
            transpose = gr.Checkbox(label="Rows are genes, columns are samples")
            log1p = gr.Checkbox(label="Counts: rank log(1 + x)")
            top = gr.Number(0, label="Features to select; 0: 50, at most half",
                            precision=0, minimum=0)  # fmt: skip
            permutations = gr.Slider(0, 2000, value=200, step=50, label="Permutations")
            with gr.Row():
                start = gr.Button("Select", variant="primary", elem_id="genes-start")
                stop = gr.Button("Stop", variant="stop", elem_id="genes-stop")
        with gr.Column(scale=2):
            problem = gr.HTML(elem_id="genes-problem")
            said = gr.Textbox(label="State", interactive=False, lines=2, elem_id="genes-state")
            table = gr.Dataframe(interactive=False, wrap=True, elem_id="genes-table",
                                 label="Features, best first", max_height=420)  # fmt: skip
            volcano = gr.HTML(elem_id="genes-volcano")
            pathways = gr.HTML(elem_id="genes-pathways")
            files = gr.File(label="Report and table", interactive=False, elem_id="genes-files")
            with gr.Accordion("The same in Python", open=True):
                python = gr.Code(language="python", interactive=False, elem_id="genes-python")

    def columns(path: Any) -> tuple[Any, ...]:
        found = genes.label_choices(path)
        return (gr.update(choices=found, value=found[0] if found else None),)

    def select(old: Any, *given: Any) -> Iterator[tuple[Any, ...]]:
        data, label, sets, transpose, log1p, top, permutations = given
        same = [gr.skip()] * 5
        if old is not None:
            old.close()
        one: Any = None
        try:
            options = {"top": top, "permutations": permutations}
            options |= {"transpose": bool(transpose), "log1p": bool(log1p)}
            one = genes.start_selection(data, label, sets, options, folder)
            while one.running:
                yield "", f"Running for {one.seconds:.0f} s", one, *same
                time.sleep(PAUSE)
            if one.stopped:
                yield "", f"Stopped after {one.seconds:.0f} s", one, *same
                return
            found, seconds = one.answer(), one.seconds
        except Exception as error:
            yield _problem(error, folder), "No answer", one, *same
            return
        finally:
            # Also if the visitor is gone.
            if one is not None:
                one.stop()
        shown = {"headers": found.heads, "data": found.rows}
        paths = [str(found.report), str(found.table)]
        said = f"Done in {seconds:.1f} s. {found.said}"
        yield "", said, one, shown, found.volcano, found.pathways, paths, found.python

    def end(one: Any) -> None:
        # The handler above sees it, and says so.
        if one is not None:
            one.stop()

    data.change(_handler(folder, 1, columns), data, [problem, label], api_visibility="private")
    start.click(
        select,
        [job, data, label, sets, transpose, log1p, top, permutations],
        [problem, said, job, table, volcano, pathways, files, python],
        concurrency_limit=4, api_visibility="private", show_progress="hidden",
    )  # fmt: skip
    stop.click(end, job, None, api_visibility="private")


def _photographs_tab(gr: Any, folder: str) -> None:
    # The photographs and the mask, as paths or arrays; and what was found.
    example = gr.State(None)
    matched = gr.State(None, delete_callback=lambda one: one and one.close(), time_to_live=3600)
    with gr.Row():
        first = gr.File(label="A", file_types=["image"], elem_id="photo-a", height=150)
        second = gr.File(label="B", file_types=["image"], elem_id="photo-b", height=150)
        with gr.Column(min_width=200):
            side = gr.Slider(96, 512, value=256, step=16, label="Detail: longer side, pixels")
            with gr.Row():
                use = gr.Button("Use the example", elem_id="photo-example")
                go = gr.Button("Match", variant="primary", elem_id="photo-match")
    problem = gr.HTML(elem_id="photo-problem")
    said = gr.Textbox(label="State", interactive=False, elem_id="photo-state")
    with gr.Row():
        left = gr.Image(label="A: click a point", interactive=False, type="numpy", format="png",
                        elem_id="photo-left", buttons=[])  # fmt: skip
        right = gr.Image(label="B: where it is, and its heat map", interactive=False, format="png",
                         elem_id="photo-right", buttons=["download"])  # fmt: skip
    with gr.Row():
        with gr.Column():
            layers = gr.HTML(elem_id="photo-layers")
            files = gr.File(label="Page to click on, match, A in B's frame", interactive=False,
                            elem_id="photo-files")  # fmt: skip
        with gr.Column():
            mask = gr.File(label="A mask of A, white where the object is", file_types=["image"],
                           elem_id="photo-mask", height=150)  # fmt: skip
            move = gr.Button("Move the mask (the example has one)", elem_id="photo-move")
            moved = gr.Image(label="The mask in B", interactive=False, format="png",
                             elem_id="photo-moved", buttons=["download"])  # fmt: skip
    with gr.Accordion("The same in Python", open=True):
        python = gr.Code(language="python", interactive=False, elem_id="photo-python")

    def take() -> tuple[Any, ...]:
        one, other, object_mask = photographs.example_photos()
        said = "The example: a photograph, and the same bent. Press Match."
        return said, one, other, (one, other, object_mask), None

    def match(old: Any, first: Any, second: Any, example: Any, side: float) -> tuple[Any, ...]:
        if old is not None:
            old.close()
        if example is not None and not first and not second:
            first, second = example[:2]
        found = photographs.match_photos(first, second, side)
        kept = photographs.Found.of(found, folder)
        start = [photo.pixels for photo in (found.source, found.target)]
        said = f"Matched in {found.seconds:.1f} s. Click a point in A."
        python = photographs.python_of(found, None, side)
        facts = found._repr_html_()
        return said, *start, kept, facts, photographs.write_files(found, kept.folder), python

    def point(found: Any, side: float, event: Any) -> tuple[Any, ...]:
        before, after, said = photographs.show_point(found.match, event.index)
        return said, before, after, photographs.python_of(found.match, event.index, side)

    def pointed(found: Any, side: float, event: Any) -> tuple[Any, ...]:
        if found is None:
            return problem_html("press Match first"), *[gr.skip()] * 4
        return _handler(folder, 4, point)(found, side, event)

    # Gradio hands the event over by this annotation.
    pointed.__annotations__ = {"event": gr.SelectData}

    def carry(found: Any, mask: Any, example: Any) -> tuple[Any, ...]:
        if found is None:
            raise InputError("press Match first")
        if not mask and example is None:
            raise InputError("give a mask of A, or take the example")
        return (photographs.move_mask(found.match, mask or example[2])[0],)

    def forget() -> tuple[Any, ...]:
        return None, None

    private = {"api_visibility": "private"}
    use.click(_handler(folder, 5, take), None, [problem, said, left, right, example, matched],
              **private)  # fmt: skip
    for one in (first, second):
        one.upload(forget, None, [example, matched], **private)
    go.click(
        _handler(folder, 7, match), [matched, first, second, example, side],
        [problem, said, left, right, matched, layers, files, python], **private,
    )  # fmt: skip
    left.select(pointed, [matched, side], [problem, said, left, right, python], **private)
    move.click(_handler(folder, 1, carry), [matched, mask, example], [problem, moved], **private)

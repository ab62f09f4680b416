"""Who listens: one address, this machine's own unless told otherwise, and no request to others."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from frot._base.errors import InputError, require
from frot._base.validate import check_count

__all__ = ["make_server", "serve"]

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
    from frot.app.page import CSS, build

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

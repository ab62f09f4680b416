"""``frot app``: transport, genes and photographs in a browser."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from frot.cli.command import command, option, remark, warn

__all__ = ["webapp"]

HOST = "Address to listen on; any but this machine's own lets others in, without a password."


@command("frot app", "frot app --port 8000 --open", json=False)
def webapp(
    host: Annotated[str, option(None, HOST, "ADDRESS")] = "127.0.0.1",
    port: Annotated[int, option(None, "Port.", "NUMBER", min=1, max=65535)] = 7860,
    max_upload: Annotated[int, option(None, "Largest file taken, in MB.", "MB", min=1)] = 200,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = False,
) -> None:
    """Open an app in the browser: transport live, genes from a table, points in photographs.

    No request leaves this machine. Uploads are removed when the app ends, by Ctrl-C.
    """
    from frot.app import serve
    from frot.app.server import LOCAL

    if host not in LOCAL:
        warn(f"anyone who can reach {host} can use the app; there is no password")
    remark(f"Listening on http://{host}:{port} (Ctrl-C ends it)")
    # Ctrl-C is how it ends.
    with suppress(KeyboardInterrupt):
        serve(host, port, max_upload=max_upload, open_browser=open_browser)
    remark("Ended; uploads are removed")

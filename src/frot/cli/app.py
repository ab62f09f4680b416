"""The command ``frot``: all commands put together, exit codes of their errors, and ``frot app``."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from frot._base.errors import InputError, MissingDependencyError, SolverError
from frot.cli.command import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    CommandWithJson,
    command,
    complain,
    option,
    remark,
    warn,
)
from frot.cli.compare import compare
from frot.cli.couple import couple
from frot.cli.demo import demo
from frot.cli.doctor import doctor
from frot.cli.evaluate import evaluate
from frot.cli.match import match
from frot.cli.reproduce.command import Experiments, reproduce
from frot.cli.select import select
from frot.cli.solve import solve


class Commands(TyperGroup):
    """Commands whose errors are one sentence and an exit code instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except (InputError, MissingDependencyError) as error:
            complain(str(error))
            raise typer.Exit(BAD_INPUT) from None
        except SolverError as error:
            complain(str(error))
            raise typer.Exit(FAILED) from None
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=Commands,
    name="frot",
    no_args_is_help=True,
    # A traceback is for bugs; users' mistakes are caught above.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from frot import __version__

        typer.echo(f"frot {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Feature-robust optimal transport: exact, certified, on named groups of features."""


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


for one in (demo, solve, compare, select, couple, match, evaluate, doctor):
    app.command(cls=CommandWithJson, epilog=vars(one)["epilog"])(one)
app.command("app", cls=CommandWithJson, epilog=vars(webapp)["epilog"])(webapp)
app.add_typer(reproduce, name="reproduce", cls=Experiments)

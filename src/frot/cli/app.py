"""The command ``frot``: all commands put together."""

from __future__ import annotations

from typing import Annotated

import typer

from frot.cli import demo, doctor, evaluate, match, select, solve
from frot.cli.command import Command

app = typer.Typer(
    name="frot",
    no_args_is_help=True,
    # So that paragraphs of the help are filled.
    rich_markup_mode="markdown",
    # A traceback is for bugs; users' mistakes are a sentence.
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
    """Feature-robust optimal transport: certified, on named groups of features."""


app.command(cls=Command, epilog=solve.EXAMPLES)(solve.solve)
app.command(cls=Command, epilog=select.EXAMPLES)(select.select)
app.command(cls=Command, epilog=match.EXAMPLES)(match.match)
app.command(cls=Command, epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command(cls=Command, epilog=demo.EXAMPLES)(demo.demo)
app.command(cls=Command, epilog=doctor.EXAMPLES)(doctor.doctor)

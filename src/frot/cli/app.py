"""The command ``frot``: all commands put together, and the exit codes of their errors."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from frot._base.errors import InputError, MissingDependencyError, SolverError
from frot.cli.command import BAD_INPUT, FAILED, INTERRUPTED, CommandWithJson, complain
from frot.cli.compare import compare
from frot.cli.demo import demo
from frot.cli.doctor import doctor
from frot.cli.evaluate import evaluate
from frot.cli.match import match
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


for one in (demo, solve, compare, select, match, evaluate, doctor):
    app.command(cls=CommandWithJson, epilog=vars(one)["epilog"])(one)

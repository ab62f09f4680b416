import re
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import frot
from frot._base.errors import SolverError
from frot.cli.app import app as frot_app
from frot.cli.command import Command

COMMANDS = ("solve", "select", "match", "evaluate", "demo", "doctor")


def test_python_dash_m_shows_the_version():
    command = [sys.executable, "-m", "frot", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"frot {frot.__version__}\n"
    assert done.stderr == ""


def test_the_installed_command_is_the_same():
    from importlib.metadata import entry_points

    (entry,) = [e for e in entry_points(group="console_scripts") if e.name == "frot"]
    from frot.cli import main

    assert entry.load() is main


def test_help_names_every_command(run):
    done = run("--help")
    assert done.exit_code == 0
    group: Any = typer.main.get_command(frot_app)
    assert tuple(group.commands) == COMMANDS
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", done.output)


def test_help_is_one_screen(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert len(run("--help").output.splitlines()) <= 24


def test_no_command_shows_the_help(run):
    assert "Usage: frot" in run().output


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(run, command):
    done = run(command, "--help")
    assert done.exit_code == 0
    assert f"Usage: frot {command}" in done.output


def test_help_brings_no_heavy_library():
    heavy = ["matplotlib", "pandas", "PIL", "ot", "highspy", "sklearn", "torch"]
    code = (
        "import sys; from typer.testing import CliRunner; from frot.cli.app import app\n"
        f"for command in {COMMANDS}:\n"
        "    assert CliRunner().invoke(app, [command, '--help']).exit_code == 0\n"
        f"    assert not set({heavy}) & set(sys.modules), command\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (frot.InputError("a: [bad] weights"), 2, "error: a: [bad] weights"),
        (SolverError("it broke"), 1, "error: it broke"),
        (KeyboardInterrupt(), 130, "error: interrupted"),
    ],
)
def test_errors_are_one_sentence_and_a_code(error, code, text):
    app = typer.Typer()

    @app.callback()
    def root() -> None:
        pass

    @app.command(cls=Command)
    def fail() -> None:
        raise error

    done = CliRunner().invoke(app, ["fail"])
    assert done.exit_code == code
    assert done.stderr.strip() == text
    assert done.stdout == ""

"""Every door to a matcher has the same options: the class, and the commands that make one."""

import dataclasses
import inspect

import pytest
import typer

from frot.cli.app import app
from frot.correspondence import Matcher, OnnxBackbone, Settings
from frot.correspondence.settings import ONNX_OPTIONS, matcher_options

COMMANDS = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]


def test_every_option_is_an_argument_of_the_matcher_and_the_reverse():
    arguments = inspect.signature(Matcher).parameters
    assert set(matcher_options()) == set(arguments)
    settings = {field.name for field in dataclasses.fields(Settings)}
    assert settings <= set(arguments)
    # What is left out is the preset's affair, so that a default is in one place.
    defaults = {name: one.default for name, one in arguments.items()}
    assert defaults.pop("preset") == "frot"
    assert set(defaults.values()) == {None}


def test_every_option_of_onnx_files_is_an_argument_of_theirs():
    assert set(ONNX_OPTIONS) <= set(inspect.signature(OnnxBackbone).parameters)


@pytest.mark.parametrize("name", ["match", "evaluate"])
def test_every_option_is_on_the_command_line(name):
    parameters = {one.name: one for one in COMMANDS[name].params}
    for option, declared in {**matcher_options(), **ONNX_OPTIONS}.items():
        found = parameters[option]
        assert f"--{option}" in found.opts
        assert found.help == declared.text
        assert found.default is None
        if declared.kind is bool:
            assert found.secondary_opts == [f"--no-{option}"]


def test_defaults_are_what_their_own_checks_let_pass():
    assert Settings().check() == Settings()
    assert all(option.text.endswith(".") for option in matcher_options().values())

"""What all commands share: options, numbers on stdout, quiet, messages, files, examples."""

from __future__ import annotations

import json
import re
import shlex
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer
from scipy import stats

import frot
from frot.cli.app import app
from frot.cli.command import Output
from frot.cli.match import check_inside
from frot.cli.solve import show_result
from frot.selection import FROTSelector

ROOT: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = ROOT.commands


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_shared_options_and_examples_that_parse(name):
    made = COMMANDS[name]
    known = {flag for parameter in made.params for flag in parameter.opts}
    assert known >= {"--json", "--quiet"}
    head, *examples = made.epilog.split("\n\n")
    assert head.startswith("Example")
    for line in examples:
        # What stands behind a pipe is not ours.
        words = shlex.split(re.split("[|>]", line)[0])
        assert words[:2] == ["frot", name]
        made.make_context(name, words[2:])


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_has_more_options_than_a_person_types(name):
    options = [one for one in COMMANDS[name].params if one.param_type_name == "option"]
    assert len(options) <= 18
    # An abbreviation, an American spelling, or none.
    assert all(len(one.opts) + len(one.secondary_opts) <= 2 for one in options)


def test_numbers_on_stdout_are_all_there_is(run, tables):
    X, Y = tables
    done = run("solve", "a.csv", "b.csv", "--groups", "prefix", "--json")
    numbers = json.loads(done.stdout)
    assert numbers["value"] == frot.solve(X, Y, [range(2), range(2, 10)]).value
    assert numbers["command"] == "frot solve a.csv b.csv --groups prefix --json"
    # What people read is on the other stream.
    assert "Feature-robust transport" in done.stderr
    quiet = run("solve", "a.csv", "b.csv", "--json", "--groups", "prefix", "-q")
    assert json.loads(quiet.stdout)["value"] == numbers["value"]
    assert quiet.stderr == ""


def test_doctor_for_a_bug_report(run):
    found = json.loads(run("doctor", "--json").stdout)
    assert found["frot"] == frot.__version__
    assert found["packages"]["numpy"] == np.__version__
    assert found["self_test"]["works"] is True


def test_every_kind_of_answer_is_numbers(run, tables, tmp_path):
    found = json.loads(run("demo", "-n", 5, "--json").stdout)
    assert found["frot"]["status"] == "CONVERGED"
    X, y = np.vstack(tables), ["a"] * 25 + ["b"] * 25
    lines = [",".join(["y", *(f"g{i}" for i in range(10))])]
    lines += [",".join([label, *map(str, row)]) for label, row in zip(y, X, strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(lines))
    found = json.loads(run("select", "s.csv", "--label", "y", "--json", "--top", 3).stdout)
    assert [row["rank"] for row in found["table"]] == list(range(1, 11))
    assert found["table"][0]["feature"] == "g0"
    # Without permutations p is that of the moderated t, and q by Benjamini and Hochberg.
    p, q = ([row[name] for row in found["table"]] for name in ("p", "q"))
    np.testing.assert_allclose(p, FROTSelector(3).fit(X, y).table_["p"])
    np.testing.assert_allclose(q, stats.false_discovery_control(p))
    assert sum(row["selected"] for row in found["table"]) == 3
    (comparison,) = found["comparisons"]
    assert comparison["lower"] <= comparison["value"] <= comparison["upper"]


def test_quiet_says_warnings_and_errors_only(run, tables):
    done = run("solve", "a.csv", "b.csv", "--quiet", "--save", "r.npz")
    assert (done.stdout, done.stderr) == ("", "")
    assert "error: " in run("solve", "a.csv", "none.csv", "--quiet").stderr


def test_messages_name_options_and_not_arguments(run, tables, tmp_path):
    np.save(tmp_path / "w.npy", np.ones(25))
    done = run("solve", "a.csv", "b.csv", "--weights-a", "w.npy")
    assert "pass --normalise-weights to divide by the sum" in done.stderr
    lines = ["y,age,g1,g2", *(f"{'ab'[i % 2]},{i},{i * i},{i % 3}" for i in range(12))]
    (tmp_path / "s.csv").write_text("\n".join(lines))
    done = run("select", "s.csv", "--label", "y")
    assert "--keep age ranks it, --drop age leaves it out" in done.stderr
    done = run("select", "s.csv", "--label", "y", "--id", "name")
    assert "error: id: s.csv has no column 'name'" in done.stderr


@pytest.mark.parametrize(("status", "colour"), [("CONVERGED", "32"), ("TIME_LIMIT", "33")])
def test_a_status_is_green_or_yellow(monkeypatch, capsys, status, colour):
    class Stopped:
        def __init__(self) -> None:
            self.status = frot.Status[status]

        def summary(self) -> str:
            return f"A result\n  status  {status}: a sentence"

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    result: Any = Stopped()
    show_result(Output(), result)
    assert f"\x1b[1;{colour}m{status}:" in capsys.readouterr().out


def test_completion_is_typers_own(run, monkeypatch):
    # Whatever shell the tests were started from.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert "_FROT_COMPLETE=complete_bash" in run("--show-completion", "bash").stdout


def test_american_options(run, tables):
    values = []
    for word in ("--normalize", "--normalise"):
        done = run("solve", "a.csv", "b.csv", word, "mean", "--json")
        values.append(json.loads(done.stdout)["value"])
    assert values[0] == values[1] != frot.solve(*tables).value


@pytest.fixture
def small_disk(run, monkeypatch):
    """Run frot where no file can be larger than a kilobyte."""
    resource = pytest.importorskip("resource")
    monkeypatch.setenv("MPLBACKEND", "Agg")

    def run_there(*words):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
        try:
            return run(*words)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return run_there


@pytest.mark.parametrize(
    ("option", "name"),
    [("--save", "r.npz"), ("--report", "p.html"), ("--picture", "p.png")],
)
def test_a_full_disk_is_bad_input_and_leaves_the_old_file(
    small_disk, tables, tmp_path, option, name
):
    (tmp_path / name).write_text("old")
    before = sorted(tmp_path.iterdir())
    done = small_disk("solve", "a.csv", "b.csv", option, name)
    assert done.exit_code == 2, done.output
    assert done.stderr.splitlines()[-1] == f"error: {name} cannot be written: File too large"
    assert (tmp_path / name).read_text() == "old"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("option", ["--save", "--report", "--picture"])
def test_files_that_cannot_be_written_are_refused_before_the_work(run, tables, option):
    done = run("solve", "a.csv", "b.csv", option, "nowhere/file")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "nowhere does not exist; make that folder first" in done.stderr


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("quiet", [True, False])
def test_a_bar_is_for_people_who_watch(monkeypatch, terminal, quiet):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    assert Output(quiet=quiet).bar is (terminal and not quiet)


def test_points_on_the_edge_of_a_photograph_are_inside_and_beyond_it_are_not():
    photo = SimpleNamespace(size=(60, 80), name="a.png")
    check_inside(np.array([[-0.5, -0.5], [79.5, 59.5]]), photo)
    for point in ([-0.51, 0.0], [0.0, -0.51], [79.51, 0.0], [0.0, 59.51]):
        with pytest.raises(frot.InputError, match=r"is outside a\.png, which is 80 x 60 pixels"):
            check_inside(np.array([point]), photo)

"""What all commands share: numbers on stdout, stdin, quiet and verbose, --out, examples."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import frot
from frot.cli.app import app
from frot.cli.command import ending_of, show_summary

ROOT: Any = typer.main.get_command(app)


def commands() -> dict[str, Any]:
    """Every command by the words that lead to it."""
    return dict(ROOT.commands)


COMMANDS = commands()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_shared_options_and_examples_that_parse(name):
    made = COMMANDS[name]
    known = {flag for parameter in made.params for flag in parameter.opts}
    assert known >= {"--quiet", "--verbose", "--json"}
    head, *examples = made.epilog.split("\n\n")
    assert head.startswith("Example")
    for line in examples:
        # What stands before and behind pipes is not ours.
        (ours,) = [part for part in line.split("|") if part.strip().startswith("frot ")]
        words = shlex.split(ours)[1:]
        assert " ".join(words).startswith(name)
        made.make_context(name, words[len(name.split()) :])


def test_numbers_on_stdout_are_all_there_is(run, tables):
    X, Y = tables
    done = run("solve", "a.csv", "b.csv", "--groups", "prefix", "--json", "-")
    found = json.loads(done.stdout)
    assert found["value"] == frot.solve(X, Y, [range(2), range(2, 10)]).value
    assert found["command"] == "frot solve a.csv b.csv --groups prefix"
    # What people read is on the other stream.
    assert "Feature-robust transport" in done.stderr
    bare = run("solve", "a.csv", "b.csv", "--json", "--groups", "prefix", "-q")
    assert json.loads(bare.stdout)["value"] == found["value"]
    assert bare.stderr == ""


def test_doctor_for_a_bug_report(run):
    found = json.loads(run("doctor", "--json").stdout)
    assert found["frot"] == frot.__version__
    assert found["packages"]["numpy"] == np.__version__
    assert found["self_test"]["works"] is True


def test_every_kind_of_answer_is_numbers(run, tables, tmp_path):
    found = json.loads(run("compare", "a.csv", "b.csv", "--methods", "frot,ot", "--json").stdout)
    assert [row["method"] for row in found["rows"]] == ["frot", "ot"]
    found = json.loads(run("demo", "-n", 5, "--json").stdout)
    assert found["frot"]["status"] == "CONVERGED"
    X, y = np.vstack(tables), ["a"] * 25 + ["b"] * 25
    lines = [",".join(["y", *(f"g{i}" for i in range(10))])]
    lines += [",".join([label, *map(str, row)]) for label, row in zip(y, X, strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(lines))
    found = json.loads(run("select", "s.csv", "--label", "y", "--json", "-", "--top", 3).stdout)
    assert [row["rank"] for row in found["table"]] == list(range(1, 11))
    assert found["table"][0]["feature"] == "g0"
    assert sum(row["selected"] for row in found["table"]) == 3


def test_stdin_is_a_table(tables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = (tmp_path / "a.csv").read_bytes()
    words = ["solve", "-", "b.csv", "--groups", "prefix", "--json", "-", "--quiet"]
    done = CliRunner().invoke(app, words, input=content)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    X, Y = tables
    assert found["value"] == frot.solve(X, Y, [range(2), range(2, 10)]).value
    assert found["command"] == "frot solve - b.csv --groups prefix"
    empty = CliRunner().invoke(app, words, input=b"")
    assert empty.exit_code == 2
    assert "stdin: is empty" in empty.stderr


def test_messages_call_stdin_by_its_name(tables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["y,age,g1,g2", *(f"{'ab'[i % 2]},{i},{i * i},{i % 3}" for i in range(12))]
    words = ["select", "-", "--label", "y"]
    done = CliRunner().invoke(app, words, input="\n".join(lines))
    assert "warning: stdin: 'age'" in done.stderr
    done = CliRunner().invoke(app, [*words[:3], "z"], input="\n".join(lines))
    assert "error: label: stdin has no column 'z'" in done.stderr
    done = CliRunner().invoke(app, ["solve", "-", "b.csv"], input="1,2\n3,4\n")
    assert "error: stdin has 2 features and b.csv has 10" in done.stderr


@pytest.mark.parametrize("kind", ["cut gzip", "no gzip", "no zip"])
def test_what_is_damaged_on_stdin_is_refused(kind, monkeypatch, tmp_path):
    whole = gzip.compress(b"a,b\n1,2\n" * 1000)
    sent = {"cut gzip": whole[:-20], "no gzip": b"\x1f\x8bno", "no zip": b"PK\x03\x04no"}[kind]
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["select", "-", "--label", "a"], input=sent)
    assert done.exit_code == 2
    assert "error: stdin: is damaged, or not all of it came" in done.stderr


def test_what_is_on_stdin_is_known_by_its_content(tables, tmp_path):
    np.save(tmp_path / "a.npy", tables[0])
    np.savez(tmp_path / "a.npz", a=tables[0])
    for name in ("a.csv", "a.npy", "a.npz"):
        assert ending_of((tmp_path / name).read_bytes()) == f".{name[2:]}"


def test_verbose_tells_python_time_and_where_errors_come_from(run, tables):
    done = run("solve", "a.csv", "b.csv", "-v")
    assert "frot.read_pair('a.csv', 'b.csv')" in done.stderr
    assert re.search(r"^\d+\.\d\d s$", done.stderr, re.MULTILINE)
    done = run("solve", "a.csv", "b.csv", "--metric", "nonsense", "-v")
    assert done.exit_code == 2
    assert "Traceback" in done.stderr
    assert "Traceback" not in run("solve", "a.csv", "b.csv", "--metric", "nonsense").stderr


def test_quiet_says_warnings_and_errors_only(run, tables):
    done = run("solve", "a.csv", "b.csv", "--quiet", "--out", "r.npz")
    assert (done.stdout, done.stderr) == ("", "")
    assert "error: " in run("solve", "a.csv", "none.csv", "--quiet").stderr


def test_out_goes_by_its_ending_or_is_a_folder(run, tables, tmp_path):
    done = run("solve", "a.csv", "b.csv", "--out", "r.npz", "--out", "n.json", "--out", "p.html")
    assert done.exit_code == 0, done.output
    assert (
        frot.load(tmp_path / "r.npz").value
        == json.loads((tmp_path / "n.json").read_text())["value"]
    )
    assert "<html" in (tmp_path / "p.html").read_text(encoding="utf-8")
    done = run("solve", "a.csv", "b.csv", "--out", "made", "--save", "mine.npz")
    assert done.exit_code == 0, done.output
    names = {file.name for file in (tmp_path / "made").iterdir()}
    assert names == {"report.html", "plan.png", "numbers.json"}
    assert (tmp_path / "mine.npz").exists()
    twice = run("solve", "a.csv", "b.csv", "--out", "r.npz", "--save", "s.npz")
    assert twice.exit_code == 2
    assert "r.npz and s.npz hold the same; give one of them" in twice.stderr


@pytest.mark.parametrize(("status", "colour"), [("CONVERGED", "32"), ("TIME_LIMIT", "33")])
def test_a_status_is_green_or_yellow(monkeypatch, capsys, status, colour):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    show_summary(f"A result\n  status  {status}: a sentence", frot.Status[status])
    assert f"\x1b[1;{colour}m{status}:" in capsys.readouterr().out


def test_completion_is_typers_own(run, monkeypatch):
    # Whatever shell the tests were started from.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert "_FROT_COMPLETE=complete_bash" in run("--show-completion", "bash").stdout


def test_american_options(run, tables):
    for words in (["--normalize", "mean"], ["--normalise", "mean"]):
        done = run("solve", "a.csv", "b.csv", *words, "--json", "-")
        assert "--normalise mean" in json.loads(done.stdout)["command"]

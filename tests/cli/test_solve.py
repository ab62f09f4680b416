import re
from html import unescape
from typing import Any

import numpy as np
import pandas
import pytest

import frot


def printed_value(done) -> float:
    return float(re.findall(r"value +(\S+)", done.stdout)[0])


def test_the_answer_is_that_of_the_library(run, tables):
    X, Y = tables
    done = run("solve", "a.csv", "b.csv", "--groups", "prefix")
    assert done.exit_code == 0
    expected = frot.solve(X, Y, [2, 8])
    assert printed_value(done) == pytest.approx(expected.value, rel=1e-8)
    assert "CONVERGED: The interval is within the tolerance." in done.stdout
    assert re.search(r"true +alpha 1\.000000", done.stdout)
    assert "2 groups of 10 features: 'true' (2), 'noise' (8)" in done.stderr


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--tau", "20"], {"tau": 20.0}),
        (["--tau", "inf,5"], {"tau": (np.inf, 5.0)}),
        (["--mass", "0.5"], {"mass": 0.5}),
    ],
)
def test_mass_that_is_not_kept(run, tables, tmp_path, words, options):
    X, Y = tables
    done = run("solve", "a.csv", "b.csv", "--groups", "prefix", *words, "--report", "page.html")
    assert done.exit_code == 0, done.output
    expected = frot.solve(X, Y, [2, 8], **options)
    assert printed_value(done) == pytest.approx(expected.value, rel=1e-7)
    assert "  kept  " in done.stdout
    page = unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert f"{expected.mass:.1%} of a" in page
    assert " ".join(words) in page
    done = run("solve", "a.csv", "b.csv", "--tau", "much")
    assert done.exit_code == 2
    assert "tau: 'much' is neither a number nor two, such as 0.5,inf" in done.stderr


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".tsv", ".csv.gz", ".parquet"])
def test_every_kind_of_table(run, tmp_path, tables, suffix):
    X, Y = tables
    for name, points in zip("ab", tables, strict=True):
        path = tmp_path / f"{name}{suffix}"
        frame = pandas.DataFrame(points, columns=pandas.Index([f"f{i}" for i in range(10)]))
        if suffix == ".npy":
            np.save(path, points)
        elif suffix == ".npz":
            np.savez(path, X=points)
        elif suffix == ".parquet":
            frame.to_parquet(path)
        else:
            frame.to_csv(path, sep="\t" if suffix == ".tsv" else ",", index=False)
    done = run("solve", f"a{suffix}", f"b{suffix}", "--groups", "2,8")
    assert done.exit_code == 0, done.output
    assert printed_value(done) == pytest.approx(frot.solve(X, Y, [2, 8]).value, rel=1e-8)


def test_options_reach_the_solver(run, tables):
    X, Y = tables
    options: dict[str, Any] = {"eta": 5.0, "metric": "euclidean", "normalise": "mean"}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    done = run("solve", "a.csv", "b.csv", "--groups", "2,8", *words)
    assert done.exit_code == 0
    assert printed_value(done) == pytest.approx(frot.solve(X, Y, [2, 8], **options).value, rel=1e-8)
    assert "Exact(" in done.stdout
    done = run("solve", "a.csv", "b.csv", "--eps", 2.0, "--tol", 0.5)
    result = frot.solve(X, Y, eps=2.0, tol=0.5)
    assert printed_value(done) == pytest.approx(result.value, rel=1e-8)
    assert "Entropic(" in done.stdout


def test_weights_from_files(run, tables, tmp_path):
    X, Y = tables
    weights = np.arange(1.0, 26.0)
    np.save(tmp_path / "w.npy", weights)
    (tmp_path / "v.csv").write_text("weight\n" + "\n".join(str(w) for w in weights[::-1]))
    words = ["--weights-a", "w.npy", "--weights-b", "v.csv"]
    done = run("solve", "a.csv", "b.csv", "--groups", "all", *words)
    assert done.exit_code == 2
    assert "pass --normalise-weights" in done.stderr
    done = run("solve", "a.csv", "b.csv", "--groups", "all", *words, "--normalise-weights")
    assert done.exit_code == 0
    expected = frot.solve(X, Y, "all", a=weights, b=weights[::-1], normalise_weights=True)
    assert printed_value(done) == pytest.approx(expected.value, rel=1e-8)


def test_all_files_are_written(run, tables, tmp_path):
    (tmp_path / "r.npz").write_text("old")
    words = ["--save", "r.npz", "--report", "page.html", "--picture", "plan.svg"]
    done = run("solve", "a.csv", "b.csv", "--groups", "prefix", *words)
    assert done.exit_code == 0
    for name in ("r.npz", "page.html", "plan.svg"):
        assert f"Wrote {name}" in done.stderr
    with np.load(tmp_path / "r.npz") as saved:
        assert str(saved["status"]) == "CONVERGED"
        assert saved["names"].tolist() == ["true", "noise"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<title>a.csv to b.csv</title>" in page
    assert "frot solve a.csv b.csv --groups prefix" in page
    assert "<svg" in (tmp_path / "plan.svg").read_text(encoding="utf-8")
    assert not list(tmp_path.glob(".frot-*"))


def test_names_that_no_font_has_are_a_warning_each(run, tmp_path):
    rows = ["日_1,b_2", *(f"{i},{i * i}" for i in range(5))]
    (tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")
    words = ["--groups", "prefix", "--picture", "plan.png"]
    done = run("solve", "a.csv", "a.csv", *words)
    assert done.exit_code == 0, done.output
    assert done.stderr.count("warning: Glyph 26085") == 1
    assert (tmp_path / "plan.png").is_file()


def test_not_converged_is_three_and_files_are_written(run, tables, tmp_path, monkeypatch):
    solve = frot.solve

    def stopped(*points, **options):
        return solve(*points, **options, solver="frank_wolfe", max_iter=1)

    monkeypatch.setattr(frot, "solve", stopped)
    words = ["--eta", 50, "--tol", 0, "--save", "r.npz"]
    done = run("solve", "a.csv", "b.csv", "--groups", "2,8", *words)
    assert done.exit_code == 3
    assert done.stderr.count("warning: ") == 1
    assert "Stopped at max_iter" in done.stderr
    with np.load(tmp_path / "r.npz") as saved:
        assert str(saved["status"]) == "MAX_ITER"
        assert saved["lower"] <= saved["upper"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.csv", "b.csv"], "missing.csv does not exist"),
        (["a.doc", "b.csv"], "a.doc has an unknown suffix '.doc'"),
        (["a.csv", "b.csv", "--groups", "2,9"], "the sizes add up to 11"),
        (["a.csv", "b.csv", "--groups", "sets.gmt"], "sets.gmt"),
        (["a.csv", "b.csv", "--groups", "pairs"], "--groups pairs is not known"),
        (["a.csv", "b.csv", "--metric", "euclidian"], "did you mean 'euclidean'?"),
        (["a.csv", "b.csv", "--normalise", "max"], "normalise: 'max' is none of"),
        (["a.csv", "b.csv", "--eta", "-1"], "eta: must be finite and >= 0"),
        (["a.csv", "b.csv", "--save", "no/r.npz"], "no does not exist; make that folder first"),
        (["a.csv", "b.csv", "--save", "r.txt"], "r.txt must end in .npz"),
        (["a.csv", "b.csv", "--picture", "r.gif"], "r.gif must end in .png"),
        (["a.csv", "b.csv", "--report", "."], ". is a folder"),
        (["a.csv", "b.csv", "--save", "a.npz"], "a.npz is a folder"),
        (["w.npz", "b.csv", "--save", "w.npz"], "w.npz is read from; give the path of another"),
        (["a.csv", "b.csv", "--weights-a", "a.csv"], "weights are one row or one column"),
        (["a.csv", "b.csv", "--weights-a", "w.npy"], "w.npy does not exist"),
        (["a.csv", "short.csv"], "short.csv lacks"),
        (["bare.csv", "bare.csv", "--groups", "prefix"], "or give tables a header"),
        *(
            (["a.csv", "b.csv", option, f"{'x' * 5_000}{kind}"], "is no path of a file: ")
            for option, kind in {
                "--groups": ".gmt",
                "--save": ".npz",
                "--report": ".html",
                "--picture": ".png",
                "--weights-a": ".npy",
            }.items()
        ),
    ],
)
def test_bad_input_is_two_and_one_sentence(run, tables, tmp_path, words, message):
    (tmp_path / "short.csv").write_text("true_1\n1\n")
    (tmp_path / "bare.csv").write_text("1,2\n3,4\n")
    (tmp_path / "a.npz").mkdir()
    done = run("solve", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert sum(line.startswith("error: ") for line in done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "words", [["a.csv"], ["a.csv", "b.csv", "--tol", "little"], ["a.csv", "b.csv", "--eta", "x"]]
)
def test_bad_usage_is_two(run, tables, words):
    assert run("solve", *words).exit_code == 2


def test_a_missing_library_is_found_before_the_work(run, tables, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = run("solve", "a.csv", "b.csv", "--picture", "r.png")
    assert done.exit_code == 2
    assert 'pip install "frot[plot]"' in done.stderr
    assert done.stdout == ""


def test_sets_that_match_nothing_are_mentioned(run, tables, tmp_path):
    (tmp_path / "sets.gmt").write_text("GOOD\t-\ttrue_1\tnoise_1\nNONE\t-\tother\n")
    done = run("solve", "a.csv", "b.csv", "--groups", "sets.gmt")
    assert done.exit_code == 0
    assert "warning: 1 set" in done.stderr

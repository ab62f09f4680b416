import json


def test_figure_1(run, tmp_path):
    done = run("reproduce", "fig1", "-n", 25, "--out", "made")
    assert done.exit_code == 0
    assert "Figure 1: reproduced" in done.stdout
    assert "α₁ = 1.000000" in done.stdout
    assert (tmp_path / "made" / "fig1.png").read_bytes().startswith(b"\x89PNG")
    content = json.loads((tmp_path / "made" / "fig1.json").read_text(encoding="utf-8"))
    assert content["n"] == 25


def test_all_runs_every_figure(run, monkeypatch, tmp_path):
    from frot import _reproduce
    from frot._reproduce import Check, Reproduction, Verdict

    def fake(name, holds):
        def make(n, seed):
            checks = (Check(f"{n} points of seed {seed}", holds),)
            return Reproduction(
                name, {"n": n}, (Verdict(name, "a claim", checks),), new_figure, ("a note",)
            )

        return make

    def new_figure():
        from frot.show.style import new_figure

        return new_figure(1, 1)

    figures = {"fig1": fake("fig1", True), "fig2": fake("fig2", False)}
    monkeypatch.setattr(_reproduce, "FIGURES", figures)
    done = run("reproduce", "all", "--seed", 7, "-n", 3, "--out", "made")
    assert done.exit_code == 0
    assert "Figure fig1: reproduced\n" in done.stdout
    assert "Figure fig2: not reproduced\n" in done.stdout
    assert done.stdout.count("3 points of seed 7") == 2
    assert "a claim" in done.stdout
    assert "a note" in done.stdout
    made = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert made == ["fig1.json", "fig1.png", "fig2.json", "fig2.png"]


def test_an_unknown_figure(run):
    done = run("reproduce", "fig9")
    assert done.exit_code == 2
    assert "fig9" in done.stderr


def test_robustness_has_its_own_claims(run, monkeypatch, tmp_path):
    from frot._reproduce import Check, Reproduction, Verdict, _robustness

    def fake(n, seed, *, progress):
        from frot.show.style import new_figure

        checks = (Check(f"{n} points of seed {seed}", True),)
        verdict = Verdict("values", "a claim", checks, "Robustness,")
        return Reproduction("robustness", {}, (verdict,), lambda: new_figure(1, 1))

    monkeypatch.setattr(_robustness, "robustness", fake)
    done = run("reproduce", "robustness", "-n", 7, "--seed", 3, "--out", "made")
    assert done.exit_code == 0
    assert "Robustness, values: reproduced" in done.stdout
    assert "claim  a claim" in done.stdout
    assert "7 points of seed 3" in done.stdout
    assert (tmp_path / "made" / "robustness.json").exists()
    refused = run("reproduce", "robustness", "--splits", 3)
    assert refused.exit_code == 2
    assert "--splits is for selection; leave it out for robustness" in refused.stderr

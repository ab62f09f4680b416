"""The tab Genes without a browser: a process that can be stopped, and what it found."""

import gzip
import re

import numpy as np
import pytest

import frot
from frot.app.genes import label_choices, start_selection


def write_samples(path, gap: float = 3.0, n: int = 16, d: int = 4) -> None:
    """Samples of two classes, which differ in the first two genes."""
    rng = np.random.default_rng(0)
    X = rng.normal(8.0, 1.0, size=(n, d))
    X[n // 2 :, :2] += gap
    lines = [",".join(["patient", "arm", *(f"g{j}" for j in range(d))])]
    for i, row in enumerate(X):
        arm = "treated" if i >= n // 2 else "control"
        lines.append(",".join([f"p{i}", arm, *(f"{x:.4f}" for x in row)]))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def samples(tmp_path):
    write_samples(tmp_path / "my genes.csv")
    return tmp_path / "my genes.csv"


def test_two_jobs_at_once_find_what_frot_select_finds(samples, tmp_path, monkeypatch):
    other = tmp_path / "other.csv"
    write_samples(other, -3.0)
    write_samples(samples, d=6)
    sets = tmp_path / "sets.gmt"
    names = [f"g{j}" for j in range(6)]
    sets.write_text(f"SIGNAL\t\t{chr(9).join(names[:3])}\nREST\t\t{chr(9).join(names[2:])}\n")
    options = {"top": 1, "permutations": 50, "no_plan": True, "min_size": 3}
    jobs = [
        start_selection(samples, "arm", sets, options, tmp_path),
        start_selection(other, "arm", None, {"top": 2, "no_plan": True}, tmp_path),
    ]
    found = [job.process.wait(200) or job.answer() for job in jobs]
    first, second = found
    assert first.heads[:3] == ["rank", "pathway", "size"]
    assert first.rows[0][:3] == ["1", "SIGNAL", "3"]
    assert "1 of 2 groups selected" in first.said
    assert first.pathways.startswith("<img")
    assert {row[1] for row in second.rows[:2]} == {"g0", "g1"}
    assert second.rows[0][second.heads.index("up_in")] == "control"
    assert second.volcano.startswith("<img")
    assert second.pathways == ""
    assert "<html" in second.report.read_text(encoding="utf-8")
    # What is shown runs beside the files, and finds the same.
    assert str(tmp_path) not in first.python
    monkeypatch.chdir(jobs[0].folder)
    scope: dict = {}
    exec(first.python, scope)
    assert scope["selector"].pathways_.names[scope["selector"].pathways_.order[0]] == "SIGNAL"
    for job in jobs:
        job.close()
        assert not job.folder.exists()


def test_a_job_that_is_stopped_is_gone(samples, tmp_path):
    job = start_selection(
        samples, "arm", None, {"permutations": 2000, "statistic": "phi"}, tmp_path
    )
    assert job.running
    job.stop()
    assert not job.running
    with pytest.raises(frot.InputError, match="the work was stopped"):
        job.answer()
    job.close()


def test_bad_input_is_the_commands_own_sentence(samples, tmp_path):
    job = start_selection(samples, "colour", root=tmp_path)
    job.process.wait(200)
    with pytest.raises(frot.InputError, match=r"^label: .*'colour'") as raised:
        job.answer()
    assert str(tmp_path) not in str(raised.value)
    for data, label, text in ((None, "arm", "give a table"), (samples, "", "choose the column")):
        with pytest.raises(frot.InputError, match=text):
            start_selection(data, label, root=tmp_path)


def test_columns_that_may_be_labels(samples, tmp_path):
    assert label_choices(samples)[:3] == ["patient", "arm", "g0"]
    packed = tmp_path / "t.tsv.gz"
    packed.write_bytes(gzip.compress(re.sub(",", "\t", samples.read_text()).encode()))
    assert label_choices(packed) == label_choices(samples)
    packed.write_bytes(b"\x1f\x8b nonsense")
    with pytest.raises(frot.InputError, match=r"t\.tsv\.gz is not a table of text"):
        label_choices(packed)
    assert label_choices(None) == []

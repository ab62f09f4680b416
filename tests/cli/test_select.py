import re
import sys
from html import unescape
from typing import Any

import numpy as np
import pytest

import frot
from frot.selection import FROTSelector, read_samples
from tests.selection.data_files import frame, read_tsv, write

SIGNAL = {"gene0", "gene1", "gene2"}


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "data.csv")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_every_kind_of_file(run, tmp_path, suffix):
    path = write(tmp_path / f"data{suffix}")
    done = run("select", path.name, "--label", "class", "--top", 3, "--table", "genes.tsv",
               "--drop", "batch")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "3 of 40 features selected." in done.stdout
    rows = read_tsv(tmp_path / "genes.tsv")
    assert {row["feature"] for row in rows if row["selected"] == "1"} == SIGNAL
    assert [int(row["rank"]) for row in rows] == list(range(1, 41))
    samples = read_samples(path, "class", drop=["batch"])
    selector = FROTSelector(3, groups=samples.groups()).fit(samples.X, samples.y)
    scores = selector.scores_[np.argsort(selector.ranking_)]
    assert [float(row["score"]) for row in rows] == pytest.approx(scores, rel=1e-6)
    q = selector.p_values[1][np.argsort(selector.ranking_)]
    assert [float(row["q"]) for row in rows] == pytest.approx(q, rel=1e-6)
    result = selector.result_
    assert f"optimum in [{result.lower:.8g}, {result.upper:.8g}]" in done.stdout
    assert f"eta {result.eta:.4g}" in done.stdout
    many = int((q <= 0.05).sum())
    assert f"Moderated t: {many} features with q <= 0.05 (Benjamini-Hochberg)" in done.stdout
    assert "40 samples of 40 features, 2 classes" in done.stderr


def test_what_is_up_in_a_class_is_up_by_a_positive_change(run, tmp_path):
    path = write(tmp_path / "data.csv")
    done = run("select", path.name, "--label", "class", "--drop", "batch", "--table", "g.tsv")
    assert done.exit_code == 0, done.output
    assert re.search(r"rank +feature +up in +by log2 +t +p +q +α", done.stdout)
    rows = read_tsv(tmp_path / "g.tsv")
    ups = {row["up_in"] for row in rows[:20]}
    assert ups == {"control", "treated"}
    for row in rows[:20]:
        change, t = float(row["log2_fold_change"]), float(row["t"])
        assert row["up_in"] == ("control" if t > 0.0 else "treated")
        assert change * t > 0.0
        shown = (
            rf"{row['rank']} +{row['feature']} +{row['up_in']} +{abs(change):.2f} +{abs(t):.1f} "
        )
        assert re.search(shown, done.stdout)


def test_direction_is_shown_and_written(run, tmp_path):
    path = write(tmp_path / "data.csv", classes=3)
    words = ["--label", "class", "--top", 3, "--drop", "batch"]
    done = run("select", path.name, *words, "--table", "g.tsv")
    assert done.exit_code == 0, done.output
    assert re.search(r"rank +feature +up in +by log2 +t +comparison", done.stdout)
    assert len(re.findall(r" vs rest: eta .* optimum in \[", done.stdout)) == 3
    rows = read_tsv(tmp_path / "g.tsv")
    for row in rows[:3]:
        named = row["comparison"].removesuffix(" vs rest")
        up = row["up_in"]
        assert (up, float(row["t"]) > 0.0) == (named, True)
        assert re.search(
            rf"{row['rank']} +{row['feature']} +{up} +[\d.]+ +[\d.]+ +{named}", done.stdout
        )
    assert {"mean_control", "mean_rescued", "mean_treated", "t", "p", "q"} <= set(rows[0])


def test_columns_of_text_are_named(run, data):
    done = run("select", data.name, "--label", "class", "--top", 3)
    assert done.exit_code == 0
    assert re.search(r"warning: 'remark': text, and so no feature", done.stderr)
    assert "patient" not in done.stderr  # it names the samples
    done = run("select", data.name, "--label", "class", "--id", "remark", "--drop", "patient")
    assert "warning: data.csv: 'batch' looks like metadata; left out" in done.stderr
    assert "--keep batch ranks it, --drop batch" in done.stderr
    assert "20 of 40 features selected." in done.stdout  # half


def test_genes_in_rows_and_labels_in_another_file(run, tmp_path, monkeypatch):
    table = frame().set_index("patient")
    genes = table[[name for name in table if str(name).startswith("gene")]]
    counts: Any = np.exp(genes).round().T
    counts.iloc[0, 0] = 5000
    counts.to_csv(tmp_path / "counts.txt", sep="\t")
    table.iloc[::-1][["class", "batch"]].to_csv(tmp_path / "arms.csv", sep=";")
    words = ["counts.txt", "--transpose", "--labels", "arms.csv", "--label", "class", "--top", 3]
    done = run("select", *words, "--drop", "gene7", "--drop", "gene8")
    assert done.exit_code == 0, done.output
    assert "40 samples of 38 features, 2 classes" in done.stderr
    assert re.search(r"raw counts .* up to 5,000\); --log1p ranks log", done.stderr)
    done = run("select", *words, "--log1p", "--report", "page.html", "--table", "genes.tsv")
    assert done.exit_code == 0, done.output
    assert "warning" not in done.stderr
    page = unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "frot select counts.txt --transpose --labels arms.csv --label class" in page
    samples = read_samples(
        tmp_path / "counts.txt", "class", labels=tmp_path / "arms.csv", transpose=True, log1p=True
    )
    selector = FROTSelector(3, groups=samples.groups()).fit(samples.X, samples.y)
    order = np.argsort(selector.ranking_)
    rows = read_tsv(tmp_path / "genes.tsv")
    assert [row["feature"] for row in rows] == [selector.groups_.names[i] for i in order]
    # Of counts, and not of their logarithms: as scanpy has it.
    means = [np.expm1(samples.X[samples.y == name].mean(axis=0)) for name in selector.classes_]
    changes = [float(row["log2_fold_change"]) for row in rows]
    np.testing.assert_allclose(changes, np.log2(means[0] / means[1])[order], atol=1e-6)
    assert "(log(1 + x) values)" in page
    done = run("select", *words[:1], *words[2:])
    assert done.exit_code == 2
    assert "is named in arms.csv ('P39', 'P38', 'P37' and 37 more); give --transpose" in done.stderr


def test_permutations_within_batches(run, data, tmp_path):
    words = ["--label", "class", "--top", 3, "--permutations", 99, "--block", "batch"]
    words += ["--table", "genes.tsv", "--seed", 4]
    done = run("select", data.name, *words)
    assert done.exit_code == 0, done.output
    rows = read_tsv(tmp_path / "genes.tsv")
    assert all(float(row["p"]) == 0.01 for row in rows[:3])
    assert re.search(
        r"99 permutations of Welch's t: \d+ features with q <= 0.05.* \(pooled null, pi0 ",
        done.stdout,
    )
    assert "Adjusted for 2 blocks; labels are permuted within blocks." in done.stdout
    assert re.search(r"Shape of 40 features, aligned: \d+ differ in form", done.stdout)
    # What an unfinished run would leave is gone.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "genes.tsv"]
    samples = read_samples(data, "class", block="batch")
    fitted = FROTSelector(3, groups=samples.groups())
    fitted.fit(samples.X, samples.y, samples.block)
    test = fitted.permutation_test(samples.X, samples.y, n_permutations=99, random_state=4)
    assert [float(row["p"]) for row in rows] == pytest.approx(test.p[np.argsort(fitted.ranking_)])


def test_the_page(run, data, tmp_path):
    done = run("select", data.name, "--label", "class", "--top", 3, "--report", "genes.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "genes.html").read_text(encoding="utf-8")
    assert "data.csv by class" in page
    assert "frot select data.csv --label class --top 3 --report genes.html" in page
    assert "moderated t-test of a linear model" in page
    assert "Wrote genes.html" in done.stderr


def test_names_of_classes_stay_as_they_are_in_messages(run, tmp_path):
    rows = ["class,g1,g2", *(f"therapy: yes,{i},{i * i}" for i in range(5)), "therapy: none,3,4"]
    (tmp_path / "geo.csv").write_text("\n".join(rows))
    done = run("select", "geo.csv", "--label", "class")
    assert done.exit_code == 2
    assert "error: label: class therapy: none has one sample" in done.stderr


def test_groups_from_a_file(run, data, tmp_path):
    genes = [f"gene{number}" for number in range(3, 40)]
    sets = [["SIGNAL", "-", *sorted(SIGNAL), *genes[:2]], ["NOISE", "-", *genes[2:]]]
    sets.append(["NONE", "-", "x"])
    (tmp_path / "sets.gmt").write_text("\n".join("\t".join(one) for one in sets) + "\n")
    words = ["--label", "class", "--top", 1, "--groups", "sets.gmt", "--report", "page.html"]
    done = run("select", data.name, *words)
    assert done.exit_code == 0, done.output
    assert "1 of 2 groups selected." in done.stdout
    assert "warning: 1 set has too few features in the data, or too many, and" in done.stderr
    assert re.search(r"1 +SIGNAL", done.stdout)


def test_tested_sets(run, data, tmp_path):
    genes = [f"gene{number}" for number in range(6, 40)]
    sets = [["SIGNAL", "up", *sorted(SIGNAL), *genes[:5], "absent"], ["NOISE", "-", *genes[5:]]]
    sets += [["TINY", "-", "gene1", "gene2"], ["TWIN", "-", *sorted(SIGNAL), *genes[10:20]]]
    (tmp_path / "sets.gmt").write_text("\n".join("\t".join(one) for one in sets) + "\n")
    words = ["--label", "class", "--top", 2, "--groups", "sets.gmt", "--permutations", 99]
    words += ["--table", "sets.tsv", "--report", "page.html"]
    done = run("select", data.name, *words, "--drop", "batch")
    assert done.exit_code == 0, done.output
    assert "left out: 'TINY'" in done.stderr
    assert "2 of 3 groups selected" in done.stdout
    assert "(competitive)" in done.stdout
    assert "of its leading edge with SIGNAL" in done.stdout
    rows = read_tsv(tmp_path / "sets.tsv")
    assert [row["pathway"] for row in rows] == ["SIGNAL", "TWIN", "NOISE"]
    assert (rows[0]["size"], rows[0]["listed"], rows[0]["up_in"]) == ("8", "9", "treated")
    assert set(rows[0]["leading_edge"].split(", ")[:3]) == SIGNAL
    assert float(rows[0]["p_competitive"]) <= 0.05
    assert [row["selected"] for row in rows] == ["1", "1", "0"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "--groups sets.gmt --permutations 99 --table sets.tsv" in page
    samples = read_samples(data, "class", drop="batch")
    selector = FROTSelector(2, groups=samples.groups("sets.gmt").limited())
    test = selector.fit(samples.X, samples.y).pathway_test(
        samples.X, samples.y, n_permutations=99, feature_names=samples.names, random_state=0
    )
    scores = [float(row["score"]) for row in rows]
    assert scores == pytest.approx(test.table["score"].tolist())
    (tmp_path / "sets.gmt").write_text("TINY\t-\tgene1\tgene2\n")
    refused = run("select", data.name, "--label", "class", "--groups", "sets.gmt")
    assert refused.exit_code == 2
    assert "none of 1 has 5 to 500 features of the data" in refused.stderr


def test_three_classes(run, tmp_path):
    write(tmp_path / "data.csv", classes=3)
    words = ["--label", "class", "--top", 3, "--score", "alpha", "--drop", "batch"]
    done = run("select", "data.csv", *words, "--table", "genes.tsv")
    assert done.exit_code == 0, done.output
    assert len(re.findall(r" vs rest: .*optimum in", done.stdout)) == 3
    scores = [float(row["score"]) for row in read_tsv(tmp_path / "genes.tsv")]
    assert scores == sorted(scores, reverse=True)
    assert sum(scores) > 0.99


# Of real ones: the longest symbols of the Hallmark sets, and a probe of an Affymetrix chip.
LONG_NAMES = ["HLA-DQB1-AS1#2", "ENSG00000141510.12", "AFFX-HUMRGE/M10098_M_at"]


@pytest.fixture
def long_names(tmp_path):
    """Three classes of long names, in three genes of long names and more of noise."""
    table = frame(classes=3).drop(columns="batch")
    places = dict(zip(("gene0", "gene1", "gene2"), LONG_NAMES, strict=True))
    labels = {"control": "untreated controls", "treated": "therapy: chemo", "rescued": "relapse"}
    table = table.rename(columns=places).replace({"class": labels})
    table.to_csv(tmp_path / "long.csv", index=False)
    return ["long.csv", "--label", "class", "--top", 3, "--permutations", 20]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_names_of_genes_are_whole_in_any_terminal(run, long_names, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    done = run("select", *long_names)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    (heading,) = [line for line in lines if line.split()[:2] == ["rank", "feature"]]
    last = next(i for i, line in enumerate(lines) if " selected." in line or "No room" in line)
    table = lines[lines.index(heading) : last]
    assert max(map(len, table)) <= width
    if width == 40:
        # Half of it is too narrow for the longest, which goes on in the next line.
        start = heading.index("feature")
        text = "".join(line[start : start + width // 2].strip() for line in table)
        assert set(LONG_NAMES) <= {name for name in LONG_NAMES if name in text}
    else:
        assert {line.split()[1] for line in table[2:5]} == set(LONG_NAMES)
    # What is shown beside them is whole, and what is not is named.
    known = ["up in", "by log2", "t", "comparison", "p", "q", "max-T", "α"]
    left = re.search(r"No room for (.*); a wider terminal or --table has them\.", done.stdout)
    missing = [] if left is None else left[1].split(", ")
    shown = re.split(r" {2,}", heading.strip())[2:]
    assert [name for name in known if name not in missing] == shown
    assert bool(missing) == (width < 100)
    if width >= 60:
        assert {"up in", "q"} <= set(shown)


def test_names_of_sets_are_whole_in_a_narrow_terminal(run, data, tmp_path, monkeypatch):
    genes = [f"gene{number}" for number in range(40)]
    name = "HALLMARK_EPITHELIAL_MESENCHYMAL_TRANSITION"
    sets = [[name, "-", *genes[:10]], ["HALLMARK_NOISE", "-", *genes[10:]]]
    (tmp_path / "sets.gmt").write_text("\n".join("\t".join(one) for one in sets) + "\n")
    words = ["--label", "class", "--groups", "sets.gmt", "--permutations", 20, "--top", 2]
    monkeypatch.setenv("COLUMNS", "80")
    done = run("select", data.name, *words)
    assert done.exit_code == 0, done.output
    assert re.search(r"1 +EPITHELIAL_MESENCHYMAL_TRANSITION +10 ", done.stdout)
    assert "No room for leading edge; a wider terminal or --table has them." in done.stdout


def test_missing_values(run, data):
    table = frame()
    table.loc[4, "gene7"] = np.nan
    table.to_csv(data, index=False)
    done = run("select", data.name, "--label", "class")
    assert done.exit_code == 2
    assert "--missing impute puts the mean of a feature there, --missing drop" in done.stderr
    assert run("select", data.name, "--label", "class", "--missing", "impute").exit_code == 0


def test_ctrl_c_ends_it(run, data, monkeypatch):
    def interrupted(self, *given):
        raise KeyboardInterrupt

    monkeypatch.setattr(frot.NetworkSimplex, "__call__", interrupted)
    done = run("select", data.name, "--label", "class", "--top", 3)
    assert done.exit_code == 130, done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no.csv", "--label", "class"], "no.csv does not exist; give the path of a file"),
        (["data.doc", "--label", "class"], "unknown suffix '.doc'; known are .csv"),
        (["data.csv", "--label", "kind"], "label: data.csv has no column 'kind'; it has 'patient'"),
        (["data.csv", "--label", "class", "--permutations", 9, "--block", "site"],
         "block: data.csv has no column 'site'"),
        (["data.csv", "--label", "class", "--block", "patient"],
         "block: every block holds a single class"),
        (["data.csv", "--label", "class", "--id", "who"], "id: data.csv has no column 'who'"),
        (["data.csv", "--label", "class", "--drop", "x"], "no column 'x'; check"),
        (["data.csv", "--label", "class", "--groups", "no.gmt"], "cannot read no.gmt: No such"),
        (["data.csv", "--label", "class", "--top", 900],
         "top: 900 features are asked for but there are 40; ask for 40 at most"),
        (["data.csv", "--label", "class", "--top", "many"], "top: 'many' is not a number"),
        (["data.csv", "--label", "class", "--permutations", 9, "--seed", -1], "seed: "),
        (["data.csv", "--label", "remark"], "label: has one class, fine"),
        (["data.csv", "--label", "patient"], "class P00 has one sample"),
        (["data.csv", "--label", "class", "--table", "no/g.tsv"], "no does not exist; make that"),
        (["data.csv", "--label", "class", "--table", "g.txt"], "g.txt must end in .tsv or .csv"),
        (["data.csv", "--label", "class", "--report", "g.pdf"], "g.pdf must end in .html"),
        (["data.csv", "--label", "class", "--table", "data.csv"], "data.csv is read from; give"),
        (["data.csv", "--label", "class", "--labels", "a.tsv", "--table", "a.tsv"],
         "a.tsv is read from; give"),
        (["broken.csv", "--label", "class"], "row 2, column 'gene1': 'oops' is not a number"),
        (["ragged.csv", "--label", "class"], "cannot read ragged.csv: "),
        (["short.csv", "--label", "class"], "short.csv, line 3: 1 cells where there should be 2"),
        (["empty.csv", "--label", "class"], "empty.csv holds no samples"),
        (["unlabelled.csv", "--label", "class"], "1 samples, the first in row 2, have no 'class'"),
        (["noise.parquet", "--label", "class"], "cannot read noise.parquet"),
    ],
)  # fmt: skip
def test_bad_input_is_two_and_one_sentence(run, data, tmp_path, words, message):
    (tmp_path / "broken.csv").write_text("class,gene1\na,1\na,oops\nb,2\nb,3\n")
    (tmp_path / "ragged.csv").write_text("class,gene1\na,1\na,1,1\nb,2\n")
    (tmp_path / "short.csv").write_text("class,gene1\na,1\na\nb,2\n")
    (tmp_path / "unlabelled.csv").write_text("class,gene1\na,1\n,1\nb,2\n")
    (tmp_path / "empty.csv").write_text("class,gene1\n")
    (tmp_path / "noise.parquet").write_bytes(b"not what the name says")
    done = run("select", *words)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert sum(line.startswith("error: ") for line in done.stderr.splitlines()) == 1


def test_anndata_that_is_not_installed(run, tmp_path, monkeypatch):
    (tmp_path / "data.h5ad").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "anndata", None)
    done = run("select", "data.h5ad", "--label", "class")
    assert done.exit_code == 2
    assert 'anndata is not installed; pip install "frot[anndata]"' in done.stderr

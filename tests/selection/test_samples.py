import gzip
import warnings
from dataclasses import replace

import numpy as np
import pandas
import pytest
from scipy import sparse

import frot
from frot.selection import FROTSelector, read_samples
from tests.selection.data_files import frame, write


def test_every_kind_of_file_reads_the_same(tmp_path):
    table = frame()
    for suffix in (".csv", ".tsv", ".tsv.gz", ".parquet"):
        found = read_samples(write(tmp_path / f"data{suffix}"), "class", block="batch")
        assert found.names == tuple(f"gene{i}" for i in range(40))
        assert pytest.approx(table[list(found.names)].to_numpy()) == found.X
        assert found.y.tolist() == table["class"].tolist()
        assert found.ids == tuple(table["patient"])
        assert found.block is not None
        assert found.block.tolist() == [str(number) for number in table["batch"]]
        assert found.ignored == ("remark",)
        assert repr(found).startswith(
            f"Samples(data{suffix}: {len(table)} samples of 40 features, "
        )
        assert len(repr(found)) < 120


@pytest.mark.parametrize(
    ("text", "ids", "names"),
    [
        ("u,kind,v\n1,a,2\n3,b,4\n", None, ("u", "v")),
        (",u,kind,v\n0,1,a,2\n1,3,b,4\n", ("0", "1"), ("u", "v")),  # pandas' index
        ("u,kind,v\np,1,a,2\nq,3,b,4\n", ("p", "q"), ("u", "v")),  # R's row names
        ('"x, y",kind,v\r\n1,"a",2\r\n3,"b",4\r\n', None, ("x, y", "v")),
        ("\ufeffu,kind,v\n1,a,2\n\n3,b,4\n", None, ("u", "v")),
    ],
)
def test_layouts_of_text(tmp_path, text, ids, names):
    (tmp_path / "data.csv").write_bytes(text.encode())
    found = read_samples(tmp_path / "data.csv", "kind")
    assert (found.ids, found.names, found.y.tolist()) == (ids, names, ["a", "b"])
    assert found.X.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_missing_cells(tmp_path):
    (tmp_path / "data.csv").write_text("kind,u,v\na,NA,1\nb,2,\nb,nan,3\n")
    found = read_samples(tmp_path / "data.csv", "kind").X
    assert np.isnan(found).tolist() == [[True, False], [False, True], [True, False]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind,kind,u\na,b,1\n", "two columns named 'kind'; rename one"),
        ("kind,remark\na,x\nb,y\n", "no column of numbers besides 'kind'"),
        ("u,v\n1,2\n", "label: .* has no column 'kind'; it has 'u', 'v'"),
    ],
)
def test_bad_text(tmp_path, text, message):
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(frot.InputError, match=message):
        read_samples(tmp_path / "data.csv", "kind")


GENES = {"TP53": [1.5, 3.0, 2.0, 0.5], "MYC": [2.0, 4.0, 1.0, 7.0], "BAX": [0.25, 0.5, 1.0, 9.0]}
SAMPLES = ["s1", "s2", "s3", "s4"]
CLASSES = ["sick", "well", "sick", "well"]


def write_genes(path, delimiter="\t", point="."):
    rows = [["gene", *SAMPLES], *([name, *map(str, row)] for name, row in GENES.items())]
    text = "\n".join(delimiter.join(row).replace(".", point) for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_labels(path, order=(2, 0, 3, 1), text="sample,age,arm\n"):
    for row in order:
        text += f"{SAMPLES[row]},{30 + row},{CLASSES[row]}\n"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "delimiter", "point"),
    [("g.tsv", "\t", "."), ("g.txt", " ", "."), ("g.csv", ";", ","), ("g.tsv.gz", "\t", ",")],
)
def test_genes_in_rows_and_labels_in_another_file(tmp_path, name, delimiter, point):
    genes = write_genes(tmp_path / name, delimiter, point)
    labels = write_labels(tmp_path / "arms.csv")
    found = read_samples(genes, "arm", labels=labels, transpose=True, block="age")
    assert found.names == tuple(GENES)
    assert found.ids == tuple(SAMPLES)
    assert found.X.T.tolist() == list(GENES.values())
    assert found.y.tolist() == CLASSES
    assert found.block is not None
    assert found.block.tolist() == ["30", "31", "32", "33"]


def test_every_kind_of_file_can_be_transposed(tmp_path):
    values = np.array(list(GENES.values()))
    labels = write_labels(tmp_path / "arms.csv")
    frame = pandas.DataFrame(values, columns=pandas.Index(SAMPLES), index=pandas.Index(list(GENES)))
    frame.to_parquet(tmp_path / "g.parquet")
    tab = "\t"
    rows = "".join(f"{gene}\t-\t{tab.join(map(str, row))}\n" for gene, row in GENES.items())
    names = tab.join(SAMPLES)
    (tmp_path / "g.gct").write_text(f"#1.2\n3\t4\nName\tDescription\t{names}\n{rows}")
    for kind in (".parquet", ".gct"):
        found = read_samples(tmp_path / f"g{kind}", "arm", labels=labels, transpose=kind != ".gct")
        assert found.X.tolist() == values.T.tolist()
        assert (found.names, found.y.tolist()) == (tuple(GENES), CLASSES)


def test_labels_may_be_a_row_of_genes_in_rows(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("id,symbol,s1,s2\narm,,sick,well\nE1,TP53,1,2\nsite,,A,B\nE2,MYC,3,4\n")
    found = read_samples(path, "arm", transpose=True)
    assert (found.names, found.y.tolist()) == (("E1", "E2"), ["sick", "well"])
    assert found.ignored == ("site", "symbol")
    assert read_samples(path, "arm", transpose=True, drop=["symbol", "site"]).ignored == ()
    with pytest.raises(frot.InputError, match="no row 'kind'"):
        read_samples(path, "kind", transpose=True)
    with pytest.raises(frot.InputError, match="it has a row of that name: give transpose=True"):
        read_samples(path, "arm")
    with pytest.raises(frot.InputError, match="has no column 'name'"):
        read_samples(path, "arm", transpose=True, ids="name")


def test_genes_are_named_by_the_column_that_is_asked_for(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("entrez,symbol,s1,s2\n7157,TP53,1,2\n4609,MYC,3,4\n")
    labels = write_labels(tmp_path / "arms.csv", order=(1, 0))
    found = read_samples(path, "arm", labels=labels, transpose=True)
    assert found.names == ("7157", "4609")
    found = read_samples(path, "arm", labels=labels, transpose=True, ids="symbol", drop="entrez")
    assert found.names == ("TP53", "MYC")


def test_who_is_in_one_file_only_is_left_out_in_one_sentence(tmp_path):
    genes = write_genes(tmp_path / "g.tsv")
    labels = write_labels(tmp_path / "arms.csv", order=(3, 1, 0))
    with labels.open("a") as file:
        file.write("s9,50,well\n")
    message = (
        r"1 of 4 samples of .* have no 'arm' there \('s3'\), and 1 of its rows .* \('s9'\); left"
    )
    with pytest.warns(frot.DataWarning, match=message):
        found = read_samples(genes, "arm", labels=labels, transpose=True)
    assert (found.ids, found.y.tolist()) == (("s1", "s2", "s4"), ["sick", "well", "well"])
    assert found.X[:, 0].tolist() == [1.5, 3.0, 0.5]


def test_classes_in_the_order_of_the_samples(tmp_path):
    genes = write_genes(tmp_path / "g.tsv")
    (tmp_path / "arms.cls").write_text(f"4 2 1\n# sick well\n{' '.join(CLASSES)}\n")
    found = read_samples(genes, "arm", labels=tmp_path / "arms.cls", transpose=True)
    assert found.y.tolist() == CLASSES
    # By numbers, of which the first stands for the first name.
    number = {CLASSES[0]: "1"}
    numbers = " ".join(number.get(one, "0") for one in CLASSES)
    (tmp_path / "arms.cls").write_text(f"4 2 1\n# sick well\n{numbers}\n")
    named = read_samples(genes, "arm", labels=tmp_path / "arms.cls", transpose=True)
    assert named.y.tolist() == ["sick" if one == CLASSES[0] else "well" for one in CLASSES]
    (tmp_path / "arms.cls").write_text("2 2 1\n# sick well\nsick well\n")
    with pytest.raises(frot.InputError, match=r"2 classes for the 4 samples of .*; it needs one"):
        read_samples(genes, "arm", labels=tmp_path / "arms.cls", transpose=True)


def test_names_as_r_writes_them_are_matched(tmp_path):
    (tmp_path / "g.csv").write_text("X01.a,X02.b\nTP53,1,2\nMYC,3,5\n")  # row names, R's columns
    (tmp_path / "arms.csv").write_text("arm,who\nwell,02-b\nsick,01-a\n")
    found = read_samples(tmp_path / "g.csv", "arm", labels=tmp_path / "arms.csv", transpose=True)
    assert found.y.tolist() == ["sick", "well"]


def test_labels_that_are_there_twice(tmp_path):
    genes, labels = write_genes(tmp_path / "g.tsv"), tmp_path / "arms.csv"
    write_labels(labels, order=(0, 1, 2, 3, 2))
    with pytest.raises(frot.InputError, match=r"arms.csv has several rows of 's3'; keep one"):
        read_samples(genes, "arm", labels=labels, transpose=True)
    write_labels(labels, text="sample,arm,arm\n")
    with pytest.raises(frot.InputError, match=r"two columns named 'arm'; rename one"):
        read_samples(genes, "arm", labels=labels, transpose=True)


def test_samples_named_by_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("sample,u,v\n11,1,2\n12,3,4\n")
    (tmp_path / "arms.csv").write_text("sample,arm\n12,well\n11,sick\n")
    found = read_samples(tmp_path / "a.csv", "arm", labels=tmp_path / "arms.csv")
    assert (found.names, found.ids, found.y.tolist()) == (
        ("u", "v"),
        ("11", "12"),
        ["sick", "well"],
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "kind"}, r"label: .*arms.csv has no column 'kind'; it has 'sample', 'age'"),
        ({"transpose": False}, r"no sample of .* is named in .*; give transpose=True"),
        ({"transpose": 2}, "transpose"),
        ({"labels": "arms.npz"}, r"unknown suffix '\.npz'"),
        ({"block": "site"}, "block: .*g.tsv has no row 'site'"),
        ({"drop": 7}, "drop: 7 is not a list of names"),
        ({"keep": "x"}, "keep: .* has no column 'x'; check"),
    ],
)
def test_bad_options(tmp_path, options, message):
    genes = write_genes(tmp_path / "g.tsv")
    given = {"label": "arm", "labels": write_labels(tmp_path / "arms.csv"), "transpose": True}
    with pytest.raises(frot.InputError, match=message):
        read_samples(genes, **{**given, **options})


def test_metadata_are_not_ranked_silently(tmp_path):
    rows = [f"{i + 1},{30 + i % 3},{i % 2},{1.5 * i},{'ab'[i % 2]}\n" for i in range(8)]
    (tmp_path / "a.csv").write_text("number,Age_years,ID1,gene,arm\n" + "".join(rows))
    with pytest.warns(frot.DataWarning, match=r"'number', 'Age_years' look like metadata; left"):
        found = read_samples(tmp_path / "a.csv", "arm")
    assert (found.names, found.metadata) == (("ID1", "gene"), ("number", "Age_years"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = read_samples(tmp_path / "a.csv", "arm", keep="Age_years", drop=["number"])
        assert kept.names == ("Age_years", "ID1", "gene")


def test_counts_and_logarithms(tmp_path):
    genes, labels = tmp_path / "g.csv", write_labels(tmp_path / "arms.csv")
    options = {"labels": labels, "transpose": True}
    genes.write_text("gene,s1,s2,s3,s4\nTP53,0,120,5312,7\nMYC,4,,0,12\n")
    with pytest.warns(frot.DataWarning, match=r"raw counts \(whole numbers up to 5,312\); log1p=T"):
        counts = read_samples(genes, "arm", **options)
    logged = read_samples(genes, "arm", log1p=True, **options)
    np.testing.assert_allclose(logged.X, np.log1p(counts.X))
    write_genes(genes, ",")
    with pytest.warns(frot.DataWarning, match=r"largest number .* is 9, as if logarithms"):
        read_samples(genes, "arm", log1p=True, **options)
    genes.write_text("gene,s1,s2,s3,s4\nTP53,0,120,-3,7\n")
    with pytest.raises(frot.InputError, match=r"log1p: .* negative numbers, the least -3"):
        read_samples(genes, "arm", log1p=True, **options)


def test_names_that_repeat_or_were_made_dates(tmp_path):
    (tmp_path / "a.csv").write_text("arm,TP53,2-Sep,TP53\na,1.5,2,3\nb,2,3,4\n")
    with pytest.warns(frot.DataWarning) as seen:
        found = read_samples(tmp_path / "a.csv", "arm")
    said = [str(one.message) for one in seen]
    assert any("1 name stands for several features ('TP53')" in text for text in said)
    assert any("named like dates ('2-Sep')" in text for text in said)
    assert found.groups().names == ("TP53", "2-Sep", "TP53#2")


def test_messages_are_short_whatever_the_header(tmp_path):
    wide = "|".join(f"ENSG{i:011d}" for i in range(5_000))
    (tmp_path / "a.csv").write_text(f"{wide}\n{'|'.join('1' * 5_000)}\n")
    with pytest.raises(frot.InputError) as caught:
        read_samples(tmp_path / "a.csv", "arm")
    assert len(str(caught.value)) < 600 + len(str(tmp_path))
    (tmp_path / "b.csv").write_text(f"arm,{wide}\na,{wide}\nb,1\n")
    with pytest.raises(frot.InputError) as caught:
        read_samples(tmp_path / "b.csv", "arm")
    assert len(str(caught.value)) < 600 + len(str(tmp_path))


def test_missing_values_name_their_option_in_python(tmp_path):
    (tmp_path / "a.csv").write_text("arm,u\na,1.5\na,\nb,2\nb,3\n")
    samples = read_samples(tmp_path / "a.csv", "arm")
    with pytest.raises(frot.InputError, match=r"X: contains NaN.*; missing='impute' puts the mean"):
        FROTSelector(1).fit(samples.X, samples.y)
    with pytest.raises(frot.InputError, match="NaN, 1 of 4, the first in row 1, feature 'u'; "):
        FROTSelector(1).fit(samples.to_frame(), samples.y)
    FROTSelector(1, missing="impute").fit(samples.X, samples.y)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_frame_brings_the_names_to_the_selector(tmp_path, kind):
    found = read_samples(write(tmp_path / "data.csv"), "class", block="batch")
    kept = replace(found, X=kind(found.X))
    table = kept.to_frame()
    assert table.index.tolist() == list(found.ids or ())
    assert np.array_equal(table.to_numpy(), found.X)
    selector = FROTSelector(plan=False).fit(table, found.y)
    assert tuple(selector.feature_names_in_) == found.names
    plain = FROTSelector(plan=False).fit(found.X, found.y)
    assert selector.scores_ == pytest.approx(plain.scores_)

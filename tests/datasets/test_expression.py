import shutil
from typing import Any

import numpy as np
import pytest

import frot
from frot.datasets import Expression, available, load_breast_cancer, load_expression
from frot.datasets._expression import read_gsea, read_mat, read_npz
from frot.datasets.catalogue import cache_folder


def test_an_npz_of_objects_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=np.array(["a", None], dtype=object))
    with pytest.raises(frot.InputError, match=r"a\.npz cannot be read"):
        read_npz(tmp_path / "a.npz")


def test_a_mat_file_without_labels(tmp_path):
    from scipy.io import savemat

    savemat(tmp_path / "a.mat", {"X": np.eye(2)})
    with pytest.raises(frot.InputError, match="as a MATLAB file with arrays X and Y: 'Y'"):
        read_mat(tmp_path / "a.mat")


def test_a_table_with_a_cell_that_is_no_number(tmp_path):
    (tmp_path / "a.txt").write_text("Gene\tNAME\ts1\nTP53\tp\tmany\n")
    (tmp_path / "a.cls").write_text("1 1 1\n# A\nA\n")
    with pytest.raises(frot.InputError, match=r"a\.txt cannot be read as a table of genes"):
        read_gsea(tmp_path / "a.txt", tmp_path / "a.cls")


def test_a_cls_file_that_is_cut_short(tmp_path):
    (tmp_path / "a.txt").write_text("Gene\tNAME\ts1\nTP53\tp\t1\n")
    (tmp_path / "a.cls").write_text("1 1 1\n")
    with pytest.raises(frot.InputError, match=r"a\.cls cannot be read as a \.cls file"):
        read_gsea(tmp_path / "a.txt", tmp_path / "a.cls")


@pytest.mark.parametrize("below", ["", "expression"])
def test_a_set_is_found_in_a_folder_and_below_it(small, tmp_path, below):
    folder = tmp_path / "data" / below
    folder.mkdir(parents=True)
    shutil.copy(small / "small.npz", folder)
    data = load_expression("npz", root=tmp_path / "data")
    assert data.shape == (4, 3)
    assert data.X.dtype == np.float64
    assert data.counts == {"a": 2, "b": 2}
    assert data.feature_names == ("TP53", "MYC", "TP53")
    assert available(tmp_path / "data") == ("npz",)


def test_the_public_name_of_a_file_will_do(small):
    data = load_expression("mat", root=small)
    assert data.counts == {-1: 2, 1: 2}
    assert data.feature_names == ("x0", "x1", "x2")


def test_the_environment_names_a_folder(small, monkeypatch):
    monkeypatch.setenv("FROT_DATA", str(small))
    assert available() == ("mat", "npz")
    assert load_expression("npz").name == "npz"


def test_shared_data_beside_the_working_folder(small, monkeypatch, tmp_path):
    shared, work = tmp_path / "shared" / "data" / "expression", tmp_path / "work"
    shared.mkdir(parents=True)
    work.mkdir()
    shutil.copy(small / "small.npz", shared)
    monkeypatch.chdir(work)
    assert load_expression("npz").shape == (4, 3)


def test_an_unknown_set_is_answered_with_the_known(small):
    with pytest.raises(frot.InputError, match=r"name='colno' is not a data set; give one of 'colo"):
        load_expression("colno")


class TestMissing:
    def test_a_set_says_where_to_get_it(self, small, tmp_path):
        with pytest.raises(frot.InputError, match=r"pass download=True, or get file.*Small\.mat"):
            load_expression("mat", root=tmp_path)

    def test_an_r_file_is_not_downloaded_but_explained(self, small, tmp_path):
        with pytest.raises(frot.InputError, match=r"example\.org/small\.RData, which R reads"):
            load_expression("npz", root=tmp_path, download=True)


class TestDownload:
    def test_it_is_announced_checked_and_kept(self, small, capsys):
        data = load_expression("mat", download=True)
        assert "downloading file:" in capsys.readouterr().err
        assert [path.name for path in cache_folder().iterdir()] == ["small.mat"]
        np.testing.assert_array_equal(load_expression("mat").X, data.X)
        assert capsys.readouterr().err == ""

    def test_it_goes_into_the_root(self, small, tmp_path, capsys):
        load_expression("mat", root=tmp_path / "mine", download=True)
        assert (tmp_path / "mine" / "small.mat").is_file()
        assert not cache_folder().exists()

    def test_another_file_is_not_left_behind(self, small, capsys):
        (small / "Small.mat").write_bytes(b"a page that says the file has moved")
        with pytest.raises(frot.InputError, match="SHA-256 begins"):
            load_expression("mat", download=True)
        assert list(cache_folder().iterdir()) == []

    def test_no_answer(self, small, capsys):
        (small / "Small.mat").unlink()
        with pytest.raises(frot.InputError, match="cannot be downloaded"):
            load_expression("mat", download=True)
        assert list(cache_folder().iterdir()) == []


class TestChecks:
    def test_a_changed_file(self, small):
        with (small / "Small.mat").open("ab") as file:
            file.write(b"x")
        with pytest.raises(frot.InputError, match=r"is not the small\.mat that is meant"):
            load_expression("mat", root=small)

    def test_a_changed_value(self, small):
        with np.load(small / "small.npz") as content:
            arrays = dict(content)
        arrays["X"][0, 0] += 1.0
        np.savez(small / "small.npz", **arrays)
        with pytest.raises(frot.InputError, match="does not hold the values that are meant"):
            load_expression("npz", root=small)

    def test_another_conversion_of_the_same_values(self, small):
        with np.load(small / "small.npz") as content:
            arrays = dict(content)
        np.savez_compressed(small / "small.npz", X=arrays["X"].astype("f8"), y=arrays["y"])
        assert load_expression("npz", root=small).feature_names == ("x0", "x1", "x2")

    def test_another_size(self, small):
        np.savez(small / "small.npz", X=np.eye(2), y=["a", "b"])
        with pytest.raises(frot.InputError, match="holds 2 samples of 2 features and 2 labels"):
            load_expression("npz", root=small)

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 but no more", b"text"])
    def test_a_broken_file(self, small, content):
        (small / "small.npz").write_bytes(content)
        with pytest.raises(frot.InputError, match=r"small\.npz cannot be read as an \.npz file"):
            load_expression("npz", root=small)


def made(**changed):
    content = {
        "X": np.arange(6.0).reshape(3, 2),
        "y": np.array(["ill", "well", "ill"]),
        "feature_names": ("TP53", "MYC"),
        "name": "made",
        "source": "",
        "description": "",
        "citation": "",
        "licence": "",
    }
    return Expression(**{**content, **changed})


def test_what_it_says_about_itself():
    data = made()
    assert data.shape == (3, 2)
    assert data.classes == ("ill", "well")
    assert data.counts == {"ill": 2, "well": 1}
    assert repr(data) == "Expression('made': 3 samples of 2 features, 2 'ill' and 1 'well')"


@pytest.mark.parametrize(
    "changed", [{"y": np.array(["ill"])}, {"feature_names": ("TP53",)}, {"X": np.zeros(3)}]
)
def test_parts_that_do_not_fit(changed):
    with pytest.raises(frot.InputError, match="one label per row and one name per column"):
        made(**changed)


def test_frame_has_every_column_by_its_own_name():
    frame = made(feature_names=("class", "class")).as_frame()
    assert list(frame.columns) == ["class#2", "class#3", "class"]
    assert frame["class#3"].tolist() == [1.0, 3.0, 5.0]
    assert frame["class"].tolist() == ["ill", "well", "ill"]


def test_breast_cancer_is_scikit_learns():
    from sklearn import datasets

    theirs: Any = datasets.load_breast_cancer()
    data = load_breast_cancer()
    np.testing.assert_array_equal(data.X, theirs.data)
    np.testing.assert_array_equal(data.y == "benign", theirs.target == 1)

import shutil

import numpy as np
import pytest

import frot
from frot.datasets import available, load_expression
from frot.datasets.catalogue import cache_folder


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

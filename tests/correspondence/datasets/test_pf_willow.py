import numpy as np
import pytest
from scipy.io import loadmat, savemat

from frot import InputError
from frot.correspondence.datasets import pf_willow
from frot.correspondence.datasets._pf_willow import CLASSES, PF_WILLOW
from frot.datasets.catalogue import folders
from tests.correspondence import generated


def test_the_raw_release(tmp_path):
    pairs = pf_willow(generated.pf_willow(tmp_path))
    assert pairs.counts == {"car(G)": 6, "duck(S)": 6}
    assert pairs.skipped == ()
    pair = next(p for p in pairs if p.id == "duck(S)/photo_0-photo_2")
    np.testing.assert_allclose(pair.source_points, generated.points(10, 1))
    np.testing.assert_allclose(pair.target_points, generated.move(pair.source_points, 2))
    assert pair.length == np.ptp(pair.target_points, axis=0).max()
    assert "larger side of the target points' box" in pairs.protocol


def test_the_layout_with_a_list(tmp_path):
    pairs = pf_willow(generated.pf_willow_list(tmp_path))
    assert [pair.id for pair in pairs] == ["car(G)/photo_0-photo_1", "car(G)/photo_1-photo_2"]
    raw = {pair.id: pair for pair in pf_willow(tmp_path / "PF-dataset-WILLOW")}
    for pair in pairs:
        np.testing.assert_allclose(pair.source_points, raw[pair.id].source_points)
        np.testing.assert_allclose(pair.target_points, raw[pair.id].target_points)
        assert pair.source == raw[pair.id].source
        assert pair.length == pytest.approx(raw[pair.id].length)


def test_the_folder_above_will_do(tmp_path):
    generated.pf_willow(tmp_path / "pf-willow" / "PF-dataset-WILLOW")
    assert len(pf_willow(tmp_path)) == 12


class TestBroken:
    """One bad annotation costs its own pairs, and is named."""

    def check(self, root, reason, pairs=8):
        found = pf_willow(root)
        assert len(found) == pairs
        assert len(found.skipped) == 1
        assert found.skipped[0].startswith("car(G)/photo_1.mat was skipped: ")
        assert reason in found.skipped[0]

    @pytest.fixture
    def root(self, tmp_path):
        return generated.pf_willow(tmp_path)

    def test_not_a_file_of_matlab(self, root):
        (root / "car(G)" / "photo_1.mat").write_text("nothing")
        self.check(root, "photo_1.mat cannot be read")

    def test_without_its_variable(self, root):
        savemat(root / "car(G)" / "photo_1.mat", {"other": [1.0]})
        self.check(root, "photo_1.mat has no pts_coord")

    def test_too_few_points(self, root):
        savemat(root / "car(G)" / "photo_1.mat", {"pts_coord": np.ones((2, 9))})
        self.check(root, "its pts_coord is of shape (2, 9), not (2, 10)")

    @pytest.mark.parametrize(
        ("value", "reason"),
        [(np.nan, "not all finite"), (90.0, "is 26.0 pixels outside of photo_1.png, 64 x 48")],
    )
    def test_points_that_cannot_be(self, root, value, reason):
        path = root / "car(G)" / "photo_1.mat"
        where = loadmat(path)["pts_coord"]
        where[0, 3] = value
        savemat(path, {"pts_coord": where})
        self.check(root, reason)

    def test_no_photograph(self, root):
        (root / "car(G)" / "photo_1.png").unlink()
        self.check(root, "photo_1.png is missing")

    def test_a_photograph_that_is_none(self, root):
        (root / "car(G)" / "photo_1.png").write_bytes(b"GIF, or not")
        self.check(root, "photo_1.png is not a photograph that can be read")

    def test_lines_of_the_list(self, tmp_path):
        root = generated.pf_willow_list(tmp_path)
        with (root / "test_pairs.csv").open("a") as file:
            file.write("a.png,b.png,1\n\n")
            file.write("a.png,b.png" + ",1" * 39 + ",x\n")
            file.write("a.png,b.png" + ",1" * 40 + "\n")
        pairs = pf_willow(root)
        assert len(pairs) == 2
        assert [text.partition(" of ")[0] for text in pairs.skipped] == [
            "line 4",
            "line 6",
            "line 7",
        ]
        reasons = ["it has 3 columns, not 42", "its points are not numbers", "a.png is missing"]
        for text, reason in zip(pairs.skipped, reasons, strict=True):
            assert reason in text


def test_a_missing_set_says_what_was_expected_and_where_it_is(tmp_path, monkeypatch):
    with pytest.raises(
        InputError, match=r"PF-WILLOW is not in .* car\(G\) .* get it from https://"
    ):
        pf_willow(tmp_path)
    with pytest.raises(InputError, match=r"root: .*nowhere is not a folder"):
        pf_willow(tmp_path / "nowhere")


def test_what_is_found_without_asking_has_to_be_the_release(tmp_path, monkeypatch):
    generated.pf_willow(tmp_path)
    monkeypatch.setenv("FROT_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"is not PF-WILLOW as it was released: .* pass root"):
        pf_willow()


def test_the_release_itself():
    places = [place / name for place in folders() for name in ("", *PF_WILLOW.folders)]
    if not any(place.is_dir() and PF_WILLOW.is_it(place) for place in places):
        pytest.skip("PF-WILLOW is not there")
    pairs = pf_willow()
    assert pairs.counts == dict.fromkeys(CLASSES, 90)
    assert pairs.skipped == ()
    assert all(pair.source_points.shape == (10, 2) for pair in pairs)
    assert min(pair.length for pair in pairs) > 30.0

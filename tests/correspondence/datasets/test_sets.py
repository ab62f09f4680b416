import csv
import json

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from frot import InputError
from frot.correspondence.datasets import PAIR_SETS, load_pairs
from frot.correspondence.datasets.sets import SOURCES, WILLOW_CLASSES
from frot.correspondence.evaluation.scores import mask_score, outline_mask
from frot.datasets.catalogue import folders
from tests.correspondence import generated

MADE = {
    "pf-willow": generated.pf_willow,
    "spair": generated.spair,
    "pf-pascal": generated.pf_pascal,
    "caltech": generated.caltech,
    "birds": generated.birds,
}


@pytest.mark.parametrize("name", PAIR_SETS)
def test_every_set_loads_and_says_how_it_is_scored(name, tmp_path):
    pairs = load_pairs(name, MADE[name](tmp_path))
    assert pairs.skipped == ()
    assert len(pairs) > 0
    assert pairs.protocol.startswith(pairs.name.split(" ")[0])
    for pair in pairs:
        assert pair.source.is_file()
        assert pair.target.is_file()
        assert pair.length > 0.0


def test_spair(tmp_path):
    pairs = load_pairs("spair", generated.spair(tmp_path / "SPair-71k").parent)
    assert pairs.name == "SPair-71k test"
    assert pairs.counts == {"cat": 2, "tvmonitor": 1}
    pair = pairs.pairs[1]
    assert pair.id == "000001-2008_000000-2008_000001:tvmonitor"
    assert pair.length == 40.0  # the longer side of the box, not the extent of the points
    assert pair.tags["viewpoint_variation"] == "1"
    np.testing.assert_allclose(pair.target_points, generated.move(pair.source_points))


def test_birds(tmp_path):
    root = generated.birds(tmp_path)
    pairs = load_pairs("birds", root)
    assert pairs.counts == {"Gray Kingbird": 6, "Marsh Wren": 6}
    pair = pairs.pairs[1]
    assert pair.id == "000-002"
    # Parts 1 and 3 are missing in one of the two; the box is x, y, w, h.
    assert (len(pair.source_points), pair.length) == (4, 40.0)
    np.testing.assert_allclose(pair.target_points, generated.move(pair.source_points, 2))
    assert "12 of the 240 published pairs" in pairs.notes[0]
    content = json.loads((root / "pairs.json").read_text())
    del content["images"]["000.jpg"]["box"]
    (root / "pairs.json").write_text(json.dumps(content))
    assert len(load_pairs("birds", root)) == 10
    (root / "002.jpg").unlink()
    assert any("002.jpg is missing" in text for text in load_pairs("birds", root).skipped)
    (root / "pairs.json").write_text("[]")
    with pytest.raises(InputError, match="no JSON object with images and pairs"):
        load_pairs("birds", root)


def test_pf_pascal(tmp_path):
    root = generated.pf_pascal(tmp_path)
    (pair,) = load_pairs("pf-pascal", root)
    assert (pair.category, pair.length) == ("cat", generated.WIDTH)
    assert len(pair.source_points) == 4  # one point is not seen in either
    np.testing.assert_allclose(pair.source_points, generated.points(6)[2:])
    np.testing.assert_allclose(pair.target_points, generated.move(pair.source_points))
    training = load_pairs("pf-pascal", root, "trn")
    assert len(training) == 1
    assert training.skipped == (
        "line 3 of trn_pairs.csv was skipped: it is a mirrored copy of another pair",
    )


def test_caltech(tmp_path):
    pairs = load_pairs("caltech", generated.caltech(tmp_path))
    (pair,) = pairs
    assert pairs.score == "masks"
    assert pair.category == "anchor"
    h, w = generated.HEIGHT, generated.WIDTH
    truth = outline_mask(pair.target_points, h, w)
    found = outline_mask(generated.move(pair.source_points), h, w)
    assert truth.sum() > 200
    assert mask_score(found, truth).iou > 0.97


class TestBroken:
    """What is broken is left out and named, whatever the data set."""

    def one(self, pairs, count, *reasons):
        assert len(pairs) == count
        assert len(pairs.skipped) == 1
        for reason in reasons:
            assert reason in pairs.skipped[0]

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"src_kps": [[1.0, 2.0]]}, "it has 1 source points and 4 target points"),
            ({"src_kps": [[1.0], [2.0]]}, "its source points are not pairs of x and y"),
            ({"trg_kps": [["a", 1.0]]}, "its target points are not numbers"),
            ({"kps_ids": ["0"]}, "it has 4 points and 1 names for them"),
            ({"trg_bndbox": [1, 2, 3]}, "its box is [1, 2, 3], not four numbers"),
            ({"trg_bndbox": [5, 5, 5, 5]}, "its box [5, 5, 5, 5] is empty"),
            ({"src_imsize": [500, 375, 3]}, "is 64 x 48, and annotated as [500, 375, 3]"),
            ({"src_kps": None}, "its source points are not"),
            ({"src_imsize": None}, "its parts are not lists where lists belong"),
        ],
    )
    def test_annotations_of_spair(self, tmp_path, change, reason):
        root = generated.spair(tmp_path)
        (path,) = (root / "PairAnnotation" / "test").glob("000001*")
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        pairs = load_pairs("spair", root)
        self.one(pairs, 2, "000001-2008_000000-2008_000001:tvmonitor was skipped: ", reason)

    def test_files_of_spair(self, tmp_path):
        root = generated.spair(tmp_path)
        (first,) = (root / "PairAnnotation" / "test").glob("000000*")
        first.write_text('{"src_kps": [')
        (second,) = (root / "PairAnnotation" / "test").glob("000001*")
        second.unlink()
        third = next((root / "PairAnnotation" / "test").glob("000002*"))
        third.write_text("{}")
        with (root / "Layout" / "large" / "test.txt").open("a") as file:
            file.write("what\n")
        with pytest.raises(InputError, match=r"has no pair that can be used; the first: 000000.*"):
            load_pairs("spair", root)
        skipped = SOURCES["spair"].load(root, "test").skipped
        for reason in ("no JSON", "json is missing", "has no src_imsize", "id-source-target:class"):
            assert sum(reason in text for text in skipped) == 1

    def test_a_line_that_is_there_twice(self, tmp_path):
        root = generated.spair(tmp_path)
        layout = root / "Layout" / "large" / "test.txt"
        layout.write_text(layout.read_text() + layout.read_text().split()[0] + "\n")
        self.one(load_pairs("spair", root), 3, "was there before")

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            (["a.jpg", "b.jpg"], "it has 2 columns"),
            (["a.jpg", "b.jpg", 21], "its class is '21', not a number from 1 to 20"),
            (["a.jpg", "b.jpg", 0], "its class is '0'"),
            (["a.jpg", "b.jpg", "cat"], "its class is 'cat'"),
            (["a.jpg", "b.jpg", 8], "a.mat is missing"),
        ],
    )
    def test_lines_of_pf_pascal(self, tmp_path, row, reason):
        root = generated.pf_pascal(tmp_path)
        with (root / "test_pairs.csv").open("a") as file:
            file.write(",".join(map(str, row)) + "\n")
        self.one(load_pairs("pf-pascal", root), 1, "line 3 of test_pairs.csv", reason)

    @pytest.mark.parametrize(
        ("kps", "reason"),
        [
            (np.full((6, 2), np.nan), "no point is seen in both"),
            (np.ones((5, 2)), "it has 5 source points and 6 target points"),
            (np.ones(3), "has kps of shape (1, 3)"),
        ],
    )
    def test_annotations_of_pf_pascal(self, tmp_path, kps, reason):
        root = generated.pf_pascal(tmp_path)
        path = root / "Annotations" / "cat" / "2008_000000.mat"
        savemat(path, {"kps": kps, "bbox": [[5.0, 5.0, 50.0, 40.0]]})
        with pytest.raises(InputError, match=r"has no pair that can be used"):
            load_pairs("pf-pascal", root)
        skipped = SOURCES["pf-pascal"].load(root, "test").skipped
        assert any(reason in text for text in skipped)

    @pytest.mark.parametrize(
        ("column", "text", "reason"),
        [
            (3, "1,2", "its source outline has 2 x and 5 y"),
            (3, "1,2,x,4,5", "its outline is not of numbers"),
            (5, "1,1,1,1,1,nan", "its target points are not all finite"),
            (0, "anchor/none.jpg", "none.jpg is missing"),
        ],
    )
    def test_lines_of_caltech(self, tmp_path, column, text, reason):
        root = generated.caltech(tmp_path)
        path = root / "test_pairs_caltech_with_category.csv"
        with path.open(newline="") as file:
            rows = list(csv.reader(file))
        bad = list(rows[1])
        bad[column] = text
        generated.write_rows(path, [*rows, bad])
        self.one(load_pairs("caltech", root), 1, "line 3 of ", reason)


def test_names_and_splits_that_are_none(tmp_path):
    with pytest.raises(InputError, match=r"name='tss' is not a set of pairs; give one of 'pf-wil"):
        load_pairs("tss", tmp_path)
    with pytest.raises(InputError, match=r"split='train' is not one of SPair-71k; give 'trn'"):
        load_pairs("spair", tmp_path, "train")
    with pytest.raises(InputError, match=r"split='val' is not one of PF-WILLOW; give 'test'"):
        load_pairs("pf-willow", tmp_path, "val")


def test_the_raw_release(tmp_path):
    pairs = load_pairs("pf-willow", generated.pf_willow(tmp_path))
    assert pairs.counts == {"car(G)": 6, "duck(S)": 6}
    assert pairs.skipped == ()
    pair = next(p for p in pairs if p.id == "duck(S)/photo_0-photo_2")
    np.testing.assert_allclose(pair.source_points, generated.points(10, 1))
    np.testing.assert_allclose(pair.target_points, generated.move(pair.source_points, 2))
    assert pair.length == np.ptp(pair.target_points, axis=0).max()
    assert "larger side of the target points' box" in pairs.protocol


def test_the_layout_with_a_list(tmp_path):
    pairs = load_pairs("pf-willow", generated.pf_willow_list(tmp_path))
    assert [pair.id for pair in pairs] == ["car(G)/photo_0-photo_1", "car(G)/photo_1-photo_2"]
    raw = {pair.id: pair for pair in load_pairs("pf-willow", tmp_path / "PF-dataset-WILLOW")}
    for pair in pairs:
        np.testing.assert_allclose(pair.source_points, raw[pair.id].source_points)
        np.testing.assert_allclose(pair.target_points, raw[pair.id].target_points)
        assert pair.source == raw[pair.id].source
        assert pair.length == pytest.approx(raw[pair.id].length)


def test_the_folder_above_will_do(tmp_path):
    generated.pf_willow(tmp_path / "pf-willow" / "PF-dataset-WILLOW")
    assert len(load_pairs("pf-willow", tmp_path)) == 12


class TestBrokenWillow:
    """One bad annotation costs its own pairs, and is named."""

    def check(self, root, reason, pairs=8):
        found = load_pairs("pf-willow", root)
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
        pairs = load_pairs("pf-willow", root)
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
        load_pairs("pf-willow", tmp_path)
    with pytest.raises(InputError, match=r"root: .*nowhere is not a folder"):
        load_pairs("pf-willow", tmp_path / "nowhere")


def test_what_is_found_without_asking_has_to_be_the_release(tmp_path, monkeypatch):
    generated.pf_willow(tmp_path)
    monkeypatch.setenv("FROT_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"is not PF-WILLOW as it was released: .* pass root"):
        load_pairs("pf-willow")


def test_the_release_itself():
    places = [place / name for place in folders() for name in ("", *SOURCES["pf-willow"].folders)]
    if not any(place.is_dir() and SOURCES["pf-willow"].is_it(place) for place in places):
        pytest.skip("PF-WILLOW is not there")
    pairs = load_pairs("pf-willow")
    assert pairs.counts == dict.fromkeys(WILLOW_CLASSES, 90)
    assert pairs.skipped == ()
    assert all(pair.source_points.shape == (10, 2) for pair in pairs)
    assert min(pair.length for pair in pairs) > 30.0

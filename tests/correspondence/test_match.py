import json

import numpy as np
import pytest

import frot
from frot import InputError
from frot._base.files import write_archive
from frot.correspondence import Match, Matcher, TorchBackbone, load_match
from tests.correspondence.small import SIDE, cat, classifier
from tests.damage import check_damaged


@pytest.fixture(scope="module")
def match() -> Match:
    matcher = Matcher(TorchBackbone(classifier()), side=96, device="cpu", mass="cam-top")
    # Of eight bits, and of none.
    return matcher((255 * cat()).astype(np.uint8), cat(x=68))


@pytest.mark.parametrize("way", ["there", "back"])
def test_everything_comes_back(match, way, tmp_path):
    match = match if way == "there" else match.inverse
    path = match.save(tmp_path / "cats.npz")
    assert [file.name for file in tmp_path.iterdir()] == ["cats.npz"]
    again = load_match(path)
    points = np.random.default_rng(0).uniform(0, SIDE - 1, (40, 2))
    moved, found = match.transfer(points), again.transfer(points)
    np.testing.assert_array_equal(found.points, moved.points)
    assert found.confidence == pytest.approx(moved.confidence, abs=1e-6)
    for name in ("displacement", "valid"):
        np.testing.assert_array_equal(getattr(again.flow(), name), getattr(match.flow(), name))
    for name in (
        "alpha",
        "phi",
        "prior",
        "method",
        "seconds",
        "source_ratio",
        "target_grid",
        "agreement",
        "rigidity",
        "reflected",
    ):
        assert getattr(again, name) == getattr(match, name)
    for name in ("a", "b", "plan", "scores", "source_cam", "target_cam"):
        np.testing.assert_array_equal(getattr(again, name), getattr(match, name))
    for one, other in ((again.source, match.source), (again.target, match.target)):
        np.testing.assert_array_equal(one.pixels, other.pixels)
        assert one.name == other.name
    np.testing.assert_array_equal(again.warp().pixels, match.warp().pixels)
    before, after = match.result, again.result
    assert before is not None
    assert after is not None
    for name in ("value", "lower", "upper", "status", "solver", "eta", "eps", "names", "history"):
        assert getattr(after, name) == getattr(before, name)
    assert after.summary() == before.summary()
    assert repr(again) == repr(match)


def test_pixels_of_eight_bits_take_eight(match, tmp_path):
    with np.load(match.save(tmp_path / "cats.npz"), allow_pickle=False) as stored:
        assert stored["source"].dtype == np.uint8
        assert all(array.dtype != object for array in stored.values())


def test_a_method_without_transport(tmp_path):
    match = Matcher(TorchBackbone(classifier()), side=96, method="nn", device="cpu")(cat(), cat())
    again = load_match(match.save(tmp_path / "nn.npz"))
    assert again.result is None
    assert again.plan is None
    np.testing.assert_array_equal(again.scores, match.scores)


def test_files_that_are_no_matches(match, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        load_match(tmp_path / "none.npz")
    path = match.save(tmp_path / "cats.npz")
    path.write_bytes(path.read_bytes()[:-2000])
    np.savez(tmp_path / "other.npz", kind=np.array("result"))
    for name in ("cats.npz", "other.npz"):
        with pytest.raises(InputError, match="is damaged, or no file that frot saved"):
            load_match(tmp_path / name)


def test_a_damaged_match_is_refused_or_read_as_it_was(match, tmp_path):
    check_damaged(match.save(tmp_path / "cats.npz"), tmp_path, 40)


def test_arrays_that_do_not_fit_each_other_are_no_match(match, tmp_path):
    """Files whose checksum is right, as another program could write them."""
    with np.load(match.save(tmp_path / "cats.npz")) as stored:
        arrays = dict(stored)
    del arrays["checksum"], arrays["kind"]
    about = json.loads(str(arrays["about"]))
    changes = [
        {"scores": arrays["scores"][:, :-1]},
        {"plan": arrays["plan"][1:]},
        {"a": arrays["a"][1:]},
        {"b": np.array(1.0)},
        {"source": arrays["source"][..., 0]},
        {"source": arrays["source"].astype(bool)},
        {"about": np.array("[" * 10_000)},
        {"about": np.array("7")},
    ]
    for name in about:
        changes.append({"about": np.array(json.dumps({**about, name: None}))})
        changes.append({"about": np.array(json.dumps({k: about[k] for k in about if k != name}))})
    for change in changes:
        path = write_archive(tmp_path / "other.npz", "match", {**arrays, **change})
        try:
            again = frot.load(path)
        except InputError:
            continue
        again.to_dict()
        repr(again)
        again.transfer([[30.0, 30.0]])

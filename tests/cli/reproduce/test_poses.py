import json

import numpy as np
import pytest
from PIL import Image

from frot.cli.reproduce import poses as module
from frot.cli.reproduce.poses import part_of, poses
from frot.correspondence import Matcher, TorchBackbone, load_pairs, pf_willow
from tests.correspondence import generated
from tests.correspondence.small import cat, convolutions


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A bird, the same further to the left, and in a mirror, of a species of either kind."""
    root = tmp_path_factory.mktemp("data")
    generated.pf_willow(root / "pf-willow", ("car(G)", "duck(S)"))
    (root / "birds").mkdir()
    images, pairs = {}, []
    for species in ("042.Vermilion_Flycatcher", "900.Cat"):
        names = [f"{species}{k}.png" for k in range(3)]
        seen = cat(h=97, w=97), cat(x=68, h=97, w=97), cat(h=97, w=97)[:, ::-1]
        for name, pixels, left, right in zip(names, seen, (30, 22, 66), (60, 52, 36), strict=True):
            Image.fromarray((255 * pixels).astype(np.uint8)).save(root / "birds" / name)
            parts = {"1": [left, 40], "2": [right, 60], "3": [left, 70]}
            box = [20, 20, 60, 60]
            images[name] = {"species": species, "size": [97, 97], "box": box, "parts": parts}
        del images[names[2]]["parts"]["3"]
        pairs += [[names[0], names[1]], [names[0], names[2]]]
    text = json.dumps({"images": images, "pairs": pairs})
    (root / "birds" / "pairs.json").write_text(text)
    return root


def test_pairs_are_scored_in_parts(data):
    pairs = load_pairs("birds", data)
    assert {part_of(pair) for pair in pairs} == {"birds, chosen on", "birds, held out"}
    assert {part_of(pair) for pair in pf_willow(data)} == {"cars", "ducks"}


def test_poses_before_and_after(data, monkeypatch, tmp_path):
    matcher = Matcher(TorchBackbone(convolutions()), side=97, device="cpu")
    monkeypatch.setattr(module, "matcher_of", lambda name: matcher)
    monkeypatch.setattr(module, "TURNED", 1)
    monkeypatch.setattr(module, "ANGLES", (0.0, 90.0))
    made = poses(["small"], 4, data=data, folder=tmp_path / "kept")
    found = made.numbers["networks"]["small"]
    birds = found["birds, held out"]
    # One of two pairs is a mirror image.
    assert (birds["count"], birds["turned"], birds["poses"]) == (2, 0.5, 100.0)
    # As it is it is read off as a reflection, which is as good here.
    assert (birds["none"], birds["gain"]) == (100.0, 0.0)
    assert (found["0°"]["turned"], found["90°"]["turned"]) == (0.0, 1.0)
    assert found["90°"]["poses"] == 100.0
    assert found["90°"]["gain"] > 0.0
    assert found["PF-WILLOW without cars"]["count"] == found["ducks"]["count"] == 2
    assert "birds, held out" in made.markdown
    names = [path.name for path in made.write(tmp_path / "made")]
    assert names == ["poses.png", "poses.json", "poses.md"]
    # Finished pairs are taken from the store.
    monkeypatch.setattr(module, "match_poses", None)
    monkeypatch.setattr(module, "match_turned", None)
    again = poses(["small"], 4, data=data, folder=tmp_path / "kept")
    assert again.numbers == made.numbers

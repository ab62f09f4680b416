"""The tab Photographs without a browser and, but for one test, without a network."""

import numpy as np
import pytest
from PIL import Image

import frot
from frot.app.photographs import (
    match_photos,
    move_mask,
    python_of,
    show_point,
    write_files,
)
from tests.correspondence.fake_match import bent_match


@pytest.fixture(scope="module")
def bent():
    return bent_match()


def test_a_click_is_found_where_it_went(bent):
    match, warp = bent
    h, w = match.source.size
    point = (w // 2, h // 2)
    before, after, said = show_point(match, point)
    assert before.shape[:2] == match.source.size
    assert after.shape[:2] == match.target.size
    u, v = match.transfer([point]).points[0]
    assert f"({u:.0f}, {v:.0f}) in B" in said
    assert np.hypot(*(np.array([u, v]) - warp.points([point])[0])) < 12
    # Bright where the point is, dark elsewhere.
    heat = match.heatmap(point)
    light = after.mean(axis=2) / np.maximum(255 * match.target.pixels.mean(axis=2), 1.0)
    assert light[heat > 0.9].mean() > 2 * light[heat < 0.01].mean()
    assert f"match.transfer([[{point[0]}, {point[1]}]])" in python_of(match, point, 128)


def test_a_mask_moves(bent, tmp_path):
    match, _ = bent
    mask = np.zeros(match.source.size, dtype=bool)
    mask[60:140, 80:200] = True
    overlay, found = move_mask(match, mask)
    assert np.array_equal(found, match.transfer_mask(mask))
    assert overlay.shape[:2] == match.target.size
    Image.fromarray(mask).save(tmp_path / "mask.png")
    assert np.array_equal(move_mask(match, tmp_path / "mask.png")[1], found)
    with pytest.raises(frot.InputError, match="mask: is 7 x 5 pixels, and A is"):
        move_mask(match, np.zeros((5, 7), dtype=bool))


def test_files_to_download(bent, tmp_path):
    page, saved, warped = write_files(bent[0], tmp_path)
    assert frot.load(saved).method == bent[0].method
    with Image.open(warped) as image:
        assert image.size[::-1] == bent[0].target.size
    with open(page, encoding="utf-8") as file:
        assert "Matcher(" in file.read()


def test_what_is_no_photograph(tmp_path):
    with pytest.raises(frot.InputError, match="give two photographs"):
        match_photos(None, None)
    bad = tmp_path / "bad.png"
    bad.write_text("no picture")
    with pytest.raises(frot.InputError, match=r"bad\.png"):
        match_photos(bad, bad)

import os

import numpy as np
import pytest
from PIL import Image

from frot.correspondence import FeatureMap, Matcher, Photo
from frot.correspondence import _memory as memory
from frot.correspondence._memory import FeatureMemory, PhotoMemory
from frot.correspondence.layers import PhotoFeatures

PHOTO = Photo(np.zeros((400, 400, 3), dtype=np.float32), "large")


def features(seed):
    rng = np.random.default_rng(seed)
    maps = tuple(
        FeatureMap(name, scale * rng.normal(size=(16, 10, 10)).astype(np.float32), 8, 19)
        for name, scale in (("small", 1e-6), ("large", 1e6))
    )
    return PhotoFeatures(PHOTO, (80, 80), 0.2, maps, np.ones((80, 80), dtype=np.float32))


def test_what_was_seen_comes_out_as_at_first():
    kept = FeatureMemory()
    first = kept.get("a", PHOTO, lambda: features(0))
    again = kept.get("a", PHOTO, lambda: pytest.fail("it was seen already"))
    for one, other, exact in zip(first.maps, again.maps, features(0).maps, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        assert one.values == pytest.approx(exact.values, rel=1e-3)
        assert (one.values.dtype, one.stride) == (np.float32, 8)
    assert again.photo is PHOTO
    assert again.size == (80, 80)


def test_bytes_bound_it_and_pixels_are_not_kept(monkeypatch):
    kept = FeatureMemory()
    each = 2 * 2 * 1600 + 4 * 6400
    kept.get("a", PHOTO, lambda: features(0))
    assert kept.size == each < PHOTO.pixels.nbytes
    monkeypatch.setattr(memory, "MAX_BYTES", 3 * each)
    for key in "bca":
        kept.get(key, PHOTO, lambda: features(1))
    kept.get("d", PHOTO, lambda: features(2))
    assert len(kept) == 3
    # "b" was not used for longest.
    found = []
    for key in "acdb":
        kept.get(key, PHOTO, lambda key=key: found.append(key) or features(3))
    assert found == ["b"]
    monkeypatch.setattr(memory, "MAX_BYTES", each - 1)
    assert kept.get("e", PHOTO, lambda: features(4)).maps[0].name == "small"
    assert len(kept) == 0


def test_some_layers():
    kept = FeatureMemory()
    both = kept.get("a", PHOTO, lambda: features(0))
    some = kept.only(("large",)).get("a", PHOTO, lambda: pytest.fail("it was seen already"))
    (one,) = some.maps
    np.testing.assert_array_equal(one.values, both.maps[1].values)


def test_a_file_is_read_once_until_it_changes(tmp_path, monkeypatch):
    path = tmp_path / "one.png"
    Image.fromarray(np.full((40, 40, 3), 10, dtype=np.uint8)).save(path)
    kept = PhotoMemory()
    first = kept.read(path)
    assert kept.read(str(path)) is first
    with pytest.raises(ValueError, match="read-only"):
        first.pixels[0] = 0.0
    before = os.stat(path)
    Image.fromarray(np.full((40, 40, 3), 20, dtype=np.uint8)).save(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    assert kept.read(path).pixels[0, 0, 0] == pytest.approx(20 / 255)
    assert kept.read(first) is first
    # One that is larger than all the room is not kept.
    monkeypatch.setattr(memory, "MAX_PHOTO_BYTES", first.pixels.nbytes - 1)
    full = PhotoMemory()
    assert full.read(path) is not full.read(path)


def test_matchers_that_come_of_another_share_its_photographs(tmp_path):
    path = tmp_path / "one.png"
    Image.fromarray(np.full((40, 40, 3), 10, dtype=np.uint8)).save(path)
    matcher = Matcher(side=64)
    photo = matcher.photo(path)
    assert matcher.with_settings(hough=False).photo(path) is photo
    assert matcher.with_layers([0, 1]).photo(path) is photo

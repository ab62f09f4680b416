from dataclasses import fields, replace
from inspect import signature
from typing import Any

import numpy as np
import pytest

from frot import InputError
from frot.correspondence import PRESETS, Matcher, Settings, _matcher
from frot.correspondence.methods import hpf, scot
from tests.correspondence.small import Counting, convolutions


def test_the_papers_constants():
    paper = PRESETS["frot-paper"]
    assert (paper.method, paper.eta, paper.eps, paper.steps) == ("frot", 0.3, 0.1, 3)
    assert (paper.prior, paper.mass, paper.agreement) == ("uniform", "cam-top", 1.0)
    assert (paper.side, paper.stride, paper.antialias) == (300, "4+", False)
    assert (paper.exponent, paper.transfer, paper.centres) == (1.0, "boxes", "nominal")


def test_the_frameworks_constants():
    preset = PRESETS["scot"]
    assert (preset.method, preset.mass, preset.agreement) == (scot, "cam", 1.0)
    assert signature(scot).parameters["eps"].default == 0.05
    assert (preset.side, preset.stride, preset.antialias) == (300, "4+", False)
    assert (preset.exponent, preset.transfer) == (1.0, "boxes")


def test_hyperpixel_flows_constants():
    preset = PRESETS["hpf"]
    assert (preset.method, preset.mass, preset.agreement) == (hpf, "uniform", 1.0)
    assert (preset.side, preset.stride, preset.transfer) == (300, "4+", "boxes")


def test_the_librarys_own():
    assert PRESETS["frot"] == Settings() == Settings().check()
    assert (Settings().prior, Settings().steps) == ("coherence", 0)


@pytest.mark.parametrize(
    ("preset", "count", "given", "expected"),
    [
        ("scot", 17, {"method": "ot"}, (0, 11, 12, 13)),
        ("scot", 34, {}, (0, 19, 27, 28, 29, 30)),
        ("hpf", 17, {}, (0, *range(9, 14))),
        ("hpf", 34, {}, (0, 8, 20, 21, 26, 28, 29, 30)),
        ("hpf", 5, {}, range(5)),
        ("frot-paper", 17, {}, range(17)),
    ],
)
def test_published_layers_are_taken_unless_told_otherwise(
    monkeypatch, preset, count, given, expected
):
    class Named(Counting):
        def __init__(self):
            super().__init__()
            self.name, self.layers = "resnet", tuple(f"x{k}" for k in range(count))

    monkeypatch.setattr(_matcher, "resolve_backbone", lambda *given: Named())
    found = Matcher("resnet", preset=preset, mass="uniform", **given)
    assert found.backbone.layers == tuple(f"x{k}" for k in expected)


@pytest.mark.parametrize("preset", PRESETS)
def test_arguments_override_presets(preset):
    given = {
        "method": "frot", "agreement": 0.3, "eta": 0.7, "eps": 0.2, "steps": 5, "tol": 1e-4,
        "prior": "uniform", "mass": "uniform", "exponent": 0.8, "transfer": "argmax", "side": 96,
        "antialias": False, "stride": 4.0, "centres": "nominal",
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
        ({"method": "magic"}, "method: 'magic' is none of 'frot', 'weighted'"),
        ({"prior": "best"}, "prior: 'best' is none of 'coherence', 'uniform'"),
        ({"prior": 3.0}, "prior: 3.0 is none of"),
        ({"prior": []}, "prior: .* nor one weight per layer"),
        ({"prior": [1.0, 0.0]}, "prior: has weights that are not finite and > 0"),
        ({"prior": [1.0, np.nan]}, "prior: has weights that are not finite and > 0"),
        ({"prior": [[1.0, 2.0]]}, "prior: .* nor one weight per layer"),
        ({"mass": "heavy"}, "mass: 'heavy' is none of 'uniform', 'cam', 'cam-top'"),
        ({"transfer": "train"}, "transfer: 'train' is none of 'median'"),
        ({"eps": 0}, "eps: must be finite and > 0"),
        ({"eps": -0.1}, "eps: must be finite and > 0"),
        ({"eps": "small"}, "eps: 'small' is not a number"),
        ({"eta": -1}, "eta: must be finite and >= 0"),
        ({"eta": np.nan}, "eta: must be finite"),
        ({"eta": 0, "steps": 3}, "eta: must be > 0 for the paper's steps; use steps=0"),
        ({"tol": 0}, "tol: must be finite and > 0"),
        ({"exponent": -1}, "exponent: must be finite and > 0"),
        ({"steps": -1}, "steps: must be a whole number >= 0"),
        ({"side": 31}, "side: must be a whole number >= 32"),
        ({"side": 320.5}, "side: must be a whole number"),
        ({"side": True}, "side: True is not a number"),
        ({"stride": 0}, "stride: must be finite and > 0"),
        ({"stride": "last"}, "stride: .last. is no stride; give pixels such as 8"),
        ({"agreement": "much"}, "agreement: 'much' is neither 'auto' nor a number"),
        ({"eta": 0}, "eta: at 0 .* whatever the prior; pass eta > 0, or prior='uniform'"),
        ({"agreement": -0.1}, "agreement: must be finite and >= 0"),
        ({"antialias": 2}, "antialias: is 2; use True or False"),
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

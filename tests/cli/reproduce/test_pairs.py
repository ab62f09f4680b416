import numpy as np
import pytest

import frot
from frot._base.errors import InputError
from frot.cli.reproduce.pairs import Choice, run_pair
from frot.correspondence import Matcher, point_errors
from frot.correspondence.methods import METHODS
from tests.correspondence import planted

CHOICES = {
    "default": Choice("FROT", "frot"),
    "paper": Choice("the paper's", "frot", {"steps": 3, "prior": "uniform"}),
    "weighted": Choice("weighted by coherence", "weighted"),
    "one": Choice("one layer", "best-layer", {"layer": "x"}),
    "nn": Choice("neighbours", "nn"),
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return planted.pairs(tmp_path_factory.mktemp("willow")).pairs[0]


def matcher(**options):
    return Matcher(planted.Planted(), side=96, stride=4, **options)


def seen_by(some):
    assert isinstance(some.backbone, planted.Planted)
    return len(some.backbone.extracted)


def test_every_choice_is_what_the_matcher_alone_makes_of_it(pair):
    shared = matcher()
    found = run_pair(shared, pair, CHOICES)
    assert list(found) == list(CHOICES)
    assert seen_by(shared) == 2
    for key, choice in CHOICES.items():
        for hough in (False, True):
            alone = matcher(method=choice.method, hough=hough, **choice.overrides)
            match = alone(pair.source, pair.target)
            errors = point_errors(
                match.transfer(pair.source_points).points, pair.target_points, pair.length
            )
            np.testing.assert_allclose(found[key].hough if hough else found[key].plain, errors)
            np.testing.assert_allclose(found[key].alpha, list(match.alpha.values()), atol=1e-6)


def test_status_and_seconds(pair):
    found = run_pair(matcher(), pair, CHOICES)
    assert [found[key].status for key in CHOICES] == [
        "CONVERGED", "", "CONVERGED", "CONVERGED", ""
    ]  # fmt: skip
    assert all(run.seconds > 0.0 for run in found.values())


def test_weights_by_coherence_are_the_prior(pair):
    match = matcher(method="weighted")(pair.source, pair.target)
    assert match.prior is not None
    assert match.alpha == pytest.approx(match.prior)
    assert match.alpha["x"] + match.alpha["y"] > 0.99
    even = matcher(method="weighted", prior="uniform")(pair.source, pair.target)
    plain = matcher(method="uniform")(pair.source, pair.target)
    assert even.prior is None
    assert even.plan is not None
    assert even.plan == pytest.approx(plain.plan, abs=1e-9)


def test_a_choice_may_not_look_otherwise(pair):
    with pytest.raises(InputError, match="'big' changes side, which choices share"):
        run_pair(matcher(), pair, {"big": Choice("big", "nn", {"side": 128})})


def test_an_interrupted_solver_interrupts(pair, monkeypatch):
    def cut(setting):
        raise frot.Interrupted(METHODS["nn"](setting))

    monkeypatch.setitem(METHODS, "uniform", cut)
    with pytest.raises(KeyboardInterrupt):
        run_pair(matcher(), pair, {"cut": Choice("cut", "uniform")})


def test_matchers_with_other_settings_or_layers_share_what_was_seen(pair):
    first = matcher()
    first(pair.source, pair.target)
    assert seen_by(first) == 2
    first.with_settings(method="nn")(pair.source, pair.target)
    first.with_layers(["x", "y"])(pair.source, pair.target)
    assert seen_by(first) == 2
    first.with_settings(side=112)(pair.source, pair.target)
    assert seen_by(first) == 4
    assert first.fingerprint == matcher().fingerprint
    assert first.with_settings(eta=0.2).fingerprint == matcher(eta=0.2).fingerprint
    given = matcher(prior=[0.1, 0.4, 0.1, 0.3, 0.1], method="best-layer", layer="y").with_layers(
        ["y", "x"]
    )
    np.testing.assert_array_equal(given.settings.prior, [0.4, 0.3])
    assert given.layer == 1
    assert given.with_layers(["x"]).layer is None

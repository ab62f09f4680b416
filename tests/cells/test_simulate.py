"""Simulated cells: fates that follow the rules, nuisance as asked for, growth that is kept."""

from __future__ import annotations

import numpy as np
import pytest

import frot
from frot.cells import Simulation, simulate
from frot.cells._simulate import FATES, REGULATORS, commit, rules


def correlated(X: np.ndarray, Y: np.ndarray) -> float:
    """Return the mean absolute correlation between columns of two blocks."""
    d = X.shape[1]
    return float(np.abs(np.corrcoef(X.T, Y.T)[:d, d:]).mean())


def block(cells: Simulation, name: str, day: int) -> np.ndarray:
    return cells.X[cells.day == day][:, cells.groups.indices[cells.groups.names.index(name)]]


@pytest.mark.parametrize("generator", ["tree", "network"])
def test_signal_tells_the_fate_and_nuisance_does_not(generator: str):
    cells = simulate(200, generator=generator, noise=0.5, seed=3)
    assert len(cells.signal) == 10
    for name in ("signal0", "nuisance0"):
        X = block(cells, name, 1)
        fate = cells.fate[cells.day == 1]
        centres = np.stack([X[fate == one].mean(axis=0) for one in np.unique(fate)])
        nearest = ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        hit = np.mean(np.unique(fate)[nearest] == fate)
        assert (hit > 0.8) == (name == "signal0")


def test_shared_nuisance_is_one_programme_and_its_own_otherwise():
    for shared in (True, False):
        cells = simulate(200, shared=shared, seed=1)
        found = correlated(block(cells, "nuisance0", 0), block(cells, "nuisance5", 0))
        assert (found > 0.3) == shared


@pytest.mark.parametrize("state", range(16))
def test_the_rules_at_zero_and_one_are_boolean(state: int):
    rng = np.random.default_rng(state)
    on = rng.random(len(REGULATORS)) < 0.5
    g = dict(zip(REGULATORS, on, strict=True))
    asked = {
        "GATA2": g["GATA2"] and not (g["GATA1"] and g["FOG1"]) and not g["PU1"],
        "GATA1": (g["GATA1"] or g["GATA2"] or g["FLI1"]) and not g["PU1"],
        "FOG1": g["GATA1"],
        "EKLF": g["GATA1"] and not g["FLI1"],
        "FLI1": g["GATA1"] and not g["EKLF"],
        "SCL": g["GATA1"] and not g["PU1"],
        "CEBPA": g["CEBPA"] and not (g["GATA1"] and g["FOG1"] and g["SCL"]),
        "PU1": (g["CEBPA"] or g["PU1"]) and not (g["GATA1"] or g["GATA2"]),
        "CJUN": g["PU1"] and not g["GFI1"],
        "EGRNAB": g["PU1"] and g["CJUN"] and not g["GFI1"],
        "GFI1": g["CEBPA"] and not g["EGRNAB"],
    }
    expected = [float(asked[name]) for name in REGULATORS]
    np.testing.assert_allclose(rules(on[None].astype(float))[0], expected, atol=1e-12)


def test_mature_cells_are_near_the_fixed_point_of_their_fate():
    fate = np.repeat(np.arange(4), 30)
    states, names = commit(fate, np.ones(len(fate)), np.random.default_rng(0))
    marker = {"erythrocyte": "EKLF", "megakaryocyte": "FLI1", "monocyte": "EGRNAB"}
    for kind, name in enumerate(names):
        typical = np.round(np.median(states[fate == kind], axis=0))
        np.testing.assert_allclose(rules(typical[None])[0], typical, atol=1e-12)
        assert typical[REGULATORS.index(marker.get(name, "GFI1"))] == 1.0
    assert names == FATES


def test_growth_is_what_the_fates_of_the_next_day_show():
    cells = simulate(4000, growth=4.0, n_groups=2, seed=2)
    before, after = (cells.fate[cells.day == day] for day in (0, 1))
    for fate in np.unique(cells.fate):
        weight = cells.growth[cells.day == 0]
        expected = weight[before == fate].sum() / weight.sum()
        assert abs(np.mean(after == fate) - expected) < 4 * np.sqrt(0.25 / 4000) * 1.5
    assert cells.growth.min() == 0.25


def test_counts_are_overdispersed_and_dropout_zeroes_its_share():
    with_, without = (simulate(200, counts=True, dropout=d, seed=0).counts for d in (0.4, 0.0))
    assert with_ is not None
    assert without is not None
    assert (with_ == np.rint(with_)).all()
    zero = np.mean(without == 0)
    assert abs(np.mean(with_ == 0) - (zero + 0.4 * (1 - zero))) < 0.02
    assert np.median(without.var(axis=0) / without.mean(axis=0)) > 1.5


@pytest.mark.parametrize(
    ("argument", "value"),
    [("noise", 1.0), ("generator", "wheel"), ("growth", 0.5), ("n_days", 1), ("dropout", -0.1)],
)
def test_bad_input_is_named(argument: str, value: object):
    with pytest.raises(frot.InputError, match=argument):
        simulate(20, **{argument: value})  # pyright: ignore[reportArgumentType]

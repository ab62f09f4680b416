"""Lemma 1 of the paper: the best weights are a softmax, the value is a smooth maximum."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from scipy.special import logsumexp, softmax

from frot import CappedSimplex, InputError, Simplex
from frot._base.arrays import namespace
from frot.problem.adversary import GivenSet, as_adversary, capped_softmax
from frot.problem.options import check_adversary

costs = hnp.arrays(float, st.integers(1, 6), elements=st.floats(-100.0, 100.0))
etas = st.floats(1e-3, 1e3)


@given(costs, etas)
def test_best_is_the_softmax(phi, eta):
    value, alpha = Simplex(eta).best(phi)
    assert value == pytest.approx(eta * logsumexp(phi / eta), rel=1e-12, abs=1e-12)
    assert alpha == pytest.approx(softmax(phi / eta), rel=1e-10, abs=1e-300)


@given(costs, etas, st.data())
def test_best_attains_its_value_and_nothing_is_better(phi, eta, data):
    adversary = Simplex(eta)
    value, alpha = adversary.best(phi)
    slack = 1e-10 * (np.abs(phi).max() + eta)
    assert alpha @ phi + adversary.reward(alpha) == pytest.approx(value, abs=slack)
    raw = data.draw(hnp.arrays(float, len(phi), elements=st.floats(0.0, 1.0)))
    other = (raw + 1e-9) / (raw + 1e-9).sum()
    assert other @ phi + adversary.reward(other) <= value + slack


@given(costs, etas)
def test_a_prior_takes_the_place_of_one(phi, eta):
    prior = np.arange(1.0, len(phi) + 1.0)
    prior /= prior.sum()
    adversary = Simplex(eta, np.log(prior))
    value, alpha = adversary.best(phi)
    assert value == pytest.approx(eta * logsumexp(phi / eta, b=prior), rel=1e-10, abs=1e-9)
    on = alpha > 0.0
    gain = alpha @ phi - eta * alpha[on] @ np.log(alpha[on] / prior[on])
    assert gain == pytest.approx(value, rel=1e-9, abs=1e-9 * eta)


@given(costs)
def test_without_entropy_it_is_the_maximum(phi):
    value, alpha = Simplex().best(phi)
    assert value == phi.max()
    assert Simplex().contains(alpha)
    assert phi[alpha.argmax()] == phi.max()
    assert Simplex().reward(alpha) == 0.0


def test_the_reward_of_uniform_weights_is_eta_log_of_their_number():
    assert Simplex(2.0).reward(np.full(8, 0.125)) == pytest.approx(2.0 * np.log(8.0), rel=1e-15)
    assert Simplex(2.0).reward(np.array([1.0, 0.0])) == 0.0


@pytest.mark.parametrize(
    "scale",
    [
        1e-310,
        *(1e-300, 1e-12, 1e12, 1e300),
    ],
)
def test_no_eta_is_too_small_or_too_large(scale):
    phi = np.array([1.0, 2.0, 2.0])
    value, alpha = Simplex(scale).best(phi)
    assert np.isfinite(value)
    assert alpha.sum() == pytest.approx(1.0)
    if scale < 1.0:
        assert value == pytest.approx(2.0, abs=1e-9)
        assert alpha == pytest.approx([0.0, 0.5, 0.5], abs=1e-12)
    else:
        assert alpha == pytest.approx([1 / 3] * 3, rel=1e-9)


@st.composite
def capped(draw):
    """Costs, a number of shares, an eta, and a prior or none."""
    phi = draw(costs)
    k = draw(st.integers(1, len(phi)))
    eta = draw(st.sampled_from([0.0, 1e-3, 0.1, 1.0, 30.0, 1e3]))
    prior = np.arange(1.0, len(phi) + 1.0) if eta > 0.0 and draw(st.booleans()) else None
    log_prior = None if prior is None else np.log(prior / prior.sum())
    return phi, CappedSimplex(k, eta, log_prior)


@given(capped(), st.data())
def test_under_a_cap_the_answer_is_in_the_set_and_nothing_in_it_is_better(drawn, data):
    phi, adversary = drawn
    value, alpha = adversary.best(phi)
    slack = 1e-9 * (np.abs(phi).max() + adversary.eta + 1e-3)
    assert adversary.contains(alpha)
    assert alpha @ phi + adversary.reward(alpha) == pytest.approx(value, abs=slack)
    raw = data.draw(hnp.arrays(float, len(phi), elements=st.floats(0.0, 1.0)))
    other = adversary.project(raw)
    assert adversary.contains(other)
    assert other @ phi + adversary.reward(other) <= value + slack


@given(capped())
def test_bounds_of_the_answer_hold_it(drawn):
    phi, adversary = drawn
    value, _ = adversary.best(phi)
    doubt = np.linspace(0.0, 1.0, len(phi))
    assert value <= adversary.upper(phi, np.zeros(len(phi)))
    assert adversary.upper(phi, doubt) >= adversary.best(phi + doubt)[0]


@given(costs, st.floats(1e-3, 1e3))
def test_one_share_is_the_simplex(phi, eta):
    value, alpha = CappedSimplex(1, eta).best(phi)
    plain, weights = Simplex(eta).best(phi)
    assert value == plain
    assert (alpha == weights).all()


@given(costs)
def test_shares_of_the_largest(phi):
    down = np.sort(phi)[::-1]
    for k in range(1, len(phi) + 1):
        assert CappedSimplex(k).best(phi)[0] == pytest.approx(down[:k].mean(), abs=1e-12)


@given(capped())
def test_what_is_not_in_the_set_is_brought_in(drawn):
    phi, adversary = drawn
    _, alpha = adversary.best(phi)
    for bad in (np.full(len(phi), np.nan), np.zeros(len(phi)), -alpha, 3.0 * alpha, 2.0 + alpha):
        assert adversary.contains(adversary.project(bad))


@given(
    hnp.arrays(float, st.tuples(st.integers(1, 3), st.integers(1, 7)), elements=st.floats(-50, 50)),
    st.data(),
)
def test_water_filling_is_the_same_in_every_library(score, data):
    torch = pytest.importorskip("torch")

    k = data.draw(st.integers(1, score.shape[1]))
    found = capped_softmax(namespace(score), score, k)
    tensor = torch.tensor(score)
    other = capped_softmax(namespace(tensor), tensor, k).numpy()
    assert other == pytest.approx(found, abs=1e-14)
    assert (found <= 1.0 / k).all()
    assert found.sum(axis=1) == pytest.approx(1.0, abs=1e-14)
    for row, weight in zip(score, found, strict=True):
        free = (weight < 1.0 / k * (1.0 - 1e-9)) & (weight > 1e-200)
        if free.any():
            # Those below the cap are in proportion, and none at it would be in the set with them.
            level = row[free] - np.log(weight[free])
            assert level == pytest.approx(level[0], abs=1e-9)
            assert (row - level[0] >= np.log(1.0 / k) - 1e-9)[~free & (weight > 0.5 / k)].all()


class Own:
    """A set that is known by its answers, and they are what the test says."""

    def __init__(self, answer):
        self.answer = answer

    def best(self, phi):
        return self.answer(np.asarray(phi))


def test_a_set_of_ones_own_needs_no_more_than_its_best_answer():
    given_set = as_adversary(Own(lambda phi: (2.0 * phi.max(), 2.0 * np.eye(3)[phi.argmax()])), 3)
    assert isinstance(given_set, GivenSet)
    assert given_set.reach.tolist() == [2.0, 2.0, 2.0]
    value, alpha = given_set.best(np.array([1.0, 3.0, 2.0]))
    assert value == 6.0
    assert alpha.tolist() == [0.0, 2.0, 0.0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda phi: phi, r"Own.best\(phi\) must return \(value, alpha\)"),
        (lambda phi: None, r"Own.best\(phi\) must return \(value, alpha\)"),
        (
            lambda phi: (phi.max(), np.ones(3)),
            r"weights of shape \(2,\), got shapes \(\) and \(3,\)",
        ),
        (lambda phi: (phi, np.ones(2)), r"a number and weights of shape"),
        (lambda phi: (np.inf, np.full(2, np.inf)), "the set is empty or unbounded"),
        (lambda phi: (phi.max(), np.full(2, np.nan)), "the set is empty or unbounded"),
        (
            lambda phi: (phi.max() + 1.0, np.eye(2)[0]),
            "returned the value 2 and weights that attain 1",
        ),
        (lambda phi: ("one", np.eye(2)[0]), "is no number"),
    ],
)
def test_answers_that_cannot_be_right_are_refused(answer, message):
    with pytest.raises(InputError, match=f"adversary: .*{message}"):
        as_adversary(Own(answer), 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_adversary(CappedSimplex(3), 2), "is empty for 2 groups"),
        (lambda: Simplex(-1.0), "eta: must be"),
        (lambda: as_adversary(Simplex(1.0, np.zeros(3)), 2), "log_prior has shape"),
        (lambda: as_adversary(Simplex(1.0, np.zeros(2)), 2), "sum to one"),
        (lambda: check_adversary(Simplex(1.0), 2, 0.5, None), "eta: is given here and by"),
        (
            lambda: check_adversary(Simplex(1.0, np.log([0.5, 0.5])), 2, 0.0, [0.5, 0.5]),
            "prior: is given here and by",
        ),
        (
            lambda: check_adversary(Own(lambda phi: (phi.sum(), np.ones(2))), 2, 0.5, None),
            "eta, prior: are for frot.Simplex",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(make, message):
    with pytest.raises(InputError, match=message):
        make()

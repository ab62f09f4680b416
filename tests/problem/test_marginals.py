"""What a plan owes its marginals, and what it pays for what it does not keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import frot
from frot.problem.marginals import MarginalPrice, even_out, unit_mass
from frot.problem.options import check_tau
from frot.problem.problem import BALANCED, Marginals

INF = float("inf")
SHARES = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=6).map(np.array)


@given(SHARES, st.floats(1e-3, 1e3))
def test_price_and_dual_are_conjugate(share: np.ndarray, tau: float) -> None:
    """The best potentials for given masses prove their price: -f = tau log(x / a)."""
    weights = np.linspace(0.5, 1.5, len(share))
    masses, side = share * weights, MarginalPrice(tau)
    f = -tau * np.log(share)
    assert side.masses(weights, f) == pytest.approx(masses)
    price = side.price(weights, masses)
    scale = tau * float(weights @ (1.0 + share * (1.0 + np.abs(np.log(share)))))
    assert side.dual(weights, f) - masses @ f == pytest.approx(price, abs=1e-13 * scale)
    assert price >= 0.0
    assert side.price_error(weights, masses, 1e-15) <= 1e-12 * scale


def test_next_to_all_that_is_kept_costs_what_little_it_does() -> None:
    weights = np.ones(1)
    assert MarginalPrice(1e20).price(weights, np.array([1.0 + 2.0**-30])) == pytest.approx(
        0.5e20 * 2.0**-60, rel=1e-8
    )
    assert MarginalPrice(INF).price(weights, np.array([5.0])) == 0.0


@pytest.mark.parametrize("tau", [(1.0, 3.0), (INF, 2.0), (0.5, INF)])
def test_the_shift_evens_out_what_is_kept(tau: tuple[float, float]) -> None:
    rows, cols = sides = Marginals(*tau).sides
    a, b, f, g = np.array([1.0, 2.0]), np.array([4.0]), np.array([0.3, -0.2]), np.array([0.7])
    by = even_out(sides, (a, b), (f, g))
    assert rows.masses(a, f + by).sum() == pytest.approx(cols.masses(b, g - by).sum())


def test_prices_are_numbers_shares_or_pairs() -> None:
    assert check_tau(None, "kl") is None
    assert check_tau((INF, INF), "tv") is None
    assert check_tau([1, INF], "kl") == (1.0, INF)
    share = frot.relative(0.5)
    assert check_tau(share, "kl") == (share, share)
    assert BALANCED.balanced
    assert not BALANCED.unbalanced
    assert not BALANCED.partial
    for wrong in ([1.0], (1.0, 2.0, 3.0), [[1.0, 2.0]], True, -INF, float("nan")):
        with pytest.raises(frot.InputError, match="tau: "):
            check_tau(wrong, "kl")
    with pytest.raises(frot.InputError, match="must be > 0, since mass that costs nothing"):
        check_tau(-1.0, "kl")
    with pytest.raises(frot.InputError, match=r"\(1.0,\) is neither a number nor a pair"):
        check_tau((1.0,), "kl")
    assert check_tau(np.array(2.0), "kl") == (2.0, 2.0)


def test_a_solver_that_does_not_say_so_takes_no_prices() -> None:
    with pytest.raises(frot.InputError, match=r"tau: Entropic does not take penalty='tv'"):
        frot.solve([[0.0]], [[1.0]], tau=1.0, penalty="tv", solver="entropic")
    with pytest.raises(frot.InputError, match=r"tau: LinearProgram does not take penalty='kl'"):
        frot.solve([[0.0]], [[1.0]], tau=1.0, solver="linear_program")
    with pytest.raises(frot.InputError, match=r"tau: a distance keeps all mass"):
        frot.distance([[0.0]], [[1.0]], tau=1.0)


@pytest.mark.parametrize("tau", [float("nan"), (1.0, float("nan"))])
def test_a_price_of_nan(tau):
    with pytest.raises(frot.InputError, match=r"^tau: is NaN; pass a number > 0, or inf"):
        frot.solve([[0.0]], [[1.0]], tau=tau)


def test_weights_as_shares_of_their_sum():
    np.testing.assert_array_equal(unit_mass(np.array([1.0, 3.0])), [0.25, 0.75])

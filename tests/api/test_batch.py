"""Batches: every member gets what it would get alone, and no member spoils another's answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import frot
from frot.problem.options import DEFAULT_EPS
from frot.torch import FRWDLoss

B, N, M, D = 5, 9, 8, 6
GROUPS = {"a": [0, 1, 2], "b": [2, 3], "c": [4, 5]}


def clouds(seed: int = 0, count: int = B) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, N, D)), 0.5 + rng.normal(size=(count, M, D))


def weights(seed: int, size: int, zeros: int = 0) -> np.ndarray:
    found = np.random.default_rng(seed).random((B, size)) + 0.1
    found[:, :zeros] = 0.0
    return found / found.sum(axis=1, keepdims=True)


def check(batch: Any, alone: list[Any], tol: float = 1e-4, alpha: float = 2e-2) -> None:
    """Both intervals hold the truth, so that they meet; both are as narrow as was asked for."""
    assert len(batch) == len(alone)
    for got, want in zip(batch, alone, strict=True):
        assert got.status is frot.Status.CONVERGED
        assert got.lower <= want.upper
        assert want.lower <= got.upper
        assert got.lower <= got.value <= got.upper
        assert got.gap <= tol
        assert np.asarray(got.alpha) == pytest.approx(np.asarray(want.alpha), abs=alpha)
        low, high = got.unregularised
        other_low, other_high = want.unregularised
        assert low <= other_high
        assert other_low <= high


CASES = {
    "plain": {"eta": 0.1, "eps": 0.2},
    "relative": {"eta": frot.relative(0.05), "eps": frot.relative(0.05)},
    "small eps": {"eta": frot.relative(0.05), "eps": frot.relative(0.005)},
    "no eta": {"eta": 0.0, "eps": 0.2},
    "cosine": {"eta": 0.1, "eps": 0.05, "metric": "cosine"},
    "prior": {"eta": 0.3, "eps": 0.1, "prior": [0.5, 0.3, 0.2]},
}


@pytest.mark.parametrize("name", CASES)
def test_members_are_what_they_are_alone(name):
    X, Y = clouds()
    alone = [frot.solve(x, y, GROUPS, **CASES[name]) for x, y in zip(X, Y, strict=True)]
    check(frot.solve_batch(X, Y, GROUPS, **CASES[name]), alone)


@pytest.mark.parametrize("tol", [1e-6, 1e-9])
def test_members_are_solved_as_closely_as_asked(tol):
    X, Y = clouds(1)
    batch = frot.solve_batch(X, Y, GROUPS, eta=0.1, eps=0.2, tol=tol)
    alone = [
        frot.solve(x, y, GROUPS, eta=0.1, eps=0.2, solver=frot.Entropic(tol=tol))
        for x, y in zip(X, Y, strict=True)
    ]
    check(batch, alone, tol, alpha=20 * tol**0.5)
    assert batch.value == pytest.approx([one.value for one in alone], rel=2 * tol)


def test_weights_of_all_and_of_each():
    X, Y = clouds(2)
    a, b = weights(0, N, zeros=2), weights(1, M)[0]
    batch = frot.solve_batch(X, Y, GROUPS, a=a, b=b, eta=0.1, eps=0.2)
    pairs = zip(X, Y, a, strict=True)
    check(batch, [frot.solve(x, y, GROUPS, a=w, b=b, eta=0.1, eps=0.2) for x, y, w in pairs])
    for member, w in zip(batch, a, strict=True):
        assert member.plan.sum(axis=1) == pytest.approx(w, abs=1e-12)
        assert member.plan.sum(axis=0) == pytest.approx(b, abs=1e-12)


def test_weights_are_normalised_if_asked():
    X, Y = clouds(2)
    batch = frot.solve_batch(X, Y, a=np.arange(N), eps=0.2, normalise_weights=True)
    same = frot.solve_batch(X, Y, a=np.arange(N) / np.arange(N).sum(), eps=0.2)
    assert batch.value == pytest.approx(same.value, rel=1e-12)


def test_lists_are_batches_too():
    X, Y = clouds(3)
    stacked = frot.solve_batch(X, Y, eta=0.1, eps=0.2)
    listed = frot.solve_batch(list(X), [y.tolist() for y in Y], eta=0.1, eps=0.2)
    assert listed.value == pytest.approx(stacked.value, rel=1e-12)
    a = weights(0, N)
    by_row = frot.solve_batch(X, Y, a=list(a), eta=0.1, eps=0.2)
    assert by_row.value == pytest.approx(frot.solve_batch(X, Y, a=a, eta=0.1, eps=0.2).value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
def test_tensors_stay_tensors(dtype, metric):
    X, Y = clouds(4)
    a = weights(0, N)
    kind = getattr(torch, dtype)
    X1, Y1, a1 = (torch.asarray(part, dtype=kind) for part in (X, Y, a))
    batch = frot.solve_batch(X1, Y1, GROUPS, a=a1, eta=0.1, eps=0.1, metric=metric)
    same = frot.solve_batch(X, Y, GROUPS, a=a, eta=0.1, eps=0.1, metric=metric)
    assert batch.value == pytest.approx(same.value, rel=2e-4)
    for found in (batch.alpha, batch.phi, batch[1].alpha, batch[1].potentials[0]):
        assert type(found) is type(X1)
        assert found.dtype == kind
    assert tuple((batch[0].plan @ Y1[0, ...]).shape) == (N, D)
    assert all(status.ok for status in batch.status)


def test_lists_of_tensors_are_stacked():
    X, Y = (torch.asarray(part) for part in clouds(4))
    listed = frot.solve_batch(list(X), list(Y), eps=0.2)
    assert listed.value == pytest.approx(frot.solve_batch(X, Y, eps=0.2).value, rel=1e-4)
    assert isinstance(listed.alpha, torch.Tensor)


def test_a_batch_is_a_sequence_of_results():
    X, Y = clouds(5)
    batch = frot.solve_batch(X, Y, GROUPS, eta=0.1, eps=0.2)
    assert len(batch) == B
    assert [one.value for one in batch] == list(batch.value)
    assert batch[-1].value == batch.value[-1]
    assert [one.value for one in batch[1:4:2]] == [batch.value[1], batch.value[3]]
    assert batch.alpha.shape == batch.phi.shape == (B, 3)
    assert (batch.lower <= batch.value).all()
    assert (batch.value <= batch.upper).all()
    assert (batch.gap <= 1e-4).all()
    assert batch[0].names == ("a", "b", "c")
    with pytest.raises(IndexError):
        batch[B]
    one = batch[2]
    assert np.asarray(one.plan).sum() == pytest.approx(1.0)
    costs = np.stack(
        [((X[2][:, None, g] - Y[2][None][..., g]) ** 2).sum(-1) for g in GROUPS.values()]
    )
    assert one.phi == pytest.approx((costs * np.asarray(one.plan)).sum(axis=(1, 2)), rel=1e-9)
    assert "value" in one.summary()


def test_hard_members_beside_easy_ones():
    X, Y = clouds(6)
    # Far apart in units of eps, all in one place, or next to that: the sweeps they need differ.
    X[1] *= 12.0
    Y[2], X[2] = 0.0, 1e-3 * X[2]
    Y[3] = X[3, :M]
    batch = frot.solve_batch(X, Y, GROUPS, eta=0.05, eps=0.1)
    alone = [frot.solve(x, y, GROUPS, eta=0.05, eps=0.1) for x, y in zip(X, Y, strict=True)]
    check(batch, alone)


def test_what_single_precision_cannot_settle_is_settled_in_double():
    X, Y = clouds(7)
    X[2] *= 4.0
    X = X.astype("float32").astype(float)
    Y = Y.astype("float32").astype(float)
    tensors = torch.asarray(X, dtype=torch.float32), torch.asarray(Y, dtype=torch.float32)
    batch = frot.solve_batch(*tensors, GROUPS, eta=0.05, eps=0.01, tol=1e-7)
    alone = [
        frot.solve(x, y, GROUPS, eta=0.05, eps=0.01, solver=frot.Entropic(tol=1e-7))
        for x, y in zip(X, Y, strict=True)
    ]
    check(batch, alone, 1e-7, alpha=1e-3)


def test_parts_within_the_memory_budget():
    X, Y = clouds(8)
    whole = frot.solve_batch(X, Y, GROUPS, eta=0.1, eps=0.2, tol=1e-9)
    parts = frot.solve_batch(X, Y, GROUPS, eta=0.1, eps=0.2, tol=1e-9, memory_budget=8_000)
    ones = frot.solve_batch(X, Y, GROUPS, eta=0.1, eps=0.2, tol=1e-9, memory_budget=1)
    assert parts.value == pytest.approx(whole.value, rel=1e-8)
    assert ones.value == pytest.approx(whole.value, rel=1e-8)


@pytest.mark.parametrize(
    ("limit", "status"),
    [({"max_iter": 1}, frot.Status.MAX_ITER), ({"time_limit": 1e-9}, frot.Status.TIME_LIMIT)],
)
def test_one_warning_names_the_worst_member(limit, status):
    X, Y = clouds(9)
    X[3] *= 4.0
    with pytest.warns(frot.ConvergenceWarning) as seen:
        batch = frot.solve_batch(X, Y, GROUPS, eta=0.1, eps=0.05, tol=1e-6, **limit)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    worst = int(np.argmax(batch.gap))
    assert f"worst is member {worst} with gap" in str(seen[0].message)
    assert batch.status == (status,) * B
    assert max(batch.iterations) <= 1
    exact = frot.solve_batch(X, Y, GROUPS, eta=0.1, eps=0.05, tol=1e-6)
    assert (batch.lower <= exact.upper).all()
    assert (exact.lower <= batch.upper).all()


def test_an_unreachable_tolerance_ends_with_bounds():
    X, Y = clouds(9)
    with pytest.warns(frot.ConvergenceWarning, match="5 of 5 members"):
        batch = frot.solve_batch(X, Y, GROUPS, eta=0.1, eps=0.2, tol=1e-16)
    assert batch.status == (frot.Status.STALLED,) * B
    assert (batch.gap < 1e-11).all()


def test_one_member_one_point_one_feature():
    X, Y = clouds(10, count=1)
    check(
        frot.solve_batch(X, Y, GROUPS, eta=0.1, eps=0.2),
        [frot.solve(X[0], Y[0], GROUPS, eta=0.1, eps=0.2)],
    )
    X, Y = np.array([[[1.0]], [[2.0]]]), np.array([[[3.0]], [[3.0]]])
    batch = frot.solve_batch(X, Y, eps=0.2)
    assert batch.value == pytest.approx([4.0, 1.0])
    assert batch.alpha == pytest.approx(np.ones((2, 1)))


@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_members_without_any_cost(eta):
    X, Y = clouds(11)
    X[1], Y[1] = 2.0, 2.0
    batch = frot.solve_batch(X, Y, GROUPS, eta=eta, eps=0.2)
    assert batch.status[1] is frot.Status.CONVERGED
    assert batch.value[1] == pytest.approx(eta * np.log(3.0), abs=1e-12)
    assert batch.value[0] == pytest.approx(
        frot.solve(X[0], Y[0], GROUPS, eta=eta, eps=0.2).value, rel=2e-4
    )
    everywhere = frot.solve_batch(np.ones((2, 3, 2)), np.ones((2, 4, 2)), eps=0.1)
    assert everywhere.value == pytest.approx([0.0, 0.0], abs=1e-12)
    assert everywhere.status == (frot.Status.CONVERGED,) * 2


def test_members_that_are_the_same_points():
    X, _ = clouds(12)
    batch = frot.solve_batch(X, X, GROUPS, eta=0.1, eps=0.2)
    alone = [frot.solve(x, x, GROUPS, eta=0.1, eps=0.2) for x in X]
    check(batch, alone)


def bad(at: tuple[int, ...], value: float) -> np.ndarray:
    X = clouds()[0]
    X[at] = value
    return X


X0, Y0 = clouds()
NOT_ONE = np.full((B, N), 1.0 / N)
NOT_ONE[2] = 0.3
BAD = {
    "nan": ({"X": bad((3, 0, 1), np.nan)}, r"X\[3\]: 1 of 54 entries are NaN or infinite"),
    "inf": ({"Y": bad((4, 0, 1), np.inf)}, r"Y\[4\]: 1 of 54"),
    "ragged": ({"X": [*X0[:2], X0[2, :4], *X0[3:]]}, r"X\[2\]: has shape \(4, 6\)"),
    "text": ({"X": [*X0[:4], [["a"]]]}, r"X\[4\]: holds"),
    "members": ({"X": X0[:3]}, "as many members"),
    "features": ({"X": X0[:, :, :3]}, "features"),
    "a single problem": ({"X": X0[0], "Y": Y0[0]}, r"X\[0\]: .*rows"),
    "empty": ({"X": []}, "X: has no members"),
    "no points": ({"X": np.zeros((B, 0, D))}, r"X\[0\]: has no points"),
    "number": ({"X": 3.0}, "X: 3.0 is not a batch"),
    "mass": ({"a": NOT_ONE}, r"a\[2\]: "),
    "negative": ({"a": [-1.0] + [0.25] * 8}, "a: weights must be >= 0"),
    "count of weights": ({"a": NOT_ONE[:2]}, "a: 2 members of weights for a batch of 5"),
    "no eps": ({"eps": 0.0}, "eps: batches need eps > 0"),
    "metric": ({"metric": "cityblock"}, "metric: 'cityblock' is none of 'sqeuclidean', 'cosine'"),
    "tol": ({"tol": -1.0}, "tol"),
    "zero row": (
        {"metric": "cosine", "X": bad((3, 5), 0.0)},
        r"X\[3\] row 5 is all zeros in group 'a'",
    ),
    "no cost for a share": (
        {"X": np.ones((B, N, D)), "Y": np.ones((B, M, D)), "eps": frot.relative(0.1)},
        r"X\[0\], Y\[0\]: all costs are zero",
    ),
    "mixed": ({"X": torch.asarray(X0)}, "X, Y: are arrays of torch and numpy"),
    "grad": (
        {"X": torch.asarray(X0).requires_grad_(), "Y": torch.asarray(Y0)},
        "X: requires grad",
    ),
    "budget": ({"memory_budget": -1.0}, "memory_budget"),
    "max_iter": ({"max_iter": 0}, "max_iter"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    change, message = BAD[name]
    given: dict[str, Any] = {"X": X0, "Y": Y0, "groups": GROUPS, "eps": 0.2, **change}
    with pytest.raises(frot.InputError, match=message):
        frot.solve_batch(given.pop("X"), given.pop("Y"), **given)


def test_shares_of_no_cost_beside_shares_of_some():
    X, Y = clouds(13)
    X[1], Y[1] = 2.0, 2.0
    batch = frot.solve_batch(X, Y, GROUPS, eta=frot.relative(0.1), eps=0.2)
    assert batch.value[1] == pytest.approx(0.0, abs=1e-12)
    for at in (0, 2):
        alone = frot.solve(X[at], Y[at], GROUPS, eta=frot.relative(0.1), eps=0.2)
        check([batch[at]], [alone])


def test_products_are_those_of_the_plans():
    X, Y = clouds()
    found = frot.solve_batch(X, Y, GROUPS, a=weights(0, N, zeros=1), b=weights(1, M), eps=0.2)
    plans, (U, V) = found.plans(), clouds(3)
    ahead, back = found.products(U, V)
    assert ahead == pytest.approx(plans @ V, abs=1e-12)
    assert back == pytest.approx(np.swapaxes(plans, 1, 2) @ U, abs=1e-12)
    assert found.products(None, V)[1] is None
    assert found.products(U, None)[0] is None


def test_points_without_weight_cost_no_steps():
    X, Y = clouds()
    a = weights(0, N, zeros=1)
    kept = a[:, 1:] / a[:, 1:].sum(axis=1, keepdims=True)
    given = {"b": weights(1, M), "eps": 0.2, "eta": 0.1, "tol": 1e-8}
    lifted = frot.solve_batch(X, Y, GROUPS, a=a, **given)
    without = frot.solve_batch(X[:, 1:], Y, GROUPS, a=kept, **given)
    assert max(lifted.iterations) <= max(without.iterations) + 2


def test_it_is_written_in_a_line_whatever_its_size():
    X, Y = clouds(count=5)
    found = frot.solve_batch(X, Y, GROUPS)
    assert repr(found) == (
        f"BatchResult(5 members: 5 CONVERGED; value {found.value.min():.4g} to "
        f"{found.value.max():.4g}, largest gap {found.gap.max():.0e})"
    )
    with pytest.warns(frot.ConvergenceWarning):
        short = frot.solve_batch(X[:1], Y[:1], GROUPS, tol=1e-13, max_iter=1)
    assert repr(short).startswith(f"BatchResult(1 member: 1 MAX_ITER; value {short.value[0]:.4g},")


def test_eps_left_out_is_the_same_in_batches_and_losses():
    X, Y = clouds(count=1)
    alone = frot.solve_batch(X, Y, GROUPS)
    one = frot.solve(X[0], Y[0], GROUPS, eps=DEFAULT_EPS)
    assert alone[0].eps == pytest.approx(one.eps, rel=1e-12)
    assert FRWDLoss(GROUPS).eps == DEFAULT_EPS


@pytest.mark.parametrize(("count", "d"), [(4, 3), (100, 64)], ids=["stack", "points"])
def test_members_have_the_plans_that_were_proven(count, d):
    # Scores are in the hundreds: entries that are formed in another order, from costs of another
    # order or from blocks of other sizes, are off by as many units, and so are marginals.
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(count, 100, d)), rng.normal(size=(count, 60, d))
    with pytest.warns(UserWarning, match="max_iter"):
        batch = frot.solve_batch(X, Y, groups=[1, 1, d - 2], eps=5e-3 * d, max_iter=1)
    for member, plan in zip(batch[:5], batch.plans(), strict=False):
        np.testing.assert_allclose(np.asarray(member.plan), plan, rtol=1e-15)

"""`adversary=` at every other door: batches, distances, the loss and the selector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import frot
from frot import CappedSimplex

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 20, 5))
Y = RNG.normal(size=(3, 18, 5)) + np.linspace(0.0, 1.0, 5)
# All groups count whole: ordinary transport.
WHOLE = frot.Polytope(np.ones((1, 5)))


@pytest.mark.parametrize("eta", [0.0, 0.2])
@pytest.mark.parametrize("k", [2, 4, 5])
def test_a_batch_is_its_members(k: int, eta: float):
    adversary = CappedSimplex(k)
    options: dict[str, Any] = {"adversary": adversary, "eta": eta, "eps": frot.relative(0.05)}
    batch = frot.solve_batch(X, Y, tol=1e-6, **options)
    for at, member in enumerate(batch):
        one = frot.solve(X[at], Y[at], **options)
        assert max(one.lower, member.lower) <= min(one.upper, member.upper)
        assert adversary.contains(np.asarray(member.alpha))
        assert member.status.ok


def test_a_batch_in_single_precision_and_with_next_to_no_eps():
    adversary = CappedSimplex(3)
    torch = pytest.importorskip("torch")
    single = frot.solve_batch(torch.tensor(X).float(), torch.tensor(Y).float(), adversary=adversary)
    double = frot.solve_batch(X, Y, adversary=adversary)
    assert np.asarray(single.value) == pytest.approx(np.asarray(double.value), rel=1e-3)
    tiny = frot.solve_batch(X, Y, adversary=adversary, eps=1e-4)
    for at, member in enumerate(tiny):
        exact = frot.solve(X[at], Y[at], adversary=adversary)
        assert member.unregularised[0] <= exact.upper
        assert exact.lower <= member.unregularised[1]


def test_eta_and_prior_may_be_the_sets_own():
    prior = np.arange(1.0, 6.0) / 15.0
    own = CappedSimplex(2, 0.3, np.log(prior))
    both = {"eta": 0.3, "prior": prior, "adversary": CappedSimplex(2)}
    one, other = frot.solve(X[0], Y[0], adversary=own), frot.solve(X[0], Y[0], **both)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    assert one.eta == other.eta == 0.3
    for call in (frot.solve, frot.solve_batch, frot.pairwise):
        data = ([X[0], Y[0]],) if call is frot.pairwise else (X, Y)
        data = (X[0], Y[0]) if call is frot.solve else data
        with pytest.raises(frot.InputError, match="eta: is given here and by"):
            call(*data, adversary=own, eta=0.1)
    batch = frot.solve_batch(X, Y, adversary=own)
    assert (np.asarray(batch.eta) == 0.3).all()


def test_distances():
    clouds = [X[0], X[1], Y[0]]
    table = frot.pairwise(clouds, adversary=CappedSimplex(2))
    assert table[0, 2] == pytest.approx(frot.distance(X[0], Y[0], adversary=CappedSimplex(2)))
    assert np.diag(table) == pytest.approx(0.0)
    assert table[0, 1] <= table[0, 2] + table[2, 1] + 1e-9
    assert (table <= frot.pairwise(clouds) + 1e-9).all()
    whole = frot.pairwise(clouds, adversary=WHOLE)
    assert whole[0, 2] ** 2 == pytest.approx(frot.solve(X[0], Y[0], groups="all").value, rel=1e-6)
    with pytest.raises(frot.InputError, match="a distance needs weights of sum one"):
        frot.distance(X[0], Y[0], adversary=WHOLE)
    with pytest.raises(frot.InputError, match="a distance has no eta"):
        frot.distance(X[0], Y[0], adversary=CappedSimplex(2, 0.1))


def test_a_checkpoint_knows_the_adversary(tmp_path):
    clouds = [X[0], X[1]]
    path = tmp_path / "table"
    frot.pairwise(clouds, adversary=CappedSimplex(2), checkpoint=path)
    frot.pairwise(clouds, adversary=CappedSimplex(2), checkpoint=path)
    with pytest.raises(frot.InputError, match="checkpoint"):
        frot.pairwise(clouds, adversary=CappedSimplex(3), checkpoint=path)


@pytest.mark.parametrize("eta", [0.0, 0.1])
def test_gradients_of_the_loss(eta):
    torch = pytest.importorskip("torch")
    from frot.torch import FRWDLoss

    loss = FRWDLoss(adversary=CappedSimplex(3), gradient_tol=1e-4, eta=eta, eps=0.1)
    x, y = torch.tensor(X[0], requires_grad=True), torch.tensor(Y[0])
    loss(x, y).backward()
    assert CappedSimplex(3).contains(np.asarray(loss.result.alpha))
    assert x.grad is not None
    move, step = torch.tensor(RNG.normal(size=X[0].shape)), 1e-4
    with torch.no_grad():
        ahead, back = float(loss(x + step * move, y)), float(loss(x - step * move, y))
    assert (ahead - back) / (2.0 * step) == pytest.approx(float((x.grad * move).sum()), rel=1e-3)


def test_what_the_loss_does_not_take():
    pytest.importorskip("torch")
    import torch

    from frot.torch import FRWDLoss

    with pytest.raises(frot.InputError, match="FRWDLoss does not take"):
        FRWDLoss(adversary=WHOLE)
    with pytest.raises(frot.InputError, match="is empty for 5 groups"):
        FRWDLoss(adversary=CappedSimplex(6))(torch.tensor(X[0]), torch.tensor(Y[0]))
    with pytest.raises(frot.InputError, match="eta: is given here"):
        FRWDLoss(eta=0.1, adversary=CappedSimplex(2, 0.1))
    with pytest.raises(frot.InputError, match="solve_batch does not take Polytope"):
        frot.solve_batch(X, Y, adversary=WHOLE)
    own = FRWDLoss(eps=0.1, adversary=CappedSimplex(2, 0.1, np.log(np.full(5, 0.2))))
    assert own.eta == 0.1
    assert own.prior == pytest.approx(np.full(5, 0.2))

"""Points without weight are left out before any solver, and come back with their potentials."""

from __future__ import annotations

import numpy as np
import pytest

import frot


def far_points_of_weight(weight: float):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 4)), rng.normal(size=(5, 4)) + 0.5
    X[1], Y[3] = 1e8, -2e8
    a, b = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(5))
    a[1], b[3] = weight, 0.0
    return X, Y, a / a.sum(), b / b.sum()


@pytest.mark.parametrize("options", [{}, {"eta": 2.0}, {"eps": 0.3}, {"eta": 2.0, "eps": 0.3}])
def test_light_weights_count_as_zero(options):
    X, Y, a, b = far_points_of_weight(3e-17)
    kept = [0, 2, 3, 4, 5], [0, 1, 2, 4]
    with pytest.warns(frot.DataWarning, match="a: 1 of 6 weights are below 1e-15 of the largest"):
        whole = frot.solve(X, Y, [2, 2], a=a, b=b, **options)
    alone = frot.solve(
        X[kept[0]], Y[kept[1]], [2, 2], a=a[kept[0]], b=b[kept[1]], normalise_weights=True,
        **options,
    )  # fmt: skip
    assert whole.status is frot.Status.CONVERGED
    assert whole.value == pytest.approx(alone.value, rel=1e-4)
    plan = np.asarray(whole.plan)
    assert not plan[1].any()
    assert not plan[:, 3].any()

from __future__ import annotations

import functools
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.spatial import distance

import frot
from frot._base.fingerprint import fingerprint


@dataclass(frozen=True)
class Scaled:
    factor: float

    def __call__(self, u: Any, v: Any) -> float:
        return self.factor * float(np.abs(u - v).sum())

    def twice(self, u: Any, v: Any) -> float:
        return 2.0 * self(u, v)


class Opaque:
    def __call__(self, u: Any, v: Any) -> float:
        return 0.0


def enclosing(factor: float) -> Any:
    return lambda u, v: factor * abs(u - v).sum()


def with_default(factor: float) -> Any:
    def metric(u: Any, v: Any, factor: float = factor) -> float:
        return factor * abs(u - v).sum()

    return metric


GRID = np.arange(6.0).reshape(2, 3)

# No two of these are the same work.
DIFFERENT: list[Any] = [
    None, 0, 0.0, -0.0, 1.0, True, "1.0", b"1.0", "", [], [[]], [1.0], [[1.0]], [1.0, 1.0], {},
    {"a": 1.0}, {"a": 2.0}, GRID, GRID.T, GRID.ravel(), GRID.astype(np.float32), GRID[:0],
    GRID.astype(int), np.array(1.0), [GRID[0], GRID[1]], ["ab", "c"], ["a", "bc"], 10**30,
    frot.Exact(), frot.Exact(tol=1e-3), frot.FrankWolfe(),
    frot.FrankWolfe(oracle=frot.Sinkhorn(0.1)), frot.FrankWolfe(oracle=frot.Sinkhorn(0.2)),
    frot.relative(0.1), frot.relative(0.2), distance.euclidean, distance.cityblock, max, np.sum,
    enclosing(1.0), enclosing(2.0), with_default(1.0), with_default(2.0), lambda u, v: u @ v,
    lambda u, v: u @ v + 1.0, functools.partial(distance.minkowski, p=3),
    functools.partial(distance.minkowski, p=4), Scaled(1.0), Scaled(2.0), Scaled(1.0).twice,
    Scaled(2.0).twice, {1, 2}, {1, 3}, ..., GRID > 2.0,
]  # fmt: skip


def test_different_work_has_different_fingerprints():
    found = [fingerprint(part=part) for part in DIFFERENT]
    assert len(set(found)) == len(DIFFERENT)
    assert found == [fingerprint(part=part) for part in DIFFERENT]


def test_names_count():
    assert fingerprint(a=1.0, b=2.0) == fingerprint(b=2.0, a=1.0) != fingerprint(a=2.0, b=1.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (GRID[:, ::2], GRID[:, ::2].copy()),
        (np.asfortranarray(GRID), GRID),
        (np.float64(2.0), 2.0),
        ((1.0, 2.0), [1.0, 2.0]),
        (enclosing(2.0), enclosing(2.0)),
        ({1, 2, 3}, {3, 2, 1}),
    ],
)
def test_equal_work_has_equal_fingerprints(one, other):
    assert fingerprint(part=one) == fingerprint(part=other)


def test_a_function_that_encloses_itself():
    def metric(u: Any, v: Any) -> float:
        return metric(v, u) if u[0] > v[0] else float(v[0] - u[0])

    assert len(fingerprint(metric=metric)) == 64


def test_it_is_the_same_in_every_session():
    code = (
        "import numpy as np, frot\n"
        "from frot._base.fingerprint import fingerprint\n"
        "def metric(u, v, scale=2.0):\n"
        "    return max(abs(u - v)) if scale in {1.0, 2.0, 'x', 'y'} else [w for w in u]\n"
        "print(fingerprint(metric=metric, points=np.ones((2, 2)), solver=frot.Exact()))\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout
        for _ in range(2)
    ]
    assert len(runs[0].strip()) == 64
    assert len(set(runs)) == 1


@pytest.mark.parametrize("part", [Opaque(), [Opaque()], np.array([{}]), Opaque().__call__])
def test_what_cannot_be_recognised_is_refused(part):
    with pytest.raises(frot.InputError, match=r"metric: .* cannot be recognised in another ses"):
        fingerprint(metric=part)

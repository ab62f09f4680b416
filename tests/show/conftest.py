import pytest

import frot
from frot.datasets import toy


@pytest.fixture(scope="session")
def toy_data():
    return toy(n=30, random_state=0)


@pytest.fixture(scope="session")
def toy_result(toy_data):
    X, Y, groups = toy_data
    return frot.solve(X, Y, groups)


@pytest.fixture(scope="session")
def costs_result():
    import numpy as np

    return frot.solve_costs(np.random.default_rng(0).random((4, 12, 9)))

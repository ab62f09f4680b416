"""Labels that are permuted, and p-values from them."""

from __future__ import annotations

import numpy as np

from frot.api.permutations import permutation_p, permuted_labels


def test_permuted_labels_depend_on_seed_and_number_only():
    codes, one = np.repeat([0, 1], 20), np.zeros(40, dtype=int)
    draws = {(s, i): permuted_labels(codes, one, s, [i])[0] for s in (0, 1) for i in (0, 1)}
    assert len({tuple(labels) for labels in draws.values()}) == 4
    np.testing.assert_array_equal(draws[1, 0], permuted_labels(codes, one, 1, [0, 1])[0])


def test_p_values_count_the_data_as_a_permutation():
    null = np.arange(9.0)[:, None]
    found = [permutation_p(np.array([value]), null)[0] for value in (8.5, 8.0, -1.0)]
    assert found == [0.1, 0.2, 1.0]

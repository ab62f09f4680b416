import numpy as np
import pytest
from scipy import sparse

from frot import Groups
from frot.selection._comparison import (
    ComparedTable,
    Contrast,
    compare,
    sort_shapes,
    statistic_of,
    transport,
)
from tests.selection.planted import planted

CONTRAST = Contrast("control", "treated", (np.arange(24), np.arange(24, 40)))


def test_what_needs_no_plan_is_what_the_plan_has():
    X, _ = planted()
    data = ComparedTable(X, Groups.each(40))
    plain = compare(data, CONTRAST)
    full = transport(plain, data)
    np.testing.assert_allclose(plain.shift, full.parts.shift, rtol=1e-9)
    np.testing.assert_allclose(plain.scale, full.scale, rtol=1e-12)
    sorted_ = sort_shapes(plain, ComparedTable(sparse.csc_array(X), Groups.each(40)))
    np.testing.assert_allclose(sorted_.parts.shape, full.parts.shape, rtol=1e-9, atol=1e-12)
    assert np.isnan(sorted_.parts.phi).all()


@pytest.mark.parametrize("name", ["moderated", "t", "shift", "shape", "combined", "alpha", "phi"])
def test_statistics_alone_are_those_of_a_comparison(name):
    X, _ = planted()
    data = ComparedTable(X, Groups.each(40))
    full = transport(compare(data, CONTRAST), data)
    alone = statistic_of(data, CONTRAST, name)
    np.testing.assert_allclose(alone, full.scores(name), rtol=1e-9, atol=1e-12)

import numpy as np

from frot.selection import Parts


def test_parts_add_up_and_are_averaged():
    one = Parts.of(np.array([3.0]), np.array([1.0]), np.array([2.0]))
    two = Parts.of(np.array([5.0]), np.array([3.0]), np.array([3.0]))
    mean = Parts.mean([one, two])
    assert (mean.phi[0], mean.shift[0], mean.shape[0], mean.misalignment[0]) == (4.0, 2.0, 0.5, 1.5)

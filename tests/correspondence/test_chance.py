import numpy as np

from frot.correspondence.chance import chance


def test_more_support_is_a_better_chance_and_no_votes_are_none():
    support, some = np.linspace(0.0, 1.0, 50), np.full(50, 0.1)
    for rigidity in (0.0, 0.1, 1.0):
        found = chance(support, some, rigidity)
        assert (np.diff(found) > 0.0).all()
        assert 0.0 < found[0] < found[-1] < 1.0
        assert (chance(support, 0.0 * some, rigidity) == 0.0).all()
    assert (chance(support, some, 0.3) > chance(support, some, 0.1)).all()

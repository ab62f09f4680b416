import numpy as np

from frot.correspondence.chance import chance


def test_more_votes_are_a_better_chance_and_none_are_none():
    share = np.linspace(0.0, 1.0, 50)
    for strength in (0.0, 0.5, 1.0, 7.0):
        found = chance(share, strength)
        assert found[0] == 0.0
        assert (np.diff(found) > 0.0).all()
        assert found[-1] < 1.0
    assert (chance(share, 0.5)[1:] > chance(share, 0.0)[1:]).all()
    # A power beyond the original's was not looked at.
    assert (chance(share, 7.0) == chance(share, 1.0)).all()

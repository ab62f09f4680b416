import numpy as np

from frot.correspondence._pictures._labels import place_labels

EVERYWHERE = np.array([-np.inf, -np.inf, np.inf, np.inf])
NOTHING = np.zeros((0, 4))


def test_neither_on_one_another_nor_on_what_is_taken_nor_beyond():
    rng = np.random.default_rng(0)
    corners = rng.uniform(0.0, 10.0, (40, 4, 2))
    spots = np.concatenate([corners, corners + np.array([2.0, 1.0])], axis=2)
    taken = np.array([[2.0, 2.0, 4.0, 4.0], [7.0, 0.0, 8.0, 9.0]])
    limit = np.array([1.0, 1.0, 11.0, 9.0])
    chosen = place_labels(spots, taken, limit, range(40))
    boxes = [spots[k, spot] for k, spot in enumerate(chosen) if spot is not None]
    assert 5 < len(boxes) < 40
    for number, box in enumerate(boxes):
        assert (box[:2] >= limit[:2]).all()
        assert (box[2:] <= limit[2:]).all()
        for other in [*boxes[:number], *taken]:
            assert (box[:2] >= other[2:]).any() or (box[2:] <= other[:2]).any()


def test_who_comes_first_has_the_best_spot():
    spots = np.tile(np.array([[0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 2.0, 1.0]]), (3, 1, 1))
    # Boxes that only touch are not on one another.
    assert place_labels(spots, NOTHING, EVERYWHERE, [2, 0, 1]) == [1, None, 0]
    assert place_labels(spots[:0], NOTHING, EVERYWHERE, []) == []

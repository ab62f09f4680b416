import numpy as np

from frot.correspondence._features import FeatureMap, Grid


def test_cells_go_row_by_row_and_boxes_are_about_the_centres():
    grid = Grid(2, 3, 4.0, 11.0)
    assert grid.count == 6
    assert grid.centres[4].tolist() == [4.0, 4.0]
    assert grid.centres[3].tolist() == [0.0, 4.0]
    # 11 // 2 on both sides, as in the original.
    assert grid.boxes[4].tolist() == [-1.0, -1.0, 9.0, 9.0]


def test_cells_inside_an_image():
    # Boxes from 8 x - 21 to 8 x + 21 of an image of 64 x 80: at most 8 pixels beyond it.
    grid = Grid(8, 10, 8.0, 43.0)
    inside = grid.inside((64, 80)).reshape(8, 10)
    assert np.flatnonzero(inside.any(axis=1)).tolist() == [2, 3, 4, 5, 6]
    assert np.flatnonzero(inside.any(axis=0)).tolist() == [2, 3, 4, 5, 6, 7, 8]
    assert inside.sum() == 5 * 7
    # On the lower side the limit itself counts, on the upper it does not.
    assert Grid(1, 1, 8.0, 16.0).inside((1, 1)).all()
    assert Grid(1, 4, 8.0, 16.0).inside((24, 24)).tolist() == [True, True, True, False]


def test_where_no_cell_is_inside_all_are_kept():
    assert Grid(2, 2, 8.0, 483.0).inside((16, 16)).all()


def test_a_map_knows_its_grid():
    layer = FeatureMap("a", np.zeros((5, 2, 3), dtype=np.float32), 8, 43)
    assert (layer.channels, layer.grid) == (5, Grid(2, 3, 8.0, 43.0))

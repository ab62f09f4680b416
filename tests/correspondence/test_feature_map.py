import numpy as np

from frot.correspondence._feature_map import FeatureMap, Grid


def test_cells_go_row_by_row_and_boxes_are_about_the_centres():
    grid = Grid(2, 3, 4.0, 11.0)
    assert grid.count == 6
    assert grid.centres[4].tolist() == [4.0, 4.0]
    assert grid.centres[3].tolist() == [0.0, 4.0]
    # 11 // 2 on both sides, as in the original.
    assert grid.boxes[4].tolist() == [-1.0, -1.0, 9.0, 9.0]


def test_a_map_knows_its_grid():
    layer = FeatureMap("a", np.zeros((5, 2, 3), dtype=np.float32), 8, 43)
    assert (layer.channels, layer.grid) == (5, Grid(2, 3, 8.0, 43.0))

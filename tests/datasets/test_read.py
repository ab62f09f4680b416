import numpy as np
import pytest

import frot
from frot.datasets._expression import read_gsea, read_mat, read_npz


def test_an_npz_of_objects_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=np.array(["a", None], dtype=object))
    with pytest.raises(frot.InputError, match=r"a\.npz cannot be read"):
        read_npz(tmp_path / "a.npz")


def test_a_mat_file_without_labels(tmp_path):
    from scipy.io import savemat

    savemat(tmp_path / "a.mat", {"X": np.eye(2)})
    with pytest.raises(frot.InputError, match="as a MATLAB file with arrays X and Y: 'Y'"):
        read_mat(tmp_path / "a.mat")


def test_a_table_with_a_cell_that_is_no_number(tmp_path):
    (tmp_path / "a.txt").write_text("Gene\tNAME\ts1\nTP53\tp\tmany\n")
    (tmp_path / "a.cls").write_text("1 1 1\n# A\nA\n")
    with pytest.raises(frot.InputError, match=r"a\.txt cannot be read as a table of genes"):
        read_gsea(tmp_path / "a.txt", tmp_path / "a.cls")


def test_a_cls_file_that_is_cut_short(tmp_path):
    (tmp_path / "a.txt").write_text("Gene\tNAME\ts1\nTP53\tp\t1\n")
    (tmp_path / "a.cls").write_text("1 1 1\n")
    with pytest.raises(frot.InputError, match=r"a\.cls cannot be read as a \.cls file"):
        read_gsea(tmp_path / "a.txt", tmp_path / "a.cls")

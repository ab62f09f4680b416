from typing import Any

import numpy as np
import pytest

import frot
from frot.datasets import Expression, load_breast_cancer


def made(**changed):
    content = {
        "X": np.arange(6.0).reshape(3, 2),
        "y": np.array(["ill", "well", "ill"]),
        "feature_names": ("TP53", "MYC"),
        "name": "made",
        "source": "",
        "description": "",
        "citation": "",
        "licence": "",
    }
    return Expression(**{**content, **changed})


def test_what_it_says_about_itself():
    data = made()
    assert data.shape == (3, 2)
    assert data.classes == ("ill", "well")
    assert data.counts == {"ill": 2, "well": 1}
    assert repr(data) == "Expression('made': 3 samples of 2 features, 2 'ill' and 1 'well')"


@pytest.mark.parametrize(
    "changed", [{"y": np.array(["ill"])}, {"feature_names": ("TP53",)}, {"X": np.zeros(3)}]
)
def test_parts_that_do_not_fit(changed):
    with pytest.raises(frot.InputError, match="one label per row and one name per column"):
        made(**changed)


def test_frame_has_every_column_by_its_own_name():
    frame = made(feature_names=("class", "class")).as_frame()
    assert list(frame.columns) == ["class#2", "class#3", "class"]
    assert frame["class#3"].tolist() == [1.0, 3.0, 5.0]
    assert frame["class"].tolist() == ["ill", "well", "ill"]


def test_breast_cancer_is_scikit_learns():
    from sklearn import datasets

    theirs: Any = datasets.load_breast_cancer()
    data = load_breast_cancer()
    np.testing.assert_array_equal(data.X, theirs.data)
    np.testing.assert_array_equal(data.y == "benign", theirs.target == 1)

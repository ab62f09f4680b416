"""What is missing is said, with the scores too."""

import pytest

from frot import InputError
from frot.correspondence.datasets import load_pairs
from frot.correspondence.datasets.sets import WILLOW_CLASSES
from frot.correspondence.evaluation import evaluate, read_evaluation
from tests.correspondence import generated
from tests.correspondence.datasets.test_sets import MADE


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("spair", "JPEGImages"),
        ("pf-pascal", "Annotations"),
        ("caltech", "101_ObjectCategories"),
    ],
)
def test_a_part_that_is_missing(tmp_path, name, part):
    root = MADE[name](tmp_path)
    (root / part).rename(root / "elsewhere")
    with pytest.raises(InputError, match=rf"is incomplete: .*{part} not there; get it from"):
        load_pairs(name, root)


@pytest.mark.parametrize(("end", "other"), [(".mat", ".png"), (".png", ".mat")])
def test_one_of_two_files_of_pf_willow(tmp_path, end, other):
    root = generated.pf_willow(tmp_path, WILLOW_CLASSES)
    path = root / "car(M)" / f"photo_1{end}"
    path.unlink()
    pairs = load_pairs("pf-willow", root)
    assert len(pairs) == 9 * 6 + 2
    assert pairs.skipped[0].startswith(f"car(M)/photo_1{other} was skipped: ")
    assert pairs.skipped[0].endswith(f"{path} is missing")


class TestScores:
    """A score on part of a set says so."""

    def test_a_class_is_absent(self, tmp_path):
        root = generated.pf_willow(tmp_path / "data", WILLOW_CLASSES[1:])
        pairs = load_pairs("pf-willow", root)
        note = "incomplete: 54 of the 900 published pairs can be used, none of car(G)"
        assert pairs.notes[0].startswith(note)
        store = tmp_path / "store.sqlite"
        found = evaluate(pairs, generated.Warp(), store, progress=False, limit=5)
        for one in (found, read_evaluation(store), found.only(lambda record: True)):
            assert f"The data set is {note}" in str(one.table())

    @pytest.mark.parametrize(
        ("name", "split", "text"),
        [
            ("spair", "test", "3 of the 12234 published pairs can be used, none of aeroplane, "),
            ("spair", "test", "boat, bottle and 11 more classes"),
            ("pf-pascal", "test", "1 of the 299 published pairs can be used, none of aeroplane"),
            ("pf-pascal", "trn", "1 of the 2939 published pairs can be used"),
            ("caltech", "test", "1 of the 1515 published pairs can be used"),
        ],
    )
    def test_others(self, tmp_path, name, split, text):
        (note,) = load_pairs(name, MADE[name](tmp_path), split).notes
        assert text in note

    def test_classes_of_the_list_alone(self, tmp_path):
        root = generated.caltech(tmp_path)
        with (root / "test_pairs_caltech_with_category.csv").open("a") as file:
            file.write('ant/a.jpg,ant/b.jpg,4,"1,2,3","1,2,4","1,2,3","1,2,4"\n')
        (note,) = load_pairs("caltech", root).notes
        assert "can be used, none of ant" in note

"""What is missing is named, all of it, and said with the scores."""

import pytest

from frot import InputError
from frot.correspondence.datasets import load_pairs, verify_pairs
from frot.correspondence.datasets.sets import SOURCES, WILLOW_CLASSES, WILLOW_RELEASED
from frot.correspondence.evaluation import evaluate, read_evaluation
from tests.correspondence import generated
from tests.correspondence.datasets.test_sets import MADE

ABSENT = [name for name in WILLOW_CLASSES if name not in ("car(G)", "duck(S)")]


def test_what_is_there_is_counted_against_what_was_published(tmp_path):
    found = verify_pairs("spair", generated.spair(tmp_path))
    assert (found.found, found.published) == (3, 12234)
    assert found.missing == ("3 pairs are there where 12234 were published",)


def test_mirrored_copies_are_no_fault(tmp_path):
    found = verify_pairs("pf-pascal", generated.pf_pascal(tmp_path), "trn")
    assert found.missing == ("2 pairs are there where 2940 were published",)


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
    found = verify_pairs(name, root)
    assert not found.complete
    assert len(found.missing) == 1
    assert found.missing[0].startswith(f"{root / part} is missing; get it from https://")
    with pytest.raises(InputError, match=rf"is incomplete: .*{part} not there; get it from"):
        load_pairs(name, root)


def test_pf_willow_of_two_classes(tmp_path):
    root = generated.pf_willow(tmp_path)
    found = verify_pairs("pf-willow", root)
    gone = [
        f"{root / name} is missing; get it from {SOURCES['pf-willow'].address}" for name in ABSENT
    ]
    assert list(found.missing[:8]) == gone
    assert found.missing[8] == "12 pairs are there where 900 were published"
    assert "not those of the release" in found.missing[9]
    assert (found.found, len(found.missing)) == (12, 10)
    # A line for each, however many.
    assert str(found).splitlines()[1:] == [f"  - {text}" for text in found.missing]


def test_pf_willow_that_is_not_the_release(tmp_path):
    root = generated.pf_willow(tmp_path, WILLOW_CLASSES, photos=2)
    found = verify_pairs("pf-willow", root)
    assert found.found == 20
    assert found.missing[0] == "20 pairs are there where 900 were published"
    assert "not those of the release" in found.missing[1]


class TestFilesOfPfWillow:
    """Those of the raw layout, of which either may be gone."""

    @pytest.fixture
    def root(self, tmp_path):
        return generated.pf_willow(tmp_path, WILLOW_CLASSES)

    def gone(self, root):
        """What is missing but for the sentences on the number of pairs and the digest."""
        found = verify_pairs("pf-willow", root)
        assert not found.complete
        return [text for text in found.missing if "published" not in text and "SHA" not in text]

    @pytest.mark.parametrize(("end", "other"), [(".mat", ".png"), (".png", ".mat")])
    def test_one_of_the_two(self, root, end, other):
        """Also if it was there a moment before."""
        assert self.gone(root) == []
        path = root / "car(M)" / f"photo_1{end}"
        path.unlink()
        assert self.gone(root) == [f"{path} is missing"]
        pairs = load_pairs("pf-willow", root)
        assert len(pairs) == 9 * 6 + 2
        assert pairs.skipped[0].startswith(f"car(M)/photo_1{other} was skipped: ")
        assert pairs.skipped[0].endswith(f"{path} is missing")

    def test_both_by_the_names_of_the_release(self, root):
        here = root / "duck(S)"
        names = iter(WILLOW_RELEASED["duck(S)"])
        for number, name in zip(range(3), names, strict=False):
            for end in (".png", ".mat"):
                (here / f"photo_{number}{end}").rename(here / f"{name}{end}")
        left = WILLOW_RELEASED["duck(S)"][3:]
        assert self.gone(root) == [
            f"{here / name}{end} is missing" for name in left for end in (".png", ".mat")
        ]

    def test_a_folder_that_is_empty(self, root):
        for path in (root / "car(S)").iterdir():
            path.unlink()
        assert len(self.gone(root)) == 20


def test_photographs_of_the_list_of_pf_willow(tmp_path):
    root = generated.pf_willow_list(tmp_path)
    folder = root / "PF-dataset-WILLOW" / "car(G)"
    (folder / "photo_0.png").unlink()
    (folder / "photo_1.png").unlink()
    found = verify_pairs("pf-willow", root)
    assert found.missing == (
        f"{folder / 'photo_0.png'} is missing",
        f"{folder / 'photo_1.png'} is missing",
        "2 pairs are there where 900 were published",
    )
    folder.rename(root / "elsewhere")
    assert verify_pairs("pf-willow", root).missing[0] == f"{folder} is missing, with 3 files in it"


class TestFilesOfLists:
    """Every file that a list asks for is looked for, once, and a folder stands for its files."""

    def gone(self, name, root):
        found = verify_pairs(name, root)
        return [text for text in found.missing if "were published" not in text]

    @pytest.mark.parametrize(
        ("name", "files"),
        [
            (
                "spair",
                [
                    "JPEGImages/cat/2008_000000.jpg",
                    "JPEGImages/cat/2008_000001.jpg",
                    "PairAnnotation/test/000002-2008_000000-2008_000001:cat.json",
                ],
            ),
            (
                "pf-pascal",
                [
                    "Annotations/cat/2008_000000.mat",
                    "Annotations/cat/2008_000001.mat",
                    "JPEGImages/2008_000000.jpg",
                ],
            ),
            ("caltech", [f"101_ObjectCategories/anchor/image_000{i}.jpg" for i in (0, 1)]),
        ],
    )
    def test_files(self, tmp_path, name, files):
        root = MADE[name](tmp_path)
        if name == "pf-pascal":
            (root / "Annotations" / "cat" / "other.mat").touch()
        for file in files:
            (root / file).unlink()
        assert sorted(self.gone(name, root)) == [f"{root / file} is missing" for file in files]

    @pytest.mark.parametrize(
        ("name", "folder", "count"),
        [
            ("spair", "JPEGImages/cat", 2),
            ("pf-pascal", "Annotations/cat", 2),
            ("caltech", "101_ObjectCategories/anchor", 2),
        ],
    )
    def test_folders(self, tmp_path, name, folder, count):
        root = MADE[name](tmp_path)
        (root / folder).rename(root / "elsewhere")
        expected = f"{root / folder} is missing, with {count} files in it"
        assert self.gone(name, root) == [expected]


class TestScores:
    """A score on part of a set says so."""

    def test_a_class_is_absent(self, tmp_path):
        root = generated.pf_willow(tmp_path / "data", WILLOW_CLASSES[1:])
        pairs = load_pairs("pf-willow", root)
        note = "incomplete: 54 of the 900 published pairs can be used, none of car(G); --verify "
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
            ("pf-pascal", "trn", "1 of the 2939 published pairs can be used; "),
            ("caltech", "test", "1 of the 1515 published pairs can be used; "),
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
        assert "can be used, none of ant; " in note

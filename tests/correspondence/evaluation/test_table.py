from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from frot import InputError
from frot.correspondence.datasets.sets import SOURCES, SPAIR_CLASSES
from frot.correspondence.evaluation import Evaluation, Record, result_table
from frot.correspondence.evaluation._table import published

RNG = np.random.default_rng(0)
# Test pairs of each class of SPair-71k, in the order of the columns.
PAIRS_PER_CLASS = (
    *(690, 650, 702, 702, 870, 644, 564, 600, 646),
    *(640, 600, 600, 702, 650, 862, 664, 756, 692),
)


def made(name="SPair-71k test", categories=tuple(SPAIR_CLASSES), each=4, **options):
    records = tuple(
        Record(f"{category}-{i}", category, errors=RNG.uniform(0.0, 0.3, 3 + i), seconds=0.5)
        for category in reversed(categories)
        for i in range(each)
    )
    return Evaluation(name, records, protocol="within t times something", **options)


class TestPublished:
    """The paper's own figures, held against one another."""

    def test_numbers_of_pairs_add_up(self):
        assert sum(PAIRS_PER_CLASS) == SOURCES["spair"].counts["test"] == 12234
        assert len(PAIRS_PER_CLASS) == len(SPAIR_CLASSES) == 18

    def test_classes_weighted_by_their_pairs_give_the_total(self):
        """But for three methods, whose totals come from elsewhere than their classes."""
        off = set()
        rows = [row for row in published("SPair-71k test") if row.values]
        assert len(rows) == 37
        for row in rows:
            mean = np.average(list(row.values.values()), weights=PAIRS_PER_CLASS)
            if abs(mean - row.all) > 0.05:
                off.add(row.method)
                assert mean - row.all > 3.0
        assert off == {"CNNGeo", "A2Net", "WeakAlign"}

    @pytest.mark.parametrize(
        ("method", "total"),
        [("HPF", 28.2), ("OT", 28.3), ("FROT eta=0.3", 33.7), ("FROT eta=5.0", 24.9)],
    )
    def test_anchors(self, method, total):
        (row,) = [row for row in published("SPair-71k test") if row.method == method]
        assert row.all == total
        assert "paper" in row.source

    def test_the_short_table_is_the_papers(self):
        short = [row.method for row in published("SPair-71k test") if row.short and row.values]
        assert short[:6] == ["HPF", "OT-HPF", "OT", "FROT eta=0.3", "FROT eta=0.5", "FROT eta=0.7"]
        assert all(method.startswith("SRW") for method in short[6:])
        assert len(short) == 9

    def test_other_splits_have_none(self):
        assert published("SPair-71k val") == ()


class TestTable:
    def test_columns_are_the_papers_and_rows_say_what_they_are(self):
        table = made().table()
        assert table.classes == tuple(SPAIR_CLASSES)
        assert [row.measure for row in table.rows[:6]] == [
            f"PCK {t} per {per}" for per in ("image", "point") for t in (0.05, 0.1, 0.15)
        ]
        assert {row.source for row in table.rows[:6]} == {"measured"}
        others = {row.measure for row in table.rows[6:]}
        assert others == {"PCK 0.1 per image", "PCK 0.1 as reported"}
        assert all(row.source.count(";") == 1 for row in table.rows[6:])

    def test_figures_are_the_evaluations(self):
        found = made()
        rows = found.table(label="mine").rows
        at = {row.measure: row for row in rows if row.method == "mine"}
        for per in ("image", "point"):
            row = at[f"PCK 0.1 per {per}"]
            assert row.all == pytest.approx(100 * found.pck(0.1, per).value)
            assert row.error == pytest.approx(100 * found.pck(0.1, per).standard_error)
            assert row.values["cat"] == pytest.approx(100 * found.pck(0.1, per, "cat").value)
        shares = [np.mean(r.errors <= 0.1) for r in found.records if r.category == "cat"]
        assert at["PCK 0.1 per image"].values["cat"] == pytest.approx(100 * np.mean(shares))
        assert at["PCK 0.1 per image"].all != at["PCK 0.1 per point"].all

    def test_csv_can_be_read_back(self, tmp_path):
        path = made().table(every=True).write_csv(tmp_path / "table.csv")
        rows = list(csv.DictReader(io.StringIO(path.read_text())))
        assert len(rows) == 6 + len(published("SPair-71k test"))
        hpf = next(row for row in rows if row["method"] == "HPF")
        assert (hpf["tvmonitor"], hpf["all"], hpf["standard error"]) == ("35.6", "28.2", "")
        assert rows[0]["pairs"] == "72"

    def test_a_terminal_gets_as_many_tables_as_it_needs(self, capsys):
        from rich.console import Console

        tables = made().table().rich(100)
        assert len(tables) > 1
        console = Console(width=100, file=io.StringIO())
        for table in tables:
            console.print(table)
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert "…" not in text
        for name in (*SPAIR_CLASSES.values(), "all", "FROT eta=0.3 [2]"):
            assert name in text
        assert len(made().table().rich(400)) == 1

    def test_what_went_wrong_is_counted_and_named(self):
        records = (
            Record("good", "cat", errors=np.zeros(2), warnings=("slow",)),
            Record("bad", "cat", failure="ValueError: no"),
        )
        skipped = tuple(f"line {i} was skipped: NaN" for i in range(7))
        text = str(Evaluation("PF-WILLOW", records, skipped, "within t").table())
        assert "1 pairs failed and are left out: bad (ValueError: no)" in text
        assert "7 annotations were skipped: line 0 was skipped: NaN; line 1" in text
        assert "line 5" not in text
        assert "1 pairs were matched with a warning, good: slow" in text
        assert "OT-HPF [2]" in text
        assert "[2] SCOT (CVPR 2020)" in text
        assert "within t" in text

    def test_masks(self):
        records = tuple(Record(f"{i}", "cat", lt_acc=0.5, iou=0.2 * i) for i in range(3))
        table = Evaluation("Caltech-101", records, score="masks").table()
        assert [(row.measure, round(row.all, 1)) for row in table.rows] == [
            ("LT-ACC", 50.0),
            ("IoU", 20.0),
        ]

    def test_a_hundred_classes_are_for_files(self):
        table = made("many", tuple(f"class{i}" for i in range(101)), 1).table()
        assert "class7" in table.csv
        assert "class7" not in str(table)

    def test_several_side_by_side(self):
        table = result_table({"a": made(), "b": made()}, [0.1], others=False)
        assert [row.method for row in table.rows] == ["a", "a", "b", "b"]
        with pytest.raises(InputError, match="evaluations: are of different data sets"):
            result_table({"a": made(), "b": made("PF-WILLOW")})
        with pytest.raises(InputError, match="evaluations: are none"):
            result_table({})

    def test_methods_behind_the_first_have_their_difference_to_it(self):
        one = made()
        worse = tuple(Record(r.id, r.category, errors=r.errors + 0.05) for r in one.records)
        other = Evaluation(one.name, worse)
        table = result_table({"a": one, "b": other}, [0.1], others=False)
        apart = other.difference(one, 0.1, "image")
        text = f"{100 * apart.value:+.1f} ± {100 * apart.standard_error:.1f}"
        assert apart.value < 0.0
        assert "less a" in str(table)
        assert text in str(table)
        rows = list(csv.DictReader(io.StringIO(table.csv)))
        assert [row["less a"] for row in rows][::2] == ["", text]
        # Classes are in the file alone.
        assert "cat" in rows[0]
        assert "cat" not in str(table)

    def test_nothing_matched_is_an_error_that_says_why(self):
        found = Evaluation("made", (Record("a", "cat", failure="ValueError: no weights"),))
        with pytest.raises(InputError, match=r"no pair of made was matched; the first, a: Value"):
            found.table()


def test_of_the_photograph_and_by_difficulty():
    records = [
        Record(str(i), "cat", errors=np.array([0.05, error]), tags=tags, image_share=0.5)
        for i, (error, tags) in enumerate(
            [
                (0.15, {"viewpoint_variation": "0", "occlusion": "3"}),
                (0.25, {"viewpoint_variation": "2", "occlusion": "0"}),
                (0.15, {"viewpoint_variation": "0", "occlusion": "0"}),
            ]
        )
    ]
    found = Evaluation("SPair-71k test", tuple(records))
    assert found.pck(0.1).value == 0.5
    # Objects are half as large as their photographs.
    assert found.pck(0.1, of="image").value == pytest.approx((1.0 + 0.5 + 1.0) / 3)
    rows = {row.measure: row for row in found.table(others=False).rows}
    assert rows["PCK 0.1 of the photograph per image"].all == pytest.approx(250 / 3)
    by = {key.split(", ")[1]: row for key, row in rows.items() if "," in key}
    assert {key: row.pairs for key, row in by.items()} == {
        "viewpoint variation easy": 2, "viewpoint variation hard": 1,
        "occlusion none": 2, "occlusion both": 1,
    }  # fmt: skip
    assert by["viewpoint variation easy"].values == {"cat": 50.0}
    older = Evaluation("SPair-71k test", (Record("a", "cat", errors=np.array([0.1])),))
    assert len(older.table(others=False).rows) == 6
    with pytest.raises(InputError, match="of: this store has no sizes of photographs"):
        older.pck(of="image")
    with pytest.raises(InputError, match="of: 'box' is none of"):
        older.pck(of="box")  # type: ignore[arg-type]


def test_differences_are_of_the_pairs_that_both_matched():
    one = made()
    worse = tuple(
        Record(r.id, r.category, errors=r.errors + 0.05) for r in one.records if r.id != "cat-0"
    )
    found = one.difference(Evaluation("SPair-71k test", worse))
    assert found.count == 71
    assert found.value > 0.0
    assert found.standard_error < one.pck().standard_error
    with pytest.raises(InputError, match="other: has no pair in common"):
        one.difference(Evaluation("x", (Record("q", "cat", errors=np.zeros(1)),)))
    cats = one.only(lambda record: record.category == "cat")
    assert len(cats.records) == 4

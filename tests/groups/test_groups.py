import json
import pickle
import time
from itertools import pairwise
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from frot._base.errors import InputError
from frot.groups.groups import Groups


@st.composite
def index_lists(draw) -> tuple[int, list[list[int]]]:
    """d, and ragged, possibly overlapping, non-empty lists of distinct features."""
    d = draw(st.integers(1, 12))
    members = st.lists(st.integers(0, d - 1), min_size=1, max_size=d, unique=True)
    return d, draw(st.lists(members, min_size=1, max_size=6))


def as_lists(groups: Groups) -> list[list[int]]:
    return [members.tolist() for _, members in groups]


class TestRoundTrips:
    @given(index_lists())
    def test_index_lists_come_back(self, case):
        d, lists = case
        groups = Groups.parse(lists, d)
        assert as_lists(groups) == lists
        assert groups.names == tuple(f"g{number}" for number in range(len(lists)))
        assert groups.sizes.tolist() == [len(members) for members in lists]
        assert groups.offsets[-1] == groups.flat.size
        assert groups.covers == (set(groups.flat.tolist()) == set(range(d)))

    @given(index_lists())
    def test_every_way_to_write_members_agrees(self, case):
        d, lists = case
        lists = [sorted(members) for members in lists]
        names = [f"feature {column}" for column in range(d)]
        expected = Groups.parse(lists, d)
        masks = [np.isin(np.arange(d), members) for members in lists]
        named = [[names[column] for column in members] for members in lists]
        mapping = {f"g{number}": set(members) for number, members in enumerate(lists)}
        assert Groups.parse(masks, d) == expected
        assert Groups.parse(np.array(masks), d) == expected
        assert Groups.parse(named, d, names) == expected
        assert Groups.parse(mapping, d) == expected
        assert Groups.parse(expected, d) is expected

    @given(index_lists())
    def test_membership_holds_the_same_pairs(self, case):
        d, lists = case
        dense = Groups.parse(lists, d).membership().toarray()
        assert dense.shape == (len(lists), d)
        assert [np.flatnonzero(row).tolist() for row in dense] == [sorted(m) for m in lists]
        assert set(np.unique(dense)) <= {0.0, 1.0}

    @given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    def test_sizes_come_back(self, sizes):
        groups = Groups.parse(sizes, sum(sizes))
        assert groups.sizes.tolist() == sizes
        assert groups.in_order
        assert groups.covers
        assert Groups.parse(",".join(map(str, sizes)), sum(sizes)) == groups
        bounds = groups.offsets.tolist()
        slices = [slice(a, b) for a, b in pairwise(bounds)]
        assert Groups.parse(slices, sum(sizes)) == groups

    @given(st.lists(st.sampled_from("abc"), min_size=1, max_size=10))
    def test_labels_come_back(self, labels):
        groups = Groups.parse(labels, len(labels))
        back = np.empty(len(labels), dtype=object)
        for name, members in groups:
            back[members] = name
        assert back.tolist() == labels
        assert Groups.parse(np.array(labels), len(labels)) == groups

    @given(index_lists())
    def test_subset_of_all_is_the_same(self, case):
        d, lists = case
        groups = Groups.parse(lists, d)
        assert groups.subset(groups.names) == groups
        assert groups.subset(np.ones(len(groups), dtype=bool)) == groups
        assert as_lists(groups.subset([len(groups) - 1])) == lists[-1:]

    def test_pickle(self):
        groups = Groups.from_sizes([2, 3])
        assert pickle.loads(pickle.dumps(groups)) == groups


class TestKinds:
    @pytest.mark.parametrize("spec", [None, "each"])
    def test_each(self, spec):
        assert Groups.parse(spec, 3).names == ("x0", "x1", "x2")
        assert Groups.parse(spec, 2, ["u", "v"]).names == ("u", "v")

    def test_each_keeps_repeated_feature_names_apart(self):
        names = ["a", "a", "a#2", "a"]
        assert Groups.each(4, names).names == ("a", "a#3", "a#2", "a#4")

    def test_all(self):
        assert as_lists(Groups.parse("all", 3)) == [[0, 1, 2]]

    def test_prefix_splits_at_the_first_separator(self):
        names = ["lab_na_1", "lab.k", "age", "vital:bp", "_odd"]
        groups = Groups.parse("prefix", 5, names)
        assert groups.names == ("lab", "age", "vital", "_odd")
        assert as_lists(groups) == [[0, 1], [2], [3], [4]]

    def test_labels_may_leave_features_out(self):
        groups = Groups.parse(["1", "", "1"], 3)
        assert groups.names == ("1",)
        assert as_lists(groups) == [[0, 2]]
        assert not groups.covers

    def test_mapping_takes_a_single_member(self):
        groups = Groups.parse({"one": 0, "two": "v"}, 2, ["u", "v"])
        assert as_lists(groups) == [[0], [1]]

    def test_feature_name_with_two_columns_brings_both(self):
        assert as_lists(Groups.parse({"g": ["u"]}, 3, ["u", "v", "u"])) == [[0, 2]]

    def test_in_order(self):
        assert not Groups.parse([[1, 2], [0]], 3).in_order
        assert not Groups.parse([[0], [1]], 3).in_order
        assert Groups.parse([[0], [1, 2]], 3).in_order

    def test_arrays_are_read_only_and_the_callers_own_are_not(self):
        mine = np.array([0, 1])
        groups = Groups.parse([mine], 2)
        for array in (groups.flat, groups.offsets, groups.indices[0], groups.sizes):
            assert not array.flags.writeable
        assert mine.flags.writeable

    def test_repr(self):
        assert repr(Groups.parse([2, 8], 10)) == (
            "Groups(2 groups of 10 features: 'g0' (2), 'g1' (8))"
        )
        assert repr(Groups.each(9)) == (
            "Groups(9 groups of 9 features: 'x0' (1), 'x1' (1), 'x2' (1), …)"
        )
        assert repr(Groups.all(1)) == "Groups(1 group of 1 feature: 'all' (1))"

    def test_equality_and_hash(self):
        assert Groups.parse([1, 2], 3) == Groups.parse([[0], [1, 2]], 3)
        assert hash(Groups.parse([1, 2], 3)) == hash(Groups.parse([[0], [1, 2]], 3))
        assert Groups.all(3) != "all"

    @pytest.mark.xdist_group("alone")
    def test_one_group_per_feature_is_fast(self):
        names = [f"probe {number}" for number in range(22_283)]
        best = np.inf
        for _ in range(3):
            start = time.process_time()
            assert len(Groups.each(22_283, names).indices) == 22_283
            best = min(best, time.process_time() - start)
        assert best < 0.1


class TestFiles:
    @pytest.fixture
    def gmt(self, tmp_path) -> Path:
        path = tmp_path / "sets.gmt"
        path.write_text("ONE\t-\tA\tB\tA\n\nTWO\thttp://x\tB\tC\tZ\nNONE\t-\tY\n")
        return path

    def test_gmt(self, gmt):
        groups = Groups.parse(str(gmt), 4, ["C", "B", "A", "B"])
        assert groups.names == ("ONE", "TWO")
        assert as_lists(groups) == [[2, 1, 3], [1, 3, 0]]
        assert groups.dropped == ("NONE",)

    def test_gmt_min_size(self, gmt):
        groups = Groups.from_gmt(gmt, ["A", "B"], min_size=2)
        assert groups.names == ("ONE",)
        assert groups.dropped == ("TWO", "NONE")

    def test_gmt_errors(self, gmt, tmp_path):
        with pytest.raises(InputError, match="no gene set of"):
            Groups.from_gmt(gmt, ["1007_s_at"])
        with pytest.raises(InputError, match="need named features"):
            Groups.parse(gmt, 3)
        bad = tmp_path / "bad.gmt"
        bad.write_text("ONE\t-\tA\nonly a name\n")
        with pytest.raises(InputError, match="line 2"):
            Groups.from_gmt(bad, ["A"])

    @pytest.mark.parametrize("spec", [{"a": [0], "b": ["v", "w"]}, [1, 2], ["a", "b", "b"], "each"])
    def test_json_holds_anything_parse_reads(self, tmp_path, spec):
        names = ["u", "v", "w"]
        path = tmp_path / "groups.json"
        path.write_text(json.dumps(spec))
        assert Groups.parse(path, 3, names) == Groups.parse(spec, 3, names)

    @pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"a": [' + "9" * 6_000 + "]}"])
    def test_broken_json(self, tmp_path, text):
        path = tmp_path / "groups.json"
        path.write_text(text)
        with pytest.raises(InputError, match="not valid JSON"):
            Groups.parse(path, 3)

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("g.csv", "feature,group\nu,a\nv,b\nu,b\n"),
            ("g.csv", "u,a\nv,b\n\nu,b\n"),
            ("g.tsv", "Group\tFeature\na\tu\nb\tv\nb\tu\n"),
            ("g.csv", "0,a\n1,b\n0,b\n"),
        ],
    )
    def test_table_of_feature_and_group(self, tmp_path, name, text):
        (tmp_path / name).write_text(text)
        groups = Groups.parse(tmp_path / name, 2, ["u", "v"])
        assert groups.names == ("a", "b")
        assert as_lists(groups) == [[0], [1, 0]]

    def test_numbers_in_a_table_are_names_where_the_data_has_such_names(self, tmp_path):
        (tmp_path / "g.csv").write_text("1,a\n0,b\n")
        assert as_lists(Groups.parse(tmp_path / "g.csv", 2, ["1", "0"])) == [[0], [1]]

    def test_table_errors(self, tmp_path):
        (tmp_path / "g.csv").write_text("u,a\nv\n")
        with pytest.raises(InputError, match="line 2"):
            Groups.parse(tmp_path / "g.csv", 2, ["u", "v"])
        with pytest.raises(InputError, match="cannot read"):
            Groups.parse("missing.csv", 2)
        with pytest.raises(InputError, match=r"'groups.xlsx' is not known; give .* \(.gmt, .json"):
            Groups.parse("groups.xlsx", 2)
        (tmp_path / "latin.csv").write_bytes("u,é\n".encode("latin-1"))
        with pytest.raises(InputError, match="UTF-8"):
            Groups.parse(tmp_path / "latin.csv", 2)


NAMES = ["u", "v", "w"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([], "no groups"),
        ({}, "no groups"),
        ([[0], []], "group 'g1' is empty"),
        ({"a": [False, False, False]}, "group 'a' is empty"),
        ([[0], [3]], "group 'g1' holds feature 3, but features are numbered 0 to 2$"),
        ([[-1]], "negative numbers are not accepted"),
        ([slice(0, 4)], "group 'g0' is slice"),
        ([slice(-2, None)], "negative bounds are not accepted"),
        ([[0, 1, 0]], "group 'g0' holds feature 0 twice"),
        ([[0.5]], "group 'g0' holds members of type float64"),
        ([[0, "u"]], "group 'g0'"),
        ([[[0, 1]]], r"group 'g0' has shape \(1, 2\)"),
        ([[[0], [1, 2]]], "group 'g0' is"),
        ([object()], "group 'g0' is"),
        ([0.5, 0.5], r"sizes of groups, which are whole, and 0.5 is not; weights .* a=\.\.\., b="),
        (np.array([2.0, 1.0]), "which are whole, and 2.0 is not"),
        ([1, 2.5], "which are whole, and 2.5 is not"),
        ([[True, False]], "mask of length 2; it needs one entry for each of the 3 features"),
        ([True, False, True], "wrap it in a list"),
        ({"a": ["u", "nope"]}, "group 'a' names 'nope'"),
        ([2, 2], "add up to 4, 1 more than the 3 features"),
        ("1,1", "add up to 2, 1 fewer than the 3 features"),
        ([0, 3], "every group needs a feature"),
        (["a", "b"], "2 labels for 3 features"),
        ("perfix", "'perfix' is not known"),
        (range(3), "not a list of groups"),
        (7, "not a list of groups"),
        ({"a": [0], 1: [1], "1": [2]}, "two groups are named '1'"),
        (Groups.all(4), "made for 4 features but the data has 3"),
        (["", "", ""], "no groups"),
    ],
)
def test_errors_name_the_group_and_the_fix(spec, message):
    with pytest.raises(InputError, match=message):
        Groups.parse(spec, 3, NAMES)


def test_errors_about_missing_feature_names():
    with pytest.raises(InputError, match="pass DataFrames, or feature_names"):
        Groups.parse("prefix", 3)
    with pytest.raises(InputError, match=r"cannot read nowhere\.gmt"):
        Groups.parse("nowhere.gmt", 3)
    with pytest.raises(InputError, match="features have no names"):
        Groups.parse({"a": ["u"]}, 3)
    with pytest.raises(InputError, match="2 names for 3 features"):
        Groups.parse("each", 3, ["u", "v"])
    with pytest.raises(InputError, match="names: 1 names for 2 groups"):
        Groups.from_sizes([1, 2], names=["a"])
    with pytest.raises(InputError, match="not a flat list"):
        Groups.from_sizes([1.5])  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="n_features: "):
        Groups.each(0)


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ([], "chooses no group"),
        ([2], "keep holds 2, which is .* number from 0 to 1"),
        ([-1], "keep holds -1"),
        (["nope"], "'nope'"),
        ([True], "mask of length 1"),
        ([False, False], "no groups"),
        (["g0", "g0"], "two groups are named 'g0'"),
    ],
)
def test_subset_errors(keep, message):
    with pytest.raises(InputError, match=message):
        Groups.from_sizes([1, 2]).subset(keep)


@pytest.mark.parametrize(
    ("flat", "offsets", "message"),
    [([0, 1], [0, 1], "offsets: have to rise from 0"), ([0, 1], [0, 1, 1], "one for each name")],
)
def test_raw_arrays_are_checked(flat, offsets, message):
    with pytest.raises(InputError, match=message):
        Groups(("a", "b"), np.array(flat), np.array(offsets), 2)


def test_named_sizes_are_not_taken_for_columns():
    """Sizes without names are read as such, so that these would silently be other groups."""
    with pytest.raises(InputError, match=r"sizes or columns; for sizes, use Groups.from_sizes"):
        Groups.parse({"true": 2, "noise": 8}, 10)
    assert Groups.parse({"true": [2], "noise": [8]}, 10).sizes.tolist() == [1, 1]
    assert Groups.parse({"true": 0, "noise": 1}, 10).sizes.tolist() == [1, 1]

"""Hierarchies: every source gives a tree with one root, and every mistake names its line."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.declared import read_hierarchy
from discreet.data.hierarchy import Hierarchy
from discreet.data.hierarchy_union import union
from discreet.errors import InputError

DATA = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "../shared/data"))
needs_data = pytest.mark.skipif(not DATA.exists(), reason=f"no public data in {DATA}")

PAIRS = [("T", ""), ("A", "T"), ("B", "T"), ("a1", "A"), ("a2", "A"), ("a21", "a2")]


def check_tree(h: Hierarchy) -> None:
    """The laws every hierarchy obeys, whatever it was made from."""
    assert h.parents[0] == -1
    assert (h.parents[1:] >= 0).all()
    assert (h.parents[1:] < np.arange(1, len(h))).all()  # parents before children
    assert h.levels.shape == (len(h.leaves), h.height + 1)
    assert [h.codes[i] for i in h.levels[:, 0]] == list(h.leaves)
    assert (h.levels[:, -1] == 0).all()
    # Going up a level never splits a group.
    for level in range(h.height):
        pairs = {(h.codes[a], h.codes[b]) for a, b in h.levels[:, level : level + 2]}
        assert len({a for a, _ in pairs}) == len(pairs)


def attempt(make):
    try:
        return make()
    except InputError as error:
        return error


def check_outcome(made, file):
    """Either a sound tree, or an error that names the file; never another exception."""
    if isinstance(made, InputError):
        assert made.code
        assert made.file == str(file)
    else:
        check_tree(made)


@st.composite
def trees(draw):
    size = draw(st.integers(2, 25))
    names = draw(
        st.lists(
            st.text(
                st.characters(
                    codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufeff"
                ),
                min_size=1,
            )
            .map(str.strip)
            .filter(lambda s: s and not s.startswith("@") and s.splitlines() == [s]),
            min_size=size,
            max_size=size,
            unique=True,
        )
    )
    parents = [""] + [names[draw(st.integers(0, i - 1))] for i in range(1, size)]
    return Hierarchy.from_pairs(zip(names, parents, strict=True))


@settings(max_examples=60, deadline=None)
@given(trees())
def test_tree_laws_and_round_trips(tmp_path_factory, h):
    folder = tmp_path_factory.mktemp("h")
    check_tree(h)
    assert Hierarchy.from_pairs(h.pairs()).pairs() == h.pairs()
    h.to_hrc(folder / "a.hrc")
    again = Hierarchy.from_hrc(folder / "a.hrc", total=h.root)
    assert dict(again.pairs()) == dict(h.pairs())
    h.to_arx(folder / "a.csv")
    arx = Hierarchy.from_arx(folder / "a.csv", delimiter=";")
    check_tree(arx)
    assert arx.leaves == h.leaves
    text = [[h.codes[i] for i in row] for row in h.levels]
    assert [[arx.codes[i] for i in row] for row in arx.levels] == text


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 8), st.data())
def test_level_tables_are_kept_exactly(width, size, data):
    """Few names on purpose: they repeat on consecutive and on different levels."""
    name = st.sampled_from("abcdefgh")
    values = data.draw(st.lists(name, min_size=size, max_size=size, unique=True))
    rows = [[value, *(data.draw(name) for _ in range(width - 1)), "*"] for value in values]
    h = attempt(lambda: Hierarchy.from_levels(rows))
    if isinstance(h, InputError):
        assert h.code == "hierarchy-two-parents"
        return
    assert [[h.codes[i] for i in row] for row in h.levels] == rows
    assert h.leaves == tuple(values)
    check_labels = {tuple(row) for row in rows}
    assert len(check_labels) == len(h.leaves)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_parsers_survive_any_bytes(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("fuzz") / "h.csv"
    file.write_bytes(content)
    for read in (Hierarchy.from_hrc, Hierarchy.from_arx, Hierarchy.from_pairs):
        check_outcome(attempt(lambda: read(file)), file)  # noqa: B023 - called at once


@settings(max_examples=100, deadline=None)
@given(st.text("@ab\n;,\"' \t", max_size=60))
def test_parsers_survive_nearly_right_text(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("fuzz") / "h.csv"
    file.write_text(content, encoding="utf-8")
    for read in (Hierarchy.from_hrc, Hierarchy.from_arx, Hierarchy.from_pairs):
        check_outcome(attempt(lambda: read(file)), file)  # noqa: B023 - called at once


def test_pairs_from_frames_and_files(tmp_path):
    wanted = Hierarchy.from_pairs(PAIRS).pairs()
    columns = {"child": [c for c, _ in PAIRS], "parent": [p or None for _, p in PAIRS]}
    assert Hierarchy.from_pairs(pd.DataFrame(columns)).pairs() == wanted
    assert Hierarchy.from_pairs(pl.DataFrame(columns)).pairs() == wanted
    Hierarchy.from_pairs(PAIRS).to_pairs(tmp_path / "h.csv")
    assert Hierarchy.from_pairs(tmp_path / "h.csv").pairs() == wanted


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("A\n@@a\n", "hierarchy-depth-jump", 2),
        ("@A\n", "hierarchy-depth-jump", 1),
        ("A\n@\n", "hierarchy-empty-code", 2),
        ("A\n@a\nB\n@a\n", "hierarchy-two-parents", 4),
        ("A\nA\n", "hierarchy-duplicate", 2),
        ("A\n@Total\n", "hierarchy-two-parents", 2),
    ],
)
def test_hrc_mistakes_name_their_line(tmp_path, text, code, line):
    file = tmp_path / "region.hrc"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        Hierarchy.from_hrc(file)
    assert (caught.value.code, caught.value.line) == (code, line)
    assert caught.value.file == str(file)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("child,parent\nT,\nA,T\nb,C\n", "hierarchy-orphan", 4),
        ("child,parent\nT,\nA,B\nB,A\n", "hierarchy-cycle", 3),
        ("child,parent\nT,\nU,\n", "hierarchy-roots", 3),
        ("child,parent\nA,B\nB,A\n", "hierarchy-cycle", None),
        ("child,parent\nT,\nA,T\nA,T\n", "hierarchy-duplicate", 4),
        ("child,parent\nT,\nA,T\nB,T\nA,B\n", "hierarchy-two-parents", 5),
        ("child,parent\nT,\n,T\n", "hierarchy-empty-code", 3),
        ("child,parent\nT,\nA,T,x\n", "ragged-row", 3),
        ("child,parent\n", "hierarchy-empty", None),
    ],
)
def test_pair_mistakes_name_their_line(tmp_path, text, code, line):
    file = tmp_path / "pairs.csv"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        Hierarchy.from_pairs(file)
    assert (caught.value.code, caught.value.line) == (code, line)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a;A;*\nb;B\n", "ragged-row", 2),
        ("a;A;*\nb;;*\n", "hierarchy-empty-code", 2),
        ("a;A;*\na;A;*\n", "hierarchy-duplicate", 2),
        ("a;A;P;*\nb;A;Q;*\n", "hierarchy-two-parents", 2),
        ("a;A\nb;B\n", "hierarchy-roots", None),
    ],
)
def test_arx_mistakes_name_their_line(tmp_path, text, code, line):
    file = tmp_path / "arx.csv"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        Hierarchy.from_arx(file)
    assert (caught.value.code, caught.value.line) == (code, line)


def test_arx_names_that_repeat(tmp_path):
    file = tmp_path / "marital.csv"
    file.write_text("Married;Married;*\nMarried-AF;Married;*\nSingle;Single;*\n")
    h = Hierarchy.from_arx(file)
    assert h.leaves == ("Married", "Married-AF", "Single")
    assert h.generalize("Married-AF", 1) == "Married"
    assert h.generalize("Single", 1) == "Single"
    assert h.codes.count("Single") == 1  # goes on alone: one node
    with pytest.raises(InputError, match="Married") as caught:  # two nodes, not for a table
        union([h])
    assert caught.value.code == "hierarchy-ambiguous"


@needs_data
def test_adult_hierarchies_of_arx():
    sizes = {}
    for file in sorted((DATA / "adult").glob("adult_hierarchy_*.csv")):
        h = Hierarchy.from_arx(file)
        check_tree(h)
        sizes[file.stem.removeprefix("adult_hierarchy_")] = (len(h.leaves), h.height + 1)
        lines = file.read_text().splitlines()
        shown = [";".join(h.codes[i] for i in row) for row in h.levels]
        assert shown == lines
    assert sizes["age"] == (100, 5)
    assert sizes["native-country"] == (41, 3)
    assert sizes["salary-class"] == (2, 2)


@needs_data
def test_published_pairs_are_read():
    h = Hierarchy.from_pairs(DATA / "tables/testW_ind4_region/hier_Ind4.csv")
    assert len(h) == 412
    check_tree(h)


def test_intervals():
    h = Hierarchy.from_intervals([0, 18, 65, 100], open_high=False)
    assert h.leaves == ("<0", "0-17", "18-64", "65-99")
    assert h.leaf_of([-1, 0, 17.5, 64, 65, 100, None, float("nan")]) == [
        "<0", "0-17", "0-17", "18-64", "65-99", None, None, None,
    ]  # fmt: skip
    h = Hierarchy.from_intervals([0, 0.5, 1], labels=["below", "low", "high", "above"])
    assert h.leaf_of([0.25, 7, float("inf"), float("-inf")]) == ["low", "above", "above", "below"]
    many = Hierarchy.from_intervals(width=[5, 10, 20], low=0, high=100, values=range(105))
    check_tree(many)
    assert [many.generalize("104", level) for level in (0, 1, 2, 3, 4)] == [
        "104", "100+", "100+", "100+", "Total",
    ]  # fmt: skip
    assert many.generalize("99", 3) == "80-99"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-1000, 1000), min_size=2, max_size=8, unique=True).map(sorted),
    st.lists(st.floats(-2000, 2000), min_size=1, max_size=20),
)
def test_every_number_has_exactly_one_interval(cuts, numbers):
    h = Hierarchy.from_intervals(cuts)
    check_tree(h)
    for number, leaf in zip(numbers, h.leaf_of(numbers), strict=True):
        place = h.leaves.index(leaf)
        assert h.edges[place] <= number < h.edges[place + 1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"cuts": [1]},
        {"cuts": [3, 1]},
        {"cuts": [1, 1, 2]},
        {"cuts": [0, float("inf")]},
        {"width": 0, "low": 0, "high": 1},
        {"width": 5},
        {"width": (5, 7), "low": 0, "high": 35},
        {"width": 1e-9, "low": 0, "high": 1},
        {"cuts": [0, 1], "labels": ["a"]},
        {"cuts": [0, 5], "values": [7], "open_high": False},
    ],
)
def test_bad_intervals(arguments):
    with pytest.raises(InputError) as caught:
        Hierarchy.from_intervals(**arguments)
    assert caught.value.code == "hierarchy-intervals"


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text("abcxyz", min_size=1), st.integers(1, 50), min_size=1))
def test_merged_rare_values_reach_the_minimum(counts):
    h = Hierarchy.from_rare(counts, minimum=10)
    check_tree(h)
    assert set(h.leaves) == set(counts)
    groups: dict[str, int] = {}
    for value, count in counts.items():
        name = h.generalize(value, h.height - 1)
        groups[name] = groups.get(name, 0) + count
    assert all(total >= 10 for total in groups.values()) or sum(counts.values()) < 10
    if "Other" in h:
        assert groups["Other"] >= 10 or sum(counts.values()) < 10


def test_rare_label_must_be_free():
    with pytest.raises(InputError) as caught:
        Hierarchy.from_rare({"Other": 3, "b": 1}, minimum=2)
    assert caught.value.code == "hierarchy-duplicate"


def test_missing_values_as_a_value():
    h = Hierarchy.from_intervals([0, 18], na="NA")
    check_tree(h)
    assert h.leaves[-1] == "NA"
    assert h.leaf_of([20]) == ["18+"]
    h = Hierarchy.from_levels({"A": ["a"], "B": ["b"]}, na="?")
    check_tree(h)
    assert h.ancestors("?") == ("?", "Total")
    with pytest.raises(InputError, match="already"):
        h.with_na("a")


def test_nested_mapping_of_any_depth():
    h = Hierarchy.from_levels({"A": {"x": ["1", "2"], "y": []}, "B": "only"}, total="All")
    check_tree(h)
    assert h.root == "All"
    assert h.ancestors("2") == ("2", "x", "A", "All")
    assert h.children("B") == ("only",)
    assert "y" in h.leaves


def test_a_nested_mapping_may_begin_with_its_root():
    for levels, total in (
        ({"All": {"A": ["a"], "B": ["b"]}}, None),
        ({"All": {"A": ["a"]}}, "All"),
    ):
        h = Hierarchy.from_levels(levels, total=total)
        check_tree(h)
        assert h.root == "All"
        assert h.ancestors("a") == ("a", "A", "All")
    assert Hierarchy.from_levels({"A": ["a", "b"]}, total="All").ancestors("b") == ("b", "A", "All")
    assert Hierarchy.from_levels({"Total": "only"}).leaves == ("only",)


def test_levels_from_a_frame():
    frame = pd.DataFrame({"town": ["t1", "t2", "t1"], "land": ["L", "M", "L"]})
    h = Hierarchy.from_levels(frame, total="All")
    assert h.leaves == ("t1", "t2")
    assert h.height == 2


def test_missing_code_and_level():
    h = Hierarchy.from_pairs(PAIRS)
    for call in (lambda: h.place("zzz"), lambda: h.generalize("A", 1)):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code == "hierarchy-missing-code"
    with pytest.raises(InputError) as caught:
        h.generalize("B", 9)
    assert caught.value.code == "hierarchy-level"
    with pytest.raises(InputError) as caught:
        h.require_covers(["a1", "x9"], column="region")
    assert caught.value.column == "region"
    assert caught.value.facts["missing"] == ["x9"]


def test_hrc_refuses_codes_it_cannot_write(tmp_path):
    h = Hierarchy.flat(["@a", "b"])
    with pytest.raises(InputError):
        h.to_hrc(tmp_path / "h.hrc")
    assert not list(tmp_path.iterdir())
    h.to_hrc(tmp_path / "h.hrc", leading="#")
    assert Hierarchy.from_hrc(tmp_path / "h.hrc", leading="#").leaves == ("@a", "b")


def test_a_header_of_any_words_above_one_level_is_no_value(tmp_path):
    (tmp_path / "h.csv").write_text("Kode;Gruppe\nA;Alle\nB;Alle\n", encoding="utf-8")
    tree = read_hierarchy(tmp_path / "h.csv")
    assert (tree.root, tree.leaves) == ("Alle", ("A", "B"))

"""Hierarchies made from values: every value is a leaf, every level nests in the next."""

import datetime
import random

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.data.declared import HierarchySource, read_hierarchy
from discreet.data.hierarchy_builders import grid_levels, quantile_cuts
from discreet.data.suggestion import suggest
from discreet.errors import InputError

CODES = st.lists(st.text("AB019", min_size=1, max_size=6), min_size=1, max_size=20, unique=True)
DAYS = st.lists(st.dates(datetime.date(1900, 1, 1)), min_size=1, max_size=20, unique=True)


def opened(values, **settings):
    return HierarchySource(**settings).open("x", lambda _: dict.fromkeys(values, 1))


def require_nested(tree, values):
    """Two values that share a name at a level share it at all coarser ones."""
    assert set(tree.leaves) == {str(value) for value in values}
    rows = [
        [tree.generalize(leaf, level) for level in range(tree.levels.shape[1])]
        for leaf in tree.leaves
    ]
    for level in range(tree.levels.shape[1] - 1):
        above = {}
        for row in rows:
            assert above.setdefault(row[level], row[level + 1]) == row[level + 1]
    assert {row[-1] for row in rows} == {tree.root}


@given(CODES)
def test_prefixes_nest(codes):
    require_nested(opened(codes, prefixes=(4, 2, 1)), codes)


@given(CODES)
def test_redaction_nests(codes):
    require_nested(opened(codes, redact=3), codes)


@given(DAYS)
def test_periods_nest(days):
    require_nested(opened(days, dates=("month", "quarter", "year", "decade")), days)


@given(CODES)
def test_ordered_categories_nest(codes):
    require_nested(opened(codes, order=tuple(codes)), codes)


def test_weeks_quarters_and_years_are_dates():
    tree = opened(["2024-W05", "2024-Q1", "1999", "2024-03"], dates=("quarter", "year", "decade"))
    assert tree.generalize("2024-W05", 1) == "2024-Q1"
    assert tree.generalize("1999", 3) == "1990s"
    with pytest.raises(InputError, match="no date") as caught:
        opened(["31/01/2024"], dates=("year",))
    assert caught.value.code == "not-a-date"


def test_ends_of_quantiles_are_public():
    with pytest.raises(InputError) as caught:
        HierarchySource(quantiles=4)
    assert caught.value.code == "hierarchy-ends"
    counts = {float(value): 1 for value in range(13, 977)}
    assert quantile_cuts(counts, 4, 0, 1000)[0] == 0
    assert quantile_cuts(counts, 4, 0, 1000)[-1] == 1000
    assert not {13.0, 976.0} & set(quantile_cuts(counts, 4, 0, 1000))


def test_chapters_and_sections():
    icd = opened(["C50.9", "D62", "Z99"], standard="icd-10")
    assert [icd.generalize(code, 2) for code in ("C50.9", "D62", "Z99")] == [
        "C00-D48",
        "D50-D89",
        "Z00-Z99",
    ]
    nace = opened(["01.11", "33.20", "99.00"], standard="nace")
    assert [nace.generalize(code, 2) for code in ("01.11", "33.20", "99.00")] == ["A", "C", "U"]


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("age", range(18, 90), "widths"),
        ("pay", [x * 0.37 for x in range(500)], "widths"),
        ("day", [datetime.date(2024, 1, day) for day in range(1, 20)], "dates"),
        ("week", ["2024-W01", "2024-W02"], "dates"),
        ("zip", [f"{code:05}" for code in range(1000, 1100)], "prefixes"),
        ("nuts", ["DE111", "FR10"], "standard"),
        ("size", ["0-9", "10-49", "250+"], "order"),
        ("sector", ["IT", "Fin"], "rare"),
        ("sector", ["IT", "Other", "Other (2)"], "rare"),
        ("sector", ["IT", "Total"], "rare"),
        ("sex", [1, 2], "rare"),
        ("truth", [True, False], "rare"),
    ],
)
def test_suggestions_fit_and_can_be_made(name, values, kind):
    said = suggest(name, dict.fromkeys(values, 10))
    assert next(iter(said)) == kind
    tree = HierarchySource(
        **{key: tuple(v) if isinstance(v, list) else v for key, v in said.items()}
    )
    assert len(tree.open(name, lambda _: dict.fromkeys(values, 10)).leaves) == len(set(values))


@pytest.mark.parametrize(
    "text",
    [
        "code;belongs to\nN1;North\nS1;South\nNorth;Land\nSouth;Land\n",
        "N1;North\nS1;South\nNorth;Land\nSouth;Land\n",
        "child,parent\nLand,\nNorth,Land\nSouth,Land\nN1,North\nS1,South\n",
        "parent;child\n;Land\nLand;North\nLand;South\nNorth;N1\nSouth;S1\n",
        "Code;Parent code;Label\nNorth;Land;a\nSouth;Land;b\nN1;North;c\nS1;South;d\n",
    ],
)
def test_pairs_with_any_header_and_with_the_root_found(text, tmp_path):
    (tmp_path / "h.csv").write_text(text)
    tree = read_hierarchy(tmp_path / "h.csv")
    assert tree.root == "Land"
    assert set(tree.leaves) == {"N1", "S1"}
    assert tree.generalize("N1", 1) == "North"


def test_kmeans_cuts_follow_clusters_and_tell_no_end_of_the_records():
    rows = pd.DataFrame({"pay": [3.0, 4.0, 5.0] * 20 + [41.0, 43.0] * 10 + [97.0] * 5})
    tree = HierarchySource(kmeans=3, low=0, high=200).open(
        "pay", lambda _: dict(rows.pay.value_counts())
    )
    assert tree.children("Total") == ("0-22", "23-69", "70-199")
    told = " ".join(code for code in tree.codes if not tree.is_leaf[tree.index[code]])
    assert "97" not in told
    assert "41" not in told
    with pytest.raises(dc.InputError) as refused:
        HierarchySource(kmeans=3)
    assert refused.value.code == "hierarchy-ends"


def test_coordinates_become_cells_of_grids_and_are_released_as_such():
    draw = random.Random(1)
    rows = pd.DataFrame({name: [draw.uniform(-1, 1) for _ in range(60)] for name in ("lat", "lon")})
    grid = {"grid": [0.5, 1, 2]}
    data = dc.read(
        rows, roles={"lat": "quasi", "lon": "quasi"}, hierarchies={"lat": grid, "lon": grid}
    )
    safe = dc.anonymize(data, [dc.KAnonymity(5)], method=dc.Generalization())
    assert max(safe.frame.groupby(["lat", "lon"]).size()) >= 5
    cells = set(safe.frame["lat"]) | set(safe.frame["lon"])
    assert cells <= {"-1 – 0", "0 – 1", "-1 – -0.5", "-0.5 – 0", "0 – 0.5", "0.5 – 1", "-2 – 0",
                     "0 – 2", "Total", "*"}  # fmt: skip


@pytest.mark.parametrize("sizes", [[], [0.3, 1], [-1], [1, 0.1]])
def test_grids_that_do_not_nest_are_refused(sizes):
    with pytest.raises(InputError) as refused:
        grid_levels(["1.5"], sizes, "Total")
    assert refused.value.code == "hierarchy-grid"

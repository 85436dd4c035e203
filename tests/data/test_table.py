"""Tables: the equations against brute force, and every broken cell named."""

import itertools
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.hierarchy import Hierarchy
from discreet.data.linked import LinkedTables
from discreet.data.table import Dimension, Status, Table
from discreet.errors import InputError

DATA = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "../shared/data"))
needs_data = pytest.mark.skipif(not DATA.exists(), reason=f"no public data in {DATA}")


def random_hierarchy(draw, size, root, prefix):
    names = [root, *(f"{prefix}{i}" for i in range(1, size))]
    parents = ["", *(names[draw(st.integers(0, i - 1))] for i in range(1, size))]
    return Hierarchy.from_pairs(zip(names, parents, strict=True))


@st.composite
def sparse_cubes(draw):
    """Sparse leaf values over one to three hierarchical dimensions, all non-empty totals added."""
    dimensions = []
    for place in range(draw(st.integers(1, 3))):
        first = random_hierarchy(draw, draw(st.integers(2, 6)), "T", f"{'abc'[place]}")
        several = [first]
        if draw(st.booleans()):  # a second way to group the same leaves
            groups = {leaf: draw(st.sampled_from(["T", "x", "y"])) for leaf in first.leaves}
            pairs = [("T", ""), *((g, "T") for g in sorted(set(groups.values()) - {"T"}))]
            several.append(Hierarchy.from_pairs([*pairs, *groups.items()]))
        dimensions.append(Dimension.of(f"d{place}", several))
    leaves = [[c for c in d.codes if all(c in h.leaves for h in d.hierarchies)] for d in dimensions]
    combos = list(itertools.product(*leaves))
    chosen = draw(st.lists(st.sampled_from(combos), min_size=1, unique=True, max_size=12))
    values: dict[tuple[str, ...], float] = {}
    for combo in chosen:
        amount = draw(st.integers(-50, 100))
        ups = [
            {code for h in d.hierarchies for code in h.ancestors(leaf)}
            for d, leaf in zip(dimensions, combo, strict=True)
        ]
        for cell in itertools.product(*ups):
            values[cell] = values.get(cell, 0.0) + amount
    frame = pd.DataFrame(list(values), columns=[d.name for d in dimensions])
    frame["value"] = list(values.values())
    order = draw(st.permutations(range(len(frame))))
    hierarchies = {d.name: d.hierarchies for d in dimensions}
    return frame.iloc[list(order)], hierarchies, values, dimensions


def brute_force(values, dimensions):
    """Every (total, parts) relation, found by comparing all cells with each other."""
    found = set()
    for place, dimension in enumerate(dimensions):
        for hierarchy in dimension.hierarchies:
            for cell in values:
                if cell[place] not in hierarchy:
                    continue
                below = hierarchy.children(cell[place])
                parts = frozenset(
                    part
                    for code in below
                    if (part := (*cell[:place], code, *cell[place + 1 :])) in values
                )
                if parts:
                    found.add((place, tuple(sorted(below)), cell, parts))
    return sorted(((cell, tuple(sorted(parts))) for _, _, cell, parts in found), key=repr)


@settings(max_examples=80, deadline=None)
@given(sparse_cubes())
def test_equations_are_those_of_brute_force(cube):
    frame, hierarchies, values, dimensions = cube
    table = Table.from_cells(frame, list(hierarchies), "value", hierarchies=hierarchies)
    table.require_additive(1e-9)
    matrix = table.equations
    found = []
    for row in range(matrix.shape[0]):
        entries = matrix[[row]].tocoo()
        totals = [table.labels(c) for c, v in zip(entries.col, entries.data, strict=True) if v > 0]
        parts = [table.labels(c) for c, v in zip(entries.col, entries.data, strict=True) if v < 0]
        assert len(totals) == 1
        found.append((totals[0], tuple(sorted(parts))))
    assert sorted(found, key=repr) == brute_force(values, dimensions)
    for labels, value in values.items():
        assert table.value[table.cell(*labels)] == value


@settings(max_examples=40, deadline=None)
@given(sparse_cubes(), st.data())
def test_a_changed_cell_is_found(cube, data):
    frame, hierarchies, _, _ = cube
    table = Table.from_cells(frame, list(hierarchies), "value", hierarchies=hierarchies)
    touched = np.flatnonzero(np.diff(table.equations.tocsc().indptr) > 0)
    if not touched.size:
        return
    cell = data.draw(st.sampled_from(touched.tolist()))
    value = table.value.copy()
    value[cell] += 1000.0
    with pytest.raises(InputError) as caught:
        table.replace(value=value).require_additive(1e-6)
    assert caught.value.code == "table-not-additive"
    assert caught.value.facts["cells"]


CELLS = {
    "sector": ["Total", "IT", "HC"],
    "value": [10.0, 7.0, 3.0],
    "freq": [5, 3, 2],
    "max1": [1.0, 1.0, 2.0],
    "max2": [3.0, 3.0, 1.0],
    "primary": [0, 0, 1],
    "word": ["safe", "secondary", "primary"],
}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_every_library(kind):
    table = Table.from_cells(
        kind(CELLS),
        ["sector"],
        "value",
        count="freq",
        contributions=["max1", "max2"],
        status="word",
    )
    assert table.contributions.tolist() == [[3, 1], [3, 1], [2, 1]]  # largest first
    assert table.count.tolist() == [5, 3, 2]
    assert table.status.tolist() == [Status.SAFE, Status.SECONDARY, Status.PRIMARY]
    again = Table.from_cells(
        table.to_frame(), ["sector"], "value", count="count", contributions=["max1", "max2"]
    )
    assert (again.value == table.value).all()


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ([0, 0, 1], [0, 0, 2]),
        ([False, False, True], [0, 0, 2]),
        (["0", "0", "1"], [0, 0, 2]),
        (["s", "u", None], [0, 2, 0]),
        ([0.0, 1.0, None], [0, 2, 0]),
    ],
)
def test_flags_as_people_write_them(flags, wanted):
    frame = pl.DataFrame({**CELLS, "primary": flags}, strict=False)
    table = Table.from_cells(frame, ["sector"], "value", primary="primary")
    assert table.status.tolist() == wanted


def test_categories_and_numbers_as_codes():
    frame = pd.DataFrame({"a": pd.Categorical(["Total", "x", "y"]), "v": [3, 1, 2]})
    assert Table.from_cells(frame, ["a"], "v").cell("x") == 1
    frame = pd.DataFrame({"a": [0, 1, 2], "v": [3, 1, 2]})
    h = Hierarchy.flat(["1", "2"], total="0")
    assert Table.from_cells(frame, ["a"], "v", hierarchies={"a": h}).equations.shape == (1, 3)


@pytest.mark.parametrize(
    ("change", "arguments", "code"),
    [
        ({"value": [1.0, float("nan"), 1.0]}, {}, "not-finite"),
        ({"value": [1.0, float("inf"), 1.0]}, {}, "not-finite"),
        ({"value": [1.0, None, 1.0]}, {}, "not-finite"),
        ({"value": ["1,5", "2", "3"]}, {}, "not-a-number"),
        ({"sector": ["Total", "IT", "IT"]}, {}, "duplicate-cells"),
        ({"sector": ["Total", "IT", None]}, {}, "missing-code"),
        ({"freq": [1, -1, 2]}, {"count": "freq"}, "negative-number"),
        ({"freq": [1, 1.5, 2]}, {"count": "freq"}, "not-a-count"),
        ({"word": ["safe", "primry", "x"]}, {"status": "word"}, "unknown-status"),
        ({"primary": ["perhaps", "0", "1"]}, {"primary": "primary"}, "unknown-flag"),
        ({"max1": [-1.0, 0.0, 0.0]}, {"lower": "max1"}, "negative-number"),
        ({}, {"count": "frq"}, "unknown-column"),
        ({}, {"by": []}, "no-dimension"),
        ({}, {"by": ["sector", "sector"]}, "duplicate-columns"),
        ({}, {"hierarchies": {"sector": Hierarchy.flat(["IT"])}}, "hierarchy-not-covering"),
    ],
)
def test_broken_cells(change, arguments, code):
    arguments = {"by": ["sector"], "value": "value", **arguments}
    with pytest.raises(InputError) as caught:
        Table.from_cells(pl.DataFrame({**CELLS, **change}, strict=False), **arguments)
    assert caught.value.code == code


def test_empty_and_enormous():
    with pytest.raises(InputError) as caught:
        Table.from_cells(pd.DataFrame({"a": [], "v": []}), ["a"], "v")
    assert caught.value.code == "empty-table"
    wide = {f"d{i}": [f"{j}" for j in range(2000)] for i in range(6)}
    with pytest.raises(InputError) as caught:
        Table.from_cells(pd.DataFrame({**wide, "v": 1.0}), list(wide), "v")
    assert caught.value.code == "table-too-large"


def test_unknown_cells_and_codes():
    table = Table.from_cells(pd.DataFrame(CELLS), ["sector"], "value")
    with pytest.raises(InputError) as caught:
        table.cell("XX")
    assert caught.value.code == "unknown-code"
    grid = pd.DataFrame({"a": ["Total", "x"], "b": ["Total", "y"], "v": [2.0, 2.0]})
    with pytest.raises(InputError) as caught:
        Table.from_cells(grid, ["a", "b"], "v").cell("x", "Total")
    assert caught.value.code == "unknown-cell"


def test_only_the_total():
    table = Table.from_cells(pd.DataFrame({"a": ["Total"], "v": [3.0]}), ["a"], "v")
    assert table.equations.shape == (0, 1)
    table.require_additive()


def test_large_sparse_table():
    """Half a million cells of a cube with 10**10 combinations: only existing cells cost anything."""
    rng = np.random.default_rng(1)
    n = 100_000
    leaves = {
        "a": rng.integers(0, 3000, n),
        "b": rng.integers(0, 300, n),
        "c": rng.integers(0, 10, n),
    }
    frame = pd.DataFrame(leaves).drop_duplicates()
    frame["v"] = rng.random(len(frame))
    parts = [frame.astype({"a": str, "b": str, "c": str})]
    for name in ("a", "b", "c"):
        others = [k for k in ("a", "b", "c") if k != name]
        for part in list(parts):
            top = part.groupby(others, as_index=False)["v"].sum()
            top[name] = "Total"
            parts.append(top)
    cells = pd.concat(parts)
    table = Table.from_cells(cells, ["a", "b", "c"], "v")
    assert len(table) == len(cells) > 150_000
    table.require_additive(1e-9)
    assert table.equations.shape[0] > 10_000


@needs_data
@pytest.mark.parametrize("name", ["insee_act_size", "testW_size_region", "ssb_magnitude1"])
def test_published_tables_add_up(name):
    folder = DATA / "tables" / name
    cells = pd.read_csv(folder / "cells.csv", dtype={0: str})
    by = [c for c in cells.columns if (folder / f"hier_{c}.csv").exists()]
    hierarchies = {c: Hierarchy.from_pairs(folder / f"hier_{c}.csv") for c in by}
    cells = cells.astype(dict.fromkeys(by, str))
    table = Table.from_cells(
        cells, by, "value", count="freq", contributions=["max1", "max2"], primary="primary",
        lower="lpl", upper="upl", cost="cost", hierarchies=hierarchies,
    )  # fmt: skip
    table.require_additive(1e-3)
    assert (table.status == Status.PRIMARY).sum() == cells["primary"].sum()


def write_argus(folder):
    (folder / "size.hrc").write_text("small\n@s1\n@s2\nlarge\n")
    (folder / "t.rda").write_text(
        '<SEPARATOR> ";"\n<SAFE> "s"\n<UNSAFE> "u"\n'
        'Ind\n  <RECODEABLE>\n  <TOTCODE> "T"\n  <HIERARCHICAL>\n  <HIERLEVELS> 1 1\n'
        'Size\n  <RECODEABLE>\n  <TOTCODE> "Total"\n  <HIERARCHICAL>\n'
        '  <HIERCODELIST> "size.hrc"\n  <HIERLEADSTRING> "@"\n'
        "Val\n  <NUMERIC>\n  <DECIMALS> 1\nN\n  <FREQUENCY>\nTop\n  <MAXSCORE>\nSt\n  <STATUS>\n"
    )
    rows = {}
    for ind, size, value, n in [("11", "s1", 5, 2), ("12", "s2", 3, 1), ("21", "large", 7, 4)]:
        sizes = ("large", "Total") if size == "large" else (size, "small", "Total")
        for cell in itertools.product((ind, ind[0], "T"), sizes):
            old = rows.get(cell, (0, 0))
            rows[cell] = (old[0] + value, old[1] + n)
    lines = [f'"{i}";"{s}";{v};{n};{v};{"u" if n < 2 else "s"}' for (i, s), (v, n) in rows.items()]
    (folder / "t.tab").write_text("\n".join([*lines, '"11";"large";0;0;0;s']) + "\n")


def test_argus_files(tmp_path):
    write_argus(tmp_path)
    table = Table.from_argus(tmp_path / "t.tab")
    table.require_additive(1e-12)
    assert table.value[table.cell("T", "Total")] == 15
    assert table.dimensions[0].hierarchies[0].ancestors("12") == ("12", "1", "T")
    assert table.status[table.cell("12", "s2")] == Status.PRIMARY
    with pytest.raises(InputError):
        table.cell("11", "large")  # an empty cell is not materialised
    assert table.count[table.cell("2", "large")] == 4


def test_an_argus_file_of_frequencies_only(tmp_path):
    write_argus(tmp_path)
    rda = tmp_path / "t.rda"
    rda.write_text(rda.read_text().replace("Val\n  <NUMERIC>\n  <DECIMALS> 1\n", ""))
    lines = (tmp_path / "t.tab").read_text().splitlines()
    cut = [";".join(part for i, part in enumerate(line.split(";")) if i != 2) for line in lines]
    (tmp_path / "t.tab").write_text("\n".join(cut) + "\n")
    table = Table.from_argus(tmp_path / "t.tab")
    assert table.statistic == "count"
    assert table.value[table.cell("T", "Total")] == 7
    assert (table.count == table.value).all()


def test_an_argus_file_without_cells(tmp_path):
    write_argus(tmp_path)
    (tmp_path / "t.tab").write_text("\n")
    with pytest.raises(InputError) as caught:
        Table.from_argus(tmp_path / "t.tab")
    assert caught.value.code in ("empty-table", "empty-file")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('"11";"s1";5', "ragged-row"),
        ('"11";"s1";5,5;2;3;s', "not-a-number"),
        ('"11";"s1";5;2;3;z', "unknown-status"),
        ('"11";"zz";5;2;3;s', "hierarchy-not-covering"),
    ],
)
def test_broken_argus_files(tmp_path, line, code):
    write_argus(tmp_path)
    file = tmp_path / "t.tab"
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(InputError) as caught:
        Table.from_argus(file)
    assert caught.value.code == code
    if code != "hierarchy-not-covering":
        assert caught.value.line == len(file.read_text().splitlines())


def linked_tables(values):
    """Tables a × b and a × c of one cube."""
    frame = pd.DataFrame(
        [(f"a{i}", f"b{j}", f"c{k}", values[i, j, k]) for i, j, k in np.ndindex(values.shape)],
        columns=["a", "b", "c", "v"],
    )
    tables = []
    for by in (["a", "b"], ["a", "c"]):
        parts = [frame.groupby(by, as_index=False)["v"].sum()]
        for name in by:
            parts += [part.assign(**{name: "Total"}) for part in list(parts)]
        cells = pd.concat(parts).groupby(by, as_index=False)["v"].sum()
        tables.append(Table.from_cells(cells, by, "v"))
    return tables


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
def test_linked_tables_share_their_margins(a, b, c, seed):
    values = np.random.default_rng(seed).integers(1, 50, (a, b, c)).astype(float)
    tables = linked_tables(values)
    linked = LinkedTables.of(tables)
    joint = linked.joint
    assert len(joint) == (a + 1) * (b + 1) + (a + 1) * (c + 1) - (a + 1)
    assert linked.shared.sum() == a + 1
    assert np.abs(joint.equations @ joint.value).max() == 0
    for table, part in zip(tables, linked.split(joint.value), strict=True):
        assert (part == table.value).all()
    # Every equation of each table is there, and those among shared margins only once.
    own = [table.equations.shape[0] for table in tables]
    assert joint.equations.shape[0] == sum(own) - 1
    assert joint.replace(value=joint.value * 2).equations.shape == joint.equations.shape


def test_linked_tables_invent_no_equation():
    """A table of the North and one of the whole country: the country is not the North."""
    north = pd.DataFrame({"region": ["North"] * 3, "c": ["Total", "x", "y"], "v": [5.0, 2.0, 3.0]})
    country = pd.DataFrame({"c": ["Total", "x", "y"], "v": [12.0, 5.0, 7.0]})
    joint = LinkedTables.of(
        [Table.from_cells(north, ["region", "c"], "v"), Table.from_cells(country, ["c"], "v")]
    ).joint
    assert repr(joint) == "Table(6 cells over region × c, 2 equations)"
    assert np.abs(joint.equations @ joint.value).max() == 0


def test_linked_tables_must_agree():
    first, second = linked_tables(np.ones((2, 2, 2)))
    value = second.value.copy()
    value[second.cell("a0", "Total")] += 5
    with pytest.raises(InputError) as caught:
        LinkedTables.of([first, second.replace(value=value)])
    assert caught.value.code == "linked-values-differ"
    with pytest.raises(InputError) as caught:
        LinkedTables.of([first, second.replace(statistic="count")])
    assert caught.value.code == "linked-measures-differ"
    with pytest.raises(InputError):
        LinkedTables.of([])


def test_linked_tables_keep_the_more_careful_status():
    first, second = linked_tables(np.ones((2, 2, 2)))
    status = np.zeros(len(first), dtype=np.int8)
    status[first.cell("a0", "Total")] = Status.PRIMARY
    linked = LinkedTables.of([first.replace(status=status), second])
    in_second = linked.split(linked.joint.status)[1]
    assert in_second[second.cell("a0", "Total")] == Status.PRIMARY
    assert in_second.sum() == Status.PRIMARY

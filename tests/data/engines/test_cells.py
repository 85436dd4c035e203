"""Cells of crossed attributes: the same as counting by hand, on every engine."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.engines import Engine, connect
from discreet.data.engines.cells import cells_of
from discreet.data.hierarchy import Hierarchy
from discreet.errors import InputError

REGION = Hierarchy.from_pairs(
    [("EU", ""), ("N", "EU"), ("S", "EU"), ("N1", "N"), ("N2", "N"), ("S1", "S"), ("X", "EU")]
)
# The same regions by the sea or not: a second way to the same total.
COAST = Hierarchy.from_pairs(
    [
        ("EU", ""),
        ("sea", "EU"),
        ("land", "EU"),
        ("N1", "sea"),
        ("S1", "sea"),
        ("N2", "land"),
        ("X", "land"),
    ],
    name="coast",
)


def by_hand(rows, by, *, measure=None, unit=None, weight=None, missing="NA", margins=True):
    """Count cells from the records one by one."""
    cells = defaultdict(lambda: {"count": 0, "weight": 0.0, "sum": [], "squares": [], "units": {}})
    for number, row in enumerate(rows.to_pylist()):
        if measure is not None and row[measure] is None:
            continue  # contributes nothing
        codes = []
        for name, hierarchies in by.items():
            code = missing if row[name] is None else str(row[name])
            above = {code}
            for hierarchy in hierarchies:
                above |= set(hierarchy.ancestors(code))
            if not hierarchies:
                above |= {"Total"}
            codes.append(above if margins else {code})
        for key in itertools.product(*codes):
            cell = cells[key]
            cell["count"] += 1
            times = 1.0 if weight is None else row[weight]
            cell["weight"] += times
            who = number if unit is None else row[unit]
            cell["units"].setdefault(who, [])
            if measure is not None and row[measure] is not None:
                cell["sum"].append(row[measure] * times)
                cell["squares"].append(row[measure] ** 2 * times)
                cell["units"][who].append(row[measure])
    return cells


def close(found: float, wanted: float, scale: float) -> bool:
    return abs(found - wanted) <= 1e-9 * max(scale, 1e-300)


def compare(found: pa.Table, wanted, by, *, measure, unit, weight, largest=2, identify=False):
    assert found.num_rows == len(wanted)
    names: dict[int, object] = {}
    for row in found.to_pylist():
        cell = wanted[tuple(row[name] for name in by)]
        assert row["count"] == cell["count"]
        if unit is not None:
            assert row["units"] == len(cell["units"])
        if weight is not None:
            assert close(row["weight"], cell["weight"], cell["weight"])
        if measure is None:
            assert "sum" not in row
            continue
        assert close(row["sum"], math.fsum(cell["sum"]), sum(map(abs, cell["sum"])))
        assert close(row["sum_squares"], math.fsum(cell["squares"]), math.fsum(cell["squares"]))
        known = {who: math.fsum(values) for who, values in cell["units"].items() if values}
        order = sorted(known.values(), key=abs, reverse=True)[:largest]
        order += [0.0] * (largest - len(order))
        for rank, amount in enumerate(order, start=1):
            # Where two contributions differ in sign only, either may come first.
            assert close(abs(row[f"top_{rank}"]), abs(amount), abs(amount) + 1)
            if not identify:
                continue
            number = row[f"unit_{rank}"]
            if rank > len(known):
                assert number == -1
                continue
            candidates = {
                who for who, total in known.items() if close(total, row[f"top_{rank}"], 1e3)
            }
            assert candidates
            if len(candidates) == 1:
                who = candidates.pop()
                assert names.setdefault(number, who) == who
    if identify:
        assert len(set(names.values())) == len(names), "two units share a number"


def records(size: int = 400, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(0, 1000, size), 3).tolist()
    return pa.table(
        {
            "region": rng.choice(["N1", "N2", "S1", "X"], size).tolist(),
            "sex": [None if x < 0.1 else ("f" if x < 0.6 else "m") for x in rng.random(size)],
            "size": rng.integers(1, 4, size),
            "value": [
                None if x < 0.05 else v for x, v in zip(rng.random(size), values, strict=True)
            ],
            "firm": [f"u{x}" for x in rng.integers(0, size // 4, size)],
            "weight": np.round(1 + rng.random(size), 2),
        }
    )


BY = {"region": (REGION, COAST), "sex": (), "size": ()}


@pytest.mark.parametrize(
    "options",
    [
        {"measure": "value", "unit": "firm", "weight": None, "identify": True, "largest": 3},
        {"measure": "value", "unit": None, "weight": "weight", "identify": True},
        {"measure": None, "unit": "firm", "weight": None},
    ],
    ids=["units", "weights", "frequencies"],
)
def test_cells_are_what_counting_by_hand_gives(engine: Engine, options):
    rows = records()
    relation = engine.load(rows)
    found = cells_of(relation, BY, missing="NA", **options)
    known = {key: options[key] for key in ("measure", "unit", "weight")}
    compare(found, by_hand(rows, BY, **known), BY, **options)


def test_single_values_only(engine: Engine):
    rows = records(200, seed=2)
    options = {"measure": "value", "unit": "firm", "weight": None}
    found = cells_of(engine.load(rows), BY, missing="NA", margins=False, **options)
    compare(found, by_hand(rows, BY, margins=False, **options), BY, **options)


def test_units_that_stay_in_one_cell(engine: Engine):
    rows = records(200, seed=3)
    rows = rows.set_column(4, "firm", pa.array(np.arange(200) // 1))
    options = {"measure": "value", "unit": "firm", "weight": None}
    found = cells_of(engine.load(rows), BY, missing="NA", identify=True, **options)
    compare(found, by_hand(rows, BY, **options), BY, identify=True, **options)


def test_no_attribute_gives_one_cell(engine: Engine):
    found = cells_of(engine.load(records(50)), {}, measure="value", unit="firm")
    assert found.column("count").to_pylist() == [47]  # three records have no value


def test_no_rows_give_no_cells(engine: Engine):
    empty = records(10).slice(0, 0)
    found = cells_of(engine.load(empty), BY, measure="value", unit="firm")
    assert found.num_rows == 0
    assert found.column_names[:4] == ["region", "sex", "size", "count"]


def refused(engine: Engine, rows: pa.Table, code: str, by=None, **options) -> InputError:
    with pytest.raises(InputError) as caught:
        cells_of(engine.load(rows), by or {"a": ()}, **options)
    assert caught.value.code == code
    return caught.value


def test_bad_demands_name_the_column():
    with connect("duckdb://") as engine:
        rows = pa.table({"a": ["x", None], "v": [1.0, math.inf], "t": ["1", "2"], "u": [None, 1]})
        assert refused(engine, rows, "missing-code").column == "a"
        known = rows.slice(0, 1)
        flat = Hierarchy.flat(["y"])
        error = refused(engine, known, "hierarchy-not-covering", {"a": (flat,)})
        assert error.column == "a"
        assert "'x'" in error.message
        inner = Hierarchy.from_pairs([("T", ""), ("x", "T"), ("x1", "x")])
        assert refused(engine, known, "hierarchy-inner-value", {"a": (inner,)}).column == "a"
        assert refused(engine, known, "code-is-total", total="x").column == "a"
        assert refused(engine, rows, "not-finite", missing="NA", measure="v").column == "v"
        assert refused(engine, rows, "not-numeric", missing="NA", measure="t").column == "t"
        assert refused(engine, rows, "missing-unit", missing="NA", unit="u").column == "u"
        assert refused(engine, rows, "unknown-column", {"b": ()}).column == "b"
        assert refused(engine, rows, "out-of-range", largest=-1).code
        blank = pa.table({"a": ["", "x"]})
        assert refused(engine, blank, "empty-code").column == "a"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["N1", "N2", "S1", "X"]),
            st.sampled_from(["f", "m", None]),
            st.one_of(st.none(), st.integers(-50, 50)),
            st.integers(0, 5),
        ),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 4),
)
def test_any_records_give_the_cells_of_counting_by_hand(drawn, largest):
    region, sex, value, firm = zip(*drawn, strict=True)
    rows = pa.table(
        {
            "region": region,
            "sex": pa.array(sex, pa.string()),
            "value": pa.array(value, pa.int64()),
            "firm": firm,
        }
    )
    by = {"region": (REGION,), "sex": ()}
    options = {"measure": "value", "unit": "firm", "weight": None}
    with connect("duckdb://") as engine:
        found = cells_of(engine.load(rows), by, missing="NA", largest=largest, **options)
    compare(found, by_hand(rows, by, **options), by, largest=largest, **options)

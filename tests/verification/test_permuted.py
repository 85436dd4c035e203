"""Faults planted in the writer of a permuted release are found from the bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dc
from discreet.microdata.permutation.release import Permuted
from discreet.verification import Held
from discreet.verification.findings import UNKNOWN
from discreet.verification.permuted import check_permuted


def release(**more) -> Permuted:
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({"age": rng.integers(20, 60, 40), "pay": rng.integers(10, 90, 40) * 10})
    people = dc.read(rows, roles={"age": "quasi", "pay": "confidential"}, name="people")
    return dc.permute(people, sensitive="pay", k=3, e=20, **more)


def first_group(table: pa.Table) -> list[int]:
    groups = table.column("group_id").to_pylist()
    return [place for place, group in enumerate(groups) if group == groups[0]]


def set_values(table: pa.Table, column: str, values: dict[int, object]) -> pa.Table:
    new = table.column(column).to_pylist()
    for place, value in values.items():
        new[place] = value
    at = table.column_names.index(column)
    return table.set_column(at, column, pa.array(new, table.schema.field(column).type))


def alike(table: pa.Table) -> pa.Table:
    rows = first_group(table)
    return set_values(table, "pay", dict.fromkeys(rows, table.column("pay")[rows[0]].as_py()))


def near(table: pa.Table) -> pa.Table:
    rows = first_group(table)
    return set_values(table, "pay", {row: 500 + place for place, row in enumerate(rows)})


def missing(table: pa.Table) -> pa.Table:
    return set_values(table, "pay", dict.fromkeys(first_group(table)[1:], None))


def other_sum(table: pa.Table) -> pa.Table:
    return set_values(table, "lb_sum", {0: table.column("lb_sum")[0].as_py() + 10})


def other_mean(table: pa.Table) -> pa.Table:
    return set_values(table, "mean", dict.fromkeys(range(table.num_rows), 0.0))


def names(table: pa.Table) -> pa.Table:
    return table.append_column("who", pa.array([f"Ana {n}" for n in range(table.num_rows)]))


def other_key(table: pa.Table) -> pa.Table:
    return set_values(table, "row_id", {0: 7_000})


FAULTS = {
    "a column more in the help table": ("help", names, "columns"),
    "the mean of no group": ("help", other_mean, "bounds of every group"),
    "a key of no row": ("help", other_key, "one help row per record"),
    "one value in a group": ("permuted", alike, "3 values of pay"),
    "a narrow group": ("permuted", near, "span 20"),
    "missing values": ("permuted", missing, "3 values of pay"),
    "another record": (
        "permuted",
        lambda t: pa.concat_tables([t, t.slice(0, 1)]),
        "number of records",
    ),
    "an identifier": ("permuted", lambda t: t.append_column("who", t.column("age")), "columns"),
    "a wrong bound": ("help", other_sum, "bounds"),
    "a missing help row": ("help", lambda t: t.slice(1), "help row"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_writer_is_found_and_nothing_is_published(fault, tmp_path, monkeypatch):
    stem, change, promise = FAULTS[fault]
    written = Permuted.write_files

    def careless(self: Permuted, folder: Path) -> None:
        written(self, folder)
        file = folder / f"{stem}.parquet"
        parquet.write_table(change(parquet.read_table(file)), file)

    monkeypatch.setattr(Permuted, "write_files", careless)
    with pytest.raises(dc.EngineError) as raised:
        release(attack=False).write(tmp_path / "out")
    assert raised.value.code == "promise-broken"
    assert any(promise in broken for broken in raised.value.facts["broken"])
    assert list(tmp_path.iterdir()) == []


def test_the_cap_is_counted_again(tmp_path):
    out = release(attack=False, cap=True).write(tmp_path / "out")
    found = dc.verify(out)
    assert found.holds
    assert any("1/3" in finding.promise for finding in found.findings)


def test_owners_are_counted_where_the_curator_has_them(tmp_path):
    made = release(attack=False)
    out = made.write(tmp_path / "out")
    promise = dict(made.promises()[0]) | {"counted": "people"}
    assert [f.verdict for f in check_permuted(out, promise, Held())].count(UNKNOWN) == 1
    groups = parquet.read_table(out / "permuted.parquet").column("group_id")
    owners = pa.table({"group": groups, "unit": list(range(len(groups)))})
    assert all(f.holds for f in check_permuted(out, promise, Held(owners=owners)))
    one = pa.table({"group": groups, "unit": groups})
    assert not all(f.holds for f in check_permuted(out, promise, Held(owners=one)))

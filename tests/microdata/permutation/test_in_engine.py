"""Permutation of records that stay in their engine: the groups and bounds that memory would give."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import InputError
from discreet.verification.folder import verify

# The package gives the function of this name.
module = importlib.import_module("discreet.microdata.permutation.permute")


def people(size: int = 400) -> pd.DataFrame:
    drawn = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": drawn.integers(18, 80, size),
            "pay": np.round(drawn.gamma(2, 1000, size), 2),
            "sick": drawn.integers(-3, 40, size),
            "small": drawn.choice([1e-300, -1e-300, 5.0, 0.5, 1e9, 3.25], size),
        }
    )
    frame.loc[frame.index % 29 == 0, "pay"] = None
    return frame


def both(monkeypatch, engine, sensitive, **demand):
    rows = pa.Table.from_pandas(people()[["age", sensitive]], preserve_index=False)
    roles = {"age": "quasi", sensitive: "confidential"}
    data = dc.read(rows, engine=engine, roles=roles, name="people")
    monkeypatch.setattr(module, "IN_MEMORY", 0)
    stays = dc.permute(data, sensitive=sensitive, **demand)
    monkeypatch.setattr(module, "IN_MEMORY", 10**9)
    return stays, dc.permute(data, sensitive=sensitive, **demand)


@pytest.mark.parametrize(
    ("sensitive", "demand"),
    [("pay", {"k": 5, "e": 20}), ("sick", {"k": 3, "partition": "min-sum"}), ("small", {"k": 2})],
)
def test_groups_and_bounds_are_those_of_memory(engine, monkeypatch, sensitive, demand):
    if engine.name == "spark" and sensitive == "small":
        pytest.skip("one column each way is enough on a cluster")
    stays, held = both(monkeypatch, engine, sensitive, **demand)
    assert stays.facts == held.facts
    one, two = (
        safe.engine.fetch(safe.help).sort_by("row_id").to_pandas() for safe in (stays, held)
    )
    pd.testing.assert_frame_equal(one, two, check_dtype=False)
    rows = [safe.engine.fetch(safe.permuted).to_pandas() for safe in (stays, held)]
    for name in ("age", sensitive):
        parts = [frame.groupby("group_id")[name].apply(sorted) for frame in rows]
        if name == sensitive:
            assert parts[0].equals(parts[1])
        else:  # equal values at the border of two groups may be anybody's
            assert parts[0].apply(len).equals(parts[1].apply(len))
    assert stays.risk.insiders == held.risk.insiders


def test_values_change_hands_by_lot(duckdb_engine, monkeypatch):
    """Among 387 records, that fewer than half change hands has odds below 1e-6: k is 5."""
    stays, _ = both(monkeypatch, duckdb_engine, "pay", k=5)
    rows = stays.engine.fetch(stays.permuted).to_pandas()
    assert rows["group_id"].is_monotonic_increasing
    # In the order of the file, the values of each group are in no order of their own.
    rising = rows.groupby("group_id")["pay"].apply(lambda part: part.is_monotonic_increasing)
    assert rising.mean() < 0.5
    true = people().dropna()[["age", "pay"]].apply(tuple, axis=1)
    kept = sum(pair in set(true) for pair in rows[["age", "pay"]].apply(tuple, axis=1))
    assert kept < len(rows) / 2


def test_what_is_written_keeps_its_promise(duckdb_engine, monkeypatch, tmp_path):
    stays, _ = both(monkeypatch, duckdb_engine, "pay", k=5, e=20)
    folder = stays.write(tmp_path / "out")
    assert verify(folder).holds
    from pyarrow import parquet

    file = folder / "permuted.parquet"
    rows = parquet.read_table(file)
    parquet.write_table(rows.take(pa.array(np.arange(rows.num_rows)[::-1])), file)
    assert verify(folder).holds  # in another order it says the same
    swapped = rows["pay"].to_pylist()
    swapped[0], swapped[-1] = swapped[-1], swapped[0]
    parquet.write_table(rows.set_column(2, "pay", pa.array(swapped)), file)
    assert not verify(folder).holds


def test_what_stays_in_memory_still_works(duckdb_engine, monkeypatch):
    monkeypatch.setattr(module, "IN_MEMORY", 0)
    frame = people().assign(who=np.arange(400) // 2, ill=["a", "b", "c", "d"] * 100)
    roles = {"age": "quasi", "pay": "confidential", "who": "identifier"}
    data = dc.read(frame[["age", "pay", "who"]], roles=roles, unit="who")
    assert dc.permute(data, sensitive="pay", k=3).facts.people_reached >= 3
    words = dc.read(frame[["age", "ill"]], roles={"age": "quasi", "ill": "confidential"})
    assert dc.permute(words, sensitive="ill", k=3).facts.k_reached >= 3
    empty = dc.read(
        pd.DataFrame({"age": [1, 2], "pay": [None, None]}).astype({"pay": float}),
        roles={"age": "quasi", "pay": "confidential"},
    )
    with pytest.raises(InputError) as caught:
        dc.permute(empty, sensitive="pay", k=2)
    assert caught.value.code == "no-records"

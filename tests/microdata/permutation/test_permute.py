"""Releases: what leaves, what it promises, and that it can be read back by anyone."""

from __future__ import annotations

import datetime
import decimal
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dc
from discreet.errors import InfeasibleError, InputError, RefusedError
from discreet.microdata.jobs.permutation import Permutation
from discreet.microdata.permutation.groups import GROUP
from discreet.microdata.permutation.partitions.local import Local
from discreet.microdata.permutation.release import Permuted
from discreet.randomness import Randomness

ROLES = {"name": "identifier", "age": "quasi", "sex": "quasi", "hours": "quasi", "pay": "confidential",
         "illness": "confidential"}  # fmt: skip


def frame(n=200, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": rng.integers(18, 80, n),
            "sex": rng.choice(["f", "m"], n),
            "hours": rng.integers(1, 60, n),
            "pay": rng.integers(0, 60, n) * 50,
            "illness": rng.choice(["flu", "cold", "none", "hip", "eye"], n, p=[.3, .2, .3, .1, .1]),
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def people():
    return dc.read(frame(), roles=ROLES, name="people")


def test_the_release_keeps_everything_but_who_has_which_value(people):
    safe = dc.permute(people, sensitive="pay", k=4, e=100)
    original, released = people.frame, safe.frame
    assert list(released.columns) == ["age", "sex", "hours", GROUP, "pay"]
    assert safe.facts.dropped == ("name", "illness")
    # The same quasi-identifiers, the same values of each group, dealt out anew.
    key = ["age", "sex", "hours"]
    left = original[key].sort_values(key).reset_index(drop=True)
    assert left.equals(released[key].sort_values(key).reset_index(drop=True))
    assert sorted(original["pay"]) == sorted(released["pay"])
    for _, group in released.groupby(GROUP):
        assert group["pay"].nunique() >= 4
        assert np.ptp(group["pay"]) >= 100
    assert safe.check() == safe.facts.__class__(**{**safe.facts.__dict__, "dropped": ()})


def test_values_inside_a_group_are_dealt_uniformly():
    few = dc.read(pd.DataFrame({"age": [1, 2, 3], "pay": [10, 20, 30]}), roles={"age": "quasi"})
    rng = Randomness.seeded(5)
    seen = [
        tuple(dc.permute(few, sensitive="pay", k=3, rng=rng, attack=False).frame["pay"])
        for _ in range(120)
    ]
    counts = pd.Series(seen).value_counts()
    assert len(counts) == 6
    assert counts.min() >= 6  # 20 expected of each; fewer than 6 happens once in ten thousand


def test_the_help_table_is_what_the_paper_says(people):
    safe = dc.permute(people, sensitive="pay", k=4, e=100)
    rows = safe.frame
    table = safe.help_frame.set_index("row_id")
    assert len(table) == len(rows)
    for group, members in rows.groupby(GROUP):
        values = sorted(members["pay"])
        for hits in range(1, len(values) + 1):
            line = table.loc[group + hits]
            assert (line[GROUP], line["hits"]) == (group, hits)
            assert line["lb_sum"] == sum(values[:hits])
            assert line["ub_sum"] == sum(values[-hits:])
            assert (line["lb_min"], line["ub_min"]) == (values[0], values[-hits])
            assert (line["lb_max"], line["ub_max"]) == (values[hits - 1], values[-1])
            assert line["mean"] == pytest.approx(np.mean(values))


@pytest.mark.parametrize(
    "partition", ["weighted", "min-sum", "min-max", "min-max-exact", "local", "sequential"]
)
def test_every_partition_reaches_what_was_asked(people, partition):
    safe = dc.permute(people, sensitive="pay", k=5, e=300, partition=partition)
    assert safe.facts.k_reached >= 5
    assert safe.facts.e_reached >= 300
    assert safe.facts.partition["name"] == partition
    assert safe.evidence().kind == "permutation"


def test_the_cap_bounds_the_share_of_one_value(people):
    safe = dc.permute(people, sensitive="pay", k=4, cap=True)
    assert safe.facts.worst_share <= 0.25
    assert "makes up" not in safe.evidence().verdict
    rows = pd.DataFrame({"age": range(10), "pay": [1] * 8 + [2, 3]})
    heavy = dc.read(rows, roles={"age": "quasi"})
    assert "makes up 80%" in dc.permute(heavy, sensitive="pay", k=3).evidence().verdict
    with pytest.raises(InfeasibleError, match="at most k=1"):
        dc.permute(heavy, sensitive="pay", k=3, cap=True)


def test_categories_have_no_range_and_are_counted(people):
    safe = dc.permute(people, sensitive="illness", k=3, cap=True)
    assert "pay" not in safe.frame.columns
    assert safe.facts.worst_share <= 1 / 3
    row = safe.ask(
        "SELECT COUNT(*) AS c FROM people WHERE illness = 'flu' AND age < 40"
    ).frame.iloc[0]
    truth = ((people.frame["illness"] == "flu") & (people.frame["age"] < 40)).sum()
    assert row["c_lower"] <= truth <= row["c_upper"]
    with pytest.raises(RefusedError, match="categories"):
        safe.ask("SELECT MAX(illness) FROM people")
    with pytest.raises(InputError, match="leave out e"):
        dc.permute(people, sensitive="illness", k=3, e=5)


def test_missing_values_are_left_out_and_counted():
    rows = frame()
    rows.loc[::10, "pay"] = np.nan
    safe = dc.permute(dc.read(rows, roles=ROLES), sensitive="pay", k=3)
    assert safe.facts.missing == 20
    assert safe.facts.records == 180
    assert safe.ask("SELECT COUNT(*) AS n FROM data").frame["n_lower"][0] == 180


def test_frames_come_back_in_the_type_that_went_in():
    rows = frame()
    for given in (rows, pl.from_pandas(rows), pa.Table.from_pandas(rows, preserve_index=False)):
        safe = dc.permute(dc.read(given, roles=ROLES, name="t"), sensitive="pay", k=3, attack=False)
        assert type(safe.frame) is type(given)
        assert type(safe.ask("SELECT SUM(pay) FROM t WHERE age < 30").frame) is type(given)


def test_decimals_dates_and_nulls_in_other_columns():
    rng = np.random.default_rng(0)
    n = 60
    rows = pa.table(
        {
            "born": pa.array([datetime.date(1950 + int(i), 1, 1) for i in rng.integers(0, 50, n)]),
            "area": pa.array([None if i % 7 == 0 else f"a{i % 3}" for i in range(n)]),
            "pay": pa.array([decimal.Decimal(int(x)) / 100 for x in rng.integers(0, 99999, n)], pa.decimal128(9, 2)),
        }
    )  # fmt: skip
    data = dc.read(rows, roles={"born": "quasi", "area": "quasi", "pay": "confidential"}, name="t")
    safe = dc.permute(data, sensitive="pay", k=3, partition=Local(width=6))
    assert safe.kind == "decimal"
    answer = safe.ask(
        "SELECT area, SUM(pay) AS s, MEDIAN(pay) AS m FROM t WHERE born < '1980-01-01' GROUP BY area"
    )
    table = rows.to_pandas()
    table["pay"] = table["pay"].astype(float)
    chosen = table[table["born"] < datetime.date(1980, 1, 1)]
    for row in answer.frame.to_pylist():
        own = (
            chosen[chosen["area"].isna()]
            if row["area"] is None
            else chosen[chosen["area"] == row["area"]]
        )
        assert row["s_lower"] - 1e-6 <= own["pay"].sum() <= row["s_upper"] + 1e-6
        assert row["m_lower"] - 1e-6 <= own["pay"].median() <= row["m_upper"] + 1e-6


def test_infeasible_demands_and_wrong_columns(people):
    with pytest.raises(InfeasibleError, match="at most k=5"):
        dc.permute(people, sensitive="illness", k=9)
    with pytest.raises(InfeasibleError, match="e=2950"):
        dc.permute(people, sensitive="pay", k=2, e=1e6)
    with pytest.raises(InputError, match="'pay'"):
        dc.permute(people, sensitive="payy", k=2)
    with pytest.raises(InputError, match="identifies people"):
        dc.permute(people, sensitive="name", k=2)
    with pytest.raises(InputError, match="write 'weighted'"):
        dc.permute(people, sensitive="pay", k=2, partition="weihgted")
    with pytest.raises(InputError, match="rename it"):
        dc.permute(frame().rename(columns={"hours": GROUP}), sensitive="pay", k=2)
    endless = pd.DataFrame({"a": [1, 2], "pay": [1.0, np.inf]})
    data = dc.read(endless, roles={"a": "quasi"})
    with pytest.raises(InputError, match="infinite"):
        dc.permute(data, sensitive="pay", k=2)


def test_written_and_read_back_by_anyone(people, tmp_path):
    safe = dc.permute(people, sensitive="pay", k=4, e=100)
    safe.write(tmp_path / "out")
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {"permuted.parquet", "help.parquet", "report.html", "evidence.json"}
    evidence = json.loads((tmp_path / "out" / "evidence.json").read_text())
    assert evidence["settings"]["k_reached"] >= 4
    assert evidence["randomness"] == "secure"
    assert set(evidence["risk"]) == {"worst_share", "insiders", "definetti", "ordering"}
    sql = "SELECT sex, AVG(pay) AS m FROM people WHERE age < 40 GROUP BY sex ORDER BY sex"
    again = Permuted.read(tmp_path / "out")
    expected = safe.ask(sql).rows()[1]
    for path in ("memory", "engine"):
        for line, other in zip(again.ask(sql, path=path).rows()[1], expected, strict=True):
            assert line == pytest.approx(other)
    # Two tables are all it takes.
    (tmp_path / "out" / "evidence.json").unlink()
    alone = Permuted.read(tmp_path / "out")
    assert alone.sensitive == "pay"
    assert alone.ask("SELECT COUNT(*) AS n FROM data").kind == "exact"
    text = (tmp_path / "out" / "report.html").read_text()
    assert "person 1" not in text


def test_csv_files_are_enough(people, tmp_path):
    safe = dc.permute(people, sensitive="pay", k=4, e=100)
    safe.write_files(tmp_path, format="csv")
    again = Permuted.read(tmp_path)
    ours = safe.ask("SELECT SUM(pay) AS s FROM people WHERE sex = 'f'").rows()[1]
    assert (
        again.ask("SELECT SUM(pay) AS s FROM data WHERE sex = 'f'").rows()[1][0][:2] == ours[0][:2]
    )


def test_a_seeded_release_is_not_written(people, tmp_path):
    safe = dc.permute(people, sensitive="pay", k=4, rng=Randomness.seeded(1))
    for leave in (lambda: safe.write(tmp_path / "out"), lambda: safe.store("seeded")):
        with pytest.raises(RefusedError) as caught:
            leave()
        assert caught.value.code == "seeded-randomness"
    assert not (tmp_path / "out").exists()


def test_reading_what_is_not_a_release(tmp_path):
    with pytest.raises(InputError, match="no permuted table"):
        Permuted.read(tmp_path)
    for name in ("permuted", "help"):
        table = pa.table({"group_id": [1], "pay": [2]})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="row_id"):
        Permuted.read(tmp_path)


def test_tables_in_every_engine(engine):
    rows = pa.Table.from_pandas(frame(60), preserve_index=False)
    relation = engine.load(rows)
    data = dc.read(rows, roles=ROLES, name="people").replace(relation=relation)
    safe = dc.permute(data, sensitive="pay", k=3, attack=False)
    assert safe.engine is engine
    names = safe.store("perm_test")
    assert names == ("perm_test_permuted", "perm_test_help")
    again = Permuted.open(engine, "perm_test", name="people", sensitive="pay")
    sql = "SELECT sex, COUNT(*) AS n, SUM(pay) AS s FROM people WHERE age < 50 GROUP BY sex ORDER BY sex"
    got = again.ask(sql, path="engine").rows()[1]
    for line, other in zip(got, safe.ask(sql, path="engine").rows()[1], strict=True):
        assert line == pytest.approx(other)
    truth = frame(60).query("age < 50").groupby("sex")["pay"].sum()
    for row in got:
        assert row[4] <= truth[row[0]] <= row[5]


def test_a_policy_job_makes_the_same(people):
    job = Permutation(sensitive="pay", k=3, e=100.0, partition=Local(columns=("age",)))
    job.check(people)
    safe = job.run(people)
    assert safe.facts.partition["columns"] == ["age"]
    with pytest.raises(InputError):
        Permutation(sensitive="payy").check(people)
    with pytest.raises(InputError):
        Permutation(sensitive="pay", k=1)


def test_columns_of_every_name_and_type_are_permuted_or_refused():
    """A column called as what is counted, numbers beyond 2**53, and time spans."""
    rows = pd.DataFrame({"big": [2**53 + n % 3 for n in range(12)], "count": range(12)})
    data = dc.read(rows, roles={"big": "quasi", "count": "confidential"})
    assert dc.Permutation(sensitive="count", k=3).run(data).facts.k_reached >= 3
    spans = rows.assign(big=pd.to_timedelta(rows["count"], unit="D"))
    with pytest.raises(dc.InputError) as raised:
        dc.permute(
            dc.read(spans, roles={"big": "quasi", "count": "confidential"}), sensitive="count", k=3
        )
    assert raised.value.code == "unsupported-type"

"""Masks of records that stay in their engine: the same promises as in memory, on all three engines."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dc
from discreet.data.dataset import Dataset, read
from discreet.data.engines.base import ROW, Engine
from discreet.microdata import pipeline, release
from discreet.microdata.masking import _base, _swap
from discreet.microdata.masking._base import Masking
from discreet.randomness import Randomness
from discreet.verification.folder import verify

ROLES = {
    "g": "quasi",
    "job": "quasi",
    "on": "quasi",
    "v": "confidential",
    "w": "confidential",
    "n": "confidential",
    "home": "identifier",
}


def rows(size: int = 200) -> pa.Table:
    """Return records with missing values, ties, texts of several alphabets and dates."""
    drawn = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "g": drawn.choice(["a", "b", None], size),
            "job": drawn.choice(["cook", "Zoë", "ärzt", "pilot"], size, p=[0.5, 0.2, 0.2, 0.1]),
            "v": drawn.integers(0, 60, size) / 4,
            "n": drawn.integers(-5, 5, size),
        }
    )
    frame["home"] = np.arange(size) // 3
    frame["w"] = 2 * frame["v"] + drawn.normal(0, 3, size)
    frame["on"] = pd.to_datetime("2020-02-01") + pd.to_timedelta(drawn.integers(0, 9, size), "D")
    frame.loc[frame.index % 17 == 3, "v"] = None
    frame.loc[frame.index % 13 == 5, "job"] = None
    table = pa.Table.from_pandas(frame, preserve_index=False)
    place = table.column_names.index("on")
    return table.set_column(place, "on", table["on"].cast(pa.date32()))


def numbered(engine: Engine, table: pa.Table) -> Dataset:
    """Return records whose numbers are the same on every engine."""
    known = table.append_column(ROW, pa.array(np.arange(table.num_rows)))
    roles = {name: role for name, role in ROLES.items() if name in table.column_names}
    data = read(table, roles=roles, rest="other", name="people")
    return data.replace(relation=engine.load(known))


@pytest.fixture
def in_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every file count as one that is too large for memory."""
    for module in (_base, pipeline, release):
        monkeypatch.setattr(module, "IN_MEMORY", 0)


def masked(method: Masking, data: Dataset, seed: int = 1) -> pd.DataFrame:
    found = method.mask(data, rng=Randomness.seeded(seed)).arrow()
    return found.select(sorted(found.column_names)).to_pandas()


METHODS = (
    dc.PRAM("job"),
    dc.PRAM(["job", "g"], retention=0.5, within=("on",)),
    dc.PRAM("n", retention=0.3, within=("g", "v")),
    dc.AdditiveNoise(["v", "n"], 0.5),
    dc.AdditiveNoise(["v", "w"], 0.5, correlated=True, rescale=True),
    dc.DataSwapping(["v", "job"], fraction=0.5, within=("g",)),
    dc.DataSwapping("on", fraction=1.0),
    dc.RankSwapping(["v", "job", "on"], p=10),
    dc.Shuffling(["v", "w"], given=("n", "job")),
    dc.RecordSwapping(["g", "job"], "home", keys=("on",), match=("n",), k=3, rate=0.3),
    dc.Microaggregation(["v", "w"], k=3),
    dc.Microaggregation(["v", "on", "job"], k=4),
    dc.Microaggregation(["v", "n"], k=3, variant="univariate"),
)


def require_same(one: Engine, two: Engine, methods: Iterable[Masking]) -> None:
    table = rows(120)
    for method in methods:
        drawn = [masked(method, numbered(engine, table)) for engine in (one, two)]
        # Numbers come from logarithms and cosines, in which engines differ in the last place.
        pd.testing.assert_frame_equal(*drawn, check_dtype=False, rtol=1e-9, atol=1e-9)


def test_postgresql_draws_the_same(duckdb_engine, postgres_engine, in_engine):
    require_same(duckdb_engine, postgres_engine, METHODS)


def test_spark_draws_the_same(duckdb_engine, spark_engine, in_engine):
    few = (METHODS[2], METHODS[4], METHODS[5], dc.RankSwapping("job", p=10), METHODS[9])
    require_same(duckdb_engine, spark_engine, few)


@pytest.mark.slow
def test_spark_draws_the_same_by_every_method(duckdb_engine, spark_engine, in_engine):
    require_same(duckdb_engine, spark_engine, METHODS)


def test_rank_swapping_is_what_it_is_in_memory(duckdb_engine, monkeypatch):
    data = numbered(duckdb_engine, rows())
    for method in (dc.RankSwapping(["v", "job", "on"], p=10), dc.RankSwapping("n", p=100)):
        before = masked(method, data)
        with monkeypatch.context() as patch:
            patch.setattr(_base, "IN_MEMORY", 0)
            pd.testing.assert_frame_equal(before, masked(method, data))


def test_partners_are_within_the_window_also_across_blocks():
    for size, window in ((1, 1), (63, 5), (64, 1), (1000, 40), (1001, 2000)):
        found = _swap.partners(size, window, Randomness.seeded(size), block=64)
        assert (found[found] == np.arange(size)).all()
        assert abs(found - np.arange(size)).max() <= window
        assert (found == np.arange(size)).sum() <= max(2, size // 20)


def test_pram_draws_by_its_matrix(duckdb_engine, in_engine):
    """With a fixed seed and a bound of five standard errors on each of sixteen shares."""
    table = rows(20_000)
    data = numbered(duckdb_engine, table)
    before = table["job"].to_pandas()
    counts = before.value_counts().sort_index()
    for method in (dc.PRAM("job"), dc.PRAM("job", retention=0.4, invariant=False)):
        after = masked(method, data)["job"]
        assert (before.isna() == after.isna()).all()
        odds = method.transitions(tuple(counts.index), counts.to_numpy(float), column="job")
        found = pd.crosstab(before, after).to_numpy()
        expected = odds * counts.to_numpy()[:, None]
        error = np.sqrt(expected * (1 - odds))
        assert (abs(found - expected) <= 5 * error + 1e-9).all()


def test_pram_within_draws_only_what_occurs(duckdb_engine, in_engine):
    table = rows(300)
    before = table.to_pandas()
    method = dc.PRAM("job", retention=0.0, within=("g", "on"))
    after = masked(method, numbered(duckdb_engine, table))
    known = before[["g", "on", "job"]].dropna(subset="job").drop_duplicates()
    found = after[["g", "on", "job"]].dropna(subset="job").drop_duplicates()
    merged = found.merge(known, how="left", indicator=True)
    assert (merged["_merge"] == "both").all()
    assert (before["job"].fillna("") != after["job"].fillna("")).any()


def test_noise_has_the_spread_that_was_asked_for(duckdb_engine, in_engine):
    """With a fixed seed; five standard errors of a deviation from 20,000 records are 2.5 %."""
    table = rows(20_000)
    before = table.to_pandas()
    data = numbered(duckdb_engine, table)
    plain = masked(dc.AdditiveNoise("w", 0.5), data)
    noise = plain["w"] - before["w"]
    assert abs(noise.std() / before["w"].std() - 0.5) < 0.0125
    assert abs(noise.mean()) < 5 * noise.std() / np.sqrt(len(noise))
    both = masked(dc.AdditiveNoise(["v", "w"], 1.0, correlated=True, rescale=True), data)
    assert abs(both["v"].std() / before["v"].std() - 1) < 0.05
    assert abs(both[["v", "w"]].corr().iloc[0, 1] - before[["v", "w"]].corr().iloc[0, 1]) < 0.05
    assert (both["v"].isna() == before["v"].isna()).all()


def test_data_swapping_keeps_every_cell(duckdb_engine, in_engine):
    table = rows(1001)
    before = table.to_pandas()
    data = numbered(duckdb_engine, table)
    after = masked(dc.DataSwapping(["v", "n"], fraction=0.3, within=("g",)), data)
    for _, cell in before.groupby("g", dropna=False):
        pairs = [frame.loc[cell.index, ["v", "n"]].fillna(-1) for frame in (before, after)]
        one, two = (sorted(map(tuple, part.to_numpy())) for part in pairs)
        assert one == two
    moved = (before[["v", "n"]].fillna(-1) != after[["v", "n"]].fillna(-1)).any(axis=1).sum()
    assert 200 <= moved <= 300  # 300 take part, some with a partner of the same values
    assert masked(dc.DataSwapping("v", fraction=0.001), data).equals(
        before[sorted(before.columns)]
    )  # one record has no partner


def test_shuffling_keeps_values_and_relations(duckdb_engine, in_engine):
    """With a fixed seed; rank correlations of 20,000 records vary by less than .02."""
    table = rows(20_000)
    before = table.to_pandas()
    before["z"] = before["n"] + before["w"]
    data = numbered(duckdb_engine, pa.Table.from_pandas(before, preserve_index=False))
    after = masked(dc.Shuffling(["v", "w"], given=("z", "job")), data)
    for name in ("v", "w"):
        assert sorted(before[name].dropna()) == sorted(after[name].dropna())
        assert (before[name].isna() == after[name].isna()).all()
    wanted = masked(
        dc.Shuffling(["v", "w"], given=("z", "job")),
        read(before.drop(columns="on"), rest="other").numbered(),
    )
    names = ["v", "w", "z"]
    gap = after[names].corr("spearman") - wanted[names].corr("spearman")
    assert abs(gap.to_numpy()).max() < 0.02
    # A record's own value has no say: what is left after the model is not its own residual.
    assert (before["v"] == after["v"]).mean() < 0.1


def test_ranks_of_equal_values_are_drawn_by_lot(duckdb_engine, in_engine):
    """In a sorted file the row's number would tell, and the shuffle would keep what it tells."""
    size = 4_000
    frame = pd.DataFrame({"v": [1.0, 2.0] * (size // 2), "n": np.arange(size)})
    frame = frame.sort_values("v", kind="stable").reset_index(drop=True)
    data = numbered(duckdb_engine, pa.Table.from_pandas(frame, preserve_index=False))
    after = masked(dc.Shuffling("n", given=("v",)), data)
    inside = after[frame["v"] == 1.0]["n"].reset_index(drop=True)
    assert abs(inside.corr(pd.Series(range(len(inside))))) < 0.1


def test_the_normal_quantile_is_scipys(duckdb_engine):
    from scipy.special import ndtri

    from discreet.data.engines import sql
    from discreet.microdata.masking._normal_scores import normal_quantile, tail_root

    share = np.concatenate([10.0 ** -np.arange(1, 9), 1 - 10.0 ** -np.arange(1, 9), np.arange(1, 50) / 50])  # fmt: skip
    loaded = duckdb_engine.load(pa.table({"p": share}))
    rooted = sql.select(
        sql.subquery(loaded.query, "t"),
        [sql.column("p"), sql.alias(tail_root(sql.column("p")), "r")],
    )
    value = normal_quantile(sql.column("p"), sql.column("r"))
    found = duckdb_engine.fetch(sql.select(sql.subquery(rooted, "t"), [sql.alias(value, "q")]))
    np.testing.assert_allclose(found["q"].to_numpy(), ndtri(share), rtol=2e-9, atol=2e-9)


def test_record_swapping_moves_whole_households_of_the_same_kind(duckdb_engine, in_engine):
    table = rows(1200)
    method = dc.RecordSwapping(["g", "job"], "home", keys=("on",), match=("n",), k=3, rate=0.3)
    before = table.to_pandas()
    after = masked(method, numbered(duckdb_engine, table))
    home = after.groupby("home")[["g", "job"]].nunique(dropna=False)
    assert (home == 1).all(axis=None)
    # Before the swaps a household lives where its first record says.
    first = before.groupby("home")[["g", "job"]].transform(lambda column: column.iloc[0])
    kind = before.groupby("home")["n"].transform(lambda column: str(sorted(column)))
    for frame in (first, after):
        frame["cell"] = frame["g"].fillna("-") + "/" + frame["job"].fillna("-") + kind
    assert sorted(first["cell"]) == sorted(after["cell"])
    moved = (first["cell"] != after["cell"]).groupby(before["home"]).any()
    in_memory = method.apply(table, schema=None, rng=Randomness.seeded(1))
    there = pd.DataFrame({name: column.to_pandas() for name, column in in_memory.items()})
    alike = (there.fillna("-") != first[["g", "job"]].fillna("-")).any(axis=1)
    assert abs(moved.mean() - alike.groupby(before["home"]).any().mean()) < 0.05


@pytest.mark.parametrize("columns", [["v", "w"], ["v", "w", "job"], ["job"], ["on", "n"]])
def test_blocks_hold_groups_of_k_and_keep_the_mean(duckdb_engine, in_engine, monkeypatch, columns):
    from discreet.microdata.masking import _sorted_blocks

    before = rows(2_000).to_pandas()
    data = numbered(duckdb_engine, rows(2_000))
    whole = masked(dc.Microaggregation(columns, k=4), data)
    monkeypatch.setattr(_sorted_blocks.in_blocks, "__kwdefaults__", {"block": 150})
    monkeypatch.setattr(_sorted_blocks, "_PIECE", 400)
    after = masked(dc.Microaggregation(columns, k=4), data)
    assert after.groupby(columns, dropna=False).size().min() >= 4
    assert (after[columns].isna() == whole[columns].isna()).all(axis=None)
    for name in {"v", "w"} & set(columns):
        # Where all columns are known, a group's mean keeps the column's.
        assert after[name].mean() == pytest.approx(before[name].mean())
        # Blocks cost something, and not much.
        error = [((frame[name] - before[name]) ** 2).sum() for frame in (after, whole)]
        assert error[0] < 1.6 * error[1]


def test_a_large_release_is_measured_on_a_sample_and_counted_whole(
    tmp_path, in_engine, monkeypatch
):
    from discreet.microdata import large

    monkeypatch.setattr(large, "SAMPLE", 150)
    table = rows(600).append_column("who", pa.array(np.arange(600) // 2))
    for unit in (None, "who"):
        people = read(
            table.drop_columns(["on"]),
            roles={**{k: v for k, v in ROLES.items() if k != "on"}, "who": "identifier"},
            unit=unit,
            name="people",
        )
        safe = dc.mask(people, [dc.RankSwapping("v", p=10)])
        frame = table.to_pandas()
        counted = frame.groupby(["g", "job"], dropna=False)["who"]
        sizes = counted.transform("nunique" if unit else "count")
        facts = safe.risk["re-identification"].facts
        assert facts["smallest class"] == sizes.min()
        assert facts["records in classes below 5"] == (sizes < 5).sum()
        assert facts["marketer"] == pytest.approx((1 / sizes).mean())
        assert safe.risk.records == 600
        assert "in a sample of" in safe.verdict
        assert "suda2" in safe.risk.skipped
    safe = dc.mask(people.replace(unit=None), [dc.PRAM("job"), dc.AdditiveNoise("w")])
    folder = safe.write(tmp_path / "out")
    assert verify(folder).holds
    stated = json.loads((folder / "evidence.json").read_text())
    assert stated["settings"]["intruders and losses tried on"] == "records drawn by lot"


@pytest.mark.spark
def test_a_mask_on_spark_leaves_through_the_workers(spark_engine, in_engine, tmp_path):
    people = read(
        rows(100).drop_columns(["on", "w"]),
        engine=spark_engine,
        roles={k: v for k, v in ROLES.items() if k not in ("on", "w")},
        name="people",
    )
    safe = dc.mask(people, [dc.DataSwapping("v", fraction=0.5), dc.PRAM("job")])
    folder = safe.write(tmp_path / "out")
    assert (folder / "people.parquet").is_dir()
    assert verify(folder).holds

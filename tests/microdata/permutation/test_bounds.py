"""Bounds hold the truth, and are tight where they must be: by enumeration of all worlds."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pyarrow as pa
import pytest
import sqlglot

from discreet.errors import InputError
from tests.microdata.permutation.conftest import released

TIGHT = ("COUNT(*)", "SUM(s)", "AVG(s)", "MIN(s)", "MAX(s)", "MEDIAN(s)", "QUANTILE_CONT(s, 0.3)",
         "QUANTILE_DISC(s, 0.7)", "SUM(w * s)", "SUM(-2 * s * w)")  # fmt: skip
LOOSE = ("VARIANCE(s)", "VAR_POP(s)", "STDDEV(s)", "STDDEV_POP(s)")


def truth_of(aggregate, values, weights):
    """The aggregate of selected values, computed plainly."""
    values, weights = np.asarray(values, dtype=float), np.asarray(weights, dtype=float)
    if aggregate == "COUNT(*)":
        return len(values)
    if len(values) == 0:
        return None
    sample = "POP" not in aggregate
    if aggregate.startswith(("VAR", "STD")):
        if sample and len(values) < 2:
            return None
        variance = values.var(ddof=1 if sample else 0)
        return math.sqrt(variance) if aggregate.startswith("STD") else variance
    return {
        "SUM(s)": values.sum,
        "AVG(s)": values.mean,
        "MIN(s)": values.min,
        "MAX(s)": values.max,
        "MEDIAN(s)": lambda: np.median(values),
        "QUANTILE_CONT(s, 0.3)": lambda: np.quantile(values, 0.3),
        "QUANTILE_DISC(s, 0.7)": lambda: np.quantile(values, 0.7, method="inverted_cdf"),
        "SUM(w * s)": (weights * values).sum,
        "SUM(-2 * s * w)": (-2 * weights * values).sum,
    }[aggregate]()


def worlds(values, labels):
    """Every way the values of each group may have been handed out."""
    places = [np.flatnonzero(labels == g) for g in range(labels.max() + 1)]
    for choice in itertools.product(*(itertools.permutations(place) for place in places)):
        world = np.empty(len(values))
        for place, source in zip(places, choice, strict=True):
            world[place] = np.asarray(values, dtype=float)[list(source)]
        yield world


def close(a, b):
    return (a is None and b is None) or (
        a is not None and b is not None and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)
    )


def random_case(rng):
    sizes = [rng.randint(1, 4) for _ in range(rng.randint(1, 2))]
    labels = np.repeat(np.arange(len(sizes)), sizes)
    n = len(labels)
    kind = rng.choice([int, float])
    values = [kind(rng.randint(-6, 9) / (1 if kind is int else 7)) for _ in range(n)]
    weights = [rng.randint(-2, 3) for _ in range(n)]
    return labels, values, weights, [rng.random() < 0.6 for _ in range(n)]


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 6))]
)
def test_bounds_equal_the_enumeration_of_all_worlds(duckdb_engine, seed):
    rng = random.Random(seed)
    for _ in range(8):
        labels, values, weights, chosen = random_case(rng)
        quasi = {"x": [int(c) for c in chosen], "w": weights}
        safe = released(duckdb_engine, quasi, values, labels)
        chosen = np.array(chosen)
        names = [f"a{i}" for i in range(len(TIGHT + LOOSE))]
        asked = ", ".join(f"{a} AS {n}" for a, n in zip(TIGHT + LOOSE, names, strict=True))
        got = safe.ask(f"SELECT {asked} FROM t WHERE x = 1", path="engine").frame.to_pylist()[0]
        everything = [
            [truth_of(a, world[chosen], np.array(weights)[chosen]) for a in TIGHT + LOOSE]
            for world in worlds(values, labels)
        ]
        for place, (aggregate, name) in enumerate(zip(TIGHT + LOOSE, names, strict=True)):
            seen = [row[place] for row in everything]
            low, high = got[f"{name}_lower"], got[f"{name}_upper"]
            if seen[0] is None:
                assert low is None, (aggregate, got)
                assert high is None
                continue
            assert low <= min(seen) + 1e-12 or aggregate in LOOSE, (
                aggregate,
                values,
                labels,
                chosen,
            )
            assert high >= max(seen) - 1e-12 or aggregate in LOOSE
            assert low <= min(seen) * (1 + 1e-9) + 1e-7, aggregate
            assert close(low, min(seen)), (aggregate, low, min(seen), values, labels, chosen)
            if aggregate in TIGHT:
                assert close(high, max(seen)), (aggregate, high, max(seen), values, labels, chosen)
            else:
                assert high >= max(seen) - 1e-9, (aggregate, high, max(seen))


@pytest.mark.parametrize("seed", range(3))
def test_counts_with_conditions_on_the_values_are_tight(duckdb_engine, seed):
    rng = random.Random(100 + seed)
    for _ in range(20):
        labels, values, weights, chosen = random_case(rng)
        safe = released(
            duckdb_engine, {"x": [int(c) for c in chosen], "w": weights}, values, labels
        )
        limit = rng.randint(-3, 6)
        for condition, test in (
            (f"s > {limit}", lambda v, limit=limit: v > limit),
            (
                f"s BETWEEN 0 AND {limit} OR s < -2",
                lambda v, limit=limit: ((v >= 0) & (v <= limit)) | (v < -2),
            ),
        ):
            counts = [int(test(world[np.array(chosen)]).sum()) for world in worlds(values, labels)]
            sql = f"SELECT COUNT(*) AS c FROM t WHERE ({condition}) AND x = 1"
            for path in ("memory", "engine"):
                got = safe.ask(sql, path=path).frame.to_pylist()[0]
                assert (got["c_lower"], got["c_upper"]) == (min(counts), max(counts))


def random_condition(rng, depth=2):
    atoms = [
        lambda: f"age {rng.choice(['<', '<=', '>', '>=', '=', '<>'])} {rng.randint(18, 70)}",
        lambda: f"age BETWEEN {rng.randint(18, 40)} AND {rng.randint(30, 70)}",
        lambda: f"sex = '{rng.choice('fm')}'",
        lambda: f"sex IS {rng.choice(['', 'NOT '])}NULL",
        lambda: f"region IN ('{rng.choice('abc')}', '{rng.choice('abcd')}')",
        lambda: f"age + 2 * w > {rng.randint(18, 70)}",
        lambda: "region LIKE 'a%'",
    ]
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(atoms)()
    if rng.random() < 0.2:
        return f"NOT ({random_condition(rng, depth - 1)})"
    word = rng.choice(["AND", "OR"])
    return f"({random_condition(rng, depth - 1)}) {word} ({random_condition(rng, depth - 1)})"


def population(rng, n, kind):
    numbers = np.random.default_rng(rng.randint(0, 10**6))
    base = numbers.integers(18, 75, n)
    values = {
        "integer": numbers.integers(-50, 400, n).astype(np.int64),
        "float": numbers.lognormal(8, 1, n) - 2000,
        "cents": np.round(numbers.lognormal(6, 1, n), 2),
    }[kind]
    quasi = {
        "age": pa.array(base),
        "sex": pa.array([rng.choice(["f", "m", None]) for _ in range(n)]),
        "region": pa.array([rng.choice("abcd") for _ in range(n)]),
        "w": pa.array(numbers.integers(-1, 4, n)),
    }
    return quasi, values


def answers_hold_the_truth(engine, safe, quasi, values, statements, paths):
    """Ask the release and the original; return how many answers were compared."""
    original = engine.load(pa.table({**quasi, "s": values}))
    compared = 0
    for sql in statements:
        raw = engine.aggregate(sqlglot.parse_one(sql, read="duckdb"), {"t": original})
        for path in paths:
            got = safe.ask(sql, path=path).frame
            keys = [n for n in raw.column_names if not n.startswith("a_")]
            truth = {tuple(row[k] for k in keys): row for row in raw.to_pylist()}
            bound = {tuple(row[k] for k in keys): row for row in got.to_pylist()}
            assert truth.keys() == bound.keys(), sql
            for key, row in truth.items():
                for name in raw.column_names:
                    if name in keys:
                        continue
                    low, high = bound[key][f"{name}_lower"], bound[key][f"{name}_upper"]
                    compared += 1
                    if row[name] is None:
                        assert low is None
                        assert high is None
                        continue
                    # The engine's own sums of floating-point numbers are rounded.
                    slack = 1e-12 * max(abs(low), abs(high), 1)
                    assert low - slack <= row[name] <= high + slack, (sql, name, path, key)
    return compared


def random_statements(rng, count, simple=False):
    plain = ["COUNT(*) AS a_n", "SUM(s) AS a_sum", "AVG(s) AS a_avg", "MIN(s) AS a_min",
             "MAX(s) AS a_max", "MEDIAN(s) AS a_med", "QUANTILE_CONT(s, 0.9) AS a_q"]  # fmt: skip
    heavy = ["VARIANCE(s) AS a_var", "STDDEV_POP(s) AS a_sd", "SUM(w * s) AS a_w",
             "QUANTILE_DISC(s, 0.25) AS a_d"]  # fmt: skip
    for _ in range(count):
        asked = rng.sample(plain, rng.randint(1, 4))
        if not simple and rng.random() < 0.4:
            asked += rng.sample(heavy, 1)
        keys = rng.sample(["region", "sex", "age // 10 AS decade"], rng.randint(0, 2))
        where = f" WHERE {random_condition(rng)}" if rng.random() < 0.9 else ""
        group = ", ".join(key.split(" AS ")[-1] for key in keys)
        tail = f" GROUP BY {group}" if keys else ""
        yield f"SELECT {', '.join(keys + asked)} FROM t{where}{tail}"


@pytest.mark.parametrize("kind", ["integer", "float", "cents"])
def test_bounds_hold_the_truth_on_random_queries(duckdb_engine, kind):
    rng = random.Random(kind)
    quasi, values = population(rng, 400, kind)
    labels = np.argsort(np.argsort(values + np.random.default_rng(1).normal(0, 50, 400))) // 9
    safe = released(duckdb_engine, quasi, values, labels)
    compared = answers_hold_the_truth(
        duckdb_engine, safe, quasi, values, random_statements(rng, 20), ("auto",)
    )
    assert compared > 150


def many_selections(engine, kind, seed, size=3000, keys=1000):
    """Random subsets of the records, as the keys of one statement; return how many were compared."""
    rng = random.Random(f"{kind} {seed}")
    quasi, values = population(rng, size, kind)
    # Subsets of very different size: a few hold hundreds of records, most a handful.
    numbers = np.random.default_rng(seed)
    quasi["q"] = pa.array(
        np.floor(keys * numbers.random(size) ** rng.choice([1, 2, 4])).astype(int)
    )
    noise = numbers.normal(0, rng.choice([0, 1, 30]) * values.std() / 10, size)
    labels = np.argsort(np.argsort(values + noise)) // rng.randint(2, 60)
    safe = released(engine, quasi, values, labels)
    fast = "COUNT(*) AS n, SUM(s) AS a, AVG(s) AS b, MIN(s) AS c, MAX(s) AS d, MEDIAN(s) AS e"
    slow = (
        f"{fast}, QUANTILE_CONT(s, 0.9) AS f, VARIANCE(s) AS g, STDDEV_POP(s) AS h, SUM(w * s) AS i"
    )
    original = engine.load(pa.table({**quasi, "s": values}))
    for path, asked in (("engine", slow), ("memory", fast)):
        sql = f"SELECT q, {asked} FROM t GROUP BY q"
        raw = engine.aggregate(sqlglot.parse_one(sql, read="duckdb"), {"t": original}).sort_by("q")
        got = safe.ask(sql, path=path).frame.sort_by("q")
        assert raw.column("q").equals(got.column("q"))
        for name in raw.column_names[1:]:
            truth = raw.column(name).cast(pa.float64()).to_numpy()
            low = got.column(f"{name}_lower").cast(pa.float64()).to_numpy()
            high = got.column(f"{name}_upper").cast(pa.float64()).to_numpy()
            assert (np.isnan(truth) == np.isnan(low)).all(), (name, path)
            known = ~np.isnan(truth)
            # The engine's own sums of floating-point numbers are rounded.
            slack = 1e-11 * np.abs(values).max() ** (2 if name == "g" else 1)
            assert (low[known] - slack <= truth[known]).all(), (name, path)
            assert (truth[known] <= high[known] + slack).all(), (name, path)
    return raw.num_rows


@pytest.mark.parametrize("kind", ["integer", "float", "cents"])
def test_bounds_hold_the_truth_on_thousands_of_random_selections(duckdb_engine, kind):
    assert sum(many_selections(duckdb_engine, kind, seed) for seed in range(2)) > 1200


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["integer", "float", "cents"])
def test_bounds_hold_the_truth_on_tens_of_thousands_of_random_selections(duckdb_engine, kind):
    found = sum(many_selections(duckdb_engine, kind, seed, 6000, 2000) for seed in range(100, 125))
    assert found > 20_000


def test_memory_and_engine_give_the_same_answers(duckdb_engine):
    rng = random.Random(5)
    for kind in ("integer", "float"):
        quasi, values = population(rng, 300, kind)
        safe = released(duckdb_engine, quasi, values, np.argsort(np.argsort(values)) // 7)
        answered = 0
        for sql in random_statements(rng, 30, simple=True):
            try:
                fast = safe.ask(sql, path="memory").frame.to_pylist()
            except InputError:  # two columns in one comparison: the engine answers
                assert "age + 2 * w" in sql
                continue
            answered += 1
            slow = safe.ask(sql, path="engine").frame.to_pylist()
            order = sorted(map(str, fast[0])) if fast else []
            assert len(fast) == len(slow), sql
            keys = [n for n in order if not n.startswith("a_")]
            by_key = {tuple(row[k] for k in keys): row for row in slow}
            for row in fast:
                other = by_key[tuple(row[k] for k in keys)]
                for name, value in row.items():
                    if isinstance(value, float):
                        assert value == pytest.approx(other[name], rel=1e-12), (sql, name)
                    else:
                        assert value == other[name], (sql, name)
        assert answered > 15


def test_an_empty_selection_is_null_and_counts_nothing(duckdb_engine):
    safe = released(duckdb_engine, {"x": [1, 2, 3, 4]}, [1, 2, 3, 4], [0, 0, 1, 1])
    for path in ("memory", "engine"):
        row = safe.ask(
            "SELECT COUNT(*) AS n, SUM(s) AS a, AVG(s) AS b, MIN(s) AS c, MEDIAN(s) AS d FROM t "
            "WHERE x > 9",
            path=path,
        ).frame.to_pylist()[0]
        assert (row["n_lower"], row["n_upper"]) == (0, 0)
        assert {row[f"{name}_{end}"] for name in "abcd" for end in ("lower", "upper")} == {None}
        assert (
            safe.ask("SELECT x, SUM(s) FROM t WHERE x > 9 GROUP BY x", path=path).frame.num_rows
            == 0
        )


def test_the_same_meaning_on_every_engine(engine):
    rng = random.Random(77)
    quasi, values = population(rng, 120, "integer")
    labels = np.argsort(np.argsort(values)) // 7
    safe = released(engine, quasi, values, labels)
    statements = [
        "SELECT COUNT(*) AS a_n, SUM(s) AS a_s, AVG(s) AS a_a, MIN(s) AS a_lo, MAX(s) AS a_hi, "
        "MEDIAN(s) AS a_m, QUANTILE_CONT(s, 0.3) AS a_q, QUANTILE_DISC(s, 0.7) AS a_d, "
        "VARIANCE(s) AS a_v, STDDEV_POP(s) AS a_sd, SUM(w * s) AS a_w FROM t "
        "WHERE age < 50 AND (sex = 'f' OR NOT region IN ('a', 'b'))",
        "SELECT sex, region, COUNT(*) AS a_n, AVG(s) AS a_a, MEDIAN(s) AS a_m, VAR_POP(s) AS a_v, "
        "SUM(w * s) AS a_w, MAX(s) AS a_hi FROM t GROUP BY sex, region ORDER BY region, sex",
        "SELECT age // 10 AS decade, COUNT(*) AS a_n, SUM(s) AS a_s FROM t WHERE w % 2 = 1 GROUP BY decade",
        "SELECT sex, COUNT(*) AS a_n FROM t WHERE s > 100 AND age BETWEEN 20 AND 60 GROUP BY sex",
        "SELECT SUM(s / 2) AS a_h, COUNT(s) AS a_n FROM t WHERE region LIKE 'a%' OR age / 4 > 11",
    ]  # fmt: skip
    # DuckDB's own dialect asks the original; each engine answers from the release.
    from discreet.data.engines import connect

    with connect("duckdb://") as plain:
        original = plain.load(pa.table({**quasi, "s": values}))
        for sql in statements:
            raw = plain.aggregate(sqlglot.parse_one(sql, read="duckdb"), {"t": original})
            got = safe.ask(sql, path="engine").frame
            keys = [n for n in raw.column_names if not n.startswith("a_")]
            truth = {tuple(row[k] for k in keys): row for row in raw.to_pylist()}
            bound = {tuple(row[k] for k in keys): row for row in got.to_pylist()}
            assert truth.keys() == bound.keys(), (engine.name, sql)
            for key, row in truth.items():
                for name in (n for n in raw.column_names if n not in keys):
                    low, high = bound[key][f"{name}_lower"], bound[key][f"{name}_upper"]
                    if row[name] is None:
                        assert low is None, (engine.name, sql, name)
                        continue
                    assert low - 1e-9 <= row[name] <= high + 1e-9, (engine.name, sql, name, key)


@pytest.fixture(scope="session")
def reference_answers(duckdb_engine):
    rng = random.Random(31)
    quasi, values = population(rng, 90, "cents")
    labels = np.argsort(np.argsort(values)) // 8
    statements = list(random_statements(rng, 12))
    safe = released(duckdb_engine, quasi, values, labels)
    answers = [safe.ask(sql, path="engine").frame.to_pylist() for sql in statements]
    return quasi, values, labels, statements, answers


def test_every_engine_gives_the_bounds_that_duckdb_gives(engine, reference_answers):
    quasi, values, labels, statements, answers = reference_answers
    safe = released(engine, quasi, values, labels)
    for sql, expected in zip(statements, answers, strict=True):
        got = safe.ask(sql, path="engine").frame.to_pylist()
        assert len(got) == len(expected), (engine.name, sql)
        if not expected:
            continue
        keys = [n for n in expected[0] if not n.startswith("a_")]
        by_key = {tuple(row[k] for k in keys): row for row in got}
        for row in expected:
            other = by_key[tuple(row[k] for k in keys)]
            for name, value in row.items():
                if isinstance(value, float) and value is not None:
                    assert other[name] == pytest.approx(value, rel=1e-9, abs=1e-6), (sql, name)
                else:
                    assert other[name] == value, (engine.name, sql, name)

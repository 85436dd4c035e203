"""One meaning: random conditions and keys are the same on three engines, under every guard."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp
from tests.data.sql import meanings

import discreet as dc
from discreet.data.engines.meaning import meant
from discreet.data.sql.letters import LOWER, UPPER

ENGINES = ("duckdb", "postgres", "spark")


@pytest.fixture(scope="module")
def engines(duckdb_engine, postgres_engine, spark_engine):
    return dict(zip(ENGINES, (duckdb_engine, postgres_engine, spark_engine), strict=True))


def drawn(seed, number):
    """Return a table, and as many pairs of a condition and a key."""
    rng = np.random.default_rng(seed)
    rows = meanings.table(rng)
    return rows, [(meanings.condition(rng, 2), meanings.key(rng, 2)) for _ in range(number)]


def differences(engines, seed, number, together=20):
    """Return the statements that are not the same everywhere, with what each engine says."""
    rows, texts = drawn(seed, number)
    relations = {name: engine.load(rows) for name, engine in engines.items()}
    catalogs = {name: meanings.catalog(relation) for name, relation in relations.items()}
    found, asked = [], []
    for where, by in texts:
        read = {name: meanings.read(catalogs[name], where, by) for name in relations}
        codes = {name: q if isinstance(q, str) else q.question for name, q in read.items()}
        if len(set(codes.values())) > 1:
            found.append((where, by, codes))
        elif not isinstance(read["duckdb"], str):
            asked.append((where, by, read))
    for start in range(0, len(asked), together):
        piece = asked[start : start + together]
        told = {
            name: meanings.per_row(relation, [read[name] for *_, read in piece])
            for name, relation in relations.items()
        }
        for place, (where, by, _) in enumerate(piece):
            said = {name: values[place] for name, values in told.items()}
            failed = any(isinstance(values, str) for values in said.values())
            if failed or len({repr(values) for values in said.values()}) > 1:
                found.append((where, by, said))
    for name, relation in relations.items():
        engines[name].drop(relation)
    return found, len(asked)


@pytest.mark.parametrize("seed", [1])
def test_conditions_and_keys_are_the_same_on_every_engine(engines, seed):
    found, asked = differences(engines, seed, 30)
    assert not found, found[:3]
    assert asked > 25


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 105))
def test_hundreds_of_conditions_and_keys_are_the_same_on_every_engine(engines, seed):
    found, asked = differences(engines, seed, 100)
    assert not found, found[:3]
    assert asked > 80


def test_a_word_left_to_the_engines_would_be_found(engines, monkeypatch):
    """The control: with each engine's own words the same statements differ."""
    from discreet.data.sql import total

    monkeypatch.setattr(total, "_rounded", lambda tree: exp.Round(this=tree.this.copy()))
    monkeypatch.setattr(total, "_WRITTEN_OUT", {})
    rows, _ = drawn(1, 0)
    small = {name: engines[name].load(rows) for name in ("duckdb", "postgres")}
    read = meanings.read(meanings.catalog(small["duckdb"]), "UPPER(t) < 'a'", "ROUND(x)")
    said = {name: meanings.per_row(relation, [read]) for name, relation in small.items()}
    assert said["duckdb"][0][0] != said["postgres"][0][0]
    assert said["duckdb"][0][1] != said["postgres"][0][1]


# -- under every guard -------------------------------------------------------------------------------
ROLES = dict.fromkeys(("n", "s", "x", "d", "t", "day", "at", "z", "b"), "quasi")
#: Noise of a scale of a millionth: the count is another one with a probability below 1e-400000.
GUARDS = {
    "restriction": lambda _: dc.Restriction(k=2),
    "perturbation": lambda _: dc.Perturbation(
        epsilon=1e12, per_query=1e6, bounds={"pay": (0, 1000)}
    ),
    "camouflage": lambda _: dc.Camouflage(bound=0.3, minimum=10),
    "permuted-bounds": dc.PermutedBounds,
}


def _data(engine, rows):
    pay = pa.array(np.arange(rows.num_rows) * 7 % 1000)
    table = rows.select(["rid", *ROLES]).append_column("pay", pay)
    roles = {"rid": "identifier", "pay": "confidential", **ROLES}
    return dc.read(table, engine=engine, roles=roles, name=meanings.NAME)


def _number(answer):
    """Return a count, or the code of the refusal; an interval of one number is the number."""
    if answer.refused:
        return answer.code
    ends = {round(float(value)) for row in answer.to_frame().values.tolist() for value in row}
    return ends.pop() if len(ends) == 1 else str(sorted(ends))


def counted(engines, seed, number, guards=tuple(GUARDS)):
    """Return for each condition the counts that guards give on engines."""
    rng = np.random.default_rng(seed)
    rows = meanings.table(rng)
    catalog = meanings.catalog(engines["duckdb"].load(rows))
    texts: list[str] = []
    while len(texts) < number:
        text = meanings.condition(rng, 1)
        read = meanings.read(catalog, text, "s")
        if not isinstance(read, str) and read.predicate_columns <= set(ROLES):
            texts.append(text)
    release = dc.permute(_data(engines["duckdb"], rows), sensitive="pay", k=2, e=1)
    said = {text: {} for text in texts}
    for (name, engine), guard in itertools.product(engines.items(), guards):
        with dc.Gateway(_data(engine, rows), guard=GUARDS[guard](release)) as gate:
            for text in texts:
                asked = gate.ask(f"SELECT COUNT(*) FROM {meanings.NAME} WHERE {text}")
                said[text][guard, name] = _number(asked)
    return said


def _disagree(said):
    by_guard = {guard: {said[guard, name] for name in ENGINES} for guard, _ in said}
    counts = {value for value in said.values() if isinstance(value, int)}
    return any(len(values) > 1 for values in by_guard.values()) or len(counts) > 1


def test_a_condition_holds_the_same_records_under_every_guard(engines):
    said = counted(engines, 7, 8, ("restriction", "perturbation", "permuted-bounds"))
    assert not {text: answers for text, answers in said.items() if _disagree(answers)}
    assert sum(isinstance(a["restriction", "duckdb"], int) for a in said.values()) >= 4


@pytest.mark.slow
def test_many_conditions_hold_the_same_records_under_every_guard(engines):
    said = counted(engines, 8, 60)
    assert not {text: answers for text, answers in said.items() if _disagree(answers)}


# -- tables that were there before -------------------------------------------------------------------
def test_a_servers_language_and_types_change_nothing(postgres_database):
    """Texts in a collation that ignores case, enumerations, padded texts, numbers of any size."""
    import psycopg

    rows = "('a', 'small', 'x', 1.00000000000000000001), ('A', 'large', 'y', 2), ('b', 'large', 'x', 0.1)"
    with psycopg.connect(postgres_database, autocommit=True) as server:
        server.execute("CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")  # fmt: skip
        server.execute("CREATE TYPE size AS ENUM ('small', 'large')")
        server.execute("CREATE TABLE things (name text COLLATE any_case, size size, code char(4), worth numeric)")  # fmt: skip
        for _ in range(5):
            server.execute(f"INSERT INTO things VALUES {rows}")
    things = dc.read(f"{postgres_database}#things", roles=dict.fromkeys(("name", "size", "code", "worth"), "quasi"), name="things")  # fmt: skip
    expected = {"name = 'a'": 5, "name < 'a'": 5, "size < 'small'": 10, "code = 'x'": 10, "name LIKE 'a%'": 5,
                "worth = 1": 5, "name IN ('a', 'B')": 5}  # fmt: skip
    for make in (dc.Restriction(k=2), dc.Perturbation(epsilon=1e12, per_query=1e6, bounds={})):
        with dc.Gateway(things, guard=make) as gate:
            found = {
                text: _number(gate.ask(f"SELECT COUNT(*) FROM things WHERE {text}"))
                for text in expected
            }
            assert found == expected
    assert things.engine.frequencies(things.relation, ["name"]).num_rows == 3
    things.engine.close()


# -- letters -----------------------------------------------------------------------------------------
def test_letters_have_one_counterpart():
    assert all(len(a) == len(b) and len(set(a)) == len(a) for a, b in (UPPER, LOWER))
    assert not set("ßİ") & set(UPPER[0])
    assert not set("İ") & set(LOWER[0])
    assert dict(zip(*UPPER, strict=True))["ÿ"] == "Ÿ"


def test_words_are_spelled_for_each_engine():
    day = exp.Extract(this=exp.var("ISODOW"), expression=exp.column("day"))
    assert "DAYOFWEEK_ISO" in meant(day.copy(), "spark").sql("spark")
    assert meant(day.copy(), "postgres").sql("postgres") == (
        "CAST(EXTRACT(ISODOW FROM day) AS BIGINT)"
    )

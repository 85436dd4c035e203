"""Suggested roles: from names in several languages and from aggregates, each with its reason."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from discreet import demo
from discreet.data.dataset import read
from discreet.data.infer import SAMPLE, Summary, infer_schema, judge, summaries
from discreet.data.names import meaning, words
from discreet.data.schema import Role, Type

DATA = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "../shared/data"))
needs_data = pytest.mark.skipif(not DATA.exists(), reason=f"no public data in {DATA}")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("person_id", "identifier"),
        ("DNI", "identifier"),
        ("Nachname", "identifier"),
        ("e-mail", "identifier"),
        ("telefono", "identifier"),
        ("prénom", "identifier"),
        ("Age", "quasi"),
        ("edad", "quasi"),
        ("DateOfBirth", "quasi"),
        ("Geschlecht", "quasi"),
        ("código postal", "quasi"),
        ("PLZ", "quasi"),
        ("Familienstand", "quasi"),
        ("native-country", "quasi"),
        ("profession", "quasi"),
        ("Gehalt", "confidential"),
        ("salario_bruto", "confidential"),
        ("diagnóstico", "confidential"),
        ("revenu", "confidential"),
        ("turnover", "confidential"),
    ],
)
def test_names_in_several_languages(name, role):
    summary = Summary(name, "text", 1000, 0, 30, "a", "z")
    column = judge((summary,)).columns[0]
    assert column.role == role
    assert column.reason.startswith("the name says")


@pytest.mark.parametrize("name", ["voltage", "package", "management", "idea", "considered", "cape"])
def test_words_inside_words_say_nothing(name):
    for kind in ("identifier", "quasi", "confidential", "weight"):
        assert meaning(name, kind) is None, kind


def test_words_of_a_name():
    assert words("HouseholdID2") == ["household", "id2"]
    assert words("") == []


@pytest.mark.parametrize(
    ("kind", "distinct", "low", "high", "role"),
    [
        ("text", 1000, "a", "z", Role.IDENTIFIER),
        ("text", 12, "a", "z", Role.QUASI),
        ("text", 500, "a", "z", Role.IDENTIFIER),
        ("integer", 1000, 1, 1000, Role.IDENTIFIER),
        ("integer", 1000, 1, 900_000, Role.CONFIDENTIAL),
        ("integer", 6, 1, 6, Role.QUASI),
        ("number", 900, 0.5, 9.5, Role.CONFIDENTIAL),
        ("date", 900, None, None, Role.QUASI),
        ("boolean", 2, None, None, Role.QUASI),
        ("text", 1, "a", "a", Role.OTHER),
        ("nested", 0, None, None, Role.OTHER),
    ],
)
def test_values_speak_where_names_do_not(kind, distinct, low, high, role):
    column = judge((Summary("x1", kind, 1000, 0, distinct, low, high),)).columns[0]
    assert column.role is role
    assert column.reason


def test_types():
    def type_of(name, kind, distinct, low, high):
        return judge((Summary(name, kind, 1000, 0, distinct, low, high),)).columns[0].type

    assert type_of("satisfaction_level", "integer", 5, 1, 5) is Type.ORDINAL
    assert type_of("sex", "integer", 2, 1, 2) is Type.NOMINAL
    assert type_of("age", "integer", 80, 0, 99) is Type.NUMERIC
    assert type_of("agegroup", "text", 9, "0-9", "80+") is Type.ORDINAL
    assert type_of("born", "text", 900, "1920-01-01", "2020-12-31") is Type.DATE
    assert type_of("when", "date", 900, None, None) is Type.DATE
    assert type_of("sector", "text", 9, "IT", "Zoo") is Type.NOMINAL


def test_a_column_without_values():
    column = judge((Summary("age", "text", 10, 10, 0, None, None),)).columns[0]
    assert (column.role, column.reason) == (Role.OTHER, "it has no values")


def test_demo_population_through_the_engine():
    data = read(demo.population_arrow(3000), name="people")
    schema = infer_schema(data)
    roles = {column.name: column.role.value for column in schema.columns}
    assert roles == {
        **dict.fromkeys(("person_id", "household_id", "name"), "identifier"),
        **dict.fromkeys(("region", "sector", "occupation", "age", "sex", "education"), "quasi"),
        **dict.fromkeys(("salary", "diagnosis"), "confidential"),
    }
    assert schema.unit == "person_id"
    assert schema.weight is None


def test_demo_register_through_the_engine():
    schema = infer_schema(read(demo.businesses_arrow(2000)))
    assert schema.weight == "weight"
    assert schema["weight"].role is Role.OTHER
    assert schema.unit == "holding"
    assert schema["turnover"].role is Role.CONFIDENTIAL
    assert schema["firm_id"].role is Role.IDENTIFIER


def test_aggregates_are_exact():
    table = pa.table(
        {"a": [1, 1, None, 3], "b": ["Zoo", None, None, "Zoo"], "c": [True, False, True, None]}
    )
    found = {s.name: s for s in summaries(read(table).relation)}
    assert [(s.distinct, s.missing, s.records) for s in found.values()] == [
        (2, 1, 4), (1, 2, 4), (2, 1, 4),
    ]  # fmt: skip
    assert found["a"].uniqueness == pytest.approx(2 / 3)
    assert "Zoo" not in repr(found["b"])  # extremes are values: they are never shown


def test_opening_looks_at_the_first_records_only():
    table = pa.table({"code": np.arange(SAMPLE + 1000) % 3})
    data = read(table)
    assert summaries(data.relation, rows=SAMPLE)[0].records == SAMPLE
    assert summaries(data.relation)[0].records == SAMPLE + 1000


def test_reading_never_adopts_a_guessed_unit_or_weight():
    schema = read(demo.businesses_arrow(100)).schema
    assert (schema.unit, schema.weight) == (None, None)
    assert schema["turnover"].role is Role.CONFIDENTIAL
    # Where the curator named roles, nothing is added to them.
    schema = read(demo.businesses_arrow(100), roles={"region": "quasi"}).schema
    assert schema.quasi == ("region",)
    assert schema.confidential == ()


@needs_data
def test_public_data():
    schema = infer_schema(read(DATA / "adult/adult.csv"))
    assert schema.confidential == ("salary-class",)
    assert len(schema.quasi) == 8
    schema = infer_schema(read(DATA / "casc/testdata.csv"))
    assert schema.weight == "sampling_weight"
    assert schema.confidential == ("expend", "income", "savings")
    assert schema.identifiers == ("ori_hid",)

"""Schemas: roles and types are known words, columns exist, identifiers are not dimensions."""

import pytest

from discreet.data.hierarchy import Hierarchy
from discreet.data.schema import Column, Role, Schema, Type
from discreet.errors import InputError

SCHEMA = Schema(
    (
        Column("id", Role.IDENTIFIER),
        Column("age", Role.QUASI, Type.NUMERIC),
        Column("region", Role.QUASI),
        Column("salary", Role.CONFIDENTIAL, Type.NUMERIC),
    )
)


def test_what_the_curator_says_replaces_the_guess():
    two = (Hierarchy.flat(["a"]), Hierarchy.flat(["a", "b"]))
    schema = SCHEMA.replace(
        roles={"region": "confidential"}, types={"age": "ordinal"}, unit="id",
        hierarchies={"region": two, "age": Hierarchy.flat(["1"])},
    )  # fmt: skip
    assert schema["region"].role is Role.CONFIDENTIAL
    assert schema["region"].reason == "given"
    assert schema["age"].type is Type.ORDINAL
    assert schema.hierarchies("region") == two
    assert len(schema.hierarchies("age")) == 1
    assert schema.unit == "id"
    assert SCHEMA["region"].role is Role.QUASI  # nothing changes in place
    assert schema.quasi == ("age",)
    assert "age" in schema
    assert "agee" not in schema


@pytest.mark.parametrize(
    ("change", "code", "hint"),
    [
        ({"roles": {"agee": "quasi"}}, "unknown-column", "age"),
        ({"roles": {"age": "quazi"}}, "unknown-role", "quasi"),
        ({"types": {"age": "numerical"}}, "unknown-type", "numeric"),
        ({"hierarchies": {"regio": Hierarchy.flat(["a"])}}, "unknown-column", "region"),
        ({"unit": "idd"}, "unknown-column", "id"),
        ({"weight": "xyz"}, "unknown-column", "salary"),
    ],
)
def test_mistakes_are_told_with_the_right_word(change, code, hint):
    with pytest.raises(InputError) as caught:
        SCHEMA.replace(**change)
    assert caught.value.code == code
    assert hint in caught.value.hint


def test_identifiers_are_no_dimensions():
    assert SCHEMA.require_dimension("region").name == "region"
    for schema, name in ((SCHEMA, "id"), (SCHEMA.replace(unit="region"), "region")):
        with pytest.raises(InputError) as caught:
            schema.require_dimension(name)
        assert caught.value.code == "identifier-dimension"
        assert caught.value.column == name

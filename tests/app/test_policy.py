"""The policy file: positions, all mistakes at once, hostile documents, JSON Schema."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from discreet.app.cli.main import build
from discreet.app.policy.document import parse
from discreet.app.policy.json_schema import policy_schema
from discreet.app.policy.load import load_policy, validate
from discreet.errors import DiscreetError, InputError


def mistakes(text: str) -> list[dict]:
    with pytest.raises(InputError) as caught:
        validate(parse(text))
    return caught.value.facts["positions"]


def test_a_minimal_policy_is_valid():
    policy = validate(parse("data:\n  source: people.csv\n  roles: {age: quasi}\n"))
    assert policy.data.source == "people.csv"
    assert policy.releases == {}


def test_every_mistake_has_its_line_and_column():
    found = mistakes(
        "data:\n"
        "  sorce: people.csv\n"
        "  roles:\n"
        "    age: quazi\n"
        "releases:\n"
        "  - name: a\n"
        "    kind: no-such-kind\n"
        "  - kind: table\n"
        "surprise: 1\n"
    )
    places = [(m["line"], m["column"]) for m in found]
    assert (2, 3) in places
    assert (4, 5) in places
    assert (7, 5) in places
    assert (8, 5) in places
    assert (9, 1) in places
    by_line = {m["line"]: m["message"] for m in found}
    assert "write 'source'" in by_line[2]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: [1", "policy-not-yaml"),
        ("a: 1\na: 2", "policy-repeated-key"),
        ("a: &x [1]\nb: *x", "policy-alias"),
        ("a: !!python/object/apply:os.system ['true']", "policy-tag"),
        ("a: !custom 3", "policy-tag"),
        ("- 1\n- 2", "policy-shape"),
        ("? [a, b]\n: 1", "policy-key"),
        ("a: " + "[" * 60 + "]" * 60, "policy-too-deep"),
        ("a: '" + "x" * 1_000_001 + "'", "policy-too-large"),
        ("a: 2024-99-99", "policy-value"),
        ("a: \x00", "policy-not-yaml"),
        ("data: {source: 5}", "policy-invalid"),
        ("data: {source: a.csv, hierarchies: {age: {widths: [1], cuts: [2]}}}", "policy-invalid"),
        ("data: {source: a.csv}\nreleases: 7", "policy-invalid"),
        ("data: {source: a.csv}\nreleases: [3]", "policy-invalid"),
        ("data: {source: a.csv}\nreleases: [{name: ../up, kind: table}]", "policy-invalid"),
        ("1: 2", "policy-invalid"),
        ("", "policy-invalid"),
    ],
)
def test_hostile_documents_are_input_errors(text, code):
    with pytest.raises(InputError) as caught:
        validate(parse(text))
    assert caught.value.code == code


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_any_text_is_a_policy_or_an_error_of_ours(text):
    with contextlib.suppress(DiscreetError):
        validate(parse(text))


def test_files_that_are_not_there_or_not_text(tmp_path):
    with pytest.raises(InputError) as caught:
        load_policy(tmp_path / "none.yaml")
    assert caught.value.code == "missing-file"
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError) as caught:
        load_policy(tmp_path / "bad.yaml")
    assert caught.value.code == "policy-not-text"


def test_the_schema_is_a_schema_and_knows_the_source():
    import jsonschema

    schema = policy_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"data": {"source": "a.csv", "roles": {"age": "quasi"}}})
    assert not validator.is_valid({"data": {"source": "a.csv", "roles": {"age": "quazi"}}})
    assert not validator.is_valid({"data": {"sorce": "a.csv"}})


def test_the_schema_command_writes_it(tmp_path):
    target = tmp_path / "policy.schema.json"
    done = CliRunner().invoke(build(), ["schema", "-o", str(target)])
    assert done.exit_code == 0
    assert json.loads(target.read_text()) == json.loads(json.dumps(policy_schema()))

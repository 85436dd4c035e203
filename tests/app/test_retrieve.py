"""`discreet retrieve` and `discreet search` from the command line."""

import json
import re

import pandas as pd
import pytest
from typer.testing import CliRunner

from discreet.app.cli.main import build
from discreet.app.policy.access import permitted_policy
from discreet.errors import InputError, RefusedError
from discreet.protocols.retrieval.table import RetrievalTable
from discreet.protocols.services.retrieval_table import serve_tables
from tests.protocols.transport.parties import free_ports

POLICY = """
data: {{source: people.csv, roles: {{id: other, name: other, city: other, pay: confidential}}}}
retrieval:
  - name: people
    kind: retrieval-table
    key: id
    columns: [{columns}]
    secondary: {{city: 3}}
    schemes: [dpf, simple-pir]
    servers: {{a: "127.0.0.1:{a}", b: "127.0.0.1:{b}"}}
"""


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "people.csv").write_text(
        "id,name,city,pay\n1,Ana,TGN,10\n2,Bo,BCN,20\n3,Cy,TGN,30\n4,,GRO,40\n"
    )
    a, b = free_ports(2)
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.format(columns="name, city", a=a, b=b))
    return file


def call(*words):
    return CliRunner().invoke(build(), ["retrieve", *map(str, words)])


def test_a_table_is_built_served_asked_and_updated(policy):
    done = call("build", policy)
    assert done.exit_code == 0, done.stderr
    assert "version 1, 4 rows of id, name, city" in done.stderr
    assert b"pay" not in (policy.parent / "published/people/v1/statement.bin").read_bytes()
    loaded, _ = permitted_policy(policy)
    servers = [serve_tables(loaded.retrieval, name, policy.parent)[0] for name in "ab"]
    try:
        found = call("get", 1, "--policy", policy, "--json")
        assert json.loads(found.stdout) == [{"id": 1, "name": "Ana", "city": "TGN"}]
        # A scheme for one server asks the first of those that the policy names.
        for scheme in ("whole-table", "simple-pir"):
            one = call("get", 1, "--policy", policy, "--json", "--scheme", scheme)
            assert one.stdout == found.stdout, one.exception
        absent = call("get", 7, "--policy", policy)
        assert absent.exit_code == 1
        assert "proven absent" in absent.stderr
        many = call("get", "TGN", "--where", "city", "--policy", policy, "--json")
        assert [row["id"] for row in json.loads(many.stdout)] == [1, 3]
        # A missing value is shown alike, however its row is found.
        assert call("get", 4, "--policy", policy).stdout == "id: 4\nname: –\ncity: GRO\n"
        assert call("get", "GRO", "--where", "city", "--policy", policy).stdout.endswith(
            "name: –\ncity: GRO\n"
        )
        gone = call("update", policy, "--deleted", 77)
        assert gone.exception.code == "unknown-key"
        changed = policy.parent / "changed.csv"
        changed.write_text("id,name,city\n1,Ann,BCN\n")
        assert "version 2" in call("update", policy, "--changed", changed).stderr
    finally:
        for server in servers:
            server.close()
    measured = call("evaluate", policy, "--views", 40, "--json")
    assert [one["scheme"] for one in json.loads(measured.stdout)["schemes"]] == [
        "chor",
        "dpf",
        "simple-pir",
        "whole-table",
    ]


def test_confidential_columns_stay_at_home(policy):
    policy.write_text(policy.read_text().replace("name, city", "name, city, pay"))
    done = call("build", policy)
    assert isinstance(done.exception, RefusedError)
    assert "publishable: true" in str(done.exception)
    assert not (policy.parent / "published").exists()
    policy.write_text(policy.read_text().replace("key: id", "key: id\n    publishable: true"))
    assert call("build", policy).exit_code == 0


def test_changes_are_judged_and_read_like_the_records(policy):
    people = policy.parent / "people.csv"
    written = policy.read_text().replace("[dpf, simple-pir]", "[dpf]")
    people.write_text("id;name;city;pay\n1;Ana;TGN;10\n2;Bo;NA;20\n")
    read = written.replace("source: people.csv", "source: people.csv, na: [NA]")
    policy.write_text(read)
    assert call("build", policy).exit_code == 0
    changed = policy.parent / "changed.csv"
    changed.write_text("id;name;city;pay\n1;Ann;NA;11\n")
    folder = policy.parent / "published/people"
    # What became confidential since, or is no longer named, does not leave with a change.
    policy.write_text(read.replace("name: other", "name: confidential"))
    refused = call("update", policy, "--changed", changed)
    assert isinstance(refused.exception, RefusedError)
    assert refused.exception.code == "not-publishable"
    policy.write_text(read.replace("[name, city]", "[city]"))
    assert call("update", policy, "--changed", changed).exception.code == "retrieval-columns"
    assert sorted(one.name for one in folder.glob("v*")) == ["v1"]
    policy.write_text(read)
    assert call("update", policy, "--changed", changed).exit_code == 0
    assert RetrievalTable.open(folder).lookup("main", 1) == ["Ann", None]
    # A file of another kind brings its own form, and is judged the same.
    pd.DataFrame({"id": [2], "name": ["Bob"], "city": ["GRO"]}).to_parquet(
        policy.parent / "changed.parquet"
    )
    done = call("update", policy, "--changed", policy.parent / "changed.parquet")
    assert done.exit_code == 0, done.exception
    changed.write_text("id;name;city\n2;" + "x" * 999 + ";TGN\n")
    long = call("update", policy, "--changed", changed)
    assert long.exception.code == "row-too-long"
    assert "build the table again" in long.exception.hint


def test_mistakes_in_the_policy_are_named(policy):
    loaded, _ = permitted_policy(policy)
    with pytest.raises(InputError, match="no published version"):
        serve_tables(loaded.retrieval, "a", policy.parent)
    with pytest.raises(InputError, match="no table"):
        serve_tables(loaded.retrieval, "c", policy.parent)
    text = policy.read_text()
    policy.write_text(
        re.sub(r'b: "[^"]*"', re.search(r'a: ("[^"]*")', text)[0].replace("a:", "b:"), text)
    )
    assert "one address" in str(call("build", policy).exception)
    policy.write_text(text)
    assert "no table 'drugs'" in str(call("build", policy, "--table", "drugs").exception)
    policy.write_text(policy.read_text().replace("key: id", "keys: id"))
    assert "retrieval-table needs key" in str(call("build", policy).exception)


def test_searches_are_disguised(tmp_path):
    words = tmp_path / "words.csv"
    words.write_text("term,count\n" + "".join(f"w{n},{100 - n}\n" for n in range(40)))
    runner = CliRunner()
    done = runner.invoke(build(), ["search", "disguise", "w3", "--vocabulary", str(words)])
    assert '"w3"' in done.stdout
    assert done.stdout.count(" OR ") >= 7

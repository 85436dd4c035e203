"""Gateways declared in a policy, and the commands that ask them and look into the ledger."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from discreet.app.policy.load import load_policy
from discreet.app.policy.run import check_policy, open_source
from discreet.demo import salaries
from discreet.errors import InputError

POLICY = """
data:
  source: people.csv
  name: people
  roles: {id: identifier, sector: quasi, region: quasi, salary: confidential}
gateways:
  - name: main
    kind: gateway
    guard: {restriction: {k: 3}}
    ledger: main.db
    apart: true
    policies:
      "user:ana": {camouflage: {bound: 0.4}}
      "role:student": {guard: {perturbation: {epsilon: 1.0, per_query: 0.5}}, columns: [sector]}
"""


@pytest.fixture
def policy(tmp_path):
    salaries().write(tmp_path / "people.csv")
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


def run(*arguments):
    from discreet.app.cli.main import build

    return CliRunner().invoke(build(), [str(argument) for argument in arguments])


def test_declared_gateway_opens_with_its_policies(policy):
    declared = load_policy(policy)
    (job,) = declared.gateways.values()
    check_policy(policy)
    with job.open(open_source(declared, policy.parent), policy.parent) as gate:
        sql = "SELECT AVG(salary) FROM people WHERE sector = 'HC'"
        assert gate.ask(sql, user="bob").kind == "exact"
        assert gate.ask(sql, user="ana").kind == "interval"
        assert gate.ask(sql, user="eve", roles=["student"]).code == "column-denied"
        counted = gate.ask("SELECT COUNT(*) FROM people", user="eve", roles=["student"])
        assert counted.kind == "noisy"
    assert (policy.parent / "main.db").exists()


def test_a_gateway_is_not_a_release(policy):
    declared = load_policy(policy)
    (job,) = declared.gateways.values()
    with pytest.raises(InputError, match="not a release"):
        job.run(salaries())


def test_unknown_column_is_found_by_check(policy):
    text = POLICY.replace("columns: [sector]", "columns: [sectr]")
    policy.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="sectr"):
        check_policy(policy)


def test_commands_ask_explain_and_look_into_the_ledger(policy, tmp_path):
    sql = "SELECT SUM(salary) AS total FROM people WHERE sector = 'HC'"
    asked = run("gateway", "ask", policy, sql, "--json")
    assert asked.exit_code == 0, asked.output
    assert json.loads(asked.stdout)["kind"] == "exact"
    refused = run("gateway", "ask", policy, "SELECT salary FROM people")
    assert refused.exit_code == 3
    assert "no aggregate" in refused.stdout
    told = run("gateway", "explain", policy, sql, "--user", "ana")
    assert "camouflage" in told.stdout
    ledger = tmp_path / "main.db"
    assert "exact" in run("ledger", "inspect", ledger).stdout
    assert json.loads(run("ledger", "verify", ledger, "--json").stdout)["intact"] is True
    assert run("ledger", "export", ledger, "-o", tmp_path / "out.jsonl").exit_code == 0
    assert "482000" not in (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    assert run("ledger", "verify", tmp_path / "none.db").exit_code != 0

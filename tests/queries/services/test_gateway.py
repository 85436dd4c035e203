"""Gateways declared in a policy, and the commands that ask them and look into the ledger."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from discreet.app.policy.access import permitted_policy
from discreet.app.policy.run import check_policy, open_source
from discreet.data.job import Job
from discreet.data.service import Service
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
    declared, _ = permitted_policy(policy)
    (job,) = declared.gateways.values()
    check_policy(policy)
    with job.open(open_source(declared), policy.parent) as gate:
        sql = "SELECT AVG(salary) FROM people WHERE sector = 'HC'"
        assert gate.ask(sql, user="bob").kind == "exact"
        assert gate.ask(sql, user="ana").kind == "interval"
        assert gate.ask(sql, user="eve", roles=["student"]).code == "unknown-column"
        counted = gate.ask("SELECT COUNT(*) FROM people", user="eve", roles=["student"])
        assert counted.kind == "noisy"
    assert (policy.parent / "main.db").exists()


def test_a_gateway_is_not_a_release(policy):
    declared, _ = permitted_policy(policy)
    (service,) = declared.gateways.values()
    assert isinstance(service, Service)
    assert not isinstance(service, Job)


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


SECOND = """
  - name: second
    kind: gateway
    guard: {camouflage: {bound: 0.4}}
    ledger: main.db
"""


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (SECOND.replace("main.db", "second.db"), "same `ledger:`"),
        (SECOND + "    relation: staff\n", "same `relation:`"),
    ],
    ids=["ledger", "relation"],
)
def test_two_gateways_of_a_policy_have_one_history(policy, other, said):
    policy.write_text(POLICY + other, encoding="utf-8")
    with pytest.raises(InputError) as failure:
        check_policy(policy)
    assert failure.value.code == "two-histories"
    assert said in failure.value.hint
    asked = run("gateway", "ask", policy, "SELECT COUNT(*) FROM people", "--gateway", "second")
    assert asked.exception.code == "two-histories"


def test_a_later_gateway_does_not_take_the_place_of_an_earlier_one(policy):
    from discreet.app.server.from_policy import serve_policy

    users = "server:\n  users:\n    ana: {roles: [analyst]}\n"
    policy.write_text(POLICY + SECOND + users, encoding="utf-8")
    with pytest.raises(InputError) as failure:
        serve_policy(policy, started=lambda _: None)
    assert failure.value.code == "several-gateways"


def test_a_policy_names_head_and_snapshot(policy):
    text = POLICY.replace(
        "ledger: main.db", "ledger: main.db\n    head: head.json\n    snapshot: may"
    )
    policy.write_text(text, encoding="utf-8")
    asked = run("gateway", "ask", policy, "SELECT COUNT(*) FROM people")
    assert asked.exit_code == 0, asked.output
    noted = json.loads((policy.parent / "head.json").read_text())
    assert noted["number"] == 2
    (policy.parent / "main.db").unlink()
    (policy.parent / "people.csv.ledger-mark").unlink()
    again = run("gateway", "ask", policy, "SELECT COUNT(*) FROM people")
    assert again.exception.code == "ledger-restored"


def test_a_program_of_a_policy_runs_only_if_it_is_allowed(policy):
    text = POLICY.replace("ledger: main.db", "ledger: main.db\n    head: 'command:touch x'")
    policy.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as failure:
        permitted_policy(policy)
    assert failure.value.code == "not-allowed"
    declared, _ = permitted_policy(policy, allow=["command:touch x"])
    assert [job.head for job in declared.gateways.values()] == ["command:touch x"]

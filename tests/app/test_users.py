"""Users added to policy files, and policies that let nobody in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from discreet.app.policy.access import permitted_policy
from discreet.app.policy.run import check_policy
from discreet.app.policy.users import with_user
from discreet.errors import InputError

DATA = "# who and what\ndata:\n  source: people.csv   # the records\n  roles: {age: quasi}\n"
GATE = "gateways:\n  - {name: people, kind: gateway, guard: {restriction: {k: 3}}}\n"
ENTRY = {"roles": ["analyst"], "password": "$argon2id$x", "scram": "SCRAM-SHA-256$x"}


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "people.csv").write_text("age\n" + "\n".join(str(20 + n) for n in range(30)))
    return tmp_path / "policy.yaml"


@pytest.mark.parametrize(
    "server",
    [
        "",
        "server:\n  port: 1234   # ours\n",
        "server:\n  users: {}   # nobody yet\n  port: 1234\n",
        "server:\n  port: 1234\n  users:\n    bob: {roles: [analyst]}   # Bob\n",
        "server: {port: 1234}\n",
        "server: {users: {bob: {roles: [analyst]}}, port: 1234}\n",
    ],
)
def test_a_user_is_added_and_everything_else_stays(policy, server):
    policy.write_text(DATA + GATE + server)
    before = yaml.safe_load(policy.read_text())
    text = with_user(policy, "ana", ENTRY)
    after = yaml.safe_load(text)
    assert after["server"]["users"].pop("ana") == ENTRY
    before.setdefault("server", {}).setdefault("users", {})
    before["server"]["users"] = before["server"]["users"] or {}
    assert after == before
    for comment in ("# who and what", "# the records", *(["# ours"] if "# ours" in server else [])):
        assert comment in text


def test_a_known_user_is_not_added_twice(policy):
    policy.write_text(DATA + GATE + "server:\n  users:\n    ana: {roles: [analyst]}\n")
    with pytest.raises(InputError) as caught:
        with_user(policy, "ana", ENTRY)
    assert caught.value.code == "user-exists"


def test_a_policy_that_lets_nobody_in_fails_its_check(policy):
    policy.write_text(DATA + GATE + "server:\n  users: {}\n")
    with pytest.raises(InputError) as caught:
        check_policy(policy)
    assert caught.value.code == "no-users"
    policy.write_text(DATA + GATE)
    assert check_policy(policy).done


def test_what_a_gateway_would_refuse_when_it_opens_fails_the_check(tmp_path):
    rows = "\n".join(f"{n // 8},{n % 8},{1000 + n}" for n in range(80))
    (tmp_path / "people.csv").write_text(f"person,year,salary\n{rows}\n")
    roles = "{person: identifier, year: quasi, salary: confidential}"
    data = f"data:\n  source: people.csv\n  unit: person\n  roles: {roles}\n"
    policy = tmp_path / "policy.yaml"
    policy.write_text(data + GATE)
    with pytest.raises(InputError) as caught:
        check_policy(policy)
    assert caught.value.code == "several-records"
    assert {file.name for file in tmp_path.iterdir()} == {"people.csv", "policy.yaml"}


def test_a_gateway_that_has_answered_can_be_checked_again(policy):
    policy.write_text(DATA + GATE)
    parsed, _ = permitted_policy(policy)
    dataset = parsed.data.open()
    with parsed.gateways["people"].open(dataset, policy.parent) as gate:
        assert gate.ask("SELECT COUNT(*) FROM people").value() == 30
        entries = len(list(gate.ledger.entries()))
    assert check_policy(policy).done
    with parsed.gateways["people"].open(dataset, policy.parent) as gate:
        assert len(list(gate.ledger.entries())) == entries


def test_a_password_comes_from_standard_input(policy):
    policy.write_text(DATA + GATE)
    repository = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "discreet", "user", "ana", "--policy", str(policy), "--password-stdin"],
        env={**os.environ, "PYTHONPATH": str(repository / "src")},
        input="a long password\n", capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "long password" not in done.stdout + done.stderr + policy.read_text()
    users = yaml.safe_load(policy.read_text())["server"]["users"]
    assert users["ana"]["password"].startswith("$argon2id$")
    assert users["ana"]["scram"].startswith("SCRAM-SHA-256$")

"""`discreet attack`: attacks on a policy's own data succeed raw and fail under its guards."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from discreet.app.attacking import attack_policy, choose_victim
from discreet.app.attacking_tables import attack_release
from discreet.app.cli.main import build
from discreet.demo.datasets import salaries
from discreet.errors import InputError

POLICY = """
data:
  source: people.csv
  name: people
  roles: {sector: quasi, region: quasi, salary: confidential, id: identifier}
gateways:
  - {name: strict, kind: gateway, guard: {restriction: {k: 3}}}
  - {name: ranges, kind: gateway, guard: {camouflage: {bound: 0.3}}}
"""
KNOWN = "sector = 'Fin' AND region = 'TGN'"


@pytest.fixture
def policy(tmp_path):
    salaries().frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path / "policy.yaml"


def test_attacks_succeed_on_the_raw_data_and_fail_under_each_guard(policy):
    found = attack_policy(policy, column="salary", condition=KNOWN)
    assert found.truth == 150_000
    assert {"difference", "tracker", "collusion", "averaging", "linear-system"} <= set(found.found)
    for reports in found.found.values():
        assert reports["raw"].succeeded
        assert not reports["strict"].succeeded
        assert not reports["ranges"].succeeded
    assert found.withstood


def test_a_guard_that_does_not_hold_is_told(policy):
    found = attack_policy(
        policy,
        column="salary",
        condition=KNOWN,
        attacks=["averaging"],
        guards=["perturbation: {epsilon: 1.0e9, per_query: 1.0e6, bounds: {salary: [0, 500000]}}"],
    )
    assert not found.withstood


def test_nothing_is_recorded(policy):
    attack_policy(policy, column="salary", condition=KNOWN, attacks=["difference"])
    assert not (policy.parent / "ledger.db").exists()


def test_the_command(policy):
    ran = CliRunner().invoke(
        build(), ["attack", str(policy), "--column", "salary", "--victim", KNOWN]
    )
    assert ran.exit_code == 0, ran.output
    assert "difference" in ran.output
    assert "150,000 (found)" in ran.output


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"condition": "sector = 'IT'"}, "victim-not-unique"),
        ({"condition": "nothing = 1"}, "malformed-condition"),
        ({"condition": "((("}, "malformed-condition"),
        ({"condition": KNOWN, "column": "wage"}, "unknown-column"),
        ({"condition": KNOWN, "attacks": ["diference"]}, "unknown-attack"),
        ({"condition": KNOWN, "guards": ["restriction: {"]}, "malformed-guard"),
    ],
)
def test_mistakes_are_named(policy, options, code):
    with pytest.raises(InputError) as caught:
        attack_policy(policy, **{"column": "salary", **options})
    assert caught.value.code == code


def test_names_that_need_quotes_and_columns_of_text(tmp_path):
    rows = salaries().frame.rename(columns={"salary": "Yearly-Pay"}).assign(note="a")
    rows.to_csv(tmp_path / "people.csv", index=False)
    text = POLICY.replace("salary: confidential", "Yearly-Pay: confidential, note: confidential")
    (tmp_path / "policy.yaml").write_text(text)
    found = attack_policy(tmp_path / "policy.yaml", column="Yearly-Pay", condition=KNOWN)
    assert found.truth == 150_000
    assert all(reports["raw"].succeeded for reports in found.found.values())
    with pytest.raises(InputError) as caught:
        attack_policy(tmp_path / "policy.yaml", column="note", condition=KNOWN)
    assert caught.value.code == "not-numeric"


def test_conditions_are_chosen():
    victim = choose_victim(salaries(), "salary", KNOWN)
    assert victim.group == "sector = 'Fin'"
    assert "=" in victim.other


def test_attacks_on_something_else_are_not_run_on_gateways(policy, monkeypatch):
    import discreet as dc

    monkeypatch.setattr(dc.Averaging, "attacks", "files")
    found = attack_policy(policy, column="salary", condition=KNOWN)
    assert "averaging" not in found.found
    assert "difference" in found.found
    with pytest.raises(InputError) as caught:
        attack_policy(policy, column="salary", condition=KNOWN, attacks=["averaging"])
    assert caught.value.code == "attack-not-on-gateways"


TABLES = """
data:
  source: people.csv
  name: people
  roles: {place: quasi, sex: quasi, age: quasi}
  domains: {sex: [f, m], age: [young, old, oldest]}
  hierarchies: {place: places.csv}
releases:
  - {name: census, kind: table, by: [place, sex, age], method: {name: top-down, rho: 0.1}}
  - {name: other, kind: table, by: [sex], method: {name: controlled-rounding, base: 5}, rules: [{minimum-frequency: 3}]}
"""


@pytest.fixture
def census(tmp_path):
    rng = np.random.default_rng(1)
    places = [f"p{n}" for n in range(40)]
    rows = pd.DataFrame(
        {
            "place": rng.choice(places, 200),
            "sex": rng.choice(["f", "m"], 200),
            "age": rng.choice(["young", "old", "oldest"], 200),
        }
    )
    rows.to_csv(tmp_path / "people.csv", index=False)
    pairs = [("code", "parent"), ("Land", ""), *((place, "Land") for place in places)]
    (tmp_path / "places.csv").write_text("\n".join(",".join(pair) for pair in pairs) + "\n")
    (tmp_path / "policy.yaml").write_text(TABLES)
    return tmp_path / "policy.yaml"


def test_attacks_on_a_table_succeed_on_exact_counts_and_fail_on_what_is_published(census):
    found = attack_release(census, "census")
    assert set(found.found) == {
        "presence", "reconstruction", "membership-in-tables", "repeated-releases"
    }  # fmt: skip
    for name, reports in found.found.items():
        assert reports["exact"].succeeded, name
        assert not reports["published"].succeeded, name
    assert found.found["repeated-releases"]["published"].refused == 199
    assert found.withstood
    ran = CliRunner().invoke(build(), ["attack", str(census), "--release", "census"])
    assert ran.exit_code == 0, ran.output
    assert "presence" in ran.output


def test_other_releases_and_missing_victims_are_told(census):
    for release in ("other", "nothing"):
        with pytest.raises(InputError, match="top-down"):
            attack_release(census, release)
    with pytest.raises(InputError, match="no attack 'tracker'"):
        attack_release(census, "census", attacks=["tracker"])
    ran = CliRunner().invoke(build(), ["attack", str(census)])
    assert isinstance(ran.exception, InputError) or ran.exit_code == 2

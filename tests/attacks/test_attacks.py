"""Every attack finds the victim in the raw database and fails under every guard."""

from __future__ import annotations

import pytest

import discreet as dc
from discreet.attacks import RawDatabase, Victim, attacks_on
from discreet.demo import salaries

VICTIM = Victim(
    "people", "salary", "sector = 'Fin' AND region = 'TGN'", "region = 'TGN'", "sector = 'IT'"
)
TRUTH = 150_000.0
GUARDS = {
    "restriction": dc.Restriction(k=3),
    "partition": dc.Restriction(k=3, mode="partition"),
    "camouflage": dc.Camouflage(bound=0.3),
    "perturbation": dc.Perturbation(epsilon=1, per_query=0.05, bounds={"salary": (0, 500_000)}),
    "input": dc.Perturbation(epsilon=0.5, per_query=0.05, bounds={"salary": (0, 500_000)}, mode="input"),
}  # fmt: skip
ATTACKS = {name: attack() for name, attack in attacks_on("gateway").items()}
ATTACKS["individual tracker"] = dc.Tracker(kind="individual")


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_attack_succeeds_on_the_raw_database(attack):
    report = attack.run(RawDatabase(salaries()), VICTIM, TRUTH)
    assert report.succeeded
    assert report.refused == 0


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_attack_fails_under_every_guard(attack, guard):
    # Noise hits the truth to within 1 % now and then, by chance: so it must twice in a row.
    for _ in range(3):
        with dc.Gateway(salaries(), guard=guard) as gate:
            report = attack.run(gate, VICTIM, TRUTH)
        if not report.succeeded:
            break
    assert not report.succeeded
    if guard.answers == "exact":
        assert report.lower is None
    if guard.answers == "interval" and report.lower is not None:
        assert report.upper - report.lower >= 0.3 * TRUTH


HISTORY = {name: attack() for name, attack in attacks_on("history").items()}
HISTORY["second ledger"] = dc.SecondName(kind="ledger")
ROLES = {"id": "identifier", "sector": "quasi", "region": "quasi", "salary": "confidential"}


def rows():
    """The fifteen persons, the victim last."""
    found = salaries().arrow().to_pylist()
    return sorted(found, key=lambda row: (row["sector"], row["region"]) == ("Fin", "TGN"))


@pytest.mark.parametrize("attack", HISTORY.values(), ids=HISTORY)
def test_a_forgetful_gateway_tells_the_victim(attack):
    report = attack.control()
    assert report.succeeded
    assert report.lower == report.upper == TRUTH


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
@pytest.mark.parametrize("attack", HISTORY.values(), ids=HISTORY)
def test_attack_on_the_memory_fails_under_every_guard(attack, guard):
    def custodian(source, *, name, ledger, head):
        people = dc.read(source, name=name, roles=ROLES)
        return dc.Gateway(people, guard=guard, ledger=ledger, head=head)

    report = attack.run(custodian, rows(), VICTIM, TRUTH)
    assert report.refused == 1  # the second gateway is not even opened
    assert report.lower is None


def test_an_older_ledger_is_not_noticed_where_no_head_was_noted():
    def custodian(source, *, name, ledger, head):
        people = dc.read(source, name=name, roles=ROLES)
        return dc.Gateway(people, guard=dc.Restriction(k=3), ledger=ledger)

    assert dc.RestoredLedger().run(custodian, rows(), VICTIM, TRUTH).succeeded


def test_families_of_attacks():
    assert set(attacks_on("gateway")) >= {
        "averaging", "collusion", "difference", "linear-system", "tracker",
    }  # fmt: skip

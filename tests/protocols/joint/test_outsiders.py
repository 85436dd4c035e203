"""What somebody tries who has the manual: odd codes, huge numbers, changed records, used sessions."""

from __future__ import annotations

import dataclasses
import shutil
import threading
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import EngineError, InfeasibleError, InputError, RefusedError
from discreet.ledger.entry import Draft
from discreet.ledger.opening import open_ledger
from discreet.protocols.joint.party import Party
from discreet.protocols.joint.rehearsal import rehearse_protocol
from discreet.protocols.joint.summary import require_offer
from discreet.protocols.joint.verification import verify_ledgers
from discreet.protocols.transport.mesh import Waiting
from tests.protocols.joint.here import here, policy_in
from tests.protocols.joint.rehearsed import policy_for

FRAME = pd.DataFrame(
    {"icd": list("AAAAB"), "ward": list("xxyyx"), "cost": [5.0, 6, 7, 8, 9], "age": range(5)}
)
AGREED = {
    "keys": {"icd": ["A", "B"], "ward": ["x", "y"]},
    "measures": {"cost": {"bound": 1e4}},
    "conditions": {"age": "integer"},
}
SQL = "SELECT icd, SUM(cost) AS cost FROM stays GROUP BY icd"


@pytest.fixture
def one_session(monkeypatch):
    """An analyst who begins every question in the same session."""
    monkeypatch.setattr(
        "discreet.protocols.joint.analyst.secrets.token_hex", lambda size: "s" * size
    )


def test_a_session_is_used_once(one_session):
    # Else the ledgers would show the second run alone, and nobody what the first opened.
    agreed = {
        "sum": {
            "protocol": {"secure-sum": {"epsilon": 0.1}},
            "columns": {f"owner{place}": ["cost"] for place in (1, 2, 3)},
            "bounds": {"cost": 100.0},
        }
    }
    with here([FRAME] * 3, computations=agreed, budget=5.0, **AGREED) as joint:
        joint.ask(SQL)
        for again in (lambda: joint.ask(SQL), lambda: joint.run("sum")):
            with pytest.raises(RefusedError) as caught:
                again()
            assert caught.value.code == "session-repeated"
        assert verify_ledgers(list(joint.files.values())).sessions == 1


def test_two_runs_that_a_ledger_holds_as_one_are_a_finding():
    with here([FRAME] * 3, **AGREED) as joint:
        joint.ask(SQL)
        assert verify_ledgers(list(joint.files.values())).agrees
        for place in joint.files.values():  # as a party wrote it that did not look
            with open_ledger(place) as ledger:
                for entry in [one for one in ledger.entries() if one.kind == "joint"]:
                    digest = f"again {entry.number}"
                    ledger.record(
                        Draft("stays", "analyst", "joint", "q", digest, "p", entry.details)
                    )
        found = verify_ledgers(list(joint.files.values()))
        assert "two runs as one" in " ".join(found.findings)


@pytest.mark.parametrize(
    "change",
    [
        {"cost": [-5.0, 6, 7, 8, 9]},
        {"cost": [None, 6, 7, 8, 9]},
        {"cost": [1e9, 6, 7, 8, 9]},
        {"icd": list("AAAAZ")},
    ],
    ids=["negative", "missing", "huge", "undeclared"],
)
def test_records_that_stop_to_fit_after_the_start_take_no_part(change, tmp_path):
    # Rules on amounts say nothing of negative ones, and a sum passes over what is missing.
    files = [str(tmp_path / f"{place}.parquet") for place in range(3)]
    for file in files:
        FRAME.to_parquet(file)
    with here(files, **AGREED) as joint:
        FRAME.assign(**change).to_parquet(tmp_path / "new")
        (tmp_path / "new").replace(files[1])
        with pytest.raises(EngineError) as caught:
            joint.ask(SQL)
        assert caught.value.code == "owner-failed"
        assert verify_ledgers(list(joint.files.values())).opened == ()


def test_parts_that_few_have_after_the_start_are_seen(tmp_path):
    # The relation was looked at when the owner started; then somebody got a bonus.
    file = str(tmp_path / "0.parquet")
    frame = pd.DataFrame({"icd": ["A"] * 20, "cost": np.arange(20) * 7.0})
    frame["paid"] = frame.cost
    frame.to_parquet(file)
    measures = {name: {"bound": 1e4} for name in ("cost", "paid")}
    with here([file, frame, frame], keys={"icd": ["A"]}, measures=measures) as joint:
        frame.assign(paid=frame.paid + (frame.index == 3) * 90).to_parquet(tmp_path / "new")
        (tmp_path / "new").replace(file)
        with pytest.raises(EngineError) as caught:
            joint.ask(SQL)
        assert caught.value.code == "owner-failed"
        assert verify_ledgers(list(joint.files.values())).opened == ()


def test_sums_that_shares_cannot_hold_are_refused_whatever_the_rules():
    # Frequencies do not look at sums; the sum of three owners was opened modulo 2^64.
    with pytest.raises(InputError) as caught:
        policy_for(3, measures={"cost": {"bound": 9e18, "decimals": 2}})
    assert caught.value.code == "bounds-too-wide"
    policy_for(3, measures={"cost": {"bound": 1e13, "decimals": 2}})


@pytest.mark.parametrize("bound", [1e15, 1e400, 10**400, float("nan")])
def test_sums_that_a_number_cannot_show_are_refused(bound):
    # The database adds, and the answer shows, numbers of 53 binary digits: 2^53 + 1 was 2^53.
    with pytest.raises(InputError):
        policy_for(3, measures={"cost": {"bound": bound, "decimals": 2}})
    frames = [pd.DataFrame({"cost": [2.0**52, 1.0, 2.0, 4.0]})] * 3
    with pytest.raises(InfeasibleError) as caught:
        rehearse_protocol(dc.SecureSum(decimals=0), dict(zip("abc", frames, strict=True)))
    assert caught.value.code == "bounds-too-wide"


def test_one_key_is_one_party(tmp_path):
    # Two of three nodes that are one see all shares.
    policy, _running = policy_in(tmp_path, 3, **AGREED)
    parties = dict(policy.parties)
    shutil.copy(tmp_path / "owner2.crt", tmp_path / "copy.crt")
    for file in ("owner2.crt", "copy.crt"):
        parties["owner3"] = dataclasses.replace(parties["owner3"], certificate=file)
        with pytest.raises(InputError) as caught:
            dc.Joint(dataclasses.replace(policy, parties=parties))
        assert caught.value.code == "key-shared"
    parties = dict(policy.parties)
    parties["owner3"] = dataclasses.replace(parties["owner3"], address=parties["owner2"].address)
    with pytest.raises(InputError) as caught:
        dataclasses.replace(policy, parties=parties)
    assert "same address" in str(caught.value)


def test_codes_that_look_alike_are_one_code():
    composed, apart = "caf\u00e9", "cafe\u0301"
    for codes in ([apart], [composed, apart]):
        with pytest.raises(InputError) as caught:
            policy_for(2, keys={"icd": codes})
        assert "NFC" in str(caught.value)
    frames = [pd.DataFrame({"icd": [code] * 4}) for code in (composed, apart, composed)]
    with here(frames, keys={"icd": [composed]}) as joint:
        found = joint.ask("SELECT icd, COUNT(*) AS n FROM stays GROUP BY icd")
        assert found.frame.n.tolist() == [12]


def test_a_hundred_thousand_codes_of_one_key_are_looked_up_at_once():
    # Compared one by one with all codes they took four minutes, and a million would have taken hours.
    codes = [f"c{place}" for place in range(100_000)]
    data = dc.read(pd.DataFrame({"icd": codes}), name="stays")
    require_offer(data, policy_for(2, keys={"icd": codes}))


def test_conditions_that_overlap_are_refused_whoever_asks(tmp_path):
    # One question as another analyst, who may be an owner, and after a restart.
    stated = {**AGREED, "ledgers": tmp_path, "analysts": ["analyst", "second"]}
    conditions = ["", *(f"WHERE age < {most} " for most in (0, 1, 3, 4)), "WHERE age >= 0 "]
    with here([FRAME] * 3, more=["second"], **stated) as joint:
        first = joint.ask(SQL.replace("GROUP", "WHERE age < 5 GROUP"))
        second = dc.Joint(joint.policy, as_="second")
        for condition in conditions:
            with pytest.raises(RefusedError) as caught:
                second.ask(SQL.replace("GROUP", f"{condition}GROUP"))
            assert caught.value.code == "joint-history"
        with pytest.raises(RefusedError):
            second.ask(SQL.replace("icd", "ward"))
    with here([FRAME] * 3, more=["second"], **stated) as joint:
        with pytest.raises(RefusedError):
            joint.ask(SQL)
        again = joint.ask(SQL.replace("GROUP", "WHERE age < 5 GROUP"))
        assert again.frame.equals(first.frame)


def test_one_ledger_restored_from_a_backup_opens_nothing_and_is_seen(tmp_path):
    used, kept = tmp_path / "used", tmp_path / "kept"
    used.mkdir()
    with here([FRAME] * 3, ledgers=used, **AGREED):
        pass
    shutil.copytree(used, kept)
    with here([FRAME] * 3, ledgers=used, **AGREED) as joint:
        joint.ask(SQL)
    for file in used.glob("owner1.db*"):
        file.unlink()
    for file in kept.glob("owner1.db*"):
        shutil.copy(file, used)
    with here([FRAME] * 3, ledgers=used, **AGREED) as joint:
        with pytest.raises(RefusedError) as caught:
            joint.ask(SQL.replace("icd", "ward"))
        assert caught.value.code == "joint-history"
        found = verify_ledgers(list(joint.files.values()))
        assert "owner1" in " ".join(found.findings)


def test_questions_that_were_given_up_keep_nobody_out(monkeypatch):
    # Sixteen of them shut an analyst out until the time limit had passed.
    with here([FRAME] * 3, **AGREED) as joint:
        with monkeypatch.context() as given_up:
            given_up.setattr("discreet.protocols.joint.party.Party._run", None)
            for _ in range(17):
                with pytest.raises(EngineError):
                    joint.ask(SQL)
        assert joint.ask(SQL).withheld == 1


def test_links_of_one_party_that_nobody_takes_keep_no_other_out():
    waiting = Waiting(limit=4)
    links = [SimpleNamespace(peer="b" if place else "a") for place in range(10)]
    threads = [
        threading.Thread(
            target=waiting.offer, args=(f"s{place}", link), kwargs={"time_limit": 30.0}
        )
        for place, link in enumerate(links)
    ]
    for thread in threads:
        thread.start()
        while not any(link is links[threads.index(thread)] for link in waiting._links.values()):
            assert thread.is_alive()
    for thread in threads[1:6]:
        thread.join(5)
        assert not thread.is_alive()  # let go long before the limit
    for place in (0, 6, 9):
        link, done = waiting.take(f"s{place}", "b" if place else "a", until=np.inf)
        assert link is links[place]
        done.set()
    for place in (7, 8):
        waiting.take(f"s{place}", "b", until=np.inf)[1].set()


def test_one_of_two_questions_at_once_is_answered_or_can_be_asked_again():
    # Each party recorded another of them first, and none of the two was ever answered again.
    found = []

    def ask(joint, sql):
        try:
            found.append(joint.ask(sql).withheld)
        except RefusedError as error:
            found.append(error.code)

    for _ in range(3):
        with here([FRAME] * 3, **AGREED) as joint:
            statements = [SQL, SQL.replace("icd", "ward")]
            threads = [threading.Thread(target=ask, args=(joint, sql)) for sql in statements]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)  # of a time limit of 60 seconds
                assert not thread.is_alive()
            for sql in statements:
                ask(joint, sql)
        *first, again, other = found
        assert set(first) <= {0, 1, "joint-busy", "joint-history"}
        assert [str(again), str(other)].count("joint-history") == 1
        found.clear()


def test_who_takes_no_part_is_not_waited_for(monkeypatch):
    # The others waited for its link until the time limit.
    recorded = Party._record

    def refuse(party, *words):
        if party._name == "owner2":
            raise EngineError("the disk is full", code="no-room")
        recorded(party, *words)

    monkeypatch.setattr(Party, "_record", refuse)
    with here([FRAME] * 3, **AGREED) as joint:
        began = time.monotonic()
        with pytest.raises(EngineError) as caught:
            joint.ask(SQL)
        assert caught.value.code == "no-room"
        assert time.monotonic() - began < 20


@pytest.mark.parametrize("shared", [0, 1])
def test_contributors_whom_two_owners_have_are_not_counted_twice(shared):
    # Two records of one person at two owners are two contributors to every rule.
    frames = [FRAME.assign(who=[f"{place}{n}" for n in (0, 1, 2, 3, 3)]) for place in "ab"]
    frames[1].loc[0, "who"] = "a0" if shared else "b0"
    columns = {"owner1": ["who"], "owner2": ["who"]}
    agreed = {"common": {"protocol": "alignment", "columns": columns}}
    with here(frames, unit="who", computations=agreed, **AGREED) as joint:
        assert joint.align()["common"].tolist() == [shared]
        if not shared:
            assert joint.ask(SQL).withheld == 1
            return
        with pytest.raises(RefusedError) as caught:
            joint.ask(SQL)
        assert caught.value.code == "shared-contributors"

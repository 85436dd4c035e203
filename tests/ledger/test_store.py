"""The ledger: one transaction before any answer, on SQLite and on PostgreSQL."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import EngineError, InputError
from discreet.ledger import Charge, Draft, open_ledger
from discreet.ledger.entry import ExhaustedError, StaleError
from discreet.ledger.verification import hash_again


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger(request, tmp_path):
    if request.param == "sqlite":
        place = str(tmp_path / "ledger.db")
    else:
        place = request.getfixturevalue("postgres_database")
    with open_ledger(place) as opened:
        opened.place = place
        yield opened


def draft(question="q", user="ana", kind="noisy", answer=b"rows", dataset="people"):
    return Draft(dataset, user, kind, question, f"digest of {question}", "policy", {"n": 1}, answer)


def charge(scope, cost, limit):
    return Charge(scope, {"unit": cost}, lambda total: total["unit"] <= limit)


def test_same_question_by_the_same_user_is_recorded_once(ledger):
    first, new = ledger.record(draft(answer=b"first"), [charge("dataset", 1, 10)])
    again, repeated = ledger.record(draft(answer=b"second"), [charge("dataset", 1, 10)])
    assert (new, repeated) == (True, False)
    assert again.answer == b"first"
    assert again.number == first.number
    assert ledger.spent("people", "dataset") == {"unit": 1}


def test_another_user_policy_or_dataset_is_another_answer(ledger):
    numbers = {
        ledger.record(draft())[0].number,
        ledger.record(draft(user="bob"))[0].number,
        ledger.record(draft(dataset="firms"))[0].number,
    }
    assert len(numbers) == 3
    assert ledger.find("people", "ana", "digest of q", "other policy") is None


def test_refusals_are_recorded_each_time_and_are_no_history(ledger):
    for _ in range(2):
        ledger.record(draft(kind="refused"))
    assert [entry.kind for entry in ledger.entries()] == ["refused", "refused"]
    assert ledger.history("people") == []
    assert ledger.last("people", "noisy") == 0


def test_exhausted_budget_records_nothing(ledger):
    ledger.record(draft("a"), [charge("user:ana", 6, 10), charge("dataset", 6, 100)])
    with pytest.raises(ExhaustedError):
        ledger.record(draft("b"), [charge("dataset", 6, 100), charge("user:ana", 6, 10)])
    assert ledger.spent("people", "dataset") == {"unit": 6}
    assert ledger.find("people", "ana", "digest of b", "policy") is None
    assert ledger.verify().intact


def test_decision_overtaken_by_others_is_stale(ledger):
    ledger.record(draft("a"), after=0)
    with pytest.raises(StaleError):
        ledger.record(draft("b"), after=0)
    ledger.record(draft("b"), after=1)
    ledger.record(draft("c", dataset="firms"), after=0)


def test_budget_is_never_overspent_by_32_clients(ledger):
    places = [open_ledger(ledger.place) for _ in range(4)]
    refused = []

    def client(number):
        for turn in range(5):
            try:
                places[number % 4].record(
                    draft(f"q{number}-{turn}", user=f"u{number}"), [charge("dataset", 1, 100)]
                )
            except ExhaustedError:
                refused.append(number)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place in places:
        place.close()
    assert ledger.spent("people", "dataset") == {"unit": 100}
    assert len(refused) == 160 - 100
    assert ledger.verify().intact
    assert ledger.verify().entries == 100


def test_entries_survive_reopening(ledger):
    ledger.record(draft("a"))
    with open_ledger(ledger.place) as again:
        assert [entry.question for entry in again.entries()] == ["a"]
        assert again.record(draft("b"))[0].number == 2


def test_secret_is_kept_for_ever(ledger):
    assert ledger.secret("hull", b"first") == b"first"
    assert ledger.secret("hull", b"second") == b"first"
    assert ledger.secret("other", b"third") == b"third"


@pytest.mark.parametrize(
    ("tampering", "reason"),
    [
        ("UPDATE discreet_entries SET answer = X'00' WHERE number = 2", "entry 2 was changed"),
        ("UPDATE discreet_entries SET asker = 'eve' WHERE number = 3", "entry 3 was changed"),
        ("DELETE FROM discreet_entries WHERE number = 2", "entry 2 is missing"),
        ("DELETE FROM discreet_entries WHERE number = 4", "the head names entry 4"),
        ("UPDATE discreet_balances SET events = '{}'", "a budget is not the sum"),
    ],
)
def test_tampering_shows(tmp_path, tampering, reason):
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        for name in "abcd":
            ledger.record(draft(name), [charge("dataset", 1, 10)])
    with sqlite3.connect(path) as raw:
        raw.execute(tampering)
    raw.close()
    with open_ledger(path, read_only=True) as ledger:
        verification = ledger.verify()
    assert not verification.intact
    assert reason in verification.reason
    with pytest.raises(EngineError, match=reason) as failure:
        open_ledger(path)
    assert failure.value.code == "ledger-not-whole"


def test_cut_off_end_shows_with_a_noted_head(tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        heads = [ledger.record(draft(name))[0].hash for name in "abc"]
    with sqlite3.connect(path) as raw:
        raw.execute("DELETE FROM discreet_entries WHERE number = 3")
        raw.execute("UPDATE discreet_head SET number = 2, hash = ?", (heads[1],))
    raw.close()
    with open_ledger(path) as ledger:
        assert ledger.verify().intact
        assert ledger.verify(head=heads[1]).intact
        assert not ledger.verify(head=heads[2]).intact


def test_export_holds_every_entry_and_no_secret(ledger, tmp_path):
    ledger.record(draft("a"))
    ledger.secret("hull", b"very secret key")
    lines = ledger.export(tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["question"] for line in lines] == ["a"]
    assert "very secret key" not in "".join(lines)


def test_wrong_places_are_explained(tmp_path):
    with pytest.raises(InputError, match="there is no ledger at mysql"):
        open_ledger("mysql://x")
    broken = tmp_path / "broken.db"
    broken.write_text("this is not a database at all, but long enough to look like one" * 20)
    with pytest.raises(EngineError, match="cannot be opened"):
        open_ledger(broken)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(1, 5))))
def test_spent_is_the_sum_of_first_answers_and_within_the_limit(asked):
    with open_ledger() as ledger:
        expected: dict[str, int] = {}
        seen = set()
        for user, question, cost in asked:
            known = (user, question) in seen
            fits = expected.get(user, 0) + cost <= 10
            try:
                _, new = ledger.record(
                    draft(question, user=user), [charge(f"user:{user}", cost, 10)]
                )
            except ExhaustedError:
                assert not known
                assert not fits
                continue
            assert new is (not known)
            if new:
                assert fits
                seen.add((user, question))
                expected[user] = expected.get(user, 0) + cost
        for user, total in expected.items():
            assert ledger.spent("people", f"user:{user}") == {"unit": total}
        assert ledger.verify().intact


@pytest.mark.parametrize(
    ("tampering", "reason"),
    [
        ("UPDATE discreet_entries SET answer = X'00' WHERE number = 7", "entry 7 was changed"),
        ("UPDATE discreet_entries SET question = 'x' WHERE number = 7", "entry 7 was changed"),
        ("UPDATE discreet_entries SET details = '{' WHERE number = 7", "entry 7 was changed"),
        ("UPDATE discreet_entries SET hash = previous WHERE number = 7", "entry 7 was changed"),
        (
            "UPDATE discreet_entries SET number = 2000000 WHERE number = 7",
            "entry 7 is missing",
        ),
    ],
)
def test_changes_before_the_checkpoint_show_at_opening(tmp_path, tampering, reason):
    path = tmp_path / "ledger.db"
    with open_ledger(path, checkpoint_every=10) as ledger:
        for number in range(40):
            ledger.record(draft(f"q{number}"), [charge("dataset", 1, 100)])
    with sqlite3.connect(path) as raw:
        kept = raw.execute("SELECT content FROM discreet_checkpoint").fetchone()[0]
        raw.execute(tampering)
    raw.close()
    assert json.loads(kept)[0] == 40
    with pytest.raises(EngineError, match=reason) as failure:
        open_ledger(path)
    assert failure.value.code == "ledger-not-whole"


def test_chain_rewritten_before_the_checkpoint_shows_at_opening(tmp_path):
    # Whoever writes the file can hash anew, but has to meet the hash of the checkpoint.
    path = tmp_path / "ledger.db"
    with open_ledger(path, checkpoint_every=10) as ledger:
        for number in range(10):
            ledger.record(draft(f"q{number}"))
        entries = list(ledger.entries())
    before = entries[3].previous
    with sqlite3.connect(path) as raw:
        for entry in entries[3:]:
            question = "another" if entry.number == 4 else entry.question
            made = dataclasses.replace(entry, question=question, previous=before)
            before = made.expected_hash()
            raw.execute(
                "UPDATE discreet_entries SET question = ?, previous = ?, hash = ? WHERE number = ?",
                (question, made.previous, before, entry.number),
            )
        raw.execute("UPDATE discreet_head SET hash = ?", (before,))
    raw.close()
    with pytest.raises(EngineError, match="entry 10 was changed"):
        open_ledger(path)


def test_stretches_of_a_large_ledger_are_hashed_again(tmp_path):
    with open_ledger(tmp_path / "ledger.db") as ledger:
        entries = [ledger.record(draft(f"q{number}"))[0] for number in range(9)]
        with ledger.transaction(write=True) as cursor:
            assert hash_again(cursor, 9, entries[-1].hash) == ""
            assert {hash_again(cursor, 9, entries[-1].hash, most=3) for _ in range(20)} == {""}
            cursor.execute("UPDATE discreet_entries SET question = 'x' WHERE number = 5")
            # Three of nine hold the fifth in three of seven stretches: 200 draws miss it with (4/7)^200.
            found = {hash_again(cursor, 9, entries[-1].hash, most=3) for _ in range(200)}
            assert found == {"", "entry 5 was changed"}
            cursor.execute("UPDATE discreet_entries SET question = 'q4' WHERE number = 5")

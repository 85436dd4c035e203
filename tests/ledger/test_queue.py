"""Answers are recorded many at a time, each as if alone, and none before it is durable."""

from __future__ import annotations

import threading

import pytest

from discreet.errors import EngineError
from discreet.ledger import Charge, Draft, open_ledger
from discreet.ledger.entry import ExhaustedError, Seen, StaleError


def draft(number, kind="exact"):
    return Draft("people", "ana", kind, f"q{number}", f"digest {number}", "policy")


def charge(cost, limit):
    return Charge("dataset", {"unit": cost}, lambda total: total["unit"] <= limit)


def counting(ledger):
    """Count the transactions that write."""
    begun, plain = [], ledger.transaction

    def transaction(*, write):
        begun.append(write)
        return plain(write=write)

    ledger.transaction = transaction
    return begun


def test_what_waits_is_recorded_in_one_transaction_and_in_order(tmp_path):
    with open_ledger(tmp_path / "ledger.db") as ledger:
        begun = counting(ledger)
        seen = Seen()
        tickets = [ledger.submit(draft(n), after=seen) for n in range(5)]
        # The last one waits for all before it.
        assert tickets[-1].result()[0].number == 5
        assert begun == [True]
        assert [ticket.result()[0].number for ticket in tickets] == [1, 2, 3, 4, 5]
        assert begun == [True]
        assert seen.number == 5
        assert ledger.verify().intact


def test_one_that_is_refused_leaves_the_others_alone(tmp_path):
    with open_ledger(tmp_path / "ledger.db") as ledger:
        tickets = [
            ledger.submit(draft(1, "noisy"), [charge(2, 5)]),
            ledger.submit(draft(2, "noisy"), [charge(9, 5)]),
            ledger.submit(draft(3, "noisy"), [charge(3, 5)]),
            ledger.submit(draft(1, "noisy"), [charge(1, 5)]),
        ]
        assert tickets[0].result()[1]
        with pytest.raises(ExhaustedError):
            tickets[1].result()
        assert tickets[2].result()[1]
        assert tickets[3].result() == (tickets[0].result()[0], False)
        assert ledger.spent("people", "dataset") == {"unit": 5}
        assert ledger.verify().intact


def test_a_failed_transaction_fails_all_and_their_decisions_are_lost(tmp_path):
    with open_ledger(tmp_path / "ledger.db") as ledger:
        seen = Seen()
        wrong = Charge("dataset", {"unit": 1}, lambda _: 1 / 0)
        first = ledger.submit(draft(1), after=seen)
        second = ledger.submit(draft(2), [wrong], after=seen)
        with pytest.raises(ZeroDivisionError):
            first.result()
        for ticket in (first, second):
            with pytest.raises(EngineError, match="ledger failed"):
                ticket.result()
        assert seen.lost
        assert list(ledger.entries()) == []
        # Whatever else was decided with the same knowledge must be decided again.
        with pytest.raises(StaleError):
            ledger.record(draft(3), after=seen)
        assert ledger.record(draft(3), after=Seen())[1]


def test_answers_of_others_make_a_decision_stale_answers_of_another_kind_do_not(tmp_path):
    place = tmp_path / "ledger.db"
    with open_ledger(place) as ledger, open_ledger(place) as other:
        seen = Seen()
        assert ledger.record(draft(1), after=seen)[1]
        other.record(draft(2, "noisy"))
        assert ledger.record(draft(3), after=seen)[1]
        other.record(draft(4))
        with pytest.raises(StaleError):
            ledger.record(draft(5), after=seen)


def test_many_threads_share_transactions(tmp_path):
    with open_ledger(tmp_path / "ledger.db") as ledger:
        begun = counting(ledger)
        start = threading.Barrier(16)

        def ask(number):
            start.wait()
            for n in range(20):
                ledger.record(draft(100 * number + n, "noisy"), [charge(1, 1000)])

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.spent("people", "dataset") == {"unit": 320}
        assert sum(begun) <= 320
        found = ledger.verify()
        assert found.intact
        assert found.entries == 320

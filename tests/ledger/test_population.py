"""One population, one history: records are known again by name, source, ledger and state."""

from __future__ import annotations

import json
import shutil
import sqlite3
import stat

import pandas as pd
import pytest

import discreet as dc
from discreet.data.engines import connect
from discreet.errors import EngineError, InputError, RefusedError
from discreet.ledger import open_ledger
from discreet.ledger.marks import read_mark
from discreet.ledger.population import open_population
from discreet.ledger.witness import FileWitness

ROLES = {"id": "identifier", "sector": "quasi", "salary": "confidential"}
EXACT = dc.Restriction(k=3)
NOISY = dc.Perturbation(epsilon=2.0, per_query=0.1, bounds={"salary": (0, 100)})
SUM = "SELECT SUM(salary) FROM people"


def frame(size=12):
    return pd.DataFrame(
        {"id": range(size), "sector": ["IT", "HC"] * (size // 2), "salary": range(10, 10 + size)}
    )


def people(rows=None, name="people"):
    return dc.read(frame() if rows is None else rows, name=name, roles=ROLES, unit="id")


@pytest.fixture
def file(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    frame().to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def opened(source, ledger, *, guard=EXACT, name="people", **options):
    data = dc.read(source, name=name, roles=ROLES, unit="id")
    return dc.Gateway(data, guard=guard, ledger=ledger, **options)


def refusal(*arguments, **options):
    with pytest.raises(RefusedError) as failure:
        opened(*arguments, **options)
    return failure.value


def test_the_same_records_under_another_name_are_refused(tmp_path):
    with opened(frame(), tmp_path / "l.db") as gate:
        gate.ask(SUM)
    shuffled = frame().sample(frac=1, random_state=1)
    error = refusal(shuffled, tmp_path / "l.db", name="staff")
    assert error.code == "known-by-another-name"
    assert "name='people'" in error.hint


@pytest.mark.parametrize(
    "view",
    [
        lambda rows: rows.drop(columns="id"),
        lambda rows: rows.rename(columns={"sector": "branch"}),
        lambda rows: rows.rename(columns={"salary": "SALARY"}),
        lambda rows: rows[["salary"]].assign(half=1),
    ],
    ids=["without an identifier", "another column's name", "another case", "the values alone"],
)
def test_a_view_of_the_same_records_under_another_name_is_refused(tmp_path, view):
    with opened(frame(), tmp_path / "l.db") as gate:
        gate.ask(SUM)
    rows = view(frame())
    roles = {"id": "identifier", "salary": "confidential", "SALARY": "confidential"}
    data = dc.read(
        rows, name="staff", roles={c: roles[c] for c in rows if c in roles}, rest="quasi"
    )
    with pytest.raises(RefusedError) as failure:
        dc.Gateway(data, guard=EXACT, ledger=tmp_path / "l.db")
    assert failure.value.code == "known-by-another-name"


def test_ledgers_from_before_values_were_fingerprinted_learn_them(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("discreet.ledger.population.fingerprint_values", lambda *a, **k: [])
        with opened(frame(), tmp_path / "l.db") as gate:
            gate.ask(SUM)
    with opened(frame(), tmp_path / "l.db"):
        pass  # the same records, opened again
    data = dc.read(frame()[["salary"]], name="staff", roles={"salary": "confidential"})
    with pytest.raises(RefusedError, match="'people'"):
        dc.Gateway(data, guard=EXACT, ledger=tmp_path / "l.db")


def test_the_same_file_under_another_name_is_refused_though_it_changed(file, tmp_path):
    with opened(file, tmp_path / "l.db") as gate:
        gate.ask(SUM)
    frame(14).to_csv(file, index=False)
    assert refusal(file, tmp_path / "l.db", name="staff").code == "known-by-another-name"


def test_other_records_under_another_name_have_their_own_history(tmp_path):
    for name, rows in {"people": frame(), "firms": frame(20)}.items():
        with opened(rows, tmp_path / "l.db", name=name) as gate:
            assert gate.ask(f"SELECT SUM(salary) FROM {name}").kind == "exact"


def test_two_gateways_share_one_history(tmp_path):
    """Under one name in one ledger, what one answers counts for the other."""
    with open_ledger(tmp_path / "l.db") as ledger:
        one, two = (opened(frame(), ledger) for _ in range(2))
        assert one.ask(SUM).kind == "exact"
        assert two.ask(f"{SUM} WHERE salary > 0").kind == "refused"
        assert {entry.details.get("snapshot") for entry in ledger.history("people")} == {
            ledger.snapshots()[0].identity
        }
        one.close()
        two.close()


@pytest.mark.parametrize("guard", [EXACT, dc.Camouflage(bound=0.3), NOISY], ids=lambda g: g.name)
def test_changed_records_are_refused_with_what_to_write(tmp_path, guard):
    with opened(frame(), tmp_path / "l.db", guard=guard) as gate:
        assert not gate.ask(SUM).refused
    changed = frame()
    changed.loc[3, "salary"] += 1
    for rows in (frame(14), frame().drop(index=[0]), changed, pd.concat([frame(), frame()[:1]])):
        error = refusal(rows, tmp_path / "l.db", guard=guard)
        assert error.code == "changed-data"
        assert 'snapshot="2"' in error.hint
    with opened(frame().sample(frac=1, random_state=2), tmp_path / "l.db", guard=guard) as gate:
        assert gate.ask(SUM).repeated


def test_records_may_change_before_anything_was_answered(tmp_path):
    opened(frame(), tmp_path / "l.db").close()
    with opened(frame(14), tmp_path / "l.db") as gate:
        assert gate.ask(SUM).kind == "exact"
    assert refusal(frame(), tmp_path / "l.db").code == "changed-data"


def test_a_gateway_that_stayed_open_does_not_answer_about_records_that_changed(tmp_path):
    with opened(frame(), tmp_path / "l.db") as older, opened(frame(14), tmp_path / "l.db") as newer:
        assert newer.ask(SUM).kind == "exact"
        answer = older.ask(SUM, user="eve")
        assert answer.refused
        assert answer.code == "changed-data"


@pytest.mark.parametrize("guard", [EXACT, NOISY], ids=lambda g: g.name)
def test_a_file_that_is_written_while_a_gateway_reads_it_is_not_answered_from(tmp_path, guard):
    path = tmp_path / "people.parquet"
    frame().to_parquet(path)
    with opened(path, tmp_path / "l.db", guard=guard) as gate:
        assert not gate.ask(SUM).refused
        frame(14).to_parquet(path)
        assert gate.ask("SELECT COUNT(*) FROM people").code == "changed-data"
        assert gate.ask(SUM).repeated  # told already, from the ledger


def test_a_new_snapshot_is_answered_with_noise_from_the_same_budget(tmp_path):
    ledger = tmp_path / "l.db"
    with opened(frame(), ledger, guard=NOISY) as gate:
        first = gate.ask(SUM)
    with opened(frame(14), ledger, guard=NOISY, snapshot="2026-11") as gate:
        second = gate.ask(SUM)
        assert not second.repeated
        assert second.left["dataset"] == pytest.approx(first.left["dataset"] - 0.1)
        assert gate.ask(SUM).repeated
    with opened(frame(), ledger, guard=NOISY, snapshot="1") as gate:
        assert gate.ask(SUM).repeated
    assert refusal(frame(16), ledger, guard=NOISY, snapshot="2026-11").code == "changed-data"
    assert refusal(frame(), ledger, guard=NOISY, snapshot="2026-12").code == "known-snapshot"


def test_a_new_snapshot_is_not_answered_exactly_beside_exact_answers(tmp_path):
    with opened(frame(), tmp_path / "l.db") as gate:
        gate.ask(SUM)
    error = refusal(frame(14), tmp_path / "l.db", snapshot="2")
    assert error.code == "changed-data"
    assert "Perturbation" in error.hint
    with opened(frame(14), tmp_path / "l.db", guard=NOISY, snapshot="2") as gate:
        assert gate.ask(SUM).kind == "noisy"


def test_a_column_may_be_added_and_none_may_be_missing(tmp_path):
    with opened(frame(), tmp_path / "l.db") as gate:
        gate.ask(SUM)
    more = frame().assign(age=30)
    with opened(more, tmp_path / "l.db") as gate:
        assert gate.ask(SUM).repeated
    without = people().select(["id", "salary"])
    with open_ledger(tmp_path / "l.db") as ledger, pytest.raises(RefusedError) as failure:
        open_population(without, ledger, answers={"exact"})
    assert failure.value.code == "changed-data"
    assert "age, sector" in failure.value.hint
    with open_ledger(tmp_path / "l.db") as ledger:
        assert len({s.identity for s in ledger.snapshots()}) == 1


def test_the_ledger_keeps_no_fingerprint_that_a_guess_could_be_compared_with(tmp_path):
    found = []
    for name in ("a.db", "b.db"):
        with open_ledger(tmp_path / name) as ledger:
            open_population(people(), ledger, answers={"exact"})
            (snapshot,) = ledger.snapshots()
            found.append(snapshot.fingerprint)
    assert found[0] != found[1]


# -- marks ----------------------------------------------------------------------------------------
def test_a_second_ledger_is_noticed_beside_the_file(file, tmp_path):
    with opened(file, tmp_path / "one.db") as gate:
        gate.ask(SUM)
        assert gate.notices == ()
    error = refusal(file, tmp_path / "two.db")
    assert error.code == "another-ledger"
    assert "people.csv.ledger-mark" in error.hint
    assert refusal(file, ":memory:").code == "another-ledger"
    with opened(file, tmp_path / "one.db") as gate:
        assert gate.ask(SUM).repeated
    assert sorted(path.name for path in file.parent.iterdir()) == [
        "people.csv", "people.csv.ledger-mark",
    ]  # fmt: skip


def test_a_mark_names_the_ledger_and_nothing_else(file, tmp_path):
    opened(file, tmp_path / "one.db").close()
    with open_ledger(tmp_path / "one.db") as ledger:
        mark = json.loads((file.parent / "people.csv.ledger-mark").read_text())
        assert mark["ledger"] == ledger.identity() == read_mark(dc.read(file).origin)
        assert set(mark) == {"ledger", "note"}


def test_a_damaged_mark_is_no_permission(file, tmp_path):
    opened(file, tmp_path / "one.db").close()
    (file.parent / "people.csv.ledger-mark").write_text("{}")
    assert refusal(file, tmp_path / "one.db").code == "another-ledger"


def test_where_no_mark_can_be_kept_opening_and_verdict_say_so(file, tmp_path, monkeypatch):
    def fail(*_):
        raise PermissionError

    monkeypatch.setattr("discreet.ledger.marks.os.link", fail)
    for source in (file, frame(14)):
        ledger = tmp_path / f"{type(source).__name__}.db"
        with opened(source, ledger) as gate:
            assert any("no mark" in notice for notice in gate.notices)
            assert any("no mark" in note for note in gate.ledger.verify().notes)
    assert [path.name for path in file.parent.iterdir()] == ["people.csv"]


@pytest.mark.postgres
def test_a_second_ledger_is_noticed_beside_the_table(postgres_url, tmp_path):
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for statement in (
            "CREATE SCHEMA marked",
            "CREATE TABLE marked.people AS SELECT i AS id, 'IT' AS sector, i AS salary "
            "FROM generate_series(1, 12) AS i",
            "CREATE ROLE reader LOGIN",
            "GRANT USAGE ON SCHEMA marked TO reader",
            "GRANT SELECT ON ALL TABLES IN SCHEMA marked TO reader",
            "ALTER DEFAULT PRIVILEGES IN SCHEMA marked GRANT SELECT ON TABLES TO reader",
        ):
            connection.execute(statement)

    def opening(url, ledger):
        with connect(url) as engine:
            table = dc.read(f"{url}#marked.people", engine=engine, roles=ROLES, unit="id")
            with open_ledger(tmp_path / ledger) as book:
                return open_population(table, book, answers={"exact"})

    reader = postgres_url.replace("//postgres@", "//reader@")
    assert any("no mark" in notice for notice in opening(reader, "reader.db").notices)
    for _ in range(2):
        assert opening(postgres_url, "one.db").notices == ()
    assert opening(reader, "one.db").notices == ()
    with pytest.raises(RefusedError) as failure:
        opening(postgres_url, "two.db")
    assert failure.value.code == "another-ledger"
    assert "discreet_marks" in failure.value.hint


# -- heads ----------------------------------------------------------------------------------------
def test_an_older_copy_is_noticed_where_the_head_was_noted(tmp_path):
    ledger, head = tmp_path / "l.db", tmp_path / "head.json"
    with opened(frame(), ledger, head=head) as gate:
        gate.ask(SUM)
    shutil.copyfile(ledger, tmp_path / "older.db")
    with opened(frame(), ledger, head=head) as gate:
        gate.ask(f"{SUM} WHERE sector = 'IT'")
    shutil.copyfile(tmp_path / "older.db", ledger)
    with pytest.raises(EngineError) as failure:
        opened(frame(), ledger, head=head)
    assert failure.value.code == "ledger-restored"


def test_a_new_ledger_is_noticed_where_the_head_of_another_was_noted(tmp_path):
    opened(frame(), tmp_path / "l.db", head=tmp_path / "head.json").close()
    with pytest.raises(EngineError) as failure:
        opened(frame(), tmp_path / "new.db", head=tmp_path / "head.json")
    assert failure.value.code == "ledger-restored"


def test_a_head_is_noted_now_and_then_and_never_before_it_is_durable(tmp_path, monkeypatch):
    noted = []
    monkeypatch.setattr(FileWitness, "note", lambda _, head: noted.append(head[1]))
    with opened(frame(), tmp_path / "l.db", guard=NOISY, head=tmp_path / "head.json") as gate:
        for limit in range(5):
            gate.ask(f"SELECT COUNT(*) FROM people WHERE salary > {limit}")
        last = gate.ledger.verify().entries
    assert noted[0] == 0
    assert noted[-1] == last
    assert noted == sorted(noted)


def test_a_program_may_note_the_head(tmp_path):
    program = tmp_path / "note.sh"
    program.write_text(
        '#!/bin/sh\nif [ "$1" = note ]; then cat > "$0.head"\n'
        'elif [ -f "$0.head" ]; then cat "$0.head"; fi\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    place = f"command:{program}"
    with opened(frame(), tmp_path / "l.db", head=place) as gate:
        gate.ask(SUM)
    opened(frame(), tmp_path / "l.db", head=place).close()
    with pytest.raises(EngineError, match="older copy"):
        opened(frame(), tmp_path / "new.db", head=place)
    with pytest.raises(EngineError, match="failed"):
        opened(frame(), tmp_path / "l.db", head="command:/nowhere/at-all")


@pytest.mark.postgres
def test_another_database_may_note_the_head(postgres_database, tmp_path):
    with opened(frame(), tmp_path / "l.db", head=postgres_database) as gate:
        gate.ask(SUM)
    opened(frame(), tmp_path / "l.db", head=postgres_database).close()
    with pytest.raises(EngineError, match="older copy"):
        opened(frame(), tmp_path / "new.db", head=postgres_database)


def test_what_is_no_head_is_refused(tmp_path):
    (tmp_path / "head.json").write_text("hello")
    with pytest.raises(InputError, match="not a head"):
        opened(frame(), tmp_path / "l.db", head=tmp_path / "head.json")


# -- checkpoints ----------------------------------------------------------------------------------
def grown(path, entries=2_500):
    from discreet.ledger import Charge, Draft

    def draft(number):
        return Draft("people", "ana", "noisy", f"q{number}", f"d{number}", "p", {}, b"rows")

    with open_ledger(path) as ledger:
        paid = [Charge("dataset", {"laplace 1.0": 1}, lambda _: True)]
        tickets = [ledger.submit(draft(number), paid) for number in range(entries)]
        tickets[-1].settle()


def test_opening_verifies_from_the_last_checkpoint_on(tmp_path, monkeypatch):
    from discreet.ledger import verification

    grown(tmp_path / "l.db")
    counted = []
    plain = verification.Checkpoint.add_row
    monkeypatch.setattr(
        verification.Checkpoint,
        "add_row",
        lambda self, row: counted.append(row) or plain(self, row),
    )
    open_ledger(tmp_path / "l.db").close()
    assert len(counted) < 1_000  # whoever recorded the others kept a checkpoint
    with sqlite3.connect(tmp_path / "l.db") as raw:
        raw.execute("DELETE FROM discreet_checkpoint")
    raw.close()
    counted.clear()
    for _ in range(2):
        open_ledger(tmp_path / "l.db").close()
        assert len(counted) == 2_500
    with open_ledger(tmp_path / "l.db") as ledger:
        assert ledger.verify().intact
    assert len(counted) == 5_000


def test_two_that_record_in_turn_leave_the_rest_to_the_next_opening(tmp_path):
    from discreet.ledger import Draft

    with open_ledger(tmp_path / "l.db") as one, open_ledger(tmp_path / "l.db") as two:
        for number in range(6):
            ledger = (one, two)[number % 2]
            ledger.record(Draft("people", "ana", "noisy", "q", f"d{number}", "p"))
    with open_ledger(tmp_path / "l.db") as ledger:
        assert ledger.verify().intact


@pytest.mark.parametrize(
    "tampering",
    [
        "DELETE FROM discreet_entries WHERE number = 7",
        "UPDATE discreet_entries SET kind = 'refused' WHERE number = 7",
        "UPDATE discreet_entries SET dataset = 'other' WHERE number = 7",
        "UPDATE discreet_balances SET events = '{}'",
        "DELETE FROM discreet_balances",
        "DELETE FROM discreet_entries WHERE number > 2000",
        "UPDATE discreet_head SET number = 2000",
    ],
)
def test_the_verified_part_is_not_shortened_unnoticed(tmp_path, tampering):
    grown(tmp_path / "l.db")
    open_ledger(tmp_path / "l.db").close()
    with sqlite3.connect(tmp_path / "l.db") as raw:
        raw.execute(tampering)
    raw.close()
    with pytest.raises(EngineError) as failure:
        open_ledger(tmp_path / "l.db")
    assert failure.value.code == "ledger-not-whole"


def test_a_checkpoint_that_somebody_wrote_counts_for_nothing(tmp_path):
    grown(tmp_path / "l.db")
    open_ledger(tmp_path / "l.db").close()
    with sqlite3.connect(tmp_path / "l.db") as raw:
        raw.execute("UPDATE discreet_entries SET answer = X'00' WHERE number = 7")
        raw.execute("UPDATE discreet_checkpoint SET content = '[2400' || substr(content, 6)")
    raw.close()
    with pytest.raises(EngineError, match="entry 7 was changed"):
        open_ledger(tmp_path / "l.db")

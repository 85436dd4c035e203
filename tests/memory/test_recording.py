"""Releases are recorded before they appear, judged with earlier ones, signed and proved."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.data.facts import LinearFacts, pack_facts, unpack_facts
from discreet.data.signing import new_signing_key, signed
from discreet.demo import salaries
from discreet.dp.grant import charge
from discreet.ledger.overview import proof_of, releases
from discreet.ledger.recording import Recording
from discreet.verification.folder import verify

RULES = [dc.MinimumFrequency(3)]


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with dc.open_ledger(tmp_path / "ledger.db") as book:
        yield book


def by_sector(people: dc.Dataset | None = None) -> Any:
    return dc.tabulate(people or salaries(), by=["sector"], measure="salary")


def test_a_table_is_recorded_with_its_manifest(tmp_path: Path, ledger: dc.Ledger) -> None:
    folder = by_sector().protect(RULES, ledger=ledger).write(tmp_path / "out", ledger=ledger)
    manifest = json.loads((folder / "manifest.json").read_text())
    (line,) = releases(ledger)[1]
    assert manifest["entry"]["number"] == line[0]
    assert line[-1] == "published"
    assert verify(folder).holds
    assert ledger.verify().intact


def test_an_entry_without_files_says_so(
    tmp_path: Path, ledger: dc.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: Recording, folder: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Recording, "published", killed)
    release = by_sector().protect(RULES, ledger=ledger)
    with pytest.raises(KeyboardInterrupt):
        release.write(tmp_path / "out", ledger=ledger)
    assert releases(ledger)[1][0][-1] == "recorded, perhaps not published"


def test_facts_hold_no_withheld_value(tmp_path: Path, ledger: dc.Ledger) -> None:
    table = dc.tabulate(salaries(), by=["sector", "region"], measure="salary")
    release = table.protect(RULES, ledger=ledger)
    release.write(tmp_path / "out", ledger=ledger)
    entry = ledger.history("people", kind="release")[0]
    (fact,) = unpack_facts(entry.answer)
    assert isinstance(fact, LinearFacts)
    withheld = release.protected.withheld
    assert np.isnan(fact.lower[withheld]).all()
    values = {f"{value:.0f}" for value in release.table.value[withheld]}
    values -= {f"{value:.0f}" for value in release.table.value[~withheld]}
    for file in [*(tmp_path / "out").iterdir()]:
        if file.suffix in (".json", ".csv", ".html"):
            assert not [value for value in values if value in file.read_text()], file


def test_what_was_released_meanwhile_is_judged_again(tmp_path: Path, ledger: dc.Ledger) -> None:
    people = salaries()
    first = by_sector(people).protect(RULES, ledger=ledger)
    # Alone it withholds the total of Fin, which the other table then tells.
    second = dc.tabulate(people, by=["sector", "region"], measure="salary").protect(
        RULES, ledger=ledger
    )
    first.write(tmp_path / "one", ledger=ledger)
    with pytest.raises(dc.RefusedError, match="tells too much") as found:
        second.write(tmp_path / "two", ledger=ledger)
    assert found.value.code == "unsafe-together"
    assert not (tmp_path / "two").exists()
    assert len(releases(ledger)[1]) == 1


def test_a_clash_names_the_earlier_release(tmp_path: Path, ledger: dc.Ledger) -> None:
    by_sector().protect(RULES, ledger=ledger).write(tmp_path / "one", ledger=ledger)
    table = dc.tabulate(salaries(), by=["sector", "region"], measure="salary")
    with pytest.raises(dc.InfeasibleError, match=r"release \d+ \(salary by sector\)"):
        table.protect(RULES, ledger=ledger)


def test_nothing_shared_gives_the_pattern_without_memory(tmp_path: Path, ledger: dc.Ledger) -> None:
    people = salaries()
    key = tmp_path / "key"
    key.write_text("k" * 40)
    method = dc.Suppression(key=str(key))
    counts = dc.tabulate(people, by=["region"])
    counts.protect(RULES, method, ledger=ledger).write(tmp_path / "one", ledger=ledger)
    table = dc.tabulate(people, by=["sector", "region"], measure="salary")
    alone, together = table.protect(RULES, method), table.protect(RULES, method, ledger=ledger)
    assert alone.cells.equals(together.cells)


def test_a_private_table_is_charged_before_and_never_beyond_the_grant(
    tmp_path: Path, ledger: dc.Ledger
) -> None:
    people = salaries()
    table = dc.tabulate(people, by=["sector"])
    noise = dc.DPTableNoise(epsilon=0.6)
    with pytest.raises(dc.InputError, match="no grant"):
        table.protect(method=noise, ledger=ledger)
    with pytest.raises(dc.RefusedError, match="not charged"):
        table.protect(method=noise).write(tmp_path / "out", ledger=ledger)
    ledger.set_grant("people", dc.Grant(1.0).to_dict())
    release = table.protect(method=noise, ledger=ledger)
    release.write(tmp_path / "out", ledger=ledger)
    assert ledger.spent("people", "dataset") == {dc.pure_event(0.6): 1}
    with pytest.raises(dc.RefusedError, match="budget"):
        table.protect(method=noise, ledger=ledger)
    guard = dc.Perturbation(epsilon=5.0, per_query=0.3, bounds={"salary": (0, 600_000)})
    with dc.Gateway(people, guard=guard, ledger=ledger) as gate:
        first = gate.ask("SELECT COUNT(*) FROM people")
        second = gate.ask("SELECT SUM(salary) FROM people")
    assert (first.kind, second.kind) == ("noisy", "refused")


def test_grants_compose_as_dp_accounting_does(ledger: dc.Ledger) -> None:
    from dp_accounting import NeighboringRelation, RandomizedResponseDpEvent, rdp

    grant = dc.Grant(3.0, 1e-6, "rdp")
    ledger.set_grant("people", grant.to_dict())
    for _ in range(40):
        charge(ledger, "people", {dc.pure_event(0.1): 1}, what="a release")
    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    accountant.compose(RandomizedResponseDpEvent(2 / (1 + np.exp(0.1)), 2), 40)
    wanted = min(accountant.get_epsilon(1e-6), 4.0)
    assert grant.spent(ledger.spent("people", "dataset")) == pytest.approx(wanted)


def test_a_gateway_counts_tables_as_answered(tmp_path: Path, ledger: dc.Ledger) -> None:
    people = salaries()
    by_sector(people).protect(RULES, ledger=ledger).write(tmp_path / "one", ledger=ledger)
    question = "SELECT SUM(salary) FROM people WHERE sector = 'Fin' AND region = 'BCN'"
    more = "SELECT SUM(salary) FROM people WHERE NOT (sector = 'Fin' AND region = 'TGN')"
    with dc.Gateway(people, guard=dc.Restriction(k=2), ledger=ledger) as gate:
        assert gate.ask(question).kind == "refused"  # the sector less the answer is one person
    with dc.Gateway(people, guard=dc.Restriction(k=2)) as gate:
        assert gate.ask(question).kind == "exact"
        assert gate.ask(more).kind == "refused"


def test_a_gateway_refuses_a_withheld_cell_that_follows_from_a_withheld_total(
    tmp_path: Path, ledger: dc.Ledger
) -> None:
    frame = pd.DataFrame(
        {
            "id": range(8),
            "a": list("zyzyyxzx"),
            "c": list("uusstttu"),
            "salary": [18, 3, 11, 10, 17, 19, 19, 7],
        }
    )
    roles = {"id": "identifier", "a": "quasi", "c": "quasi", "salary": "confidential"}
    people = dc.read(frame, roles=roles, unit="id", name="people")
    table = dc.tabulate(people, by=["a", "c"], measure="salary")
    release = table.protect([dc.MinimumFrequency(2), dc.PPercent(10)], ledger=ledger)
    told = release.cells.set_index(["a", "c"])["value"]
    assert told["Total"].isna()[["Total", "s"]].all()
    release.write(tmp_path / "one", ledger=ledger)
    with dc.Gateway(people, guard=dc.Restriction(k=2), ledger=ledger) as gate:
        answer = gate.ask("SELECT c, SUM(salary) AS s FROM people GROUP BY c")
        assert set(answer.frame["c"]) == {"t", "u"}  # as the table tells them
        assert gate.ask("SELECT SUM(salary) FROM people").kind == "refused"


def test_a_table_counts_answers_as_cells(ledger: dc.Ledger) -> None:
    people = salaries()
    with dc.Gateway(people, guard=dc.Restriction(k=2), ledger=ledger) as gate:
        question = "SELECT SUM(salary) FROM people WHERE sector = 'Fin' AND region = 'BCN'"
        assert gate.ask(question).kind == "exact"
    table = by_sector(people)
    release = table.protect([dc.MinimumFrequency(2)], ledger=ledger)
    hidden = release.cells.set_index("sector")["status"]
    assert hidden["Fin"] != "safe"


def changed_people(tmp_path: Path) -> tuple[dc.Dataset, dc.Dataset]:
    frame = salaries().frame
    now = pd.concat([frame, frame.head(1).assign(id=99, salary=123_456)], ignore_index=True)
    roles = {"id": "identifier", "salary": "confidential", "sector": "quasi", "region": "quasi"}
    return (
        dc.read(frame, roles=roles, unit="id", name="people"),
        dc.read(now, roles=roles, unit="id", name="people"),
    )


def test_a_newcomer_is_not_told_by_the_difference(tmp_path: Path, ledger: dc.Ledger) -> None:
    before, after = changed_people(tmp_path)
    by_sector(before).protect(RULES, ledger=ledger).write(tmp_path / "one", ledger=ledger)
    with pytest.raises(dc.RefusedError, match="have changed"):
        by_sector(after).protect(RULES, ledger=ledger)
    later = by_sector(after).protect(RULES, ledger=ledger, snapshot="later")
    told = later.cells.set_index("sector")["value"]
    assert told.isna()["Total"]
    assert told.isna().sum() >= 2
    later.write(tmp_path / "two", ledger=ledger, snapshot="later")
    assert dc.joint_audit(ledger).safe


def test_like_names_a_release_that_is_there(ledger: dc.Ledger) -> None:
    with pytest.raises(dc.InputError, match="holds no table"):
        by_sector().protect(RULES, ledger=ledger, like="2026-Q2")
    with pytest.raises(dc.InputError, match="no ledger is given"):
        by_sector().protect(RULES, like=3)


def patients(seed: int = 1, size: int = 300) -> dc.Dataset:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 24, size).astype(str),
            "zip": rng.integers(0, 6, size).astype(str),
            "ill": rng.choice(list("abcd"), size),
        }
    )
    levels = dc.Hierarchy.from_levels
    return dc.read(
        frame,
        roles={"age": "quasi", "zip": "quasi", "ill": "confidential"},
        hierarchies={
            "age": levels({"young": ["20", "21"], "old": ["22", "23"]}),
            "zip": levels({"low": ["0", "1", "2"], "high": ["3", "4", "5"]}),
        },
        name="patients",
    )


def joint_sizes(first: Any, second: Any) -> Any:
    keys = [*(first.frame[name] for name in first.quasi), *(second.frame[n] for n in second.quasi)]
    return pd.concat(keys, axis=1, keys=range(len(keys))).value_counts()


def test_joint_classes_keep_the_model(tmp_path: Path, ledger: dc.Ledger) -> None:
    people = patients()
    one = dc.Generalization(lowest={"zip": 2}), dc.Generalization(lowest={"age": 2})
    model = [dc.KAnonymity(20)]
    first = dc.anonymize(people, model, method=one[0], ledger=ledger)
    first.write(tmp_path / "one", ledger=ledger)
    alone = dc.anonymize(people, model, method=one[1])
    assert joint_sizes(first, alone).min() < 20
    with pytest.raises(dc.RefusedError, match="joint classes"):
        alone.write(tmp_path / "alone", ledger=ledger)
    second = dc.anonymize(people, model, method=one[1], ledger=ledger)
    second.write(tmp_path / "two", ledger=ledger)
    assert joint_sizes(first, second).min() >= 20
    assert "__earlier_class" not in second.frame.columns
    assert dc.joint_audit(ledger).safe


def test_missing_rows_are_not_told(tmp_path: Path, ledger: dc.Ledger) -> None:
    frame = pd.DataFrame(
        {"age": ["20"] * 6 + ["30"] * 6 + ["90"], "cost": [float(n + 1) for n in range(13)]}
    )
    people = dc.read(
        frame,
        roles={"age": "quasi", "cost": "confidential"},
        hierarchies={"age": dc.Hierarchy.flat(["20", "30", "90"], total="*")},
        name="people",
    )
    total = dc.tabulate(people, by=["age"], measure="cost").protect([dc.MinimumFrequency(3)])
    assert not total.protected.withheld[0]
    total.write(tmp_path / "table", ledger=ledger)
    file = dc.anonymize(people, [dc.KAnonymity(3)], method=dc.Generalization(suppression=0.1))
    assert file.suppressed == 1
    with pytest.raises(dc.RefusedError, match="fewer than 3"):
        file.write(tmp_path / "file", ledger=ledger)


def test_a_ledger_in_memory_leaves_no_mark(tmp_path: Path) -> None:
    salaries().frame.to_csv(tmp_path / "people.csv", index=False)
    roles = {"id": "identifier", "salary": "confidential", "sector": "quasi", "region": "quasi"}
    people = dc.read(tmp_path / "people.csv", roles=roles, unit="id")
    with dc.open_ledger() as book:
        by_sector(people).protect(RULES, ledger=book)
    assert [file.name for file in tmp_path.iterdir()] == ["people.csv"]


def test_masked_files_are_recorded_as_not_covered(tmp_path: Path, ledger: dc.Ledger) -> None:
    masked = dc.mask(salaries(), [dc.TopCoding(["salary"], 200_000)])
    masked.write(tmp_path / "out", ledger=ledger)
    assert any("no joint guarantee" in note for note in dc.joint_audit(ledger).notes)


def test_another_ledger_or_changed_records_are_refused(tmp_path: Path, ledger: dc.Ledger) -> None:
    release = by_sector().protect(RULES, ledger=ledger)
    with (
        dc.open_ledger(tmp_path / "other.db") as other,
        pytest.raises(dc.RefusedError, match="another ledger"),
    ):
        release.write(tmp_path / "out", ledger=other)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("trials", [15, pytest.param(1000, marks=pytest.mark.slow)])
def test_signatures_and_flipped_bytes(tmp_path: Path, ledger: dc.Ledger, trials: int) -> None:
    private, public = new_signing_key(tmp_path / "office.pem")
    _, stranger = new_signing_key(tmp_path / "stranger.pem")
    release = by_sector().protect(RULES, ledger=ledger)
    folder = release.write(tmp_path / "out", ledger=ledger, sign=private)
    assert verify(folder, key=public).holds
    assert not verify(folder, key=stranger).holds
    rng = np.random.default_rng(5)
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    for _ in range(trials):
        file = files[int(rng.integers(len(files)))]
        content = file.read_bytes()
        place = int(rng.integers(len(content)))
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(bytes(flipped))
        with contextlib.suppress(dc.InputError):  # not to be read at all
            assert not verify(folder, key=public).holds, (file.name, place)
        file.write_bytes(content)
    (folder / "manifest.json").unlink()
    assert not verify(folder, key=public).holds


def test_proofs_show_one_entry(ledger: dc.Ledger) -> None:
    for number in range(9):
        ledger.charge("people", {"pure 0.1": 1}, lambda total: True, what=f"release {number}")
    root = proof_of(ledger, 1).root
    for number in range(1, 10):
        proof = proof_of(ledger, number)
        assert proof.holds
        assert proof.root == root
        assert not dataclasses.replace(proof, number=number % 9 + 1).holds
    with pytest.raises(dc.InputError, match="no entry 10"):
        proof_of(ledger, 10)


def test_older_ledgers_are_migrated_and_newer_ones_refused(tmp_path: Path) -> None:
    place = tmp_path / "old.db"
    with dc.open_ledger(place) as book:
        book.charge("people", {"pure 0.1": 1}, lambda total: True, what="x")
        head = book.verify().head
    with sqlite3.connect(place) as raw:  # as version 1 was
        raw.execute("DROP TABLE discreet_format")
        raw.execute("ALTER TABLE discreet_entries DROP COLUMN answer_digest")
    with pytest.raises(dc.InputError, match="older version"):
        dc.open_ledger(place, read_only=True)
    with dc.open_ledger(place) as book:
        assert book.verify(head=head).intact
    with sqlite3.connect(place) as raw:
        raw.execute("UPDATE discreet_format SET version = 99")
    with pytest.raises(dc.EngineError, match="format 99"):
        dc.open_ledger(place)


def test_damaged_facts_are_an_error_of_ours() -> None:
    packed = pack_facts([])
    with pytest.raises(dc.EngineError, match="cannot be read"):
        unpack_facts(packed[:-3])


def test_keys_are_not_overwritten_and_wrong_ones_explained(tmp_path: Path) -> None:
    private, public = new_signing_key(tmp_path / "a.pem")
    assert private.stat().st_mode & 0o077 == 0
    with pytest.raises(dc.InputError, match="exists"):
        new_signing_key(tmp_path / "a.pem")
    with pytest.raises(dc.InputError, match="no key that signs"):
        signed({}, public)
    with pytest.raises(dc.InputError, match="there is no key file"):
        signed({}, tmp_path / "none.pem")


def test_two_processes_release_at_once(tmp_path: Path) -> None:
    code = (
        "import sys, discreet as dc\n"
        "from discreet.demo import salaries\n"
        "t = dc.tabulate(salaries(), by=[sys.argv[2]], measure='salary')\n"
        "r = t.protect([dc.MinimumFrequency(3)], ledger=sys.argv[1] + '/l.db')\n"
        "r.write(sys.argv[1] + '/' + sys.argv[2], ledger=sys.argv[1] + '/l.db')\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name], env=environment)
        for name in ("sector", "region")
    ]
    assert [process.wait(120) for process in running] == [0, 0]
    with dc.open_ledger(tmp_path / "l.db") as book:
        assert book.verify().intact
        assert len(releases(book)[1]) == 2
    shutil.rmtree(tmp_path / "sector")


# -- found from outside ----------------------------------------------------------------------------
def staff(frame: pd.DataFrame) -> dc.Dataset:
    roles = {"id": "identifier", "sector": "quasi", "salary": "confidential"}
    return dc.read(frame, roles=roles, rest="quasi", unit="id", name="staff")


def grown(rows: int = 24) -> pd.DataFrame:
    source = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "id": np.arange(100, 100 + rows),
            "sector": source.choice(["A", "B"], rows),
            "age": source.integers(20, 60, rows),
            "salary": source.integers(20_000, 200_000, rows),
        }
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows,
        lambda rows: rows.assign(age=rows["age"] + 1),
        lambda rows: rows.assign(note=1),
        lambda rows: rows.drop(columns="age"),
    ],
    ids=["as they were", "a year older", "one column more", "one column less"],
)
def test_who_left_is_not_told_whatever_else_of_the_rows_changed(
    tmp_path: Path, ledger: dc.Ledger, change: Any
) -> None:
    rows = grown()
    table = by_sector(staff(rows)).protect(RULES, ledger=ledger, snapshot="2026")
    table.write(tmp_path / "2026", ledger=ledger)
    later = change(rows[rows["id"] != 107])
    table = by_sector(staff(later)).protect(RULES, ledger=ledger, snapshot="2027")
    told = table.cells.set_index("sector")["value"]
    assert told.isna()["Total"]
    assert told.isna()[rows.set_index("id")["sector"][107]]


def test_the_only_one_whose_amount_changed_is_not_told(tmp_path: Path, ledger: dc.Ledger) -> None:
    rows = grown()
    by_sector(staff(rows)).protect(RULES, ledger=ledger, snapshot="2026").write(
        tmp_path / "2026", ledger=ledger
    )
    raised = rows.assign(age=rows["age"] + 1, salary=rows["salary"] + 5_000 * (rows["id"] == 110))
    table = by_sector(staff(raised)).protect(RULES, ledger=ledger, snapshot="2027")
    assert table.cells.set_index("sector")["value"].isna()["Total"]


def test_a_release_judged_with_a_ledger_is_recorded_in_it(
    tmp_path: Path, ledger: dc.Ledger
) -> None:
    with pytest.raises(dc.RefusedError, match="would not remember"):
        by_sector().protect(RULES, ledger=ledger).write(tmp_path / "out")


def test_names_lead_nowhere_and_a_number_is_no_snapshot(tmp_path: Path, ledger: dc.Ledger) -> None:
    for name in ("../people", "/people", "a/b", "x\0y", "", ".."):
        with pytest.raises(dc.InputError, match="cannot be the name"):
            dc.read(grown(), name=name)
    with pytest.raises(dc.InputError, match="named by a text"):
        by_sector().protect(RULES, ledger=ledger, snapshot=2027)  # type: ignore[arg-type]
    assert ledger.verify().intact

"""A ledger file is its owner's; looking at it changes nothing, and not every file is a ledger."""

from __future__ import annotations

import shutil
import sqlite3

import pytest

from discreet.app.cli.commands.ledger import _opened
from discreet.errors import EngineError, InputError
from discreet.ledger.entry import Draft
from discreet.ledger.opening import open_ledger


def mode(path):
    return path.stat().st_mode & 0o777


def state(folder):
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}


def draft(number=1):
    return Draft("people", "ana", "exact", f"SELECT {number}", f"d{number}", "p")


def test_ledger_log_and_export_are_the_owners(tmp_path):
    place = tmp_path / "ledger.db"
    place.touch(mode=0o644)
    place.chmod(0o644)
    with open_ledger(place) as ledger:
        ledger.record(draft())
        assert {p.name: mode(p) for p in tmp_path.iterdir()} == dict.fromkeys(
            ("ledger.db", "ledger.db-wal", "ledger.db-shm"), 0o600
        )
        ledger.export(tmp_path / "export.jsonl")
    assert mode(tmp_path / "export.jsonl") == 0o600


@pytest.mark.parametrize("crashed", [False, True])
def test_verifying_never_writes(tmp_path, crashed):
    (tmp_path / "live").mkdir()
    folder = tmp_path / "looked-at"
    folder.mkdir()
    with open_ledger(tmp_path / "live" / "ledger.db") as ledger:
        ledger.record(draft())
        if crashed:  # the log holds what the file does not
            shutil.copytree(tmp_path / "live", folder, dirs_exist_ok=True)
            (folder / "ledger.db-shm").unlink()
    if not crashed:
        shutil.copytree(tmp_path / "live", folder, dirs_exist_ok=True)
    before = state(folder)
    with _opened(str(folder / "ledger.db")) as book:
        found = book.verify()
        assert len(list(book.entries())) == 1
        with pytest.raises(EngineError):
            book.record(draft(2))
    assert found.intact
    assert state(folder) == before


@pytest.mark.parametrize("kind", ["empty", "text", "foreign", "cut"])
def test_other_files_are_not_intact_ledgers(tmp_path, kind):
    place = tmp_path / "ledger.db"
    if kind == "foreign":
        base = sqlite3.connect(place)
        base.execute("CREATE TABLE t (a)")
        base.commit()
        base.close()
    else:
        words = {"empty": b"", "text": b"hello" * 100, "cut": b"SQLite format 3\0" + b"x" * 50}
        place.write_bytes(words[kind])
    before = state(tmp_path)
    with pytest.raises(InputError) as caught:
        _opened(str(place))
    assert caught.value.code == "not-a-ledger"
    assert state(tmp_path) == before

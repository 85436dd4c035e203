"""A ledger under fire: processes are killed while they release, and nothing is lost or unrecorded."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.ledger.overview import proof_of
from discreet.verification.folder import verify
from tests.memory.killed_work import EPSILON, KINDS, QUESTION, work

#: Processes at work at the same time.
TOGETHER = 2


def under_fire(ledger: str, folder: Path, kills: int) -> None:
    """Let processes release, and kill each at a random moment of its work."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.memory.killed_work"])
    rng = np.random.default_rng(3)
    with dc.open_ledger(ledger) as book:
        book.set_grant("people", dc.Grant(epsilon=1000 * EPSILON).to_dict())
    lasted = []
    for number in range(len(KINDS)):  # each once to the end: also how long it takes
        started = time.monotonic()
        process = context.Process(target=work, args=(ledger, str(folder), number))
        process.start()
        process.join(600)
        assert process.exitcode == 0, KINDS[number]
        lasted.append(time.monotonic() - started)
    each = float(np.median(lasted))  # the first also waits for what is loaded once
    number = len(KINDS)
    while kills > 0:
        running: list[Any] = []
        for _ in range(min(TOGETHER, kills)):
            running.append(context.Process(target=work, args=(ledger, str(folder), number)))
            number += 1
        for process in running:
            process.start()
        for process in running:
            time.sleep(float(rng.uniform(0, each)))
            process.kill()
            process.join(600)
            kills -= 1


def inspect(ledger: str, folder: Path) -> tuple[int, int]:
    """Compare what was published with what the ledger holds; return folders and charges."""
    with dc.open_ledger(ledger) as book:
        found = book.verify()
        assert found.intact
        entries = {entry.number: entry for entry in book.entries()}
        published = [one for one in folder.iterdir() if one.is_dir() and one.name[0] != "."]
        numbers = []
        for place in published:
            manifest = json.loads((place / "manifest.json").read_text())
            entry = entries[manifest["entry"]["number"]]
            assert (entry.kind, entry.hash) == ("release", manifest["entry"]["hash"])
            assert verify(place).holds
            numbers.append(entry.number)
        assert len(set(numbers)) == len(numbers)
        for number in numbers[:3]:
            assert proof_of(book, number).holds
        # An answer that somebody has is an answer that the ledger has.
        if list(folder.glob("*.answer")):
            assert any(entry.question == QUESTION for entry in entries.values())
        charges = sum(entry.kind == "charged" for entry in entries.values())
        spent = book.spent("people", "dataset")
        assert sum(spent.values()) == charges
        noisy = [n for n in published if int(n.name) % len(KINDS) == KINDS.index("noise")]
        assert charges >= len(noisy)
        assert dc.joint_audit(book).safe
    return len(published), charges


@pytest.mark.parametrize("kills", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_lose_nothing(tmp_path: Path, kills: int) -> None:
    ledger = str(tmp_path / "ledger.db")
    folder = tmp_path / "out"
    folder.mkdir()
    under_fire(ledger, folder, kills)
    inspect(ledger, folder)
    for number in range(9000, 9000 + len(KINDS)):  # and it goes on
        work(ledger, str(folder), number)
    assert inspect(ledger, folder)[0] >= 8


@pytest.mark.parametrize("kills", [2, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_lose_nothing_in_postgresql(
    tmp_path: Path, postgres_database: str, kills: int
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    under_fire(postgres_database, folder, kills)
    inspect(postgres_database, folder)
    work(postgres_database, str(folder), 9000)
    assert inspect(postgres_database, folder)[0] >= 5

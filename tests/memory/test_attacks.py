"""Attacks on several publications: they succeed without memory and fail with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.app.demo.chapters import memory
from discreet.attacks._publications import Printed, printed_table
from discreet.microdata.pair import Pair


def test_a_newcomer_over_time() -> None:
    assert memory._over_time(False) == "finds 77,000"
    assert memory._over_time(True) == "finds nothing"


def test_a_table_and_an_answer() -> None:
    assert memory._answers(False) == "finds 150,000"
    assert memory._answers(True) == "finds nothing"


def test_budgets_across_releases() -> None:
    assert memory._spending(False) == "1.5 spent"
    assert memory._spending(True) == "0.75 spent, the second refused"


def patients() -> dc.Dataset:
    """Return sixteen patients, one of each region and age, each with an illness of his own."""
    frame = pd.DataFrame(
        {
            "id": range(16),
            "region": [f"r{n // 4}" for n in range(16)],
            "age": [f"a{n % 4}" for n in range(16)],
            "ill": [f"illness {n}" for n in range(16)],
            "cost": [100 + 7 * n for n in range(16)],
        }
    )
    roles = {
        "id": "identifier", "region": "quasi", "age": "quasi", "ill": "confidential",
        "cost": "confidential",
    }  # fmt: skip
    trees = {
        name: dc.Hierarchy.flat(sorted(set(frame[name])), total="*") for name in ("region", "age")
    }
    return dc.read(frame, roles=roles, hierarchies=trees, unit="id", name="patients")


def classes_of(file: Any) -> dict[int, list[str]]:
    """Return for each person the illnesses in his class."""
    rows = file.dataset.arrow(["region", "age", "ill"]).to_pylist()
    origin = Pair.of(file.original, file).origin.tolist()
    inside: dict[Any, list[str]] = {}
    for row in rows:
        inside.setdefault((row["region"], row["age"]), []).append(row["ill"])
    return {who: inside[row["region"], row["age"]] for who, row in zip(origin, rows, strict=True)}


def two_files(book: dc.Ledger | None, place: Path) -> list[Any]:
    """Release a file by region and one by age, each 4-anonymous."""
    people, made = patients(), []
    kept: dict[str, Any] = {} if book is None else {"ledger": book}
    for column in ("region", "age"):
        way = dc.Generalization(highest={column: 0})
        try:
            file = dc.anonymize(people, [dc.KAnonymity(4)], method=way, **kept)
        except (dc.InfeasibleError, dc.RefusedError):
            continue
        file.write(place / column, **kept)
        made.append(file)
    return made


def found_by_intersection(files: list[Any]) -> int:
    attack, truth = dc.IntersectionOfFiles(), patients().frame["ill"]
    several = [classes_of(file) for file in files]
    return sum(attack.run([one[n] for one in several], truth[n]).succeeded for n in range(16))


def test_intersection_of_files(tmp_path: Path) -> None:
    assert found_by_intersection(two_files(None, tmp_path / "without")) == 16
    with dc.open_ledger() as book:
        assert found_by_intersection(two_files(book, tmp_path / "with")) == 0


def printed_sums(release: Any, people: dc.Dataset, by: list[str]) -> list[Printed]:
    register = {row["id"]: row for row in people.arrow().to_pylist()}
    return printed_table(release.published.to_dict("records"), register, by)


@pytest.mark.parametrize("remember", [False, True])
def test_difference_of_tables(tmp_path: Path, remember: bool) -> None:
    before = patients()
    frame = before.frame.assign(ward=before.frame["region"])
    frame.loc[0, "ward"] = "r1"  # the ward is the region, but for one person
    roles = {name: str(before.schema[name].role) for name in before.columns}
    people = dc.read(frame, roles={**roles, "ward": "quasi"}, unit="id", name="patients")
    printed: list[Printed] = []
    with dc.open_ledger() as book:
        kept: dict[str, Any] = {"ledger": book} if remember else {}
        for by in ("region", "ward"):
            table = dc.tabulate(people, by=[by], measure="cost")
            release = table.protect([dc.MinimumFrequency(3)], **kept)
            release.write(tmp_path / by, **kept)
            printed += printed_sums(release, people, [by])
    report = dc.DifferenceOfTables().run(printed, 0, 100.0)
    assert report.succeeded is not remember


@pytest.mark.parametrize("remember", [False, True])
def test_missing_rows(tmp_path: Path, remember: bool) -> None:
    before = patients()
    frame = before.frame.assign(region=["r9", *before.frame["region"][1:]])  # one person alone
    roles = {name: str(before.schema[name].role) for name in before.columns}
    trees = {
        "region": dc.Hierarchy.flat(sorted(set(frame["region"])), total="*"),
        "age": before.schema.hierarchies("age")[0],
    }
    people = dc.read(frame, roles=roles, hierarchies=trees, unit="id", name="patients")
    with dc.open_ledger() as book:
        kept: dict[str, Any] = {"ledger": book} if remember else {}
        table = dc.tabulate(people, by=["age"], measure="cost")
        release = table.protect([dc.MinimumFrequency(3)], **kept)
        release.write(tmp_path / "table", **kept)
        printed = printed_sums(release, people, ["age"])
        way = dc.Generalization(highest={"region": 0}, suppression=0.1)
        try:
            file = dc.anonymize(people, [dc.KAnonymity(3)], method=way, **kept)
        except (dc.InfeasibleError, dc.RefusedError):
            file = None
    if file is not None:
        costs, ids = frame["cost"].to_numpy(), frame["id"].to_numpy()
        origin = Pair.of(file.original, file).origin
        keys = file.dataset.arrow(["region", "age"]).to_pylist()
        inside: dict[Any, list[int]] = {}
        for who, key in zip(origin.tolist(), keys, strict=True):
            inside.setdefault(tuple(key.values()), []).append(who)
        for several in inside.values():
            people_in = frozenset(int(ids[n]) for n in several)
            printed.append(Printed(people_in, float(np.sum(costs[several]))))
    assert dc.MissingRows().run(printed, 0, 100.0).succeeded is not remember


def test_linkage_with_a_register() -> None:
    people = patients()
    voters = [{**row, "name": f"voter {row['id']}"} for row in people.arrow().to_pylist()]
    raw = people.arrow(["region", "age", "ill"]).to_pylist()
    attack = dc.RegisterLinkage(keys=("region", "age"))
    assert attack.run(raw, voters).succeeded
    safe = dc.anonymize(people, [dc.KAnonymity(4)])
    assert not attack.run(
        safe.dataset.arrow(["region", "age", "ill"]).to_pylist(), voters
    ).succeeded


def test_spending_across_kinds() -> None:
    counts = dc.tabulate(patients(), by=["age"])
    for remember in (False, True):
        spent = []
        with dc.open_ledger() as book:
            book.set_grant("patients", dc.Grant(epsilon=1.0).to_dict())
            for epsilon in (0.5, 0.4, 0.3):
                way = dc.DPTableNoise(epsilon=epsilon)
                try:
                    release = counts.protect(method=way, ledger=book if remember else None)
                except dc.RefusedError:
                    continue
                spent.append(release.events())
        assert dc.SpendingAcrossKinds(granted=1.0).run(spent).succeeded is not remember

"""Permuted files, linked tables and policies, judged with what was released before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.app.policy.run import run_policy
from discreet.errors import EngineError
from discreet.ledger.overview import releases
from discreet.verification.folder import verify

RULES = [dc.MinimumFrequency(3)]
ROLES = {"id": "identifier", "a": "quasi", "b": "quasi", "m": "confidential"}


def frame(size: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "id": range(size),
            "a": rng.choice(list("xyz"), size),
            "b": rng.choice(list("pq"), size),
            "m": rng.permutation(size) * 10 + 5,
        }
    )


def people(data: pd.DataFrame | None = None) -> dc.Dataset:
    return dc.read(frame() if data is None else data, roles=ROLES, unit="id", name="people")


def groups_of(release: Any) -> Any:
    return release._remembered.labels


def test_permuted_groups_lie_inside_earlier_classes(tmp_path: Path) -> None:
    data = people()
    with dc.open_ledger() as ledger:
        first = dc.permute(data, sensitive="m", k=5, ledger=ledger)
        first.write(tmp_path / "1", ledger=ledger)
        second = dc.permute(data, sensitive="m", k=3, partition="local", ledger=ledger)
        second.write(tmp_path / "2", ledger=ledger)
        outer, inner = groups_of(first), groups_of(second)
        for group in np.unique(inner):
            assert len(np.unique(outer[inner == group])) == 1
            assert len(np.unique(data.frame["m"][inner == group])) >= 3
        assert dc.joint_audit(ledger).safe
        # Groups of ten do not fit into groups of five.
        with pytest.raises(dc.InfeasibleError, match="joint classes of earlier files"):
            dc.permute(data, sensitive="m", k=40, ledger=ledger)


def test_a_permuted_file_without_a_ledger_is_not_recorded(tmp_path: Path) -> None:
    with dc.open_ledger() as ledger, pytest.raises(dc.InputError, match="no records at hand"):
        dc.permute(people(), sensitive="m", k=5).write(tmp_path / "1", ledger=ledger)


def test_sums_of_permuted_groups_are_judged_with_tables(tmp_path: Path) -> None:
    data = people(frame().assign(a=["w", *frame()["a"][1:]]))  # one person alone
    table = dc.tabulate(data, by=["a"], measure="m")
    with dc.open_ledger() as ledger:
        dc.permute(data, sensitive="m", k=5, ledger=ledger).write(tmp_path / "1", ledger=ledger)
        beside = table.protect(RULES, ledger=ledger)
    # All sums of groups are told, and none of them tells the one.
    told = beside.published.set_index("a")["value"]
    assert np.isnan(told["w"])


def test_linked_tables_are_protected_with_earlier_ones(tmp_path: Path) -> None:
    base = frame()
    moved = base["a"].where(base["id"] != 3, "y" if base["a"][3] != "y" else "x")
    data = dc.read(base.assign(c=moved), roles={**ROLES, "c": "quasi"}, unit="id", name="people")
    with dc.open_ledger() as ledger:
        one = dc.tabulate(data, by=["a"], measure="m").protect(RULES, ledger=ledger)
        one.write(tmp_path / "1", ledger=ledger)
        tables = [dc.tabulate(data, by=[by], measure="m") for by in ("c", "b")]
        alone = dc.protect(tables, RULES)
        with pytest.raises(dc.RefusedError, match="together with release"):
            alone.write(tmp_path / "2", ledger=ledger)
        both = dc.protect(tables, RULES, ledger=ledger)
        both.write(tmp_path / "2", ledger=ledger)
        assert dc.joint_audit(ledger).safe
    by_c = both.releases[0].published.set_index("c")["value"]
    # Who moved is the difference of two cells; total and the third are as they were.
    assert by_c.isna().sum() == 2


POLICY = """
data:
  source: people.csv
  unit: id
  roles: {id: identifier, a: quasi, b: quasi, m: confidential}
ledger: ledger.db
snapshot: "2026"
audience: controlled
conditions: [research only]
releases:
  - {name: by-a, kind: table, by: [a], measure: m, rules: [{minimum-frequency: 3}]}
  - {name: by-b, kind: table, by: [b], measure: m, rules: [{minimum-frequency: 3}], audience: public}
"""


def states(folder: Path) -> list[str]:
    with dc.open_ledger(folder / "ledger.db") as ledger:
        return [str(row[-1]) for row in releases(ledger)[1]]


def test_a_policy_names_the_ledger_once(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "policy.yaml").write_text(POLICY)
    run_policy(tmp_path / "policy.yaml", tmp_path / "out")
    assert states(tmp_path) == ["published", "published"]
    manifest = json.loads((tmp_path / "out" / "by-a" / "manifest.json").read_text())
    assert manifest["audience"] == "controlled"
    assert manifest["conditions"] == ["research only"]
    assert manifest["joint"] == "covered"
    stated = json.loads((tmp_path / "out" / "by-a" / "evidence.json").read_text())
    assert stated["covers"]["audience"] == "controlled"
    assert "ledger" in stated["covers"]["memory"]
    found = verify(tmp_path / "out" / "by-a")
    assert any("research only" in finding.found for finding in found.findings)
    other = json.loads((tmp_path / "out" / "by-b" / "manifest.json").read_text())
    assert other["audience"] == "public"


def test_nothing_is_published_before_the_whole_folder_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "policy.yaml").write_text(POLICY)

    def fails(*_: object, **__: object) -> None:
        raise EngineError("the disk is full", code="cannot-write")

    monkeypatch.setattr("discreet.app.policy.run._record", fails)
    with pytest.raises(EngineError):
        run_policy(tmp_path / "policy.yaml", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert states(tmp_path) == ["recorded, perhaps not published"] * 2

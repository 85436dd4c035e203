"""What a stranger with several folders is told."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import discreet as dc
from discreet.verification.joint import verify_together

ROLES = {"id": "identifier", "sector": "quasi", "region": "quasi", "salary": "confidential"}
RULES = [dc.MinimumFrequency(3)]


def staff(*, leaver: bool) -> dc.Dataset:
    """Return 24 people, of whom the last may have left."""
    frame = pd.DataFrame(
        {
            "id": range(24),
            "sector": ["A"] * 3 + ["B"] * 4 + ["C"] * 8 + ["D"] * 9,
            "region": ["N", "S"] * 12,
            "salary": [1000 + 37 * n for n in range(24)],
        }
    )
    return dc.read(frame.iloc[: 24 - leaver], roles=ROLES, unit="id", name="people")


def verdicts(folders: list[Path]) -> list[str]:
    return [finding.verdict for finding in verify_together(folders)]


def test_folders_of_two_snapshots_are_not_taken_for_one(tmp_path: Path) -> None:
    with dc.open_ledger() as ledger:
        folders = []
        for name, leaver in (("2026", False), ("2027", True)):
            table = dc.tabulate(staff(leaver=leaver), by=["sector"], measure="salary")
            release = table.protect(RULES, ledger=ledger, snapshot=name)
            folders.append(release.write(tmp_path / name, ledger=ledger, snapshot=name))
        assert verdicts(folders) == ["not checked"]
        # Two of one snapshot are judged together, beside another of another one.
        other = dc.tabulate(staff(leaver=False), by=["region"], measure="salary")
        more = other.protect(RULES, ledger=ledger, snapshot="2026").write(
            tmp_path / "more", ledger=ledger, snapshot="2026"
        )
    assert verdicts([*folders, more]) == ["kept", "not checked"]


def test_the_joint_report_draws_whom_releases_touch(tmp_path: Path) -> None:
    with dc.open_ledger() as ledger:
        table = dc.tabulate(staff(leaver=False), by=["sector"], measure="salary")
        release = table.protect([dc.MinimumFrequency(4)], ledger=ledger)
        release.write(tmp_path / "out", ledger=ledger)
        audit = dc.joint_audit(ledger)
    (touch,) = audit.touches
    cells = release.published.set_index("sector")["value"]
    hidden = set(cells.index[cells.isna()])
    people = {"A": 3, "B": 4, "C": 8, "D": 9}
    withheld = sum(people[sector] for sector in hidden)
    assert (touch.told, touch.withheld, touch.outside) == (24 - withheld, withheld, 0)
    assert len(audit.quantities[0].cells) == len(hidden) == 2
    page = audit.page()
    assert page.count("<svg") == 2
    assert "release 3: A" in page

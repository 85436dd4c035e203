"""The same secret again: nearly the same amounts, other measures, other names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc

RULES = [dc.MinimumFrequency(3)]
ROLES = {
    "id": "identifier", "sector": "quasi", "branch": "quasi", "salary": "confidential",
    "month": "confidential", "bonus": "confidential", "pay": "confidential",
}  # fmt: skip


def frame(size: int = 30) -> pd.DataFrame:
    """Return people by sector, and by branch: the same, but for one person."""
    rng = np.random.default_rng(5)
    salary = rng.integers(1000, 9000, size)
    bonus = rng.integers(100, 900, size)
    return pd.DataFrame(
        {
            "id": range(size),
            "sector": [("A", "B", "C")[n % 3] for n in range(size)],
            "branch": [("A", "B", "C")[n % 3 if n else 1] for n in range(size)],
            "salary": salary,
            "month": salary / 12,
            "bonus": bonus,
            "pay": salary + bonus,
        }
    )


def people(data: pd.DataFrame, name: str = "people") -> dc.Dataset:
    return dc.read(data, roles=ROLES, unit="id", name=name)


def publish(
    data: Any, ledger: dc.Ledger, place: Path, by: str, measure: str = "salary", **snapshot: str
) -> Any:
    table = dc.tabulate(data, by=[by], measure=measure)
    release = table.protect(RULES, ledger=ledger, **snapshot)
    release.write(place, ledger=ledger, **snapshot)
    return release.published.set_index(by)["value"]


def test_a_leaver_is_not_told_within_a_small_raise(tmp_path: Path) -> None:
    before = frame()
    after = before.assign(salary=before["salary"] + 1 + before["id"] % 7).iloc[1:]
    with dc.open_ledger() as ledger:
        first = publish(people(before), ledger, tmp_path / "1", "sector", snapshot="1")
        second = publish(people(after), ledger, tmp_path / "2", "sector", snapshot="2")
    # Sector A lost one person, whose salary would be the difference, but for a few coins.
    assert first.notna().all()
    assert np.isnan(second["A"])
    assert np.isnan(second["Total"])
    assert second[["B", "C"]].notna().sum() >= 1


def test_large_changes_hide_a_leaver(tmp_path: Path) -> None:
    before = frame()
    after = before.assign(salary=before["salary"] * 2).iloc[1:]
    with dc.open_ledger() as ledger:
        publish(people(before), ledger, tmp_path / "1", "sector", snapshot="1")
        second = publish(people(after), ledger, tmp_path / "2", "sector", snapshot="2")
    assert second.notna().all()


def told(cells: Any) -> set[str]:
    return set(cells.index[cells.notna()])


def test_a_twelfth_is_the_same_secret(tmp_path: Path) -> None:
    data = people(frame())
    with dc.open_ledger() as ledger:
        salary = publish(data, ledger, tmp_path / "1", "sector")
        month = publish(data, ledger, tmp_path / "2", "branch", measure="month")
        assert told(salary) == {"Total", "A", "B", "C"}
        # A and B differ by one person from what was told.
        assert told(month) == {"Total", "C"}


def test_pay_is_salary_and_bonus(tmp_path: Path) -> None:
    data = people(frame())
    with dc.open_ledger() as ledger:
        publish(data, ledger, tmp_path / "1", "sector", measure="salary")
        # A bonus says nothing of a salary by itself …
        bonus = publish(data, ledger, tmp_path / "2", "sector", measure="bonus")
        assert told(bonus) == {"Total", "A", "B", "C"}
        # … but with the pay of others it does.
        pay = publish(data, ledger, tmp_path / "3", "branch", measure="pay")
        assert told(pay) == {"Total", "C"}


def test_strangers_do_not_restrain_each_other(tmp_path: Path) -> None:
    data = people(frame())
    with dc.open_ledger() as ledger:
        publish(data, ledger, tmp_path / "1", "sector", measure="salary")
        alone = dc.tabulate(data, by=["branch"], measure="bonus").protect(RULES)
        beside = dc.tabulate(data, by=["branch"], measure="bonus").protect(RULES, ledger=ledger)
    assert alone.published.equals(beside.published)


def test_the_joint_audit_knows_kin(tmp_path: Path) -> None:
    data = people(frame())
    with dc.open_ledger() as ledger:
        publish(data, ledger, tmp_path / "1", "sector", measure="salary")
        publish(data, ledger, tmp_path / "2", "sector", measure="month")
        audit = dc.joint_audit(ledger)
    assert audit.safe


@pytest.mark.parametrize("renamed", [{}, {"month": "twelfth"}])
def test_a_copy_with_other_rows_is_known_by_its_records(
    tmp_path: Path, renamed: dict[str, str]
) -> None:
    data = frame()
    copy = data.iloc[1:].rename(columns=renamed)
    roles = {renamed.get(name, name): role for name, role in ROLES.items()}
    with dc.open_ledger() as ledger:
        publish(people(data), ledger, tmp_path / "1", "sector")
        other = dc.read(copy, roles=roles, unit="id", name="staff")
        with pytest.raises(dc.RefusedError, match="as 'people'"):
            publish(other, ledger, tmp_path / "2", "sector")
        unrelated = frame().assign(id=range(100, 130), salary=range(500, 530))
        unrelated = unrelated.assign(month=unrelated.salary / 12, bonus=unrelated.salary % 7)
        unrelated = unrelated.assign(pay=unrelated.salary + unrelated.bonus)
        publish(people(unrelated, "guests"), ledger, tmp_path / "3", "sector")

"""Released tables: nothing withheld in any byte, and files that anybody can audit."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.instances import instance, random_table, salaries

import discreet as dc
from discreet.data.table import Status
from discreet.tables.table import Table


def secret_table(seed: int) -> Table:
    """A table with values of so many digits that each can only come from itself."""
    rng = np.random.default_rng(seed)
    rows = {}
    for row in range(4):
        for column in range(4):
            rows[f"r{row}", f"c{column}"] = float(rng.integers(10**7, 10**9)) / 4
    frame = pd.DataFrame(
        [{"row": r, "column": c, "value": v} for (r, c), v in rows.items()]
        + [
            {
                "row": f"r{r}",
                "column": "Total",
                "value": sum(rows[f"r{r}", f"c{c}"] for c in range(4)),
            }
            for r in range(4)
        ]
        + [
            {
                "row": "Total",
                "column": f"c{c}",
                "value": sum(rows[f"r{r}", f"c{c}"] for r in range(4)),
            }
            for c in range(4)
        ]
        + [{"row": "Total", "column": "Total", "value": sum(rows.values())}]
    )
    frame["count"] = 7
    frame["x1"], frame["x2"] = frame.value * 0.4, frame.value * 0.3
    return Table.from_cells(
        frame, ["row", "column"], "value", count="count", contributions=["x1", "x2"]
    )


def spellings(value: float) -> set[bytes]:
    """Return how a number might be found in a file, in text or in binary."""
    whole = round(value)
    texts = {repr(value), f"{value:.2f}", f"{value:,.2f}", str(whole), f"{whole:,}", f"{value:.4g}"}
    found = {text.encode() for text in texts if len(text) >= 6}
    return found | {np.float64(value).tobytes(), np.float64(value).byteswap().tobytes()}


def every_byte(folder: Path) -> bytes:
    """Return all files of a folder, workbooks unpacked."""
    whole = b""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            whole += file.read_bytes()
            if file.suffix == ".xlsx":
                with zipfile.ZipFile(file) as archive:
                    whole += b"".join(archive.read(name) for name in archive.namelist())
    return whole


def parquet_values(folder: Path) -> set[float]:
    frame = pd.read_parquet(folder / "cells.parquet")
    return {float(v) for c in frame.select_dtypes("number") for v in frame[c].dropna()}


@pytest.mark.parametrize("method", [dc.Suppression(), dc.Intervals()], ids=lambda m: m.name)
def test_no_withheld_value_in_any_output_byte(tmp_path, method):
    for seed in range(3):
        table = secret_table(seed)
        release = table.protect(
            rules=[dc.Manual(("r1/c2", "r3/c0", "Total/c1"), range=5)], method=method
        )
        folder = release.write(tmp_path / f"{method.name}{seed}")
        written = every_byte(folder)
        withheld = np.flatnonzero(release.protected.withheld)
        assert withheld.size > 3
        for cell in withheld:
            for secret in (table.value[cell], *table.contributions[cell]):
                for text in spellings(float(secret)):
                    assert text not in written, (table.labels(int(cell)), text)
                assert float(secret) not in parquet_values(folder)
        # Sums that would give a withheld value away are not written either.
        for secret in (release.loss.suppressed_value, table.value[withheld].sum()):
            for text in spellings(float(secret)):
                assert text not in written
        shown = np.flatnonzero(~release.protected.withheld)
        assert any(str(round(table.value[c])).encode() in written for c in shown)


NOISE = [
    dc.RecordNoise(),
    dc.CellKey(),
    dc.DPTableNoise(bounds=(0.0, 1e9)),
    dc.ControlledRounding(1e6),
    dc.RandomRounding(1e6),
    dc.ConventionalRounding(1e6),
]


@pytest.mark.parametrize("method", NOISE, ids=lambda m: m.name)
def test_no_true_value_in_any_output_byte_of_changed_tables(tmp_path, method):
    rng = np.random.default_rng(4)
    size = 60
    frame = pd.DataFrame(
        {
            "firm": range(size),
            "row": rng.choice(["r0", "r1", "r2"], size),
            "column": rng.choice(["c0", "c1", "c2"], size),
            "x": rng.integers(10**7, 10**9, size) / 4,
        }
    )
    table = dc.tabulate(dc.read(frame, unit="firm"), ["row", "column"], "x")
    release = table.protect([dc.PPercent(10), dc.MinimumFrequency(3)], method)
    folder = release.write(tmp_path / "out")
    written, numbers = every_byte(folder), parquet_values(folder)
    for secret in {*table.value, *table.contributions.ravel(), *frame.x} - {0.0}:
        for text in spellings(float(secret)):
            if len(text) > 6:  # shorter ones are what a rounded number looks like
                assert text not in written
        assert float(secret) not in numbers


def test_curator_page_is_not_in_the_published_folder(tmp_path):
    table = secret_table(1)
    release = table.protect(rules=[dc.Manual(("r1/c2",))], method=dc.Suppression())
    release.write(tmp_path / "out")
    page = release.write_curator(tmp_path / "curator.html")
    assert "for the curator only" in page.read_text()
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "cells.csv",
        "cells.parquet",
        "cells.xlsx",
        "evidence.json",
        "hierarchy_column.csv",
        "hierarchy_row.csv",
        "report.html",
    }


def test_files_hold_the_same_cells(tmp_path):
    table = dc.tabulate(salaries(), by=["sector", "region"], measure="salary")
    release = table.protect(rules=[dc.PPercent(10), dc.MinimumFrequency(3)])
    folder = release.write(tmp_path / "out")
    csv = pd.read_csv(folder / "cells.csv")
    pd.testing.assert_frame_equal(csv, pd.read_parquet(folder / "cells.parquet"), check_dtype=False)
    pd.testing.assert_frame_equal(
        csv, pd.read_excel(folder / "cells.xlsx", engine="openpyxl"), check_dtype=False
    )
    evidence = json.loads((folder / "evidence.json").read_text())
    assert evidence["verdict"].startswith("safe")
    assert evidence["settings"]["method"]["name"] == "suppression"
    assert [rule["name"] for rule in evidence["settings"]["rules"]] == [
        "p-percent",
        "minimum-frequency",
    ]
    page = (folder / "report.html").read_text()
    assert "<svg" in page
    assert "<script" not in page


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), method=st.sampled_from([dc.Suppression(), dc.Intervals()]))
def test_audit_of_the_published_file_equals_audit_of_the_release(tmp_path_factory, seed, method):
    table = random_table(seed, (4, 3))
    try:
        release = table.protect(rules=[dc.MinimumFrequency(3), dc.PPercent(15)], method=method)
    except dc.InfeasibleError:
        return
    folder = release.write(tmp_path_factory.mktemp("release"))
    own = release.audit(attacker="outsider", exact=True)
    found = dc.audit_published(folder / "cells.csv")
    # The file does not tell which of the withheld cells are sensitive: all are audited.
    assert found.sensitive == int(release.protected.withheld.sum())
    names = [*table.by, "lower", "upper"]
    same = own.intervals[list(table.by)].merge(found.intervals, how="left")
    pd.testing.assert_frame_equal(
        own.intervals[names], same[names], rtol=1e-5, atol=1e-5, check_dtype=False
    )
    truth = table.value[own.cells]
    assert (own.intervals.lower <= truth + 1e-6).all()
    assert (own.intervals.upper >= truth - 1e-6).all()


@pytest.mark.parametrize("name", ["ssb_magnitude1", "testW_size_region", "insee_act_size"])
def test_published_instances_audit_the_same_from_file(data_folder, tmp_path, name):
    table = instance(data_folder, name)
    release = table.protect(method=dc.Suppression(attacker="outsider", effort="fast"))
    folder = release.write(tmp_path / "out")
    own = release.audit(exact=True)
    found = dc.audit_published(folder / "cells.csv")
    assert own.safe
    both = own.intervals.merge(found.intervals, on=list(table.by), suffixes=("", "_file"))
    assert len(both) == own.sensitive
    scale = float(np.abs(table.value).max())
    for end in ("lower", "upper"):
        assert np.allclose(both[end], both[f"{end}_file"], rtol=1e-5, atol=1e-7 * scale)


def test_seeded_randomness_is_not_written(tmp_path):
    table = dc.tabulate(salaries(), by=["sector", "region"])
    release = table.protect(
        rules=[dc.MinimumFrequency(3)], method=dc.RandomRounding(5), rng=dc.Randomness.seeded(1)
    )
    with pytest.raises(dc.RefusedError):
        release.write(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_changed_tables_do_not_tell_which_cells_are_as_they_were(tmp_path):
    table = dc.tabulate(salaries(), by=["sector", "region"])
    for method in (dc.ControlledRounding(3), dc.CellKey(), dc.ControlledTabularAdjustment()):
        release = table.protect(rules=[dc.MinimumFrequency(3)], method=method)
        assert set(release.cells.status) == {"changed"}
        assert "changed" not in release.evidence().loss


def test_linked_release_writes_a_folder_per_table(tmp_path):
    tables = dc.tabulate(salaries(), by=[["sector", "region"], ["sector"]], measure="salary")
    release = dc.protect(tables, [dc.MinimumFrequency(3)], dc.Suppression())
    folder = release.write(tmp_path / "out")
    assert (folder / "1-sector-region" / "cells.csv").exists()
    assert (folder / "2-sector" / "cells.csv").exists()
    assert json.loads((folder / "evidence.json").read_text())["settings"]["tables"] == [
        ["sector", "region"],
        ["sector"],
    ]


def test_published_file_with_marks_in_place_of_values(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text("row,value\nTotal,10\na,–\nb,c\nd,4\n", encoding="utf-8")
    found = dc.audit_published(path, total="Total")
    assert found.safe
    assert found.intervals[["lower", "upper"]].to_numpy().tolist() == [[0, 6], [0, 6]]
    path.write_text("row,value\nTotal,10\na,\nb,6\n", encoding="utf-8")
    found = dc.audit_published(path, total="Total")
    assert not found.safe
    assert found.disclosed == 1
    assert found.intervals.lower.tolist() == [4]


def test_published_file_mistakes_are_named(tmp_path):
    with pytest.raises(dc.InputError, match="no file"):
        dc.audit_published(tmp_path / "nowhere.csv")
    path = tmp_path / "published.csv"
    path.write_text("row,amount\nTotal,10\n", encoding="utf-8")
    with pytest.raises(dc.InputError, match="no column 'value'"):
        dc.audit_published(path)
    path.write_text("row,value\nTotal,10\na,10\n", encoding="utf-8")
    with pytest.raises(dc.InputError, match="no attribute 'region'"):
        dc.audit_published(path, {"region": dc.Hierarchy.flat(["x"])})
    with pytest.raises(dc.InputError, match="hierarchy lacks"):
        dc.audit_published(path, {"row": dc.Hierarchy.flat(["x"])})


def test_rounded_file_audited_within_its_base():
    frame = pd.DataFrame({"row": ["Total", "a", "b"], "value": [10, 5, 5]})
    found = dc.audit_published(frame, within=2)
    assert found.intervals[["lower", "upper"]].to_numpy().tolist() == [[8, 12], [3, 7], [3, 7]]


def test_means_of_changed_sums_do_not_tell_counts():
    table = dc.tabulate(salaries(), by=["sector", "region"], measure="salary", statistic="mean")
    release = table.protect(rules=[dc.MinimumFrequency(3)], method=dc.ControlledRounding(10_000))
    assert "count" not in release.cells


def test_differentially_private_evidence_counts_nothing():
    table = dc.tabulate(salaries(), by=["sector", "region"])
    release = table.protect(rules=[dc.MinimumFrequency(3)], method=dc.DPTableNoise(epsilon=1.0))
    evidence = release.evidence()
    assert evidence.risk == {"safe": True}
    assert set(evidence.loss) == {"cells"}
    assert "ε = 1" in evidence.verdict


def test_linked_files_are_audited_together(tmp_path):
    tables = dc.tabulate(salaries(), by=[["sector", "region"], ["region"]], measure="salary")
    release = dc.protect(tables, [dc.MinimumFrequency(3), dc.PPercent(10)], dc.Suppression())
    folder = release.write(tmp_path / "out")
    files = sorted(folder.glob("*/cells.csv"))
    found = dc.audit_published(files)
    own = release.audit(attacker="outsider", exact=True)
    both = own.intervals.merge(found.intervals, on=["sector", "region"], suffixes=("", "_file"))
    assert len(both) == own.sensitive
    assert np.allclose(both[["lower", "upper"]], both[["lower_file", "upper_file"]])
    # What one table withholds and the other tells is told.
    alone = pd.DataFrame({"region": ["Total", "N", "S"], "value": [10, None, None]})
    other = pd.DataFrame(
        {"sector": ["Total"] * 3, "region": ["Total", "N", "S"], "value": [10, 4, 6]}
    )
    assert not dc.audit_published(alone, total="Total").disclosed
    assert dc.audit_published([alone, other], total="Total").sensitive == 0


def test_published_sums_do_not_tell_in_which_parts_they_came():
    # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit; the parts are withheld.
    def release(parts):
        rows = [("a", part) for part in parts] + [("b", 5.5), ("b", 6.5), ("b", 7.25)]
        frame = pd.DataFrame(rows, columns=["g", "v"])
        data = dc.read(frame, roles={"v": "confidential"}, name="t")
        table = dc.tabulate(data, by=["g"], measure="v")
        return dc.protect(table, method=dc.Suppression(), rules=[dc.MinimumFrequency(2)]).cells

    first, second = release([0.1, 0.2, 0.3]), release([0.3, 0.2, 0.1])
    assert first.value.tolist() == second.value.tolist()
    assert 0.6 in first.value.tolist()


@pytest.fixture
def audits(monkeypatch):
    """Every audit with the true values that a release makes, as it was made."""
    from discreet.tables import protected_table

    made = []

    def assess(*args, **options):
        made.append(original(*args, **options))
        return made[-1]

    original = protected_table.assess
    monkeypatch.setattr(protected_table, "assess", assess)
    return made


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_the_audit_that_decides_is_the_one_that_is_shown(tmp_path, audits, attacker):
    method = dc.Suppression(attacker=attacker)
    release = secret_table(2).protect([dc.Manual(("r1/c2", "r3/c0"))], method)
    release.write(tmp_path / "out")
    release.write_curator(tmp_path / "curator.html")
    assert len(audits) == 1
    assert release.audit() is release.audit(attacker=attacker, exact=True) is audits[0]
    assert audits[0].exact
    assert release.verdict == audits[0].verdict
    assert release.evidence().verdict == audits[0].promise
    assert audits[0].promise in (tmp_path / "out" / "report.html").read_text()
    assert audits[0].verdict in (tmp_path / "curator.html").read_text()


def test_an_audit_against_another_attacker_is_an_audit_of_its_own(audits):
    release = secret_table(2).protect([dc.Manual(("r1/c2",))], dc.Suppression(attacker="outsider"))
    other = release.audit(attacker="contributors")
    assert other is audits[1]
    assert other.attacker == "contributors"
    assert release.audit().attacker == "outsider"


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("by", [["sector"], [["sector", "region"], ["sector"]]])
def test_records_and_acceptance_do_not_ask_for_another_audit(tmp_path, audits, by, unsafe):
    tables = dc.tabulate(salaries(), by=by)
    release = dc.protect(tables, [dc.MinimumFrequency(3)], dc.Suppression(), unsafe=unsafe)
    release.write(tmp_path / "out", unsafe=unsafe)
    assert release.audit() is audits[0]
    assert len(audits) == 1


@pytest.mark.parametrize("method", [dc.Suppression(), dc.CellKey()], ids=["joined", "apart"])
def test_linked_tables_are_judged_by_one_audit(tmp_path, audits, method):
    tables = dc.tabulate(salaries(), by=[["sector", "region"], ["sector"]])
    (tmp_path / "fixed.key").write_bytes(bytes(range(32)))
    (tmp_path / "fixed.key").chmod(0o600)
    method = dataclasses.replace(method, key=str(tmp_path / "fixed.key"))
    linked = dc.protect(tables, rules=[dc.MinimumFrequency(3)], method=method)
    whole = linked.audit()
    linked.write(tmp_path / "out")
    assert len(audits) == 1
    for part in linked.releases:
        assert part.verdict == linked.verdict
        found = part.audit()
        assert found.sensitive == int((part.table.status == Status.PRIMARY).sum())
        # The intervals of a part are those that all tables together leave.
        both = found.intervals.merge(whole.intervals, on=list(part.table.by))
        assert (both["safe_x"] == both["safe_y"]).all()
    assert len(audits) == 1

"""What a published consistent table promises, derived again from its files alone."""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.hierarchy import Hierarchy
from discreet.data.hierarchy_files import hierarchy_file
from discreet.data.table import Table
from discreet.dp.accountant import Accountant
from discreet.dp.caution import caution
from discreet.dp.hierarchical.budget import Budget, Measure
from discreet.dp.hierarchical.estimation import linear_estimate
from discreet.dp.hierarchical.measurement import Measurements
from discreet.dp.noise import gaussian_loss
from discreet.errors import InputError
from discreet.report import Report, Rows
from discreet.tables.measured_file import MEASUREMENTS, read_measurements
from discreet.tables.methods._places import Places
from discreet.tables.methods._promised import concentrated, verdict_of
from discreet.tables.methods._shares import read_query
from discreet.tables.methods._tree_estimate import TreeEstimate
from discreet.tables.methods.top_down import combinations_of

__all__ = ["Derivation", "derive"]

#: What is judged by the measurements alone: whoever changes counts and intervals alike is found there.
_WITHOUT = ("exact counts are as measured", "intervals follow from the measurements")
#: Cells of which a table with all its equations is built.
_LARGEST = 5_000_000


@dataclasses.dataclass(frozen=True)
class Derivation(Report):
    """What was derived again, and what of it does not hold."""

    safe: bool
    verdict: str
    #: Derived from the scales, with OpenDP's own figures.
    rho: float
    #: Each statement, and what was found against it: nothing where it holds.
    findings: tuple[tuple[str, str], ...]
    #: What the files do not allow to check.
    unchecked: tuple[str, ...] = ()

    def rows(self) -> Rows:
        """Return one line per statement."""
        lines = [(what, wrong or "holds") for what, wrong in self.findings]
        lines += [(what, f"not checked: there is no {MEASUREMENTS}") for what in self.unchecked]
        return ("", ""), [("verdict", self.verdict), ("rho", self.rho), *lines]


def derive(path: str | Path) -> Derivation | None:
    """Judge the files of a consistent table; None where the folder holds none.

    What a release promises follows from its own evidence: whether the evidence is the publisher's is
    for a signature to say.

    Parameters
    ----------
    path
        The folder of the release, or its file of cells.
    """
    given = Path(path)
    folder = given if given.is_dir() else given.parent
    stated = _evidence(folder)
    settings = stated.get("settings", {}) if isinstance(stated, Mapping) else {}
    if (
        not isinstance(settings, Mapping)
        or (settings.get("method") or {}).get("name") != "top-down"
    ):
        return None
    cells = folder / "cells.csv" if (folder / "cells.csv").is_file() else folder / "cells.parquet"
    try:
        return _derived(given if given.is_file() else cells, folder, stated)
    except (KeyError, TypeError, ValueError, IndexError, OSError) as error:
        raise InputError(
            "the files of the release do not fit together, so that nothing can be derived",
            code="bad-release",
            hint="take the folder as it was published: cells, hierarchies and evidence.json",
            file=folder,
        ) from error


def _evidence(folder: Path) -> Any:
    # Any: what a stranger's JSON holds.
    file = folder / "evidence.json"
    if not file.is_file():
        return {}
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        return {}


def _derived(cells: Path, folder: Path, stated: Mapping[str, Any]) -> Derivation:
    settings = stated["settings"]
    facts, by = settings["facts"], [str(name) for name in settings["by"]]
    frame = _read(cells, by)
    if len(frame) > _LARGEST:
        raise InputError(
            f"{len(frame):,} cells are more than can be derived again at once",
            code="table-too-large",
            hint=f"up to {_LARGEST:,} cells are; the digests of all files are checked by "
            "discreet verify",
        )
    trees = {name: _hierarchy(folder / hierarchy_file(name, 0)) for name in by}
    table = Table.from_cells(frame, by, "value", hierarchies=trees, statistic="count")
    value = frame["value"].to_numpy(dtype=np.float64)
    places = Places.of(table.dimensions, by.index(facts["spine"]))
    records = int(settings["method"]["records"])
    whole = bool(facts["integer"])
    loss = _Loss.of(facts, records)
    findings = [
        ("all files hold the same cells", _differing(frame, cells, by)),
        ("every combination of codes is printed", _missing(places, table)),
        ("totals are the sums of their parts", _unequal(table, value, whole=whole)),
        ("ρ is what the noise costs", loss.rho_wrong(facts, settings["method"])),
        ("ε is what ρ amounts to", loss.epsilon_wrong(facts)),
    ]
    if whole:
        fractions = int(((value != np.round(value)) | (value < 0)).sum())
        findings.append(
            ("counts are whole and not negative", f"{fractions:,} are not" if fractions else "")
        )
    findings.append(("exact counts have no error", _uncertain(places, table, frame, facts)))
    findings.append(
        ("impossible combinations are empty", _possible(places, table, settings["method"]))
    )
    if (folder / MEASUREMENTS).is_file():
        measured = read_measurements(folder / MEASUREMENTS, places, facts, records)
        findings += _from_measurements(measured, places, table, frame, whole=whole)
    elif settings["method"].get("measurements"):
        findings.append(("the measurements lie beside the table", f"there is no {MEASUREMENTS}"))
    promise = loss.promise({str(k): str(v) for k, v in facts["invariants"].items()})
    verdict = verdict_of(promise, caution(loss.epsilon))
    is_same = verdict == stated["verdict"] and promise == facts["promise"]
    findings.append(("the verdict is what follows", "" if is_same else "it differs"))
    wrong = [what for what, against in findings if against]
    if wrong:
        verdict = "not as promised: " + "; ".join(wrong)
    unchecked = () if (folder / MEASUREMENTS).is_file() else _WITHOUT
    return Derivation(not wrong, verdict, loss.rho, tuple(findings), unchecked)


def _read(cells: Path, by: Sequence[str]) -> Any:
    """Return the cells of a file as a frame, with codes as texts. Any: pandas' frame."""
    import pandas as pd

    text = dict.fromkeys(by, str)
    if cells.suffix == ".parquet":
        return pd.read_parquet(cells).astype(text)
    if cells.suffix == ".xlsx":
        return pd.read_excel(
            cells, sheet_name="cells", dtype=text, keep_default_na=False, engine="openpyxl"
        )
    return pd.read_csv(cells, dtype=text, keep_default_na=False)


def _differing(frame: Any, cells: Path, by: Sequence[str]) -> str:
    """Compare the other files of cells in the folder. Any: pandas' frame."""
    names = ["value", "lower_95", "upper_95"]
    mine = frame.sort_values(list(by))
    wrong = []
    for other in (cells.parent / f"cells.{kind}" for kind in ("csv", "parquet", "xlsx")):
        if other == cells or not other.is_file():
            continue
        if other.suffix == ".xlsx" and importlib.util.find_spec("openpyxl") is None:
            wrong.append(f"{other.name}, which cannot be read without openpyxl, may")
            continue
        theirs = _read(other, by).sort_values(list(by))
        same = len(mine) == len(theirs) and bool(
            (mine[list(by)].to_numpy() == theirs[list(by)].to_numpy()).all()
        )
        if not same or not np.allclose(
            mine[names].to_numpy(dtype=np.float64), theirs[names].to_numpy(dtype=np.float64),
            rtol=1e-9, atol=1e-9,
        ):  # fmt: skip
            wrong.append(other.name)
    return f"{' and '.join(wrong)} differ from {cells.name}" if wrong else ""


def _hierarchy(file: Path) -> Hierarchy:
    with file.open(encoding="utf-8", newline="") as lines:
        return Hierarchy.from_pairs([(row[0], row[1]) for row in list(csv.reader(lines))[1:]])


def _missing(places: Places, table: Table) -> str:
    lacking = places.size - len(table)
    return f"{lacking:,} are missing" if lacking else ""


def _uncertain(places: Places, table: Table, frame: Any, facts: Mapping[str, Any]) -> str:
    """Judge figures that are exact by their own intervals. Any: a frame of cells."""
    names = [dimension.name for dimension in places.attributes]
    levels = [str(level) for level in facts["levels"]]
    off = 0
    for level, text in facts["invariants"].items():
        query = read_query(str(text), names)
        exact = places.level_of[table.codes[:, places.place]] <= levels.index(str(level))
        for number, dimension in enumerate(places.attributes):
            if number not in query:
                whole = np.asarray(places.sums[number].all(axis=1))
                exact &= whole[table.codes[:, table.by.index(dimension.name)]]
        value = table.value[exact]
        for name in ("lower_95", "upper_95"):
            printed = frame[name].to_numpy(dtype=np.float64)[exact]
            off += int((~(np.abs(printed - value) <= 1e-6 * np.maximum(1.0, np.abs(value)))).sum())
    return f"{off:,} ends of intervals are not the count" if off else ""


def _possible(places: Places, table: Table, method: Mapping[str, Any]) -> str:
    zeros = combinations_of(tuple(method.get("zeros") or ()), places)
    if not zeros:
        return ""
    filled = int((places.leaves(table)[:, ~places.possible(zeros)] != 0).sum())
    return f"{filled:,} are not" if filled else ""


def _unequal(table: Table, value: Any, *, whole: bool) -> str:
    gap = np.abs(table.equations @ value)
    slack = 0.0 if whole else 1e-6 * max(1.0, float(np.abs(value).max(initial=0.0)))
    wrong = int((~(gap <= slack)).sum())
    return f"{wrong:,} totals are not" if wrong else ""


@dataclasses.dataclass(frozen=True)
class _Loss:
    """What the noise costs by its scales, with OpenDP's own figures."""

    exact: Fraction
    epsilon: float
    delta: float
    records: int

    @classmethod
    def of(cls, facts: Mapping[str, Any], records: int) -> _Loss:
        measures = tuple(
            Measure(0, (), float(one["scale"]), gaussian_loss(float(one["scale"]), float(records)))
            for one in facts["measurements"]
        )
        delta = float(facts["delta"])
        budget = Budget(measures, records)
        epsilon = Accountant("zcdp", delta).epsilon(budget.events())
        return cls(
            sum((Fraction(one.rho) for one in measures), Fraction()), epsilon, delta, records
        )

    @property
    def rho(self) -> float:
        return float(self.exact)

    def rho_wrong(self, facts: Mapping[str, Any], method: Mapping[str, Any]) -> str:
        if abs(self.rho - float(facts["rho"])) > 1e-12 * max(1.0, self.rho):
            return f"{facts['rho']:g} is stated, the scales cost {self.rho:g}"
        granted = method.get("rho")
        if granted is not None and self.exact > Fraction(float(granted)):
            return f"the scales cost more than the {granted:g} that were granted"
        return ""

    def epsilon_wrong(self, facts: Mapping[str, Any]) -> str:
        if abs(self.epsilon - float(facts["epsilon"])) <= 1e-9 * max(1.0, self.epsilon):
            return ""
        return f"{facts['epsilon']:g} is stated, the scales cost {self.epsilon:g}"

    def promise(self, exact: Mapping[str, str]) -> str:
        return concentrated(self.rho, self.epsilon, self.delta, records=self.records, exact=exact)


def _from_measurements(
    measured: Measurements, places: Places, table: Table, frame: Any, *, whole: bool
) -> Sequence[tuple[str, str]]:
    """Judge totals that are exact, and intervals, by the measurements beside the table."""
    levels = [places.leaves(table)]
    for number in range(places.spine.depth - 1, 0, -1):
        levels.insert(0, np.asarray(places.spine.add_up(levels[0], number)))
    found = []
    for level, (query, answers) in measured.exact.items():
        off = int((places.basis.answers(levels[level], query) != answers).sum())
        found.append(("exact counts are as measured", f"{off:,} are not" if off else ""))
    estimate = TreeEstimate(places, linear_estimate(measured), tuple(levels) if whole else None)
    order = np.argsort(table.keys)
    off = 0
    if len(table) == places.size:
        for name, again in zip(("lower_95", "upper_95"), estimate.bounds, strict=True):
            printed = frame[name].to_numpy(dtype=np.float64)[order]
            slack = 1e-6 * np.maximum(1.0, np.abs(again))
            off += int((~(np.abs(printed - again) <= slack)).sum())
        if not whole:
            printed = table.value[order]
            slack = 1e-6 * np.maximum(1.0, np.abs(estimate.value))
            off += int((~(np.abs(printed - estimate.value) <= slack)).sum())
    found.append(("intervals follow from the measurements", f"{off:,} do not" if off else ""))
    return found

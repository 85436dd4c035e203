"""Laws of table methods, on the files that are written.

What a release calls safe is computed again from the published cells, by a linear program of the tests'
own: every sensitive cell must remain possible as far from its value as its protection levels ask;
where a method draws between which bounds a value lies, as many values as both levels together.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.optimize import linprog

import discreet as dc
from discreet.audit.intervals import audit_table
from discreet.data.table import Status, Table
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.tables.methods._base import Protected, TableMethod, changed, sensitive
from discreet.tables.methods.suppression import Suppression
from discreet.tables.release import TableRelease
from tests.laws import parameters

RULES = (dc.MinimumFrequency(3), dc.PPercent(10))


def table(seed: int, statistic: str = "sum") -> Table:
    """Draw a table of people by region and job in which some cells are sensitive."""
    rng = np.random.default_rng(seed)
    size = 70
    rows = pd.DataFrame(
        {
            "id": np.arange(size),
            "region": rng.choice(["n1", "n2", "s1", "s2"], size, p=(0.4, 0.3, 0.2, 0.1)),
            "job": rng.choice(["cook", "pilot", "nurse"], size, p=(0.6, 0.3, 0.1)),
            # Digits that no other figure of a release happens to have.
            "pay": np.round(rng.lognormal(8, 1, size), 2) + 0.003,
        }
    )
    tree = dc.Hierarchy.from_levels({"Total": {"N": ["n1", "n2"], "S": ["s1", "s2"]}})
    jobs = dc.Hierarchy.flat(["cook", "nurse", "pilot"])
    trees = {"region": tree, "job": jobs}
    data = dc.read(rows, unit="id", hierarchies=trees, types={"pay": "numeric"})
    measure = None if statistic == "count" else "pay"
    made = dc.tabulate(data, by=["region", "job"], measure=measure)
    return made.replace(cost=rng.uniform(1, 9, len(made)))


def tried(member: type[TableMethod]) -> tuple[Any, ...]:
    return parameters.some(member, bounds=(0.0, 60_000.0))


def released(member: type[TableMethod]) -> tuple[TableRelease, ...]:
    """Return releases by the examples of the method: of magnitudes, and of counts if it can."""
    return _released(member, parameters.THOROUGH)


@functools.cache
def _released(member: type[TableMethod], thorough: bool) -> tuple[TableRelease, ...]:
    found = []
    for method in tried(member):
        for statistic, rules in (("sum", RULES), ("count", RULES[:1])):
            try:
                found.append(dc.tables.protect(table(3, statistic), rules, method))
            except dc.InfeasibleError as error:  # no safe table may exist, but none is made unsafe
                assert error.code != "unsafe-release", f"{method} made an unsafe table: {error}"
            except dc.InputError as error:
                meant = statistic == "count" and error.code.startswith("table-without")
                meant = meant or (statistic == "sum" and error.code == "unsupported-statistic")
                assert meant, f"{method} cannot be judged: {error}"
    assert found, f"{member.name} protects nothing"
    return tuple(found)


@functools.cache
def written(release: TableRelease) -> tuple[list[dict[str, str]], str]:
    """Return the published cells read from bytes, and all text of the release."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(release.write(Path(folder) / "out", unsafe=True))
        with (path / "cells.csv").open(newline="", encoding="utf-8") as file:
            cells = list(csv.DictReader(file))
        text = "\n".join(
            p.read_text(encoding="utf-8")
            for p in sorted(path.rglob("*"))
            if p.suffix in (".csv", ".html", ".json", ".txt")
        )
    return cells, text


def ends(release: TableRelease, cells: list[dict[str, str]]) -> tuple[np.ndarray, np.ndarray]:
    """Return between what each cell lies by what the file prints of it alone."""
    value = np.array([float(cell["value"] or "nan") for cell in cells])
    lower, upper = np.where(np.isnan(value), 0.0, value), np.where(np.isnan(value), np.inf, value)
    given = release.protected
    if given.prints_intervals:
        lower, upper = (np.array([float(c[end]) for c in cells]) for end in ("lower", "upper"))
    elif given.lower is not None and given.upper is not None:
        lower, upper = np.maximum(given.lower, 0.0), given.upper
    return lower, upper


def what_is_called_safe_is_safe_in_the_file(member: type[TableMethod]) -> None:
    """The verdict is right in both directions, so that a method that calls itself unsafe is judged too."""
    for release in released(member):
        cells, _ = written(release)
        true, method = release.table, release.method
        assert len(cells) == len(true)
        if method.acting.risk == "noise":
            value = np.array([float(cell["value"]) for cell in cells])
            assert not np.allclose(value, true.value), f"{method} adds no noise"
            continue
        told = release.audit(attacker="outsider").safe
        found = outsider_is_kept_away(release, cells)
        if release.protected.lower is not None and release.method.acting.risk == "intervals":
            # What it asks for is at least what the law does.
            assert found or not told, f"{method} calls a table safe that is not"
            continue
        assert told == found, (
            f"{method} calls a table of {true.statistic}s safe: {told}, not {found}"
        )


def outsider_is_kept_away(release: TableRelease, cells: list[dict[str, str]]) -> bool:
    """Whether every sensitive cell stays possible, or is moved, as far as its levels ask."""
    true = release.table
    hidden = np.flatnonzero(sensitive(true))
    low, high = true.value - true.lower, true.value + true.upper
    slack = 1e-6 * np.maximum(1.0, np.abs(true.value))
    if release.method.acting.risk == "distance":
        value = np.array([float(cell["value"]) for cell in cells])[hidden]
        away = (value <= (low + slack)[hidden]) | (value >= (high - slack)[hidden])
        return bool(away.all())
    if release.method.acting.risk == "spread":
        greater = np.maximum(true.lower, true.upper)
        return bool((release.protected.spread >= greater - slack)[hidden].all())
    lower, upper = ends(release, cells)
    least = 1.0 if true.statistic == "count" else 0.0
    if release.protected.lower is not None:
        # Where a value lies is drawn, so that the width counts; what is below everybody knows.
        known = true.value if least else np.maximum(low, 0.0)
        return all(
            reach(true, lower, upper, cell, -1.0) - reach(true, lower, upper, cell, 1.0)
            >= high[cell] - known[cell] - slack[cell]
            for cell in hidden
        )
    return all(
        reach(true, lower, upper, cell, 1.0) <= max(low[cell], least) + slack[cell]
        and reach(true, lower, upper, cell, -1.0) >= high[cell] - slack[cell]
        for cell in hidden
    )


def reach(true: Table, lower: Any, upper: Any, cell: int, sign: float) -> float:
    """Return how low or high a cell can be, given the equations and the ends of every cell."""
    goal = np.zeros(len(true))
    goal[cell] = sign
    # Published cells are rounded to some digits: the equations hold up to those.
    loose = 1e-6 * np.maximum(1.0, np.abs(np.where(np.isfinite(upper), upper, 0.0)))
    bounds = [
        (a - e, None if np.isinf(b) else b + e) for a, b, e in zip(lower, upper, loose, strict=True)
    ]
    bounds = [(None if np.isinf(a) else a, b) for a, b in bounds]
    found = linprog(
        goal, A_eq=true.equations, b_eq=np.zeros(true.equations.shape[0]), bounds=bounds
    )
    if found.status == 3:
        return -sign * np.inf
    assert found.status == 0, f"no table fits what is published: {found.message}"
    return float(sign * found.fun)


def nothing_withheld_is_in_the_files(member: type[TableMethod]) -> None:
    for release in released(member):
        if release.table.statistic == "count":  # small whole numbers are everywhere
            continue
        cells, text = written(release)
        hidden = np.flatnonzero(np.isnan(release.protected.value))
        assert all(cells[place]["value"] == "" for place in hidden)
        for value in release.table.value[hidden]:
            assert f"{value:.3f}" not in text, f"{release.method} tells a withheld value"
            assert f"{value:.2f}" not in text, f"{release.method} tells a withheld value"
            assert f"{value:,.2f}" not in text, f"{release.method} tells a withheld value"


def totals_are_sums_where_it_says_so(member: type[TableMethod]) -> None:
    for release in released(member):
        value = release.protected.value
        if not release.method.acting.is_additive or release.protected.prints_intervals:
            continue
        matrix = release.table.equations
        whole = ~(abs(matrix) @ np.isnan(value).astype(float) > 0)
        off = (matrix @ np.nan_to_num(value))[whole]
        assert np.abs(off).max(initial=0.0) <= 1e-6 * np.nanmax(np.abs(value)), (
            f"{release.method} publishes totals that are not the sums of their parts"
        )


def the_truth_lies_in_what_it_tells(member: type[TableMethod]) -> None:
    for release in released(member):
        told = release.protected
        if told.lower is None or told.upper is None:
            continue
        slack = 1e-9 * np.maximum(1.0, np.abs(told.table.value))
        inside = (told.lower <= told.table.value + slack) & (told.table.value <= told.upper + slack)
        assert inside.all(), f"{release.method} tells intervals without the truth"


def counts_only(method: TableMethod) -> bool:
    """Whether a method refuses magnitudes."""
    try:
        method.events(table(5))
    except dc.InputError as error:
        return error.code == "unsupported-statistic"
    return False


def the_input_is_not_touched(member: type[TableMethod]) -> None:
    for method in tried(member):
        given = method.prepare(table(5, "count" if counts_only(method) else "sum"), RULES)
        before = {
            field.name: np.copy(held)
            for field in dataclasses.fields(given)
            if isinstance(held := getattr(given, field.name), np.ndarray)
        }
        try:
            made = method.hide(given, rng=Randomness.seeded(1))
        except dc.InfeasibleError:
            continue
        assert len(made.value) == len(made.status) == len(made.table)
        for name, held in before.items():
            assert np.array_equal(getattr(given, name), held), f"{method} changed {name}"
        if not method.acting.is_random:
            again = method.hide(given, rng=Randomness.seeded(2))
            assert np.array_equal(made.value, again.value, equal_nan=True), (
                f"{method} does not say that it draws"
            )


LAWS = (
    what_is_called_safe_is_safe_in_the_file,
    nothing_withheld_is_in_the_files,
    totals_are_sums_where_it_says_so,
    the_truth_lies_in_what_it_tells,
    the_input_is_not_touched,
)


@dataclasses.dataclass(frozen=True)
class PrimaryOnly(TableMethod):
    """Withholds the sensitive cells alone, and brings an audit of a table that withholds all."""

    name: ClassVar[str] = "primary-only"

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        hidden = sensitive(table)
        status = np.where(hidden, np.int8(Status.PRIMARY), np.int8(Status.SAFE))
        forged = audit_table(table, published=np.zeros(len(table), bool))
        return Protected(
            table, np.where(hidden, np.nan, table.value), status, confidential={"audit": forged}
        )


@dataclasses.dataclass(frozen=True)
class Talkative(Suppression):
    """Tells what it withholds among the facts of the release."""

    name: ClassVar[str] = "talkative"

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        made = super().hide(table, rng=rng, progress=progress)
        largest = float(table.value[sensitive(table)].max())
        return dataclasses.replace(made, facts={"largest withheld": round(largest, 2)})


@dataclasses.dataclass(frozen=True)
class Changing(TableMethod):
    """Moves every cell by one, and says that it moves none by more than a hair."""

    name: ClassVar[str] = "changing"
    risk: ClassVar[str] = "distance"

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        value = table.value + np.arange(len(table)) + 1.0
        return Protected(table, value, changed(table), lower=value, upper=value)


@dataclasses.dataclass(frozen=True)
class Secretive(Changing):
    """Moves cells at random and does not say so."""

    name: ClassVar[str] = "secretive"

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        return Protected(table, table.value + rng.uniform(len(table)), changed(table))


@dataclasses.dataclass(frozen=True)
class Noiseless(Changing):
    """Promises noise and adds none."""

    name: ClassVar[str] = "noiseless"
    risk: ClassVar[str] = "noise"

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        return Protected(table, table.value.copy(), changed(table))


@dataclasses.dataclass(frozen=True)
class Shifted(Changing):
    """Tells intervals that begin above the truth."""

    name: ClassVar[str] = "shifted"

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        made = super().hide(table, rng=rng, progress=progress)
        return dataclasses.replace(made, lower=table.value + 1.0, upper=table.value + 2.0)


BROKEN = {
    PrimaryOnly: what_is_called_safe_is_safe_in_the_file,
    Noiseless: what_is_called_safe_is_safe_in_the_file,
    Talkative: nothing_withheld_is_in_the_files,
    Changing: totals_are_sums_where_it_says_so,
    Shifted: the_truth_lies_in_what_it_tells,
    Secretive: the_input_is_not_touched,
}

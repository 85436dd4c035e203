"""Promises of a permuted release: every group is counted again, and its help rows added up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.verification.findings import UNKNOWN, Finding, judged
from discreet.verification.held import Held
from discreet.verification.reading import canonical, inside, open_file
from discreet.verification.records import columns_finding, leftover_finding

__all__ = ["check_permuted"]

#: Sums of floating-point numbers are rounded outward by less than this.
_SLACK = 1e-9


def check_permuted(folder: Path, promise: Mapping[str, Any], held: Held) -> list[Finding]:
    """Judge the permuted table and its help table by what was promised of them."""
    name, group, sensitive = (str(promise[word]) for word in ("file", "group", "sensitive"))
    file = open_file(inside(folder, name))
    found = [columns_finding(name, file.columns, promise["columns"]), leftover_finding(name, file)]
    if not found[0].holds:
        return found
    places = file.columns.index(group), file.columns.index(sensitive)
    groups: dict[str, list[str | None]] = defaultdict(list)
    number = not promise["category"]
    for row in file.rows():
        groups[str(row[places[0]])].append(canonical(row[places[1]], number=number))
    records = sum(map(len, groups.values()))
    wrong = (
        None
        if records == promise["records"]
        else f"{records:,} records, not {promise['records']:,}"
    )
    found.append(judged(name, "number of records", wrong))
    found += _groups(name, groups, promise)
    found += _owners(name, groups, promise, held)
    return [*found, *_help(folder, groups, promise)]


def _groups(
    name: str, groups: Mapping[str, Sequence[str | None]], promise: Mapping[str, Any]
) -> list[Finding]:
    k, e = int(promise["k"]), float(promise["e"])
    sensitive = str(promise["sensitive"])
    few = narrow = common = 0
    for values in groups.values():
        counts = Counter(values)
        few += len(counts) - (None in counts) < k
        common += max(counts.values()) * k > len(values)
        if not promise["category"]:
            numbers = [float(value) for value in counts if value is not None]
            span = max(numbers, default=0.0) - min(numbers, default=0.0)
            narrow += span < e * (1 - _SLACK)
    of = f"of {len(groups):,} groups"
    found = [
        judged(name, f"{k} values of {sensitive} in every group", f"{few:,} {of}" if few else None)
    ]
    if not promise["category"]:
        wrong = f"{narrow:,} {of}" if narrow else None
        found.append(judged(name, f"values that span {e:g} in every group", wrong))
    if promise["cap"]:
        wrong = f"{common:,} {of}" if common else None
        found.append(judged(name, f"no value makes up more than 1/{k} of a group", wrong))
    return found


def _owners(
    name: str, groups: Mapping[str, Sequence[str | None]], promise: Mapping[str, Any], held: Held
) -> list[Finding]:
    if promise.get("counted") != "people":
        return []
    words = f"records of {promise['k']} people in every group"
    if held.owners is None:
        return [Finding(name, words, UNKNOWN, "who owns which record stays with the curator")]
    people: dict[str, set[Any]] = defaultdict(set)
    sizes: Counter[str] = Counter()
    for row in held.owners.to_pylist():
        people[str(row["group"])].add(row["unit"])
        sizes[str(row["group"])] += 1
    same = sizes == {group: len(values) for group, values in groups.items()}
    few = sum(len(some) < int(promise["k"]) for some in people.values())
    wrong = f"{few:,} of {len(groups):,} groups" if few else None
    return [judged(name, words, wrong if same else "the groups are not those of the curator")]


def _help(
    folder: Path, groups: Mapping[str, Sequence[str | None]], promise: Mapping[str, Any]
) -> list[Finding]:
    """Judge whether the help table says of each group what follows from the permuted one."""
    name, group = str(promise["help"]), str(promise["group"])
    file = open_file(inside(folder, name))
    place = {column: number for number, column in enumerate(file.columns)}
    rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in file.rows():
        rows[str(row[place[group]])].append(row)
    same = {g: len(r) for g, r in rows.items()} == {g: len(v) for g, v in groups.items()}
    found = [
        judged(name, "one help row per record", None if same else "other groups or sizes"),
        leftover_finding(name, file),
    ]
    if not same or promise["category"]:
        return found
    # Sums are rounded outward to steps that suit the whole file.
    size = sum(abs(float(value)) for values in groups.values() for value in values if value)
    step = _SLACK * max(1.0, size)
    wrong = sum(not _adds_up(groups[g], rows[g], place, step) for g in groups)
    found.append(
        judged(name, "bounds of every group", f"{wrong:,} groups differ" if wrong else None)
    )
    return found


def _adds_up(
    values: Sequence[str | None],
    rows: Sequence[tuple[Any, ...]],
    place: Mapping[str, int],
    step: float,
) -> bool:
    """Whether help rows say the ends of every number of hits, sums to within a step outward."""
    rising = sorted(float(value) for value in values if value is not None)
    for row in rows:
        hits = int(row[place["hits"]])
        low, high = rising[:hits], rising[len(rising) - hits :]
        exact = {"lb_min": low[0], "ub_min": high[0], "lb_max": low[-1], "ub_max": high[-1]}
        slack = _SLACK * max(1.0, sum(map(abs, rising)))
        told = {column: float(row[place[column]]) for column in (*exact, "lb_sum", "ub_sum")}
        if any(abs(told[column] - value) > slack for column, value in exact.items()):
            return False
        if not -step <= told["lb_sum"] - sum(low) <= slack:
            return False
        if not -slack <= told["ub_sum"] - sum(high) <= step:
            return False
    return True

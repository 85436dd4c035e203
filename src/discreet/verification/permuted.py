"""Promises of a permuted release: every group is counted again, and its help rows added up."""

from __future__ import annotations

import itertools
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.verification.findings import UNKNOWN, Finding, judged
from discreet.verification.held import Held
from discreet.verification.reading import canonical, inside, open_file, some_columns
from discreet.verification.records import columns_finding, leftover_finding

__all__ = ["check_permuted"]

#: Sums of floating-point numbers are rounded outward by less than this.
_SLACK = 1e-9
#: Columns of the help table: which row it is, and what so many records contribute to an aggregate.
_PLACE = ("row_id", "hits")
_BOUNDS = ("lb_sum", "ub_sum", "lb_min", "ub_min", "lb_max", "ub_max", "mean")


def check_permuted(folder: Path, promise: Mapping[str, Any], held: Held) -> list[Finding]:
    """Judge the permuted table and its help table by what was promised of them.

    Both are read group by group, so that files of any size can be judged.
    """
    name, group, sensitive = (str(promise[word]) for word in ("file", "group", "sensitive"))
    file = open_file(inside(folder, name))
    found = [columns_finding(name, file.columns, promise["columns"]), leftover_finding(name, file)]
    if not found[0].holds:
        return found
    seen = _Seen(promise)
    for label, rows in _by_group(file.path, group, (sensitive,)):
        seen.add(label, [canonical(row[0], number=seen.number) for row in rows])
    wrong = (
        None
        if seen.records == promise["records"]
        else f"{seen.records:,} records, not {promise['records']:,}"
    )
    found.append(judged(name, "number of records", wrong))
    found += seen.findings(name)
    found += _owners(name, seen.sizes, promise, held)
    return [*found, *_help(folder, seen, promise)]


Group = tuple[str, list[tuple[Any, ...]]]


def _by_group(path: Path, group: str, wanted: Sequence[str]) -> Iterator[Group]:
    """Give each group, by its id, and some columns of its rows."""
    rows: Iterable[tuple[Any, ...]] = some_columns(path, (group, *wanted))
    if not _is_by_group(path, group):  # somebody put it in another order: it is held whole
        rows = sorted(rows, key=lambda row: float(row[0]))
    for label, run in itertools.groupby(rows, key=operator.itemgetter(0)):
        yield str(label), [row[1:] for row in run]


def _is_by_group(path: Path, group: str) -> bool:
    labels = (float(row[0]) for row in some_columns(path, (group,)))
    return all(one <= two for one, two in itertools.pairwise(labels))


class _Seen:
    """What the groups of the permuted table have, counted one after the other."""

    def __init__(self, promise: Mapping[str, Any]) -> None:
        self.promise = promise
        self.number = not promise["category"]
        self.k, self.e = int(promise["k"]), float(promise["e"])
        self.sizes: dict[str, int] = {}
        self.few = self.narrow = self.common = self.records = 0
        #: All values without their signs, added up.
        self.total = 0.0

    def add(self, label: str, values: Sequence[str | None]) -> None:
        """Count a group."""
        counts = Counter(values)
        self.sizes[label] = len(values)
        self.records += len(values)
        self.few += len(counts) - (None in counts) < self.k
        self.common += max(counts.values()) * self.k > len(values)
        if self.number:
            numbers = {float(value): n for value, n in counts.items() if value is not None}
            span = max(numbers, default=0.0) - min(numbers, default=0.0)
            self.narrow += span < self.e * (1 - _SLACK)
            self.total += sum(abs(value) * n for value, n in numbers.items())

    def findings(self, name: str) -> list[Finding]:
        """Judge what was counted."""
        sensitive, of = str(self.promise["sensitive"]), f"of {len(self.sizes):,} groups"
        words = f"{self.k} values of {sensitive} in every group"
        found = [judged(name, words, f"{self.few:,} {of}" if self.few else None)]
        if self.number:
            wrong = f"{self.narrow:,} {of}" if self.narrow else None
            found.append(judged(name, f"values that span {self.e:g} in every group", wrong))
        if self.promise["cap"]:
            wrong = f"{self.common:,} {of}" if self.common else None
            words = f"no value makes up more than 1/{self.k} of a group"
            found.append(judged(name, words, wrong))
        return found


def _owners(
    name: str, groups: Mapping[str, int], promise: Mapping[str, Any], held: Held
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
    same = sizes == groups
    few = sum(len(some) < int(promise["k"]) for some in people.values())
    wrong = f"{few:,} of {len(groups):,} groups" if few else None
    return [judged(name, words, wrong if same else "the groups are not those of the curator")]


def _help(folder: Path, seen: _Seen, promise: Mapping[str, Any]) -> list[Finding]:
    """Judge whether the help table says of each group what follows from the permuted one."""
    name, group = str(promise["help"]), str(promise["group"])
    file = open_file(inside(folder, name))
    wanted = _PLACE if promise["category"] else (*_PLACE, *_BOUNDS)
    columns = columns_finding(name, file.columns, (group, *wanted))
    if not columns.holds:
        return [columns]
    # Sums are rounded outward to steps that suit the whole file.
    step = _SLACK * max(1.0, seen.total)
    permuted = inside(folder, promise["file"])
    values = _by_group(permuted, group, (str(promise["sensitive"]),))
    same, wrong = True, 0
    for left, right in itertools.zip_longest(values, _by_group(file.path, group, wanted)):
        if left is None or right is None or (left[0], len(left[1])) != (right[0], len(right[1])):
            same = False
            break
        if not _is_counted(left[0], right[1]):
            same = False
            break
        if not promise["category"]:
            wrong += not _adds_up([canonical(row[0]) for row in left[1]], right[1], step)
    found = [
        columns,
        judged(name, "one help row per record", None if same else "other groups or sizes"),
        leftover_finding(name, file),
    ]
    if not same or promise["category"]:
        return found
    told = f"{wrong:,} groups differ" if wrong else None
    return [*found, judged(name, "bounds of every group", told)]


def _is_counted(label: str, rows: Sequence[tuple[Any, ...]]) -> bool:
    """Whether the rows of a group are numbered from 1 on, and by one key over all groups."""
    places = sorted((int(row[1]), int(row[0])) for row in rows)
    first = int(float(label))
    return places == [(hits, first + hits) for hits in range(1, len(rows) + 1)]


def _adds_up(values: Sequence[str | None], rows: Sequence[tuple[Any, ...]], step: float) -> bool:
    """Whether help rows say the ends of every number of hits, sums to within a step outward."""
    rising = sorted(float(value) for value in values if value is not None)
    slack = _SLACK * max(1.0, sum(map(abs, rising)))
    low = [0.0, *itertools.accumulate(rising)]
    high = [0.0, *itertools.accumulate(reversed(rising))]
    for row in rows:
        _, hits, *told, mean = (float(value) for value in row)
        place = int(hits)
        if abs(mean - low[-1] / len(rising)) > slack + step:
            return False
        exact = (rising[0], rising[-place], rising[place - 1], rising[-1])
        lowest, highest, *ends = told
        if any(abs(one - two) > slack for one, two in zip(ends, exact, strict=True)):
            return False
        if not -step <= lowest - low[place] <= slack:
            return False
        if not -slack <= highest - high[place] <= step:
            return False
    return True

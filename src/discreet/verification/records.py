"""Promises about released records: classes are counted again, value by value as the file has them.

Two keys are alike only if their bytes are; two confidential values differ only if they differ in
their one canonical form. So a promise that is kept here is kept for whoever reads the file.
"""

from __future__ import annotations

import dataclasses
import decimal
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.verification.findings import UNKNOWN, Finding, judged
from discreet.verification.held import Held
from discreet.verification.leftovers import leftovers
from discreet.verification.reading import (
    File,
    Form,
    as_bytes_of,
    canonical,
    inside,
    open_file,
    some_columns,
)

__all__ = ["check_records", "columns_finding", "leftover_finding"]

STAR = "*"
_SLACK = 1e-9

Key = tuple[Form, ...]
#: Some people: their units, or how many they are where every record is a person.
People = set[Any] | int


@dataclasses.dataclass(frozen=True, eq=False)
class _Class:
    """How many people look alike, and how many have which value of each confidential column."""

    people: int
    values: Mapping[str, Mapping[str | None, int]]


def _together(one: People, two: People) -> People:
    if isinstance(one, set):
        assert isinstance(two, set)
        return one | two
    assert isinstance(two, int)
    return one + two


def _number(people: People) -> int:
    return len(people) if isinstance(people, set) else people


def check_records(folder: Path, promise: Mapping[str, Any], held: Held) -> list[Finding]:
    """Judge a file of records by what was promised of it."""
    name = str(promise["file"])
    file = open_file(inside(folder, name))
    found = [columns_finding(name, file.columns, promise["columns"])]
    if not found[0].holds:
        return found
    models = [model for model in promise.get("models", ()) if model["name"] != "k-map"]
    confidential = list(dict.fromkeys(m["column"] for m in models if "column" in m))
    keys = list(dict.fromkeys(key for keys in promise.get("keys", ()) for key in keys))
    blank = list(promise.get("blank", ()))
    wanted = list(dict.fromkeys([*keys, *confidential, *blank]))
    counts = _counted(file, wanted)
    records = sum(counts.values())
    wrong = (
        None
        if records == promise["records"]
        else f"{records:,} records, not {promise['records']:,}"
    )
    found += [judged(name, "number of records", wrong), leftover_finding(name, file)]
    if promise.get("starred"):
        found.append(_blank(name, counts, wanted, keys, blank))
        counts = _without_stars(counts, wanted, keys)
    people = _people(file.kind, counts, wanted, keys, held)
    if people is None:
        wrong = "the file has other records than the curator holds"
        return [*found, judged(name, "records of known people", wrong)]
    for chosen in promise.get("keys", ()):
        columns = {column: wanted.index(column) for column in confidential}
        classes = _classes(people, [wanted.index(key) for key in chosen], columns, promise)
        for model in promise.get("models", ()):
            found.append(_model(name, model, promise, classes, chosen, (file.kind, held)))
    return found


def columns_finding(name: str, columns: Sequence[str], promised: Sequence[str]) -> Finding:
    """Judge whether a file has the columns that were decided on, and no other."""
    more = [column for column in columns if column not in promised]
    less = [column for column in promised if column not in columns]
    wrong = f"{len(more)} columns more, {len(less)} less" if more or less else None
    return judged(name, "columns", wrong)


def leftover_finding(name: str, file: File) -> Finding:
    """Judge whether a file holds nothing besides its rows."""
    left = leftovers(file)
    return judged(name, "nothing besides the rows", "; ".join(left) or None)


def _counted(file: File, wanted: Sequence[str]) -> Counter[Key]:
    return Counter(some_columns(file.path, wanted))


# -- suppressed records that were kept ------------------------------------------------------------
def _is_starred(row: Key, places: Sequence[int]) -> bool:
    return all(row[place] == STAR for place in places)


def _blank(
    name: str,
    counts: Counter[Key],
    wanted: Sequence[str],
    keys: Sequence[str],
    blank: Sequence[str],
) -> Finding:
    stars, rest = ([wanted.index(c) for c in columns] for columns in (keys, blank))
    told = sum(
        count
        for row, count in counts.items()
        if _is_starred(row, stars) and any(row[place] is not None for place in rest)
    )
    wrong = f"{told:,} suppressed records still have values" if told else None
    return judged(name, "suppressed records are blank", wrong)


def _without_stars(
    counts: Counter[Key], wanted: Sequence[str], keys: Sequence[str]
) -> Counter[Key]:
    places = [wanted.index(key) for key in keys]
    return Counter({row: n for row, n in counts.items() if not _is_starred(row, places)})


# -- classes --------------------------------------------------------------------------------------
def _people(
    kind: str, counts: Counter[Key], wanted: Sequence[str], keys: Sequence[str], held: Held
) -> dict[Key, People] | None:
    """Return who has each combination of values; None if the file and the curator disagree.

    Without units every record is a person of its own.
    """
    if held.records is None or held.unit is None:
        return dict(counts)
    table = held.records.select([*wanted, held.unit])
    seen: Counter[Key] = Counter()
    people: dict[Key, set[Any]] = defaultdict(set)
    stars = [wanted.index(key) for key in keys]
    for *values, unit in as_bytes_of(kind, table):
        row = tuple(values)
        if keys and _is_starred(row, stars) and row not in counts:
            continue  # suppressed: its promise is that it is blank
        seen[row] += 1
        people[row].add(canonical(unit))
    return dict(people) if seen == counts else None


def _classes(
    people: Mapping[Key, People],
    places: Sequence[int],
    columns: Mapping[str, int],
    promise: Mapping[str, Any],
) -> dict[Key, _Class]:
    numbers = promise.get("numbers", columns)
    nobody: People = set() if any(isinstance(some, set) for some in people.values()) else 0
    whole: dict[Key, People] = {}
    values: dict[Key, dict[str, dict[str | None, People]]] = {}
    for row, some in people.items():
        key = tuple(row[place] for place in places)
        whole[key] = _together(whole.get(key, nobody), some)
        own = values.setdefault(key, {column: {} for column in columns})
        for column, place in columns.items():
            value = canonical(row[place], number=column in numbers)
            own[column][value] = _together(own[column].get(value, nobody), some)
    if promise.get("reading") == "wildcard":
        whole = _matching(whole, len(places), nobody)
    return {
        key: _Class(
            _number(whole[key]),
            {c: {v: _number(some) for v, some in found.items()} for c, found in own.items()},
        )
        for key, own in values.items()
    }


def _matching(people: Mapping[Key, People], width: int, nobody: People) -> dict[Key, People]:
    """Return for each key the people it may be, a missing value matching every other."""
    patterns: dict[tuple[bool, ...], list[Key]] = defaultdict(list)
    for key in people:
        patterns[tuple(part is None for part in key)].append(key)
    found: dict[Key, People] = dict.fromkeys(people, nobody)
    for own, asked in patterns.items():
        for other, there in patterns.items():
            both = [j for j in range(width) if not own[j] and not other[j]]
            alike: dict[Key, People] = {}
            for key in there:
                part = tuple(key[j] for j in both)
                alike[part] = _together(alike.get(part, nobody), people[key])
            for key in asked:
                part = tuple(key[j] for j in both)
                found[key] = _together(found[key], alike.get(part, nobody))
    return found


# -- models ---------------------------------------------------------------------------------------
def _model(
    name: str,
    model: Mapping[str, Any],
    promise: Mapping[str, Any],
    classes: Mapping[Key, _Class],
    keys: Sequence[str],
    known: tuple[str, Held],
) -> Finding:
    words = f"{model['name']} by {', '.join(keys)}"
    kind, held = known
    if promise.get("counted") == "people" and held.records is None:
        return _of_records_alone(name, words, model, classes)
    if model["name"] == "k-map":
        return _k_map(name, words, model, classes, keys, known)
    check = _CHECKS.get(str(model["name"]))
    if check is None:
        return Finding(name, words, UNKNOWN, "the verifier does not know this model")
    reference = _reference(kind, model, promise, classes, held) if "column" in model else {}
    if reference is None:
        return Finding(
            name, words, UNKNOWN, "compared with the file before suppression, which stays"
        )
    try:
        bad = sum(not check(model, own, reference, held) for own in classes.values())
    except _Unknown as error:
        return Finding(name, words, UNKNOWN, str(error))
    return judged(name, words, f"{bad:,} of {len(classes):,} classes break it" if bad else None)


def _of_records_alone(
    name: str, words: str, model: Mapping[str, Any], classes: Mapping[Key, _Class]
) -> Finding:
    """Judge what follows from the number of records where people cannot be told apart."""
    least = model.get("k", 1) if model["name"] == "k-anonymity" else 1
    bad = sum(own.people < least for own in classes.values())
    if bad:
        return judged(name, words, f"{bad:,} classes have fewer than {least} records")
    return Finding(name, words, UNKNOWN, "people are counted, and who owns which record stays")


class _Unknown(Exception):  # noqa: N818 - not an error: nothing can be said
    """Raised where the files do not say enough."""


Shares = Mapping[str | None, float]
Check = Callable[[Mapping[str, Any], _Class, Shares, Held], bool]


def _shares(people: Mapping[str | None, int]) -> dict[str | None, float]:
    whole = sum(people.values())
    return {value: count / whole for value, count in people.items()}


def _reference(
    kind: str,
    model: Mapping[str, Any],
    promise: Mapping[str, Any],
    classes: Mapping[Key, _Class],
    held: Held,
) -> Shares | None:
    """Return how the column is distributed in the file that the model compares with."""
    column = str(model["column"])
    if model["name"] == "l-diversity":
        return {}
    people: Counter[str | None] = Counter()
    if held.original is not None:
        columns = [column] if held.unit is None else [column, held.unit]
        rows = as_bytes_of(kind, held.original.select(columns))
        number = column in promise.get("numbers", (column,))
        forms: Iterable[tuple[str | None, ...]] = (
            (canonical(row[0], number=number), *map(canonical, row[1:])) for row in rows
        )
        # Whoever owns several records with one value has it once.
        people.update(form[0] for form in (forms if held.unit is None else set(forms)))
    elif promise.get("suppressed"):
        return None
    else:
        for own in classes.values():
            people.update(own.values[column])
    return _shares(people)


def _k_anonymity(model: Mapping[str, Any], own: _Class, _: Shares, __: Held) -> bool:
    return own.people >= int(model["k"])


def _l_diversity(model: Mapping[str, Any], own: _Class, _: Shares, __: Held) -> bool:
    values = own.values[str(model["column"])]
    counts, least = sorted(values.values(), reverse=True), float(model["l"])
    if own.people < least - _SLACK:
        return False
    # Who has several values must not stand for others, who may all have the same.
    if model["kind"] == "distinct":
        return len(counts) >= least and own.people - counts[0] >= least - 1 - _SLACK
    if model["kind"] == "recursive":
        first = int(least) - 1
        others = min(sum(counts[first:]), own.people - sum(counts[:first]))
        return counts[0] < float(model["c"]) * others
    entropy = -sum(q * math.log(q) for q in _shares(values).values())
    common, others = counts[0] / own.people, max(1, len(counts) - 1)
    if common < 1:
        equal = (1 - common) / others
        most = -common * math.log(common) - (1 - common) * math.log(equal)
    else:
        most = 0.0
    return min(entropy, most) >= math.log(least) - _SLACK


def _t_closeness(model: Mapping[str, Any], own: _Class, file: Shares, held: Held) -> bool:
    column, limit = str(model["column"]), float(model["t"]) + _SLACK
    mine = _shares(own.values[column])
    moved = {value: mine.get(value, 0.0) - file.get(value, 0.0) for value in {*mine, *file}}
    if model["distance"] == "equal" or len(moved) < 2:
        return sum(map(abs, moved.values())) / 2 <= limit
    if model["distance"] == "ordered":
        order = _ordered(moved, held.orders.get(column))
        crossing = [sum(moved[v] for v in order[: place + 1]) for place in range(len(order) - 1)]
        return sum(map(abs, crossing)) / len(crossing) <= limit
    tree = held.ancestors.get(column)
    if tree is None:
        raise _Unknown("the hierarchy of the distance stays with the curator")
    height = max(len(groups) for groups in tree.values())
    surplus: dict[tuple[int, str], float] = defaultdict(float)
    for value, amount in moved.items():
        if str(value) not in tree:
            raise _Unknown("the file spells values otherwise than their hierarchy")
        for level, group in enumerate([str(value), *tree[str(value)]]):
            surplus[level, group] += amount
    # What cannot be matched below a group crosses it: half an edge on either side.
    below = (abs(amount) for (level, _), amount in surplus.items() if level < height)
    return sum(below) / (2 * height) <= limit


def _ordered(values: Iterable[str | None], order: Sequence[str] | None) -> list[str | None]:
    """Return values in the order of the distance, a missing one last."""
    known = [value for value in values if value is not None]
    if order is not None:
        rank = {value: place for place, value in enumerate(order)}
        if not set(known) <= set(rank):
            raise _Unknown("the file spells values otherwise than their order")
        known.sort(key=lambda value: rank[value])
    else:
        try:
            # Exactly: as doubles, whole numbers above 2**53 are in no order.
            known.sort(key=decimal.Decimal)
        except decimal.InvalidOperation:
            raise _Unknown("the order of the values stays with the curator") from None
    return [*known, *([None] if None in set(values) else [])]


def _beta_likeness(model: Mapping[str, Any], own: _Class, file: Shares, _: Held) -> bool:
    for value, share in _shares(own.values[str(model["column"])]).items():
        before = file.get(value, 0.0)
        if before == 0:
            return False
        most = float(model["beta"])
        most = most if model["kind"] == "basic" else min(most, -math.log(before))
        if (share - before) / before > most + _SLACK:
            return False
    return True


def _delta_disclosure(model: Mapping[str, Any], own: _Class, file: Shares, _: Held) -> bool:
    mine = _shares(own.values[str(model["column"])])
    return set(mine) == set(file) and all(
        abs(math.log(share / file[value])) < float(model["delta"]) + _SLACK
        for value, share in mine.items()
    )


_CHECKS: dict[str, Check] = {
    "k-anonymity": _k_anonymity,
    "l-diversity": _l_diversity,
    "t-closeness": _t_closeness,
    "beta-likeness": _beta_likeness,
    "delta-disclosure": _delta_disclosure,
}


def _k_map(
    name: str,
    words: str,
    model: Mapping[str, Any],
    classes: Mapping[Key, _Class],
    keys: Sequence[str],
    known: tuple[str, Held],
) -> Finding:
    kind, held = known
    people: Counter[Key] = Counter()
    if held.population is not None:
        people.update(as_bytes_of(kind, held.population.select(list(keys))))
    elif held.records is not None and held.weight is not None:
        for row, weight in _weighted(kind, held, keys):
            people[row] += weight  # type: ignore[assignment]  # weights are fractions
    else:
        return Finding(name, words, UNKNOWN, "the population stays with the curator")
    bad = sum(people[key] < float(model["k"]) - _SLACK for key in classes)
    return judged(name, words, f"{bad:,} of {len(classes):,} classes break it" if bad else None)


def _weighted(kind: str, held: Held, keys: Sequence[str]) -> list[tuple[Key, float]]:
    """Return what each record stands for; people with several records are divided among them."""
    assert held.records is not None
    assert held.weight is not None
    stars = range(len(keys))
    units = [None] * held.records.num_rows
    if held.unit is not None:
        units = held.records.column(held.unit).to_pylist()
    rows = list(
        zip(
            as_bytes_of(kind, held.records.select(list(keys))),
            held.records.column(held.weight).to_pylist(),
            units,
            strict=True,
        )
    )
    visible = [row for row in rows if not _is_starred(row[0], stars)]
    owned = Counter(unit for _, _, unit in visible)
    share = [1 if held.unit is None else owned[unit] for _, _, unit in visible]
    return [(k, float(w or 0) / n) for (k, w, _), n in zip(visible, share, strict=True)]

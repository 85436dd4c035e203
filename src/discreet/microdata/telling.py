"""Columns that leave as they are and tell what is to be hidden: a year of birth beside ages in classes.

A class hides nobody's age where every record also says when its owner was born. Two attackers are
tried with the true values. One looks at records that agree in the column: do they agree in what is
hidden, more often than any two records do? The other takes the order of the column, or a sum of
columns, for the order of what is hidden.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import ROW
from discreet.errors import InputError
from discreet.microdata.columns import codes, combined
from discreet.microdata.ordering import (
    CERTAIN,
    Released,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["alike", "require_masked_alike", "require_untold", "tells"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Records looked at; what is found in them is counted in all.
_SAMPLE = 20_000
#: A column is a key in another form if it is right for this share of those whom guessing gets wrong.
_FORM = 0.95
#: From this correlation of ranks on, an order tells the rank to within 3 % of the file:
#: the square root of (1 − 0.995²) / 12.
_TOGETHER = 0.995
#: How improbable that must be for columns that have nothing to do with each other.
_CHANCE = 1e-4
#: A masked column that leaves a key open less than this share as far as the masked key itself does.
_FINER = 0.5
#: Pairs of columns that are looked at, and records that two values together must have on average.
_PAIRS, _ALIKE = 100, 3
#: Columns with so large a share of positive numbers are looked at as factors.
_POSITIVE = 0.9
#: Fewer records and values show no order.
_RECORDS, _VALUES = 20, 10


def require_untold(
    dataset: Dataset, keys: Sequence[str], leaving: Sequence[str] | None = None
) -> None:
    """Refuse columns that would leave as they are and are a key in another form, unless vouched for.

    `leaving` are the columns that leave as they are; by default all but keys and identifiers.
    """
    others = [n for n in _others(dataset, keys) if leaving is None or n in leaving]
    if not others or not keys or not len(dataset):
        return
    engine, relation, unit = dataset.engine, dataset.relation, dataset.unit
    names = list(dict.fromkeys([*others, *keys, *([] if unit is None else [unit])]))
    rows = _one_per_unit(engine.fetch(engine.project(relation, names).query.limit(_SAMPLE)), unit)
    places = {name: codes(rows.column(name))[0] for name in names}
    for key in keys:
        for name in others:
            if tells(places[name], places[key]) and _in_all(dataset, name, key):
                raise _told(name, key, "")
        if named := _pair_tells(places, others, key):
            raise _told(named[1], key, f" together with {named[0]!r}")
        if named := _sum_tells(rows, others, key, places[key]):
            raise _told(named[-1], key, f" together with {' and '.join(map(repr, named[:-1]))}")


def alike(dataset: Dataset, columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return which of some columns is another one in another form: a tax and a salary."""
    names = [name for name in columns if not dataset.schema[name].vouched]
    if len(names) < 2 or not len(dataset):
        return []
    unit = dataset.unit
    wanted = list(dict.fromkeys([*columns, *([] if unit is None else [unit])]))
    query = dataset.engine.project(dataset.relation, wanted).query.limit(_SAMPLE)
    rows = _one_per_unit(dataset.engine.fetch(query), unit)
    places = {name: codes(rows.column(name))[0] for name in columns}
    return [(a, b) for a in names for b in columns if a != b and tells(places[a], places[b])]


def require_masked_alike(before: Dataset, after: Dataset, pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse a masked column that still tells another one, which is itself masked so that it does not.

    A tax rounded to 1 gives away the salary that is rounded to 5,000. Both datasets are numbered.
    """
    wanted = list(dict.fromkeys(name for pair in pairs for name in pair))
    if not wanted:
        return
    engine = after.engine
    rows = engine.fetch(engine.project(after.relation, [ROW, *wanted]).query.limit(_SAMPLE))
    query = before.engine.project(before.relation, [ROW, *wanted]).query
    numbers = rows.column(ROW).to_numpy()
    if not len(numbers):
        return
    last = exp.LTE(this=sql.column(ROW), expression=sql.number(int(numbers.max())))
    columns = [sql.column(name) for name in (ROW, *wanted)]
    known = before.engine.fetch(sql.select(sql.subquery(query, "t"), columns).where(last))
    order = np.argsort(known.column(ROW).to_numpy())
    true = known.take(order[np.searchsorted(known.column(ROW).to_numpy()[order], numbers)])
    for name, key in pairs:
        hidden = codes(true.column(key))[0]
        other, own = (codes(rows.column(column))[0] for column in (name, key))
        finer = _blur(other, hidden) < _FINER * _blur(own, hidden)
        if tells(other, hidden) and (finer or not tells(own, hidden)):
            raise InputError(
                f"column {name!r} would leave masked and still tells {key!r}, which is masked more",
                code="telling-column",
                hint=f"mask it as coarsely, leave it out, or vouch for it by name: vouch=[{name!r}]",
                column=name,
                key=key,
            )


def _blur(column: Ints, key: Ints) -> float:
    """Return how far, in standard deviations of ranks, a column leaves open where a key lies."""
    known = (column >= 0) & (key >= 0)
    column, key = column[known], key[known]
    if len(np.unique(column)) < 2 or len(np.unique(key)) < 2:
        return 1.0
    found = np.corrcoef(_ranks(column), _ranks(key))[0, 1]
    return math.sqrt(max(0.0, 1 - found**2))


def tells(column: Ints, key: Ints) -> bool:
    """Whether the codes of a column are those of a key in another form; −1 is missing.

    >>> age = np.arange(60) % 7
    >>> tells(100 - age, age), tells(np.arange(60) % 4, age), tells(np.arange(60) * 3, age)
    (True, False, False)
    """
    known = (column >= 0) & (key >= 0)
    column, key = column[known], key[known]
    if len(key) < 2 or len(np.unique(key)) < 2 or len(np.unique(column)) < 2:
        return False
    mates = Mates.of(column, key, np.zeros(len(key), np.int64))
    return mates.is_form or _rise_together(column, key)


@dataclasses.dataclass(frozen=True)
class Mates:
    """What those who agree with somebody in a column and a class say of that person's key.

    Examples
    --------
    >>> key = np.arange(40) % 4
    >>> Mates.of(key * 7, key, np.zeros(40, np.int64)).gain
    0.7692307692307692
    """

    records: int
    #: Records with somebody else of the same value in their class.
    known: int
    #: How often such another one, drawn by lot, has the same key; and any other one of the class.
    with_column: float
    without: float
    #: What the number of records with the same key varies by, if the column has nothing to say.
    spread: float
    #: Records beyond the first of each value, and the share of the commonest key.
    repeats: int
    commonest: float

    @classmethod
    def of(cls, column: npt.NDArray[np.generic], key: Ints, label: Ints) -> Mates:
        """Count who agrees with whom."""
        _, value = np.unique(column, return_inverse=True)
        same = combined([label, value.ravel()], len(key))
        alike = np.bincount(same)[same]
        own = _count(combined([same, key], len(key)))
        crowd, keyed = np.bincount(label)[label], _count(combined([label, key], len(key)))
        has = alike > 1
        known = int(has.sum())
        if not known:
            return cls(len(key), 0, 0.0, 0.0, 0.0, 0, 1.0)
        without = ((keyed - 1) / np.maximum(crowd - 1, 1))[has]
        right = ((own - 1) / np.maximum(alike - 1, 1))[has]
        return cls(
            len(key),
            known,
            float(right.mean()),
            float(without.mean()),
            _spread(alike[has], (keyed / crowd)[has]),
            known - len(np.unique(same[has])),
            float(np.bincount(key).max() / len(key)),
        )

    @property
    def gain(self) -> float:
        """For how many more of all records the attacker is right than without the column."""
        return (self.with_column - self.without) * self.known / max(self.records, 1)

    @property
    def is_certain(self) -> bool:
        """Whether so much agreement is no accident."""
        surplus = (self.with_column - self.without) * self.known
        return surplus > CERTAIN * max(self.spread, 1.0)

    @property
    def is_form(self) -> bool:
        """Whether the column is the key in another form, for most of the records."""
        if 2 * self.known < self.records or self.without >= 1:
            return False  # what hardly repeats agrees with anything
        share = (self.with_column - self.without) / (1 - self.without)
        # All repeats agree in the commonest key by chance, in a small file more often than it seems.
        chance = self.repeats * np.log(self.commonest)
        return bool(share >= _FORM and self.is_certain and chance < np.log(_CHANCE))


def _spread(alike: Ints, share: Floats) -> float:
    """Return the standard deviation of the number of agreeing records, were it by lot.

    Of m records with one value the pairs that agree are counted; p is the share of a record's key in
    its class. Pairs that have a record in common vary together where keys are not equally frequent.
    """
    mean = float(share.mean())
    pairs = 2 * mean * (1 - mean) / np.maximum(alike - 1, 1)
    common = 4 * np.maximum(alike - 2, 0) / np.maximum(alike - 1, 1) * float(share.var())
    return float(np.sqrt((pairs + common).sum()))


def _count(group: Ints) -> Ints:
    return np.bincount(group)[group]


def _others(dataset: Dataset, keys: Sequence[str]) -> list[str]:
    hidden = {*dataset.schema.identifiers, *keys, dataset.unit}
    return [n for n in dataset.columns if n not in hidden and not dataset.schema[n].vouched]


def _told(name: str, key: str, how: str) -> InputError:
    return InputError(
        f"column {name!r} would leave as it is and tells {key!r}, which is to be hidden{how}",
        code="telling-column",
        hint=f"give it the role quasi or identifier, or vouch for it by name: vouch=[{name!r}]",
        column=name,
        key=key,
    )


def _one_per_unit(rows: pa.Table, unit: str | None) -> pa.Table:
    """Return one record of each person: many of one would agree with themselves."""
    if unit is None:
        return rows
    _, first = np.unique(codes(rows.column(unit))[0], return_index=True)
    return rows.take(np.sort(first))


def _in_all(dataset: Dataset, name: str, key: str) -> bool:
    """Whether what a sample showed is so in all records: a file may be sorted."""
    if len(dataset) <= _SAMPLE:
        return True
    engine, relation = dataset.engine, dataset.relation
    alone = engine.combinations(relation, [name])
    return engine.combinations(relation, [name, key]) <= alone * 1.02


def _rise_together(column: npt.NDArray[np.generic], key: Ints) -> bool:
    enough = min(len(np.unique(key)), len(np.unique(column))) >= _VALUES
    if len(key) < _RECORDS or not enough:
        return False
    found = np.corrcoef(_ranks(column), _ranks(key))[0, 1]
    return bool(abs(found) >= _TOGETHER)


def _ranks(values: npt.NDArray[np.generic]) -> Floats:
    """Return the middle rank of each value."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle: Floats = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(middle[places.ravel()], np.float64)


def _pair_tells(places: Mapping[str, Ints], others: Sequence[str], key: str) -> list[str]:
    """Return two columns whose codes together are a key in another form: school and doctor tell a street."""
    hidden = places[key]
    for pair in itertools.islice(itertools.combinations(others, 2), _PAIRS):
        one, two = (places[name] for name in pair)
        known = (one >= 0) & (two >= 0) & (hidden >= 0)
        both = combined([one[known], two[known]], int(known.sum()))
        if len(np.unique(both)) > known.sum() // _ALIKE or len(np.unique(hidden[known])) < 2:
            continue
        if Mates.of(both, hidden[known], np.zeros(len(both), np.int64)).is_form:
            return list(pair)
    return []


def _sum_tells(rows: pa.Table, others: Sequence[str], key: str, place: Ints) -> list[str]:
    """Return numbers whose sums or products rise with a key: total and bonus tell a salary."""
    found = {name: Released.of(rows.column(name)) for name in others}
    numbers = {name: one.places for name, one in found.items() if one.is_number}
    target = Released.of(rows.column(key))
    if not target.is_number or len(numbers) < 2 or len(place) < _RECORDS + 5 * len(numbers):
        return []
    known = place >= 0
    left = {name: values[known] for name, values in numbers.items()}
    return _needed(left, target.places[known]) or _factors(left, target.places[known])


def _needed(columns: Mapping[str, Floats], target: Floats) -> list[str]:
    """Return the columns without which a regression does not rise with a target; none if none does."""
    left = dict(columns)
    if not left or not _explain(left, target):
        return []
    for name in list(left):
        fewer = {other: values for other, values in left.items() if other != name}
        if fewer and _explain(fewer, target):
            left = fewer
    return list(left)


def _factors(columns: Mapping[str, Floats], target: Floats) -> list[str]:
    """Return columns whose product or quotient rises with a target: weight and BMI tell a height."""
    # A few zeros have no logarithm, and do not hide the others.
    positive = {n: v for n, v in columns.items() if np.mean(v > 0) >= _POSITIVE}
    if len(positive) < 2 or np.mean(target > 0) < _POSITIVE:
        return []
    seen = np.logical_and.reduce([target > 0, *(v > 0 for v in positive.values())])
    if seen.sum() < _RECORDS + 5 * len(positive):
        return []
    return _needed({n: np.log(v[seen]) for n, v in positive.items()}, np.log(target[seen]))


def _explain(columns: Mapping[str, Floats], target: Floats) -> bool:
    """Whether a regression on the columns rises with a target."""
    design = np.column_stack([np.ones(len(target)), *columns.values()])
    scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
    weights = np.linalg.lstsq(design / scale, target, rcond=1e-10)[0]
    fitted = design / scale @ weights
    spread = float(fitted.std())
    return spread > 0 and _rise_together(np.round(fitted / spread, 9), codes_of(target))


def codes_of(values: Floats) -> Ints:
    """Return numbers as places in their order."""
    return np.unique(values, return_inverse=True)[1].ravel().astype(np.int64)

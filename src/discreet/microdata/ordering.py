"""What an attacker gains who orders each group of people by what is released.

Inside a group the values are known and who has which is not. A column that follows the hidden
one (a tax, a monthly amount) orders the group's members, and the order gives the values away. The
curator measures it with the true values: what no released column can order, alone or together with
the others, no attacker can.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.microdata.columns import combined
from discreet.report import Report, Rows

__all__ = [
    "CERTAIN",
    "TOLERATED",
    "Ordering",
    "Released",
    "Trial",
    "learned",
    "measured",
    "places_of",
    "predicting",
    "tried",
]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: An attack that is right for so many more of the records than blind guessing is not tolerated.
TOLERATED = 0.2
#: Standard deviations by which it must be right more often than by chance.
CERTAIN = 4.0
#: Records that the mean of the whole file counts for in the mean of a code.
_PRIOR = 2.0
#: Pairs and triples of columns that are tried; records that say what a code stands for, at least.
_PAIRED = 28
_SHARED = 3
#: What codes stand for is learned from all parts of the people but one.
_PARTS = 3
#: Times of a day, and days and moments as texts have them.
_NUMBERED = re.compile(r"(\D*)(\d{1,15})(\D*)")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_DAYS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%d.%m.%Y",
    "%d/%m/%Y",
)
#: Columns whose products a regression looks at.
_MULTIPLIED = 8
#: Records in a stretch of a column, at least, and number of stretches, at most.
_STRETCH = 12
_STRETCHES = 64
#: Pieces of the smooth curves that are tried: few where there is much noise, many where it bends.
_PIECES = (6, 16, 40)
#: Each part of the groups is ordered by what is learned from all others.
_FOLDS = 10
#: People whose values are looked up at once.
_AT_ONCE = 50_000
#: Below this share of the largest variance a combination of columns is taken for noise.
_NOISE = 1e-12


@dataclasses.dataclass(frozen=True, eq=False)
class Released:
    """A released column: its values as numbers in their order, and as codes where there are few."""

    places: Floats
    #: Whether the order of the values is one of sizes, so that sums and ratios mean something.
    is_number: bool

    @classmethod
    def of(cls, column: Any) -> Released:
        """Return a released column as an attacker uses it. Any: an Arrow column of any type."""
        from discreet.microdata.columns import is_number

        sizes = measured(column)
        if sizes is not None:
            return cls(sizes, is_number=True)
        return cls(places_of(column), is_number(column.type))


@dataclasses.dataclass(frozen=True)
class Ordering(Report):
    """How often attackers are right who order each group by released columns."""

    records: int
    #: The strongest column, or "all columns" where they tell more together.
    strongest: str
    #: Share of the records whose exact value the strongest attack finds.
    accuracy: float
    #: Share that guessing the commonest value of the group finds.
    baseline: float
    #: The share found with each column, and with all of them together.
    found: Mapping[str, float]

    @property
    def advantage(self) -> float:
        """How much more often the attack is right than blind guessing."""
        return self.accuracy - self.baseline

    def rows(self) -> Rows:
        """One line per attack, the strongest first."""
        body = sorted(self.found.items(), key=lambda item: -item[1])
        return ("ordered by", "exact values found"), [*body, ("blind guessing", self.baseline)]


ALL = "all columns"


class Trial:
    """Some groups with their true values, on which orderings are tried.

    Parameters
    ----------
    rows
        The records looked at, by group.
    label
        The group of each of them: 0, 1, …
    classes, values
        Their hidden values, as places and as numbers to learn from.
    owners
        Whose each of all records is, where people have several.
    """

    def __init__(
        self,
        rows: Integers,
        label: Integers,
        classes: Integers,
        values: Floats,
        *,
        is_number: bool,
        owners: Integers | None = None,
    ) -> None:
        self.rows, self.label, self.classes, self.values = rows, label, classes, values
        self.is_number = is_number
        self._width = int(self.classes.max(initial=0)) + 1
        self._ranked = self.classes[np.lexsort((self.classes, self.label))]
        # What is learned for the groups of a fold is learned from all other groups.
        self.folds = max(1, min(_FOLDS, int(self.label.max(initial=-1)) + 1))
        self.fold = self.label % self.folds
        #: Who owns each record; a person in two groups is looked at in each of them.
        self._person = np.arange(len(self.rows))
        if owners is not None:
            both = np.stack((self.label, owners[self.rows]))
            self._person = np.unique(both, axis=1, return_inverse=True)[1].ravel()
        own = np.unique(self._person * self._width + self.classes)
        person, self._value = np.divmod(own, self._width)
        people = int(self._person.max(initial=-1)) + 1
        #: Where the different values of each person begin.
        self._first = np.searchsorted(person, np.arange(people + 1))
        self.baseline = self._commonest(person) / len(self.rows)
        #: Matches that an order by lot makes; their number varies about as much as it is large.
        self.by_lot = self.accuracy(np.zeros(len(self.rows))) * len(self.rows)

    def _commonest(self, person: Integers) -> float:
        """Return how many records get a value of their owner if each group guesses its best value."""
        label = np.zeros(len(self._first) - 1, dtype=np.int64)
        label[self._person] = self.label
        records = np.bincount(self._person, minlength=len(label))
        key, where = np.unique(label[person] * self._width + self._value, return_inverse=True)
        count = np.bincount(where.ravel(), records[person])
        most = np.zeros(int(self.label.max(initial=-1)) + 1)
        np.maximum.at(most, key // self._width, count)
        return float(most.sum())

    def learning(self) -> Iterator[tuple[Flags, Flags]]:
        """Give the records of each fold and those that it learns from: all others, if there are."""
        for fold in range(self.folds):
            own = self.fold == fold
            yield own, ~own if self.folds > 1 else own

    def meaning(self, codes: Integers) -> float:
        """Return the success of whoever knows what codes stand for, as a public pay scale says it.

        Where a code lies in one group, other groups say nothing about it; how often it occurs there
        may. It is learned from all records but those of some people, on whom it is then tried.
        """
        size, values = int(codes.max(initial=0)) + 1, self.values
        middle, right = float(values.mean()), 0.0
        for part in range(_PARTS):
            own = self._person % _PARTS == part
            count = np.bincount(codes[~own], minlength=size)
            total = np.bincount(codes[~own], values[~own], minlength=size)
            means = np.where(count >= _SHARED, total / np.maximum(count, 1), middle)
            right += self.accuracy(means[codes], own) * int(own.sum())
        return right / max(len(codes), 1)

    def accuracy(self, score: Floats, among: Flags | None = None) -> float:
        """Return the share of records that get a value of their owner if groups are ordered by a score.

        Of `among` alone, if given; the others take their places all the same.
        Records with equal scores share the values of their places: what is expected counts, so that
        the same file is always judged alike.
        """
        order = np.lexsort((score, self.label))
        sorted_by, label = score[order], self.label[order]
        new = (sorted_by[1:] != sorted_by[:-1]) | (label[1:] != label[:-1])
        block = np.concatenate(([0], np.cumsum(new))) if len(order) else order
        size = np.bincount(block)
        offered, times = np.unique(block * self._width + self._ranked, return_counts=True)
        people = len(self._first) - 1
        looked = block * people + self._person[order]
        if among is not None:
            looked = looked[among[order]]
        alike, records = np.unique(looked, return_counts=True)
        right = 0.0
        for start in range(0, len(alike), _AT_ONCE):
            place, person = np.divmod(alike[start : start + _AT_ONCE], people)
            many = self._first[person + 1] - self._first[person]
            each = np.repeat(np.arange(len(person)), many)
            step = np.arange(len(each)) - np.repeat(np.cumsum(many) - many, many)
            key = place[each] * self._width + self._value[self._first[person][each] + step]
            found = np.minimum(np.searchsorted(offered, key), len(offered) - 1)
            hits = np.where(offered[found] == key, times[found], 0)
            weight = records[start : start + _AT_ONCE] / size[place]
            right += float((hits * weight[each]).sum())
        return right / max(len(looked), 1)

    @property
    def can_be_certain(self) -> bool:
        """Whether an attack that is always right would be found out: in tiny files none is."""
        return self.baseline + TOLERATED < 1 and self.is_certain(1.0)

    def is_certain(self, accuracy: float) -> bool:
        """Whether so many matches are no accident."""
        surplus = accuracy * len(self.rows) - self.by_lot
        return surplus > CERTAIN * math.sqrt(max(self.by_lot, 1.0))


def measured(column: Any) -> Floats | None:
    """Return days, points in time and texts that hold them or numbers as sizes; None for all else.

    The time between two of them is what a stay or an age is made of. Any: an Arrow column.

    >>> import pyarrow as pa
    >>> measured(pa.array(["06:30", "07:00", None])).tolist(), measured(pa.array(["a", "07:00"]))
    ([0.0, 1800.0, -1.0], None)
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return measured(column.cast(kind.value_type))
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if missing.all():
        return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        coded = column.dictionary_encode()
        words = _sizes(coded.dictionary.to_pylist())
        if words is None:
            return None
        found = np.array(words)[coded.indices.fill_null(0).to_numpy()]
    elif pa.types.is_temporal(kind):
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            # Nanoseconds since 1970 are more than a double tells apart.
            column = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        steps = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
        found = pc.subtract(steps, pc.min(steps)).fill_null(0).to_numpy().astype(np.float64)
    else:
        return None
    return np.where(missing, -1.0, found - found[~missing].min())


def _sizes(words: Sequence[str]) -> list[float] | None:
    """Return texts as sizes where each of them is a time, or each a day or moment, or a number."""
    clock = [_CLOCK.fullmatch(word) for word in words]
    if not words:
        return None
    if all(clock):
        return [
            float(hour) * 3600 + float(minute) * 60 + float(second or 0)
            for hour, minute, second in (found.groups() for found in clock if found)
        ]
    for pattern in _DAYS:
        try:
            moments = [
                datetime.datetime.strptime(w, pattern).replace(tzinfo=datetime.UTC) for w in words
            ]
            return [moment.timestamp() for moment in moments]
        except (ValueError, OverflowError, OSError):
            continue
    try:
        found = [float(word.replace(",", ".")) for word in words]
    except ValueError:
        numbered = [_NUMBERED.fullmatch(word) for word in words]
        if not all(numbered) or len({(n[1], n[3]) for n in numbered if n}) > 1:
            return None
        found = [float(n[2]) for n in numbered if n]
    return found if all(map(math.isfinite, found)) else None


def places_of(column: Any) -> Floats:
    """Return a column as numbers in the order of its values; missing ones before all others.

    Any: an Arrow column of any type.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_temporal(column.type) or not (
        pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_decimal(column.type)
    ):
        coded = column.combine_chunks().dictionary_encode()
        words = coded.dictionary.to_pylist()
        rank = np.empty(len(words) + 1)
        rank[-1] = -1.0  # missing
        rank[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
        return np.asarray(rank[coded.indices.fill_null(len(words)).to_numpy()])
    numbers = column.cast(pa.float64(), safe=False).to_numpy()  # rounding keeps the order
    # Squares of such numbers can be added up; an infinite value is a very large one.
    numbers = np.clip(numbers, -1e100, 1e100)
    known = numbers[~np.isnan(numbers)]
    return np.where(np.isnan(numbers), (known.min() if len(known) else 0.0) - 1.0, numbers)


def predicting(trial: Trial, columns: Mapping[str, Released]) -> tuple[list[str], Ordering | None]:
    """Return the columns that may not leave together, and what orders by all of them find."""
    left, telling, first = dict(columns), [], None
    while left and trial.can_be_certain:
        found = tried(trial, left)
        first = first or found
        if found.advantage <= TOLERATED or not trial.is_certain(found.accuracy):
            break
        worst = found.strongest if found.strongest != ALL else _most_telling(trial, left)
        telling.append(worst)
        del left[worst]
    return telling, first


def tried(trial: Trial, columns: Mapping[str, Released]) -> Ordering:
    """Order the groups by every column, and by all of them together."""
    from threadpoolctl import (  # type: ignore[import-untyped]  # it has no annotations
        threadpool_limits,
    )

    # Threads of small products wait for each other, on a busy machine for ten times as long.
    with threadpool_limits(limits=1, user_api="blas"):
        found = {name: _alone(trial, column) for name, column in columns.items()}
        if len(columns) > 1:
            found[ALL] = _together(trial, list(columns.values()))
    strongest = max(found, key=lambda name: found[name], default="")
    best = found.get(strongest, 0.0)
    return Ordering(len(trial.rows), strongest, best, trial.baseline, found)


def _alone(trial: Trial, column: Released) -> float:
    """Return the success of ordering by one column: upwards, downwards, or by what its codes mean."""
    places = column.places[trial.rows]
    means = (learned(trial, places), _lines(trial, places), *_curves(trial, places))
    found = [trial.accuracy(score) for score in (places, -places, *means)]
    return max(*found, trial.meaning(np.unique(places, return_inverse=True)[1].ravel()))


def _together(trial: Trial, columns: Sequence[Released]) -> float:
    """Return the success of ordering by a regression on all columns, or by what two of them mean."""
    scores = (_regression(trial, *design) for design in _designs(trial, columns))
    tried_scores = map(trial.accuracy, itertools.chain(scores, _pairs(trial, columns)))
    return max(itertools.chain(tried_scores, map(trial.meaning, _joined(trial, columns))))


def _pairs(trial: Trial, columns: Sequence[Released]) -> Iterator[Floats]:
    """Give what two columns of sizes say together: difference, distance, larger, smaller, share."""
    sizes = [column.places[trial.rows] for column in columns if column.is_number]
    for x, y in itertools.islice(itertools.combinations(sizes, 2), _PAIRED):
        share = np.divide(x, x + y, out=np.zeros_like(x), where=x + y != 0)
        for score in (x - y, np.abs(x - y), np.maximum(x, y), np.minimum(x, y), share):
            yield score
            yield -score


def _joined(trial: Trial, columns: Sequence[Released]) -> Iterator[Integers]:
    """Give the codes of two and of three columns together, where enough records share each."""
    codes = [
        np.unique(column.places[trial.rows], return_inverse=True)[1].ravel() for column in columns
    ]
    for number in (2, 3):
        for some in itertools.islice(itertools.combinations(codes, number), _PAIRED):
            both = combined(list(some), len(trial.rows))
            if int(both.max(initial=0)) < len(both) // _SHARED:
                yield both


def _designs(trial: Trial, columns: Sequence[Released]) -> list[tuple[Floats, Floats]]:
    """Return what regressions are made of.

    Sums of columns, sums of logarithms for products, and sums of products and of what stretches of
    each column mean, for relations that are neither straight nor rising.
    """
    plain, logs = [np.ones(len(trial.rows))], [np.ones(len(trial.rows))]
    bent: list[Floats] = []
    for column in columns:
        places = column.places[trial.rows]
        means = learned(trial, places)
        plain += [_scaled(places), _scaled(means)]
        bent += [_scaled(means), _scaled(_lines(trial, places))]
        bent += [_scaled(curve) for curve in _curves(trial, places)]
        if column.is_number and (places > 0).all():
            logs.append(_scaled(np.log(places)))
        else:
            logs.append(_scaled(means))
    found = [(np.column_stack(plain), trial.values)]
    # The rest is of columns as they are: a sum is found even where nothing else fits.
    found.append((np.column_stack([plain[0], *plain[1::2]]), trial.values))
    straight = plain[1::2][:_MULTIPLIED]
    products = [one * two for one, two in itertools.combinations_with_replacement(straight, 2)]
    found.append((np.column_stack([plain[0], *plain[1::2], *bent, *products]), trial.values))
    if trial.is_number and (trial.values > 0).all():
        found.append((np.column_stack(logs), np.log(trial.values)))
    return found


def _stretches(places: Floats) -> Floats:
    """Return the stretch that each value lies in, each of about as many records."""
    ranks = np.argsort(np.argsort(places, kind="stable"), kind="stable")
    number = int(np.clip(len(places) // _STRETCH, 1, _STRETCHES))
    # Equal values lie in one stretch: that of the first of them.
    _, first = np.unique(places, return_inverse=True)
    least = np.full(int(first.max(initial=0)) + 1, len(places))
    np.minimum.at(least, first.ravel(), ranks)
    return np.asarray(least[first.ravel()] * number // max(len(places), 1), np.float64)


def _lines(trial: Trial, places: Floats) -> Floats:
    """Return what a line through each stretch of a column says, learned on the other groups."""
    stretch = np.asarray(_stretches(places), np.int64)
    size, x, y = int(stretch.max(initial=0)) + 1, _scaled(places), trial.values
    found = np.empty(len(places))
    for own, other in trial.learning():
        here = stretch[other]
        count, sums, totals, squares, products = (
            np.bincount(here, weights, minlength=size)
            for weights in (None, x[other], y[other], x[other] ** 2, (x * y)[other])
        )
        known = np.maximum(count, 1)
        middle = np.where(count > 0, totals / known, y[other].mean())
        variance = squares - sums**2 / known
        slope = (products - sums * totals / known) / np.where(variance > 1e-12, variance, np.inf)
        place = stretch[own]
        found[own] = middle[place] + slope[place] * (x[own] - (sums / known)[place])
    return found


def _curves(trial: Trial, places: Floats) -> list[Floats]:
    """Return what smooth curves of few and of many pieces say, learned on the other groups."""
    from scipy.interpolate import BSpline

    found = []
    distinct = len(np.unique(places))
    for pieces in _PIECES:
        ends = np.unique(np.quantile(places, np.linspace(0, 1, pieces + 1)))
        if len(ends) < 3 or distinct < 2 * len(ends):  # the means of the values say as much
            continue
        knots = np.concatenate([[ends[0]] * 3, ends, [ends[-1]] * 3])
        basis = BSpline.design_matrix(places, knots, 3).toarray()
        found.append(_regression(trial, basis, trial.values))
    return found


def learned(trial: Trial, places: Floats) -> Floats:
    """Return for each record the mean value of its code, learned on the other groups."""
    _, codes = np.unique(places, return_inverse=True)
    codes = codes.ravel()
    found = np.empty(len(codes))
    size = int(codes.max(initial=0)) + 1
    for own, other in trial.learning():
        count = np.bincount(codes[other], minlength=size)
        total = np.bincount(codes[other], trial.values[other], minlength=size)
        middle = trial.values[other].mean()
        means = (total + _PRIOR * middle) / (count + _PRIOR)
        found[own] = means[codes[own]]
    return found


def _regression(trial: Trial, features: Floats, target: Floats) -> Floats:
    """Return what least squares say of each record, learned on the other groups."""
    found = np.empty(len(target))
    # Sums over all others are those over everybody without one's own part: added up once.
    squares, products = features.T @ features, features.T @ target
    for own, _ in trial.learning():
        mine, left, right = features[own], squares, products
        if trial.folds > 1:
            left, right = squares - mine.T @ mine, products - mine.T @ target[own]
        size, axes = np.linalg.eigh(left)
        kept = size > _NOISE * max(float(size[-1]), 1e-300)
        found[own] = mine @ (axes[:, kept] @ ((axes[:, kept].T @ right) / size[kept]))
    # People who look alike score alike, whatever the last digits of a product are.
    spread = float(found.std())
    return np.round(found / spread, 9) if spread > 0 else found


def _scaled(values: Floats) -> Floats:
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def _most_telling(trial: Trial, columns: Mapping[str, Released]) -> str:
    """Return the column without which the others tell least."""
    without = {
        name: _together(trial, [column for other, column in columns.items() if other != name])
        for name in columns
    }
    return min(without, key=lambda name: without[name])

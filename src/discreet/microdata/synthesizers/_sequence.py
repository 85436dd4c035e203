"""Columns drawn one after the other from trees on the columns before them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from discreet.errors import InputError
from discreet.microdata.columns import Numbers, Places
from discreet.microdata.synthesizers._base import Fitted
from discreet.microdata.synthesizers._leaves import Leaves, grow, matrix, ranks
from discreet.microdata.synthesizers._rules import Rule, read_rules
from discreet.microdata.synthesizers._score import worth_scoring
from discreet.microdata.synthesizers._smoothing import smoothed
from discreet.microdata.synthesizers._variables import Variable
from discreet.progress import Progress, silent
from discreet.randomness import Randomness

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset
    from discreet.microdata.synthesizers._base import Synthesizer

__all__ = ["Columns", "Options", "Plan", "Planned", "several"]

#: Below so many records leaves of 50 keep too little of what columns say of each other.
_SMALL, _SMALL_LEAF, _LEAF = 10_000, 25, 50


@dataclasses.dataclass(frozen=True)
class Options:
    """How trees are grown and drawn from, as a method states it. Any: see the parameters of CART."""

    min_leaf: int | None
    predictors: Mapping[str, Any]
    smoothing: Mapping[str, str]
    rules: Mapping[str, Any]
    semicontinuous: Mapping[str, Any]
    proper: bool
    #: Whether trees draw numbers, too, and not only where they are missing.
    numbers: bool = True


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """Everything that is known before a tree is grown."""

    options: Options
    #: The columns as the file has them, and as they are drawn.
    names: tuple[str, ...]
    order: list[Variable]
    limits: Mapping[str, tuple[float, float] | None]
    #: So many columns, the first of the order, are kept as they are.
    kept: int = 0
    #: The plan whose settings are used; None where they are found by these records.
    settled: Plan | None = None

    @property
    def records(self) -> int:
        return int(self.order[0].places.size)

    @property
    def min_leaf(self) -> int:
        if self.settled is not None:
            return self.settled.min_leaf
        if self.options.min_leaf is not None:
            return self.options.min_leaf
        return _SMALL_LEAF if self.records < _SMALL else _LEAF

    @functools.cached_property
    def scored(self) -> frozenset[tuple[str, bool]]:
        """The parts of columns that boosted trees draw: see `worth_scoring`."""
        if self.settled is not None:
            return self.settled.scored
        if self.order[0].owner is not None:  # boosted trees count records, and not units
            return frozenset()
        return frozenset(
            (variable.name, ordinary)
            for variable, used, rows, _ in self._columns()
            if len(used) > 1
            for target, ordinary, _ in self._parts(variable, rows)
            if not (ordinary and variable.numeric) and worth_scoring(target, self.min_leaf)
        )

    def like(self, other: Plan) -> Plan:
        """Return the plan with the settings, and the order of columns, of another one."""
        known = {variable.name: variable for variable in self.order}
        order = [known[variable.name] for variable in other.order]
        return dataclasses.replace(self, order=order, settled=other)

    def grown(self, rng: Randomness, progress: Progress = silent) -> list[Step]:
        """Return the trees of all columns."""
        steps = []
        for place, (variable, used, rows, fixed) in enumerate(self._columns()):
            progress("trees", self.kept + place, len(self.order))
            if self.options.proper:
                free = np.zeros(self.records, bool)
                free[rows] = True
                rows = np.sort(rng.integers(0, self.records, self.records))
                rows = rows[free[rows]]
            steps.append(self._step(variable, used, rows, fixed, rng))
        progress("trees", len(self.order), len(self.order))
        return steps

    def _columns(self) -> Iterator[tuple[Variable, Sequence[Variable], Places, Sequence[Rule]]]:
        """Give the columns drawn: with what they are drawn from, records no rule fixes, and the rules."""
        rules = read_rules(self.options.rules, [v.name for v in self.order])
        originals = {v.name: v.taken(v.places) for v in self.order} if rules else {}
        for place, variable in enumerate(self.order[self.kept :], start=self.kept):
            used = self.order[:place]
            if variable.name in self.options.predictors:
                chosen = several(self.options.predictors[variable.name])
                used = [v for v in used if v.name in chosen]
            rows = np.arange(self.records)
            fixed = rules.get(variable.name, [])
            if fixed:
                rows = rows[_fixed(fixed, variable, originals, self.records) < 0]
            yield variable, used, rows, fixed

    def _parts(self, variable: Variable, rows: Places) -> Iterator[tuple[np.ndarray, bool, Places]]:
        """Give what is drawn of a column: missing values and point masses first, what is ordinary after."""
        masses = several(self.options.semicontinuous.get(variable.name, ()))
        pattern = _pattern(variable, masses)
        if rows.size and pattern is not None:
            found = pattern[variable.places[rows]]
            yield found, False, rows
            rows = rows[found == 0]
        if rows.size and (self.options.numbers or not variable.numeric):
            target = variable.places[rows]
            yield variable.scale[target] if variable.numeric else target, True, rows

    def _step(
        self,
        variable: Variable,
        used: Sequence[Variable],
        rows: Places,
        fixed: Sequence[Rule],
        rng: Randomness,
    ) -> Step:
        masses = several(self.options.semicontinuous.get(variable.name, ()))
        pattern = _pattern(variable, masses)
        stages = [
            self._stage(
                target,
                ordinary and variable.numeric,
                used,
                own,
                scores=(variable.name, ordinary) in self.scored,
                rng=rng,
            )
            for target, ordinary, own in self._parts(variable, rows)
        ]
        way = self.options.smoothing.get(variable.name)
        if way is not None and not variable.numeric:
            raise InputError(
                f"column {variable.name!r} holds no numbers and cannot be smoothed",
                code="not-numeric",
                column=variable.name,
            )
        return Step(variable, used, pattern, stages, fixed, way, self.limits.get(variable.name))

    def _stage(
        self,
        target: np.ndarray,
        numeric: bool,
        used: Sequence[Variable],
        rows: Places,
        *,
        scores: bool,
        rng: Randomness,
    ) -> Stage:
        if not numeric:
            target = np.unique(target, return_inverse=True)[1].ravel()
        orders = [ranks(v, target, rows, numeric=numeric) for v in used]
        seen = _matrix(orders, [v.places[rows] for v in used], rows.size)
        owner = self.order[0].owner
        leaves = grow(
            seen,
            target,
            rows,
            numeric=numeric,
            min_leaf=self.min_leaf,
            owner=None if owner is None else owner[rows],
            scores=scores,
            rng=rng,
        )
        return Stage(orders, leaves)


@dataclasses.dataclass(frozen=True, eq=False)
class Stage:
    """One tree, and the orders in which it saw the codes of each predictor."""

    orders: Sequence[Sequence[Numbers]]
    leaves: Leaves


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
    """One column: codes of missing values and point masses first, then what is ordinary."""

    variable: Variable
    used: Sequence[Variable]
    pattern: Places | None
    stages: Sequence[Stage]
    rules: Sequence[Rule]
    smoothing: str | None
    limits: tuple[float, float] | None

    def draw(
        self, drawn: Mapping[str, Places], columns: Mapping[str, pa.Array], n: int, rng: Randomness
    ) -> tuple[Places, pa.Array]:
        """Return the places of the values drawn, and the values."""
        held = np.full(n, -1) if not self.rules else _fixed(self.rules, self.variable, columns, n)
        places = np.where(held >= 0, held, len(self.variable.values))
        free = np.flatnonzero(held < 0)
        if free.size and not self.stages:
            raise InputError(
                f"the rules of column {self.variable.name!r} hold for every original record, and "
                "not for every synthetic one",
                code="rules-cover-all",
                hint="leave the column out, or narrow the condition",
                column=self.variable.name,
            )
        ordinary = free
        leaf = np.empty(0, np.int64)
        for number, stage in enumerate(self.stages):
            seen = [drawn[v.name][ordinary] for v in self.used]
            predictors = _matrix(stage.orders, seen, ordinary.size)
            donors = stage.leaves.draw(predictors, rng=rng)
            places[ordinary] = self.variable.places[donors]
            last = number == len(self.stages) - 1
            if not last and self.pattern is not None:
                ordinary = ordinary[self.pattern[places[ordinary]] == 0]
            elif self.smoothing is not None:
                leaf = stage.leaves.leaf(predictors)
        if self.smoothing is None or not ordinary.size:
            return places, self.variable.taken(places)
        if self.pattern is not None:  # masses and missing values keep their value
            at = self.pattern[places[ordinary]] == 0
            ordinary, leaf = ordinary[at], leaf[at]
        values = self.variable.scale[places]
        values[ordinary] = smoothed(
            self.variable, self.stages[-1].leaves, leaf, values[ordinary], self.limits, rng=rng
        )
        near = np.searchsorted(self.variable.scale[:-1], values[ordinary])
        places[ordinary] = np.minimum(near, len(self.variable.values) - 1)
        return places, self.variable.numbers(values)


@runtime_checkable
class Planned(Protocol):
    """A method that draws columns one after the other."""

    def plan(self, dataset: Dataset) -> Plan:
        """Return everything that is known before a tree is grown."""


class Columns(Fitted):
    """Trees of all columns, drawn from in order."""

    def __init__(self, plan: Plan, steps: list[Step] | None, progress: Progress) -> None:
        self.notes = {"smallest leaf": plan.min_leaf}
        self.size = plan.records
        self._plan, self._steps, self._progress = plan, steps, progress

    def again(self, method: Synthesizer, dataset: Dataset, *, rng: Randomness) -> Columns:
        """Grow the trees anew on other records, with these settings."""
        assert isinstance(method, Planned)
        return Columns.of(method.plan(dataset).like(self._plan), rng, silent)

    @classmethod
    def of(cls, plan: Plan, rng: Randomness, progress: Progress) -> Columns:
        """Return trees that are grown now, or for each file anew where the plan says so."""
        return cls(plan, None if plan.options.proper else plan.grown(rng, progress), progress)

    def draw(self, n: int, *, rng: Randomness) -> pa.Table:
        """Return n records."""
        import pyarrow as pa

        steps = self._steps or self._plan.grown(rng, self._progress)
        drawn: dict[str, Places] = {}
        columns: dict[str, Any] = {}
        for done, step in enumerate(steps):
            self._progress("columns", done, len(steps))
            name = step.variable.name
            drawn[name], columns[name] = step.draw(drawn, columns, n, rng)
        self._progress("columns", len(steps), len(steps))
        return pa.table({name: columns[name] for name in self._plan.names})


def _matrix(orders: Sequence[Sequence[Numbers]], places: Sequence[Places], rows: int) -> np.ndarray:
    if not orders:
        return np.empty((rows, 0), np.float32)
    return matrix(list(zip(orders, places, strict=True)))


def _pattern(variable: Variable, masses: Sequence[Any]) -> Places | None:
    """Return for each place 0 for an ordinary number, else a code; None where all are ordinary."""
    if not variable.numeric:
        if masses:
            raise InputError(
                f"column {variable.name!r} holds no numbers, so it has no point masses",
                code="not-numeric",
                hint="leave it out of semicontinuous: codes are drawn as codes",
                column=variable.name,
            )
        return None
    found = np.zeros(variable.width, np.int64)
    found[-1] = 1
    for number, mass in enumerate(masses):
        if not isinstance(mass, int | float):
            raise InputError(
                f"a point mass of column {variable.name!r} is not a number",
                code="parameter-type",
                hint="write semicontinuous={'gain': 0}",
                column=variable.name,
            )
        found[:-1][variable.scale[:-1] == mass] = 2 + number
    return found if found[variable.places].any() else None


def _fixed(
    rules: Sequence[Rule], variable: Variable, columns: Mapping[str, pa.Array], n: int
) -> Places:
    """Return the place that the rules give each record, −1 where none holds."""
    held = np.full(n, -1)
    for rule in rules:
        place = variable.place_of(rule.value)
        holds = rule.holds(columns)
        if ((held[holds] >= 0) & (held[holds] != place)).any():
            raise InputError(
                f"two rules of column {variable.name!r} hold for one record and contradict each "
                "other",
                code="rules-contradict",
                hint="narrow one of the conditions",
                column=variable.name,
            )
        held[holds] = place
    return held


def several(given: Any) -> tuple[Any, ...]:
    """Return one or several things as several. Any: whatever a caller wrote."""
    return tuple(given) if isinstance(given, list | tuple) else (given,)

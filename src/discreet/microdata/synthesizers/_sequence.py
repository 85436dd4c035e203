"""Columns drawn one after the other from trees on the columns before them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InputError
from discreet.microdata.columns import Numbers, Places
from discreet.microdata.synthesizers._base import Fitted
from discreet.microdata.synthesizers._leaves import Leaves, grow, matrix, ranks
from discreet.microdata.synthesizers._rules import Rule, read_rules
from discreet.microdata.synthesizers._smoothing import smoothed
from discreet.microdata.synthesizers._variables import Variable
from discreet.progress import Progress, silent
from discreet.randomness import Randomness

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Columns", "Options", "Plan", "several"]

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

    @property
    def records(self) -> int:
        return int(self.order[0].places.size)

    @property
    def min_leaf(self) -> int:
        if self.options.min_leaf is not None:
            return self.options.min_leaf
        return _SMALL_LEAF if self.records < _SMALL else _LEAF

    def grown(self, rng: Randomness, progress: Progress = silent) -> list[Step]:
        """Return the trees of all columns."""
        rules = read_rules(self.options.rules, [v.name for v in self.order])
        originals = {v.name: v.taken(v.places) for v in self.order} if rules else {}
        steps = []
        for place, variable in enumerate(self.order):
            progress("trees", place, len(self.order))
            if place < self.kept:
                continue
            used = self.order[:place]
            if variable.name in self.options.predictors:
                chosen = several(self.options.predictors[variable.name])
                used = [v for v in used if v.name in chosen]
            rows = np.arange(self.records)
            if self.options.proper:
                rows = np.sort(rng.integers(0, self.records, self.records))
            fixed = rules.get(variable.name, [])
            if fixed:
                held = _fixed(fixed, variable, originals, self.records)
                rows = rows[held[rows] < 0]
            steps.append(self._step(variable, used, rows, fixed, rng))
        progress("trees", len(self.order), len(self.order))
        return steps

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
        stages: list[Stage] = []
        if rows.size and pattern is not None:
            stages.append(self._stage(pattern[variable.places[rows]], False, used, rows, rng))
            rows = rows[pattern[variable.places[rows]] == 0]
        if rows.size and (self.options.numbers or not variable.numeric):
            target = variable.places[rows]
            if variable.numeric:
                stages.append(self._stage(variable.scale[target], True, used, rows, rng))
            else:
                stages.append(self._stage(target, False, used, rows, rng))
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


class Columns(Fitted):
    """Trees of all columns, drawn from in order."""

    def __init__(self, plan: Plan, steps: list[Step] | None, progress: Progress) -> None:
        self.notes = {"smallest leaf": plan.min_leaf}
        self.size = plan.records
        self._plan, self._steps, self._progress = plan, steps, progress

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

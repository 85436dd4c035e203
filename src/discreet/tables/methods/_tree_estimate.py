"""Published counts over a tree of places, with an interval for every cell and every sum of cells."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from discreet.data.table import Dimension, Floats
from discreet.dp.hierarchical.basis import along
from discreet.dp.hierarchical.measurement import Measurements
from discreet.dp.hierarchical.tree import Fit, Ints, variance_of_sum
from discreet.errors import InputError
from discreet.report import Report
from discreet.tables.methods._places import Places

__all__ = ["Interval", "TreeEstimate"]

#: Standard errors on either side that hold the truth 95 times in 100.
_SIDE = 1.959963984540054


@dataclasses.dataclass(frozen=True)
class Interval(Report):
    """What is published of a sum of cells, and between what the truth lies 95 times in 100."""

    value: float
    lower_95: float
    upper_95: float
    #: Standard error of the best linear estimate, on which the interval rests.
    standard_error: float


@dataclasses.dataclass(frozen=True, eq=False)
class TreeEstimate:
    """The estimates of a release: made from measurements, so that everything here may be published."""

    places: Places
    fit: Fit
    #: Whole and non-negative histograms per level; None where the linear estimate is published.
    whole: tuple[Ints, ...] | None = None
    #: What it was made from, where that is published, too.
    measured: Measurements | None = None

    @functools.cached_property
    def _linear(self) -> Floats:
        """The linear estimate, one row of coordinates per code of the spine."""
        return np.asarray(self.places.gathered(self.fit.estimate), dtype=np.float64)

    @functools.cached_property
    def _published(self) -> Floats:
        """What is published of single cells, one row per code of the spine."""
        if self.whole is None:
            return self.places.basis.backward(self._linear)
        return np.asarray(self.places.gathered(self.whole), dtype=np.float64)

    @functools.cached_property
    def value(self) -> Floats:
        """What is published, over the whole cube."""
        return self.places.cube(self._published)

    @functools.cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Between what each cell lies 95 times in 100."""
        places = self.places
        middle = places.cube(places.basis.backward(self._linear))
        # The variance of a cell is a sum over independent coordinates.
        spread = np.asarray(places.gathered(self.fit.variance), dtype=np.float64)
        error = np.sqrt(np.maximum(places.cube(spread, self._turned), 0.0))
        return self._around(middle, error, self.value)

    def of_nodes(self, level: int, nodes: Ints) -> tuple[Floats, Floats, Floats]:
        """Return value and interval of all cells of some places of a level, place by place."""
        places = self.places
        turned = self._turned
        shape = (places.spine.sizes[level], places.basis.cells)
        linear = places.basis.backward(self.fit.estimate[level][nodes])
        spread = np.broadcast_to(self.fit.variance[level], shape)[nodes]
        single = linear if self.whole is None else self.whole[level][nodes].astype(np.float64)
        value = along(single, places.sums).reshape(-1)
        error = np.sqrt(np.maximum(along(spread, turned), 0.0)).reshape(-1)
        middle = value if self.whole is None else along(linear, places.sums).reshape(-1)
        return (value, *self._around(middle, error, value))

    @functools.cached_property
    def _turned(self) -> tuple[Floats, ...]:
        """For each attribute the squared coordinates of its codes: variances are sums over them."""
        return tuple(
            (sums @ matrix.T) ** 2
            for sums, matrix in zip(self.places.sums, self.places.basis.matrices, strict=True)
        )

    def _around(self, middle: Floats, error: Floats, value: Floats) -> tuple[Floats, Floats]:
        lower, upper = middle - _SIDE * error, middle + _SIDE * error
        if self.whole is None:
            return lower, upper
        # Whole numbers from zero on; what is printed never lies outside its own interval.
        lower, upper = np.maximum(np.floor(lower + 1e-6), 0.0), np.ceil(upper - 1e-6)
        return np.minimum(lower, value), np.maximum(upper, value)

    def interval(self, selection: Mapping[str, str | Sequence[str]]) -> Interval:
        """Return the published sum of the selected cells, and its interval."""
        places = self.places
        chosen = _read(places, selection)
        cell = np.ones(1)
        for number, dimension in enumerate(places.attributes):
            rows = chosen.get(dimension.name, [0])
            cell = np.kron(cell, places.sums[number][rows].sum(axis=0))
        codes = np.array(chosen.get(places.name, [0]))
        weights: dict[int, Floats] = {}
        for code in codes:
            level = int(places.level_of[code])
            row = weights.setdefault(level, np.zeros(places.spine.sizes[level]))
            row[places.node_of[code]] += 1
        turned = places.basis.forward(cell[None, :])[0]
        middle = float(self._linear[codes].sum(axis=0) @ turned)
        error = math.sqrt(max(float(variance_of_sum(self.fit, weights) @ turned**2), 0.0))
        value = float((self._published[codes] @ cell).sum())
        lower, upper = self._around(np.array([middle]), np.array([error]), np.array([value]))
        return Interval(value, float(lower[0]), float(upper[0]), error)


def _read(places: Places, selection: Mapping[str, str | Sequence[str]]) -> dict[str, list[int]]:
    """Return the places of the selected codes of each dimension."""
    known = {dimension.name: dimension for dimension in places.dimensions}
    if not isinstance(selection, Mapping):
        raise InputError(
            f"a selection names codes of attributes, found {type(selection).__name__}",
            code="bad-selection",
            hint=f"write {{{places.name!r}: [code, …]}}",
        )
    found = {}
    for name, given in selection.items():
        if name not in known:
            raise InputError(
                f"the table has no attribute {name!r}",
                code="unknown-attribute",
                hint="choose among " + ", ".join(known),
                column=name,
            )
        codes = [given] if isinstance(given, str) else list(given)
        unknown = [code for code in codes if code not in known[name].index]
        if unknown or not codes or len(set(codes)) < len(codes):
            raise InputError(
                f"dimension {name!r} has no code {unknown[0]!r}"
                if unknown
                else f"name each code of {name!r} once, and at least one",
                code="unknown-code",
                column=name,
            )
        found[name] = [known[name].index[code] for code in codes]
        _require_apart(known[name], found[name])
    return found


def _require_apart(dimension: Dimension, chosen: Sequence[int]) -> None:
    """Refuse codes one of which is a part of another: its people would count twice."""
    for code in chosen:
        for parents in dimension.parents:
            above = int(parents[code])
            while above >= 0:
                if above in chosen:
                    part, whole = dimension.codes[code], dimension.codes[above]
                    raise InputError(
                        f"code {part!r} of {dimension.name!r} is a part of {whole!r}",
                        code="overlapping-codes",
                        hint="name one of them",
                        column=dimension.name,
                    )
                above = int(parents[above])

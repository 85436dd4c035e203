"""Mondrian multidimensional partitioning."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.data.schema import Type
from discreet.errors import InputError
from discreet.microdata.classes import Integers, Numbers
from discreet.microdata.frequency_set import Coded, FrequencySet, as_texts
from discreet.microdata.methods._base import (
    Anonymization,
    Outcome,
    by_record,
    require_feasible,
    require_records_suffice,
)
from discreet.microdata.models import Model
from discreet.microdata.models._base import require_enough
from discreet.microdata.recoding import matched
from discreet.progress import Progress, silent
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset
    from discreet.microdata.search.attribute import Attribute
    from discreet.microdata.search.public_cells import PublicCells

__all__ = ["Mondrian"]

#: Up to this many values are listed by name; of more the first and the last in alphabetical order.
_LISTED = 12


@dataclasses.dataclass(frozen=True)
class Mondrian(Anonymization):
    """Halve the records at medians of their widest attribute while both halves keep the models.

    Every part becomes a class: numbers and dates become an interval, values with a hierarchy
    their lowest common group, other values the set they form: up to twelve are listed, of more
    the first and the last in alphabetical order. The ends of intervals are public: declared cut
    points and bounds, else round numbers and days, and none beyond the least and the largest
    value, so that no end is the value of somebody who stands out. No record is suppressed. In the
    *strict* form records that agree in all quasi-identifiers are treated alike, and the work is
    done on the frequency set; in the *relaxed* form a part is cut exactly in the middle, which
    makes smaller classes where many records share a value, and is done record by record. A
    missing value is a value of its own, beside the others.

    Examples
    --------
    >>> Mondrian(relaxed=True).settings()
    {'name': 'mondrian', 'relaxed': True}
    """

    name: ClassVar[str] = "mondrian"
    reference: ClassVar[str] = (
        "LeFevre, DeWitt and Ramakrishnan: Mondrian multidimensional k-anonymity, ICDE 2006"
    )

    relaxed: bool = parameter(False, help="cut parts exactly in the middle, between equal values")

    def rehearse(self, dataset: Dataset, models: Sequence[Model], *, table: FrequencySet) -> None:
        """Refuse what not even one class keeps, and values that a hierarchy lacks."""
        require_records_suffice("Mondrian", models)
        require_enough(table.people, models, word="people")
        require_feasible(table, models)
        for coded in table.quasi:
            _scale(dataset, coded)

    def anonymize(
        self,
        dataset: Dataset,
        models: Sequence[Model],
        *,
        quasi: Sequence[str],
        progress: Progress = silent,
    ) -> Outcome:
        """Return the dataset in the parts found."""
        from discreet.microdata.search.mondrian import Rows, partition

        require_records_suffice("Mondrian", models)
        progress("counting", 0, 1)
        held = dataset.numbered() if self.relaxed else dataset
        table = by_record(held, quasi, models) if self.relaxed else None
        if table is None:
            table = FrequencySet.of(dataset, quasi=quasi, models=models)
        require_enough(table.people, models, word="people")
        require_feasible(table, models)
        scales = [_scale(dataset, coded) for coded in table.quasi]
        places = np.stack(
            [scale.place[c.codes] for scale, c in zip(scales, table.quasi, strict=True)], axis=1
        )
        rows = Rows(places, [s.width for s in scales], table.count, dict(table.cells))
        label = partition(rows, models, relaxed=self.relaxed, progress=progress)
        texts, spans = _texts(scales, places, label)
        return Outcome(
            _applied(held, table, texts, label, relaxed=self.relaxed),
            _loss(spans, label, table.count),
            "loss",
            losses=_measures(label, table.count),
            work={"classes": int(label.max()) + 1 if len(label) else 0},
        )


@dataclasses.dataclass(frozen=True, eq=False)
class _Scale:
    """The values of one attribute in the order in which they are halved."""

    coded: Coded
    #: Place of each value, by its code; and position of each place between 0 and 1.
    place: Integers
    width: Numbers
    attribute: Attribute | None = None
    #: Where numbers and dates may be cut; a missing value has the place after their cells.
    cells: PublicCells | None = None

    @functools.cached_property
    def _code(self) -> Integers:
        """The code of the value at each place."""
        return np.argsort(self.place)

    def spelt(self, places: Integers) -> dict[int, str | None]:
        """Return the values at some places as texts; a file may have a million others."""
        import pyarrow as pa

        if self.cells is not None:
            return {}
        chosen = np.unique(places)
        texts = as_texts(self.coded.values.take(pa.array(self._code[chosen])))
        return dict(zip(chosen.tolist(), texts, strict=True))

    def mentioned(self, pairs: Integers) -> Integers:
        """Return the places that the names of some runs of values mention."""
        low, high = pairs
        short = (high - low < _LISTED) if self.attribute is None else low < 0
        inside = low[short, None] + np.arange(_LISTED)
        return np.concatenate([low, high, inside[inside <= high[short, None]]])

    def text(
        self, low: int, high: int, values: Mapping[int, str | None]
    ) -> tuple[str | None, float]:
        """Return the name of the values from one place to another, and the share they cover.

        `values` has the texts of the places that a name may mention.
        """
        if self.cells is not None:
            return self._interval(self.cells, low, high)
        if low == high:
            return values[low], 0.0
        own = self.attribute
        if own is not None:
            level = int(np.argmax(own.first[:, low] == own.first[:, high]))
            single = 1 / own.leaves
            code = own.labels[level][int(self._code[low])]
            return code, (float(own.share[level][low]) - single) / (1 - single)
        span = float(self.width[high] - self.width[low])
        if high - low < _LISTED:
            some = ["missing" if (v := values[p]) is None else v for p in range(low, high + 1)]
            return "{" + ", ".join(some) + "}", span
        last = "missing" if values[high] is None else values[high]
        return f"{{{values[low]} … {last}}}", span

    def _interval(self, cells: PublicCells, low: int, high: int) -> tuple[str | None, float]:
        missing = len(cells.start)
        if low == missing:
            return None, 0.0
        if high < missing:
            return cells.text(low, high), cells.share(low, high)
        return f"{cells.text(low, missing - 1)} or missing", 1.0


def _scale(dataset: Dataset, coded: Coded) -> _Scale:
    from discreet.microdata.search.attribute import attribute
    from discreet.microdata.search.public_cells import public_cells

    hierarchies = dataset.schema.hierarchies(coded.name)
    size = len(coded.values)
    even = np.arange(size) / max(1, size - 1)
    if hierarchies and hierarchies[0].edges is None:
        own = attribute(coded, hierarchies[0])
        return _Scale(coded, own.rank, even, own)
    cells = public_cells(coded, dataset.schema)
    if cells is None:
        if dataset.schema[coded.name].type is Type.NUMERIC:
            raise InputError(
                f"column {coded.name!r} is declared numeric and holds text",
                code="not-numeric",
                hint="correct the column, or declare it nominal",
                column=coded.name,
            )
        return _Scale(coded, np.arange(size), even)
    known = len(cells.start)
    span = float(cells.start[-1] - cells.start[0]) if known else 0.0
    width = (cells.start - cells.start[0]) / span if span > 0 else np.zeros(known)
    place = cells.place
    if size > len(place):  # a missing value stands beside the others, farther than any of them
        place = np.append(place, known)
        width = np.append(width, 2.0 if known else 0.0)
    return _Scale(coded, place, width, cells=cells)


def _texts(
    scales: Sequence[_Scale], places: Integers, label: Integers
) -> tuple[list[list[str | None]], Numbers]:
    """Return for each attribute and part its name, and the share of the domain it covers."""
    parts = int(label.max()) + 1 if len(label) else 0
    order = np.argsort(label, kind="stable")
    first = np.searchsorted(label[order], np.arange(parts))
    names, spans = [], np.zeros((parts, len(scales)))
    for j, scale in enumerate(scales):
        low = np.minimum.reduceat(places[order, j], first)
        high = np.maximum.reduceat(places[order, j], first)
        pairs, which = np.unique(np.stack((low, high)), axis=1, return_inverse=True)
        values = scale.spelt(scale.mentioned(pairs))
        found = [scale.text(a, b, values) for a, b in pairs.T.tolist()]
        names.append([found[w][0] for w in which.ravel()])
        spans[:, j] = np.array([f[1] for f in found])[which.ravel()]
    return names, np.minimum(spans, 1.0)


def _loss(spans: Numbers, label: Integers, count: Integers) -> float:
    """Return the loss of generalisation: the share of each domain covered, geometric mean."""
    weight = np.bincount(label, weights=count)
    mean = (spans * weight[:, None]).sum(axis=0) / weight.sum()
    return float(np.prod(1 + mean) ** (1 / spans.shape[1]) - 1)


def _measures(label: Integers, count: Integers) -> dict[str, float]:
    sizes = np.bincount(label, weights=count)
    return {"discernibility": float((sizes**2).sum()), "aecs": float(sizes.sum() / len(sizes))}


def _applied(
    dataset: Dataset,
    table: FrequencySet,
    texts: Sequence[Sequence[str | None]],
    label: Integers,
    *,
    relaxed: bool,
) -> Dataset:
    import pyarrow as pa

    new: dict[str, pa.Array] = {}
    for coded, names in zip(table.quasi, texts, strict=True):
        new[coded.name] = pa.array(names, pa.string()).take(pa.array(label))
    if relaxed:
        return dataset.with_columns(new)
    keys = [coded.name for coded in table.quasi]
    old = {c.name: c.values.take(pa.array(c.codes)) for c in table.quasi}
    targets = {name: f"__new_{place}" for place, name in enumerate(keys)}
    rows = pa.table({**old, **{targets[name]: new[name] for name in keys}})
    return matched(dataset, rows, keys, targets)

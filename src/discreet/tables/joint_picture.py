"""Pictures of a joint audit: whom releases touch, and how narrow intervals have become."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from discreet.chart import Axis, bars
from discreet.data.facts import ClassFacts, Facts, LinearFacts
from discreet.data.table import Table
from discreet.report import Report

__all__ = ["Touch", "draw_narrowest", "draw_touches", "touch_of"]

#: What a release says of people, from most to least, and its colours.
_KINDS = {"told in a cell or class": "#0b6e75", "only withheld": "#e0a030", "not in it": "#d5dce3"}


@dataclasses.dataclass(frozen=True)
class Touch(Report):
    """How many records a release tells of, and in what way."""

    release: int
    title: str
    #: Of which quantity: a measure, "records", or "classes".
    quantity: str
    told: int
    withheld: int
    outside: int


def touch_of(number: int, title: str, fact: Facts) -> Touch | None:
    """Return whom a fact of a release is about; None where it lists nobody."""
    if isinstance(fact, ClassFacts):
        outside = int((fact.members < 0).sum())
        return Touch(number, title, "classes", len(fact.members) - outside, 0, outside)
    if not isinstance(fact, LinearFacts):
        return None
    inside = fact.members >= 0
    sizes = np.bincount(fact.members[inside], minlength=len(fact.combinations))
    keys = np.zeros(len(fact.combinations), np.int64)
    for place, dimension in enumerate(fact.dimensions):
        keys = keys * len(dimension.codes) + fact.combinations[:, place]
    table = Table(fact.dimensions, fact.codes.astype(np.int32), fact.lower)
    cell = table.find(keys)
    shown = (cell >= 0) & ~fact.withheld[np.maximum(cell, 0)]
    told, all_in = int(sizes[: len(shown)][shown].sum()), int(inside.sum())
    measure, _ = fact.quantity
    outside = len(fact.members) - all_in
    return Touch(number, title, measure or "records", told, all_in - told, outside)


def draw_touches(touches: Sequence[Touch]) -> str:
    """Return a bar for each release: the share of records told, withheld, and not in it."""
    lines = {}
    for one in touches:
        parts = zip(_KINDS, (one.told, one.withheld, one.outside), strict=True)
        total = max(one.told + one.withheld + one.outside, 1)
        name = f"{one.release}: {one.title} ({one.quantity})"
        lines[name] = {kind: n / total for kind, n in parts}
    return bars(lines, Axis("share of the records", high=1.0, is_percent=True), colours=_KINDS)


def draw_narrowest(cells: Sequence[tuple[str, float]]) -> str:
    """Return a bar for each withheld cell: how wide its interval is, as a share of its middle."""
    lines = {name: {"width": width} for name, width in cells}
    return bars(lines, Axis("width of the interval, as a share of its middle", is_percent=True))

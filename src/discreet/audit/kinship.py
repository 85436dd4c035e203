"""Measures that tell of each other: a salary and its twelfth, pay = salary + bonus.

Sums of one are then sums of the others. Only measures that were released are looked at: a salary and
a bonus are strangers until their sum is told. An exact multiple is the same unknown in another unit;
other kin are judged by the sets of records alone, as if every one of them told all of the others.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.audit.dependences import dependences, families
from discreet.data.dataset import Dataset
from discreet.data.facts import LinearFacts
from discreet.data.roster import Roster

__all__ = ["kin_of", "rescaled"]

_Found = dict[tuple[str, frozenset[str]], Mapping[str, float | None]]
#: What was found for the records of a roster, while it lives.
_FOUND: weakref.WeakKeyDictionary[Roster, _Found] = weakref.WeakKeyDictionary()


def kin_of(roster: Roster, measure: str, others: Collection[str]) -> Mapping[str, float | None]:
    """Return which other measures tell of a measure; a number by which one is multiplied to be it.

    None where it is no multiple, or where the records are not at hand.

    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> frame = pd.DataFrame({"pay": [24, 36, 60, 61], "age": [3, 1, 4, 1]})
    >>> people = Roster.of(read(frame.assign(twice=frame["pay"] * 2)), key=b"secret")
    >>> dict(kin_of(people, "pay", ["age", "twice"]))
    {'twice': 0.5}
    """
    dataset = roster.dataset
    if dataset is None:
        return {}
    known = frozenset(name for name in others if name != measure and _is_number(dataset, name))
    if not known or not _is_number(dataset, measure):
        return {}
    kept = _FOUND.setdefault(roster, {})
    if (measure, known) not in kept:
        kept[measure, known] = _searched(dataset, measure, known)
    return kept[measure, known]


def _searched(
    dataset: Dataset, measure: str, others: Collection[str]
) -> Mapping[str, float | None]:
    names = [measure, *sorted(others)]
    family = families(dependences(dataset.relation, names))
    own = family.get(measure)
    if own is None:
        return {}
    found: dict[str, float | None] = {}
    for name in sorted(others):
        if family.get(name) != own:
            continue
        found[name] = None
        for one in dependences(dataset.relation, [measure, name]):
            if one.slack != (0.0, 0.0) or one.shift:
                continue
            factor = next(iter(one.factors.values()))
            found[name] = factor if one.column == measure else 1.0 / factor
    return found


def _is_number(dataset: Dataset, name: str) -> bool:
    if name not in dataset.columns:
        return False
    kind = dataset.arrow([name]).schema.field(0).type
    is_number: bool = (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
    return is_number


def rescaled(facts: LinearFacts, measure: str, factor: float) -> LinearFacts:
    """Return facts about a multiple of a measure as facts about the measure itself."""
    ends = np.sort(np.stack([facts.lower * factor, facts.upper * factor]), axis=0)
    stated: dict[str, Any] = {"lower": ends[0], "upper": ends[1]}
    # Marks of other amounts say nothing about these; people are then known by their unit.
    nothing = np.zeros(0, np.int64)
    return dataclasses.replace(
        facts, measure=measure, identities=nothing, near=np.zeros((0, 0), np.int64), **stated
    )

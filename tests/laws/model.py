"""Laws of privacy models.

Each model carries its definition written out for one class (`Model.defined`), so that a new one brings
what it is compared with. The decision on many classes at once must agree with it on random files; and
the search for generalisations rests on two more: classes that keep a promise keep it together, and
`largest` is never below what can really stay of a class.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import discreet as dc
from discreet.microdata.classes import Cells, Classes
from discreet.microdata.frequency_set import FrequencySet
from discreet.microdata.models._base import Booleans, Group, Model
from discreet.microdata.models._confidential import ConfidentialModel
from discreet.microdata.models.k_anonymity import KAnonymity
from discreet.microdata.models.l_diversity import LDiversity
from tests.laws import parameters

TREE = dc.Hierarchy.from_levels({"All": {"A": ["a1", "a2"], "B": ["b1", "b2", "b3"]}})
FILES = 6


def files() -> Iterator[pd.DataFrame]:
    """Draw small files: up to six classes of up to nine records."""
    for seed in range(FILES):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(12, 40))
        values = np.array(TREE.leaves)[: int(rng.integers(2, 6))]
        yield pd.DataFrame(
            {
                "q": rng.choice([f"q{n}" for n in range(int(rng.integers(2, 7)))], size),
                "s": np.concatenate([values, rng.choice(values, size - len(values))]),
                "w": rng.integers(1, 4, size),
            }
        )


def tried(member: type[Model], frame: pd.DataFrame, seed: int) -> Iterator[tuple[Model, Any]]:
    """Yield the model's examples and variants of them, each with the frequency set it asks for."""
    people = dc.read(
        frame,
        roles={"q": "quasi", "s": "confidential", "w": "other"},
        hierarchies={"s": TREE},
        weight="w",
    )
    rng = np.random.default_rng(seed)
    for model in parameters.tried(member, rng, 2, column="s"):
        try:
            yield model, FrequencySet.of(people, models=[model])
        except dc.InputError as error:
            # Only the examples must run; a variant may ask for more values than the file has.
            assert error.code == "too-few-values", f"{model} cannot be judged: {error}"


def agrees_with_its_definition(member: type[Model]) -> None:
    judged = kept = 0
    for seed, frame in enumerate(files()):
        for model, table in tried(member, frame, seed):
            keys = [table.quasi[0].texts()[code] for code in table.quasi[0].codes]
            for key, holds in zip(keys, model.satisfied(table.classes()), strict=True):
                rows = frame[frame["q"] == key]
                group = Group(tuple(rows["s"]), tuple(frame["s"]), float(rows["w"].sum()), TREE)
                assert holds == model.defined(group), f"{model} and its definition: {group}"
                judged, kept = judged + 1, kept + bool(holds)
    assert 0 < kept < judged, f"{member.name} was not tried on both sides of its promise"


def checks_what_its_classes_show(member: type[Model]) -> None:
    for seed, frame in enumerate(files()):
        for model, table in tried(member, frame, seed):
            classes = table.classes()
            found = model.judge(classes)
            satisfied = model.satisfied(classes)
            assert found.holds == satisfied.all()
            assert found.violating_classes == (~satisfied).sum()
            assert found.violating_records == classes.sizes[~satisfied].sum()
            assert found.value in model.measure(classes)
            assert (classes.sizes[satisfied] >= model.smallest).all(), f"{model}: smallest"


def is_closed_under_union(member: type[Model]) -> None:
    for seed, frame in enumerate(files()):
        for model, table in tried(member, frame, seed):
            classes = table.classes()
            for pair in itertools.combinations(np.flatnonzero(model.satisfied(classes)), 2):
                mask = np.isin(np.arange(len(classes)), pair)
                union = together(classes.chosen(mask))
                assert model.satisfied(union).all(), f"{model}: two classes keep it, not together"


def together(classes: Classes) -> Classes:
    one = np.zeros(len(classes), np.int64)
    people = None if classes.population is None else np.array([classes.population.sum()])
    cells = {name: part.merged(one) for name, part in classes.cells.items()}
    return Classes(np.array([classes.sizes.sum()]), cells, people)


def knows_how_many_can_stay(member: type[Model]) -> None:
    for seed, frame in enumerate(files()):
        for model, table in tried(member, frame, seed):
            classes = table.classes()
            most = model.largest(classes)
            for place in range(len(classes)):
                mask = np.arange(len(classes)) == place
                parts = subsets(classes.chosen(mask))
                stay = parts.sizes[model.satisfied(parts)].max(initial=0)
                assert most[place] >= stay, (
                    f"{model}: {stay} of class {place} can stay, seed {seed}"
                )


def subsets(one: Classes) -> Classes:
    """Return every non-empty part of a class as a class; people are those of the whole."""
    if not one.cells:
        sizes = np.arange(1, one.sizes[0] + 1)
        return Classes(sizes, {}, _people(one, len(sizes)))
    ((name, cells),) = one.cells.items()
    ranges = [range(count + 1) for count in cells.count]
    counts = np.array([c for c in itertools.product(*ranges) if sum(c)], dtype=np.int64)
    place, column = np.nonzero(counts)
    parts = Cells(cells.domain, place, cells.value[column], counts[place, column])
    return Classes(counts.sum(axis=1), {name: parts}, _people(one, len(counts)))


def _people(one: Classes, many: int) -> Any:
    return None if one.population is None else np.full(many, one.population[0])


LAWS = (
    agrees_with_its_definition,
    checks_what_its_classes_show,
    is_closed_under_union,
    knows_how_many_can_stay,
)


@dataclasses.dataclass(frozen=True)
class OneTooFew(KAnonymity):
    """k-anonymity, off by one."""

    name: ClassVar[str] = "one-too-few"

    def satisfied(self, classes: Classes) -> Booleans:
        return classes.sizes >= self.k - 1


@dataclasses.dataclass(frozen=True)
class Sloppy(KAnonymity):
    """Decides rightly and reports that all is well."""

    name: ClassVar[str] = "sloppy"

    def judge(self, classes: Classes) -> Any:
        return dataclasses.replace(super().judge(classes), violating_records=0)


@dataclasses.dataclass(frozen=True)
class AtMost(ConfidentialModel):
    """At most so many different values: not closed under union."""

    name: ClassVar[str] = "at-most"
    most: int = 2
    promise: ClassVar[str] = "few values"

    def measure(self, classes: Classes) -> Any:
        return classes.distinct(self.column).astype(float)

    def satisfied(self, classes: Classes) -> Booleans:
        return classes.distinct(self.column) <= self.most

    def defined(self, group: Group) -> bool:
        return len(set(group.values)) <= self.most

    def worst(self, values: Any) -> float:
        return float(values.max())


@dataclasses.dataclass(frozen=True)
class Pessimist(LDiversity):
    """Bounds what can stay of a class too low, so that a search misses the best."""

    name: ClassVar[str] = "pessimist"

    def largest(self, classes: Classes) -> Any:
        return super().largest(classes) // 2


BROKEN = {
    OneTooFew: agrees_with_its_definition,
    Sloppy: checks_what_its_classes_show,
    AtMost: is_closed_under_union,
    Pessimist: knows_how_many_can_stay,
}

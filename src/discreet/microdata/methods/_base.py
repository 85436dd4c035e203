"""What every method of anonymisation is: a dataset and models in, a dataset that keeps them out."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.errors import InfeasibleError, InputError
from discreet.microdata.classes import UNITS, Cells, Classes, Integers, units_of
from discreet.microdata.models import Model
from discreet.microdata.models._base import Booleans
from discreet.progress import Progress, silent
from discreet.registry import Member

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset
    from discreet.microdata.frequency_set import FrequencySet

__all__ = [
    "Anonymization",
    "Judge",
    "Outcome",
    "by_record",
    "require_feasible",
    "require_records_suffice",
]


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a method made: the records, and what it cost."""

    dataset: Dataset
    #: The value that the method minimised, and its name.
    score: float
    metric: str
    #: Records without their quasi-identifiers: dropped, or starred.
    suppressed: int = 0
    #: For full-domain generalisation the level of every column, 0 as it is.
    levels: Mapping[str, int] = dataclasses.field(default_factory=dict)
    #: Further measured losses, by name.
    losses: Mapping[str, float] = dataclasses.field(default_factory=dict)
    #: How the result is to be read, where a model alone does not say it.
    notes: tuple[str, ...] = ()
    #: Facts about the work itself: nodes evaluated, cells changed.
    work: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    #: Whether a missing quasi-identifier matches every value in the result.
    wildcard: bool = False
    #: Whether suppressed records are still there, with `*` for their quasi-identifiers.
    starred: bool = False
    #: The sets of keys that the promise is about; by default all quasi-identifiers together.
    key_sets: tuple[tuple[str, ...], ...] = ()
    #: How values were recoded, for comparing with a population: tables of `from` and `to`.
    maps: Mapping[str, pa.Table] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Anonymization(Member):
    """Base of every method of anonymisation."""

    #: Whether the released records are the same in whatever order they came.
    blind_to_order: ClassVar[bool] = True

    @abc.abstractmethod
    def anonymize(
        self,
        dataset: Dataset,
        models: Sequence[Model],
        *,
        quasi: Sequence[str],
        progress: Progress = silent,
    ) -> Outcome:
        """Return the dataset changed so that it keeps every model."""

    def covered(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Return the keys that the promise is about; the others leave as they are."""
        return tuple(keys)

    def require(self, dataset: Dataset, quasi: Sequence[str]) -> None:
        """Raise an InputError if the method cannot work on these columns; looks at no value."""

    def rehearse(self, dataset: Dataset, models: Sequence[Model], *, table: FrequencySet) -> None:
        """Raise an error if the method cannot keep these models on these records; changes nothing.

        `table` counts the quasi-identifiers as the models need it.
        """


def require_feasible(table: FrequencySet, models: Sequence[Model]) -> None:
    """Say so where not even the whole file as one class keeps a model."""
    one = np.zeros(len(table.count), dtype=np.int64)
    merged = Classes.of(
        np.array([table.records]), {c: cells.merged(one) for c, cells in table.cells.items()}
    )
    for model in models:
        if not model.satisfied(merged).all():
            raise InfeasibleError(
                f"not even the whole file as one class keeps {model.name} ({model.promise})",
                code="model-not-feasible",
                hint=f"the whole file reaches {model.worst(model.measure(merged)):.4g}: ask for less",
            )


def require_records_suffice(method: str, models: Sequence[Model]) -> None:
    """Refuse models that look at a population, which such a method does not change."""
    for model in models:
        if hasattr(model, "population"):
            raise InputError(
                f"{method} looks at the records alone and cannot enforce {model.name}",
                code="model-not-supported",
                hint="use method=Generalization(…)",
            )


def by_record(dataset: Dataset, quasi: Sequence[str], models: Sequence[Model]) -> FrequencySet:
    """Return the records one by one, as a frequency set in which each counts once."""
    from discreet.microdata.frequency_set import FrequencySet, code_column

    strict = FrequencySet.of(dataset, quasi=quasi, models=models)
    confidential = [column for column in strict.cells if column != UNITS]
    owner = dataset.unit if UNITS in strict.cells else None
    wanted = [*quasi, *confidential, *([] if owner is None else [owner])]
    rows = dataset.arrow(list(dict.fromkeys(wanted)))
    one = np.ones(rows.num_rows, dtype=np.int64)
    place = np.arange(rows.num_rows)
    unit = None if owner is None else code_column(UNITS, rows.column(owner)).codes
    cells = {} if unit is None else {UNITS: units_of(place, unit)}
    for column in confidential:
        coded = code_column(column, rows.column(column))
        cells[column] = Cells(strict.cells[column].domain, place, coded.codes, one, unit)
    return FrequencySet(tuple(code_column(name, rows.column(name)) for name in quasi), one, cells)


@dataclasses.dataclass(frozen=True, eq=False)
class Judge:
    """Says of any grouping of the records which groups break a model."""

    records: FrequencySet
    models: tuple[Model, ...]

    @classmethod
    def of(cls, dataset: Dataset, quasi: Sequence[str], models: Sequence[Model]) -> Judge:
        """Count what the models need to know; refuse what the whole file does not keep."""
        found = by_record(dataset, quasi, models)
        require_feasible(found, models)
        return cls(found, tuple(models))

    def failing(self, label: Integers) -> Booleans:
        """Return for each group 0, 1, … whether it breaks a model."""
        cells = {column: own.merged(label) for column, own in self.records.cells.items()}
        classes = Classes.of(np.bincount(label), cells)
        bad = np.zeros(len(classes), dtype=bool)
        for model in self.models:
            bad |= ~model.satisfied(classes)
        return bad

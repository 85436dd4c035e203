"""What every method of anonymisation is: a dataset and models in, a dataset that keeps them out."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.errors import InfeasibleError
from discreet.microdata.models import Model
from discreet.progress import Progress, silent
from discreet.registry import Member

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["Anonymization", "Outcome", "require_enough"]


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


def require_enough(records: int, models: Sequence[Model]) -> None:
    """Say so where a file has fewer records than one class needs."""
    for model in models:
        if model.smallest > records:
            raise InfeasibleError(
                f"{model.name} needs classes of at least {model.smallest:,} records and the file "
                f"has {records:,}",
                code="too-few-records",
                hint=f"ask for at most {records:,}" if records else "the file is empty",
                feasible=records,
            )

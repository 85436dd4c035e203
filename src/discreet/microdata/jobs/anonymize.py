"""The job `anonymize`: a file that keeps privacy models."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from discreet.data.engines.driver import Fetched, Outflow
from discreet.data.job import Shown
from discreet.microdata.jobs._models import privacy_models, require_fitting, require_models
from discreet.microdata.jobs._records import RecordsJob
from discreet.microdata.methods import Anonymization
from discreet.microdata.models import Model
from discreet.progress import Progress
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.anonymization import Anonymized
    from discreet.randomness import Randomness

__all__ = ["Anonymize"]


@dataclasses.dataclass(frozen=True)
class Anonymize(RecordsJob):
    """Change records as little as possible so that they keep privacy models, and release them.

    Examples
    --------
    >>> import discreet as dc
    >>> Anonymize((dc.KAnonymity(5),), dc.Generalization(suppression=0.05)).models[0].k
    5
    """

    name: ClassVar[str] = "anonymize"
    reference: ClassVar[str] = (
        "Samarati: Protecting respondents' identities in microdata release, TKDE 13(6), 2001"
    )
    command: ClassVar[str] = "microdata anonymize"
    example: ClassVar[str] = (
        "discreet microdata anonymize people.csv --model k-anonymity=5 --role age=quasi "
        '--hierarchy age=age.csv --method "generalization suppression=0.05" -o out'
    )

    models: tuple[Model, ...] = privacy_models()
    method: Anonymization | None = parameter(
        None,
        help="how they are kept: optimal generalization by default, 'generalization "
        "suppression=0.05', mondrian, local-suppression …",
    )
    quasi: tuple[str, ...] = parameter(
        (), help="columns an intruder knows; those with the role by default"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_models(self.models)

    def check(self, data: Dataset) -> None:
        """Raise an error if a column or hierarchy is missing, or the records are too few."""
        from discreet.microdata.frequency_set import quasi_identifiers
        from discreet.microdata.methods.generalization import Generalization
        from discreet.microdata.models._base import require_enough

        require_fitting(data, self.quasi, self.models, self.method)
        quasi = quasi_identifiers(data, self.quasi or None)
        (self.method or Generalization()).require(data, quasi)
        require_enough(data.count, self.models)

    def rehearse(self, data: Dataset) -> None:
        """Count the records, and raise an error if the method cannot keep the models on them."""
        from discreet.microdata.frequency_set import FrequencySet, quasi_identifiers
        from discreet.microdata.methods.generalization import Generalization

        super().rehearse(data)
        quasi = quasi_identifiers(data, self.quasi or None)
        table = FrequencySet.of(data, quasi=quasi, models=self.models)
        (self.method or Generalization()).rehearse(data, self.models, table=table)

    def fetches(self, data: Dataset) -> Outflow:
        """Return the frequency set: combinations of what an intruder knows, and of what models need."""
        from discreet.microdata.frequency_set import quasi_identifiers

        names = list(quasi_identifiers(data, self.quasi or None))
        for model in self.models:
            column = getattr(model, "column", None)
            names += [column] if isinstance(column, str) else []
        names += [] if data.unit is None else [data.unit]
        names = list(dict.fromkeys(names))
        rows = data.engine.combinations(data.relation, names)
        rows, size = data.engine.room_needed(data.relation, names, rows=rows)
        return Outflow((Fetched("frequency sets", rows, size + 8 * rows),))

    def perform(self, data: Dataset, *, rng: Randomness | None, progress: Progress) -> Anonymized:
        """Anonymise the records."""
        from discreet.microdata.anonymization import anonymize

        quasi = self.quasi or None
        release = anonymize(
            data, self.models, method=self.method, quasi=quasi, progress=progress, **self.memory
        )
        return dataclasses.replace(release, format=self.format)

    def shown(self, result: Anonymized) -> Iterator[Shown]:
        """Give the verdict, the levels and what was lost."""
        yield None, result.verdict
        if result.levels:
            yield None, (("column", "level"), list(result.levels.items()))
        yield None, result.loss

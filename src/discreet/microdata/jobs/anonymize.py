"""The job `anonymize`: a file that keeps privacy models."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.data.job import Job
from discreet.errors import InputError
from discreet.microdata.methods import Anonymization
from discreet.microdata.models import Model
from discreet.progress import Progress, silent
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.anonymization import Anonymized

__all__ = ["Anonymize"]


@dataclasses.dataclass(frozen=True)
class Anonymize(Job):
    """Release records that keep privacy models, changed as little as a method can.

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

    models: tuple[Model, ...] = parameter(help="privacy models to keep")
    method: Anonymization | None = parameter(
        None, help="how they are kept; optimal generalisation by default"
    )
    quasi: tuple[str, ...] = parameter(
        (), help="columns an intruder knows; those with the role by default"
    )
    format: str | None = parameter(
        None, help="format of the file", choices=("csv", "parquet", "arrow")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.models:
            raise InputError(
                "anonymize: no model is given",
                code="missing-model",
                hint="name one, such as k-anonymity: 5",
                parameter="models",
            )

    def check(self, dataset: Dataset) -> None:
        """Raise an InputError if a column is missing or has two roles."""
        from discreet.microdata.frequency_set import quasi_identifiers, require_apart

        keys = quasi_identifiers(dataset, self.quasi or None)
        require_apart(dataset, keys, self.models)

    def run(self, dataset: Dataset, *, progress: Progress = silent) -> Anonymized:
        """Anonymise the records."""
        from discreet.microdata.anonymization import anonymize

        release = anonymize(
            dataset,
            self.models,
            method=self.method,
            quasi=self.quasi or None,
            progress=progress,
        )
        return dataclasses.replace(release, format=self.format)

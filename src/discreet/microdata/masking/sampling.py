"""Sampling: release some of the records instead of all."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.microdata.masking._base import Masking
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["Sampling"]


@dataclasses.dataclass(frozen=True)
class Sampling(Masking):
    """Release a random sample of the records, simple or with the same share of every stratum.

    An intruder can then not be sure that a respondent is in the file. Drawn without replacement;
    a missing value of a stratum column is a stratum of its own.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(pd.DataFrame({"sex": ["f", "m"] * 10, "age": range(20)}))
    >>> sample = Sampling(0.5, strata="sex").mask(people, rng=dc.Randomness.seeded(1))
    >>> sorted(sample.frame["sex"]).count("f"), len(sample)
    (5, 10)
    """

    name: ClassVar[str] = "sampling"
    reference: ClassVar[str] = "Hundepool et al., Statistical Disclosure Control, 2012, 3.3.1"
    perturbative: ClassVar[bool] = False
    in_engine: ClassVar[bool] = True
    random: ClassVar[bool] = True
    drops_records: ClassVar[bool] = True
    keeps_missing: ClassVar[bool] = False

    fraction: float | None = parameter(None, help="share of the records", above=0, high=1)
    size: int | None = parameter(None, help="number of records", low=1)
    strata: tuple[str, ...] = parameter((), help="columns whose shares are kept")

    @classmethod
    def examples(cls, **offered: Any) -> tuple[Self, ...]:  # noqa: ARG003 - it needs no column
        """Return a sample of half of the records, and one of ten."""
        return cls(fraction=0.5), cls(size=10)

    def __post_init__(self) -> None:
        given = (self.strata,) if isinstance(self.strata, str) else tuple(self.strata)
        object.__setattr__(self, "strata", given)
        super().__post_init__()
        if (self.fraction is None) == (self.size is None):
            raise InputError(
                "sampling needs a fraction or a size, and not both",
                code="missing-parameter",
                hint="write Sampling(0.1) or Sampling(size=1000)",
                parameter="fraction",
            )

    @property
    def changes(self) -> tuple[str, ...]:
        """No value changes."""
        return ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that make the strata."""
        return self.strata

    def stronger(self) -> Sampling | None:
        """Return the method with fraction one step further."""
        if self.fraction is None or self.fraction < 0.02:
            return None
        return dataclasses.replace(self, fraction=self.fraction * 0.7)

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return nothing: sampling changes which records there are, not what they say."""
        return {}

    def mask(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Dataset:
        """Return the sample, drawn in the engine."""
        self.require(dataset)
        progress(self.name, 0, 1)
        count = len(dataset)
        size = round(count * self.fraction) if self.fraction is not None else self.size
        if size is None or size > count:
            raise InputError(
                f"cannot draw {size} of {count} records",
                code="sample-too-large",
                hint=f"write a size of at most {count}",
                parameter="size",
            )
        sample = dataset.sample(max(size, 1), rng=rng, strata=self.strata)
        progress(self.name, 1, 1)
        return sample

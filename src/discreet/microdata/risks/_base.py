"""What every risk measure is: a pair of files in, a number with its scenario out."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.microdata.pair import Pair
from discreet.randomness import Randomness
from discreet.registry import Member
from discreet.report import Report, Rows

__all__ = ["Finding", "RiskMeasure"]


@dataclasses.dataclass(frozen=True)
class Finding(Report):
    """One measured risk.

    Parameters
    ----------
    measure
        Name of the measure, as in `discreet methods`.
    value
        The risk as a share from 0 to 1.
    meaning
        The value in words.
    scenario
        Who the intruder is and what they know.
    facts
        Further figures, by name.
    records
        The risk of each released record, where the measure has one; stays in the house.
    """

    measure: str
    value: float
    meaning: str
    scenario: str
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    records: npt.NDArray[np.float64] | None = dataclasses.field(
        default=None, repr=False, compare=False
    )

    def rows(self) -> Rows:
        """Return value, words and figures."""
        body = [("risk", self.value), ("meaning", self.meaning), ("scenario", self.scenario)]
        return (self.measure, ""), [*body, *self.facts.items()]


@dataclasses.dataclass(frozen=True)
class RiskMeasure(Member):
    """Base of every risk measure."""

    #: Who the intruder is and what they know, in words.
    scenario: ClassVar[str] = ""
    #: What the files must have for the measure to apply, in words.
    needs: ClassVar[str] = "records with a column that an intruder knows"
    #: Whether the value is the share of records that an intruder identifies.
    identifies: ClassVar[bool] = False
    #: Whether released records must correspond to original ones; synthetic ones do not.
    needs_origin: ClassVar[bool] = True
    #: Whether records drawn by lot tell the risk of all of them, or more.
    of_sample: ClassVar[bool] = False
    #: How far two measurements of the same files may lie apart, where models are trained on them.
    noise: ClassVar[float] = 1e-9

    def applies(self, pair: Pair) -> bool:
        """Whether the files have what the measure needs."""
        return bool(pair.released_keys) and pair.size > 0

    def counts(self, pair: Pair) -> bool:
        """Whether the value is the share of all people in the file that an intruder identifies."""
        return self.identifies and self.applies(pair)

    @abc.abstractmethod
    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return the risk."""

    def finding(
        self,
        value: float,
        meaning: str,
        facts: Mapping[str, Any] | None = None,
        records: npt.NDArray[np.float64] | None = None,
        *,
        measure: str | None = None,
    ) -> Finding:
        """Return a finding of this measure."""
        return Finding(
            measure or self.name, float(value), meaning, self.scenario, facts or {}, records
        )

"""What every utility measure is: a pair of files in, a loss in words and figures out."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from discreet.microdata.pair import Pair
from discreet.randomness import Randomness
from discreet.registry import Member
from discreet.report import Report, Rows

__all__ = ["Comparison", "UtilityMeasure"]


@dataclasses.dataclass(frozen=True)
class Comparison(Report):
    """One measured loss: `value` is 0 where nothing was lost; larger is worse."""

    measure: str
    value: float
    meaning: str
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def rows(self) -> Rows:
        """Return value, words and figures."""
        body = [("loss", self.value), ("meaning", self.meaning)]
        return (self.measure, ""), [*body, *self.facts.items()]


@dataclasses.dataclass(frozen=True)
class UtilityMeasure(Member):
    """Base of every utility measure."""

    #: Whether released records must correspond to original ones; synthetic ones do not.
    needs_origin: ClassVar[bool] = True
    #: Whether records drawn by lot tell the loss of all of them, up to chance.
    of_sample: ClassVar[bool] = True
    #: What is measured at most where nothing was lost; above 0 where models are trained.
    noise: ClassVar[float] = 0.0

    def applies(self, pair: Pair) -> bool:
        """Whether the files have what the measure needs."""
        return pair.size > 0 and bool(pair.shared)

    @abc.abstractmethod
    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return the loss."""

    def comparison(
        self, value: float, meaning: str, facts: Mapping[str, Any] | None = None
    ) -> Comparison:
        """Return a comparison by this measure."""
        return Comparison(self.name, float(value), meaning, facts or {})


def numeric_columns(pair: Pair) -> list[str]:
    """Return the shared columns that hold numbers before and after, the weight left out."""
    return [n for n in pair.shared if n != pair.schema.weight and pair.is_numeric(n)]

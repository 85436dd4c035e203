"""The settings of the guard `restriction`, which its parts read without knowing the guard."""

from __future__ import annotations

import dataclasses
from typing import Literal

from discreet.errors import InputError
from discreet.queries.guards._base import Guard
from discreet.registry import parameter

__all__ = ["ExactSettings"]


@dataclasses.dataclass(frozen=True)
class ExactSettings(Guard):
    """How many records an answer may isolate, and what is never answered exactly."""

    k: int = parameter(5, help="smallest number of records an answer may isolate", low=2)
    mode: Literal["history", "partition"] = parameter(
        "history", help="audit all earlier answers, or answer only unions of fixed cells"
    )
    interval: float | None = parameter(
        None, help="smallest width to which a record's value may be narrowed", above=0
    )
    bounds: dict[str, tuple[float, float]] = parameter(
        {}, help="what everybody knows of a column: smallest and largest value"
    )
    margin: float | None = parameter(
        None,
        help="how far inside its bounds every value lies; half the interval if left out",
        above=0,
    )
    tells: Literal["refused", "accepted"] = parameter(
        "refused",
        help="whether sums and counts of a confidential column with few values are answered, "
        "which tell everybody's value where a group is all alike",
    )
    categorical: tuple[str, ...] = parameter(
        (),
        help="confidential columns of numbers that have few values, such as zeros and ones, or that "
        "follow from public columns",
    )
    missing: tuple[str, ...] = parameter(
        (),
        help="confidential columns with missing values of which everybody may know who has a value",
    )
    dependent: dict[str, tuple[str, ...]] = parameter(
        {}, help="confidential columns that follow from others, and from which"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.interval is None:
            return
        if 2 * self.inside < self.interval:
            raise InputError(
                f"restriction: a margin of {self.inside:g} leaves an interval of "
                f"{2 * self.inside:g} at most",
                code="parameter-range",
                parameter="margin",
                hint=f"write a margin of {self.interval / 2:g} or more, or leave it out",
            )
        for column, (low, high) in self.bounds.items():
            if high - low < 2 * self.inside:
                raise InputError(
                    f"restriction: the bounds of {column!r} are narrower than twice the margin",
                    code="parameter-range",
                    parameter="bounds",
                    column=column,
                    hint="widen the bounds or lower the interval",
                )

    @property
    def inside(self) -> float:
        """How far inside its bounds every value must lie."""
        return self.margin if self.margin is not None else (self.interval or 0.0) / 2

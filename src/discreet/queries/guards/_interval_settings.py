"""The settings of the guard `camouflage`, which its parts read without knowing the guard."""

from __future__ import annotations

import dataclasses

from discreet.queries.guards._base import Guard
from discreet.registry import parameter

__all__ = ["IntervalSettings"]


@dataclasses.dataclass(frozen=True)
class IntervalSettings(Guard):
    """How wide the interval of a record is, and how many are told together."""

    bound: float = parameter(
        0.3, help="width of a record's interval, as a share of its value", above=0
    )
    per_record: str | None = parameter(
        None, help="column with the share that a respondent asked for, where larger"
    )
    group: int = parameter(
        8, help="records whose sum is told together: more are told more exactly", low=2
    )
    minimum: float | None = parameter(
        None,
        help="smallest width of any interval; about a thirtieth of the mean value if left out",
        low=0,
    )
    missing: tuple[str, ...] = parameter(
        (),
        help="confidential columns with missing values of which everybody may know who has a value",
    )
    dependent: dict[str, tuple[str, ...]] = parameter(
        {}, help="confidential columns that follow from others, and from which"
    )

"""The settings of the guard `perturbation`, which its parts read without knowing the guard."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any, Literal

from discreet.dp.accountant import Accountant
from discreet.dp.mechanisms import FAMILY
from discreet.errors import InputError
from discreet.queries.guards._base import Guard
from discreet.registry import names_of, parameter

__all__ = ["NoiseSettings"]


@dataclasses.dataclass(frozen=True)
class NoiseSettings(Guard):
    """Budget, bounds and kind of the noise."""

    epsilon: float = parameter(1.0, help="budget of the dataset over all users", above=0)
    per_query: float = parameter(0.05, help="what one question may cost", above=0)
    bounds: dict[str, tuple[float, float]] = parameter(
        {}, help="smallest and largest value of each column that is summed"
    )
    user_epsilon: float | None = parameter(
        None, help="budget of each user; the dataset's if left out", above=0
    )
    delta: float = parameter(
        1e-6, help="chance of failure, for thresholds and tighter accountants", low=0, below=1
    )
    mechanism: str = parameter("laplace", help="kind of noise", choices=names_of("mechanism"))
    accountant: Literal["basic", "zcdp", "rdp", "pld"] = parameter("basic", help="how costs add up")
    keys: dict[str, tuple[Any, ...]] = parameter(
        {}, help="values of columns that everybody knows, always shown as groups"
    )
    complete: tuple[str, ...] = parameter(
        (), help="columns without missing values: averages of them share the count of records"
    )
    contribution: int = parameter(1, help="records that one unit may add", low=1)
    grain: dict[str, float] = parameter(
        {}, help="smallest step of a column in sums; 1 for whole numbers, else 0.01"
    )
    mode: Literal["output", "input"] = parameter("output", help="noise on answers or on records")
    period: Literal["day", "week", "month", "year"] | None = parameter(
        None, help="when a user's budget starts anew; the dataset's never does"
    )

    @property
    def digest(self) -> str:
        """SHA-256 of the settings; a budget without a period is what it was before there were any."""
        settings = {n: v for n, v in self.settings().items() if n != "period" or v is not None}
        text = json.dumps(settings, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per_query > self.epsilon:
            raise InputError(
                f"perturbation: a question costs {self.per_query}, the budget is {self.epsilon}",
                code="parameter-range",
                parameter="per_query",
            )
        if FAMILY.get(self.mechanism).is_concentrated and self.accountant == "basic":
            raise InputError(
                f"perturbation: the cost of {self.mechanism} noise cannot be added up by 'basic'",
                code="accountant-mismatch",
                parameter="accountant",
                hint="write accountant='pld', 'rdp' or 'zcdp'",
            )
        for column, given in self.bounds.items():
            if not (len(given) == 2 and given[0] < given[1]):
                raise InputError(
                    f"perturbation: {column!r} needs two bounds, the smaller first",
                    code="parameter-range",
                    parameter="bounds",
                    column=column,
                    hint="write (smallest, largest)",
                )
        Accountant(self.accountant, self.delta)

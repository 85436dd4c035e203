"""Query perturbation: noisy answers under differential privacy."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

from discreet.dp.accountant import Accountant
from discreet.errors import InputError
from discreet.queries.guards._base import Guard, Keeper, Protected
from discreet.registry import parameter

__all__ = ["Perturbation"]


@dataclasses.dataclass(frozen=True)
class Perturbation(Guard):
    """Answer with noise: ε-differential privacy, with budgets for each user and for the data.

    Sums are of whole grains (cents) of values cut to their declared bounds; noise is drawn by
    OpenDP. Several aggregates of one question share its ε, and AVG is the noisy sum over the
    noisy count. Groups whose keys are declared are always shown, others only if their noisy count
    passes a threshold. With `mode="input"` noise is added once to the confidential columns of each
    record, and then any question is answered from the noisy records at no further cost.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.demo import salaries
    >>> guard = Perturbation(epsilon=1.0, per_query=0.5, bounds={"salary": (0, 500_000)})
    >>> with dc.Gateway(salaries(), guard=guard) as gate:
    ...     first = gate.ask("SELECT COUNT(*) FROM people WHERE salary > 100000", user="ana")
    ...     again = gate.ask("select count(*) n from people where 100000 < salary", user="ana")
    ...     second = gate.ask("SELECT AVG(salary) FROM people", user="ana")
    ...     third = gate.ask("SELECT SUM(salary) FROM people", user="ana")
    >>> first.kind, first.spent, again.repeated, second.left["user"], third.code
    ('noisy', {'epsilon': 0.5}, True, 0.0, 'budget-exhausted')
    """

    name: ClassVar[str] = "perturbation"
    reference: ClassVar[str] = "Dwork, McSherry, Nissim and Smith (2006), Calibrating noise"
    answers: ClassVar[str] = "noisy"

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
    mechanism: Literal["laplace", "gaussian"] = parameter("laplace", help="kind of noise")
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per_query > self.epsilon:
            raise InputError(
                f"perturbation: a question costs {self.per_query}, the budget is {self.epsilon}",
                code="parameter-range",
                parameter="per_query",
            )
        if self.mechanism == "gaussian" and self.accountant in ("basic", "pld"):
            raise InputError(
                f"perturbation: Gaussian noise cannot be accounted for by {self.accountant!r}",
                code="accountant-mismatch",
                parameter="accountant",
                hint="write accountant='zcdp' or 'rdp'",
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

    def open(self, data: Protected, ledger: Any = None) -> Keeper:
        """Return the guard at work, on output or on input."""
        if self.mode == "input":
            from discreet.queries.guards._noisy_records import NoisyRecords

            return NoisyRecords(self, data, ledger)
        from discreet.queries.guards._noisy_answers import NoisyAnswers

        return NoisyAnswers(self, data, ledger)

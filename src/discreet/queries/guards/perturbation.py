"""Query perturbation: noisy answers under differential privacy."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from discreet.dp.caution import caution
from discreet.dp.libraries import opendp
from discreet.queries.guards._base import Keeper, Protected
from discreet.queries.guards._noise_settings import NoiseSettings

__all__ = ["Perturbation"]


@dataclasses.dataclass(frozen=True)
class Perturbation(NoiseSettings):
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

    @property
    def caution(self) -> str:
        """A warning in words where the budget is large."""
        return caution(self.epsilon)

    def open(self, data: Protected, ledger: Any = None) -> Keeper:
        """Return the guard at work, on output or on input."""
        opendp()  # a gateway that cannot draw noise does not open
        if self.mode == "input":
            from discreet.queries.guards._noisy_records import NoisyRecords

            return NoisyRecords(self, data, ledger)
        from discreet.queries.guards._noisy_answers import NoisyAnswers

        return NoisyAnswers(self, data, ledger)

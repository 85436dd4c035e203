"""A gateway, as a policy declares it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

from discreet.data.dataset import Dataset, read
from discreet.data.job import Job
from discreet.data.release import Release
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.queries.gateway import Gateway
from discreet.queries.guards import Guard
from discreet.queries.policies import Policy
from discreet.registry import build, parameter

__all__ = ["GatewayJob"]


@dataclasses.dataclass(frozen=True)
class GatewayJob(Job):
    """Answers questions about the data under a guard, remembering them in a ledger.

    Examples
    --------
    >>> from discreet.queries.guards.restriction import Restriction
    >>> GatewayJob(guard=Restriction(k=5)).ledger
    'ledger.db'
    """

    name: ClassVar[str] = "gateway"
    reference: ClassVar[str] = "Hundepool et al. (2012), Statistical Disclosure Control, chapter 6"
    section: ClassVar[str] = "gateways"

    guard: Guard = parameter(help="how questions are answered")
    ledger: str = parameter("ledger.db", help="file, relative to the policy, or postgresql://…")
    relation: str | None = parameter(None, help="name of the data in SQL; the source's by default")
    policies: dict[str, Any] = parameter(
        {}, help="other guards or fewer columns for some: user:NAME, role:NAME or column:NAME"
    )
    apart: bool = parameter(
        False, help="vouch that users under different guards do not share their answers"
    )
    lookups: dict[str, str] = parameter({}, help="public files that may be joined, by name")
    joins: dict[str, tuple[str, str]] = parameter(
        {}, help="declared joins: lookup: [column of the data, key of the lookup]"
    )

    def check(self, dataset: Dataset) -> None:
        """Raise an InputError if a column is missing; opens nothing."""
        for guard in (self.guard, *(p.guard for p in self.chosen().values() if p.guard)):
            for field in ("bounds", "keys", "grain"):
                for column in getattr(guard, field, None) or {}:
                    dataset.relation.require(column)
        for policy in self.chosen().values():
            dataset.relation.require(*(policy.columns or ()))
        for on, _ in self.joins.values():
            dataset.relation.require(on)

    def chosen(self) -> dict[str, Policy]:
        """Return the policies of users and roles."""
        found = {}
        for who, given in self.policies.items():
            settings = given if isinstance(given, dict) else {"guard": given}
            if not set(settings) <= {"guard", "columns"}:
                settings = {"guard": given}
            guard = settings.get("guard")
            columns = settings.get("columns")
            found[str(who)] = Policy(
                None if guard is None else build(Guard, guard, path=("policies", str(who))),
                None if columns is None else tuple(columns),
            )
        return found

    def open(self, dataset: Dataset, folder: str | Path = ".") -> Gateway:
        """Return the gateway; relative paths are below `folder`."""
        place: str | Path = self.ledger
        if "://" not in self.ledger and self.ledger != ":memory:":
            place = Path(folder) / self.ledger
        if self.relation is not None:
            dataset = dataset.replace(name=self.relation)
        return Gateway(
            dataset,
            guard=self.guard,
            ledger=place,
            policies=self.chosen(),
            apart=self.apart,
            lookups={n: read(Path(folder) / file, name=n) for n, file in self.lookups.items()},
            joins={name: (pair[0], pair[1]) for name, pair in self.joins.items()},
        )

    def run(self, dataset: Dataset, *, progress: Progress = silent) -> Release:
        """Refuse: a gateway is served, not written."""
        raise InputError(
            "a gateway is not a release",
            code="not-a-release",
            hint="run `discreet serve POLICY` or `discreet gateway ask POLICY SQL`",
        )

"""A gateway, as a policy declares it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

from discreet.data.dataset import Dataset, read
from discreet.data.service import Service
from discreet.queries.gateway import Gateway
from discreet.queries.guards import Guard
from discreet.queries.policies import Policy
from discreet.registry import build, parameter

__all__ = ["GatewayService"]


@dataclasses.dataclass(frozen=True)
class GatewayService(Service):
    """Answers questions about the data under a guard, remembering them in a ledger.

    Examples
    --------
    >>> from discreet.queries.guards.restriction import Restriction
    >>> GatewayService(guard=Restriction(k=5)).ledger
    'ledger.db'
    """

    name: ClassVar[str] = "gateway"
    reference: ClassVar[str] = "Hundepool et al. (2012), Statistical Disclosure Control, chapter 6"

    guard: Guard = parameter(help="how questions are answered")
    ledger: str = parameter(
        "ledger.db", help="file, relative to the policy, or postgresql://…", file="ledger"
    )
    head: str | None = parameter(
        None,
        help="where the ledger's last entry is noted, so that an older copy is noticed: a file on "
        "another disk, postgresql://… or command:PROGRAM",
        file="head",
    )
    snapshot: str | None = parameter(
        None, help="name of this state of the data; a new one when the data have changed"
    )
    relation: str | None = parameter(None, help="name of the data in SQL; the source's by default")
    policies: dict[str, Any] = parameter(
        {}, help="other guards or fewer columns for some: user:NAME, role:NAME or column:NAME"
    )
    apart: bool = parameter(
        False, help="vouch that users under different guards do not share their answers"
    )
    columns: tuple[str, ...] | None = parameter(
        None,
        help="what may be asked about where policies name no columns; all but identifiers if left "
        "out; name few where the table is wide",
    )
    lookups: dict[str, str] = parameter(
        {}, help="public files that may be joined, by name", file="read"
    )
    joins: dict[str, tuple[str, str]] = parameter(
        {}, help="declared joins: lookup: [column of the data, key of the lookup]"
    )

    def check(self, dataset: Dataset) -> None:
        """Raise what opening would: a column that is missing, or data that a guard cannot protect.

        A gateway is opened beside the ledger and closed again; nothing is recorded.
        """
        for guard in (self.guard, *(p.guard for p in self.chosen().values() if p.guard)):
            for field in ("bounds", "keys", "grain"):
                for column in getattr(guard, field, None) or {}:
                    dataset.relation.require(column)
        dataset.relation.require(*(c for c in self.columns or () if "." not in c))
        for policy in self.chosen().values():
            dataset.relation.require(*(policy.columns or ()))
        for on, _ in self.joins.values():
            dataset.relation.require(on)
        alone = dataclasses.replace(self, ledger=":memory:", head=None, snapshot=None)
        alone.open(_unplaced(dataset)).close()

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
        head = self.head
        if head is not None and "://" not in head and not head.startswith("command:"):
            head = str(Path(folder) / head)
        if self.relation is not None:
            dataset = dataset.replace(name=self.relation)
        return Gateway(
            dataset,
            guard=self.guard,
            ledger=place,
            policies=self.chosen(),
            apart=self.apart,
            columns=self.columns,
            lookups={n: read(Path(folder) / file, name=n) for n, file in self.lookups.items()},
            joins={name: (pair[0], pair[1]) for name, pair in self.joins.items()},
            snapshot=self.snapshot,
            head=head,
        )


def _unplaced(dataset: Dataset) -> Dataset:
    """Return the records without the place they come from: a mark there names the real ledger."""
    rows, schema = dataset.relation, dataset.schema
    return Dataset(
        rows, schema, dataset.name, dataset.library, dataset.format, None, dataset.reading
    )

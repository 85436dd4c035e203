"""A computation that owners agreed on: which protocol, on which columns of whom."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from discreet.errors import InputError
from discreet.protocols.joint.protocol import Protocol
from discreet.registry import Record, parameter
from discreet.report import plain

__all__ = ["Computation"]


@dataclasses.dataclass(frozen=True)
class Computation(Record):
    """One computation, agreed on by all parties beforehand: who asks only chooses among them."""

    spelled: ClassVar[str] = "protocol"
    protocol: Protocol = parameter(help="how it is computed")
    columns: Mapping[str, tuple[str, ...]] = parameter(
        {},
        help="the columns that each owner offers; for an alignment the one that names persons, for "
        "a joint table none: it names keys and measures of the policy",
    )
    bounds: Mapping[str, float] = parameter(
        {}, help="the largest size of a value in each column: public, and checked by its owner"
    )
    aligned: str | None = parameter(
        None, help="the alignment whose persons and order are used, where owners hold columns"
    )

    @property
    def owners(self) -> tuple[str, ...]:
        """Who takes part with records."""
        return tuple(self.columns)

    @property
    def listed(self) -> tuple[str, ...]:
        """The columns of the result: of all owners in turn, or of each where all have the same."""
        if self.protocol.split in ("horizontal", "arbitrary"):
            return next(iter(self.columns.values()))
        return tuple(name for columns in self.columns.values() for name in columns)

    def stated(self) -> dict[str, Any]:
        """Return everything as plain data, for the digest of a policy."""
        return {
            "protocol": [self.protocol.name, plain(dataclasses.asdict(self.protocol))],
            "columns": {owner: list(names) for owner, names in self.columns.items()},
            "bounds": dict(self.bounds),
            "aligned": self.aligned,
        }

    def require(self, name: str, policy: Any) -> None:
        """See that the parties of a policy can make it. Any: the policy, which holds this."""
        protocol, owners = self.protocol, self.owners

        def wrong(what: str, hint: str) -> InputError:
            return InputError(
                f"joint: computations: {name}: {what}",
                code="joint-policy",
                hint=hint,
                parameter="computations",
            )

        if protocol.tabulates:
            if self.columns or self.bounds or self.aligned:
                raise wrong(
                    "columns are named beside a table, which names its own",
                    "leave out columns, bounds and aligned",
                )
            protocol.agree(policy)
            return
        unknown = [owner for owner in owners if owner not in policy.owners]
        if unknown:
            raise wrong(f"{unknown[0]!r} is no owner", "name owners of the policy under columns")
        if not protocol.fewest <= len(owners) <= protocol.most:
            raise wrong(
                f"{len(owners)} owners take part",
                f"{protocol.name} takes {protocol.fewest} to {protocol.most}",
            )
        if protocol.needs_dealer and policy.dealer is None:
            raise wrong("there is no dealer", "name a party under dealer, or choose another way")
        if not all(self.columns.values()):
            raise wrong("an owner offers no column", "name its columns, or leave it out")
        if protocol.split == "persons":
            if any(len(columns) != 1 for columns in self.columns.values()):
                raise wrong("persons are named by one column", "name one column for each owner")
        else:
            missing = [one for one in self.listed if not 0 < self.bounds.get(one, 0) < math.inf]
            if missing:
                raise wrong(f"{missing[0]!r} has no bound", "state it under bounds, above zero")
        alike = protocol.split in ("horizontal", "arbitrary")
        if alike and len(set(self.columns.values())) > 1:
            raise wrong("owners offer different columns", "name the same columns for each")
        if protocol.split == "vertical" and len(set(self.listed)) < len(self.listed):
            raise wrong("two owners offer a column of one name", "rename one of them")
        if policy.unit is not None and alike and not protocol.judges_parts:
            raise wrong(
                "it counts records, and contributors may have several",
                "leave out unit where each record is one contributor",
            )
        other = None if self.aligned is None else policy.computations.get(self.aligned)
        if self.aligned is not None and (
            other is None or other.protocol.split != "persons" or set(other.owners) != set(owners)
        ):
            raise wrong(f"{self.aligned!r} is no alignment of these owners", "agree on one")
        if getattr(protocol, "epsilon", 0) and policy.budget is None:
            raise wrong("noise is asked for, and there is no budget", "state budget, an epsilon")

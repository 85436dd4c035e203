"""Tables over the records of all owners, of which only safe cells are opened."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.audit.rules import Rule
from discreet.errors import InputError, RefusedError
from discreet.protocols.arithmetic.fixed_point import decode
from discreet.protocols.joint.asked import Asked
from discreet.protocols.joint.computing import Opened, TableRun
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.demand import Demand, quoted, read_demand
from discreet.protocols.joint.learned import Leakage
from discreet.protocols.joint.methods import _plain_table
from discreet.protocols.joint.protocol import Inputs, Outcome, Protocol, Seat, Split
from discreet.protocols.joint.result import leakage
from discreet.registry import parameter

__all__ = ["JointTable"]


@dataclasses.dataclass(frozen=True)
class JointTable(Protocol):
    """Count and sum the records of all owners by keys; only cells that no rule finds sensitive open.

    Owners share the counts, sums and largest contributions of their cells; three nodes judge the
    rules of the policy on shares, for the total and for what remains without each owner, and open
    the pattern and the safe cells. A question in SQL is such a table too: `Joint.ask` takes either,
    and every party runs the same.

    Examples
    --------
    >>> from discreet.protocols.joint.rehearsal import rehearse_protocol
    >>> parts = {one: [[1, 10.0], [1, 12.0], [1, 11.0]] for one in "abc"}
    >>> parts["b"] = [*parts["b"], [2, 900.0]]  # of code 2 there is one record
    >>> table = JointTable(by=("icd",), measures=("cost",))
    >>> shown = rehearse_protocol(table, parts).shown
    >>> shown["withheld"].tolist(), shown["count"].tolist(), shown["sum"].tolist()
    ([0.0, 1.0], [9.0], [99.0])
    """

    name: ClassVar[str] = "joint-table"
    reference: ClassVar[str] = "Araki, Furukawa, Lindell, Nof and Ohara (2016), CCS"
    split: ClassVar[Split] = "horizontal"
    tabulates: ClassVar[bool] = True

    by: tuple[str, ...] = parameter((), help="keys of the policy; none for all records as one cell")
    measures: tuple[str, ...] = parameter((), help="measures of the policy that are summed")
    where: str = parameter("", help="condition in SQL on agreed columns; empty for all records")
    rules: tuple[Rule, ...] = parameter(
        (), help="rules that whoever asks counts on; empty for those agreed on"
    )
    means: bool = parameter(False, help="averages besides the sums")
    totals: bool = parameter(False, help="totals over the last key, the last two keys, and so on")
    margins: bool = parameter(
        False, help="all totals, with further cells withheld so that they tell no sensitive one"
    )

    @classmethod
    def of(cls, demand: Demand) -> JointTable:
        """Return the table that a question in SQL asks for."""
        means = any(function == "avg" for _, function, _ in demand.outputs)
        return cls(
            demand.keys, demand.measures, demand.condition, (), means, demand.totals, demand.margins
        )

    @classmethod
    def examples(cls, **offered: Any) -> tuple[JointTable, ...]:
        """Return tables of one key and one measure.

        None has margins: their further cells are a choice among many, not the one of a formula.
        """
        del offered
        from discreet.audit.rules.minimum_frequency import MinimumFrequency

        basic = cls(by=("key",), measures=("value",))
        others: tuple[dict[str, Any], ...] = (
            {"totals": True},
            {"means": True, "where": "key <> '2'"},
            {"rules": (MinimumFrequency(9),), "totals": True},
        )
        return (basic, *(dataclasses.replace(basic, **one) for one in others))

    def sql(self, policy: JointPolicy) -> str:
        """Return the question that every party reads."""
        if self.rules and set(self.rules) != set(policy.rules):
            agreed = ", ".join(sorted(str(rule) for rule in policy.rules))
            raise InputError(
                "the owners agreed on other rules",
                code="rules-differ",
                hint=f"leave out rules, or ask for a policy with them; agreed are {agreed}",
            )
        keys = ", ".join(map(quoted, self.by))
        shown = [keys, "COUNT(*) AS count"] if keys else ["COUNT(*) AS count"]
        for function, label in (("SUM", "sum"), ("AVG", "mean"))[: 1 + self.means]:
            for name in self.measures:
                said = label if len(self.measures) == 1 else f"{label} {name}"
                shown.append(f"{function}({quoted(name)}) AS {quoted(said)}")
        rest = (f" WHERE {self.where}" if self.where else "") + (
            f" GROUP BY {keys}" if keys else ""
        )
        return f"SELECT {', '.join(shown)} FROM {quoted(policy.relation)}{rest}"  # noqa: S608 - names are quoted, and every party reads it by whitelist

    def demand(self, policy: JointPolicy) -> Demand:
        """Return what is asked of the parties of a policy, or say why it cannot be."""
        found = read_demand(self.sql(policy), policy, totals=self.totals, margins=self.margins)
        if set(found.keys) != set(self.by):
            raise InputError(
                "joint-table: where is more than a condition",
                code="joint-unsupported",
                hint="write what would stand between WHERE and GROUP BY",
                parameter="where",
            )
        return found

    def agree(self, policy: Any) -> None:
        """Refuse a policy whose owners do not offer this table."""
        self.demand(policy)

    @property
    def needs_nodes(self) -> bool:
        """Rules are judged on shares."""
        return True

    def tabulate(self, seat: Seat) -> Opened | None:
        """Do what the party in this seat does; return what was opened, at a node."""
        asked = seat.asked
        if not isinstance(asked, Asked):
            raise RefusedError("nobody asked for a table", code="message-unexpected")
        return TableRun(
            seat.wire,
            asked.policy,
            asked.demand,
            seat.name,
            inputs=asked.inputs,
            withheld=asked.withheld,
            rng=seat.rng,
            before_opening=seat.announce,
        ).run()

    def play(self, seat: Seat) -> Outcome:
        """Return the pattern and the safe cells, at the nodes."""
        opened = self.tabulate(seat)
        if opened is None:
            return Outcome()
        demand, policy = seat.asked.demand, seat.asked.policy
        return Outcome(_shown(demand, policy, opened.withheld, opened.values))

    def seated(self, inputs: Inputs) -> Mapping[str, Asked]:
        """Return what each party of a rehearsal is asked for."""
        return _plain_table.seated(self, inputs)

    def plain(self, inputs: Inputs) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return the pattern by the rules in plain sight, and the cells that they leave."""
        policy = _plain_table.agreed(self, inputs)
        demand = self.demand(policy)
        return _shown(demand, policy, *_plain_table.tabulated(demand, policy, self, inputs))

    def leakage(self) -> Leakage:
        """Return what each party learns, where no owners collude; results say it of their policy."""
        return leakage(margins=self.margins)


def _shown(
    demand: Demand,
    policy: JointPolicy,
    withheld: npt.NDArray[np.bool_],
    values: npt.NDArray[np.int64],
) -> dict[str, npt.NDArray[np.float64]]:
    """Return which lines are withheld, and what the answer says of each of the others."""
    found = dict(zip(demand.opened(), values, strict=True))
    shown = {"withheld": withheld.astype(np.float64)}
    for label, function, name in demand.outputs:
        if function in ("count", "units"):
            shown[label] = found["count" if function == "count" else "contributors", ""] * 1.0
        elif function in ("sum", "avg"):
            sums = decode(found["sum", name], scale=policy.measures[name].scale)
            # A cell that holds nobody has no mean; numbers that are none do not travel.
            shown[label] = sums if function == "sum" else sums / np.maximum(found["count", ""], 1)
    return shown

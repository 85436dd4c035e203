"""A question to all owners: keys, measures and condition, read from SQL by every party alike."""

from __future__ import annotations

import dataclasses
import itertools

from sqlglot import exp

from discreet.data.sql import parse
from discreet.data.sql.query import Output
from discreet.data.sql.spelling import spelled
from discreet.errors import InputError, RefusedError
from discreet.protocols.joint.declaration import TOTAL, JointPolicy

__all__ = ["STATUS", "Demand", "quoted", "read_demand"]

#: The column that says of each line whether it is withheld.
STATUS = "status"
_FUNCTIONS = ("count", "units", "sum", "avg")


def quoted(name: str) -> str:
    """Return a name as SQL writes it, whatever it contains."""
    return exp.to_identifier(name, quoted=True).sql(dialect="postgres")


@dataclasses.dataclass(frozen=True, eq=False)
class Demand:
    """One joint table: its keys, what is summed, which records count."""

    question: str
    digest: str
    keys: tuple[str, ...]
    measures: tuple[str, ...]
    #: The measures asked for and all that may follow from them: what one of them withholds, all do.
    judged: tuple[str, ...]
    predicate: exp.Expression | None
    #: Label, function and column of each column of the result; the function of a key is `key`.
    outputs: tuple[tuple[str, str, str], ...]
    #: Whether totals over the last keys, then over the last but one, … are wanted too.
    totals: bool = False
    #: Whether all totals are wanted, with further cells withheld so that they tell no withheld one.
    margins: bool = False

    @property
    def levels(self) -> list[int]:
        """How many keys the totals of each level keep, in the order in which they are judged."""
        return list(range(len(self.keys) - 1, -1, -1)) if self.totals else []

    @property
    def condition(self) -> str:
        """The condition as text, empty where there is none."""
        return "" if self.predicate is None else spelled(self.predicate)

    def cells(self, policy: JointPolicy) -> list[tuple[str, ...]]:
        """Return the codes of every cell, in the order in which all parties number them."""
        if self.margins:
            return list(itertools.product(*(policy.tree(key).codes for key in self.keys)))
        return list(itertools.product(*(policy.keys[key] for key in self.keys)))

    def groups(self, policy: JointPolicy, level: int) -> list[tuple[str, ...]]:
        """Return the codes of every total of a level."""
        return list(itertools.product(*(policy.keys[key] for key in self.keys[:level])))

    def shown(self, policy: JointPolicy) -> list[tuple[str, ...]]:
        """Return the codes of every line of the answer: cells, then totals level by level."""
        lines = self.cells(policy)
        for level in self.levels:
            rest = (TOTAL,) * (len(self.keys) - level)
            lines += [(*group, *rest) for group in self.groups(policy, level)]
        return lines

    def opened(self) -> list[tuple[str, str]]:
        """Return what of each safe cell is opened: what the answer shows, and nothing besides."""
        functions = {function for _, function, _ in self.outputs}
        found = [("contributors", "")] if "units" in functions else []
        found += [("count", "")] if functions & {"count", "avg"} else []
        return found + [("sum", name) for name in self.measures]

    def largest(self, policy: JointPolicy) -> int:
        """Return how many largest contributions are stated of each cell.

        What protects another cell must do so against its own largest contributor.
        """
        return max(policy.largest, 1 if self.margins else 0)

    def rows(self, policy: JointPolicy) -> list[tuple[str, str]]:
        """Return what an owner states of each cell: what, and of which measure."""
        found = [("contributors", ""), ("count", "")]
        tops = range(self.largest(policy))
        for name in self.judged:
            found += [("sum", name), *((f"top {place}", name) for place in tops)]
            found += [("asked", name)] if policy.request is not None else []
        return found


def read_demand(
    sql: str, policy: JointPolicy, *, totals: bool = False, margins: bool = False
) -> Demand:
    """Return the demand that a statement makes, or say why it cannot be made together."""
    query = parse(sql, policy.catalog())
    if query.having is not None or query.order or query.limit is not None or query.offset:
        raise RefusedError(
            "HAVING, ORDER BY and LIMIT are not computed together",
            code="joint-unsupported",
            hint="arrange the answer afterwards",
        )
    keys = []
    for key in query.keys:
        if not isinstance(key.expression, exp.Column) or key.expression.name not in policy.keys:
            raise RefusedError(
                "owners group by columns with declared codes only",
                code="joint-unsupported",
                hint="group by one or more of " + ", ".join(policy.keys),
            )
        keys.append(key.expression.name)
    measures = []
    for measure in query.measures:
        if measure.function not in _FUNCTIONS:
            raise RefusedError(
                f"{measure.function.upper()} is not computed together",
                code="joint-unsupported",
                hint="ask for COUNT, SUM or AVG",
            )
        if measure.argument is None:
            continue
        if measure.column not in policy.measures or measure.function == "count":
            raise RefusedError(
                "owners sum columns with declared bounds only",
                code="joint-unsupported",
                hint="sum or average one of " + (", ".join(policy.measures) or "no column"),
            )
        measures.append(measure.column)
    if query.predicate_columns - set(policy.conditions):
        raise RefusedError(
            "the condition uses a column that the owners did not agree on",
            code="joint-unsupported",
            hint="use " + (", ".join(policy.conditions) or "no condition"),
        )
    if not measures and all(
        any(form.total for form in rule.inequalities()) for rule in policy.rules
    ):
        raise RefusedError(
            "the agreed rules judge sums, none judges counts",
            code="joint-unsupported",
            hint="ask for a sum, or agree on the rule minimum-frequency",
        )
    policy.require_cells(tuple(keys))
    outputs = tuple(_output(one, keys, query.measures) for one in query.outputs)
    if any(label == STATUS for label, _, _ in outputs):
        raise InputError(
            f"a column of the answer is called {STATUS!r}, as the one that says what is withheld",
            code="joint-unsupported",
            hint="give it another name with AS",
        )
    unique = tuple(dict.fromkeys(measures))
    # Totals are over the last keys as they are written; the reader has its own order.
    written = [name for _, function, name in outputs if function == "key"]
    ordered = tuple(dict.fromkeys([*written, *keys]))
    if totals and margins:
        raise InputError(
            "margins are all totals already",
            code="joint-unsupported",
            hint="ask for totals or for margins",
        )
    if (totals or margins) and (not keys or any(function == "units" for _, function, _ in outputs)):
        raise RefusedError(
            "totals are sums of cells, and there are no cells to add or distinct units to count",
            code="joint-unsupported",
            hint="group by one or more keys and ask for COUNT(*), SUM or AVG",
        )
    judged = policy.judged_with(unique)
    if margins:
        policy.require_margins(ordered, judged)
    return Demand(
        query.question, query.digest, ordered, unique, judged, query.predicate, outputs, totals,
        margins,
    )  # fmt: skip


def _output(output: Output, keys: list[str], measures: tuple[object, ...]) -> tuple[str, str, str]:
    name = output.reference
    if name is None:
        raise RefusedError(
            "arithmetic on results is not computed together",
            code="joint-unsupported",
            hint="ask for the single aggregates and compute with the answer",
        )
    place = int(name[1:])
    if name.startswith("k"):
        return output.label, "key", keys[place]
    measure = measures[place]
    return output.label, measure.function, measure.column or ""  # type: ignore[attr-defined]

"""Rules of a synthesizer: where a condition holds, a column has one value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.microdata.columns import is_number

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

__all__ = ["Rule", "read_rules"]

Mask = npt.NDArray[np.bool_]
_COMPARISONS = {
    "LT": "less",
    "LTE": "less_equal",
    "GT": "greater",
    "GTE": "greater_equal",
    "EQ": "equal",
    "NEQ": "not_equal",
}
#: A condition longer than this is not one that a person wrote.
_LONGEST = 500


@dataclasses.dataclass(frozen=True)
class Rule:
    """Where `condition` holds for the columns before it, `column` has `value`."""

    column: str
    condition: str
    value: Any  # of the column's own type

    @property
    def tree(self) -> exp.Expr:
        """The condition, parsed."""
        import sqlglot
        from sqlglot.errors import SqlglotError

        try:
            if len(self.condition) > _LONGEST:
                raise SqlglotError("long")
            return sqlglot.parse_one(self.condition, into=sqlglot.exp.Condition)
        except (SqlglotError, RecursionError):
            raise _unclear(self.column) from None

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that the condition is about."""
        from sqlglot import exp

        return tuple(dict.fromkeys(node.name for node in self.tree.find_all(exp.Column)))

    def holds(self, columns: Mapping[str, pa.Array]) -> Mask:
        """Return for which records the condition holds; unknown is not true."""
        import pyarrow as pa

        try:
            found = _evaluated(self.tree, columns, self.column)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
            raise _unclear(self.column) from None
        return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False), bool)


def read_rules(given: Mapping[str, Any], order: Sequence[str]) -> dict[str, list[Rule]]:
    """Return the rules of each column; a condition may speak of columns visited before only.

    Any: `("age < 16", "single")`, or a list of these.
    """
    found: dict[str, list[Rule]] = {}
    for column, said in given.items():
        if column not in order:
            raise InputError(
                f"a rule is about column {column!r}, which is not synthesised",
                code="unknown-column",
                hint="choose one of " + ", ".join(order),
                column=column,
            )
        several = [said] if said and isinstance(said[0], str) else list(said)
        before = order[: order.index(column)]
        for one in several:
            if not isinstance(one, list | tuple) or len(one) != 2 or not isinstance(one[0], str):
                raise _unclear(column)
            rule = Rule(column, one[0], one[1])
            late = [name for name in rule.reads if name not in before]
            if late or not rule.reads:
                raise InputError(
                    f"the rule of column {column!r} needs columns that are drawn before it"
                    + (f", and {late[0]!r} is not" if late else ""),
                    code="rule-order",
                    hint="visit the columns of the condition first: visit=[…]",
                    column=column,
                )
            found.setdefault(column, []).append(rule)
    return found


def _evaluated(node: exp.Expr, columns: Mapping[str, pa.Array], owner: str) -> Any:
    # Any: Arrow's compute functions are not annotated.
    import pyarrow as pa
    import pyarrow.compute as pc
    from sqlglot import exp

    def part(name: str) -> Any:
        return _evaluated(node.args[name], columns, owner)

    if isinstance(node, exp.Paren):
        return part("this")
    if isinstance(node, exp.And):
        return pc.and_kleene(part("this"), part("expression"))
    if isinstance(node, exp.Or):
        return pc.or_kleene(part("this"), part("expression"))
    if isinstance(node, exp.Not):
        return pc.invert(part("this"))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return pc.is_null(part("this"))
    if isinstance(node, exp.Column):
        return columns[node.name]
    if isinstance(node, exp.Neg):
        return pc.negate(part("this"))
    if isinstance(node, exp.Literal):
        return pa.scalar(node.this if node.is_string else float(node.this))
    if isinstance(node, exp.In) and node.expressions:
        one = [exp.EQ(this=node.this, expression=value) for value in node.expressions]
        found = [_evaluated(part, columns, owner) for part in one]
        return found[0] if len(found) == 1 else _any(found)
    name = _COMPARISONS.get(type(node).__name__)
    if name is None:
        raise _unclear(owner)
    left, right = part("this"), part("expression")
    text = any(pa.types.is_string(side.type) for side in (left, right))
    if text and any(is_number(side.type) for side in (left, right)):
        raise InputError(
            f"the rule of column {owner!r} compares a number with a text",
            code="malformed-rule",
            hint="write texts in quotes and numbers without: age < 16 and job = 'cook'",
            column=owner,
        )
    if text:  # a literal in quotes is compared as the column writes its values
        left, right = (
            side if pa.types.is_string(side.type) else pc.cast(side, pa.string())
            for side in (left, right)
        )
    return pc.call_function(name, [left, right])


def _any(found: Sequence[Any]) -> Any:
    import pyarrow.compute as pc

    joined = found[0]
    for one in found[1:]:
        joined = pc.or_kleene(joined, one)
    return joined


def _unclear(column: str) -> InputError:
    return InputError(
        f"the rule of column {column!r} is not understood",
        code="malformed-rule",
        hint="write rules={'marital': (\"age < 16 and sex = 'f'\", 'single')}: comparisons of columns "
        "with values, joined by and, or, not",
        column=column,
    )

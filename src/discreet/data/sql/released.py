"""The released side of a SELECT: outputs, HAVING and ORDER BY, over keys and aggregates only."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from sqlglot import exp

from discreet.data.sql.expression import rebuild
from discreet.data.sql.naming import written
from discreet.data.sql.query import Catalog, Key, Measure, Output, Query, Sort
from discreet.data.sql.scope import Scope
from discreet.data.sql.spelling import spelled
from discreet.data.sql.typed import Typed, refuse, require_arguments
from discreet.errors import RefusedError

__all__ = ["Released"]

_AGGREGATES: dict[type[Any], str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Median: "median",
    exp.Quantile: "quantile",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
}
#: Each aggregate costs the engine another pass over the rows of every group.
MOST_AGGREGATES = 60
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div)
_COMPARISON = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


class Released:
    """Reads what is done with the released values of one SELECT, collecting its aggregates."""

    def __init__(
        self, select: exp.Select, scope: Scope, keys: tuple[Key, ...], catalog: Catalog
    ) -> None:
        self._select = select
        self._scope = scope
        self._keys = keys
        self._catalog = catalog
        self._measures: dict[str, Measure] = {}
        self._labels: dict[str, Output] = {}
        self._outputs: list[Output] = []
        #: Labels mean outputs in HAVING and ORDER BY, not in the SELECT list itself.
        self._labelled = False

    @property
    def has_aggregate(self) -> bool:
        """Whether any aggregate was asked for."""
        return bool(self._measures)

    def outputs(self) -> tuple[Output, ...]:
        """Return the columns of the result, each under a label of its own."""
        for item in self._select.expressions:
            inner, given = item, None
            if isinstance(item, exp.Alias):
                require_arguments(item, "this", "alias")
                inner, given = item.this, item.alias
            value = self._value(inner)
            label = self._unique(given or _label(inner))
            output = Output(label, value.tree, value.kind)
            self._labels.setdefault(label.casefold(), output)
            self._outputs.append(output)
        self._labelled = True
        return tuple(self._outputs)

    def _unique(self, label: str) -> str:
        taken = {output.label for output in self._outputs}
        number = 1
        while (name := label if number == 1 else f"{label}_{number}") in taken:
            number += 1
        return name

    def having(self) -> exp.Expression | None:
        """Return the condition on released values."""
        having = self._select.args.get("having")
        if having is None:
            return None
        require_arguments(having, "this")
        return self._condition(having.this)

    def order(self) -> tuple[Sort, ...]:
        """Return the sorting of released rows."""
        order = self._select.args.get("order")
        if order is None:
            return ()
        require_arguments(order, "expressions")
        sorts = []
        for item in order.expressions:
            if not isinstance(item, exp.Ordered):
                raise refuse(
                    "ORDER BY is not understood", "unsupported-clause", "order by a column"
                )
            require_arguments(item, "this", "desc", "nulls_first")
            tree = self._ordered(item.this)
            descending = bool(item.args.get("desc"))
            sorts.append(Sort(tree, descending, bool(item.args.get("nulls_first"))))
        return tuple(sorts)

    def _ordered(self, node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.this) if str(node.this).isdigit() else 0
            if not 1 <= place <= len(self._outputs):
                raise refuse("ORDER BY names no such position", "unknown-position", "name a column")
            return self._outputs[place - 1].expression
        return self._value(node).tree

    def query(self, **parts: Any) -> Query:
        """Return the typed question, its measures in the order of their text.

        Any: the remaining fields of `Query`, passed through.
        """
        if len(self._measures) > MOST_AGGREGATES:
            raise refuse(
                f"the statement asks for {len(self._measures)} aggregates",
                "too-many-aggregates",
                f"ask for at most {MOST_AGGREGATES} in one statement",
            )
        texts = sorted(self._measures)
        place = {text: f"m{number}" for number, text in enumerate(texts)}
        names = {f"m:{text}": name for text, name in place.items()}

        def renamed(tree: exp.Expression) -> exp.Expression:
            return tree.transform(
                lambda node: (
                    exp.column(names[node.name])
                    if isinstance(node, exp.Column) and node.name in names
                    else node
                )
            )

        parts["outputs"] = tuple(
            dataclasses.replace(output, expression=renamed(output.expression))
            for output in parts["outputs"]
        )
        parts["order"] = tuple(
            dataclasses.replace(sort, expression=renamed(sort.expression))
            for sort in parts["order"]
        )
        if parts["having"] is not None:
            parts["having"] = renamed(parts["having"])
        return Query(
            keys=self._keys, measures=tuple(self._measures[text] for text in texts), **parts
        )

    # -- values ----------------------------------------------------------------------------------
    def _value(self, node: exp.Expression) -> Typed:
        """Return an expression over keys (`k0` …) and aggregates, or refuse it."""
        if isinstance(node, exp.Paren):
            require_arguments(node, "this")
            if (key := self._matched(node)) is not None:
                return key
            inner = self._value(node.this)
            return dataclasses.replace(inner, tree=exp.Paren(this=inner.tree))
        if (label := self._label_reference(node)) is not None:
            return Typed(label.expression.copy(), label.kind)
        if isinstance(node, exp.AggFunc | exp.WithinGroup):
            measure = self._measure(node)
            self._measures.setdefault(measure.text, measure)
            return Typed(exp.column(f"m:{measure.text}"), measure.kind)
        if isinstance(node, exp.Filter):
            raise refuse(
                "FILTER is not accepted", "unsupported-clause", "put the condition into WHERE"
            )
        if (key := self._key(node)) is not None:
            return key
        return self._compound(node)

    def _label_reference(self, node: exp.Expression) -> Output | None:
        if not isinstance(node, exp.Column) or node.args.get("table") is not None:
            return None
        output = self._labels.get(node.name.casefold())
        return output if self._labelled else None

    def _matched(self, node: exp.Expression) -> Typed | None:
        """Return the key that an expression is, if it is one."""
        if node.find(exp.AggFunc) is not None:
            return None
        text = spelled(cast("exp.Expression", rebuild(node, self._scope).tree.unnest()))
        for number, key in enumerate(self._keys):
            if key.text == text:
                return Typed(exp.column(f"k{number}"), key.kind)
        return None

    def _key(self, node: exp.Expression) -> Typed | None:
        if node.find(exp.AggFunc) is not None:
            return None
        value = rebuild(node, self._scope)
        if value.is_literal:
            return value
        if (key := self._matched(node)) is not None:
            return key
        hint = "put it into GROUP BY, or aggregate it" if self._keys else "add COUNT(*), SUM or AVG"
        if not self._keys and not self._select.find(exp.AggFunc):
            raise refuse("the statement asks for no aggregate", "no-aggregate", hint)
        raise refuse("a column is neither grouped nor aggregated", "not-grouped", hint)

    def _compound(self, node: exp.Expression) -> Typed:
        if isinstance(node, _ARITHMETIC):
            require_arguments(node, "this", "expression", "typed", "safe")
            left, right = self._numeric(node.this), self._numeric(node.expression)
            whole = left.kind == right.kind == "integer"
            kind: type[Any] = type(node)
            if isinstance(node, exp.Div):
                # PostgreSQL's sums of bigint are numeric, and its counts are whole numbers.
                sums = any(
                    column.name.startswith("m:SUM")
                    for side in (left, right)
                    for column in side.tree.find_all(exp.Column)
                )
                whole = whole and not sums
                kind = exp.IntDiv if whole else exp.Div
            tree = kind(this=left.tree, expression=right.tree)
            return Typed(tree, "integer" if whole else "number")
        if isinstance(node, exp.Neg):
            require_arguments(node, "this")
            inner = self._numeric(node.this)
            return Typed(exp.Neg(this=inner.tree), inner.kind)
        if isinstance(node, exp.Round):
            require_arguments(node, "this", "decimals", "casts_non_integer_decimals")
            places = node.args.get("decimals") or exp.Literal.number(0)
            if not (isinstance(places, exp.Literal) and str(places.this).isdigit()):
                raise refuse("ROUND needs whole decimals", "unsupported-expression", "ROUND(x, 2)")
            inner = self._numeric(node.this)
            rounded = exp.Round(
                this=inner.tree, decimals=exp.Literal.number(min(int(places.this), 15))
            )
            return Typed(rounded, "number")
        if isinstance(node, exp.Cast) and node.args["to"].this.value.lower() in (
            "double", "float", "decimal",
        ):  # fmt: skip
            require_arguments(node, "this", "to")
            return Typed(self._numeric(node.this).tree, "number")
        raise refuse(
            f"{written(node)} of released values is not accepted",
            "unsupported-expression",
            "use + − * / and ROUND on aggregates",
        )

    def _numeric(self, node: exp.Expression) -> Typed:
        value = self._value(node)
        if value.kind not in ("integer", "number", "null"):
            raise refuse("arithmetic needs numbers", "type-mismatch", "leave the text out")
        return value

    def _condition(self, node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Paren):
            require_arguments(node, "this")
            return exp.Paren(this=self._condition(node.this))
        if isinstance(node, exp.And | exp.Or):
            require_arguments(node, "this", "expression")
            both = self._condition(node.this), self._condition(node.expression)
            return type(node)(this=both[0], expression=both[1])
        if isinstance(node, exp.Not):
            require_arguments(node, "this")
            return exp.Not(this=self._condition(node.this))
        if isinstance(node, _COMPARISON):
            require_arguments(node, "this", "expression")
            left, right = self._value(node.this), self._value(node.expression)
            return type(node)(this=left.tree, expression=right.tree)
        if isinstance(node, exp.Between):
            require_arguments(node, "this", "low", "high")
            parts = {name: self._value(node.args[name]).tree for name in ("this", "low", "high")}
            return exp.Between(**parts)
        raise refuse(
            f"{written(node)} is not accepted in HAVING",
            "unsupported-expression",
            "compare aggregates and keys with values",
        )

    # -- aggregates ------------------------------------------------------------------------------
    def _measure(self, node: exp.Expression) -> Measure:
        if isinstance(node, exp.Count):
            return self._count(node)
        fraction: float | None = None
        if isinstance(node, exp.WithinGroup):
            argument, fraction = self._percentile(node)
            function = "quantile"
        elif (found := _AGGREGATES.get(type(node))) is not None:
            function = found
            require_arguments(node, "this", "quantile")
            argument = node.this
            if function == "quantile":
                fraction = self._fraction(node.args.get("quantile"))
        else:
            raise refuse(
                f"the aggregate {written(node)} is not accepted",
                "unsupported-aggregate",
                "use COUNT, SUM, AVG, VARIANCE, STDDEV, MIN, MAX, MEDIAN or QUANTILE",
            )
        if function == "median":
            function, fraction = "quantile", 0.5
        value = self._argument(argument, function)
        kind = value.kind if function in ("min", "max") else "number"
        if function == "sum" and value.kind == "integer":
            kind = "integer"
        column = value.tree.name if isinstance(value.tree, exp.Column) else None
        inner = spelled(value.tree)
        text = f"{function.upper()}({inner}{'' if fraction is None else f', {fraction!r}'})"
        return Measure(function, value.tree, column, kind, value.columns, text, fraction)

    def _argument(self, node: exp.Expression | None, function: str) -> Typed:
        if isinstance(node, exp.Distinct):
            raise refuse(
                "DISTINCT is accepted only in COUNT(DISTINCT unit)",
                "unsupported-distinct",
                "leave out DISTINCT",
            )
        value = rebuild(node, self._scope)
        if value.is_literal:
            raise refuse("an aggregate needs a column", "constant-aggregate", "write COUNT(*)")
        if value.kind not in ("integer", "number"):
            raise refuse(
                f"{function.upper()} needs a number, found {value.kind}",
                "type-mismatch",
                "aggregate a numeric column, or COUNT(*)",
            )
        if isinstance(value.tree, exp.Paren) and isinstance(value.tree.this, exp.Column):
            value = dataclasses.replace(value, tree=value.tree.this)
        return value

    def _count(self, node: exp.Count) -> Measure:
        require_arguments(node, "this", "big_int")
        inner = node.this
        if inner is None or isinstance(inner, exp.Star):
            if inner is not None:
                require_arguments(inner)
            return Measure("count", None, None, "integer", frozenset(), "COUNT(*)")
        if isinstance(inner, exp.Distinct):
            return self._count_units(inner)
        value = rebuild(inner, self._scope)
        if value.is_literal:
            if isinstance(value.tree, exp.Null):
                raise refuse("COUNT(NULL) counts nothing", "constant-aggregate", "write COUNT(*)")
            return Measure("count", None, None, "integer", frozenset(), "COUNT(*)")
        if not isinstance(value.tree, exp.Column):
            raise refuse(
                "COUNT of an expression is not accepted",
                "unsupported-expression",
                "put the condition into WHERE and write COUNT(*)",
            )
        text = f"COUNT({spelled(value.tree)})"
        return Measure("count", value.tree, value.tree.name, "integer", value.columns, text)

    def _count_units(self, node: exp.Distinct) -> Measure:
        require_arguments(node, "expressions")
        unit = self._catalog.unit
        inner = node.expressions[0] if len(node.expressions) == 1 else None
        if isinstance(inner, exp.Column) and unit is not None:
            meaning = self._scope.resolve(inner)
            if isinstance(meaning.tree, exp.Column) and meaning.tree.name == unit:
                text = f"COUNT(DISTINCT {spelled(meaning.tree)})"
                return Measure("units", None, unit, "integer", frozenset(), text)
        raise refuse(
            "COUNT(DISTINCT …) is accepted only of the unit",
            "unsupported-distinct",
            f"write COUNT(DISTINCT {unit})" if unit else "write COUNT(*)",
        )

    def _percentile(self, node: exp.WithinGroup) -> tuple[exp.Expression, float]:
        require_arguments(node, "this", "expression")
        order = node.expression
        if not isinstance(node.this, exp.PercentileCont) or not isinstance(order, exp.Order):
            raise refuse(
                "this ordered aggregate is not accepted",
                "unsupported-aggregate",
                "write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)",
            )
        require_arguments(node.this, "this")
        require_arguments(order, "expressions")
        (item,) = order.expressions if len(order.expressions) == 1 else (None,)
        if not isinstance(item, exp.Ordered) or item.args.get("desc"):
            raise refuse(
                "the order of a percentile is ascending", "unsupported-clause", "ORDER BY x"
            )
        require_arguments(item, "this", "nulls_first", "desc")
        return item.this, self._fraction(node.this.this)

    def _fraction(self, node: exp.Expression | None) -> float:
        value = rebuild(node, self._scope).tree
        if isinstance(value, exp.Literal) and not value.is_string and 0 <= float(value.this) <= 1:
            return float(value.this)
        raise _fraction_error()


def _fraction_error() -> RefusedError:
    return refuse("a quantile lies between 0 and 1", "malformed-quantile", "write 0.5")


def _label(node: exp.Expression) -> str:
    """Return the name PostgreSQL would give an output."""
    inner = node.unnest()
    if isinstance(inner, exp.Column):
        return str(inner.name)
    if isinstance(inner, exp.WithinGroup):
        return "percentile_cont"
    if isinstance(inner, exp.Median):
        return "median"
    if isinstance(inner, exp.Func):
        return str(_LABELS.get(type(inner), inner.key.lower()))
    return "column"


_LABELS: dict[type[Any], str] = {exp.Stddev: "stddev", exp.Variance: "variance"}

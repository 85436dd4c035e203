"""What may be asked of a permuted release: SQL read into a small, closed form.

Only what is listed here is understood; everything else is refused with the reason, so that no
answer is ever given whose bounds are not proven.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NoReturn, cast

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from discreet.data.sql.reading import read_statements
from discreet.errors import InputError, RefusedError, nearest

__all__ = ["Aggregate", "Key", "Statement", "parse"]

#: What a condition, a key or a weight may be made of.
_ALLOWED: tuple[type[exp.Expression], ...] = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
    exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Is, exp.Null, exp.Boolean, exp.Literal,
    exp.Column, exp.Identifier, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod,
    exp.Like, exp.ILike, exp.Escape, exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Lower, exp.Upper,
    exp.Length, exp.Substring, exp.Coalesce, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Case,
    exp.If, exp.Extract, exp.Var, exp.Year, exp.Month, exp.Day, exp.Tuple,
    exp.Trim, exp.Translate, exp.DPipe, exp.TimestampTrunc, exp.Interval,
)  # fmt: skip
#: Words of DuckDB's own that the gateway writes conditions with: bytes of a text, microseconds.
_OWN_WORDS = ("STRLEN", "EPOCH_US")

#: Finer quantiles would overflow whole numbers where there are many records.
_FINEST = 1_000_000
_DUCKDB = Dialect.get_or_raise("duckdb")

Kind = Literal["count", "sum", "avg", "min", "max", "quantile", "variance", "weighted"]


@dataclasses.dataclass(frozen=True, eq=False)
class Aggregate:
    """One aggregate of the sensitive column."""

    label: str
    kind: Kind
    #: For quantiles: which, and whether it must be one of the values.
    quantile: Fraction = Fraction(1, 2)
    discrete: bool = False
    #: For variances: divided by n − 1, and whether the root is wanted.
    sample: bool = True
    root: bool = False
    #: For weighted sums: what each value is multiplied by.
    weight: exp.Expression | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Key:
    """One expression that the answer is grouped by."""

    label: str
    expression: exp.Expression
    shown: bool = True


@dataclasses.dataclass(frozen=True, eq=False)
class Statement:
    """A query that can be answered with bounds."""

    aggregates: tuple[Aggregate, ...]
    keys: tuple[Key, ...]
    #: A condition on anything but the sensitive column.
    where: exp.Expression | None
    #: A condition on the sensitive column alone; then every aggregate is a count.
    values: exp.Expression | None
    #: Order of the answer: place of the key, and whether it falls.
    order: tuple[tuple[int, bool], ...] = ()


def parse(
    sql: str, *, name: str, columns: Sequence[str], sensitive: str, category: bool = False
) -> Statement:
    r"""Read a query over the original table.

    Parameters
    ----------
    sql
        The query.
    name
        The table's name in it.
    columns
        The columns of the release, the sensitive one included.
    sensitive
        The column whose values were permuted.
    category
        Whether its values are categories: then only counts are answered.

    Examples
    --------
    >>> found = parse(
    ...     "SELECT AVG(salary) FROM people WHERE age < 30 OR sex = 'f'",
    ...     name="people",
    ...     columns=["age", "sex", "salary"],
    ...     sensitive="salary",
    ... )
    >>> found.aggregates[0].label, found.where.sql()
    ('avg_salary', '"age" < 30 OR "sex" = \'f\'')
    """
    return _Reader(name, tuple(columns), sensitive, category).read(_one_select(sql))


def refuse(reason: str, *, code: str = "not-answerable", hint: str | None = None) -> NoReturn:
    """Refuse a query, with the reason."""
    raise RefusedError(
        f"no bounds are known for this: {reason}",
        code=code,
        hint=hint
        or "ask for COUNT, SUM, AVG, MIN, MAX, MEDIAN, QUANTILE_CONT, VARIANCE or STDDEV of the "
        "sensitive column, with WHERE and GROUP BY on the others",
    )


def _one_select(sql: str) -> exp.Select:
    try:
        trees = read_statements(sql, _DUCKDB)
    except RefusedError as error:
        raise InputError(error.message, code="bad-sql", hint=error.hint) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        refuse("exactly one SELECT statement is answered")
    return trees[0]


class _Reader:
    """Reads one statement; knows the columns."""

    def __init__(self, name: str, columns: tuple[str, ...], sensitive: str, category: bool) -> None:
        self.name = name
        self.columns = columns
        self.sensitive = sensitive
        self.category = category
        self.labels: set[str] = set()

    def read(self, tree: exp.Select) -> Statement:
        self._require_plain(tree)
        aliases = self._resolve(tree)
        where, values = self._conditions(tree.args.get("where"))
        grouped = self._grouped(tree, aliases)
        keys: list[Key] = []
        aggregates: list[Aggregate] = []
        for place, item in enumerate(tree.expressions):
            inner, label = item.unalias(), item.alias
            match = next((g for g in grouped if g == inner), None)
            if match is not None:
                keys.append(Key(self._label(label or _word(inner, place)), inner))
            else:
                aggregates.append(self._aggregate(inner, label))
        shown = [key.expression for key in keys]
        keys += [
            Key(self._label(f"key_{place}"), g, shown=False)
            for place, g in enumerate(grouped)
            if g not in shown
        ]
        if not aggregates:
            refuse("the statement has no aggregate of the sensitive column")
        if values is not None and any(a.kind != "count" for a in aggregates):
            refuse(
                f"a condition on {self.sensitive} is answered for COUNT only",
                hint="count, or move the condition to the other columns",
            )
        order = self._order(tree.args.get("order"), keys)
        return Statement(tuple(aggregates), tuple(keys), where, values, order)

    def _require_plain(self, tree: exp.Select) -> None:
        names = {
            "joins": "JOIN", "laterals": "LATERAL", "having": "HAVING", "qualify": "QUALIFY",
            "windows": "WINDOW", "distinct": "SELECT DISTINCT", "limit": "LIMIT", "offset": "OFFSET",
            "with_": "WITH", "with": "WITH", "sample": "TABLESAMPLE", "pivots": "PIVOT",
            "into": "INTO", "locks": "FOR UPDATE", "hint": "hints", "kind": "SELECT AS",
        }  # fmt: skip
        for part, word in names.items():
            if tree.args.get(part):
                refuse(f"{word} is not answered")
        known = {
            *names,
            "expressions",
            "from_",
            "from",
            "where",
            "group",
            "order",
            "operation_modifiers",
        }
        for part, value in tree.args.items():
            if value and part not in known:
                refuse(f"the clause {part.strip('_')} is not answered")
        source = tree.args.get("from_") or tree.args.get("from")
        table = source.this if source is not None else None
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            refuse(f"the query must read FROM {self.name}, and nothing else")
        if table.name.casefold() != self.name.casefold() or table.db:
            raise InputError(
                f"there is no table {table.name!r}",
                code="unknown-table",
                hint=f"write FROM {self.name}",
            )
        if table.args.get("joins") or table.args.get("sample") or table.args.get("pivots"):
            refuse("JOIN, PIVOT and TABLESAMPLE are not answered")

    def _resolve(self, tree: exp.Select) -> dict[str, exp.Expression]:
        """Spell every column as the release does; return the aliases of the projection."""
        source = tree.args.get("from_") or tree.args["from"]
        owners = {source.this.alias_or_name.casefold(), self.name.casefold()}
        aliases = {
            item.alias: item.this for item in tree.expressions if isinstance(item, exp.Alias)
        }
        folded: dict[str, list[str]] = {}
        for name in self.columns:
            folded.setdefault(name.casefold(), []).append(name)
        for node in list(tree.find_all(exp.Column)):
            if isinstance(node.this, exp.Star):
                refuse("columns of single records are not answered, only aggregates")
            if node.table and node.table.casefold() not in owners:
                raise InputError(
                    f"there is no table {node.table!r}",
                    code="unknown-table",
                    hint=f"write {self.name}",
                )
            spelt = (
                [node.name] if node.name in self.columns else folded.get(node.name.casefold(), [])
            )
            if len(spelt) == 1:
                node.replace(exp.column(exp.to_identifier(spelt[0], quoted=True)))
            elif node.name not in aliases or node.find_ancestor(exp.Group, exp.Order) is None:
                guess = nearest(node.name, self.columns)
                raise InputError(
                    f"there is no column {node.name!r}",
                    code="unknown-column",
                    hint=f"write {guess!r}"
                    if guess
                    else "choose one of " + ", ".join(self.columns),
                    column=node.name,
                )
        return {item.alias: item.this for item in tree.expressions if isinstance(item, exp.Alias)}

    def _conditions(
        self, clause: exp.Where | None
    ) -> tuple[exp.Expression | None, exp.Expression | None]:
        if clause is None:
            return None, None
        apart: list[exp.Expression] = []
        about: list[exp.Expression] = []
        for part in _conjuncts(clause.this):
            self._require_allowed(part, "WHERE")
            named = {column.name for column in part.find_all(exp.Column)}
            if self.sensitive not in named:
                apart.append(part)
            elif named == {self.sensitive}:
                about.append(part)
            else:
                refuse(
                    f"a condition mixes {self.sensitive} with other columns",
                    hint="join conditions on the sensitive column to the others with AND",
                )
        return _all(apart), _all(about)

    def _grouped(
        self, tree: exp.Select, aliases: dict[str, exp.Expression]
    ) -> list[exp.Expression]:
        clause = tree.args.get("group")
        if clause is None:
            return []
        if any(
            clause.args.get(part) for part in ("rollup", "cube", "grouping_sets", "all", "totals")
        ):
            refuse("ROLLUP, CUBE, GROUPING SETS and GROUP BY ALL are not answered")
        found = []
        for item in clause.expressions:
            if isinstance(item, exp.Literal) and not item.is_string:
                place = int(item.name) if item.name.isdigit() else 0
                if not 1 <= place <= len(tree.expressions):
                    raise InputError("GROUP BY names no column of the answer", code="bad-sql")
                item = tree.expressions[place - 1].unalias()
            elif isinstance(item, exp.Column) and item.name not in self.columns:
                item = aliases[item.name]
            self._require_allowed(item, "GROUP BY")
            if any(column.name == self.sensitive for column in item.find_all(exp.Column)):
                refuse(f"GROUP BY {self.sensitive} would tell its values apart by record")
            found.append(item.copy())
        return found

    def _order(self, clause: exp.Order | None, keys: list[Key]) -> tuple[tuple[int, bool], ...]:
        if clause is None:
            return ()
        found = []
        for item in clause.expressions:
            inner = item.this
            place = next(
                (
                    place
                    for place, key in enumerate(keys)
                    if key.expression == inner
                    or (isinstance(inner, exp.Column) and inner.name == key.label)
                ),
                None,
            )
            if place is None:
                refuse("ORDER BY is answered for the columns of GROUP BY only")
            found.append((place, bool(item.args.get("desc"))))
        return tuple(found)

    def _aggregate(self, tree: exp.Expression, label: str) -> Aggregate:
        def made(kind: Kind, word: str, **details: object) -> Aggregate:
            return Aggregate(self._label(label or word), kind, **details)  # type: ignore[arg-type]

        if isinstance(tree, exp.Count):
            if isinstance(tree.this, exp.Star) or self._is_sensitive(tree.this):
                return made("count", "count")
            refuse("COUNT is answered for * and the sensitive column, without DISTINCT")
        if self.category:
            refuse(f"{self.sensitive} has categories, so only COUNT is answered")
        simple: dict[type[exp.Expression], Kind] = {
            exp.Sum: "sum",
            exp.Avg: "avg",
            exp.Min: "min",
            exp.Max: "max",
        }
        for form, kind in simple.items():
            if type(tree) is form and self._is_sensitive(tree.this) and _alone(tree):
                return made(kind, f"{kind}_{self.sensitive}")
        if type(tree) is exp.Sum and not tree.find(exp.Distinct):
            weight = self._weight(tree.this)
            return made("weighted", f"sum_weighted_{self.sensitive}", weight=weight)
        spread = _SPREADS.get(type(tree))
        if spread is not None and self._is_sensitive(tree.this):
            word, sample, root = spread
            return made("variance", f"{word}_{self.sensitive}", sample=sample, root=root)
        if (found := self._quantile(tree)) is not None:
            share, discrete = found
            word = "median" if share == Fraction(1, 2) and not discrete else "quantile"
            return made("quantile", f"{word}_{self.sensitive}", quantile=share, discrete=discrete)
        if isinstance(tree, exp.Column):
            refuse("a column that is not in GROUP BY would show single records")
        refuse(f"{_name(tree)} of this form is not an aggregate that can be bounded")

    def _quantile(self, tree: exp.Expression) -> tuple[Fraction, bool] | None:
        if isinstance(tree, exp.Median) and self._is_sensitive(tree.this):
            return Fraction(1, 2), False
        if isinstance(tree, exp.WithinGroup) and isinstance(
            tree.this, exp.PercentileCont | exp.PercentileDisc
        ):
            ordered = tree.expression.expressions
            if len(ordered) != 1 or ordered[0].args.get("desc"):
                refuse("WITHIN GROUP orders by the sensitive column, ascending")
            discrete = isinstance(tree.this, exp.PercentileDisc)
            return self._share(tree.this.this, ordered[0].this), discrete
        if isinstance(tree, exp.PercentileCont | exp.PercentileDisc):
            discrete = isinstance(tree, exp.PercentileDisc)
            return self._share(tree.expression, tree.this), discrete
        if isinstance(tree, exp.Quantile):  # DuckDB's name for the discrete one
            return self._share(tree.args.get("quantile"), tree.this), True
        return None

    def _share(self, literal: exp.Expression | None, of: exp.Expression) -> Fraction:
        if not self._is_sensitive(of):
            refuse("quantiles are answered for the sensitive column")
        if not isinstance(literal, exp.Literal) or literal.is_string:
            refuse("a quantile is named by a number")
        share = Fraction(literal.name)
        if not 0 <= share <= 1:
            raise InputError(
                "a quantile lies between 0 and 1",
                code="bad-sql",
                hint="write 0.5 for the median",
            )
        if share.denominator > _FINEST:
            refuse("a quantile is named with at most six digits")
        return share

    def _weight(self, tree: exp.Expression) -> exp.Expression:
        """Return what the sensitive column is multiplied by, if that is all that is done to it."""
        if self._is_sensitive(tree):
            return exp.Literal.number(1)
        if isinstance(tree, exp.Paren):
            return self._weight(tree.this)
        if isinstance(tree, exp.Neg):
            return exp.Neg(this=exp.paren(self._weight(tree.this)))
        if isinstance(tree, exp.Div) and not self._mentions(tree.expression):
            self._require_allowed(tree.expression, "a weight")
            inner = exp.Cast(this=self._weight(tree.this), to=exp.DataType.build("double"))
            return exp.Div(this=inner, expression=exp.paren(tree.expression.copy()))
        if isinstance(tree, exp.Mul) and self._mentions(tree.this) != self._mentions(
            tree.expression
        ):
            about, known = (
                (tree.this, tree.expression)
                if self._mentions(tree.this)
                else (tree.expression, tree.this)
            )
            self._require_allowed(known, "a weight")
            rest = self._weight(about)
            if isinstance(rest, exp.Literal):
                return cast("exp.Expression", known.copy())
            return exp.Mul(this=exp.paren(rest), expression=exp.paren(known.copy()))
        refuse(
            f"SUM is answered for {self.sensitive}, alone or times known weights",
            hint=f"write SUM(weight * {self.sensitive})",
        )

    def _mentions(self, tree: exp.Expression) -> bool:
        return any(column.name == self.sensitive for column in tree.find_all(exp.Column))

    def _is_sensitive(self, tree: exp.Expression | None) -> bool:
        return isinstance(tree, exp.Column) and tree.name == self.sensitive

    def _require_allowed(self, tree: exp.Expression, where: str) -> None:
        for node in tree.walk():
            own = isinstance(node, exp.Anonymous) and node.name.upper() in _OWN_WORDS
            if not isinstance(node, _ALLOWED) and not own:
                refuse(f"{_name(cast('exp.Expression', node))} is not understood in {where}")
            if isinstance(node, exp.In) and (node.args.get("query") or node.args.get("unnest")):
                refuse(f"a subquery is not answered in {where}")

    def _label(self, word: str) -> str:
        label, number = word, 2
        while label in self.labels:
            label, number = f"{word}_{number}", number + 1
        self.labels.add(label)
        return label


_SPREADS: dict[type[exp.Expression], tuple[str, bool, bool]] = {
    exp.Variance: ("variance", True, False),
    exp.VariancePop: ("var_pop", False, False),
    exp.Stddev: ("stddev", True, True),
    exp.StddevSamp: ("stddev", True, True),
    exp.StddevPop: ("stddev_pop", False, True),
}


def _alone(tree: exp.Expression) -> bool:
    # MAX(x, 3) and the like carry more than their argument.
    return not any(value for key, value in tree.args.items() if key != "this")


def _conjuncts(tree: exp.Expression) -> list[exp.Expression]:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        return [*_conjuncts(tree.this), *_conjuncts(tree.expression)]
    return [tree]


def _all(parts: list[exp.Expression]) -> exp.Expression | None:
    if not parts:
        return None
    joined = exp.and_(*parts, copy=True) if len(parts) > 1 else parts[0].copy()
    return cast("exp.Expression", joined)


def _word(tree: exp.Expression, place: int) -> str:
    return tree.name if isinstance(tree, exp.Column) else f"key_{place}"


def _name(tree: exp.Expression) -> str:
    if isinstance(tree, exp.Anonymous):
        return str(tree.name).upper()
    return tree.sql_name() if isinstance(tree, exp.Func) else type(tree).__name__.upper()

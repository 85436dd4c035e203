"""One SELECT that aggregates records, taken apart: what is asked, and what is made of the answers.

Aggregates with a FILTER, listed values (COUNT(DISTINCT …), ends of public columns) and each set of
groups of a ROLLUP are questions of their own; a query over their answers puts them together.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from sqlglot import exp

from discreet.data.schema import Role
from discreet.data.sql.query import Catalog
from discreet.data.sql.typed import refuse
from discreet.errors import RefusedError

__all__ = [
    "LISTED",
    "NAME",
    "Split",
    "aggregates_of",
    "distinctly",
    "label_of",
    "lists_values",
    "parts_of",
]

#: Answers are read as released_0, released_1 …
#: Label of a public column whose values are listed for MIN, MAX and COUNT(DISTINCT …).
LISTED = "listed"
NAME = "released_"
#: Sets of groups that one SELECT may have.
MOST_SETS = 24


def lists_values(select: exp.Select, catalog: Catalog) -> bool:
    """Whether it asks for the ends of public values, which are found among those released."""
    if select.find(exp.Min, exp.Max) is None:
        return False
    shown = [*select.expressions, *(select.args.get(n) for n in ("having", "order"))]
    return any(
        isinstance(found, exp.Min | exp.Max)
        and not isinstance(found.this.unnest(), exp.Case)
        and _is_public(found.this, catalog)
        for part in shown
        if part is not None
        for found in aggregates_of(part)
    )


def parts_of(node: exp.Expr) -> list[tuple[str, exp.Expr]]:
    """Return the parts of a node, each with the name of what it is there."""
    return [
        (name, part)
        for name, value in node.args.items()
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, exp.Expr)
    ]


def aggregates_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the aggregates of a part; a window's own function is none, its arguments may be."""
    if isinstance(node, exp.Subquery | exp.Query):
        return []
    if isinstance(node, exp.Window):
        inner = node.this
        if isinstance(inner, exp.Filter):
            inner = inner.this
        parts = [*inner.iter_expressions(), *(p for n, p in parts_of(node) if n != "this")]
        return [found for part in parts for found in aggregates_of(part)]
    if isinstance(node, exp.Grouping):
        return []
    if isinstance(node, exp.Filter | exp.WithinGroup | exp.AggFunc):
        return [node]
    return [found for part in node.iter_expressions() for found in aggregates_of(part)]


@dataclasses.dataclass(frozen=True)
class _Wanted:
    """One aggregate of a SELECT: how it is asked for, and how it is made of the answer."""

    #: What the question aggregates; None if the question lists values.
    asked: exp.Expr | None
    #: Which records: besides those of WHERE.
    condition: exp.Expr | None = None
    #: The expression whose released values are counted or compared.
    listed: exp.Expr | None = None
    #: What is done with the listed values: count, min or max.
    made: str = ""

    @property
    def source(self) -> tuple[str, str]:
        """Aggregates of one source are asked in one question."""
        return (
            "" if self.condition is None else self.condition.sql("postgres"),
            "" if self.listed is None else self.listed.sql("postgres"),
        )


#: The clauses of a SELECT that can be taken apart.
_CLAUSES = {
    "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
    "with_", "distinct", "qualify",
}  # fmt: skip


class Split:
    """Takes one SELECT over records apart: its questions, and a query over their answers."""

    def __init__(
        self, select: exp.Select, catalog: Catalog, ask: Callable[[exp.Select], int]
    ) -> None:
        self._select, self._catalog, self._ask = select, catalog, ask
        self._keys, self._sets = _grouping(select)
        #: Texts of aggregates to their place.
        self._places: dict[str, int] = {}
        self._wanted: list[_Wanted] = []

    def outer(self, error: RefusedError) -> exp.Query:
        """Return the query over the answers; `error` says why the plain form was refused."""
        select = self._select
        if {name for name, value in select.args.items() if value} - _CLAUSES:
            raise error
        if any(isinstance(item, exp.Star) for item in select.expressions):
            raise refuse("'*' stands for columns only in COUNT(*)", "star", "name the columns")
        shown = distinctly([self._shown(item) for item in select.expressions])
        outer = exp.select(*shown)
        having, qualify = select.args.get("having"), select.args.get("qualify")
        condition = None if having is None else self._over(having.this)
        order = self._ordered(select.args.get("order"))
        base = self._base()
        outer = outer.from_(exp.Subquery(this=base, alias=_alias("base")))
        if condition is not None:
            outer = outer.where(condition)
        if qualify is not None:
            outer.set("qualify", exp.Qualify(this=self._over(qualify.this)))
        if select.args.get("distinct") is not None:
            on = select.args["distinct"].args.get("on")
            new = (
                None
                if on is None
                else exp.Tuple(expressions=[self._over(e) for e in on.expressions])
            )
            outer.set("distinct", exp.Distinct(on=new))
        if order is not None:
            outer.set("order", order)
        for name in ("limit", "offset"):
            clause = select.args.get(name)
            if clause is None:
                continue
            if {n for n, v in clause.args.items() if v} - {
                "expression",
                "direction",
                "count",
                "limit_options",
            }:
                raise error
            outer.set(name, clause.copy())
        return outer

    # -- the outer side --------------------------------------------------------------------------
    def _shown(self, item: exp.Expr) -> exp.Expr:
        inner = item.this if isinstance(item, exp.Alias) else item
        label = item.alias if isinstance(item, exp.Alias) else label_of(inner)
        return exp.alias_(self._over(inner), label, quoted=True)

    def _ordered(self, order: exp.Expr | None) -> exp.Order | None:
        if order is None:
            return None
        aliases = {i.alias.casefold() for i in self._select.expressions if isinstance(i, exp.Alias)}
        items = []
        for item in order.expressions:
            inner = item.this
            named = isinstance(inner, exp.Column) and not inner.table
            if named and inner.name.casefold() in aliases:
                new: exp.Expr = exp.column(inner.name, quoted=True)
            elif isinstance(inner, exp.Literal):
                new = inner.copy()
            else:
                new = self._over(inner)
            made = item.copy()
            made.set("this", new)
            items.append(made)
        return exp.Order(expressions=items)

    def _over(self, node: exp.Expr) -> exp.Expr:
        """Return an expression over the answers in place of one over records."""
        text = _text(node)
        for place, key in enumerate(self._keys):
            if _text(key) == text:
                return exp.column(f"k{place}", table="base")
        if isinstance(node, exp.Subquery | exp.Query):
            raise refuse(
                "a sub-select is accepted only in FROM",
                "misplaced-subquery",
                "name both answers in WITH, and join them",
            )
        if isinstance(node, exp.Grouping):
            return self._grouping_mark(node)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Filter | exp.WithinGroup | exp.AggFunc):
            return exp.column(f"a{self._place(node)}", table="base")
        if isinstance(node, exp.Column):
            hint = "put it into GROUP BY, or aggregate it"
            raise refuse("a column is neither grouped nor aggregated", "not-grouped", hint)
        new = node.copy()
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                new.set(name, self._over(value))
            elif isinstance(value, list):
                made = [self._over(v) if isinstance(v, exp.Expr) else v for v in value]
                new.set(name, made)
        return new

    def _window(self, node: exp.Window) -> exp.Expr:
        """Return a window over the answers: its own function stays, its arguments are replaced."""
        new = node.copy()
        function = node.this.copy()
        for name, value in node.this.args.items():
            if isinstance(value, exp.Star):
                continue
            if isinstance(value, exp.Expr):
                function.set(name, self._over(value))
            elif isinstance(value, list):
                function.set(name, [self._over(v) if isinstance(v, exp.Expr) else v for v in value])
        new.set("this", function)
        for name, value in node.args.items():
            if name == "this":
                continue
            if isinstance(value, exp.Expr):
                new.set(name, self._over(value))
            elif isinstance(value, list):
                new.set(name, [self._over(v) if isinstance(v, exp.Expr) else v for v in value])
        return new

    def _grouping_mark(self, node: exp.Grouping) -> exp.Expr:
        texts = [_text(key) for key in self._keys]
        tree: exp.Expr | None = None
        for item in node.expressions:
            if _text(item) not in texts:
                raise refuse("GROUPING needs a key", "not-grouped", "name a column of GROUP BY")
            mark: exp.Expr = exp.column(f"g{texts.index(_text(item))}", table="base")
            doubled = (
                None
                if tree is None
                else exp.Mul(this=exp.Paren(this=tree), expression=exp.Literal.number(2))
            )
            tree = mark if doubled is None else exp.Add(this=doubled, expression=mark)
        assert tree is not None
        return tree

    # -- the questions ---------------------------------------------------------------------------
    def _place(self, node: exp.Expr) -> int:
        text = _text(node)
        if text not in self._places:
            self._places[text] = len(self._wanted)
            self._wanted.append(_wanted(node, self._catalog))
        return self._places[text]

    def _base(self) -> exp.Query:
        """Return one row per group: keys k0 …, marks g0 … and aggregates a0 … in this order."""
        branches = [self._branch(chosen) for chosen in self._sets]
        base: exp.Query = branches[0]
        for branch in branches[1:]:
            base = exp.Union(this=base, expression=branch, distinct=False)
        return base

    def _branch(self, chosen: Sequence[int]) -> exp.Select:
        sources = dict.fromkeys(wanted.source for wanted in self._wanted)
        plain = ("", "")
        # With keys, a list of the groups is needed; without, every question gives one row.
        if chosen or not sources:
            sources = {plain: None, **sources}
        elif plain in sources:
            sources = {plain: None, **{s: None for s in sources if s != plain}}
        first = next(iter(sources))
        aliases = {source: f"q{n}" for n, source in enumerate(sources)}
        columns: list[exp.Expr] = []
        for place in range(len(self._keys)):
            key: exp.Expr = (
                exp.column(f"k{place}", table=aliases[first]) if place in chosen else exp.null()
            )
            columns.append(exp.alias_(key, f"k{place}"))
            mark = exp.Literal.number(0 if place in chosen else 1)
            columns.append(exp.alias_(mark, f"g{place}"))
        for place, wanted in enumerate(self._wanted):
            value: exp.Expr = exp.column(f"a{place}", table=aliases[wanted.source])
            columns.append(exp.alias_(value, f"a{place}"))
        query = exp.select(*columns)
        for source, alias in aliases.items():
            answer = exp.Subquery(this=self._answer(source, chosen), alias=_alias(alias))
            if source == first:
                query = query.from_(answer)
            elif chosen:
                on: exp.Expr | None = None
                for place in chosen:
                    same = exp.NullSafeEQ(
                        this=exp.column(f"k{place}", table=aliases[first]),
                        expression=exp.column(f"k{place}", table=alias),
                    )
                    on = same if on is None else exp.And(this=on, expression=same)
                query = query.join(answer, on=on, join_type="left")
            else:
                query = query.join(answer, join_type="cross")
        return query

    def _answer(self, source: tuple[str, str], chosen: Sequence[int]) -> exp.Select:
        """Return the rows of one question, as far as they are needed."""
        own = [(n, w) for n, w in enumerate(self._wanted) if w.source == source]
        keys = [exp.column(f"k{place}") for place in chosen]
        listed = own[0][1].listed if own else None
        number = self._ask(self._asked(own, chosen))
        rows = exp.to_table(f"{NAME}{number}")
        if listed is None:
            return exp.select(*keys, *(exp.column(f"a{n}") for n, _ in own)).from_(rows)
        value = exp.column(LISTED)
        functions: dict[str, exp.Expr] = {
            "count": exp.Count(this=exp.Distinct(expressions=[value])),
            "min": exp.Min(this=value.copy()),
            "max": exp.Max(this=value.copy()),
        }
        made = [exp.alias_(functions[w.made].copy(), f"a{n}") for n, w in own]
        query = exp.select(*keys, *made).from_(rows)
        return query.group_by(*(key.copy() for key in keys)) if keys else query

    def _asked(self, own: Sequence[tuple[int, _Wanted]], chosen: Sequence[int]) -> exp.Select:
        """Return the SELECT over records that is asked."""
        keys = [self._keys[place] for place in chosen]
        shown: list[exp.Expr] = [
            exp.alias_(key.copy(), f"k{place}") for place, key in zip(chosen, keys, strict=True)
        ]
        groups = [key.copy() for key in keys]
        if own and own[0][1].listed is not None:
            shown.append(exp.alias_(own[0][1].listed.copy(), LISTED))
            groups.append(own[0][1].listed.copy())
            shown.append(exp.alias_(exp.Count(this=exp.Star()), "n"))
        else:
            shown += [exp.alias_(w.asked.copy(), f"a{n}") for n, w in own if w.asked is not None]
        if len(shown) == len(groups):
            shown.append(exp.alias_(exp.Count(this=exp.Star()), "n"))
        asked = exp.Select(expressions=shown)
        for name in ("from_", "joins", "where", "with_"):
            value = self._select.args.get(name)
            if value is not None:
                asked.set(
                    name, [v.copy() for v in value] if isinstance(value, list) else value.copy()
                )
        condition = own[0][1].condition if own else None
        if condition is not None:
            asked = asked.where(condition.copy())
        if groups:
            asked.set("group", exp.Group(expressions=groups))
        return asked


_GROUPINGS = {"expressions", "rollup", "cube", "grouping_sets"}


def _grouping(select: exp.Select) -> tuple[list[exp.Expr], list[list[int]]]:
    """Return the keys of a SELECT, and for each set of groups which of them it uses."""
    group = select.args.get("group")
    if group is None:
        if select.args.get("distinct") is None or any(aggregates_of(i) for i in select.expressions):
            return [], [[]]
        named = [i.this if isinstance(i, exp.Alias) else i for i in select.expressions]
        return [*named], [list(range(len(named)))]
    if {name for name, value in group.args.items() if value} - _GROUPINGS:
        raise refuse("only a plain GROUP BY is accepted", "unsupported-clause", "group by columns")
    keys: list[exp.Expr] = []

    def place(item: exp.Expr) -> int:
        meant = _meant(item, select)
        texts = [_text(key) for key in keys]
        if _text(meant) not in texts:
            keys.append(meant)
            return len(keys) - 1
        return texts.index(_text(meant))

    def places(item: exp.Expr) -> list[int]:
        if isinstance(item, exp.Tuple):
            return [place(part) for part in item.expressions]
        return [place(item.unnest())]

    choices: list[list[list[int]]] = [[[place(item)]] for item in group.expressions]
    for rollup in group.args.get("rollup") or ():
        steps = [places(item) for item in rollup.expressions]
        choices.append([_flat(steps[:n]) for n in range(len(steps), -1, -1)])
    for cube in group.args.get("cube") or ():
        steps = [places(item) for item in cube.expressions]
        if len(steps) > 4:
            raise refuse("CUBE has too many columns", "too-complex", "use at most four")
        marks = itertools.product((True, False), repeat=len(steps))
        choices.append([_flat(itertools.compress(steps, mark)) for mark in marks])
    choices.extend(
        [places(item) for item in sets.expressions]
        for sets in group.args.get("grouping_sets") or ()
    )
    found = [sorted(set(_flat(chosen))) for chosen in itertools.product(*choices)]
    if len(found) > MOST_SETS:
        raise refuse("GROUP BY has too many sets of groups", "too-complex", "use fewer")
    return keys, found


def _flat(lists: Iterable[Iterable[int]]) -> list[int]:
    return list(itertools.chain.from_iterable(lists))


def _meant(item: exp.Expr, select: exp.Select) -> exp.Expr:
    """Return what a position or a label in GROUP BY stands for."""
    if isinstance(item, exp.Literal) and not item.is_string:
        place = int(item.this) if str(item.this).isdigit() else 0
        if not 1 <= place <= len(select.expressions):
            raise refuse("GROUP BY names no such position", "unknown-position", "name the column")
        shown = select.expressions[place - 1]
        return cast("exp.Expr", shown.this if isinstance(shown, exp.Alias) else shown)
    if isinstance(item, exp.Column) and not item.table:
        for shown in select.expressions:
            if isinstance(shown, exp.Alias) and shown.alias.casefold() == item.name.casefold():
                inner = cast("exp.Expr", shown.this)
                return inner if not aggregates_of(inner) else item
    return item


def _wanted(node: exp.Expr, catalog: Catalog) -> _Wanted:
    """Return how one aggregate is asked for."""
    condition: exp.Expr | None = None
    if isinstance(node, exp.Filter):
        condition = node.expression.this.copy()
        node = node.this
    listed: exp.Expr | None = None
    made = ""
    inner = node.this if isinstance(node, exp.Count | exp.Min | exp.Max) else None
    if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
        listed, made = inner.expressions[0].unnest(), "count"
    elif isinstance(node, exp.Min | exp.Max) and isinstance(inner, exp.Expr):
        if _is_public(inner, catalog):
            listed, made = inner.unnest(), "min" if isinstance(node, exp.Min) else "max"
    elif isinstance(node, exp.Count) and isinstance(inner, exp.Expr):
        counted = _counted(inner.unnest())
        if counted is not None:
            condition = _both(condition, counted)
            node = exp.Count(this=exp.Star())
    if listed is not None:
        if isinstance(listed, exp.Case) and (test := _tested(listed)) is not None:
            condition = _both(condition, test[0])
            listed = test[1]
        if isinstance(listed, exp.Column) and listed.name == catalog.unit:
            return _Wanted(node.copy(), condition)
        return _Wanted(None, condition, listed.copy(), made)
    return _Wanted(node.copy(), condition)


def _both(left: exp.Expr | None, right: exp.Expr) -> exp.Expr:
    """Return both conditions, or the only one."""
    if left is None:
        return right
    return exp.And(this=exp.Paren(this=left), expression=exp.Paren(this=right))


def _tested(case: exp.Case) -> tuple[exp.Expr, exp.Expr] | None:
    """Return condition and value of CASE WHEN condition THEN value END."""
    default = case.args.get("default")
    if case.this is not None or len(case.args["ifs"]) != 1:
        return None
    if default is not None and not isinstance(default, exp.Null):
        return None
    (branch,) = case.args["ifs"]
    return branch.this.copy(), branch.args["true"].copy()


def _counted(node: exp.Expr) -> exp.Expr | None:
    """Return the condition that COUNT(CASE WHEN condition THEN 1 END) counts."""
    if isinstance(node, exp.Case) and (test := _tested(node)) is not None:
        condition, value = test
        if isinstance(value, exp.Literal | exp.Boolean):
            return condition
        known = exp.Not(this=exp.Is(this=exp.Paren(this=value), expression=exp.null()))
        return exp.And(this=exp.Paren(this=condition), expression=known)
    if not isinstance(node, exp.Column | exp.Star | exp.Literal | exp.Distinct):
        return exp.Not(this=exp.Is(this=exp.Paren(this=node.copy()), expression=exp.null()))
    return None


def _is_public(node: exp.Expr, catalog: Catalog) -> bool:
    """Whether an expression reads public columns alone, so that its values may be listed."""
    roles = (Role.CONFIDENTIAL, Role.IDENTIFIER)
    hidden = {name.casefold() for role in roles for name in catalog.with_role(role)}
    known = {field.name.casefold() for field in catalog.fields} - hidden
    # A name that a sub-select gave may stand for anything.
    return all(column.name.casefold() in known for column in node.find_all(exp.Column))


def _text(node: exp.Expr) -> str:
    """Return the same text for the same expression, whatever its case and parentheses."""
    plain = node.copy().unnest()
    for column in plain.find_all(exp.Column):
        column.set("table", None)
        if not column.this.args.get("quoted") or column.name == column.name.lower():
            column.set("this", exp.to_identifier(column.name.lower()))
    return str(plain.sql("postgres"))


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name))


def label_of(node: exp.Expr) -> str:
    """Return the name that PostgreSQL gives to a column."""
    inner = node.unnest()
    if isinstance(inner, exp.Column):
        return str(inner.name)
    if isinstance(inner, exp.Window | exp.Filter):
        return label_of(inner.this)
    if isinstance(inner, exp.Cast):
        return label_of(inner.this)
    if isinstance(inner, exp.WithinGroup):
        return "percentile_cont"
    if isinstance(inner, exp.Case):
        return "case"
    if isinstance(inner, exp.Func) and not isinstance(inner, exp.Connector):
        return str(inner.sql_name()).lower()
    return "?column?"


def distinctly(items: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Return columns under labels of their own, as clients read them by name."""
    taken: set[str] = set()
    found: list[exp.Expr] = []
    for item in items:
        number, label = 1, item.alias
        while (name := label if number == 1 else f"{label}_{number}") in taken:
            number += 1
        taken.add(name)
        found.append(item if name == label else exp.alias_(item.this, name, quoted=True))
    return found

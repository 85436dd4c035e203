"""From SQL text to a typed question, by strict whitelist: what is not understood is refused.

Accepted: SELECT [keys,] aggregates FROM one protected relation [JOIN declared key joins]
[WHERE …] [GROUP BY …] [HAVING …] [ORDER BY …] [LIMIT …]; sub-selects and common table expressions
that stay one row per unit.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlglot import exp

from discreet.data.schema import Role
from discreet.data.sql.conditions import negated, operands
from discreet.data.sql.expression import rebuild
from discreet.data.sql.naming import clause
from discreet.data.sql.normalizing import normalized
from discreet.data.sql.outer import Statement, taken_apart
from discreet.data.sql.query import Catalog, Field, Key, Query, conjunction
from discreet.data.sql.reading import DEEPEST, LONGEST, read_statements
from discreet.data.sql.released import Released
from discreet.data.sql.scope import Parameters, Scope, identifier_match
from discreet.data.sql.spelling import spelled
from discreet.data.sql.splitting import lists_values
from discreet.data.sql.typed import Typed, refuse, require_arguments
from discreet.data.sql.wrapping import unwrapped
from discreet.errors import RefusedError, nearest

__all__ = ["parse", "read_statement"]


def parse(
    sql: str,
    catalog: Catalog,
    *,
    parameters: Sequence[Any] | Mapping[str, Any] | None = None,
) -> Query:
    """Return the typed question a statement asks, or refuse it with the reason and a way out.

    Examples
    --------
    >>> catalog = Catalog("people", (Field("age", "integer"), Field("salary", "integer")))
    >>> query = parse(
    ...     "select AVG(salary) from People where 30 <= age and age < $1", catalog, parameters=[60]
    ... )
    >>> query.question
    'SELECT AVG("people"."salary") FROM people WHERE "people"."age" < 60 AND "people"."age" >= 30'
    >>> parse("SELECT salary FROM people", catalog)
    Traceback (most recent call last):
    discreet.errors.RefusedError: the statement asks for no aggregate; add COUNT(*), SUM or AVG [no-aggregate]
    """
    if parameters and not isinstance(parameters, Mapping):
        sql = _numbered(sql)
    given = Parameters(parameters)
    try:
        tree = normalized(_statement(sql), given)
        if not isinstance(tree, exp.Select):
            raise refuse(
                "a set operation asks several questions", "not-a-select", "send one SELECT"
            )
        return _query(unwrapped(tree), catalog, given)
    except RecursionError:
        raise refuse("the statement is nested too deeply", "too-complex", "simplify it") from None


def read_statement(
    sql: str,
    catalog: Catalog,
    *,
    parameters: Sequence[Any] | Mapping[str, Any] | None = None,
) -> Statement:
    """Return the questions a statement asks, and what it does with their answers.

    Examples
    --------
    >>> catalog = Catalog("people", (Field("sex", "text"), Field("age", "integer")))
    >>> sql = (
    ...     "SELECT sex, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY sex"
    ... )
    >>> found = read_statement(sql, catalog)
    >>> [query.question for query in found.questions]
    ['SELECT "people"."sex", COUNT(*) FROM people GROUP BY "people"."sex"']
    """
    if parameters and not isinstance(parameters, Mapping):
        sql = _numbered(sql)
    given = Parameters(parameters)
    try:
        tree = normalized(_statement(sql), given)
        try:
            if isinstance(tree, exp.Select) and not lists_values(tree, catalog):
                return Statement((_query(unwrapped(tree), catalog, given),))
        except RefusedError as error:
            first: RefusedError | None = error
        else:
            first = None
        try:
            return taken_apart(tree, catalog, lambda select: _query(select, catalog, given))
        except RefusedError as error:
            # What stands in the way of the plain form is said, unless it is only that it is plain.
            if first is None or first.code in UNSUPPORTED:
                raise error from None
            raise first from None
    except RecursionError:
        raise refuse("the statement is nested too deeply", "too-complex", "simplify it") from None


#: Refusals of what is not understood, in contrast to what is not allowed.
UNSUPPORTED = frozenset(
    {
        "unsupported-clause", "unsupported-expression", "unsupported-distinct", "unsupported-subquery",
        "unsupported-aggregate", "unsupported-join", "unsupported-source", "unsupported-cast",
        "misplaced-subquery", "misplaced-aggregate", "not-a-select", "not-grouped", "no-relation",
        "constant-aggregate", "no-aggregate", "unsafe-cast", "type-mismatch", "unknown-relation",
    }
)  # fmt: skip


#: Quoted text, comments, and the two placeholders that stand for their place.
_PLACES = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\?|%s", re.DOTALL)


def _numbered(sql: str) -> str:
    """Write ? and %s as $1, $2 … in the order of the text, which the tree no longer shows."""
    places = itertools.count(1)
    return _PLACES.sub(
        lambda found: f"${next(places)}" if found[0] in ("?", "%s") else found[0], sql
    )


def _statement(sql: str) -> exp.Query:
    statements = read_statements(sql)
    if len(statements) != 1:
        raise refuse("one statement at a time is accepted", "several-statements", "send one SELECT")
    (statement,) = statements
    if isinstance(statement, exp.Subquery) and not any(
        value for name, value in statement.args.items() if name != "this"
    ):
        statement = statement.this
    if not isinstance(statement, exp.Select | exp.SetOperation):
        raise refuse(
            "only questions are answered; nothing can be changed here",
            "not-a-select",
            "ask SELECT aggregates FROM the relation",
        )
    if "sample" in sql.lower() and statement.find(exp.TableSample) is not None:
        raise refuse("TABLESAMPLE is not accepted", "unsupported-clause", "leave it out")
    return statement


@dataclasses.dataclass(frozen=True)
class _Rows:
    """Rows of the protected relation as one SELECT sees them."""

    relations: Mapping[str, Mapping[str, Typed]]
    predicate: exp.Expression | None = None
    columns: frozenset[str] = frozenset()

    def restrict(self, condition: Typed | None) -> _Rows:
        if condition is None:
            return self
        return dataclasses.replace(
            self,
            predicate=conjunction(self.predicate, condition.tree),
            columns=self.columns | condition.columns,
        )


def _query(select: exp.Select, catalog: Catalog, parameters: Parameters) -> Query:
    require_arguments(
        select, "expressions", "from_", "joins", "where", "group", "having", "order", "limit",
        "offset", "with_", "distinct", "kind", "into", "windows", "locks", "hint",
    )  # fmt: skip
    for name in ("distinct", "kind", "into", "windows", "locks", "hint"):
        if select.args.get(name):
            raise refuse(
                f"SELECT with {clause(name)} is not accepted", "unsupported-clause", "leave it out"
            )
    rows = _source(select, catalog, parameters, {})
    scope = Scope(rows.relations, parameters)
    rows = rows.restrict(_where(select, scope))
    keys = _keys(select, scope)
    released = Released(select, scope, keys, catalog)
    outputs = released.outputs()
    having = released.having()
    order = released.order()
    limit, offset = _limits(select, scope)
    if not released.has_aggregate:
        raise refuse(
            "the statement asks for no aggregate", "no-aggregate", "add COUNT(*), SUM or AVG"
        )
    query = released.query(
        relation=catalog.relation,
        predicate=_canonical(rows.predicate),
        predicate_columns=rows.columns,
        outputs=outputs,
        having=having,
        order=order,
        limit=limit,
        offset=offset,
    )
    _require_readable(query.question)
    return query


def _require_readable(text: str) -> None:
    """Refuse a question that the history could not read again: its own text is too long or deep."""
    if (
        len(text) > LONGEST // 2
        or text.count("(") + text.count("CASE") + text.count("NOT") > DEEPEST
    ):
        read_statements(text)


def _canonical(predicate: exp.Expression | None) -> exp.Expression | None:
    """Sort the conditions that sub-selects, joins and WHERE added one after another."""
    if not isinstance(predicate, exp.And):
        return predicate
    flat: dict[str, exp.Expression] = {}
    for part in operands(predicate):
        inner = cast("exp.Expression", part.unnest())
        for leaf in operands(inner) if isinstance(inner, exp.And) else [inner]:
            closed = exp.Paren(this=leaf) if isinstance(leaf, exp.Or) else leaf
            flat.setdefault(spelled(closed), closed)
    ordered = [flat[text].copy() for text in sorted(flat)]
    tree = ordered[0]
    for right in ordered[1:]:
        tree = exp.And(this=tree, expression=right)
    return tree


def _where(select: exp.Select, scope: Scope) -> Typed | None:
    where = select.args.get("where")
    if where is None:
        return None
    require_arguments(where, "this")
    condition = rebuild(where.this, scope)
    if condition.kind not in ("boolean", "null"):
        raise refuse("WHERE needs a condition", "type-mismatch", "compare the column with a value")
    return condition


def _source(
    select: exp.Select, catalog: Catalog, parameters: Parameters, outer: Mapping[str, _Rows]
) -> _Rows:
    named = {**outer, **_common_tables(select, catalog, parameters, outer)}
    from_ = select.args.get("from_")
    if from_ is None:
        raise refuse("the statement has no FROM", "no-relation", f"add FROM {catalog.relation}")
    require_arguments(from_, "this")
    rows = _from(from_.this, catalog, parameters, named)
    for join in select.args.get("joins") or ():
        rows = _join(join, rows, catalog, named)
    return rows


def _common_tables(
    select: exp.Select, catalog: Catalog, parameters: Parameters, outer: Mapping[str, _Rows]
) -> dict[str, _Rows]:
    with_ = select.args.get("with_")
    if with_ is None:
        return {}
    require_arguments(with_, "expressions")
    found: dict[str, _Rows] = {}
    for table in with_.expressions:
        require_arguments(table, "this", "alias")
        alias = _alias(table.args["alias"])
        if alias.casefold() == catalog.relation.casefold() or alias in catalog.lookups:
            raise refuse(
                f"the name {alias!r} is taken", "taken-name", "name the table expression otherwise"
            )
        found[alias] = _inner(table.this, alias, catalog, parameters, {**outer, **found})
    return found


def _alias(alias: exp.TableAlias) -> str:
    require_arguments(alias, "this")
    return str(alias.this.name)


def _from(
    node: exp.Expression, catalog: Catalog, parameters: Parameters, named: Mapping[str, _Rows]
) -> _Rows:
    if isinstance(node, exp.Subquery):
        require_arguments(node, "this", "alias", "joins")
        if node.args.get("joins"):
            raise refuse(
                "a join in parentheses is not accepted", "unsupported-join", "write it flat"
            )
        label = _alias(node.args["alias"]) if node.args.get("alias") else "inner"
        return _inner(node.this, label, catalog, parameters, named)
    name, alias = _table(node)
    if (inner := identifier_match(list(named), name)) is not None:
        rows = named[inner]
        columns = next(iter(rows.relations.values()))
        return dataclasses.replace(rows, relations={alias or inner: columns})
    if identifier_match([catalog.relation], name) is None:
        guess = nearest(name.name, [catalog.relation])
        raise refuse(
            f"there is no relation {name.name!r}",
            "unknown-relation",
            f"write {guess or catalog.relation!r}",
        )
    return _Rows({alias or catalog.relation: _relation(catalog)})


def _table(node: exp.Expression) -> tuple[exp.Identifier, str | None]:
    if not isinstance(node, exp.Table):
        raise refuse("FROM needs the protected relation", "unsupported-source", "name the relation")
    if node.args.get("db") or node.args.get("catalog"):
        raise refuse(
            "names of the database's own catalog are not available",
            "catalog-name",
            "name the relation without a schema",
        )
    require_arguments(node, "this", "alias")
    if not isinstance(node.this, exp.Identifier):
        raise refuse(
            "a function is not accepted in FROM", "unsupported-source", "name the relation"
        )
    alias = node.args.get("alias")
    return node.this, None if alias is None else _alias(alias)


def _relation(catalog: Catalog) -> Mapping[str, Typed]:
    return _meanings(catalog.relation, catalog.fields, catalog.unit, tuple(catalog.lookups.items()))


@functools.lru_cache(maxsize=64)  # the same for each question; what is used of it is copied
def _meanings(
    relation: str,
    fields: tuple[Field, ...],
    unit: str | None,
    lookups: tuple[tuple[str, tuple[Field, ...]], ...],
) -> Mapping[str, Typed]:
    own = {f.name: _own(f, relation, f.name, f.name == unit) for f in fields}
    # The canonical text of a question with a join names the lookup's columns like this.
    for lookup, theirs in lookups:
        for f in theirs:
            name = f"{lookup}.{f.name}"
            own[name] = _own(f, relation, name, False)
    return own


def _own(field: Field, relation: str, name: str, hidden: bool) -> Typed:
    kind = "identifier" if hidden or field.role == Role.IDENTIFIER else field.kind
    column = exp.column(name, table=relation, quoted=True)
    if kind == "integer":
        column.type = "bigint"
    elif field.digits is not None:
        column.type = "decimal({}, {})".format(*field.digits)
    return Typed(column, kind, frozenset({name}), degree=1)


def _inner(
    node: exp.Expression,
    alias: str,
    catalog: Catalog,
    parameters: Parameters,
    named: Mapping[str, _Rows],
) -> _Rows:
    """Return the rows of a sub-select, its columns and conditions put in place of their names."""
    if not isinstance(node, exp.Select):
        raise refuse("FROM accepts only a SELECT", "unsupported-source", "name the relation")
    try:
        require_arguments(node, "expressions", "from_", "joins", "where", "with_")
    except Exception:
        raise refuse(
            "a sub-select must stay one row per unit",
            "unsupported-subquery",
            "leave out DISTINCT, GROUP BY, ORDER BY and LIMIT inside it",
        ) from None
    rows = _source(node, catalog, parameters, named)
    scope = Scope(rows.relations, parameters)
    rows = rows.restrict(_where(node, scope))
    columns: dict[str, Typed] = {}
    for item in node.expressions:
        for name, meaning in _projected(item, scope):
            if name in columns:
                raise refuse(f"column {name!r} is given twice", "ambiguous-column", "rename one")
            columns[name] = meaning
    return dataclasses.replace(rows, relations={alias: columns})


def _projected(item: exp.Expression, scope: Scope) -> list[tuple[str, Typed]]:
    if isinstance(item, exp.Star):
        require_arguments(item)
        return [pair for columns in scope.relations.values() for pair in columns.items()]
    if isinstance(item, exp.Alias):
        require_arguments(item, "this", "alias")
        name, inner = item.alias, item.this
    else:
        name, inner = item.name, item
        if not isinstance(item, exp.Column):
            raise refuse("an expression needs a name", "unnamed-column", "write … AS name")
    if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Identifier):
        return [(name, scope.resolve(inner))]  # an identifier may pass by; it cannot be used
    value = rebuild(inner, scope)
    if not isinstance(value.tree, exp.Column):
        value = dataclasses.replace(value, tree=exp.Paren(this=value.tree))
    return [(name, value)]


def _join(join: exp.Join, rows: _Rows, catalog: Catalog, named: Mapping[str, _Rows]) -> _Rows:
    side = (join.args.get("side") or "").upper()
    kind = (join.args.get("kind") or "").upper()
    hint = "join " + ", ".join(
        f"{j.lookup} ON {catalog.relation}.{j.on} = {j.lookup}.{j.key}" for j in catalog.joins
    )
    wrong = refuse(
        "only declared key joins are accepted",
        "unsupported-join",
        hint if catalog.joins else "ask about the relation alone",
    )
    if (
        side not in ("", "LEFT")
        or kind not in ("", "INNER", "OUTER")
        or (side == "" and kind == "OUTER")
    ):
        raise wrong
    require_arguments(join, "this", "on", "using", "side", "kind")
    name, alias = _table(join.this)
    lookup = identifier_match(list(catalog.lookups), name)
    if lookup is None or identifier_match(list(named), name) is not None:
        raise wrong
    fields = catalog.lookups[lookup]
    columns = {f.name: _own(f, catalog.relation, f"{lookup}.{f.name}", False) for f in fields}
    if (alias or lookup) in rows.relations:
        raise refuse("a relation is joined twice", "unsupported-join", "join it once")
    both = dataclasses.replace(rows, relations={**rows.relations, alias or lookup: columns})
    pair = _join_pair(join, rows, both, columns)
    declared = {(j.on, f"{lookup}.{j.key}") for j in catalog.joins if j.lookup == lookup}
    if pair not in declared:
        raise wrong
    if side == "LEFT":
        return both
    key = exp.column(pair[1], table=catalog.relation, quoted=True)
    met = negated(exp.Is(this=key, expression=exp.Null()))
    return both.restrict(Typed(met, "boolean", frozenset(pair)))


def _join_pair(
    join: exp.Join, rows: _Rows, both: _Rows, columns: Mapping[str, Typed]
) -> tuple[str, str] | None:
    """Return the two columns a join compares, if it compares two columns."""
    using = join.args.get("using")
    none = Parameters(None)
    if using:
        if len(using) != 1 or join.args.get("on") is not None:
            return None
        column = exp.column(using[0].name)
        own = Scope(rows.relations, none).resolve(column).tree
        other = columns.get(using[0].name)
        return None if other is None else (own.name, other.tree.name)
    on = join.args.get("on")
    on = on.unnest() if on is not None else None
    if not isinstance(on, exp.EQ) or not all(
        isinstance(side, exp.Column) for side in (on.this, on.expression)
    ):
        return None
    scope = Scope(both.relations, none)
    names = [scope.resolve(side).tree.name for side in (on.this, on.expression)]
    theirs = {meaning.tree.name for meaning in columns.values()}
    names.sort(key=lambda name: name in theirs)
    return names[0], names[1]


def _keys(select: exp.Select, scope: Scope) -> tuple[Key, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    try:
        require_arguments(group, "expressions")
    except Exception:
        raise refuse(
            "only a plain GROUP BY is accepted", "unsupported-clause", "group by columns"
        ) from None
    keys: dict[str, Key] = {}
    for item in group.expressions:
        value = rebuild(_named(item, select, scope), scope)
        if value.is_literal:
            if not isinstance(item, exp.Column):
                raise refuse("GROUP BY needs a column", "unsupported-expression", "name a column")
            continue  # a constant that a sub-select named divides nothing
        tree = cast("exp.Expression", value.tree.unnest())
        text = spelled(tree)
        keys[text] = Key(tree, value.kind, value.columns, text)
    return tuple(keys[text] for text in sorted(keys))


def _named(item: exp.Expression, select: exp.Select, scope: Scope) -> exp.Expression:
    """Return what a position or a label in GROUP BY stands for."""
    if isinstance(item, exp.Literal) and not item.is_string:
        place = int(item.this) if str(item.this).isdigit() else 0
        if not 1 <= place <= len(select.expressions):
            raise refuse("GROUP BY names no such position", "unknown-position", "name the column")
        item = select.expressions[place - 1]
        return item.this if isinstance(item, exp.Alias) else item
    if isinstance(item, exp.Column) and not item.args.get("table"):
        known = any(
            identifier_match(list(columns), item.this) for columns in scope.relations.values()
        )
        if not known:
            for output in select.expressions:
                if (
                    isinstance(output, exp.Alias)
                    and output.alias.casefold() == item.name.casefold()
                ):
                    return cast("exp.Expression", output.this)
    return item


def _limits(select: exp.Select, scope: Scope) -> tuple[int | None, int]:
    found: list[int | None] = []
    for name in ("limit", "offset"):
        node = select.args.get(name)
        if node is None:
            found.append(None)
            continue
        if isinstance(node, exp.Fetch):
            require_arguments(node, "direction", "count", "limit_options")
            options = node.args.get("limit_options")
            if options is not None:
                require_arguments(options, "rows", "row")
            count = node.args.get("count")
        else:
            require_arguments(node, "expression")
            count = node.expression
        value = rebuild(count, scope).tree
        if not (isinstance(value, exp.Literal) and str(value.this).isdigit()):
            raise refuse(
                f"{name.upper()} needs a whole number", "malformed-limit", "write LIMIT 10"
            )
        found.append(int(value.this))
    return found[0], found[1] or 0

"""What a tree means, spelled for each engine.

Our trees have one meaning, written down in the manual (`docs/reference/sql-meaning.md`). Where an
engine's word for a node means something else (Sunday is 1 on Spark, 0 elsewhere), or nothing, the
node is replaced here, just before the tree becomes text. What all engines compute alike once it is
written out, such as rounding, is written out in `data.sql.total` and needs nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

__all__ = ["collated", "meant"]

Rule = Callable[[Any], exp.Expr]


def meant(tree: exp.Expr, dialect: str) -> exp.Expr:
    """Return a tree, changed in place, that means in a dialect what ours means.

    >>> part = exp.Extract(this=exp.var("DOW"), expression=exp.column("day"))
    >>> meant(part, "spark").sql("spark")
    'CAST(EXTRACT(DAYOFWEEK FROM day) AS BIGINT) - 1'
    >>> meant(exp.ByteLength(this=exp.column("name")), "duckdb").sql("duckdb")
    'STRLEN(name)'
    """
    rules = _RULES.get(dialect, {})
    # From the leaves up, so that a rule sees parts that are spelled already.
    for node in reversed(list(tree.bfs())):
        rule = rules.get(type(node))
        if rule is None:
            continue
        made = rule(node)
        if made is not node:
            tree = made if node is tree else tree
            if node.parent is not None:
                node.replace(made)
    return tree


def collated(value: exp.Expr) -> exp.Paren:
    """Return a text that PostgreSQL compares byte by byte, whatever language the server speaks."""
    order = exp.Collate(this=value, expression=exp.to_identifier("C", quoted=True))
    return exp.Paren(this=order)  # BETWEEN takes it only so


def _call(name: str) -> Rule:
    def rule(node: exp.Expr) -> exp.Expr:
        return exp.Anonymous(this=name, expressions=[node.this.copy()])

    return rule


def _whole(value: exp.Expr) -> exp.Cast:
    return exp.Cast(this=value, to=exp.DataType.build("bigint"))


def _part(node: exp.Extract) -> exp.Expr:
    """Return a part of a date as a whole number; PostgreSQL gives decimals."""
    return node if node.name.upper() == "EPOCH" else _whole(node.copy())


def _spark_part(node: exp.Extract) -> exp.Expr:
    """Return a part of a date; Spark's weeks begin with Sunday as the first day."""
    part = node.this.name.upper()
    names = {"DOW": "DAYOFWEEK", "ISODOW": "DAYOFWEEK_ISO"}
    made = exp.Extract(this=exp.var(names.get(part, part)), expression=node.expression.copy())
    if part == "DOW":
        return exp.Sub(this=_whole(made), expression=exp.Literal.number(1))
    return _whole(made)


def _postgres_micros(node: exp.UnixMicros) -> exp.Expr:
    seconds = exp.Extract(this=exp.var("EPOCH"), expression=node.this.copy())
    return _whole(exp.Mul(this=seconds, expression=exp.Literal.number(1_000_000)))


def _spark_micros(node: exp.UnixMicros) -> exp.Expr:
    zoned = exp.Cast(this=node.this.copy(), to=exp.DataType.build("timestamptz"))
    return exp.Anonymous(this="unix_micros", expressions=[zoned])


def _postgres_text(node: exp.Cast) -> exp.Expr:
    is_text = node.args["to"].this in (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR)
    return collated(node.copy()) if is_text else node


def _postgres_literal(node: exp.Literal) -> exp.Expr:
    """Return a text of a condition in the order of its bytes; the parser marks it by its type."""
    is_text = node.is_string and node.type is not None and node.type.this == exp.DataType.Type.TEXT
    return collated(node.copy()) if is_text else node


#: Decimals of so many digits are exact as a double over a power of ten.
_EXACT_DIGITS = 15


def _duckdb_double(node: exp.Cast) -> exp.Expr:
    """Return the double next to a decimal; DuckDB rounds long ones twice, but texts once."""
    kind = node.this.type
    if node.args["to"].this != exp.DataType.Type.DOUBLE or kind is None:
        return node
    digits = kind.expressions[0].this.to_py() if kind.expressions else 0
    if kind.this != exp.DataType.Type.DECIMAL or digits <= _EXACT_DIGITS:
        return node
    written = exp.Cast(this=node.this.copy(), to=exp.DataType.build("text"))
    return exp.Cast(this=written, to=exp.DataType.build("double"))


_RULES: dict[str, dict[type[Any], Rule]] = {
    "duckdb": {
        exp.ByteLength: _call("strlen"),
        exp.Cast: _duckdb_double,
        exp.Extract: _part,
        exp.UnixMicros: _call("epoch_us"),
    },
    "postgres": {
        exp.ByteLength: _call("octet_length"),
        exp.Extract: _part,
        exp.UnixMicros: _postgres_micros,
        exp.Cast: _postgres_text,
        exp.Literal: _postgres_literal,
    },
    "spark": {
        exp.ByteLength: _call("octet_length"),
        exp.Extract: _spark_part,
        exp.UnixMicros: _spark_micros,
    },
}

"""Bounds of an expression, from the declared bounds of its columns."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from discreet.errors import RefusedError

__all__ = ["bounds_of"]

Bounds = tuple[float, float]


def bounds_of(tree: exp.Expression, known: Mapping[str, Bounds]) -> Bounds:
    """Return the smallest and largest value an expression can have.

    >>> from sqlglot import parse_one
    >>> bounds_of(parse_one("2 * (salary - 10)"), {"salary": (0, 100)})
    (-20.0, 180.0)
    """
    if isinstance(tree, exp.Column):
        if tree.name not in known:
            raise RefusedError(
                f"column {tree.name!r} has no declared bounds",
                code="missing-bounds",
                hint="ask the curator to declare them, or use "
                + (", ".join(sorted(known)) or "COUNT(*)"),
            )
        low, high = known[tree.name]
        return float(low), float(high)
    if isinstance(tree, exp.Literal) and not tree.is_string:
        return float(tree.this), float(tree.this)
    if isinstance(tree, exp.Paren | exp.Cast):
        return bounds_of(tree.this, known)
    if isinstance(tree, exp.Neg):
        low, high = bounds_of(tree.this, known)
        return -high, -low
    if isinstance(tree, exp.Abs):
        low, high = bounds_of(tree.this, known)
        return 0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))
    if isinstance(tree, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return _combined(tree, known)
    if isinstance(tree, exp.Case | exp.Coalesce):
        return _chosen(tree, known)
    raise RefusedError(
        f"the bounds of {tree.key.upper()} are not known",
        code="missing-bounds",
        hint="aggregate columns, + − * / and CASE of them",
    )


def _combined(tree: exp.Expression, known: Mapping[str, Bounds]) -> Bounds:
    a, b = bounds_of(tree.this, known), bounds_of(tree.expression, known)
    if isinstance(tree, exp.Add):
        return a[0] + b[0], a[1] + b[1]
    if isinstance(tree, exp.Sub):
        return a[0] - b[1], a[1] - b[0]
    if isinstance(tree, exp.Div):  # the parser lets only numbers other than zero divide
        b = (1 / b[0], 1 / b[0])
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _chosen(tree: exp.Expression, known: Mapping[str, Bounds]) -> Bounds:
    if isinstance(tree, exp.Case):
        parts = [branch.args["true"] for branch in tree.args["ifs"]]
        parts += [tree.args["default"]] if tree.args.get("default") is not None else []
    else:
        parts = [tree.this, *tree.expressions]
    found = [bounds_of(part, known) for part in parts if not isinstance(part, exp.Null)]
    return min(low for low, _ in found), max(high for _, high in found)

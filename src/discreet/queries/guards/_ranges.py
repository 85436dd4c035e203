"""Bounds of an expression, from the declared bounds of its columns."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sqlglot import exp

from discreet.data.sql.naming import written
from discreet.errors import RefusedError

__all__ = ["bounds_of"]

Bounds = tuple[float, float]
#: Sums of values beyond this size have noise that hides everything.
WIDEST = 1e30


def bounds_of(tree: exp.Expression, known: Mapping[str, Bounds]) -> Bounds:
    """Return the smallest and largest value an expression can have.

    >>> from sqlglot import parse_one
    >>> bounds_of(parse_one("2 * (salary - 10)"), {"salary": (0, 100)})
    (-20.0, 180.0)
    """
    found = _bounds(tree, known)
    if found is None:
        raise RefusedError(
            "the expression never has a value",
            code="always-null",
            hint="leave out the NULL, or put a number in its place",
        )
    if max(abs(found[0]), abs(found[1])) > WIDEST:
        raise RefusedError(
            "the expression can become too large",
            code="unbounded-product",
            hint=f"stay below {WIDEST:g}: multiply by smaller numbers",
        )
    return found


def _bounds(tree: exp.Expression, known: Mapping[str, Bounds]) -> Bounds | None:
    """Return the bounds of the values that are not missing; None if all are."""
    if isinstance(tree, exp.Column):
        return _declared(tree.name, known)
    if isinstance(tree, exp.Null):
        return None
    if isinstance(tree, exp.Literal) and not tree.is_string:
        return float(tree.this), float(tree.this)
    if isinstance(tree, exp.Paren | exp.Cast):
        return _bounds(tree.this, known)
    if isinstance(tree, exp.Neg | exp.Abs | exp.Floor | exp.Ceil | exp.Round | exp.Trunc):
        inner = _bounds(tree.this, known)
        return None if inner is None else _changed(tree, *inner)
    if isinstance(tree, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod):
        return _combined(tree, known)
    if isinstance(tree, exp.Case | exp.Coalesce):
        return _chosen(tree, known)
    raise RefusedError(
        f"the bounds of {written(tree)} are not known",
        code="missing-bounds",
        hint="aggregate columns, + − * / and CASE of them",
    )


def _declared(name: str, known: Mapping[str, Bounds]) -> Bounds:
    if name not in known:
        raise RefusedError(
            f"column {name!r} has no declared bounds",
            code="missing-bounds",
            hint="ask the curator to declare them, or use another column or COUNT(*)",
        )
    low, high = known[name]
    return float(low), float(high)


def _changed(tree: exp.Expression, low: float, high: float) -> Bounds:
    if isinstance(tree, exp.Neg):
        return -high, -low
    if isinstance(tree, exp.Abs):
        return 0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))
    # Rounding of any kind moves a value by one at most, and not beyond whole ends.
    return float(math.floor(low)), float(math.ceil(high))


def _combined(tree: exp.Expression, known: Mapping[str, Bounds]) -> Bounds | None:
    a, b = _bounds(tree.this, known), _bounds(tree.expression, known)
    if a is None or b is None:
        return None
    if isinstance(tree, exp.Add):
        return a[0] + b[0], a[1] + b[1]
    if isinstance(tree, exp.Sub):
        return a[0] - b[1], a[1] - b[0]
    if isinstance(tree, exp.Mod):
        most = max(abs(b[0]), abs(b[1]))
        return (-most if a[0] < 0 else 0.0), (most if a[1] > 0 else 0.0)
    if isinstance(tree, exp.Div):  # the parser lets only numbers other than zero divide
        b = (1 / b[0], 1 / b[0])
    ends = [x * y for x in a for y in b]
    if isinstance(tree, exp.Mul) and tree.this == tree.expression:  # a square
        return (0.0 if a[0] <= 0 <= a[1] else min(a[0] ** 2, a[1] ** 2)), max(ends)
    return min(ends), max(ends)


def _chosen(tree: exp.Expression, known: Mapping[str, Bounds]) -> Bounds | None:
    if isinstance(tree, exp.Case):
        parts = [branch.args["true"] for branch in tree.args["ifs"]]
        parts += [tree.args["default"]] if tree.args.get("default") is not None else []
    else:
        parts = [tree.this, *tree.expressions]
    found = [ends for part in parts if (ends := _bounds(part, known)) is not None]
    if not found:
        return None
    return min(low for low, _ in found), max(high for _, high in found)

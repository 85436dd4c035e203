"""Rules of texts: joining them, taking parts of them, and writing whole numbers."""

from __future__ import annotations

import dataclasses

from sqlglot import exp

from discreet.data.sql.kinds import TEXTS, need
from discreet.data.sql.rebuilding import rebuild
from discreet.data.sql.scope import Scope
from discreet.data.sql.typed import Typed, closed, merge, refuse, require_arguments

__all__ = ["digits", "joined", "substring"]

#: Texts that one value may be joined of: each is as long as the data make it.
_MOST_JOINED = 32


def joined(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild ||."""
    require_arguments(node, "this", "expression", "safe")
    parts = []
    for side in (node.this, node.expression):
        value = rebuild(side, scope)
        if value.kind == "integer":
            value = dataclasses.replace(value, tree=digits(value.tree), kind="text")
        parts.append(need(value, TEXTS, "||"))
    tree = exp.DPipe(this=closed(parts[0].tree), expression=closed(parts[1].tree))
    if sum(1 for _ in tree.find_all(exp.DPipe)) > _MOST_JOINED:
        raise refuse(
            "too many texts are joined", "too-complex", f"use || at most {_MOST_JOINED} times"
        )
    return merge(tree, "text", *parts, degree=0)


def digits(tree: exp.Expression) -> exp.Expression:
    """Return a whole number as text, without the point that doubles are written with."""
    plain = isinstance(tree, exp.Column | exp.Literal)
    return exp.cast(tree if plain else exp.cast(tree, "bigint"), "text")


def substring(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild SUBSTRING."""
    require_arguments(node, "this", "start", "length")
    inner = need(rebuild(node.this, scope), TEXTS, "SUBSTRING")
    numbers = {}
    for name in ("start", "length"):
        given = node.args.get(name)
        if given is None:
            continue
        place = rebuild(given, scope).tree
        written = str(place.this) if isinstance(place, exp.Literal) else ""
        if not (written.isdecimal() and written.isascii() and len(written) <= 6):
            raise refuse(
                "SUBSTRING needs whole numbers below a million",
                "unsupported-expression",
                "write SUBSTRING(x, 1, 2)",
            )
        numbers[name] = int(written)
    # PostgreSQL's meaning: the place before the first letter is counted, and is empty.
    if "length" in numbers:
        numbers["length"] = max(numbers["length"] - (numbers.get("start") == 0), 0)
    numbers["start"] = max(numbers.get("start", 1), 1)
    places = {name: exp.Literal.number(place) for name, place in numbers.items()}
    return merge(exp.Substring(this=inner.tree, **places), "text", inner)

"""Rules of CASE and COALESCE."""

from __future__ import annotations

from sqlglot import exp

from discreet.data.sql.kinds import common, comparable, need
from discreet.data.sql.rebuilding import rebuild
from discreet.data.sql.scope import Scope
from discreet.data.sql.typed import Typed, merge, require_arguments

__all__ = ["case", "coalesce"]


def case(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild CASE."""
    require_arguments(node, "this", "ifs", "default")
    subject = None if node.this is None else rebuild(node.this, scope)
    branches, parts, kinds = [], [] if subject is None else [subject], []
    tested: Typed | None = None
    for branch in node.args["ifs"]:
        require_arguments(branch, "this", "true")
        test = rebuild(branch.this, scope)
        if subject is None:
            need(test, ("boolean", "null"), "WHEN")
        else:
            _, test = comparable(subject, test, "WHEN")
            _, test = (tested, test) if tested is None else comparable(tested, test, "WHEN")
            tested = tested if test.kind == "null" else test
        value = rebuild(branch.args["true"], scope)
        branches.append(exp.If(this=test.tree, true=value.tree))
        parts += [test, value]
        kinds.append(value.kind)
    default = None if node.args.get("default") is None else rebuild(node.args["default"], scope)
    if default is not None:
        parts.append(default)
        kinds.append(default.kind)
    tree = exp.Case(
        this=None if subject is None else subject.tree,
        ifs=branches,
        default=None if default is None else default.tree,
    )
    return merge(tree, common(kinds, "CASE"), *parts)


def coalesce(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild COALESCE."""
    require_arguments(node, "this", "expressions")
    parts = [rebuild(part, scope) for part in (node.this, *node.expressions)]
    tree = exp.Coalesce(this=parts[0].tree, expressions=[part.tree for part in parts[1:]])
    return merge(tree, common([p.kind for p in parts], "COALESCE"), *parts)

"""What names mean inside one SELECT, and the values of its parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from discreet.data.sql.typed import Typed, literal, refuse, require_arguments
from discreet.errors import nearest

__all__ = ["Parameters", "Scope", "identifier_match"]

#: Parts of expressions that a statement may repeat by naming columns of sub-selects.
MOST_COPIED = 20_000


@dataclasses.dataclass(frozen=True)
class Scope:
    """What names mean inside one SELECT, and the values of its parameters."""

    #: Per alias: name of the column to its meaning.
    relations: Mapping[str, Mapping[str, Typed]]
    parameters: Parameters

    def resolve(self, node: exp.Column) -> Typed:
        """Return what a column name means here."""
        require_arguments(node, "this", "table")
        if not isinstance(node.this, exp.Identifier):
            raise refuse("'*' stands for columns only in COUNT(*)", "star", "name the columns")
        found = [
            meaning
            for alias, columns in self._visible(node)
            if (meaning := _look(columns, node.this)) is not None
        ]
        if len(found) == 1:
            return found[0]
        name = node.this.name
        if found:
            raise refuse(
                f"column {name!r} is in several relations",
                "ambiguous-column",
                "write relation.column",
            )
        # Askers are told what they may use; the names of identifiers are not theirs to know.
        known = sorted(
            {
                column
                for columns in self.relations.values()
                for column, meaning in columns.items()
                if meaning.kind != "identifier"
            }
        )
        guess = nearest(name, known)
        raise refuse(
            f"there is no column {name!r}",
            "unknown-column",
            f"write {guess!r}" if guess else "choose one of " + ", ".join(known),
        )

    def _visible(self, node: exp.Column) -> list[tuple[str, Mapping[str, Typed]]]:
        table = node.args.get("table")
        if table is None:
            return list(self.relations.items())
        match = _match(self.relations, table)
        if match is None:
            raise refuse(
                f"there is no relation {table.name!r} in this SELECT",
                "unknown-relation",
                "write one of " + ", ".join(self.relations),
            )
        return [(match, self.relations[match])]


class Parameters:
    """Values bound to placeholders, by place or by name, and how much a statement has copied."""

    def __init__(self, values: Sequence[Any] | Mapping[str, Any] | None) -> None:
        self._values = {} if values is None else values
        self._copied = 0

    def count_copied(self, tree: exp.Expression) -> None:
        """Refuse a statement whose sub-selects use each other's columns so often that it explodes."""
        self._copied += sum(1 for _ in tree.walk())
        if self._copied > MOST_COPIED:
            raise refuse(
                "columns of sub-selects are used too often",
                "too-complex",
                "use each of them once or twice",
            )

    def take(self, node: exp.Expression) -> Typed:
        """Return the value of a placeholder as a literal."""
        return literal(self.value(node))

    def value(self, node: exp.Expression) -> Any:
        """Return the value of a placeholder. Any: whatever the client sent."""
        if isinstance(node, exp.Parameter):
            require_arguments(node, "this")
            key: Any = int(node.name) - 1 if node.name.isdigit() else node.name
        else:
            require_arguments(node, "this", "jdbc")
            key = node.args.get("this")
        try:
            if isinstance(key, int) and key < 0:
                raise KeyError(key)
            return self._values[key]
        except (KeyError, IndexError, TypeError):
            place = key + 1 if isinstance(key, int) else repr(key)
            raise refuse(
                f"parameter {place} has no value", "missing-parameter", "give a value for each"
            ) from None


def identifier_match(names: Sequence[str], identifier: exp.Identifier) -> str | None:
    """Return the name an identifier means: exact if quoted, else in any case."""
    if identifier.name in names:
        return identifier.name
    if identifier.args.get("quoted"):
        return None
    folded = [n for n in names if n.casefold() == identifier.name.casefold()]
    return folded[0] if len(folded) == 1 else None


def _match(names: Mapping[str, Any], identifier: exp.Identifier) -> str | None:
    return identifier_match(list(names), identifier)


def _look(columns: Mapping[str, Typed], identifier: exp.Identifier) -> Typed | None:
    name = _match(columns, identifier)
    return None if name is None else columns[name]

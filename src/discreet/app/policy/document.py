"""YAML with positions: plain data, and the line and column of everything in it.

A policy file is treated as hostile: no tags, no aliases (which can expand without end), no
repeated keys (of which one would silently win). Size, number of parts and depth are bounded while
the parser gives one part after another, before anything recursive sees them.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import yaml

from discreet.errors import InputError

__all__ = ["Document", "Place", "parse"]

#: From the root to a value: keys of mappings and numbers of list entries.
Place = tuple[str | int, ...]
#: Largest policy in characters, most parts in it, deepest nesting, longest number or date.
LARGEST = 1_000_000
_MOST = 100_000
_DEEPEST = 40
_LONGEST = 64
_TAGS = {"map", "seq", "str", "int", "float", "bool", "null", "timestamp"}


@dataclasses.dataclass(frozen=True)
class Document:
    """Plain data and where each part of it stands (line and column, from 1)."""

    data: Any
    positions: dict[Place, tuple[int, int]]
    file: str

    def position(self, place: Place) -> tuple[int, int]:
        """Return line and column of a part, or of the nearest part around it."""
        for length in range(len(place), -1, -1):
            if place[:length] in self.positions:
                return self.positions[place[:length]]
        return 1, 1


def parse(text: str, *, file: str | Path = "policy.yaml") -> Document:
    r"""Read YAML text.

    >>> document = parse("data:\n  source: people.csv\n")
    >>> document.data
    {'data': {'source': 'people.csv'}}
    >>> document.positions["data", "source"]
    (2, 3)
    """
    require_size(len(text), file)
    try:
        _require_bounded(text, file)
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise InputError(
            f"the file is not YAML: {getattr(error, 'problem', None) or 'unreadable character'}",
            code="policy-not-yaml",
            hint="check indentation, colons and quotes there",
            file=file,
            line=None if mark is None else mark.line + 1,
        ) from None
    except UnicodeEncodeError:
        raise InputError(
            "the text holds half a character (a lone surrogate)",
            code="policy-not-yaml",
            hint="save it as UTF-8",
            file=file,
        ) from None
    reader = _Reader(str(file))
    data = {} if node is None else reader.value(node, ())
    return Document(data, reader.positions, str(file))


def require_size(length: int, file: str | Path) -> None:
    """Refuse a policy of more characters or bytes than any policy needs."""
    if length > LARGEST:
        raise InputError(
            f"the policy file has more than {LARGEST:,} characters",
            code="policy-too-large",
            hint="data and long hierarchies belong in files of their own",
            file=file,
        )


def _require_bounded(text: str, file: str | Path) -> None:
    """Refuse aliases, deep nesting and too many parts, before a recursive function meets them."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise InputError(
                "aliases (*name) are not allowed in a policy",
                code="policy-alias",
                hint="write the value again",
                file=file,
                line=line,
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise InputError(
                f"the policy is nested more than {_DEEPEST} levels deep",
                code="policy-too-deep",
                hint="give a deep hierarchy as a file",
                file=file,
                line=line,
            )
        if number > _MOST:
            raise InputError(
                f"the policy has more than {_MOST:,} parts",
                code="policy-too-large",
                hint="data and long hierarchies belong in files of their own",
                file=file,
                line=line,
            )


class _Reader:
    """Turns YAML nodes into plain data and remembers where each one stood."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.positions: dict[Place, tuple[int, int]] = {}
        self._scalars = yaml.SafeLoader("")

    def value(self, node: yaml.Node, place: Place) -> Any:
        self.positions.setdefault(place, (node.start_mark.line + 1, node.start_mark.column + 1))
        if node.tag.removeprefix("tag:yaml.org,2002:") not in _TAGS:
            raise self._error(
                node, f"the tag {node.tag!r} is not allowed", "policy-tag", "remove it"
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*place, n)) for n, item in enumerate(node.value)]
        if node.tag.endswith(":str"):
            return str(node.value)
        try:
            # A long sexagesimal number (1:1:1:…) would take hours to compute.
            if len(node.value) > _LONGEST:
                raise ValueError
            return self._scalars.construct_object(node)
        except (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, ValueError):
            raise self._error(
                node, "this value cannot be read", "policy-value", "put it in quotes"
            ) from None

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, item in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(
                    key_node, "a key must be a word", "policy-key", "write `key: value`"
                )
            key = str(key_node.value)
            if key in found:
                raise self._error(
                    key_node, f"the key {key!r} is given twice", "policy-repeated-key", "keep one"
                )
            mark = key_node.start_mark
            self.positions[(*place, key)] = (mark.line + 1, mark.column + 1)
            found[key] = self.value(item, (*place, key))
        return found

    def _error(self, node: yaml.Node, message: str, code: str, hint: str) -> InputError:
        return InputError(
            message, code=code, hint=hint, file=self.file, line=node.start_mark.line + 1
        )

"""YAML with positions: plain data, and the line and column of everything in it.

A policy file is treated as hostile: no tags, no aliases (which can expand without end), no
repeated keys (of which one would silently win), a bounded size and depth.
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
_LARGEST = 1_000_000
_DEEPEST = 40
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
    if len(text) > _LARGEST:
        raise InputError(
            f"the policy file has {len(text):,} characters",
            code="policy-too-large",
            hint=f"a policy has at most {_LARGEST:,}; data belongs in files of its own",
            file=file,
        )
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise InputError(
                    "aliases (*name) are not allowed in a policy",
                    code="policy-alias",
                    hint="write the value again",
                    file=file,
                    line=event.start_mark.line + 1,
                )
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
    except RecursionError:
        raise _too_deep(file, None) from None
    reader = _Reader(str(file))
    data = {} if node is None else reader.value(node, ())
    return Document(data, reader.positions, str(file))


class _Reader:
    """Turns YAML nodes into plain data and remembers where each one stood."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.positions: dict[Place, tuple[int, int]] = {}
        self._scalars = yaml.SafeLoader("")

    def value(self, node: yaml.Node, place: Place) -> Any:
        self.positions.setdefault(place, (node.start_mark.line + 1, node.start_mark.column + 1))
        if len(place) > _DEEPEST:
            raise _too_deep(self.file, node.start_mark.line + 1)
        if node.tag.removeprefix("tag:yaml.org,2002:") not in _TAGS:
            raise self._error(
                node, f"the tag {node.tag!r} is not allowed", "policy-tag", "remove it"
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*place, n)) for n, item in enumerate(node.value)]
        try:
            return self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError):
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


def _too_deep(file: str | Path, line: int | None) -> InputError:
    return InputError(
        "the policy is nested too deeply", code="policy-too-deep", file=file, line=line
    )

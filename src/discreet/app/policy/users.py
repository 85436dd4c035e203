"""A user added to the text of a policy file: everything else in it stays as it was written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from discreet.app.policy.document import parse
from discreet.app.policy.load import load_policy, validate
from discreet.errors import InputError

__all__ = ["with_user"]


def with_user(path: str | Path, name: str, entry: Mapping[str, Any]) -> str:
    """Return a policy's text with one more user under `server: users:`. Any: plain YAML values."""
    if name in load_policy(path).server.users:
        raise InputError(
            f"the policy lets {name!r} in already",
            code="user-exists",
            hint="remove the lines of the user first, or choose another name",
            file=path,
        )
    text = Path(path).read_text(encoding="utf-8")
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    server = _child(root, "server")
    users = _child(server, "users")
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    if isinstance(users, yaml.MappingNode) and users.value and not users.flow_style:
        indent = users.value[0][0].start_mark.column
        at = users.value[0][0].start_mark.line
        new = "".join(lines[:at]) + _block({name: entry}, indent) + "".join(lines[at:])
    elif users is not None:
        new = _replaced(text, users, {**_plain(users), name: dict(entry)})
    elif isinstance(server, yaml.MappingNode) and server.value and not server.flow_style:
        first = server.value[0][0].start_mark
        block = _block({"users": {name: entry}}, first.column)
        new = "".join(lines[: first.line]) + block + "".join(lines[first.line :])
    elif server is not None:
        new = _replaced(text, server, {**_plain(server), "users": {name: dict(entry)}})
    else:
        new = "".join(lines) + _block({"server": {"users": {name: entry}}}, 0)
    validate(parse(new, file=path))  # what is written must be a policy again
    return new


def _child(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for key, value in node.value if key.value == name), None)


def _plain(node: yaml.Node) -> dict[str, Any]:
    """Return the value of a mapping that is written in one line; nothing for null."""
    loader = yaml.SafeLoader("")
    value = loader.construct_object(node, deep=True)
    return dict(value or {})


def _replaced(text: str, node: yaml.Node, value: Mapping[str, Any]) -> str:
    """Write a mapping in one line in place of another."""
    short = str(yaml.safe_dump(dict(value), default_flow_style=True, sort_keys=False, width=10**6))
    before, after = text[: node.start_mark.index], text[node.end_mark.index :]
    gap = "" if before.endswith((" ", "\n")) else " "
    return before + gap + short.strip() + after


def _block(value: Mapping[str, Any], indent: int) -> str:
    plain = yaml.safe_dump(_copied(value), sort_keys=False, allow_unicode=True, width=10**6)
    return "".join(" " * indent + line for line in plain.splitlines(keepends=True))


def _copied(value: Any) -> Any:
    return {k: _copied(v) for k, v in value.items()} if isinstance(value, Mapping) else value

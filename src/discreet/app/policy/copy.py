"""The copy of a policy that stays with its releases: no password of anybody in it."""

from __future__ import annotations

from typing import Any

import yaml

from discreet.app.policy.document import parse
from discreet.data.addresses import without_passwords
from discreet.errors import InputError

__all__ = ["published_text"]


def published_text(text: str) -> str:
    r"""Return a policy without its section `server:` and without the passwords of addresses.

    Comments and style stay where they can. The result is read again and compared; where editing the
    text does not give what is meant the policy is written anew.

    >>> print(published_text("data: {source: a.csv}\nserver:\n  users: {}\ngateways: []"))
    data: {source: a.csv}
    gateways: []
    >>> published_text("{data: {source: a.csv}, server: {port: 1}}")
    '{data: {source: a.csv}, }'
    """
    given = parse(text).data
    meant = _without_passwords({key: value for key, value in given.items() if key != "server"})
    edited = without_passwords(_cut_server(text) if "server" in given else text)
    try:
        if parse(edited).data == meant and "server" not in parse(edited).data:
            return edited
    except InputError:
        pass
    return str(yaml.safe_dump(meant, sort_keys=False, allow_unicode=True))


def _cut_server(text: str) -> str:
    tree = yaml.compose(text, Loader=yaml.CSafeLoader)
    for key, value in getattr(tree, "value", ()):
        if key.value == "server":
            return text[: key.start_mark.index] + text[value.end_mark.index :].lstrip("\n")
    return text


def _without_passwords(value: Any) -> Any:
    # Any: plain data of YAML.
    if isinstance(value, dict):
        return {_without_passwords(key): _without_passwords(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_passwords(one) for one in value]
    return _cleaned(value) if isinstance(value, str) else value


def _cleaned(text: str) -> str:
    """Return an address without its password, also where that holds blanks or quotes."""
    cleaned = without_passwords(text)
    start, mark, rest = cleaned.partition("://")
    user, colon, after = rest.partition(":")
    if mark and colon and "@" in after and not set(user) & set("/?#@"):
        return f"{start}{mark}{user}@{after.rpartition('@')[2]}"
    return cleaned

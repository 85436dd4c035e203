"""Which scheme suits a table and the servers there are."""

from __future__ import annotations

from discreet.errors import InputError
from discreet.protocols.retrieval.schemes import FAMILY
from discreet.protocols.retrieval.schemes._base import Scheme
from discreet.protocols.retrieval.schemes.chor import Chor
from discreet.protocols.retrieval.schemes.dpf import DPF
from discreet.protocols.retrieval.schemes.simple_pir import SimplePIR
from discreet.protocols.retrieval.schemes.whole_table import WholeTable
from discreet.protocols.retrieval.statement import Statement

__all__ = ["asked_servers", "chosen"]

#: Up to here fetching everything costs less than a hint.
_SMALL = 4 << 20


def chosen(wanted: Scheme | str, servers: int, statement: Statement) -> tuple[Scheme, str]:
    """Return the scheme to ask with, and why."""
    if wanted == "auto":
        scheme, why = _automatic(servers, statement)
    elif isinstance(wanted, Scheme):
        scheme, why = wanted, "as asked for"
    else:
        named = FAMILY.get(wanted)
        any_number = "servers" in {item.name for item in named.parameters()}
        scheme = named(**{"servers": servers} if any_number else {})
        why = "as asked for"
    if scheme.parties != servers:
        raise InputError(
            f"{scheme.name} asks {scheme.parties} servers, and {servers} are named",
            code="retrieval-servers",
            hint=f"name {scheme.parties} servers that do not collude, or choose scheme='auto'",
        )
    if scheme.arithmetic not in statement.arithmetics:
        raise InputError(
            f"the table {statement.table!r} was not built for {scheme.name}",
            code="scheme-not-built",
            hint="name the scheme under `schemes` of the table and build it again",
        )
    return scheme, why


def asked_servers(wanted: str, named: int) -> int:
    """Return how many of the named servers a scheme asks: all that it can use.

    >>> asked_servers("simple-pir", 2), asked_servers("chor", 3), asked_servers("auto", 2)
    (1, 3, 2)
    """
    if wanted == "auto":
        return named
    scheme = FAMILY.get(wanted)
    if "servers" in {item.name for item in scheme.parameters()}:
        return named
    return min(named, scheme().parties)


def _automatic(servers: int, statement: Statement) -> tuple[Scheme, str]:
    size = sum(length for name, (_, length) in statement.files.items() if name.startswith("main-"))
    has_xor, has_add = ("xor" in statement.arithmetics), ("add" in statement.arithmetics)
    if servers > 2 and has_xor:
        return Chor(servers=servers), f"{servers} servers: only all of them together could tell"
    if servers == 2 and has_xor:
        return DPF(), "two servers: questions of a few hundred bytes"
    if servers == 1 and has_xor and (size <= _SMALL or not has_add):
        return WholeTable(), f"one server, {size:,} bytes: everything is fetched"
    if servers == 1 and has_add:
        return SimplePIR(), f"one server, {size:,} bytes: an encrypted question, after one hint"
    raise InputError(
        f"no scheme suits {servers} servers and how {statement.table!r} was built",
        code="retrieval-servers",
        hint="name one server for simple-pir, two for dpf, two to five for chor",
    )

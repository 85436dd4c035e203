"""What two parties must agree on before anything else is said."""

from __future__ import annotations

import dataclasses
import hmac
from collections.abc import Mapping
from typing import Any

import discreet
from discreet.errors import RefusedError
from discreet.protocols.transport.client import error_fields, request
from discreet.protocols.transport.frames import Message
from discreet.protocols.transport.link import Link

__all__ = ["Agreement"]

_LARGEST = 128


@dataclasses.dataclass(frozen=True)
class Agreement:
    """Version, policy and parties that a session is bound to.

    The side that connects states them in its first message, and the other side compares them with
    its own; a session of another policy, version or list of parties ends there.
    """

    policy: str
    parties: tuple[str, ...]
    version: str = discreet.__version__

    def call(self, link: Link, *, session: str, purpose: str) -> None:
        """State the agreement over a new link; raise what the other side refuses."""
        request(link, "hello", {**self._fields(), "session": session, "purpose": purpose})

    def meet(self, link: Link) -> tuple[str, str]:
        """Await the first message of a link; return its session and purpose."""
        said = link.receive("hello").fields
        try:
            self._compare(said)
        except RefusedError as error:
            link.send(Message("error", error_fields(error)))
            raise
        link.send(Message("welcome"))
        return str(said["session"])[:_LARGEST], str(said["purpose"])[:_LARGEST]

    def _fields(self) -> dict[str, Any]:
        return {"version": self.version, "policy": self.policy, "parties": list(self.parties)}

    def _compare(self, said: Mapping[str, Any]) -> None:
        if said.get("version") != self.version:
            raise RefusedError(
                "the parties run different versions of discreet",
                code="version-differs",
                hint=f"this side runs {self.version}",
            )
        if said.get("parties") != list(self.parties):
            raise RefusedError(
                "the parties name different lists of parties",
                code="parties-differ",
                hint="give every party the same policy",
            )
        if not hmac.compare_digest(str(said.get("policy")).encode(), self.policy.encode()):
            raise RefusedError(
                "the parties hold different policies",
                code="policy-differs",
                hint="give every party the same policy and certificates",
            )
        if not isinstance(said.get("session"), str) or not isinstance(said.get("purpose"), str):
            raise RefusedError("the first message names no session", code="message-malformed")

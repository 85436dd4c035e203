"""One party at work: it answers the analyst, computes with the others, and records everything."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.data.dataset import Dataset
from discreet.errors import DiscreetError, EngineError, InputError, RefusedError
from discreet.ledger.entry import Draft
from discreet.ledger.store import Ledger
from discreet.protocols.joint.asked import Asked
from discreet.protocols.joint.contacts import Contacts
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.demand import Demand, read_demand
from discreet.protocols.joint.drawer import Drawer
from discreet.protocols.joint.memory import Memory
from discreet.protocols.joint.methods.alignment import BOTH, Alignment
from discreet.protocols.joint.methods.joint_table import JointTable
from discreet.protocols.joint.offering import require_computations
from discreet.protocols.joint.outcome import stated_as
from discreet.protocols.joint.playing import Player, Prepared
from discreet.protocols.joint.seat import Cast, Seat
from discreet.protocols.joint.summary import (
    Extents,
    require_measures,
    require_offer,
    summarize,
    summarize_withheld,
)
from discreet.protocols.transport.frames import Message
from discreet.protocols.transport.link import Link
from discreet.protocols.transport.mesh import Mesh, Waiting
from discreet.protocols.transport.server import Server, answer_requests
from discreet.protocols.transport.transcript import Transcript
from discreet.randomness import Randomness

__all__ = ["Owner", "Party"]

_STATEMENT_LIMIT = 1 << 16


class Party:
    """An owner, a node, or both, listening until it is closed.

    Parameters
    ----------
    policy
        What all parties agreed on.
    name
        Which of them this is.
    ledger
        Where every run is recorded before anything of it leaves.
    data
        An owner's records.
    """

    def __init__(
        self,
        policy: JointPolicy,
        name: str,
        *,
        ledger: Ledger,
        data: Dataset | None = None,
        key: str | Path | None = None,
    ) -> None:
        self._contacts = Contacts(policy, name, key)
        self._extents: Extents = ()
        self._is_owner, self._is_node = name in policy.owners, name in policy.nodes
        if not (self._is_owner or self._is_node or name == policy.dealer):
            raise InputError(
                f"{name!r} is neither an owner nor a node nor the dealer",
                code="unknown-party",
                hint="start owners, nodes and the dealer; analysts ask",
            )
        if self._is_owner:
            if data is None:
                raise InputError(f"the owner {name!r} has no records", code="no-source")
            self._extents = require_offer(data, policy)
            require_computations(data, name, policy)
        self._policy, self._name, self._ledger, self._data = policy, name, ledger, data
        # Not in the ledger, which others may read: with it they could try out cells.
        self._secret = self._contacts.secret(b"marks of joint inputs")
        self._waiting = Waiting()
        self._lock = threading.Lock()
        self._memory = Memory(ledger, policy.time_limit)
        self._player = Player(
            policy,
            name,
            self._contacts,
            ledger=ledger,
            data=data,
            secret=self._secret,
            waiting=self._waiting,
            lock=self._lock,
            memory=self._memory,
        )
        self._ready: Drawer[Prepared] = Drawer(policy.time_limit)
        self._prepared: Drawer[tuple[Demand, npt.NDArray[np.int64] | None]] = Drawer(
            policy.time_limit
        )
        address = policy.parties[name].address
        assert address is not None  # the policy requires it of owners and nodes
        self._server = Server(
            address,
            identity=self._contacts.identity,
            clients=self._contacts.certificates,
            handle=self._handle,
            time_limit=policy.time_limit,
        )

    def _handle(self, link: Link) -> None:
        session, purpose = self._contacts.agreement.meet(link)
        if purpose == "stream":
            self._waiting.offer(session, link, time_limit=self._policy.time_limit)
        elif purpose == "leave":
            self._waiting.leave(session, link.peer)
        elif purpose == "ask" and link.peer in self._policy.analysts:
            answers: Mapping[str, Callable[[str, str, Message], Message]] = {
                "prepare": self._prepare,
                "run": self._run,
                "prepare computation": self._prepare_computation,
                "run computation": self._run_computation,
            }

            def answer(peer: str, message: Message) -> Message:
                if message.label not in answers:
                    raise RefusedError("there is no such request", code="message-unexpected")
                stays = message.label.startswith("prepare")
                try:
                    reply = answers[message.label](peer, session, message)
                    stays = True
                finally:
                    if not stays:
                        self._leave(session)
                return reply

            try:
                answer_requests(answer, limit=_STATEMENT_LIMIT, idle=self._policy.time_limit)(link)
            finally:
                with self._lock:
                    self._memory.release(session)
        else:
            raise RefusedError("only analysts of the policy may ask", code="not-an-analyst")

    def _leave(self, session: str) -> None:
        """Tell the others that this party takes no part in a run: they need not wait for it."""

        def tell(peer: str) -> None:
            with contextlib.suppress(DiscreetError):
                self._contacts.call(peer, session=session, purpose="leave").close()

        policy = self._policy
        listening = {*policy.owners, *policy.nodes, policy.dealer} - {None, self._name}
        for peer in listening:
            threading.Thread(target=tell, args=(peer,), daemon=True).start()

    # -- what an analyst asks for ----------------------------------------------------------------
    def _prepare(self, analyst: str, session: str, message: Message) -> Message:
        """Read the question, summarize the records and see that earlier runs allow it."""
        try:
            sql = bytes(message.body).decode("utf-8")
        except UnicodeDecodeError:
            raise RefusedError("the statement is not UTF-8", code="message-malformed") from None
        wanted = {name: message.fields.get(name) is True for name in ("totals", "margins")}
        demand = read_demand(sql, self._policy, **wanted)
        inputs = None
        if self._data is not None and self._is_owner:
            inputs = self._summarized(demand)
        with self._lock:
            self._require_history(session, demand, inputs)
            self._prepared.keep(session, analyst, (demand, inputs))
            self._memory.reserve(
                session, demand.question, {"stage": "started", **self._facts(demand, inputs)}
            )
        return Message("prepared", {"digest": demand.digest})

    def _run(self, analyst: str, session: str, message: Message) -> Message:
        del message
        with self._lock:
            demand, inputs = self._prepared.take(session, analyst)
            self._require_history(session, demand, inputs)
            facts = self._facts(demand, inputs)
            self._record(analyst, session, demand, "started", facts)
            self._memory.release(session)
        transcript = Transcript(self._name)
        everybody = {*self._policy.owners, *self._policy.nodes}
        # Owners that are no nodes are told which cells are withheld where totals follow.
        sends = everybody if self._is_node and demand.totals else {*self._policy.nodes}
        receives = everybody if self._is_node else {*self._policy.nodes} if demand.totals else set()
        with Mesh(
            transcript,
            {
                peer: functools.partial(
                    self._contacts.call, peer, session=session, purpose="stream"
                )
                for peer in sorted(sends - {self._name})
            },
            sorted(receives - {self._name}),
            waiting=self._waiting,
            session=session,
            time_limit=self._policy.time_limit,
        ) as mesh:
            withheld = functools.partial(self._summarized, demand)
            opened = JointTable.of(demand).tabulate(
                Seat(
                    self._name,
                    Cast(self._policy.owners, self._policy.nodes),
                    mesh,
                    Randomness.secure(),
                    lambda meaning, cells: self._record(
                        analyst, session, demand, f"opening {meaning}", {"cells": cells}
                    ),
                    sign=self._player.sign,
                    verify=self._player.verify,
                    asked=Asked(self._policy, demand, inputs, withheld),
                )
            )
        stated = transcript.to_dict()
        self._record(analyst, session, demand, "finished", {"transcript": stated})
        return Message(
            "result", {"transcript": stated}, b"" if opened is None else opened.to_bytes()
        )

    def _prepare_computation(self, analyst: str, session: str, message: Message) -> Message:
        """Read one's columns for an agreed computation."""
        prepared = self._player.prepare(str(message.fields.get("computation", "")), session)
        with self._lock:
            self._ready.keep(session, analyst, prepared)
        return Message("prepared")

    def _run_computation(self, analyst: str, session: str, message: Message) -> Message:
        """Take part, and state what goes to the one who asked."""
        with self._lock:
            prepared = self._ready.take(session, analyst)
        present = message.fields.get("present")
        if not isinstance(present, list):
            raise RefusedError("nobody is said to be present", code="message-malformed")
        outcome, stated = self._player.run(prepared, analyst, session, [str(p) for p in present])
        body = stated_as(outcome.shown) if outcome.shown else b""
        return Message("result", {"transcript": stated}, body)

    def _summarized(
        self, demand: Demand, level: int | None = None, cells: Sequence[tuple[str, ...]] = ()
    ) -> npt.NDArray[np.int64]:
        """Summarize an owner's cells, or those of them that are withheld."""
        assert self._data is not None  # only owners are asked
        try:
            if level is None:
                known = self._extents
                self._extents = require_measures(self._data, self._policy, known=known)
                return summarize(self._data, demand, self._policy)
            return summarize_withheld(self._data, demand, self._policy, level, cells)
        except DiscreetError:
            # What an engine says of a failure may quote a record.
            raise EngineError(
                f"the owner {self._name!r} could not summarize its records",
                code="owner-failed",
                hint="ask that owner to look at its database",
            ) from None

    # -- memory ----------------------------------------------------------------------------------
    def _record(
        self, analyst: str, session: str, demand: Demand, stage: str, facts: Mapping[str, Any]
    ) -> None:
        digest = hashlib.sha256(f"{session} {stage}".encode()).hexdigest()
        details = {"session": session, "party": self._name, "stage": stage, **facts}
        self._ledger.record(
            Draft(
                self._policy.relation,
                analyst,
                "joint",
                demand.question,
                digest,
                self._contacts.agreement.policy,
                details,
            )
        )

    def _facts(self, demand: Demand, inputs: npt.NDArray[np.int64] | None) -> dict[str, Any]:
        """Return what later runs are judged by."""
        return {
            "keys": list(demand.keys),
            "condition": demand.condition,
            "measures": sorted(demand.measures),
            "judged": sorted(demand.judged),
            "totals": demand.totals,
            "margins": demand.margins,
            "pattern": self._policy.pattern(demand.keys),
            "parties": sorted({*self._policy.owners, *self._policy.nodes}),
            "inputs": self._marks(demand, inputs),
        }

    def _marks(self, demand: Demand, inputs: npt.NDArray[np.int64] | None) -> dict[str, str]:
        """Return a keyed digest of each row of inputs: tells change, and no value."""
        if inputs is None:
            return {}
        names = [f"{what} {measure}".strip() for what, measure in demand.rows(self._policy)]
        return {
            name: hmac.new(
                self._secret, name.encode() + b"\0" + row.tobytes(), "sha256"
            ).hexdigest()
            for name, row in zip(names, inputs, strict=True)
        }

    def _require_history(
        self, session: str, demand: Demand, inputs: npt.NDArray[np.int64] | None
    ) -> None:
        """Refuse what would disclose a difference to an earlier table of the same records."""
        marks = self._marks(demand, inputs)
        aligned: set[str] = set()
        for _, details, refusal in self._memory.runs(session):
            if details.get("stage") == "finished" and details["session"] in aligned:
                _require_apart(details)
            if details.get("stage") == "computing":
                if details["protocol"] == Alignment.name and self._policy.unit in details["inputs"]:
                    aligned.add(details["session"])
                if details["split"] in ("horizontal", "arbitrary") and not details["noise"]:
                    raise refusal()  # a sum over all tells the one cell that is withheld
                continue
            if details.get("stage") != "started":
                continue
            same = (list(demand.keys), demand.condition) == (details["keys"], details["condition"])
            # Other rules or owners withhold other cells: what was opened then tells these.
            same = same and details.get("pattern") == self._policy.pattern(demand.keys)
            judged = set(details.get("judged", details["measures"]))
            margins = details.get("margins", False)
            if demand.margins or margins:
                # Two patterns together tell more than each.
                same = same and margins == demand.margins and set(demand.judged) == judged
            elif demand.totals or details["totals"]:
                # Measures judged apart have another pattern, and a total that is safe beside one is
                # not always safe beside the other.
                same = same and set(demand.judged) == judged
            elif set(demand.judged) & set(details["measures"]):
                # Opened then without looking at what would follow from it now.
                same = same and set(demand.judged) <= judged
            known = details["inputs"]
            if not same or any(known.get(name, mark) != mark for name, mark in marks.items()):
                raise refusal()

    def close(self) -> None:
        """Stop listening."""
        self._server.close()

    def __enter__(self) -> Party:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _require_apart(details: Mapping[str, Any]) -> None:
    """Refuse tables of contributors whom two owners have: each would count as two."""
    if any(one["meaning"] == BOTH and one["cells"] for one in details["transcript"]["opened"]):
        raise RefusedError(
            "two owners have records of the same contributors, who would count twice",
            code="shared-contributors",
            hint="leave these records to one of the owners, and start with new ledgers",
        )


class Owner(Party):
    """A party that holds records, and computes on shares too where the policy says so.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import discreet as dc
    >>> from discreet.ledger.opening import open_ledger
    >>> from discreet.protocols.joint.declaration import PartyEntry
    >>> from discreet.protocols.joint.local import free_ports
    >>> from discreet.protocols.transport.identity import Identity
    >>> folder, names = tempfile.mkdtemp(), ("a", "b", "c", "analyst")
    >>> pins = [Identity.new(folder, name).pin for name in names]
    >>> places = [f"127.0.0.1:{port}" for port in free_ports(4)]
    >>> policy = JointPolicy(
    ...     relation="stays",
    ...     parties={n: PartyEntry(f"{n}.crt", at) for n, at in zip(names, places)},
    ...     owners=("a", "b", "c"),
    ...     nodes=("a", "b", "c"),
    ...     analysts=("analyst",),
    ...     keys={"icd": ("A", "B")},
    ...     rules=(dc.MinimumFrequency(3),),
    ...     folder=folder,
    ... )
    >>> stays = dc.read(pd.DataFrame({"icd": ["A", "B", "A"]}), name="stays")
    >>> with open_ledger() as ledger, Owner(policy, "a", data=stays, ledger=ledger):
    ...     pass  # it answers here, until it is closed
    """

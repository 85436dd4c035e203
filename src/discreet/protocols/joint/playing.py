"""One party in an agreed computation: what it brings, what it records, whom it talks to."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import hmac
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from discreet.data.dataset import Dataset
from discreet.dp.accountant import Accountant
from discreet.errors import DiscreetError, EngineError, InputError, RefusedError
from discreet.ledger.entry import Charge, Draft
from discreet.ledger.store import Ledger
from discreet.protocols.joint.computation import Computation
from discreet.protocols.joint.contacts import Contacts
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.memory import Memory
from discreet.protocols.joint.methods.horizontal_regression import HorizontalRegression
from discreet.protocols.joint.methods.joint_regression import JointRegression
from discreet.protocols.joint.methods.secure_sum import SecureSum
from discreet.protocols.joint.offering import (
    numbers_of,
    persons_of,
    require_no_dominance,
    require_safe_part,
)
from discreet.protocols.joint.protocol import Outcome, Protocol
from discreet.protocols.joint.seat import Cast, Seat
from discreet.protocols.transport.mesh import Mesh, Waiting
from discreet.protocols.transport.transcript import Transcript
from discreet.randomness import Randomness

_TELL_MEANS = (JointRegression.name, HorizontalRegression.name)

__all__ = ["Player", "Prepared"]


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """A computation that this party is ready to make."""

    name: str
    computation: Computation
    records: npt.NDArray[np.float64] | None
    persons: tuple[bytes, ...]
    #: A keyed digest of each column: tells change, and no value.
    marks: Mapping[str, str]


class Player:
    """What a party does when an agreed computation is asked for."""

    def __init__(
        self,
        policy: JointPolicy,
        name: str,
        contacts: Contacts,
        *,
        ledger: Ledger,
        data: Dataset | None,
        secret: bytes,
        waiting: Waiting,
        lock: threading.Lock,
        memory: Memory,
    ) -> None:
        self._policy, self._name, self._contacts = policy, name, contacts
        self._ledger, self._data, self._secret = ledger, data, secret
        self._waiting, self._lock, self._memory = waiting, lock, memory
        self._aligned: dict[str, tuple[bytes, ...]] = {}
        key = serialization.load_pem_private_key(contacts.identity.key.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)  # as `discreet key new` writes it
        self._key = key

    def prepare(self, name: str, session: str) -> Prepared:
        """Read this owner's columns and see that earlier runs allow the computation."""
        computation = self._policy.computations.get(name)
        if computation is None:
            raise InputError(
                f"no computation {name!r} was agreed on",
                code="unknown-computation",
                hint="choose one of " + (", ".join(self._policy.computations) or "none"),
            )
        if computation.protocol.tabulates:
            # Tables have a memory and a question of their own: there is one way to them.
            raise InputError(
                f"{name!r} is a table",
                code="unknown-computation",
                hint="ask for it as for any table",
            )
        records: npt.NDArray[np.float64] | None = None
        persons: tuple[bytes, ...] = ()
        if self._name in computation.owners:
            records, persons = self._read(computation)
            self._admit(computation, records)
        marks = {
            column: hmac.new(self._secret, column.encode() + b"\0" + content, "sha256").hexdigest()
            for column, content in self._contents(computation, records, persons)
        }
        prepared = Prepared(name, computation, records, persons, marks)
        with self._lock:
            self._require_history(prepared, session)
            self._memory.reserve(
                session, _named(prepared), {"stage": "computing", **self._facts(prepared)}
            )
        return prepared

    def _read(
        self, computation: Computation
    ) -> tuple[npt.NDArray[np.float64] | None, tuple[bytes, ...]]:
        assert self._data is not None  # an owner has records
        try:
            if computation.protocol.split == "persons":
                column = computation.columns[self._name][0]
                return None, persons_of(self._data, column, unit=self._policy.unit)
            persons = None if computation.aligned is None else self._aligned[computation.aligned]
            records = numbers_of(self._data, computation, self._name, self._policy, persons)
        except KeyError:
            raise RefusedError(
                "the records of the owners are not aligned yet",
                code="not-aligned",
                hint=f"run the computation {computation.aligned!r} first",
            ) from None
        except DiscreetError:
            # What an engine says of a failure may quote a record.
            raise EngineError(
                f"the owner {self._name!r} could not read its columns",
                code="owner-failed",
                hint="ask that owner to look at its database",
            ) from None
        return records, ()

    def _admit(self, computation: Computation, records: npt.NDArray[np.float64] | None) -> None:
        """Refuse to take part with records that the result would tell."""
        if records is None:
            return
        computation.protocol.admit(records)
        if computation.protocol.centres:
            require_no_dominance(records, self._policy.rules)
        if computation.protocol.judges_parts and not getattr(computation.protocol, "epsilon", 0):
            require_safe_part(records, self._policy.rules)

    def _contents(
        self,
        computation: Computation,
        records: npt.NDArray[np.float64] | None,
        persons: tuple[bytes, ...],
    ) -> list[tuple[str, bytes]]:
        if records is not None:
            names = computation.columns[self._name]
            return [(n, records[:, place].tobytes()) for place, n in enumerate(names)]
        if persons:
            return [(computation.columns[self._name][0], b"\0".join(persons))]
        return []

    def run(
        self, prepared: Prepared, analyst: str, session: str, present: Sequence[str]
    ) -> tuple[Outcome, dict[str, Any]]:
        """Record and charge the computation, take part in it, record what was opened."""
        policy, computation = self._policy, prepared.computation
        protocol = computation.protocol
        with self._lock:
            self._require_history(prepared, session)
            charges = self._charges(computation)
            self._record(analyst, session, prepared, "computing", self._facts(prepared), charges)
            self._memory.release(session)
        dealer = policy.dealer if protocol.needs_dealer else None
        bounds = {
            owner: tuple(computation.bounds[one] for one in columns)
            for owner, columns in computation.columns.items()
            if protocol.split != "persons"
        }
        nodes = policy.nodes if protocol.needs_nodes else ()
        bound = hashlib.sha256(f"{session} {self._contacts.agreement.policy}".encode()).digest()
        cast = Cast(computation.owners, nodes, dealer, bounds, bound)
        transcript = Transcript(self._name)
        with self._mesh(cast, protocol, transcript, session, present) as mesh:
            outcome = protocol.play(
                Seat(
                    self._name,
                    cast,
                    mesh,
                    Randomness.secure(),
                    lambda meaning, cells: self._record(
                        analyst, session, prepared, f"opening {meaning}", {"cells": cells}
                    ),
                    records=prepared.records,
                    persons=prepared.persons,
                    sign=self.sign,
                    verify=self.verify,
                )
            )
        if "places" in outcome.kept:
            common = outcome.kept["places"].astype(np.int64).tolist()
            self._aligned[prepared.name] = tuple(prepared.persons[place] for place in common)
        stated = transcript.to_dict()
        self._record(analyst, session, prepared, "finished", {"transcript": stated})
        return outcome, stated

    def _facts(self, prepared: Prepared) -> dict[str, Any]:
        """Return what later runs are judged by."""
        computation = prepared.computation
        protocol = computation.protocol
        return {
            "computation": prepared.name,
            "protocol": protocol.name,
            "noise": bool(getattr(protocol, "epsilon", 0)),
            "split": protocol.split,
            "linear": protocol.linear,
            "clusters": _clusters(protocol),
            "inputs": dict(prepared.marks),
            "parties": sorted(self._parties(computation)),
            "may_leave": sorted(computation.owners) if protocol.survives else [],
        }

    def _parties(self, computation: Computation) -> set[str]:
        """Return who takes part."""
        protocol, policy = computation.protocol, self._policy
        nodes = policy.nodes if protocol.needs_nodes else ()
        dealer = [str(policy.dealer)] if protocol.needs_dealer else []
        return {*computation.owners, *nodes, *dealer}

    def _mesh(
        self, cast: Cast, protocol: Any, transcript: Transcript, session: str,
        present: Sequence[str],
    ) -> Mesh:  # fmt: skip
        """Return links to everybody; where owners may leave, between them and the aggregator."""
        star = protocol.survives
        middle = {cast.dealer} if star and self._name != cast.dealer else set(cast.everybody)
        peers = sorted(str(one) for one in middle if one not in (self._name, None))
        may_leave = cast.owners if star and self._name == cast.dealer else ()
        peers = [one for one in peers if one in present or one not in may_leave]
        limit = self._policy.time_limit
        return Mesh(
            transcript,
            {
                peer: functools.partial(
                    self._contacts.call, peer, session=session, purpose="stream"
                )
                for peer in peers
            },
            peers,
            waiting=self._waiting,
            session=session,
            # An aggregator gives an owner up before the others give it up.
            time_limit=limit / 4 if may_leave else limit,
            may_leave=may_leave,
        )

    # -- keys ----------------------------------------------------------------------------------------
    def sign(self, message: bytes) -> bytes:
        """Sign with the key behind this party's certificate."""
        return self._key.sign(message, ec.ECDSA(hashes.SHA256()))

    def verify(self, peer: str, message: bytes, signature: bytes) -> bool:
        """Return whether a party signed this."""
        pem = self._contacts.certificates[peer].encode()
        public = x509.load_pem_x509_certificate(pem).public_key()
        if not isinstance(public, ec.EllipticCurvePublicKey):
            return False
        try:
            public.verify(signature, message, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True

    # -- memory --------------------------------------------------------------------------------------
    def _charges(self, computation: Computation) -> list[Charge]:
        protocol, policy = computation.protocol, self._policy
        if not isinstance(protocol, SecureSum) or self._name not in computation.owners:
            return []
        bounds = tuple(computation.bounds[one] for one in computation.columns[self._name])
        plan = protocol.noise(len(computation.owners), bounds)
        if plan is None:
            return []
        accountant, budget = Accountant("zcdp", policy.delta), policy.budget
        assert budget is not None  # the policy requires it of noise
        return [
            Charge("dataset", {plan.event: 1}, lambda total: accountant.epsilon(total) <= budget)
        ]

    def _record(
        self,
        analyst: str,
        session: str,
        prepared: Prepared,
        stage: str,
        facts: Mapping[str, Any],
        charges: Sequence[Charge] = (),
    ) -> None:
        digest = hashlib.sha256(f"{session} {stage}".encode()).hexdigest()
        details = {"session": session, "party": self._name, "stage": stage, **facts}
        draft = Draft(
            self._policy.relation,
            analyst,
            "joint",
            _named(prepared),
            digest,
            self._contacts.agreement.policy,
            details,
        )
        self._ledger.record(draft, charges)

    def _require_history(self, prepared: Prepared, session: str) -> None:
        """Refuse exact results that earlier ones of other records, or withheld cells, follow from."""
        protocol = prepared.computation.protocol
        earlier: list[str] = []
        means = False
        for question, details, refusal in self._memory.runs(session):
            if getattr(protocol, "epsilon", 0):
                continue  # its loss is charged, whatever was computed before
            table = details.get("stage") == "started" and protocol.split in (
                "horizontal",
                "arbitrary",
            )
            known = details.get("inputs", {}) if details.get("stage") == "computing" else {}
            known = {} if details.get("noise") else known
            changed = any(known.get(name, mark) != mark for name, mark in prepared.marks.items())
            # Two clusterings may differ in the cluster of one record; and a column that follows from
            # another makes the same clusters under another name.
            apart = (
                _clusters(protocol)
                and bool(details.get("clusters"))
                and bool(prepared.marks)
                and bool(known)
                and question.partition(": ")[2] != _question(prepared)
            )
            if table or changed or apart:
                raise refusal()
            if details.get("stage") == "computing" and details.get("linear"):
                earlier += details["inputs"]
                means |= details["protocol"] in _TELL_MEANS
        if protocol.linear and prepared.records is not None:
            self._require_no_difference(prepared, earlier, means=means)

    def _require_no_difference(
        self, prepared: Prepared, earlier: Sequence[str], *, means: bool
    ) -> None:
        """Refuse columns that single out a record with those of earlier runs: results subtract.

        `means` says whether earlier runs told means of columns.
        """
        mine = prepared.computation.columns[self._name]
        more = tuple(dict.fromkeys(one for one in earlier if one not in mine))
        if not more:
            return
        wider = dataclasses.replace(
            prepared.computation,
            columns={**prepared.computation.columns, self._name: more},
            bounds=dict.fromkeys(more, float("inf")),
        )
        rest, _ = self._read(wider)
        assert prepared.records is not None  # an owner has them
        assert rest is not None
        ones = np.ones((len(rest), int(means)))
        try:
            prepared.computation.protocol.admit(np.hstack([prepared.records, rest, ones]))
        except RefusedError:
            raise RefusedError(
                "the columns of an owner single out a record, together with those of earlier runs",
                code="high-leverage",
                hint="repeat the earlier computations; columns that differ in few records are not "
                "both multiplied",
            ) from None


def _clusters(protocol: Protocol) -> bool:
    """Whether means of parts of the records are opened that nothing compares with other runs."""
    return protocol.centres and not protocol.linear


def _question(prepared: Prepared) -> str:
    return json.dumps(prepared.computation.stated(), sort_keys=True)


def _named(prepared: Prepared) -> str:
    return f"{prepared.name}: {_question(prepared)}"

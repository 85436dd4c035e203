"""Which persons two owners have in common."""

from __future__ import annotations

import dataclasses
import hmac
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError, RefusedError
from discreet.protocols.joint.learned import FOLLOW, Leakage
from discreet.protocols.joint.methods._curve import hashed_to_curve, multiplied, new_secret
from discreet.protocols.joint.protocol import Inputs, Outcome, Protocol, Seat, Split
from discreet.registry import parameter

__all__ = ["BOTH", "Alignment"]

#: What an alignment opens.
BOTH = "which persons both have"
_CODE = 16
_POINT = 32
_MOST_PERSONS = 1 << 24


@dataclasses.dataclass(frozen=True)
class Alignment(Protocol):
    """Find the persons that two owners have in common, and bring both into one order.

    Without a third party the owners multiply points of a curve that identifiers are hashed to, each
    by its own secret; points that agree under both secrets belong to the same person. Through the
    dealer they send codes under a key that the dealer does not have, which is a hundred times as fast.

    Examples
    --------
    >>> from discreet.protocols.joint.rehearsal import rehearse_protocol
    >>> people = {"a": [b"ann", b"bob", b"eve"], "b": [b"eve", b"dan", b"ann"]}
    >>> found = rehearse_protocol(Alignment(through="dealer"), people)
    >>> found.shown["common"].tolist()
    [2.0]
    >>> a, b = (found.outcomes[one].kept["places"].astype(int) for one in people)
    >>> [people["a"][place] for place in a] == [people["b"][place] for place in b]
    True
    """

    name: ClassVar[str] = "alignment"
    reference: ClassVar[str] = "Meadows (1986); Huberman, Franklin and Hogg (1999)"
    split: ClassVar[Split] = "persons"
    most: ClassVar[int] = 2

    through: Literal["owners", "dealer"] = parameter(
        "owners", help="owners alone, on a curve; or the dealer, who compares codes"
    )

    @property
    def needs_dealer(self) -> bool:
        """Codes are compared by the dealer, where it is asked to."""
        return self.through == "dealer"

    def play(self, seat: Seat) -> Outcome:
        """Return the number of common persons, and at an owner where they are."""
        if seat.is_owner and len(set(seat.persons)) != len(seat.persons):
            raise InputError(
                "an identifier occurs twice, and nobody can tell which record is meant",
                code="identifier-twice",
                hint="align by a column that tells persons apart",
            )
        return self._by_dealer(seat) if self.needs_dealer else self._by_owners(seat)

    # -- through the dealer -------------------------------------------------------------------------
    def _by_dealer(self, seat: Seat) -> Outcome:
        first, second = seat.cast.owners
        dealer = seat.cast.dealer
        assert dealer is not None
        if seat.name == dealer:
            return self._compare(seat)
        if seat.name == first:
            key = seat.rng.bytes(32)
            seat.wire.send(second, "key", key)
        else:
            key = bytes(seat.wire.receive(first, "key", size=32))
        codes = [hmac.digest(key, person, "sha256")[:_CODE] for person in seat.persons]
        order = np.array(sorted(range(len(codes)), key=codes.__getitem__), dtype=np.int64)
        _send_list(seat, dealer, "codes", [codes[place] for place in order.tolist()])
        announced(seat)
        found = [
            int.from_bytes(one, "little") for one in _receive_list(seat, dealer, "opened places", 8)
        ]
        if any(place >= len(order) for place in found):
            raise RefusedError("a place beyond the list arrived", code="message-unexpected")
        return _outcome(seat, order[np.array(found, dtype=np.int64)])

    @staticmethod
    def _compare(seat: Seat) -> Outcome:
        lists = [_receive_list(seat, owner, "codes", _CODE) for owner in seat.cast.owners]
        places = [{code: place for place, code in enumerate(one)} for one in lists]
        common = sorted(places[0].keys() & places[1].keys())
        for owner, found in zip(seat.cast.owners, places, strict=True):
            listed = [found[code].to_bytes(8, "little") for code in common]
            _send_list(seat, owner, "opened places", listed)
        return Outcome()

    # -- without a third party ----------------------------------------------------------------------
    def _by_owners(self, seat: Seat) -> Outcome:
        first, second = seat.cast.owners
        secret = new_secret(seat.rng)
        salt = seat.cast.session
        order = seat.rng.permutation(len(seat.persons))
        mine = [multiplied(secret, hashed_to_curve(seat.persons[p], salt)) for p in order.tolist()]
        other = second if seat.name == first else first
        _send_list(seat, other, "points", mine)
        theirs = [multiplied(secret, point) for point in _receive_list(seat, other, "points", 32)]
        announced(seat)
        if seat.name == second:
            # The first owner's points under both secrets, in the order in which it sent them.
            _send_list(seat, first, "opened points", theirs)
            back = _receive_list(seat, first, "opened points", _POINT)
        else:
            back = _receive_list(seat, second, "opened points", _POINT)
            _send_list(seat, second, "opened points", theirs)
        if len(back) != len(mine):
            raise RefusedError("a list of another length was due", code="message-unexpected")
        known = {point: place for place, point in enumerate(back)}
        common = sorted(known.keys() & set(theirs))
        return _outcome(seat, order[np.array([known[one] for one in common], dtype=np.int64)])

    def plain(self, inputs: Inputs) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return how many persons both have."""
        lists = [set(one) for one in inputs.values()]
        return {"common": np.array([float(len(lists[0] & lists[1]))])}

    def leakage(self) -> Leakage:
        """Return what each party learns."""
        third = (
            [("dealer", "codes under a key that it does not have",
              "how many persons each has, and both")]
            if self.needs_dealer
            else []
        )  # fmt: skip
        return Leakage.of(
            ("owner", "how many persons the other has; which of its own the other has too",
             "that these persons are with the other owner"),
            *third,
            ("analyst", "how many persons both have", "nothing of single ones"),
            assumes=(FOLLOW, "the dealer tries no identifiers with an owner that gives it the key"
                     if self.needs_dealer else "the Diffie-Hellman problem on P-256 is hard"),
        )  # fmt: skip


def announced(seat: Seat) -> None:
    """Record that the persons in common are about to be told."""
    seat.announce(BOTH, len(seat.persons))


def _outcome(seat: Seat, places: npt.NDArray[np.int64]) -> Outcome:
    # The transcript holds the digest of the number alone: identifiers could be guessed.
    size = np.array([float(len(places))])
    seat.wire.transcript.open(BOTH, size.tobytes(), cells=len(places))
    return Outcome({"common": size}, {"places": places.astype(np.float64)})


def _send_list(seat: Seat, peer: str, label: str, items: Sequence[bytes]) -> None:
    seat.wire.send(peer, f"{label} size", len(items).to_bytes(8, "little"))
    seat.wire.send(peer, label, b"".join(items))


def _receive_list(seat: Seat, peer: str, label: str, width: int) -> list[bytes]:
    size = int.from_bytes(seat.wire.receive(peer, f"{label} size", size=8), "little")
    if size > _MOST_PERSONS:
        raise RefusedError("a list of so many persons is not read", code="message-too-long")
    body = bytes(seat.wire.receive(peer, label, size=width * size))
    found = [body[start : start + width] for start in range(0, len(body), width)]
    if len(set(found)) != len(found):
        raise RefusedError("a list names somebody twice", code="message-unexpected")
    return found

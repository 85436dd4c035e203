"""Products of columns of two databases, played by the controller and the programs beside them."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.protocols.arithmetic.shares import Words
from discreet.protocols.fragments.circle import CONTROLLER, Circle
from discreet.protocols.joint.contacts import Contacts
from discreet.protocols.joint.learned import FOLLOW, Leakage
from discreet.protocols.joint.methods.matrix_product import MatrixProduct, summand
from discreet.protocols.joint.protocol import Outcome, Seat
from discreet.protocols.joint.seat import Cast
from discreet.protocols.transport.link import Link
from discreet.protocols.transport.mesh import Mesh, Waiting
from discreet.protocols.transport.transcript import Transcript
from discreet.randomness import Randomness

__all__ = ["ControlledProduct", "Multiplier"]


@dataclasses.dataclass(frozen=True)
class ControlledProduct(MatrixProduct):
    """Multiply columns of two clouds; the controller deals the masks and alone learns the sums."""

    name: ClassVar[str] = "controlled-product"
    reference: ClassVar[str] = "Du, Han and Chen (2004), Privacy-preserving multivariate analysis"

    def added(self, seat: Seat, part: Words | None, rows: int, bits: int) -> Outcome:
        """Add the summands of both clouds at the controller, who dealt the masks."""
        dealer, clouds = seat.cast.dealer, seat.cast.owners
        assert dealer is not None
        if part is not None:
            seat.wire.send(dealer, "opened", part.astype("<u8").tobytes())
            return Outcome()
        shape = tuple(len(seat.cast.bounds[cloud]) for cloud in clouds)
        meaning = f"sums of {shape[0] * shape[1]} products over {rows} records"
        seat.announce(meaning, shape[0] * shape[1])
        parts = [summand(seat, cloud, shape) for cloud in clouds]
        return self.opened(seat, parts[0] + parts[1], bits, meaning)

    def leakage(self) -> Leakage:
        """Return what each party learns."""
        return Leakage.of(
            ("cloud", "columns of another cloud under a mask used once; the common order of records",
             "nothing; clouds that put their fragments together can link them"),
            ("controller", "the sums of products", "what they say"),
            assumes=(FOLLOW, "clouds put nothing together"),
        )  # fmt: skip


class Multiplier:
    """The seat of one party of a circle, whichever side it is on."""

    def __init__(self, circle: Circle, name: str, key: str | Path | None = None) -> None:
        self.circle, self.name = circle, name
        self.contacts = Contacts(circle, name, key)
        self.waiting = Waiting()

    def take(self, link: Link) -> tuple[str, str]:
        """Greet a link; one that carries messages of a product waits here until it is over."""
        session, purpose = self.contacts.agreement.meet(link)
        if purpose == "stream":
            self.waiting.offer(session, link, time_limit=self.circle.time_limit)
        return session, purpose

    def multiply(
        self,
        session: str,
        clouds: tuple[str, str],
        widths: Sequence[int],
        own: npt.NDArray[np.float64] | None = None,
    ) -> tuple[Outcome, Transcript]:
        """Play this party's part of the product of columns that lie between −1 and 1."""
        bounds = {cloud: (1.0,) * width for cloud, width in zip(clouds, widths, strict=True)}
        bound = hashlib.sha256(f"{session} {self.contacts.agreement.policy}".encode()).digest()
        cast = Cast(clouds, (), CONTROLLER, bounds, bound)
        peers = [one for one in cast.everybody if one != self.name]
        calls = {
            peer: functools.partial(self.contacts.call, peer, session=session, purpose="stream")
            for peer in peers
        }
        transcript = Transcript(self.name)
        with Mesh(
            transcript,
            calls,
            peers,
            waiting=self.waiting,
            session=session,
            time_limit=self.circle.time_limit,
        ) as mesh:
            seat = Seat(
                self.name, cast, mesh, Randomness.secure(), _unrecorded, _signed, _signed,
                records=own,
            )  # fmt: skip
            return ControlledProduct().play(seat), transcript


def _unrecorded(meaning: str, cells: int) -> None:
    """Keep nothing: the sums are opened to the controller alone, whose records they are of."""


def _signed(*_: object) -> Any:
    """Any: what a seat signs and verifies, and a product does neither."""
    raise AssertionError("products sign nothing")

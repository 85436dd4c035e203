"""What a protocol is: what each party does, what is opened, and what each party learns."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet.protocols.joint.learned import Leakage
from discreet.protocols.joint.seat import Seat
from discreet.registry import Member

__all__ = ["Inputs", "Outcome", "Protocol", "Seat", "Split"]

Split = Literal["horizontal", "vertical", "arbitrary", "persons"]

Floats = npt.NDArray[np.float64]
#: The records of each owner: one row for each, one column for each column that it offers.
Inputs = Mapping[str, Floats]


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a party is left with: `shown` goes to the one who asked, `kept` does not leave it."""

    shown: Mapping[str, Floats] = dataclasses.field(default_factory=dict)
    kept: Mapping[str, Floats] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Protocol(Member):
    """Lets owners compute on all their records together and see only what was agreed."""

    #: Policies name members before the folder of the members, which stands above, is imported.
    family_name: ClassVar[str] = "protocol"
    #: Whether owners hold other records, other columns of the same ones, any values of the same
    #: records and columns, or lists of persons.
    split: ClassVar[Split]
    #: What it gives away that others do not, in one sentence; empty where nothing.
    caution: ClassVar[str] = ""
    #: Whether the messages that arrive at one party, openings apart, tell nothing of the others.
    hides: ClassVar[bool] = True
    #: How many owners it takes.
    fewest: ClassVar[int] = 2
    most: ClassVar[int] = 16
    #: Whether each record takes milliseconds of public-key encryption.
    costly: ClassVar[bool] = False
    #: Whether each owner's sums must meet the rules by themselves, since nothing else judges them.
    judges_parts: ClassVar[bool] = False
    #: Whether sums over groups are opened whose largest contributions nothing else judges.
    centres: ClassVar[bool] = False
    #: Whether results are sums over an owner's columns, so that several runs can be subtracted.
    linear: ClassVar[bool] = False
    #: Whether it opens cells by the rules of the policy: then it is asked for, and remembered, as
    #: tables are, and each seat holds what is asked.
    tabulates: ClassVar[bool] = False

    @property
    def needs_nodes(self) -> bool:
        """Whether three nodes compute on shares."""
        return False

    @property
    def needs_dealer(self) -> bool:
        """Whether a commodity server deals masks or compares codes."""
        return False

    @property
    def survives(self) -> bool:
        """Whether owners may go away in the middle."""
        return False

    def agree(self, policy: Any) -> None:
        """Refuse a policy under which it cannot be made. Any: policies hold protocols."""

    def seated(self, inputs: Inputs) -> Mapping[str, Any]:
        """Return what each party of a rehearsal is asked for, where it tabulates. Any: as above."""
        del inputs
        return {}

    def admit(self, records: Floats) -> None:
        """Refuse to take part with columns of which a result would tell single records."""

    @abc.abstractmethod
    def play(self, seat: Seat) -> Outcome:
        """Do what the party in this seat does, and return what it is left with."""

    @abc.abstractmethod
    def plain(self, inputs: Inputs) -> Mapping[str, Floats]:
        """Return what one curator who held all records would compute."""

    @abc.abstractmethod
    def leakage(self) -> Leakage:
        """Return who sees what, what follows from it, and what that rests on."""

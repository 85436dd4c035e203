"""What each party of a joint computation learned."""

from __future__ import annotations

import dataclasses

from discreet.report import Report, Rows

__all__ = ["FOLLOW", "NO_TWO_NODES", "Leakage"]

#: Assumptions that several protocols share.
FOLLOW = "parties follow the protocol, and owners do not lie about their records"
NO_TWO_NODES = "of the three nodes no two put their shares together"


@dataclasses.dataclass(frozen=True)
class Leakage(Report):
    """Who saw what in a joint computation, what follows from it, and what that rests on."""

    parties: tuple[str, ...]
    sees: tuple[str, ...]
    infers: tuple[str, ...]
    assumes: tuple[str, ...]

    @classmethod
    def of(cls, *lines: tuple[str, str, str], assumes: tuple[str, ...]) -> Leakage:
        """Return the statement made of one line for each kind of party."""
        parties, sees, infers = zip(*lines, strict=True)
        return cls(parties, sees, infers, assumes)

    def rows(self) -> Rows:
        """Return one line for each kind of party, and the assumptions."""
        lines = zip(self.parties, self.sees, self.infers, strict=True)
        return ("party", "sees", "can infer"), [
            *lines,
            *(("assumed", one, "") for one in self.assumes),
        ]

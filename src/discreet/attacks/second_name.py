"""The second name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Literal

from discreet.attacks._custodian import Asking, HistoryAttack
from discreet.registry import parameter

__all__ = ["SecondName"]


@dataclasses.dataclass(frozen=True)
class SecondName(HistoryAttack):
    """Ask one half of a difference about the records, the other about the same under another name.

    A view of the records lies in another file, without the columns that nobody asks about.

    Examples
    --------
    >>> [SecondName(kind=k).control().succeeded for k in ("relation", "ledger", "view")]
    [True, True, True]
    """

    name: ClassVar[str] = "second-name"
    reference: ClassVar[str] = "Denning (1982), Cryptography and Data Security, chapter 6"

    kind: Literal["relation", "ledger", "view"] = parameter(
        "relation", help="what there is a second of: a relation or view in one ledger, or a ledger"
    )

    def ask_twice(self, asking: Asking) -> Sequence[tuple[float, float] | None]:
        """Ask under two names or ledgers."""
        asking.site.write(asking.rows)
        more = asking.total(without=False)
        if self.kind == "ledger":
            other = asking.site.folder / "second.db"
            return more, asking.total(without=True, ledger=other)
        if self.kind == "view":
            return more, asking.total(without=True, name="staff", source=asking.view())
        return more, asking.total(without=True, name="staff")

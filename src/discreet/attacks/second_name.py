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

    Examples
    --------
    >>> SecondName().control().succeeded, SecondName(kind="ledger").control().succeeded
    (True, True)
    """

    name: ClassVar[str] = "second-name"
    reference: ClassVar[str] = "Denning (1982), Cryptography and Data Security, chapter 6"

    kind: Literal["relation", "ledger"] = parameter(
        "relation", help="what there is a second of: a relation in one ledger, or a ledger"
    )

    def ask_twice(self, asking: Asking) -> Sequence[tuple[float, float] | None]:
        """Ask under two names or ledgers."""
        asking.site.write(asking.rows)
        more = asking.total(without=False)
        if self.kind == "ledger":
            other = asking.site.folder / "second.db"
            return more, asking.total(without=True, ledger=other)
        return more, asking.total(without=True, name="staff")
